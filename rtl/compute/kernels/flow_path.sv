// SPDX-License-Identifier: Apache-2.0

// One direction of the kernel `telemetry`: frames pass as they are, 1 cycle later, one beat a cycle, and are counted in a table of flows and a
// histogram of the times between two frames of a flow. To look into the table a place is left between two frames: `look` holds `in` up until
// `looked`, for 12 cycles at most.
module flow_path
  import packet_pkg::*;
  import virtio_pkg::*;
  import classify_pkg::key_t;
  import classify_pkg::QUARTERS;
  import flow_telemetry_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        clear,
    input  logic [31:0] now,                   // cycles
    input  logic [31:0] seed,
    input  logic [31:0] threshold,
    axis_if.sink        in,
    axis_if.source      out,
    input  logic        look,                  // until `looked`
    input  telemetry_place_t      look_at,
    output logic        looked,                // pulse: from now on `seen` is what was looked at
    output logic        seen_used,
    output telemetry_entry_t seen,
    output logic [31:0] other,                 // frames without IP
    output logic [31:0] replaced,
    input  bucket_t     gap_at,
    output logic [31:0] gaps,                  // of this bucket; 1 cycle
    input  flags_at_t   flags_at,
    output logic [31:0] heavy                  // likewise
);
  localparam int unsigned HASH = 3;            // cycles of card_hash
  // So that keys that the seed makes have no period.
  localparam logic [HASH_KEY_BYTES*8-1:0] KEY =
      320'h6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa;

  axis_if #(.DATA_W(DATA_W)) open ();
  axis_gate gate (.clk, .rst, .stop(look), .in, .out(open));
  axis_slice #(.DATA_W(DATA_W)) slice (.clk, .rst, .in(open), .out);

  // ---- the key of each frame ----
  axis_if #(.DATA_W(DATA_W)) line ();
  assign line.tvalid = open.tvalid && open.tready;
  assign line.tdata  = open.tdata;
  assign line.tkeep  = open.tkeep;
  assign line.tlast  = open.tlast;
  assign line.tuser  = 1'b0;
  assign line.tready = 1'b1;

  logic        key_valid;
  key_t        head;
  logic [15:0] length;
  classify_headers #(.DATA_W(DATA_W)) headers (.clk, .rst, .line, .offset('0), .valid(key_valid), .key(head), .length, .sound());

  function automatic ip_addr_t mapped(ipv4_addr_t ip);
    return {80'd0, 16'hffff, ip};
  endfunction

  telemetry_key_t key;
  wire [QUARTERS*64-1:0] addresses = head.addresses;
  assign key = '{
      v6: head.common.v6,
      protocol: head.common.protocol,
      src: head.common.v6 ? addresses[255:128] : mapped(addresses[63:32]),
      dst: head.common.v6 ? addresses[127:0] : mapped(addresses[31:0]),
      src_port: head.common.src_port,
      dst_port: head.common.dst_port
  };
  wire is_ip = head.common.v4 || head.common.v6;

  // ---- its place ----
  telemetry_place_t address_hash, port_hash;
  card_hash #(.BITS($bits(telemetry_place_t))) hash (
      .clk, .key(KEY ^ {10{seed}}), .v6(1'b1), .src(key.src), .dst(key.dst), .ports({key.src_port, key.dst_port}), .address_hash, .port_hash
  );
  logic [HASH-1:0]        valid_q;
  telemetry_key_t [HASH-1:0]   key_q;
  logic [HASH-1:0][15:0]  length_q;
  always_ff @(posedge clk) begin
    valid_q  <= rst ? '0 : {valid_q[HASH-2:0], key_valid && is_ip};
    key_q    <= {key_q[HASH-2:0], key};
    length_q <= {length_q[HASH-2:0], length};
  end
  wire telemetry_key_t key_now = key_q[HASH-1];
  wire telemetry_place_t place = address_hash ^ port_hash ^ telemetry_place_t'(key_now.protocol);

  logic again, replaces;
  logic [31:0] gap;
  wire free = look && !valid_q[HASH-1];
  flow_table flows (
      .clk, .clear(clear || rst), .now, .threshold, .valid(valid_q[HASH-1]), .place(valid_q[HASH-1] ? place : look_at), .key(key_now),
      .length(length_q[HASH-1]), .look(free), .seen_used, .seen, .again, .gap, .replaced(replaces), .flags_at, .heavy
  );

  // ---- counters ----
  logic    again_q, free_q;
  bucket_t bucket, bucket_q;
  logic [BUCKETS-1:0][31:0] gaps_q;
  always_comb begin
    bucket = '0;
    for (int unsigned i = 0; i < BUCKETS; i++) if (gap[i]) bucket = bucket_t'(i);
  end
  always_ff @(posedge clk) begin
    free_q   <= free && !looked && !free_q;
    looked   <= free_q;
    again_q  <= again;
    bucket_q <= bucket;
    other    <= other + 32'(key_valid && !is_ip);
    replaced <= replaced + 32'(replaces);
    gaps     <= gaps_q[gap_at];
    if (again_q) gaps_q[bucket_q] <= gaps_q[bucket_q] + 1'b1;
    if (clear || rst) begin
      again_q  <= 1'b0;
      other    <= '0;
      replaced <= '0;
      gaps_q   <= '0;
    end
    if (rst) begin
      free_q <= 1'b0;
      looked <= 1'b0;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, head};
endmodule
