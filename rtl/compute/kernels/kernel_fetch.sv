// SPDX-License-Identifier: Apache-2.0

// Function 5: connects to another host itself, and reads what that host lets it read from one of its windows (docs/reference/transfers.md)
// to region 1, as many bytes as the region has. The data goes from that host's memory to the device's, past the caller.
//
// Region 0 says from whom: the address (16 bytes; an IPv4 address mapped into IPv6), the port of its connection manager (2), two bytes that
// are ignored, the window (4), and private data for the connection (48; may be left out), as a token of admission. All big-endian.
// Region 2 is internal, scratch of SCRATCH_BYTES for the messages of the region set-up.
//
// One call at a time, one connection: opened in the first slot that is free, used and closed in the call. The peer must be one that the operator lets the kernel connect
// to (PEERS of the socket). A peer that does not answer costs the time of its connection manager's or of the transport's retries, or the
// socket's time limit. Results: kernel_fetch.toml.
module kernel_fetch
  import packet_pkg::*;
  import memory_pkg::*;
  import compute_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import kernel_fetch_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4
) (
    input  logic             clk,
    input  logic             rst,
    output kernel_identity_t identity,
    axil_if.slave            ctrl,
    stream_if.sink           job,
    stream_if.source         done,
    axi_if.master            mem,
    axis_if.sink             rx,
    axis_if.source           tx,
    stream_if.source         wqe,
    stream_if.sink           cqe,
    stream_if.source         connect,
    stream_if.sink           conn,
    axil_if.master           bus,
    axis_if.source           msg_tx,
    axis_if.sink             msg_rx
);
  localparam int unsigned REQUEST_BYTES = 24;        // of region 0 without private data
  localparam int unsigned SCRATCH_BYTES = 512;
  localparam int unsigned ANSWER_AT = 256;           // in the scratch: what the peer sends; its first half is what the device sends
  localparam int unsigned ANSWER_BYTES = 256;
  localparam int unsigned MESSAGE_BYTES = $bits(mrsp_head_t) / 8 + $bits(mrsp_request_t) / 8;   // 28
  localparam int unsigned GRANT_BYTES = $bits(mrsp_head_t) / 8 + $bits(mrsp_advert_t) / 8;      // 20
  localparam logic [23:0] WINDOW_MAGIC = "NAW";

  localparam logic [6:0] RESULT_NOT_CONNECTED = 7'h13;
  localparam logic [6:0] RESULT_NO_WINDOW     = 7'h14;
  localparam logic [6:0] RESULT_INTERRUPTED   = 7'h15;

  assign identity = IDENTITY;
  kernel_no_registers no_registers (.clk, .rst, .ctrl);
  kernel_no_stream no_stream (.rx, .tx, .msg_tx, .msg_rx);
  kernel_no_bus no_bus (.bus);

  // What region 0 says, in network order.
  typedef struct packed {
    ip_addr_t    ip;
    logic [15:0] port;
    logic [15:0] ignored;
    logic [31:0] window;
    private_t    private_data;
  } request_t;

  localparam int unsigned WHOLE_BYTES = $bits(request_t) / 8;   // 72

  // A request to set up one region.
  typedef struct packed {
    mrsp_head_t    head;
    mrsp_request_t region;
  } ask_t;

  typedef struct packed {
    mrsp_head_t   head;
    mrsp_advert_t region;
  } grant_t;

  typedef enum logic [3:0] {
    COLLECT,    // the regions of a job
    CHECK,
    LOAD,       // region 0
    CONNECT,
    WAIT_OPEN,
    RECEIVE,    // a buffer for the answer
    STORE,      // the message, until it is visible
    SEND,
    EXCHANGE,   // until it is sent and the answer is there
    READ_GRANT,
    GRANTED,
    TRANSFER,
    WAIT_DATA,
    CLOSE,
    ANSWER
  } state_e;

  state_e       state_q;
  job_t [2:0]   region_q;
  logic [7:0]   count_q;
  logic [6:0]   code_q;
  qpn_t         qpn_q;
  kernel_slot_t slot_q;
  logic         open_q, sent_q, answered_q;          // the connection is there; the message is sent; the answer is there
  kernel_conn_t news;
  rdma_cqe_t    came;
  assign news = conn.data;
  assign came = cqe.data;

  // ---- memory ----
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) read_mem (), write_mem ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) written ();
  axis_if #(.DATA_W(DATA_W)) loaded (), message ();
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) reader (.clk, .rst, .cmd(read_cmd), .mem(read_mem), .data(loaded), .idle());
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W)) writer (
      .clk, .rst, .cmd(write_cmd), .data(message), .mem(write_mem), .done(written), .idle()
  );
  axi_join port (.reader(read_mem), .writer(write_mem), .out(mem));

  // What was read last, from the first byte on, in whole beats.
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned REQUEST_BEATS = (WHOLE_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned MESSAGE_BEATS = (MESSAGE_BYTES + BYTES - 1) / BYTES;
  localparam int unsigned BEAT_W = $clog2(REQUEST_BEATS + 1);
  logic [REQUEST_BEATS*BYTES-1:0][7:0] held_q;       // byte 0 lowest
  logic [BEAT_W-1:0]                   beat_q;
  request_t                            request;
  grant_t                              grant;
  ask_t                                ask;
  always_comb begin
    for (int unsigned i = 0; i < WHOLE_BYTES; i++) request[8*(WHOLE_BYTES-1-i)+:8] = held_q[i];
    for (int unsigned i = 0; i < GRANT_BYTES; i++) grant[8*(GRANT_BYTES-1-i)+:8] = held_q[i];
  end
  logic [31:0] window_q;

  wire [31:0] length = region_q[1].size[31:0];
  wire addr_t scratch = region_q[2].addr;
  wire whole = region_q[0].size >= region_size_t'(WHOLE_BYTES);
  wire [31:0] request_length = whole ? 32'(WHOLE_BYTES) : 32'(REQUEST_BYTES);
  wire reading = state_q == LOAD || state_q == READ_GRANT;
  logic asked_q;                                     // the command was taken

  assign read_cmd.valid = reading && !asked_q;
  assign read_cmd.data  = '{
      addr: state_q == LOAD ? region_q[0].addr : scratch + addr_t'(ANSWER_AT),
      length: state_q == LOAD ? request_length : 32'(GRANT_BYTES),
      default: '0
  };
  assign loaded.tready = 1'b1;

  assign ask = '{
      head: '{msg_type: MRSP_AAR, count: 8'd1, pad: '0},
      region: '{
          flags: '{output_: 1'b1, default: '0},
          requested_addr: {WINDOW_MAGIC, window_q},
          host_addr: '0,
          host_rkey: '0,
          size: length
      }
  };
  logic [MESSAGE_BEATS*BYTES-1:0][7:0] to_send;
  always_comb begin
    to_send = '0;
    for (int unsigned i = 0; i < MESSAGE_BYTES; i++) to_send[i] = ask[8*(MESSAGE_BYTES-1-i)+:8];
  end
  assign write_cmd.valid = state_q == STORE && !asked_q;
  assign write_cmd.data  = '{addr: scratch, length: 32'(MESSAGE_BYTES), default: '0};
  assign message.tvalid  = state_q == STORE && 32'(beat_q) < MESSAGE_BEATS;
  assign message.tdata   = to_send[32'(beat_q)*BYTES+:BYTES];
  assign message.tlast   = 32'(beat_q) == MESSAGE_BEATS - 1;
  assign message.tuser   = 1'b0;
  always_comb for (int unsigned i = 0; i < BYTES; i++) message.tkeep[i] = 32'(beat_q) * BYTES + i < MESSAGE_BYTES;
  assign written.ready = 1'b1;

  // ---- the connection ----
  assign connect.valid = state_q == CONNECT || (state_q == CLOSE && open_q && !asked_q);
  assign connect.data  = '{
      close: state_q == CLOSE,
      slot: slot_q,
      ip: request.ip,
      port: request.port,
      private_data: whole ? request.private_data : '0
  };
  assign conn.ready = 1'b1;
  // It may still have what a call that was cut off had begun.
  wire taken_slot = news.kind == KERNEL_REFUSED && news.reason == CONN_SLOT_IN_USE && slot_q != '1;
  wire lost = conn.valid && news.kind == KERNEL_CLOSED;

  // ---- work requests ----
  always_comb begin
    wqe.data          = '0;
    wqe.data.signaled = 1'b1;
    wqe.data.qpn      = qpn_q;
    unique case (state_q)
      RECEIVE: begin
        wqe.data.opcode     = WR_RECV;
        wqe.data.local_addr = scratch + addr_t'(ANSWER_AT);
        wqe.data.length     = 32'(ANSWER_BYTES);
      end
      SEND: begin
        wqe.data.opcode     = WR_SEND;
        wqe.data.solicited  = 1'b1;
        wqe.data.local_addr = scratch;
        wqe.data.length     = 32'(MESSAGE_BYTES);
      end
      default: begin
        wqe.data.opcode      = WR_RDMA_READ;
        wqe.data.local_addr  = region_q[1].addr;
        wqe.data.length      = length;
        wqe.data.remote_addr = grant.region.addr;
        wqe.data.rkey        = grant.region.rkey;
      end
    endcase
  end
  assign wqe.valid = state_q inside {RECEIVE, SEND, TRANSFER};
  assign cqe.ready = 1'b1;
  wire failed = cqe.valid && came.status != WC_SUCCESS;

  // ---- the call ----
  wire regions_fit = count_q == 8'd3 && region_q[2].internal_ && !region_q[1].input_ && region_q[1].output_ && !region_q[0].output_;
  wire large_enough = region_q[0].size >= region_size_t'(REQUEST_BYTES) && region_q[2].size >= region_size_t'(SCRATCH_BYTES)
                      && region_q[1].size != '0 && region_q[1].size[SIZE_W-1:31] == '0;   // one message has 2^31 bytes at most
  wire granted = grant.head.msg_type == MRSP_A && grant.head.count == 8'd1 && grant.region.size >= length;

  assign job.ready  = state_q == COLLECT;
  assign done.valid = state_q == ANSWER;
  assign done.data  = '{tag: region_q[0].tag, code: code_q};

  always_ff @(posedge clk) begin
    if (loaded.tvalid) begin
      for (int unsigned b = 0; b < REQUEST_BEATS; b++) if (beat_q == BEAT_W'(b)) held_q[b*BYTES+:BYTES] <= loaded.tdata;
    end
    if (state_q == CONNECT) window_q <= request.window;

    if (rst) begin
      state_q <= COLLECT;
      count_q <= '0;
      open_q  <= 1'b0;
      asked_q <= 1'b0;
      beat_q  <= '0;
    end else begin
      if (read_cmd.valid && read_cmd.ready || write_cmd.valid && write_cmd.ready || (state_q == CLOSE && connect.valid && connect.ready)) asked_q <= 1'b1;
      if (loaded.tvalid || message.tvalid && message.tready) beat_q <= beat_q + 1'b1;
      if (lost) open_q <= 1'b0;
      if (cqe.valid && came.opcode == WC_SEND) sent_q <= 1'b1;
      if (cqe.valid && came.opcode == WC_RECV) answered_q <= 1'b1;
      unique case (state_q)
        COLLECT:
        if (job.valid) begin
          if (count_q < 8'd3) region_q[count_q[1:0]] <= job.data;
          if (count_q != '1) count_q <= count_q + 1'b1;
          if (job.data.last) state_q <= CHECK;
        end
        CHECK: begin
          code_q     <= !regions_fit ? RESULT_BAD_ARGUMENTS : !large_enough ? RESULT_REGION_TOO_SMALL : RESULT_SUCCESS;
          state_q    <= regions_fit && large_enough ? LOAD : ANSWER;
          asked_q    <= 1'b0;
          beat_q     <= '0;
          slot_q     <= '0;
          sent_q     <= 1'b0;
          answered_q <= 1'b0;
        end
        LOAD:
        if (loaded.tvalid && loaded.tlast) begin
          if (loaded.tuser) code_q <= RESULT_MEMORY_ERROR;
          state_q <= loaded.tuser ? ANSWER : CONNECT;
        end
        CONNECT: if (connect.ready) state_q <= WAIT_OPEN;
        WAIT_OPEN:
        if (conn.valid) begin
          asked_q <= 1'b0;
          beat_q  <= '0;
          open_q  <= news.kind == KERNEL_ESTABLISHED;
          qpn_q   <= news.qpn;
          if (taken_slot) slot_q <= slot_q + 1'b1;
          else if (news.kind != KERNEL_ESTABLISHED) code_q <= RESULT_NOT_CONNECTED;
          state_q <= news.kind == KERNEL_ESTABLISHED ? RECEIVE : taken_slot ? CONNECT : ANSWER;
        end
        RECEIVE: if (wqe.ready) state_q <= STORE;
        STORE:
        if (written.valid) begin
          if (written.data.error) code_q <= RESULT_MEMORY_ERROR;
          asked_q <= 1'b0;
          state_q <= written.data.error ? CLOSE : SEND;
        end
        SEND: if (wqe.ready) state_q <= EXCHANGE;
        EXCHANGE:
        if (lost || failed || !open_q) begin
          code_q  <= RESULT_INTERRUPTED;
          state_q <= CLOSE;
        end else if (sent_q && answered_q) begin
          beat_q  <= '0;
          state_q <= READ_GRANT;
        end
        READ_GRANT:
        if (loaded.tvalid && loaded.tlast) begin
          asked_q <= 1'b0;
          if (loaded.tuser) code_q <= RESULT_MEMORY_ERROR;
          state_q <= loaded.tuser ? CLOSE : GRANTED;
        end
        GRANTED: begin
          if (!granted) code_q <= RESULT_NO_WINDOW;
          state_q <= granted ? TRANSFER : CLOSE;
        end
        TRANSFER: if (wqe.ready) state_q <= WAIT_DATA;
        WAIT_DATA:
        if (lost || failed || !open_q) begin
          code_q  <= RESULT_INTERRUPTED;
          state_q <= CLOSE;
        end else if (cqe.valid) state_q <= CLOSE;
        CLOSE: if (!open_q) state_q <= ANSWER;
        default: begin
          count_q <= '0;
          if (done.ready) state_q <= COLLECT;
        end
      endcase
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, job.data, loaded.tkeep, came, news, request.ignored, grant.head.pad, read_cmd.ready};
endmodule
