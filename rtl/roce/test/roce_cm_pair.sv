// SPDX-License-Identifier: Apache-2.0

// Two connection managers side by side: what one sends, the test carries to the other.
module roce_cm_pair
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import event_log_pkg::*;
#(
    parameter int unsigned DATA_W = 64,
    parameter int unsigned QPS = 8,
    parameter int unsigned CLIENTS = 2,
    parameter int unsigned RD_DEPTH = 8
) (
    input  logic        clk,
    input  logic        rst,
    input  local_addr_t local_addr0, local_addr1,
    input  logic [63:0] guid0, guid1,
    input  logic [CLIENTS-1:0][15:0] port0, port1,
    input  mtu_code_t   max_mtu0, max_mtu1,
    input  logic [4:0]  min_rnr_timer0, min_rnr_timer1,
    input  dscp_settings_t dscp0, dscp1,
    input  logic        extensions0, extensions1,
    input  logic [31:0] seed0, seed1,
    input  logic [47:0] now0, now1,
    input  cm_limits_t  limits0, limits1,
    output logic        asks0, asks1,
    output admission_ask_t ask0, ask1,
    input  logic        judged0, judged1,
    input  admission_verdict_t verdict0, verdict1,
    output logic        admits0, admits1,
    output logic        leaves0, leaves1,
    output admission_entry_t admitted0, admitted1,
    input  admission_ended_t ended0, ended1,
    input  logic        sweep0, sweep1,
    input  own_set_t    leaving0, leaving1,
    input  logic        abandon0, abandon1,
    output cm_events_t  events0, events1,
    output log_event_t  to_log0, to_log1,
    output logic        idle0, idle1,
    input  logic [QPS-1:0] by_hand0, by_hand1,
    output logic [QPS-1:0] mine0, mine1,
    stream_if.sink      rx[2],
    axis_if.sink        rx_payload[2],
    stream_if.source    tx[2],
    axis_if.source      tx_payload[2],
    stream_if.source    arp_query[2],
    stream_if.sink      arp_answer[2],
    stream_if.source    qp_cmd[2],
    stream_if.sink      qp_done[2],
    stream_if.sink      qp_event[2],
    stream_if.sink      close[2],
    stream_if.sink      connect[2],
    stream_if.source    conn[2],
    stream_if.sink      conn_answer[2]
);
  roce_cm #(.DATA_W(DATA_W), .QPS(QPS), .CLIENTS(CLIENTS), .RD_DEPTH(RD_DEPTH)) first (
      .clk, .rst, .local_addr(local_addr0), .guid(guid0), .port(port0), .max_mtu(max_mtu0), .min_rnr_timer(min_rnr_timer0),
      .dscp(dscp0), .extensions(extensions0), .seed(seed0), .now(now0), .limits(limits0), .asks(asks0), .ask(ask0), .judged(judged0), .verdict(verdict0),
      .admits(admits0), .leaves(leaves0), .admitted(admitted0), .ended(ended0), .sweep(sweep0),
      .leaving(leaving0), .abandon(abandon0), .rx(rx[0]), .rx_payload(rx_payload[0]), .tx(tx[0]),
      .tx_payload(tx_payload[0]), .arp_query(arp_query[0]), .arp_answer(arp_answer[0]), .qp_cmd(qp_cmd[0]),
      .qp_done(qp_done[0]), .qp_event(qp_event[0]), .close(close[0]), .by_hand(by_hand0), .mine(mine0),
      .connect(connect[0]), .conn(conn[0]),
      .conn_answer(conn_answer[0]), .events(events0), .to_log(to_log0), .idle(idle0)
  );
  roce_cm #(.DATA_W(DATA_W), .QPS(QPS), .CLIENTS(CLIENTS), .RD_DEPTH(RD_DEPTH)) second (
      .clk, .rst, .local_addr(local_addr1), .guid(guid1), .port(port1), .max_mtu(max_mtu1), .min_rnr_timer(min_rnr_timer1),
      .dscp(dscp1), .extensions(extensions1), .seed(seed1), .now(now1), .limits(limits1), .asks(asks1), .ask(ask1), .judged(judged1), .verdict(verdict1),
      .admits(admits1), .leaves(leaves1), .admitted(admitted1), .ended(ended1), .sweep(sweep1),
      .leaving(leaving1), .abandon(abandon1), .rx(rx[1]), .rx_payload(rx_payload[1]), .tx(tx[1]),
      .tx_payload(tx_payload[1]), .arp_query(arp_query[1]), .arp_answer(arp_answer[1]), .qp_cmd(qp_cmd[1]),
      .qp_done(qp_done[1]), .qp_event(qp_event[1]), .close(close[1]), .by_hand(by_hand1), .mine(mine1),
      .connect(connect[1]), .conn(conn[1]),
      .conn_answer(conn_answer[1]), .events(events1), .to_log(to_log1), .idle(idle1)
  );
endmodule
