// SPDX-License-Identifier: Apache-2.0

// Telemetry of the flows of the network card: frames, bytes and the time of the last frame of each flow, histograms of the times between frames,
// and which flows have many bytes (stream_telemetry.rdl). Frames pass as they are, 1 cycle later, one beat a cycle. Each direction has tables of
// its own.
module stream_telemetry
  import flow_telemetry_pkg::*;
  import stream_telemetry_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,      // cycles
    axil_if.slave       ctrl,     // 12 bits of address
    axis_if.sink        rx_in,
    axis_if.source      rx_out,
    axis_if.sink        tx_in,
    axis_if.source      tx_out
);
  localparam int unsigned LOOK_CYCLES = 14;    // that a look at a flow can take

  // ---- registers: an access waits for a look that an earlier one has begun ----
  logic [11:0] at;
  logic        write;
  logic [31:0] wdata, value, value_q;
  axil_access #(.READ_CYCLES(LOOK_CYCLES + 2)) access (
      .clk, .rst, .bus(ctrl), .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata(value_q), .idle()
  );

  logic        clear_q, tx_q;
  logic [1:0]  look_q;                         // received, sent
  telemetry_place_t      place_q;
  logic [31:0] seed_q, threshold_q;
  logic [1:0]  looked, used;
  telemetry_entry_t seen[2];
  logic [1:0][31:0] other, replaced;
  logic [1:0][31:0] gaps, heavy;

  always_ff @(posedge clk) begin
    clear_q <= !rst && write && at == AT_COMMAND && wdata[0];
    look_q  <= look_q & ~looked;
    if (write) begin
      unique case (at)
        AT_SEED:      seed_q <= wdata;
        AT_THRESHOLD: threshold_q <= wdata;
        AT_ENTRY: begin
          place_q <= wdata[$bits(telemetry_place_t)-1:0];
          tx_q    <= wdata[16];
          look_q  <= wdata[16] ? 2'b10 : 2'b01;
        end
        default: ;
      endcase
    end
    if (rst) begin
      seed_q      <= '0;
      threshold_q <= '0;
      place_q     <= '0;
      tx_q        <= 1'b0;
      look_q      <= '0;
    end
  end

  telemetry_entry_t shown;
  assign shown = seen[tx_q];
  wire [3:0][31:0] src = shown.key.src;
  wire [3:0][31:0] dst = shown.key.dst;
  always_comb begin
    unique case (at) inside
      AT_SEED:        value = seed_q;
      AT_THRESHOLD:   value = threshold_q;
      AT_PLACES:      value = TELEMETRY_PLACES;
      AT_ENTRY:       value = {15'd0, tx_q, 16'(place_q)};
      AT_FLOW:        value = {16'd0, shown.key.protocol, 6'd0, shown.key.v6, used[tx_q]};
      AT_PORTS:       value = {shown.key.src_port, shown.key.dst_port};
      AT_LAST:        value = shown.last;
      [AT_SRC : AT_SRC + 12'hf]: value = src[2'd3 - at[3:2]];
      [AT_DST : AT_DST + 12'hf]: value = dst[2'd3 - at[3:2]];
      AT_FRAMES:      value = shown.frames;
      AT_BYTES_LO:    value = shown.bytes[31:0];
      AT_BYTES_HI:    value = 32'(shown.bytes[47:32]);
      AT_BEFORE_LO:   value = shown.earlier[31:0];
      AT_BEFORE_HI:   value = 32'(shown.earlier[47:32]);
      AT_OTHER_RX:    value = other[0];
      AT_REPLACED_RX: value = replaced[0];
      AT_OTHER_TX:    value = other[1];
      AT_REPLACED_TX: value = replaced[1];
      [AT_GAPS_RX : AT_GAPS_RX + 12'h7f]:   value = gaps[0];
      [AT_GAPS_TX : AT_GAPS_TX + 12'h7f]:   value = gaps[1];
      [AT_HEAVY_RX : AT_HEAVY_RX + 12'h3f]: value = heavy[0];
      default:        value = heavy[1];
    endcase
  end
  always_ff @(posedge clk) value_q <= value;

  flow_path #(.DATA_W(DATA_W)) rx (
      .clk, .rst, .clear(clear_q), .now(now[31:0]), .seed(seed_q), .threshold(threshold_q), .in(rx_in), .out(rx_out), .look(look_q[0]),
      .look_at(place_q), .looked(looked[0]), .seen_used(used[0]), .seen(seen[0]), .other(other[0]), .replaced(replaced[0]), .gap_at(at[6:2]),
      .gaps(gaps[0]), .flags_at(at[5:2]), .heavy(heavy[0])
  );
  flow_path #(.DATA_W(DATA_W)) tx (
      .clk, .rst, .clear(clear_q), .now(now[31:0]), .seed(seed_q), .threshold(threshold_q), .in(tx_in), .out(tx_out), .look(look_q[1]),
      .look_at(place_q), .looked(looked[1]), .seen_used(used[1]), .seen(seen[1]), .other(other[1]), .replaced(replaced[1]), .gap_at(at[6:2]),
      .gaps(gaps[1]), .flags_at(at[5:2]), .heavy(heavy[1])
  );

  logic unused_ok;
  assign unused_ok = &{1'b0, now, shown};
endmodule
