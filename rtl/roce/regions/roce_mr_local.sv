// SPDX-License-Identifier: Apache-2.0

// Checks the local memory of work requests when they are posted (IBTA 10.6.3): the L_Key must be that of a region in the domain of
// the queue pair which contains the whole range and, if it will be written (READ, atomics, RECV), grants local write.
// LOCAL_DMA_LKEY grants access to any memory if the client that owns the queue pair is one of TRUSTED. An access must not span two
// memories. A work request of 0 bytes has no local memory. This module also determines the target memory of the address.
//
// Send work requests are forwarded at once and their results follow in order on `send_access`, so only the last step of posting
// waits for the check. Receives wait for their results, up to RECEIVES of them.
//
// Latency: `wqe` to `send` 0, to `send_access` 4 cycles, to `receive` 5; one cycle more while a request of a peer is checked, which
// has priority. One work request a cycle then, else one every 2. When `receive` is not ready, receives stall, and with them `wqe`.
module roce_mr_local
  import memory_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter logic [MAX_CLIENTS-1:0] TRUSTED = '0,  // clients that may use LOCAL_DMA_LKEY
    parameter int unsigned LANES = 1,                // memories
    parameter memory_map_t MAP = '0                  // and their address ranges
) (
    input  logic        clk,
    input  logic        rst,

    input  logic        made,          // pulse: a QP was set up
    input  qp_cmd_t     made_by,       // its attributes

    stream_if.sink      wqe,           // rdma_wqe_t
    stream_if.source    send,          // rdma_wqe_t: all but WR_RECV
    stream_if.source    send_access,   // local_access_t, one per work request on `send`
    stream_if.source    receive,       // rx_post_t

    // roce_mr
    output logic        asks,
    output mr_query_t   query,
    input  logic        may_ask,       // the query is accepted
    input  logic        granted,       // 3 cycles later

    input  qp_index_t   watch,
    output logic        engaged,       // a receive of this QP is pending here
    output logic        idle
);
  localparam int unsigned RECEIVES = 4;
  localparam int unsigned VERDICTS = 8;      // pending of each side: sends in roce_requester_queue, or RECEIVES
  localparam int unsigned CHECK = 3;         // cycles of the check
  typedef logic [$clog2(QPS)-1:0]      index_t;
  typedef logic [$clog2(VERDICTS):0]   count_t;
  typedef enum logic {
    SEND,
    RECEIVE
  } side_e;

  // ---- owners of QPs ----
  typedef struct packed {
    client_t client;
    pd_t     pd;
  } owner_t;

  (* ram_style = "distributed" *) logic [$bits(owner_t)-1:0] owners[QPS];
  wire index_t made_at = index_t'(qp_index(made_by.qpn));
  always_ff @(posedge clk) if (made) owners[made_at] <= {made_by.attr.client, made_by.attr.pd};

  // ---- 0: accept ----
  rdma_wqe_t came, asked_q;
  logic      asked_valid_q, ask_free;
  assign came = wqe.data;
  wire side_e side   = came.opcode == WR_RECV ? RECEIVE : SEND;
  wire        taken  = wqe.valid && wqe.ready;

  stream_if #(.T(rdma_wqe_t)) waits_in ();
  stream_if #(.T(rdma_wqe_t)) waits ();
  logic none_waits;
  assign waits_in.valid = wqe.valid && side == RECEIVE && ask_free;
  assign waits_in.data  = came;
  assign send.valid     = wqe.valid && side == SEND && ask_free;
  assign send.data      = came;
  assign wqe.ready      = ask_free && (side == SEND ? send.ready : waits_in.ready);
  stream_fifo #(.T(rdma_wqe_t), .DEPTH(RECEIVES)) receives (.clk, .rst, .in(waits_in), .out(waits), .empty(none_waits));

  // ---- 1: query ----
  owner_t asker;
  side_e  asked_side;
  assign asker      = owner_t'(owners[index_t'(qp_index(asked_q.qpn))]);
  assign asked_side = asked_q.opcode == WR_RECV ? RECEIVE : SEND;
  wire atomic       = asked_q.opcode inside {WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD};
  wire lands        = atomic || asked_q.opcode inside {WR_RDMA_READ, WR_RECV};
  wire keyed        = (atomic || asked_q.length != '0) && !(asked_q.lkey == LOCAL_DMA_LKEY && TRUSTED[asker.client]);
  wire addr_t last  = asked_q.local_addr + addr_t'(query.length) - 1'b1;
  wire whole        = query.length == '0 || in_one_target(MAP, LANES, asked_q.local_addr, last);
  assign asks       = asked_valid_q;
  assign ask_free   = !asked_valid_q || may_ask;
  always_comb begin
    query = '{
        key: asked_q.lkey,
        pd: asker.pd,
        qpn: asked_q.qpn,
        bounded: 1'b1,
        va: 64'(asked_q.local_addr),
        length: atomic ? ATOMIC_BYTES : asked_q.length,
        access: '0
    };
    query.access.local_write = lands;
  end

  // ---- 2 .. 4: check ----
  typedef struct packed {
    side_e   side;
    logic    keyed;
    logic    whole;     // it is in one memory, or has 0 bytes; a region always is
    target_t target;
  } checked_t;
  logic [CHECK:1]     check_valid_q;
  checked_t [CHECK:1] check_q;

  always_ff @(posedge clk) begin
    if (ask_free) asked_q <= came;
    check_q <= {check_q[CHECK-1:1], checked_t'{side: asked_side, keyed: keyed, whole: whole, target: target_of(MAP, LANES, asked_q.local_addr)}};
    if (rst) begin
      asked_valid_q <= 1'b0;
      check_valid_q <= '0;
    end else begin
      if (ask_free) asked_valid_q <= taken;
      check_valid_q <= {check_valid_q[CHECK-1:1], asks && may_ask};
    end
  end

  // ---- 4: results; the oldest without delay ----
  local_access_t       verdict;
  logic [1:0]          verdict_valid, verdict_taken;
  local_access_t [1:0] oldest;
  assign verdict = '{denied: check_q[CHECK].keyed ? !granted : !check_q[CHECK].whole, keyed: check_q[CHECK].keyed, target: check_q[CHECK].target};
  for (genvar i = 0; i < 2; i++) begin : g_side
    local_access_t [VERDICTS-1:0] kept, kept_q;
    count_t                       count_q;
    wire comes = check_valid_q[CHECK] && check_q[CHECK].side == side_e'(i);
    assign verdict_valid[i] = comes || count_q != '0;
    assign oldest[i]        = count_q != '0 ? kept_q[0] : verdict;
    always_comb begin
      kept = kept_q;
      if (comes) kept[count_q[$clog2(VERDICTS)-1:0]] = verdict;
      if (verdict_taken[i]) kept = kept >> $bits(local_access_t);
    end
    always_ff @(posedge clk) begin
      kept_q  <= kept;
      count_q <= rst ? '0 : count_q + count_t'(comes) - count_t'(verdict_taken[i]);
      if (!rst && comes) assert (count_q < count_t'(VERDICTS));
    end
  end

  assign send_access.valid      = verdict_valid[SEND];
  assign send_access.data       = oldest[SEND];
  assign verdict_taken[SEND]    = verdict_valid[SEND] && send_access.ready;
  assign receive.valid          = waits.valid && verdict_valid[RECEIVE];
  assign receive.data           = '{wqe: waits.data, access: oldest[RECEIVE]};
  assign waits.ready            = receive.ready && verdict_valid[RECEIVE];
  assign verdict_taken[RECEIVE] = receive.valid && receive.ready;

  // ---- pending receives ----
  rdma_wqe_t leaves;
  assign leaves = waits.data;
  roce_qp_outstanding #(.QPS(QPS), .COUNT_W($clog2(VERDICTS) + 1)) waiting (
      .clk, .rst,
      .begins(waits_in.valid && waits_in.ready), .begins_index(qp_index_t'(qp_index(came.qpn))),
      .ends(waits.valid && waits.ready), .ends_index(qp_index_t'(qp_index(leaves.qpn))),
      .index(watch), .outstanding(engaged)
  );

  assign idle = !wqe.valid && !asked_valid_q && check_valid_q == '0 && none_waits;
endmodule
