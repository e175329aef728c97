// SPDX-License-Identifier: Apache-2.0

// Shares one engine among clients (the RPC engine, the management port, kernels, host queues). Each has its own engine ports.
//
// A QP belongs to the client given in its set-up. A work request for a QP of another client, or in RESET, completes with
// WC_GENERAL_ERR and never reaches the QP. Completions go to the client that owns, or last owned, the QP.
//
// A client that does not accept its completions stalls no other: each has a completion queue with an entry for every completion
// that may come. A client has at most CQ_DEPTH - 8 work requests outstanding, counted from acceptance until the client accepts the
// completion (an unsignaled one until it completes with success; those of a QP that is reset until the reset). Further work
// requests wait at `client_wqe`, which stalls that client only. Clients are arbitrated round-robin.
//
// `abandon` flushes the outstanding work requests of a client: each of its QPs with work requests outstanding goes to ERR, where
// they complete with WC_WR_FLUSH_ERR, receives too. It is held until `settled`. One QP is checked every 3 cycles.
//
// A client registers, deregisters and queries regions of its own domain (roce_pkg::client_pd) only, and opens connections in that
// domain; ADMIN may use all domains. Connection events, commands and answers to commands stay in order; a client must always accept
// its events and answers. A close for a QP of another client is discarded, unless it comes from ADMIN. Latency 1 cycle to the
// engine, 2 cycles (3 with block RAM) back; one work request and one completion a cycle. After reset it clears its tables for QPS
// cycles, and accepts no work request before that is done.
module roce_clients
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
#(
    parameter int unsigned N = 2,                            // clients, MAX_CLIENTS at most
    parameter int unsigned QPS = 256,
    parameter logic [N-1:0][15:0] CQ_DEPTH = {N{16'd1024}},  // powers of two, 16 at least
    parameter client_t     ADMIN = client_t'(1)                      // may close every QP, and use every domain
) (
    input logic      clk,
    input logic      rst,

    // clients
    stream_if.sink   client_wqe[N],          // rdma_wqe_t
    stream_if.source client_cqe[N],          // rdma_cqe_t
    stream_if.sink   client_connect[N],      // connect_t; client and, except for ADMIN, domain are set here
    stream_if.source client_conn[N],         // conn_event_t
    stream_if.sink   client_conn_answer[N],  // conn_answer_t
    stream_if.sink   client_close[N],        // qpn_t
    stream_if.sink   client_mr_cmd[N],       // mr_cmd_t
    stream_if.source client_mr_rsp[N],       // mr_rsp_t

    // engine
    stream_if.source wqe,
    stream_if.sink   cqe,
    stream_if.source connect,
    stream_if.sink   conn,
    stream_if.source conn_answer,
    stream_if.source close,                  // close_t
    stream_if.source mr_cmd,
    stream_if.sink   mr_rsp,

    // what happens to QPs
    input logic      made,                   // pulse: a QP is set up
    input logic      gone,                   // pulse: a QP is in RESET. At least 8 cycles between any two such pulses
    input qpn_t      changed_qpn,
    input client_t   changed_client,         // with `made`: its client and domain
    input pd_t       changed_pd,
    input logic      retired,                // pulse: an unsignaled work request has completed with success
    input qp_index_t retired_index,

    input  qpn_t     owner_qpn,              // QP to look up
    output client_t  owner,                  // its client, or the last one; same cycle
    output pd_t      owner_pd,
    input  logic [N-1:0] abandon,            // per client; only for QPs set up manually
    stream_if.source fail,                   // qp_cmd_t: to ERR
    stream_if.sink   failed,                 // logic: the answer
    output logic     refused,                // pulse: a work request for a QP of another client was rejected
    output logic [N-1:0] settled,            // per client: no work request outstanding, no completion pending
    output logic     idle
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;
  typedef logic [7:0] count_t;               // of work requests of a QP, modulo 256
  typedef logic signed [17:0] held_t;
  localparam int unsigned MARGIN = 8;        // for work requests already past `open`, and completions of a QP that was reset

  if (N < 1 || N > MAX_CLIENTS || 2 ** INDEX_W != QPS) begin : g_bad
    $fatal(1, "roce_clients: N must be 1 to MAX_CLIENTS, and QPS a power of two");
  end

  logic [INDEX_W:0] cleared_q;
  wire              clearing = !cleared_q[INDEX_W];
  wire index_t      clear_index = cleared_q[INDEX_W-1:0];

  // ---- owners ----
  (* ram_style = "distributed" *) client_t owners[QPS];
  logic [QPS-1:0] live_q;
  wire index_t change_index = index_t'(qp_index(changed_qpn));
  (* ram_style = "distributed" *) pd_t domains[QPS];
  assign owner    = owners[index_t'(qp_index(owner_qpn))];
  assign owner_pd = domains[index_t'(qp_index(owner_qpn))];

  always_ff @(posedge clk) begin
    if (clearing || made) owners[clearing ? clear_index : change_index] <= clearing ? '0 : changed_client;
    if (made) domains[change_index] <= changed_pd;
    if (made) live_q[change_index] <= 1'b1;
    if (gone) live_q[change_index] <= 1'b0;
    if (rst) live_q <= '0;
  end

  // ---- work requests ----
  typedef struct packed {
    client_t   client;
    rdma_wqe_t wqe;
  } request_t;
  stream_if #(.T(request_t)) gated[N] ();
  stream_if #(.T(request_t)) request ();
  logic [N-1:0] open;

  for (genvar i = 0; i < N; i++) begin : g_gate
    assign gated[i].valid      = client_wqe[i].valid && open[i];
    assign gated[i].data       = '{client: client_t'(i), wqe: client_wqe[i].data};
    assign client_wqe[i].ready = gated[i].ready && open[i];
  end
  stream_arbiter #(.T(request_t), .N(N)) request_arbiter (.clk, .rst, .in(gated), .last('1), .out(request));

  // Looked up when it leaves, so the owner cannot change after the check. `wqe` stays valid even if the QP is reset meanwhile.
  wire index_t request_index = index_t'(qp_index(request.data.wqe.qpn));
  logic        offered_q;
  wire         allowed = offered_q || (qpn_exists(request.data.wqe.qpn, QPS) && live_q[request_index]
      && owners[request_index] == request.data.client);
  logic        cqe_valid_q;                  // completions of the engine have priority over those of rejected work requests
  wire         refusing = request.valid && !allowed && !cqe_valid_q;
  assign wqe.valid     = request.valid && allowed;
  assign wqe.data      = request.data.wqe;
  assign request.ready = allowed ? wqe.ready : !cqe_valid_q;

  rdma_cqe_t refusal;
  always_comb begin
    refusal        = '0;
    refusal.status = WC_GENERAL_ERR;
    refusal.opcode = wc_opcode_of(request.data.wqe.opcode);
    refusal.qpn    = request.data.wqe.qpn;
    refusal.wr_id  = request.data.wqe.wr_id;
  end

  // ---- outstanding per QP: posted - completed - unsignaled (silent) - lost in a reset, one writer each ----
  (* ram_style = "distributed" *) count_t posted[QPS];
  (* ram_style = "distributed" *) count_t completed[QPS];
  (* ram_style = "distributed" *) count_t silent[QPS];
  (* ram_style = "distributed" *) count_t lost[QPS];

  logic      post_q;
  index_t    post_index_q;
  rdma_cqe_t cqe_q;
  wire index_t cqe_index = index_t'(qp_index(cqe_q.qpn));
  logic      retired_q;
  index_t    retired_index_q;
  logic [3:0] gone_q;                        // delay: work requests accepted before the reset are counted by then
  index_t    gone_index_q;
  logic      look;                           // no reset is in progress: read `walk_q` on the same port
  index_t    walk_q;

  function automatic count_t outstanding(count_t p, count_t c, count_t s, count_t l);
    return p - c - s - l;
  endfunction
  count_t gone_count, cqe_count;
  assign gone_count = outstanding(posted[gone_index_q], completed[gone_index_q], silent[gone_index_q], lost[gone_index_q]);
  assign cqe_count  = outstanding(posted[cqe_index], completed[cqe_index], silent[cqe_index], lost[cqe_index]);
  wire orphan = cqe_count == 0;              // its QP was reset meanwhile: no entry is reserved for it

  always_ff @(posedge clk) begin
    post_q          <= wqe.valid && wqe.ready;
    post_index_q    <= request_index;
    retired_q       <= retired;
    retired_index_q <= index_t'(retired_index);
    gone_q          <= {gone_q[2:0], gone};
    if (gone) gone_index_q <= change_index;
    else if (look) gone_index_q <= walk_q;
    cqe_valid_q     <= cqe.valid && cqe.ready;
    cqe_q           <= cqe.data;

    if (clearing) posted[clear_index] <= '0;
    else if (post_q) posted[post_index_q] <= posted[post_index_q] + 1'b1;
    if (clearing) completed[clear_index] <= '0;
    else if (cqe_valid_q && !orphan) completed[cqe_index] <= completed[cqe_index] + 1'b1;
    if (clearing) silent[clear_index] <= '0;
    else if (retired_q) silent[retired_index_q] <= silent[retired_index_q] + 1'b1;
    if (clearing) lost[clear_index] <= '0;
    else if (gone_q[3]) lost[gone_index_q] <= lost[gone_index_q] + gone_count;

    if (rst) begin
      cleared_q   <= '0;
      offered_q   <= 1'b0;
      post_q      <= 1'b0;
      retired_q   <= 1'b0;
      gone_q      <= '0;
      cqe_valid_q <= 1'b0;
    end else begin
      if (clearing) cleared_q <= cleared_q + 1'b1;
      offered_q <= wqe.valid && !wqe.ready;
    end
  end

  // The engine accepts the work request before the QP is set up for another client.
  always_ff @(posedge clk) if (!rst && offered_q && made) assert (change_index != request_index);

  // ---- abandon ----
  logic abandoned_q, look_q, failing_q;
  logic [MAX_CLIENTS-1:0] abandoning;
  assign abandoning = MAX_CLIENTS'(abandon);
  assign look = abandoned_q && !look_q && !failing_q && !gone && gone_q == 0;
  wire found = look_q && gone_count != 0 && abandoning[owners[gone_index_q]];
  assign fail.data    = '{op: QP_MODIFY, qpn: qp_number(qp_index_t'(walk_q)), state: QPS_ERR, attr: '0};
  assign failed.ready = 1'b1;

  always_ff @(posedge clk) begin
    abandoned_q <= |(abandon & ~settled);
    look_q      <= !rst && look;
    if (rst) begin
      walk_q     <= '0;
      failing_q  <= 1'b0;
      fail.valid <= 1'b0;
    end else begin
      if (look_q && !found || failed.valid) walk_q <= walk_q + 1'b1;
      if (found) failing_q <= 1'b1;
      else if (failed.valid) failing_q <= 1'b0;
      if (found || fail.ready) fail.valid <= found;
    end
  end

  // ---- completions ----
  client_t   cqe_client;
  assign cqe_client = owners[cqe_index];
  assign cqe.ready  = 1'b1;
  logic [N-1:0] queue_quiet, queue_room;

  for (genvar i = 0; i < N; i++) begin : g_queue
    localparam int unsigned DEPTH = int'(CQ_DEPTH[i]);
    if (DEPTH < 16) begin : g_bad
      $fatal(1, "roce_clients: CQ_DEPTH must be at least 16");
    end
    stream_if #(.T(rdma_cqe_t)) in ();
    logic empty;
    assign in.valid = cqe_valid_q ? cqe_client == client_t'(i) : refusing && request.data.client == client_t'(i);
    assign in.data  = cqe_valid_q ? cqe_q : refusal;
    stream_fifo #(.T(rdma_cqe_t), .DEPTH(DEPTH)) queue (.clk, .rst, .in, .out(client_cqe[i]), .empty);
    assign queue_quiet[i] = empty || (client_cqe[i].valid && !client_cqe[i].ready);  // else waits for its client only
    assign queue_room[i] = in.ready || !in.valid;

    // Reserved entries: outstanding work requests and pending completions.
    held_t held_q, change;
    logic  taken_q, entered_q, orphan_q, silent_q, lost_q;
    count_t lost_count_q;
    assign change = held_t'({1'b0, entered_q}) + held_t'({1'b0, orphan_q}) - held_t'({1'b0, taken_q}) - held_t'({1'b0, silent_q})
        - (lost_q ? held_t'({1'b0, lost_count_q}) : '0);
    always_ff @(posedge clk) begin
      taken_q      <= client_cqe[i].valid && client_cqe[i].ready;
      entered_q    <= request.valid && request.ready && request.data.client == client_t'(i);
      orphan_q     <= cqe_valid_q && orphan && cqe_client == client_t'(i);
      silent_q     <= retired_q && owners[retired_index_q] == client_t'(i);
      lost_q       <= gone_q[3] && owners[gone_index_q] == client_t'(i);
      lost_count_q <= gone_count;
      held_q       <= rst ? '0 : held_q + change;
      open[i]      <= !rst && !clearing && held_q < held_t'(DEPTH - MARGIN - 4);
    end
    assign settled[i] = held_q == '0 && !entered_q && !orphan_q && !(request.valid && request.data.client == client_t'(i))
        && !(cqe_valid_q && cqe_client == client_t'(i));
  end

  assign refused = refusing;
  always_ff @(posedge clk) if (!rst) assert (&queue_room);

  // ---- connections ----
  stream_if #(.T(connect_t)) named[N] ();
  stream_if #(.T(close_t)) owned[N] ();
  for (genvar i = 0; i < N; i++) begin : g_conn
    always_comb begin
      named[i].data        = client_connect[i].data;
      named[i].data.client = client_t'(i);
      if (client_t'(i) != ADMIN) named[i].data.pd = client_pd(client_t'(i));
    end
    assign named[i].valid          = client_connect[i].valid;
    assign client_connect[i].ready = named[i].ready;

    wire index_t close_index = index_t'(qp_index(client_close[i].data));
    wire mine = qpn_exists(client_close[i].data, QPS) && (client_t'(i) == ADMIN || owners[close_index] == client_t'(i));
    assign owned[i].valid        = client_close[i].valid && mine;
    assign owned[i].data         = '{qpn: client_close[i].data, lost: 1'b0};
    assign client_close[i].ready = owned[i].ready || !mine;

    assign client_conn[i].valid = conn.valid && conn.data.client == client_t'(i);
    assign client_conn[i].data  = conn.data;
  end
  logic [N-1:0] conn_taken;
  for (genvar i = 0; i < N; i++) begin : g_taken
    assign conn_taken[i] = client_conn[i].ready && conn.data.client == client_t'(i);
  end
  assign conn.ready = |conn_taken;

  stream_arbiter #(.T(connect_t), .N(N)) connect_arbiter (.clk, .rst, .in(named), .last('1), .out(connect));
  stream_arbiter #(.T(close_t), .N(N)) close_arbiter (.clk, .rst, .in(owned), .last('1), .out(close));
  stream_arbiter #(.T(conn_answer_t), .N(N)) answer_arbiter (.clk, .rst, .in(client_conn_answer), .last('1), .out(conn_answer));

  stream_if #(.T(mr_cmd_t)) region_cmd[N] ();
  for (genvar i = 0; i < N; i++) begin : g_region
    always_comb begin
      region_cmd[i].data          = client_mr_cmd[i].data;
      region_cmd[i].data.confined = client_t'(i) != ADMIN;
      region_cmd[i].data.domain   = client_pd(client_t'(i));
    end
    assign region_cmd[i].valid    = client_mr_cmd[i].valid;
    assign client_mr_cmd[i].ready = region_cmd[i].ready;
  end

  stream_share #(
      .COMMAND(mr_cmd_t),
      .ANSWER (mr_rsp_t),
      .N      (N)
  ) regions (
      .clk,
      .rst,
      .command(region_cmd),
      .answer(client_mr_rsp),
      .to_server(mr_cmd),
      .from_server(mr_rsp)
  );

  assign idle = !clearing && !look_q && !failing_q && !request.valid && !cqe_valid_q && !post_q && !retired_q && gone_q == 0 && &queue_quiet
      && !close.valid && !conn_answer.valid && !conn.valid && !mr_cmd.valid;  // client_connect is covered by the idle of roce_cm
endmodule
