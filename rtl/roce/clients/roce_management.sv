// SPDX-License-Identifier: Apache-2.0

// The management port (docs/reference/management.md): software controls QPs, regions, connections, work requests and completions
// through a command mailbox of 32-bit registers on AXI4-Lite (roce_management_registers). This module executes the commands, one at
// a time.
//
// A command that would have to wait for a full or empty queue ends with an error at once. A command to a unit of the engine takes
// as long as that unit, which always answers. MAN_QP_RESET of a QP of the connection manager closes its connection, or aborts the
// connection request that uses the QP number. Events are queued in roce_management_events, completions in roce_clients, which also
// limits the work requests outstanding.
module roce_management
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
  import roce_counters_pkg::*;
  import roce_management_pkg::*;
#(
    parameter int unsigned QPS = 256
) (
    input  logic     clk,
    input  logic     rst,
    axil_if.slave    bus,           // 12 bits of address

    stream_if.source hand_cmd,      // qp_cmd_t
    stream_if.sink   hand_done,     // logic
    stream_if.sink   qp_event,      // qp_event_t; always accepted
    output qpn_t     view_qpn,
    input  qp_view_t view,          // a cycle later
    input  client_t  owner,         // of view_qpn, same cycle
    input  pd_t      owner_pd,
    stream_if.source rate_view,     // qp_index_t
    stream_if.sink   rate_viewed,   // cc_view_t
    stream_if.source counters_view, // qp_index_t
    stream_if.sink   counters_viewed, // qp_counters_t

    // as a client of the engine
    stream_if.source wqe,           // rdma_wqe_t
    stream_if.sink   cqe,           // rdma_cqe_t
    stream_if.source mr_cmd,        // mr_cmd_t
    stream_if.sink   mr_rsp,        // mr_rsp_t
    stream_if.source connect,       // connect_t
    stream_if.sink   conn,          // conn_event_t
    stream_if.source conn_answer,   // conn_answer_t
    stream_if.source close,         // qpn_t

    output logic     idle           // no access and no command in progress
);
  localparam int unsigned INDEX_W = $clog2(QPS);
  typedef logic [INDEX_W-1:0] index_t;

  // ---- events, and the output queues ----
  stream_if #(.T(mr_cmd_t)) region_cmd[2] ();     // from commands, from events
  stream_if #(.T(mr_rsp_t)) region_rsp[2] ();
  stream_if #(.T(conn_answer_t)) answer[2] ();
  stream_if #(.T(man_event_t)) event_ ();
  stream_if #(.T(rdma_wqe_t)) post ();
  stream_if #(.T(connect_t)) open ();
  stream_if #(.T(qpn_t)) close_request ();
  logic may_connect, lost, refused, events_idle;
  logic [3:0] out_empty;
  logic [QPS-1:0] by_hand_q;

  roce_management_events events (
      .clk,
      .rst,
      .conn,
      .qp_event,
      .qp_by_hand(by_hand_q[index_t'(qp_index(qp_event.data.qpn))]),
      .answer(answer[1]),
      .mr_cmd(region_cmd[1]),
      .mr_rsp(region_rsp[1]),
      .connecting(open.valid && open.ready),
      .may_connect,
      .event_,
      .lost,
      .refused,
      .idle(events_idle)
  );

  stream_share #(
      .COMMAND(mr_cmd_t),
      .ANSWER (mr_rsp_t),
      .N      (2)
  ) regions (
      .clk,
      .rst,
      .command(region_cmd),
      .answer(region_rsp),
      .to_server(mr_cmd),
      .from_server(mr_rsp)
  );

  stream_if #(.T(conn_answer_t)) answers ();
  stream_arbiter #(.T(conn_answer_t), .N(2)) answer_arbiter (.clk, .rst, .in(answer), .last('1), .out(answers));
  stream_fifo #(.T(conn_answer_t), .DEPTH(2)) answer_queue (.clk, .rst, .in(answers), .out(conn_answer), .empty(out_empty[0]));
  stream_fifo #(.T(rdma_wqe_t), .DEPTH(2)) post_queue (.clk, .rst, .in(post), .out(wqe), .empty(out_empty[1]));
  stream_fifo #(.T(connect_t), .DEPTH(2)) open_queue (.clk, .rst, .in(open), .out(connect), .empty(out_empty[2]));
  stream_fifo #(.T(qpn_t), .DEPTH(4)) close_queue (.clk, .rst, .in(close_request), .out(close), .empty(out_empty[3]));

  // ---- commands ----
  typedef enum logic [3:0] {
    M_IDLE,
    M_START,
    M_QP,          // a QP command, its answer
    M_QP_DONE,
    M_MR,
    M_MR_DONE,
    M_VIEW,        // the state of a QP
    M_RATE,
    M_RATED,
    M_SHOW,
    M_COUNTERS,    // the counters of a QP
    M_COUNTED,
    M_RESET,       // one QP
    M_NEXT,
    M_FINISH
  } state_e;

  state_e     state_q, state_d;

  // ---- registers ----
  words_t       argument, result_q;
  man_command_e command;
  man_error_e   error_q;
  logic         busy, registers_idle;

  roce_management_registers registers (
      .clk,
      .rst,
      .bus,
      .argument,
      .command,
      .busy,
      .finish(state_q == M_FINISH),
      .error(error_q),
      .result(result_q),
      .event_waits(event_.valid),
      .cqe_waits(cqe.valid),
      .lost,
      .refused,
      .idle(registers_idle)
  );

  man_error_e error_d;
  words_t     result_d;
  qpn_t       qpn_q, qpn_d;
  logic       all_q, all_d;           // repeat for every QP
  logic       closing_q, closing_d;
  qp_op_e     op_q, op_d;
  cc_view_t   rate_q;
  logic       looked_q;               // `view` is that of qpn_q
  logic       hand_set, hand_clear;

  wire exists = qpn_exists(argument[0][23:0], QPS);
  wire by_hand = by_hand_q[index_t'(qp_index(qpn_q))];

  assign view_qpn       = qpn_q;
  assign hand_cmd.valid = state_q == M_QP;
  assign hand_cmd.data  = '{op: op_q, qpn: qpn_q, state: qp_state_e'(argument[1][2:0]), attr: qp_attr_of(argument)};
  assign hand_done.ready = state_q == M_QP_DONE;
  assign region_cmd[0].valid = state_q == M_MR;
  always_comb begin
    region_cmd[0].data.mr   = mr_of(argument);
    region_cmd[0].data.rkey = argument[0];
    unique case (command)
      MAN_MR_REGISTER:      region_cmd[0].data.op = MR_REGISTER;
      MAN_MR_DEREGISTER:    region_cmd[0].data.op = MR_DEREGISTER;
      MAN_MR_DEREGISTER_QP: region_cmd[0].data.op = MR_DEREGISTER_QP;
      MAN_MR_DEREGISTER_PD: region_cmd[0].data.op = MR_DEREGISTER_PD;
      default:              region_cmd[0].data.op = MR_QUERY;
    endcase
  end
  assign region_rsp[0].ready = state_q == M_MR_DONE;
  assign rate_view.valid     = state_q == M_RATE;
  assign rate_view.data      = qp_index_t'(qp_index(qpn_q));
  assign rate_viewed.ready   = state_q == M_RATED;
  assign counters_view.valid   = state_q == M_COUNTERS;
  assign counters_view.data    = qp_index_t'(qp_index(qpn_q));
  assign counters_viewed.ready = state_q == M_COUNTED;
  assign post.data           = wqe_of(argument);
  assign open.data           = connect_of(argument);
  assign answer[0].data      = '{qpn: argument[0][23:0], accept: argument[1][0], private_data: private_of(argument)};
  assign close_request.data  = qpn_q;

  always_comb begin
    state_d   = state_q;
    error_d   = error_q;
    result_d  = result_q;
    qpn_d     = qpn_q;
    all_d     = all_q;
    closing_d = closing_q;
    op_d      = op_q;
    hand_set   = 1'b0;
    hand_clear = 1'b0;
    post.valid = 1'b0;
    open.valid = 1'b0;
    answer[0].valid = 1'b0;
    close_request.valid = 1'b0;
    cqe.ready    = 1'b0;
    event_.ready = 1'b0;

    unique case (state_q)
      M_IDLE: begin
        qpn_d   = argument[0][23:0];
        if (busy) state_d = M_START;
      end

      M_START: begin
        state_d   = M_FINISH;
        error_d   = MAN_OK;
        result_d  = '0;
        all_d     = 1'b0;
        closing_d = 1'b0;
        unique case (command)
          MAN_QP_SETUP: begin
            op_d    = QP_SETUP;
            state_d = M_QP;
          end
          // QPs of the connection manager cannot be modified here.
          MAN_QP_MODIFY: begin
            op_d    = QP_MODIFY;
            state_d = by_hand ? M_QP : M_FINISH;
            error_d = by_hand ? MAN_OK : MAN_BAD_QPN;
          end
          MAN_QP_RESET: state_d = M_VIEW;
          MAN_QP_RESET_ALL: begin
            all_d   = 1'b1;
            qpn_d   = QPN_FIRST;
            state_d = M_VIEW;
          end
          MAN_QP_QUERY: state_d = M_VIEW;
          MAN_QP_COUNTERS: state_d = M_COUNTERS;
          MAN_MR_REGISTER, MAN_MR_DEREGISTER, MAN_MR_DEREGISTER_QP, MAN_MR_DEREGISTER_PD, MAN_MR_QUERY: state_d = M_MR;
          MAN_CONNECT: begin
            open.valid = may_connect;
            if (!may_connect || !open.ready) error_d = MAN_FULL;
          end
          MAN_CONN_ANSWER: begin
            answer[0].valid = exists;
            if (!answer[0].ready) error_d = MAN_FULL;
          end
          MAN_CLOSE: begin
            close_request.valid = exists;
            if (!close_request.ready) error_d = MAN_FULL;
          end
          MAN_POST: begin
            post.valid = 1'b1;
            if (!post.ready) error_d = MAN_FULL;
          end
          MAN_POLL_CQ: begin
            cqe.ready = 1'b1;
            if (cqe.valid) result_d = of_completion(cqe.data);
            else error_d = MAN_EMPTY;
          end
          MAN_POLL_EVENT: begin
            event_.ready = 1'b1;
            if (event_.valid) result_d = of_event(event_.data);
            else error_d = MAN_EMPTY;
          end
          default: error_d = MAN_UNKNOWN;
        endcase
        if (!exists && command inside {
            MAN_QP_SETUP, MAN_QP_MODIFY, MAN_QP_RESET, MAN_QP_QUERY, MAN_QP_COUNTERS, MAN_CONN_ANSWER, MAN_CLOSE}) begin
          error_d = MAN_BAD_QPN;
          state_d = M_FINISH;
        end
      end

      M_QP: if (hand_cmd.ready) state_d = M_QP_DONE;
      M_QP_DONE:
      if (hand_done.valid) begin
        state_d    = op_q == QP_RESET ? M_NEXT : M_FINISH;
        hand_set   = hand_done.data && op_q == QP_SETUP;
        hand_clear = hand_done.data && op_q == QP_RESET;
        if (!hand_done.data) error_d = MAN_REFUSED;
      end

      M_MR: if (region_cmd[0].ready) state_d = M_MR_DONE;
      M_MR_DONE:
      if (region_rsp[0].valid) begin
        state_d  = M_FINISH;
        result_d = of_region(region_rsp[0].data);
        if (!region_rsp[0].data.ok) error_d = MAN_REFUSED;
      end

      M_VIEW: if (looked_q) state_d = command == MAN_QP_QUERY ? M_RATE : M_RESET;
      M_RATE: if (rate_view.ready) state_d = M_RATED;
      M_RATED: if (rate_viewed.valid) state_d = M_SHOW;
      M_SHOW: begin
        state_d  = M_FINISH;
        result_d = of_view(view, owner, owner_pd, by_hand, rate_q);
      end

      M_COUNTERS: if (counters_view.ready) state_d = M_COUNTED;
      M_COUNTED:
      if (counters_viewed.valid) begin
        state_d  = M_FINISH;
        result_d = words_t'(qp_counters_t'(counters_viewed.data));
      end

      M_RESET: begin
        op_d    = QP_RESET;
        state_d = M_NEXT;
        if (by_hand) state_d = M_QP;
        else begin                    // a connection request not answered yet has a QP number, but its QP is still in RESET
          close_request.valid = 1'b1;
          closing_d = closing_q || view.state != QPS_RESET;
          if (!close_request.ready) state_d = M_RESET;
        end
      end
      M_NEXT: begin
        result_d[0] = 32'(closing_q);
        if (all_q && qpn_q != qpn_t'(QPS) + QPN_FIRST - 1'b1) begin
          qpn_d   = qpn_q + 1'b1;
          state_d = M_VIEW;
        end else state_d = M_FINISH;
      end

      default: state_d = M_IDLE;
    endcase
  end

  logic view_age_q;
  always_ff @(posedge clk) begin
    // `view` is valid two cycles after qpn_q, and qpn_q changes one cycle after M_VIEW is entered.
    view_age_q <= state_q == M_VIEW && qpn_d == qpn_q;
    looked_q   <= state_q == M_VIEW && view_age_q && !looked_q;
    if (rate_viewed.valid && rate_viewed.ready) rate_q <= rate_viewed.data;

    state_q   <= state_d;
    error_q   <= error_d;
    result_q  <= result_d;
    qpn_q     <= qpn_d;
    all_q     <= all_d;
    closing_q <= closing_d;
    op_q      <= op_d;
    if (hand_set) by_hand_q[index_t'(qp_index(qpn_q))] <= 1'b1;
    if (hand_clear) by_hand_q[index_t'(qp_index(qpn_q))] <= 1'b0;

    if (rst) begin
      state_q   <= M_IDLE;
      error_q   <= MAN_OK;
      result_q  <= '0;
      by_hand_q <= '0;
    end
  end

  assign idle = registers_idle && !busy && events_idle && &out_empty && !answers.valid
      && !mr_cmd.valid;
endmodule
