// SPDX-License-Identifier: Apache-2.0

// Transmit side of the packet plane: takes frames from N protocols in turn, puts header and payload together, pads, adds the
// ICRC where asked for and gives them to the MAC.
//
// One beat a cycle on `tx` with no bubble between frames while the inputs keep up. 10 cycles from `frame` to the first beat, 9 below
// 256 bits. A protocol that stops in the middle of a payload stops the others; one that has
// nothing to send does not. When `tx` stops, the inputs stop.
// Payload that ends with tuser spoils its frame: `tx` ends with tuser, and an ICRC is inverted, so no peer takes it for good.
module packet_tx
  import packet_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned N = 2
) (
    input  logic           clk,
    input  logic           rst,
    stream_if.sink         frame[N],    // frame_tx_t
    axis_if.sink           payload[N],  // of each frame that has one, in the same order
    axis_if.source         tx,
    output packet_events_t events,      // the transmit part
    output logic           idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  typedef logic [(N > 1 ? $clog2(N) : 1)-1:0] source_t;

  // ---- one frame after the other, round robin ----
  typedef struct packed {
    source_t   source;
    frame_tx_t frame;
  } job_t;

  stream_if #(.T(job_t)) request[N] ();
  stream_if #(.T(job_t)) job ();
  logic [N-1:0] taken;

  for (genvar i = 0; i < N; i++) begin : g_request
    assign request[i].valid = frame[i].valid;
    assign request[i].data  = {source_t'(i), frame[i].data};
    assign frame[i].ready   = request[i].ready;
    assign taken[i]         = frame[i].valid && frame[i].ready;
  end

  stream_arbiter #(.T(job_t), .N(N)) arbiter (.clk, .rst, .in(request), .last('1), .out(job));

  // ---- the frame goes to the builder, its source to the payload selector ----
  stream_if #(.T(frame_tx_t)) chosen ();
  stream_if #(.T(source_t)) turn_in ();
  stream_if #(.T(source_t)) turn ();
  logic turns_empty;

  job_t head;
  assign head = job.data;
  wire has_payload = head.frame.payload_length != '0;

  assign chosen.valid  = job.valid && (turn_in.ready || !has_payload);
  assign chosen.data   = head.frame;
  assign turn_in.valid = job.valid && chosen.ready && has_payload;
  assign turn_in.data  = head.source;
  assign job.ready     = chosen.ready && (turn_in.ready || !has_payload);

  stream_fifo #(.T(source_t), .DEPTH(4)) turns (.clk, .rst, .in(turn_in), .out(turn), .empty(turns_empty));

  // ---- payloads in the order of their frames, bytes behind the end made zero ----
  logic [N-1:0]      payload_valid, payload_last, payload_user;
  logic [DATA_W-1:0] payload_data[N];
  logic [BYTES-1:0]  payload_keep[N];

  axis_if #(.DATA_W(DATA_W)) selected ();
  logic selected_valid_q, selected_last_q, selected_user_q;
  logic [DATA_W-1:0] selected_data_q;
  source_t current;
  assign current = turn.data;
  wire selected_free = !selected_valid_q || selected.tready;
  wire take = turn.valid && payload_valid[current] && selected_free;

  for (genvar i = 0; i < N; i++) begin : g_payload
    assign payload_valid[i]  = payload[i].tvalid;
    assign payload_last[i]   = payload[i].tlast;
    assign payload_user[i]   = payload[i].tuser;
    assign payload_data[i]   = payload[i].tdata;
    assign payload_keep[i]   = payload[i].tkeep;
    assign payload[i].tready = turn.valid && current == source_t'(i) && selected_free;
  end

  always_ff @(posedge clk) begin
    if (take) begin
      selected_last_q <= payload_last[current];
      selected_user_q <= payload_user[current];
      for (int unsigned b = 0; b < BYTES; b++)
        selected_data_q[b*8+:8] <= payload_data[current][b*8+:8] & {8{payload_keep[current][b]}};
    end
    if (rst) selected_valid_q <= 1'b0;
    else if (selected_free) selected_valid_q <= take;
  end

  assign turn.ready      = take && payload_last[current];
  assign selected.tvalid = selected_valid_q;
  assign selected.tdata  = selected_data_q;
  assign selected.tkeep  = '1;
  assign selected.tlast  = selected_last_q;
  assign selected.tuser  = selected_user_q;

  // ---- build, then the ICRC ----
  axis_if #(.DATA_W(DATA_W)) built ();
  logic icrc_here;
  logic [$clog2(BYTES)-1:0] icrc_lane;

  packet_build #(.DATA_W(DATA_W)) build (
      .clk, .rst, .frame(chosen), .payload(selected), .out(built), .icrc_here, .icrc_lane, .events
  );
  icrc_insert #(.DATA_W(DATA_W)) insert (.clk, .rst, .in(built), .icrc_here, .icrc_lane, .out(tx));

  // ---- idle: every frame that was taken has left ----
  logic [7:0] frames_q;
  always_ff @(posedge clk) begin
    if (rst) frames_q <= '0;
    else frames_q <= frames_q + 8'(|taken) - 8'(tx.tvalid && tx.tready && tx.tlast);
  end
  assign idle = frames_q == '0;

  always_ff @(posedge clk) if (!rst && idle) assert (turns_empty);
endmodule
