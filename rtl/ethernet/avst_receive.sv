// SPDX-License-Identifier: Apache-2.0

// Frames from a MAC that has an Avalon-ST source (Avalon Interface Specifications, 5: first symbol in the high-order bits, no ready), as
// Intel's hard MACs do, without preamble and FCS. A frame whose last beat has one of the errors in FATAL ends with tuser; which bit is what, a wrong FCS
// or a wrong length, the MAC's manual says.
//
// What breaks the protocol has no effect on other frames: a frame in which another one starts ends with tuser, and beats between an end and a
// start are left out. The source cannot stall: `out` must be ready when there is a beat.
//
// One beat a cycle. A beat is held until it is known whether it is the last: it is on `out` 2 cycles after the beat behind it, a frame's last 2 cycles
// after it came.
module avst_receive #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ERROR_W = 6,
    parameter logic [ERROR_W-1:0] FATAL = '1
) (
    input  logic                          clk,
    input  logic                          rst,
    input  logic                          in_valid,
    input  logic                          in_startofpacket,
    input  logic                          in_endofpacket,
    input  logic [DATA_W-1:0]             in_data,
    input  logic [$clog2(DATA_W/8)-1:0]   in_empty,    // bytes of the last beat that are none, in the low-order bits
    input  logic [ERROR_W-1:0]            in_error,    // with endofpacket
    axis_if.source                        out
);
  localparam int unsigned BYTES = DATA_W / 8;

  typedef struct packed {
    logic              last;
    logic              user;
    logic [BYTES-1:0]  keep;
    logic [DATA_W-1:0] data;
  } beat_t;

  beat_t now;
  always_comb begin
    now.last = in_endofpacket;
    now.user = in_endofpacket && (in_error & FATAL) != '0;
    now.keep = in_endofpacket ? {BYTES{1'b1}} >> in_empty : '1;
    for (int unsigned i = 0; i < BYTES; i++) now.data[8*i+:8] = in_data[8*(BYTES-1-i)+:8];
  end

  beat_t held_q, out_q;
  logic  held_valid_q, out_valid_q;
  logic  open_q;                        // a frame has begun, and its last beat has not come
  wire   take = in_valid && (open_q || in_startofpacket);
  wire   cut  = take && in_startofpacket && !held_q.last;
  wire   give = held_valid_q && (held_q.last || take);

  always_ff @(posedge clk) begin
    if (take) held_q <= now;
    if (give) begin
      out_q      <= held_q;
      out_q.last <= held_q.last || cut;
      out_q.user <= held_q.user || cut;
    end
    out_valid_q <= !rst && give;
    if (rst) begin
      held_valid_q <= 1'b0;
      open_q       <= 1'b0;
    end else begin
      if (take) begin
        held_valid_q <= 1'b1;
        open_q       <= !in_endofpacket;
      end else if (give) held_valid_q <= 1'b0;
    end
  end

  assign out.tvalid = out_valid_q;
  assign out.tdata  = out_q.data;
  assign out.tkeep  = out_q.keep;
  assign out.tlast  = out_q.last;
  assign out.tuser  = out_q.user;

  always_ff @(posedge clk) if (!rst && out.tvalid) assert (out.tready);
endmodule
