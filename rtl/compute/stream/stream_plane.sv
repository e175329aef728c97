// SPDX-License-Identifier: Apache-2.0

// A streaming socket: a kernel on the path of the network card, which sees and changes the frames that the card receives and sends
// (docs/reference/stream-sockets.md). The kernel itself is beside this module, behind the ports `kernel_*`.
//
//   packet_plane ─ rx ─► stream_rx_store ─► stream_guard ─► rx_out ─► network_card
//                                            │       ▲
//                                      kernel_rx_in  kernel_rx_out
//   packet_plane ◄─ tx_out ◄─ axis_store ◄─ stream_guard ◄─ tx ◄───── network_card
//                                            │       ▲
//                                      kernel_tx_in  kernel_tx_out
//
// Neither side ever waits for the kernel for longer than the limit: the kernel is cut off then, in both directions, and frames go round it until
// it is restarted. A frame that is sent leaves the kernel whole before it is shown to the line, which it shares with the device. One beat a cycle
// in both directions.
module stream_plane
  import card_pkg::*;
  import stream_pkg::*;
  import event_log_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned MAX_FRAME = 9018,   // bytes, without FCS
    parameter logic [7:0]  PAGE = '0,          // of the registers
    parameter logic [31:0] NEXT = '0           // the block behind this and the kernel's
) (
    input  logic          clk,
    input  logic          rst,                 // of registers and kernel
    input  logic          line_rst,            // of the frames
    axis_if.sink          rx,                  // tready is always high
    input  card_verdict_t rx_verdict,          // with the last beat
    axis_if.source        rx_out,              // tready is not looked at
    output card_verdict_t rx_out_verdict,      // with the last beat
    axis_if.sink          tx,
    axis_if.source        tx_out,
    output logic          kernel_rst,
    axil_if.master        kernel_ctrl,         // 12 bits of address
    axis_if.source        kernel_rx_in,
    axis_if.sink          kernel_rx_out,
    axis_if.source        kernel_tx_in,
    axis_if.sink          kernel_tx_out,
    input  identity_t     identity,
    axil_if.slave         bus,                 // 12 bits of address
    output log_event_t    to_log,
    output logic          idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned FRAME_BEATS = 2 ** $clog2(2 * ((MAX_FRAME + BYTES - 1) / BYTES));
  localparam int unsigned STORE_BEATS = FRAME_BEATS < 512 ? 512 : FRAME_BEATS;
  localparam int unsigned RESET_CYCLES = 16;   // of the kernel, at least

  settings_t     settings;
  logic          restart, cut_q, cut_tx_q, cuts_q, rx_overflow;
  logic          registers_idle, store_idle, rx_idle, tx_idle, none_to_send;
  cut_e          rx_fault, tx_fault, cause_q;
  guard_events_t rx_events, tx_events;
  logic [$clog2(RESET_CYCLES)-1:0] reset_q;    // cycles until a restart is over

  stream_registers #(.PAGE(PAGE), .NEXT(NEXT)) registers (
      .clk, .rst, .kernel_rst, .bus, .kernel(kernel_ctrl), .identity, .settings, .restart, .cut(cut_q), .cut_tx(cut_tx_q), .cause(cause_q),
      .cuts(cuts_q), .rx_events, .tx_events, .rx_overflow, .idle(registers_idle)
  );

  // ---- cut off, until it is restarted ----
  wire faulty = rx_fault != CUT_NONE || tx_fault != CUT_NONE;
  assign kernel_rst = rst || cut_q;
  always_ff @(posedge clk) begin
    cuts_q <= 1'b0;
    if (reset_q != '0) reset_q <= reset_q - 1'b1;
    if (reset_q == ($bits(reset_q))'(1)) cut_q <= 1'b0;
    if (restart) begin
      cut_q   <= 1'b1;
      reset_q <= '1;
      if (!cut_q) {cut_tx_q, cause_q} <= {1'b0, CUT_RESTART};
    end else if (faulty) begin
      cut_q    <= 1'b1;
      cuts_q   <= 1'b1;
      cut_tx_q <= rx_fault == CUT_NONE;
      cause_q  <= rx_fault != CUT_NONE ? rx_fault : tx_fault;
    end
    if (rst) begin
      cut_q   <= 1'b0;
      cut_tx_q <= 1'b0;
      cause_q <= CUT_NONE;
      reset_q <= '0;
    end
  end
  assign to_log = '{valid: cuts_q, item: '{kind: LOG_STREAM_CUT, a: 32'(cause_q), b: 32'(cut_tx_q)}};

  // ---- receive ----
  axis_if #(.DATA_W(DATA_W)) wanted ();
  axis_if #(.DATA_W(DATA_W)) received ();
  card_verdict_t verdict, received_verdict;
  logic          changed;
  stream_rx_store #(.DATA_W(DATA_W), .MAX_FRAME(MAX_FRAME)) store (
      .clk, .rst(line_rst), .in(rx), .in_verdict(rx_verdict), .out(wanted), .out_verdict(verdict), .overflow(rx_overflow), .idle(store_idle)
  );
  wire rx_through = verdict.stream == STREAM_THROUGH || (verdict.stream == STREAM_AS_SET && settings.rx);
  stream_guard #(.DATA_W(DATA_W), .MAX_FRAME(MAX_FRAME), .INFO(card_verdict_t)) rx_guard (
      .clk, .rst(line_rst), .through(rx_through), .cut(cut_q), .limit(settings.limit), .in(wanted),
      .in_info(verdict), .out(received), .out_info(received_verdict), .out_through(changed), .to(kernel_rx_in), .from(kernel_rx_out),
      .fault(rx_fault), .events(rx_events), .idle(rx_idle)
  );

  // What was found out about the frame holds for the one that leaves the kernel, if that says so.
  assign rx_out.tvalid   = received.tvalid;
  assign rx_out.tdata    = received.tdata;
  assign rx_out.tkeep    = received.tkeep;
  assign rx_out.tlast    = received.tlast;
  assign rx_out.tuser    = 1'b0;
  assign received.tready = 1'b1;
  always_comb begin
    rx_out_verdict = received_verdict;
    if (received.tuser) rx_out_verdict.wanted = 1'b0;
    if (changed && !identity.keeps_checksums) rx_out_verdict.checked = 1'b0;
    if (changed && !identity.keeps_flow) rx_out_verdict.hashed = 1'b0;
  end

  // ---- transmit ----
  axis_if #(.DATA_W(DATA_W)) sent ();
  axis_if #(.DATA_W(DATA_W)) whole ();
  logic nothing;
  stream_guard #(.DATA_W(DATA_W), .MAX_FRAME(MAX_FRAME)) tx_guard (
      .clk, .rst(line_rst), .through(settings.tx), .cut(cut_q), .limit(settings.limit), .in(tx), .in_info(1'b0), .out(sent),
      .out_info(nothing), .out_through(), .to(kernel_tx_in), .from(kernel_tx_out), .fault(tx_fault), .events(tx_events), .idle(tx_idle)
  );
  wire ends = sent.tvalid && sent.tready && sent.tlast;
  axis_store #(.DATA_W(DATA_W), .DEPTH(STORE_BEATS)) to_line (
      .clk, .rst(line_rst), .in(sent), .commit(ends && !sent.tuser), .rollback(ends && sent.tuser), .out(whole), .room(),
      .empty(none_to_send)
  );
  axis_wires leave (.in(whole), .out(tx_out));

  assign idle = registers_idle && store_idle && rx_idle && tx_idle && none_to_send && !cuts_q && reset_q == '0;

  logic unused_ok;
  assign unused_ok = &{1'b0, rx_out.tready, nothing};
endmodule
