// SPDX-License-Identifier: Apache-2.0

// Connections that a kernel opens, SLOTS at most. The kernel names each by a slot: it opens, is told that the connection is established
// with the number of its queue pair, posts work requests on that, and closes. It is told when a connection ends, for whatever reason.
// It never listens. The peer gets no right on any memory of the device; what the kernel itself transfers is confined by socket_rdma.
//
// Only addresses that `peers` permits are connected to; any other gets KERNEL_REFUSED at once, with CONN_NOT_PERMITTED, and so does a slot
// that is in use, with CONN_SLOT_IN_USE. If a connection ends before the kernel has taken its KERNEL_ESTABLISHED, it gets only the end.
//
// While `cut` is high the kernel may do anything (it may be in reset): commands are dropped, every connection is closed, and the kernel is
// told nothing of these later. A connection that is being opened cannot be aborted: it is closed once it is established. Until then its
// slot is in use, for a minute at most (docs/reference/cm.md).
//
// Events of the connection manager are always taken, whether or not the kernel takes its own. Latency: one cycle each way.
module socket_connections
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned SLOTS = 2,                // 1 to MAX_KERNEL_CONNECTIONS
    parameter logic [7:0]  INITIATOR_DEPTH = 8       // READs and atomics outstanding on a connection
) (
    input  logic                   clk,
    input  logic                   rst,
    input  kernel_peers_t          peers,
    input  logic                   cut,
    stream_if.sink                 kernel_connect,   // kernel_connect_t
    stream_if.source               kernel_conn,      // kernel_conn_t
    stream_if.source               connect,          // connect_t
    stream_if.sink                 conn,             // conn_event_t
    stream_if.source               conn_answer,      // conn_answer_t
    stream_if.source               close,            // qpn_t
    output logic [MAX_KERNEL_CONNECTIONS-1:0] used,  // slots
    output logic                   refused,          // pulse: an address that is not permitted
    output logic                   idle              // nothing is to be done; connections may be open
);
  // Of all its connections. The path MTU is at most this.
  localparam mtu_code_t  PATH_MTU = 3'd5;            // 4096
  localparam logic [4:0] ACK_TIMEOUT = 5'd14;        // 4.096 us * 2^14 = 67 ms
  localparam logic [2:0] RETRIES = 3'd7;
  localparam logic [2:0] RNR_RETRIES = 3'd7;         // without limit

  if (SLOTS < 1 || SLOTS > MAX_KERNEL_CONNECTIONS) begin : g_bad
    $fatal(1, "socket_connections: SLOTS must be 1 to %0d", MAX_KERNEL_CONNECTIONS);
  end

  typedef enum logic [2:0] {
    FREE,
    OPENING,
    OPEN,
    TO_CLOSE,      // the connection manager is to be told
    CLOSING,       // it has been told
    CLOSED         // it is to be answered
  } slot_state_e;

  slot_state_e [SLOTS-1:0]  state_q;
  logic [SLOTS-1:0]         doomed_q;                // belongs to a kernel that was cut off
  logic [SLOTS-1:0]         news_q;                  // the kernel is to be told `kind_q`
  kernel_conn_e [SLOTS-1:0] kind_q;
  conn_reason_t [SLOTS-1:0] reason_q;
  qpn_t [SLOTS-1:0]         qpn_q;
  (* ram_style = "distributed" *) private_t private_data[MAX_KERNEL_CONNECTIONS];

  // ---- commands of the kernel ----
  kernel_connect_t asked;
  kernel_conn_t    refusal_q;
  logic            refusal_valid_q, connect_valid_q;
  wire             refusing = refusal_valid_q && kernel_conn.ready;   // the kernel takes it
  connect_t        connect_q;

  assign asked = kernel_connect.data;
  wire exists = 32'(asked.slot) < SLOTS;
  logic slot_free, slot_open;
  always_comb begin
    slot_free = 1'b0;
    slot_open = 1'b0;
    for (int unsigned i = 0; i < SLOTS; i++) if (asked.slot == kernel_slot_t'(i)) begin
      slot_free = state_q[i] == FREE && !news_q[i];
      slot_open = state_q[i] == OPEN;
    end
  end
  wire permitted = peer_permitted(peers, asked.ip);
  wire take = kernel_connect.valid && kernel_connect.ready;
  wire opens = take && !cut && !asked.close && permitted && exists && slot_free;
  wire closes = take && !cut && asked.close && slot_open;

  assign kernel_connect.ready = cut || (!connect_valid_q && !refusal_valid_q);
  assign connect.valid = connect_valid_q;
  assign connect.data  = connect_q;

  always_ff @(posedge clk) begin
    if (opens) begin   // what was offered stays as it is, whatever a kernel in reset says
      connect_q <= '{
          tag: 16'(asked.slot),
          ip: asked.ip,
          port: asked.port,
          path_mtu: PATH_MTU,
          timeout: ACK_TIMEOUT,
          retry_cnt: RETRIES,
          rnr_retry: RNR_RETRIES,
          initiator_depth: INITIATOR_DEPTH,
          private_data: asked.private_data,
          default: '0
      };
    end
    if (take) begin
      refusal_q <= '{
          kind: KERNEL_REFUSED,
          slot: asked.slot,
          reason: permitted ? CONN_SLOT_IN_USE : CONN_NOT_PERMITTED,
          default: '0
      };
    end
    refused <= !rst && take && !cut && !asked.close && !permitted;
    if (rst) begin
      connect_valid_q <= 1'b0;
      refusal_valid_q <= 1'b0;
    end else begin
      connect_valid_q <= opens || (connect_valid_q && !connect.ready);
      refusal_valid_q <= !cut && ((take && !asked.close && !opens) || (refusal_valid_q && !refusing));
    end
  end

  // ---- events of the connection manager ----
  conn_event_t event_;
  logic [SLOTS-1:0] about;
  assign event_     = conn.data;
  assign conn.ready = 1'b1;
  always_comb
    for (int unsigned i = 0; i < SLOTS; i++)
      if (event_.kind == CONN_CLOSED) about[i] = state_q[i] inside {OPEN, TO_CLOSE, CLOSING} && qpn_q[i] == event_.qpn;
      else about[i] = state_q[i] == OPENING && event_.tag == 16'(i);

  kernel_slot_t about_slot;
  always_comb begin
    about_slot = '0;
    for (int unsigned i = 0; i < SLOTS; i++) if (about[i]) about_slot |= kernel_slot_t'(i);
  end
  always_ff @(posedge clk) if (conn.valid && event_.kind != CONN_CLOSED) private_data[about_slot] <= event_.private_data;
  always_ff @(posedge clk) if (!rst && conn.valid) assert ($onehot(about));   // a kernel does not listen

  // ---- to the connection manager: one slot at a time ----
  logic [SLOTS-1:0] closing, ended, close_grant, answer_grant, close_slot_q, answer_slot_q;
  logic             close_valid_q, answer_valid_q;
  always_comb
    for (int unsigned i = 0; i < SLOTS; i++) begin
      closing[i] = state_q[i] == TO_CLOSE;
      ended[i]   = state_q[i] == CLOSED && !(close_valid_q && close_slot_q[i]);
    end
  // An answer lets the number be used again: a close that was offered is taken before. The lowest slot first: it never waits for
  // another one.
  assign close_grant  = closing & (~closing + 1'b1);
  assign answer_grant = ended & (~ended + 1'b1);

  always_comb begin
    close.data       = '0;
    conn_answer.data = '0;
    for (int unsigned i = 0; i < SLOTS; i++) begin
      if (close_slot_q[i]) close.data |= qpn_q[i];
      if (answer_slot_q[i]) conn_answer.data.qpn |= qpn_q[i];
    end
  end
  assign close.valid       = close_valid_q;
  assign conn_answer.valid = answer_valid_q;
  wire closed   = close_valid_q && close.ready;
  wire answered = answer_valid_q && conn_answer.ready;

  always_ff @(posedge clk) begin
    if (!close_valid_q) close_slot_q <= close_grant;
    if (!answer_valid_q) answer_slot_q <= answer_grant;
    close_valid_q  <= !rst && (close_valid_q ? !close.ready : |close_grant);
    answer_valid_q <= !rst && (answer_valid_q ? !conn_answer.ready : |answer_grant);
  end

  // ---- to the kernel: a refusal first, then the lowest slot with news ----
  logic [SLOTS-1:0] news_grant, told;
  kernel_conn_t     news;
  assign news_grant = news_q & (~news_q + 1'b1);
  always_comb begin
    news = '0;
    for (int unsigned i = 0; i < SLOTS; i++) if (news_grant[i]) begin
      news.kind         = kernel_conn_e'(news.kind | kind_q[i]);
      news.slot         = news.slot | kernel_slot_t'(i);
      news.qpn          = news.qpn | qpn_q[i];
      news.reason       = news.reason | reason_q[i];
    end
    news.private_data = private_data[news.slot];
  end
  assign kernel_conn.valid = !cut && (refusal_valid_q || |news_q);
  assign kernel_conn.data  = refusal_valid_q ? refusal_q : news;
  assign told = {SLOTS{kernel_conn.ready && !refusal_valid_q}} & news_grant;

  // ---- the slots ----
  for (genvar i = 0; i < SLOTS; i++) begin : g_slot
    wire came = conn.valid && about[i];
    always_ff @(posedge clk) begin
      if (came) begin
        reason_q[i] <= event_.kind == CONN_ESTABLISHED ? '0 : event_.reason;
        kind_q[i]   <= event_.kind == CONN_ESTABLISHED ? KERNEL_ESTABLISHED : event_.kind == CONN_CLOSED ? KERNEL_CLOSED : KERNEL_REFUSED;
        if (event_.kind != CONN_CLOSED) qpn_q[i] <= event_.qpn;
      end
      if (rst) begin
        state_q[i]  <= FREE;
        doomed_q[i] <= 1'b0;
        news_q[i]   <= 1'b0;
      end else begin
        doomed_q[i] <= state_q[i] != FREE && (doomed_q[i] || cut);
        news_q[i]   <= !cut && !doomed_q[i] && (came || (news_q[i] && !told[i]));
        unique case (state_q[i])
          FREE:     if (opens && asked.slot == kernel_slot_t'(i)) state_q[i] <= OPENING;
          OPENING:  if (came) state_q[i] <= event_.kind == CONN_ESTABLISHED ? OPEN : FREE;
          OPEN:
          if (came) state_q[i] <= CLOSED;
          else if (cut || doomed_q[i] || (closes && asked.slot == kernel_slot_t'(i))) state_q[i] <= TO_CLOSE;
          TO_CLOSE:
          if (came) state_q[i] <= CLOSED;
          else if (closed && close_slot_q[i]) state_q[i] <= CLOSING;
          CLOSING:  if (came) state_q[i] <= CLOSED;
          default:  if (answered && answer_slot_q[i]) state_q[i] <= FREE;
        endcase
      end
    end
  end

  always_comb begin
    used = '0;
    for (int unsigned i = 0; i < SLOTS; i++) used[i] = state_q[i] != FREE;
  end
  // A `connect` is covered by the idle of roce_cm.
  assign idle = !take && !conn.valid && closing == '0 && ended == '0 && !close_valid_q && !answer_valid_q
                && !(kernel_conn.valid && kernel_conn.ready);
endmodule
