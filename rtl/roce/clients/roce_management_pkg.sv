// SPDX-License-Identifier: Apache-2.0

// The software interface of the management port (docs/reference/management.md): commands, error codes, and the layout of the
// argument and result registers. The functions here are the only definition of that layout in RTL.
package roce_management_pkg;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import memory_pkg::*;
  import roce_requester_pkg::*;
  import roce_cc_pkg::*;
  import roce_counters_pkg::*;

  localparam int unsigned WORDS = management_regs_pkg::ARGUMENT_WORDS;   // argument registers, and result registers
  localparam int unsigned PRIVATE_AT = 8;        // first of the 12 words of private data
  typedef logic [WORDS-1:0][31:0] words_t;

  typedef enum logic [7:0] {
    MAN_NONE          = 8'd0,
    MAN_QP_SETUP      = 8'd1,
    MAN_QP_MODIFY     = 8'd2,
    MAN_QP_RESET      = 8'd3,
    MAN_QP_RESET_ALL  = 8'd4,
    MAN_QP_QUERY      = 8'd5,
    MAN_MR_REGISTER   = 8'd8,
    MAN_MR_DEREGISTER = 8'd9,
    MAN_MR_DEREGISTER_QP = 8'd10,
    MAN_MR_DEREGISTER_PD = 8'd11,
    MAN_MR_QUERY      = 8'd12,
    MAN_CONNECT       = 8'd16,
    MAN_CONN_ANSWER   = 8'd17,
    MAN_CLOSE         = 8'd18,
    MAN_POST          = 8'd24,
    MAN_POLL_CQ       = 8'd25,
    MAN_POLL_EVENT    = 8'd26,
    MAN_QP_COUNTERS   = 8'd27
  } man_command_e;

  typedef enum logic [7:0] {
    MAN_OK        = 8'd0,
    MAN_UNKNOWN   = 8'd1,                        // no such command
    MAN_BAD_QPN   = 8'd2,                        // no such QP, or one that the command does not apply to
    MAN_REFUSED   = 8'd3,                        // rejected by the unit: invalid transition, table full, no such key
    MAN_EMPTY     = 8'd4,                        // nothing to poll
    MAN_FULL      = 8'd5                         // queue full: try again
  } man_error_e;

  // Result of MAN_POLL_EVENT: an event of a connection, or of a QP set up manually.
  typedef struct packed {
    logic         asynchronous;
    logic [2:0]   kind;                          // event_e if asynchronous, else conn_event_e
    qpn_t         qpn;
    logic [15:0]  tag;                           // wc_status_e if asynchronous
    conn_reason_t reason;
    packet_pkg::ip_addr_t ip;
    private_t     private_data;
  } man_event_t;

  // Addresses: the last 32 bits are in a word of each command's own, the others in these three, the lowest first. Arguments have them only
  // with the flag `v6`, so that software that knows IPv4 alone need not write them.
  localparam int unsigned ADDRESS_AT = 20;
  function automatic packet_pkg::ip_addr_t address_of(words_t a, logic v6, logic [31:0] last);
    return v6 ? {a[ADDRESS_AT+2], a[ADDRESS_AT+1], a[ADDRESS_AT], last} : packet_pkg::ip_mapped(last);
  endfunction

  function automatic qp_attr_t qp_attr_of(words_t a);
    qp_attr_t attr;
    attr.dst_mac            = {a[3][15:0], a[2]};
    attr.dst_ip             = address_of(a, a[6][20], a[4]);
    attr.own                = own_towards(attr.dst_ip);
    attr.dest_qp_num        = a[5][23:0];
    attr.traffic_class      = a[5][31:24];
    attr.pd                 = a[6][7:0];
    attr.client             = client_t'(a[6][11:8]);
    attr.access             = access_t'(a[6][15:12]);   // without local write, which is no right of peers
    attr.path_mtu           = a[6][18:16];
    attr.selective_repeat   = a[6][19];
    attr.rq_psn             = a[7][23:0];
    attr.min_rnr_timer      = a[8][4:0];
    attr.max_dest_rd_atomic = a[8][15:8];
    attr.sq_psn             = a[9][23:0];
    attr.timeout            = a[10][4:0];
    attr.retry_cnt          = a[10][10:8];
    attr.rnr_retry          = a[10][14:12];
    attr.max_rd_atomic      = a[10][23:16];
    return attr;
  endfunction

  function automatic rdma_wqe_t wqe_of(words_t a);
    rdma_wqe_t wqe;
    wqe.qpn         = a[0][23:0];
    wqe.opcode      = wr_opcode_e'(a[1][3:0]);
    wqe.signaled    = a[1][4];
    wqe.solicited   = a[1][5];
    wqe.fence       = a[1][6];
    wqe.wr_id       = a[2][15:0];
    wqe.local_addr  = addr_t'({a[4], a[3]});
    wqe.length      = a[5];
    wqe.remote_addr = {a[7], a[6]};
    wqe.rkey        = a[8];
    wqe.imm_data    = a[9];
    wqe.swap_add    = {a[11], a[10]};
    wqe.compare     = {a[13], a[12]};
    wqe.lkey        = a[14];
    return wqe;
  endfunction

  function automatic mr_t mr_of(words_t a);
    mr_t mr;
    mr.pd     = a[1][7:0];
    mr.access = a[1][12:8];
    mr.qpn    = a[2][23:0];
    mr.group  = '0;
    mr.addr   = addr_t'({a[4], a[3]});
    mr.length = region_size_t'(a[5]);
    return mr;
  endfunction

  // The first byte of private data is the most significant of its first word.
  function automatic private_t private_of(words_t a);
    private_t data;
    for (int unsigned i = 0; i < PRIVATE_BYTES / 4; i++) data[(PRIVATE_BYTES / 4 - 1 - i) * 32+:32] = a[PRIVATE_AT+i];
    return data;
  endfunction

  function automatic connect_t connect_of(words_t a);
    connect_t c;
    c = '0;
    c.tag                 = a[0][15:0];
    c.ip                  = address_of(a, a[2][16], a[1]);
    c.port                = a[2][15:0];
    c.pd                  = a[3][7:0];
    c.access              = access_t'(a[3][11:8]);
    c.path_mtu            = a[3][14:12];
    c.timeout             = a[4][4:0];
    c.retry_cnt           = a[4][10:8];
    c.rnr_retry           = a[4][14:12];
    c.responder_resources = a[5][7:0];
    c.initiator_depth     = a[5][15:8];
    c.private_data        = private_of(a);
    return c;
  endfunction

  function automatic words_t of_view(qp_view_t view, client_t client, pd_t pd, logic by_hand, cc_view_t rate);
    words_t r;
    r = '0;
    r[0] = 32'(view.state);
    r[1] = {15'd0, by_hand, 4'd0, 4'(client), pd};
    {r[ADDRESS_AT+2], r[ADDRESS_AT+1], r[ADDRESS_AT], r[2]} = view.ip;
    r[3] = 32'(view.dest_qp_num);
    r[4] = 32'(view.next);
    r[5] = 32'(view.oldest);
    r[6] = {rate.limited, 14'd0, rate.alpha};
    r[7] = 32'(rate.rate);
    r[8] = 32'(rate.target);
    return r;
  endfunction

  function automatic words_t of_region(mr_rsp_t rsp);
    words_t r;
    r = '0;
    r[0] = rsp.rkey;
    r[1] = {19'd0, rsp.mr.access, rsp.mr.pd};
    r[2] = 32'(rsp.mr.qpn);
    {r[4], r[3]} = 64'(rsp.mr.addr);
    {r[6], r[5]} = 64'(rsp.mr.length);
    return r;
  endfunction

  function automatic words_t of_completion(rdma_cqe_t cqe);
    words_t r;
    r = '0;
    r[0] = 32'(cqe.qpn);
    r[1] = {17'd0, cqe.solicited, cqe.with_inv, cqe.with_imm, cqe.opcode, 3'd0, cqe.status};
    r[2] = 32'(cqe.wr_id);
    r[3] = cqe.byte_len;
    r[4] = cqe.imm_data;
    return r;
  endfunction

  function automatic words_t of_event(man_event_t event_);
    words_t r;
    r = '0;
    r[0] = {27'd0, event_.asynchronous, 1'b0, event_.kind};
    r[1] = 32'(event_.qpn);
    r[2] = 32'(event_.tag);
    r[3] = 32'(event_.reason);
    {r[ADDRESS_AT+2], r[ADDRESS_AT+1], r[ADDRESS_AT], r[4]} = event_.ip;
    for (int unsigned i = 0; i < PRIVATE_BYTES / 4; i++) begin
      r[PRIVATE_AT+i] = event_.private_data[(PRIVATE_BYTES/4-1-i)*32+:32];
    end
    return r;
  endfunction
endpackage
