// SPDX-License-Identifier: Apache-2.0

// What the device sends, in one order (Base Specification 2.4.1): nothing passes a write that was there before it, not even while the write
// waits for credits; an interrupt is a write and is behind the writes of the requester. Completions and reads pass each other. A class that
// has no credits holds up only what must be behind it. A read has waited before it is offered, by `posted_inside`. Latency 1 cycle for a
// write or a read, 2 for all else. One header and one beat a cycle.
module pcie_transmit
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned LARGEST = 512       // bytes of a payload
) (
    input  logic         clk,
    input  logic         rst,
    input  tlp_credits_t credits,
    stream_if.sink       write_header,         // tlp_header_t, all four
    axis_if.sink         write_data,
    input  logic [5:0]   writes_inside,        // those ready or on their way to write_header, until they are sent
    input  logic         write_gone,           // pulse: one of these is sent, or will not be
    stream_if.sink       interrupt_header,
    axis_if.sink         interrupt_data,
    stream_if.sink       read_header,
    stream_if.sink       completion_header,
    axis_if.sink         completion_data,
    stream_if.source     tx_header,
    axis_if.source       tx_data,
    output posted_count_t posted_inside,       // writes and interrupts that have not left,
    output logic [1:0]   posted_gone,          //   and how many leave in this cycle
    output logic [3:0]   leaving,              // TLPs with a payload that were taken, and have not left,
    output logic         left,                 //   pulse: one of them has
    output logic         idle                  // nothing is between an input and tx
);
  localparam int unsigned WRITE = 0;
  localparam int unsigned INTERRUPT = 1;
  localparam int unsigned READ = 2;
  localparam int unsigned ANSWER = 3;
  localparam int unsigned N = 4;
  localparam int unsigned COUNT_W = $bits(posted_count_t);

  stream_if #(.T(tlp_header_t)) header[N] ();
  axis_if #(.DATA_W(DATA_W)) data[N] ();
  logic [N-1:0] may, send;
  tlp_dwords_t [N-1:0] payload;

  // ---- order ----
  logic interrupt_inside_q;                    // an interrupt was offered and has not gone
  wire  interrupt_gone = data[INTERRUPT].tvalid && data[INTERRUPT].tready;
  assign posted_inside = posted_count_t'(writes_inside) + posted_count_t'(interrupt_inside_q);
  assign posted_gone   = 2'(write_gone) + 2'(interrupt_gone);
  always_ff @(posedge clk) interrupt_inside_q <= !rst && (interrupt_header.valid || interrupt_inside_q) && !interrupt_gone;

  assign header[WRITE].valid = write_header.valid;
  assign header[WRITE].data  = write_header.data;
  assign write_header.ready  = header[WRITE].ready;
  assign header[READ].valid  = read_header.valid;
  assign header[READ].data   = read_header.data;
  assign read_header.ready   = header[READ].ready;
  tlp_behind #(.T(tlp_header_t), .COUNT_W(COUNT_W)) interrupts (
      .clk, .rst, .in(interrupt_header), .inside_(posted_count_t'(writes_inside)), .gone({1'b0, write_gone}), .out(header[INTERRUPT])
  );
  tlp_behind #(.T(tlp_header_t), .COUNT_W(COUNT_W)) answers (
      .clk, .rst, .in(completion_header), .inside_(posted_inside), .gone(posted_gone), .out(header[ANSWER])
  );

  // ---- credits, by class ----
  logic [N-1:0] credit, offered;
  for (genvar i = 0; i < N; i++) begin : g_payload
    tlp_header_t head;
    assign head       = header[i].data;
    assign payload[i] = tlp_has_data(head.kind) ? head.length : '0;
    assign offered[i] = header[i].valid;
    assign send[i]    = header[i].valid && header[i].ready;
  end
  pcie_credits #(.N(2), .MOST(LARGEST)) posted (
      .clk, .rst, .granted(credits.posted), .offered(offered[INTERRUPT:WRITE]), .payload(payload[INTERRUPT:WRITE]), .send(send[INTERRUPT:WRITE]),
      .may(credit[INTERRUPT:WRITE])
  );
  pcie_credits #(.MOST(LARGEST)) non_posted (
      .clk, .rst, .granted(credits.non_posted), .offered(offered[READ]), .payload(payload[READ]), .send(send[READ]), .may(credit[READ])
  );
  pcie_credits #(.MOST(LARGEST)) completion (
      .clk, .rst, .granted(credits.completion), .offered(offered[ANSWER]), .payload(payload[ANSWER]), .send(send[ANSWER]), .may(credit[ANSWER])
  );
  // An interrupt that is offered has waited for the writes before it: it goes before those that have come since.
  assign may[WRITE]       = credit[WRITE] && !header[INTERRUPT].valid;
  assign may[N-1:WRITE+1] = credit[N-1:WRITE+1];

  // ---- payloads ----
  axis_wires write_wires (.in(write_data), .out(data[WRITE]));
  axis_wires interrupt_wires (.in(interrupt_data), .out(data[INTERRUPT]));
  axis_wires answer_wires (.in(completion_data), .out(data[ANSWER]));
  assign data[READ].tvalid = 1'b0;
  assign data[READ].tdata  = '0;
  assign data[READ].tkeep  = '0;
  assign data[READ].tlast  = 1'b0;
  assign data[READ].tuser  = 1'b0;

  logic none_leave;
  tlp_arbiter #(.DATA_W(DATA_W), .N(N)) arbiter (
      .clk, .rst, .in_header(header), .in_data(data), .may, .out_header(tx_header), .out_data(tx_data), .empty(none_leave)
  );
  // ---- what is on its way ----
  logic [N-1:0] enters;
  for (genvar i = 0; i < N; i++) begin : g_enters
    assign enters[i] = send[i] && payload[i] != '0;
  end
  assign left = tx_data.tvalid && tx_data.tready && tx_data.tlast;
  always_ff @(posedge clk) leaving <= rst ? '0 : leaving + 4'(|enters) - 4'(left);

  assign idle = none_leave && !write_header.valid && !interrupt_header.valid && !read_header.valid && !completion_header.valid;
endmodule
