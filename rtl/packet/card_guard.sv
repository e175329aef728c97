// SPDX-License-Identifier: Apache-2.0

// What the network card may send: nothing to the address of MAC control, since a PAUSE frame would stop the switch that the device shares
// with it; and only from its own MAC address, or with `any_source` from every address but the device's. Other frames are dropped as a whole,
// with one pulse of `dropped`. A change of settings takes effect between frames. Headers of further layers are not looked at: who may use which IP address is a matter of the network.
//
// One beat a cycle. Latency 1 cycle, or as long as the next beat takes to come: a frame is held until its source address is there.
module card_guard
  import packet_pkg::*;
  import link_pkg::*;
  import card_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic           clk,
    input  logic           rst,
    input  card_settings_t settings,
    input  mac_t           device,       // the MAC address of the device
    axis_if.sink           in,
    axis_if.source         out,
    output logic           dropped,
    output logic           idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned ADDRESSES = 2 * $bits(mac_t) / 8;
  localparam bit          TWO_BEATS = ADDRESSES > BYTES;
  typedef logic [BYTES-1:0][7:0] data_t;

  typedef struct packed {
    logic             last;
    logic             bad;
    logic [BYTES-1:0] keep;
    data_t            data;
  } beat_t;

  beat_t held_q;
  logic  held_valid_q;
  logic  first_q;              // the beat that is held begins a frame
  logic  drops_q;              // the frame that is held

  // ---- the addresses: in the beat that is held and, if that is too short, the next one ----
  data_t next;
  logic [2*BYTES-1:0][7:0] both;
  mac_t dst, src;
  assign next = in.tdata;
  assign both = {next, held_q.data};
  always_comb
    for (int unsigned i = 0; i < 6; i++) begin
      dst[8*(5-i)+:8] = both[i];
      src[8*(5-i)+:8] = both[6+i];
    end
  card_settings_t settings_q;  // stay while a frame is here: what was offered is not taken back
  wire allowed = dst != MAC_CONTROL && (settings_q.any_source ? src != device || settings_q.shared : src == settings_q.mac);
  wire drops = first_q ? !allowed || (TWO_BEATS && held_q.last) : drops_q;

  wire known = !first_q || !TWO_BEATS || held_q.last || in.tvalid;
  wire leaves = held_valid_q && known && (drops || out.tready);

  assign out.tvalid = held_valid_q && known && !drops;
  assign out.tdata  = held_q.data;
  assign out.tkeep  = held_q.keep;
  assign out.tlast  = held_q.last;
  assign out.tuser  = held_q.bad;
  assign in.tready  = !held_valid_q || leaves;
  assign idle       = !held_valid_q;

  always_ff @(posedge clk) begin
    if (in.tready) held_q <= '{last: in.tlast, bad: in.tuser, keep: in.tkeep, data: in.tdata};
    if (leaves) drops_q <= drops;
    if (!held_valid_q || (leaves && held_q.last)) settings_q <= settings;
    dropped <= !rst && leaves && held_q.last && drops;
    if (rst) begin
      held_valid_q <= 1'b0;
      first_q      <= 1'b1;
    end else begin
      if (in.tready) held_valid_q <= in.tvalid;
      if (leaves) first_q <= held_q.last;
    end
  end
endmodule
