// SPDX-License-Identifier: Apache-2.0

// Measures calls: from what rpc_dispatch says of them it makes the samples of the histograms. A call that ends without a job is in none
// but that of its arrival.
//
// A call that comes gives a sample in the next cycle at the earliest, one that ends gives two, which may wait: those of other sockets that
// ended in the same cycles, and calls that come, are first. A socket that ends a call while the times of its last one still wait loses those,
// and says so: many sockets must end calls of a few cycles in the same cycles for that.
module call_times
  import histogram_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned SOCKETS = 2,
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1
) (
    input  logic           clk,
    input  logic           rst,
    input  time_t          now,          // cycles; may jump ahead
    input  call_progress_t progress,
    stream_if.source       sample,       // sample_t
    input  logic           read,         // looks, in place of a sample,
    input  socket_t        since_of,
    output time_t          since,        // when the last call of this socket began; a cycle later
    output logic           lost,         // pulse: times of a call
    output logic           idle          // no sample waits
);
  localparam int unsigned INDEX_W = $clog2(QPS * CONTEXTS);
  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [DEPTH_W-1:0] depth_t;
  typedef logic [$bits(socket_t):0] pick_t;

  // ---- when calls came, by context ----
  time_t came;
  ram_1w1r #(.T(time_t), .WORDS(QPS * CONTEXTS)) arrivals (
      .clk, .write(progress.arrives), .write_at(index_t'(context_index(progress.arriving, CONTEXTS))), .write_data(now),
      .read(progress.begins), .read_at(index_t'(context_index(progress.beginning, CONTEXTS))), .read_data(came)
  );

  // ---- the times of a call, by socket: of the one that runs and of the one before, whose samples may wait ----
  logic [SOCKETS-1:0] turn_q, ended_turn_q;   // of the call that began last, that ended last
  logic    begins_q, came_q;
  socket_t begins_at_q;
  time_t   begin_q;
  (* ram_style = "distributed" *) time_t froms[4*SOCKETS_MAX];   // when they began; in the upper half, when they came
  (* ram_style = "distributed" *) time_t ended[2*SOCKETS_MAX];

  function automatic logic turn_of(logic [SOCKETS-1:0] turns, socket_t socket);
    logic turn;
    turn = 1'b0;
    for (int unsigned i = 0; i < SOCKETS; i++) if (socket == socket_t'(i)) turn |= turns[i];
    return turn;
  endfunction

  wire begin_turn = turn_of(turn_q, begins_at_q);
  wire end_turn = turn_of(turn_q, progress.ends_at);
  always_ff @(posedge clk) if (begins_q || came_q) froms[{came_q, begin_turn, begins_at_q}] <= came_q ? came : begin_q;
  always_ff @(posedge clk) if (progress.ends) ended[{end_turn, progress.ends_at}] <= now;

  // ---- what a socket has ----
  depth_t [SOCKETS-1:0] depth_q;
  depth_t depth;
  logic [SOCKETS-1:0] more, less;
  always_comb begin
    depth = '0;
    for (int unsigned i = 0; i < SOCKETS; i++) begin
      more[i] = progress.arrives && progress.arrives_at == socket_t'(i);
      less[i] = progress.ends && progress.ends_at == socket_t'(i) || progress.leaves && progress.leaves_at == socket_t'(i);
    end
    for (int unsigned i = 0; i < SOCKETS; i++) if (progress.arrives_at == socket_t'(i)) depth |= depth_q[i];
  end
  typedef struct packed {
    socket_t socket;
    depth_t  depth;
  } arrival_t;
  stream_if #(.T(arrival_t)) comes ();
  stream_if #(.T(arrival_t)) arrival ();
  assign comes.valid = progress.arrives;
  assign comes.data  = '{socket: progress.arrives_at, depth: depth};
  stream_slice #(.T(arrival_t)) coming (.clk, .rst, .in(comes), .out(arrival));

  // ---- what of the calls that ended is still to be told: of each socket its latency and its time ----
  logic [2*SOCKETS-1:0] waits_q, told;
  pick_t   pick;
  socket_t picked;
  wire     run = pick[0];
  always_comb begin
    pick = '0;
    for (int unsigned i = 2 * SOCKETS; i > 0; i--) if (waits_q[i-1]) pick = pick_t'(i - 1);
  end
  assign picked = pick[$bits(pick_t)-1:1];
  wire picked_turn = turn_of(ended_turn_q, picked);
  wire [5:0] from_at = read ? {1'b0, turn_of(turn_q, since_of), since_of} : {!run, picked_turn, picked};
  wire time_t from = froms[from_at];
  wire time_t took = ended[{picked_turn, picked}] - from;

  sample_t sample_q;
  logic    valid_q;
  wire advance = !valid_q || sample.ready;
  always_comb begin
    lost = 1'b0;
    for (int unsigned i = 0; i < SOCKETS; i++) lost |= progress.ends && progress.ends_at == socket_t'(i) && waits_q[2*i+:2] != '0;
  end
  assign sample.valid  = valid_q;
  assign sample.data   = sample_q;
  assign arrival.ready = advance;
  assign told          = advance && !arrival.valid && !read && waits_q != '0 ? (2 * SOCKETS)'(1) << pick : '0;
  assign idle          = !valid_q && waits_q == '0 && !arrival.valid && !begins_q && !came_q;

  always_ff @(posedge clk) begin
    begins_q    <= progress.begins;
    came_q      <= begins_q;
    if (progress.begins) begins_at_q <= progress.begins_at;
    begin_q     <= now;
    since       <= from;
    for (int unsigned i = 0; i < SOCKETS; i++) begin
      if (progress.begins && progress.begins_at == socket_t'(i)) turn_q[i] <= !turn_q[i];
      if (progress.ends && progress.ends_at == socket_t'(i)) begin
        ended_turn_q[i] <= turn_q[i];
        waits_q[2*i+:2] <= '1;
      end else begin
        waits_q[2*i+:2] <= waits_q[2*i+:2] & ~told[2*i+:2];
      end
      if (more[i] != less[i]) depth_q[i] <= depth_q[i] + {{(DEPTH_W - 1) {less[i]}}, 1'b1};
    end
    if (advance) begin
      valid_q  <= arrival.valid || !read && waits_q != '0;
      sample_q <= arrival.valid ? '{histogram: QUEUE, socket: arrival.data.socket, value: time_t'(arrival.data.depth)}
                                : '{histogram: run ? RUN : LATENCY, socket: picked, value: took};
    end
    if (rst) begin
      begins_q <= 1'b0;
      came_q   <= 1'b0;
      turn_q   <= '0;
      waits_q  <= '0;
      depth_q  <= '0;
      valid_q  <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!comes.valid || comes.ready);
      assert (!begins_q || !came_q);
      for (int unsigned i = 0; i < SOCKETS; i++) begin
        assert (!(progress.ends && progress.ends_at == socket_t'(i)) || depth_q[i] != '0);
        assert (!(progress.leaves && progress.leaves_at == socket_t'(i)) || depth_q[i] != '0);
      end
    end
  end
endmodule
