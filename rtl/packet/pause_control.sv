// SPDX-License-Identifier: Apache-2.0

// Flow control by the switch at the device's port: reads MAC control frames as they pass, PAUSE (IEEE 802.3, annex 31B) and priority-based
// flow control (IEEE 802.1Q, clause 36), and says which frames of the device may not begin. Only frames to the address that no bridge passes
// on are read: so nobody but the neighbour can stop the device. The device itself sends no such frames.
//
// Frames have two classes, RoCE and all others, each with a priority and a timer. A PAUSE frame sets both timers. `stop` follows 4 cycles
// after the last beat of a frame; a pause ends within a cycle of its time.
//
// A class that is stopped for longer than the limit, without an end, is let go, and stopped again by what comes after the end of that pause.
module pause_control
  import packet_pkg::*;
  import link_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned CLOCK_HZ = 250_000_000
) (
    input  logic                clk,
    input  logic                rst,
    input  flow_settings_t      settings,
    input  priorities_t         priorities,
    input  logic                in_valid,    // beats from the MAC
    input  logic                in_last,
    input  logic                in_bad,
    input  logic [DATA_W/8-1:0] in_keep,
    input  logic [DATA_W-1:0]   in_data,
    output logic                stop_roce,
    output logic                stop_other,
    output logic                rx_pause,    // pulses: a frame was read, whether or not it has effect
    output logic                rx_pfc,
    output logic                ignored,     // pulse: a class was stopped for too long
    output logic                idle         // no timer runs
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned FRAME_BYTES = $bits(mac_control_t) / 8;
  localparam int unsigned BEATS = (FRAME_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned INDEX_W = $clog2(BEATS + 1);
  localparam int unsigned CYCLES_PER_MS = CLOCK_HZ / 1000;
  localparam int unsigned MS_W = $clog2(CYCLES_PER_MS);
  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [MS_W-1:0] ms_t;

  // ---- the frame: byte 0 in the most significant byte. Follows the line in reset, too: the rest of a frame is no frame ----
  index_t index_q = '0;
  logic   whole_q;
  logic [BEATS*BYTES-1:0][7:0] gathered_q;
  mac_control_t frame;
  assign frame = gathered_q[BEATS*BYTES-1-:FRAME_BYTES];

  always_ff @(posedge clk) begin
    for (int unsigned beat = 0; beat < BEATS; beat++)
      if (in_valid && index_q == index_t'(beat))
        for (int unsigned lane = 0; lane < BYTES; lane++) gathered_q[BEATS*BYTES-1-beat*BYTES-lane] <= in_data[lane*8+:8];
    if (in_valid) index_q <= in_last ? '0 : index_q == index_t'(BEATS) ? index_q : index_q + 1'b1;
    whole_q <= !rst && in_valid && in_last && !in_bad
               && (index_q == index_t'(BEATS) || (index_q == index_t'(BEATS - 1) && in_keep[(FRAME_BYTES-1)%BYTES]));
  end

  logic is_pause_q, is_pfc_q;
  wire  is_control = whole_q && frame.eth.dst == MAC_CONTROL && frame.eth.ethertype == ETHERTYPE_CONTROL;
  logic [15:0] operand_q;
  always_ff @(posedge clk) begin
    is_pause_q <= !rst && is_control && frame.opcode == OPCODE_PAUSE;
    is_pfc_q   <= !rst && is_control && frame.opcode == OPCODE_PFC;
    operand_q  <= frame.operand;
  end
  assign rx_pause = is_pause_q;
  assign rx_pfc   = is_pfc_q;

  // ---- time: quanta, at most four a cycle, and milliseconds ----
  logic [15:0] fraction_q;
  logic [2:0]  passed_q;           // quanta
  ms_t         cycles_q;
  logic        ms_q;
  always_ff @(posedge clk) begin
    {passed_q, fraction_q} <= 19'(fraction_q) + 19'(settings.quanta_per_cycle);
    ms_q     <= cycles_q == ms_t'(CYCLES_PER_MS - 1);
    cycles_q <= cycles_q == ms_t'(CYCLES_PER_MS - 1) ? '0 : cycles_q + 1'b1;
    if (rst) begin
      fraction_q <= '0;
      cycles_q   <= '0;
    end
  end

  // ---- the classes ----
  logic [1:0] stop_q, runs, gives_up;
  logic [1:0][2:0] priority_of;
  assign priority_of = {priorities.other, priorities.roce};

  for (genvar i = 0; i < 2; i++) begin : g_class
    logic [15:0] quanta_q, left_q;
    logic [9:0]  stopped_q;        // milliseconds
    logic        lets_go_q;
    wire [16:0]  rest = 17'(left_q) - 17'(passed_q);
    wire         set = (is_pause_q && settings.pause) || (is_pfc_q && settings.pfc && operand_q[{1'b0, priority_of[i]}]);

    assign runs[i]     = left_q != '0;
    assign gives_up[i] = runs[i] && ms_q && !lets_go_q && stopped_q == settings.limit_ms && settings.limit_ms != '0;

    always_ff @(posedge clk) begin
      quanta_q <= frame.quanta[~priority_of[i]];
      if (rst) left_q <= '0;
      else if (set) left_q <= is_pause_q ? operand_q : quanta_q;
      else left_q <= rest[16] ? '0 : rest[15:0];
      if (!runs[i]) begin
        stopped_q <= '0;
        lets_go_q <= 1'b0;
      end else begin
        if (ms_q) stopped_q <= stopped_q + 1'b1;
        if (gives_up[i]) lets_go_q <= 1'b1;
      end
      stop_q[i] <= !rst && runs[i] && !lets_go_q;
    end
  end

  assign stop_roce  = stop_q[0];
  assign stop_other = stop_q[1];
  assign ignored    = |gives_up;
  assign idle       = runs == '0;
endmodule
