// SPDX-License-Identifier: Apache-2.0

// Function 6 sends the datagrams of its region, function 7 receives datagrams into its second region, as many as the first one says or has
// room for. While CONTROL says so, and `receive` does not run, each datagram goes back to its sender, also while no job runs. It does not
// if it came from the kernel's own port number: two reflectors would send it to and fro for ever.
//
// One beat a cycle, and a cycle between two datagrams; a datagram that is reflected is 2 cycles behind the one received. Registers:
// kernel_reflect.rdl.
module kernel_reflect
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_reflect_pkg::*;
  import datagrams_pkg::*;
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
  localparam function_code_t SEND = 7'd6;
  localparam int unsigned COUNT_BYTES = 4;
  localparam region_size_t LONGEST = region_size_t'(HEADER_BYTES) + region_size_t'(DATAGRAM_BYTES);

  assign identity = IDENTITY;

  typedef enum logic [3:0] {
    COLLECT,   // the regions of a job
    CHECK,
    ASK,       // memory for region 0
    SENDING,
    WANT,      // how many are waited for
    LISTEN,
    TAKE,      // the command for a datagram, then
    PASS,      // its data
    COUNT,     // how many came: the command, then
    PUT,       // its data
    SETTLE,    // until all is visible
    ANSWER
  } state_e;

  state_e       state_q;
  job_t [1:0]   region_q;
  logic [7:0]   regions_q;
  logic [6:0]   code_q;
  logic [31:0]  want_q, came_q, pending_q;
  addr_t        to_q;                      // where the next datagram goes,
  region_size_t room_q;                    // and the room there
  wire          sends = region_q[0].function_code == SEND;

  // ---- memory ----
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) read_mem (), write_mem ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) written ();
  axis_if #(.DATA_W(DATA_W)) words (), to_send (), stored ();
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) reader (.clk, .rst, .cmd(read_cmd), .mem(read_mem), .data(words), .idle());
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W)) writer (
      .clk, .rst, .cmd(write_cmd), .data(stored), .mem(write_mem), .done(written), .idle()
  );
  axi_join port (.reader(read_mem), .writer(write_mem), .out(mem));

  // ---- each packet of `rx` has one way ----
  typedef enum logic [1:0] {
    NONE,      // the next one waits
    BACK,      // to its sender
    STORE,     // to memory
    IGNORE
  } way_e;
  way_e        way_q;
  datagram_t   head;                       // its first 8 bytes
  logic        reflect_q;
  logic [31:0] reflected_q, ignored_q;
  assign head = header_of(header_bytes_t'(rx.tdata[63:0]));
  wire rx_ends = rx.tvalid && rx.tready && rx.tlast;
  wire receiving = state_q inside {LISTEN, TAKE, PASS};
  // It occupies a multiple of the header's bytes.
  localparam region_size_t WITHIN = region_size_t'(HEADER_BYTES) - 1'b1;
  wire region_size_t occupies = (region_size_t'(head.length) + region_size_t'(HEADER_BYTES) + WITHIN) & ~WITHIN;

  axis_if #(.DATA_W(DATA_W)) leaving[2] ();
  assign leaving[0].tvalid = rx.tvalid && way_q == BACK;
  assign leaving[0].tdata  = rx.tdata;
  assign leaving[0].tkeep  = rx.tkeep;
  assign leaving[0].tlast  = rx.tlast;
  assign leaving[0].tuser  = 1'b0;
  assign rx.tready = way_q == BACK ? leaving[0].tready : way_q == STORE ? stored.tready : way_q == IGNORE;

  always_ff @(posedge clk) begin
    if (way_q == NONE) begin
      if (state_q == PASS) way_q <= STORE;
      else if (rx.tvalid && reflect_q && !receiving) way_q <= head.peer_port == head.own_port ? IGNORE : BACK;
    end else if (rx_ends) way_q <= NONE;
    reflected_q <= reflected_q + 32'(rx_ends && way_q == BACK);
    ignored_q   <= ignored_q + 32'(rx_ends && way_q == IGNORE);
    if (rst) begin
      way_q       <= NONE;
      reflected_q <= '0;
      ignored_q   <= '0;
    end
  end

  // ---- what is sent ----
  logic malformed;
  assign to_send.tvalid = words.tvalid && state_q == SENDING;
  assign to_send.tdata  = words.tdata;
  assign to_send.tkeep  = words.tkeep;
  assign to_send.tlast  = words.tlast;
  assign to_send.tuser  = 1'b0;
  assign words.tready   = state_q == SENDING ? to_send.tready : state_q == WANT;
  reflect_packets #(.DATA_W(DATA_W)) packets (.clk, .rst, .in(to_send), .out(leaving[1]), .bad(malformed));
  axis_arbiter #(.DATA_W(DATA_W), .N(2)) turns (.clk, .rst, .in(leaving), .out(tx));

  // ---- jobs ----
  assign job.ready  = state_q == COLLECT;
  assign done.valid = state_q == ANSWER;
  assign done.data  = '{tag: region_q[0].tag, code: code_q};
  // Behind the window of a socket neither the target nor the key of a transfer is used.
  assign read_cmd.valid  = state_q == ASK;
  assign read_cmd.data   = '{addr: region_q[0].addr, length: sends ? region_q[0].size[31:0] : 32'(COUNT_BYTES), default: '0};
  assign write_cmd.valid = state_q == TAKE || state_q == COUNT;
  assign write_cmd.data  = state_q == TAKE ? '{addr: to_q, length: 32'(HEADER_BYTES) + 32'(head.length), default: '0}
                                           : '{addr: region_q[0].addr, length: 32'(COUNT_BYTES), default: '0};
  assign stored.tvalid   = state_q == PUT || (rx.tvalid && way_q == STORE);
  assign stored.tdata    = state_q == PUT ? DATA_W'(came_q) : rx.tdata;
  assign stored.tkeep    = state_q == PUT ? 'hf : rx.tkeep;
  assign stored.tlast    = state_q == PUT || rx.tlast;
  assign stored.tuser    = 1'b0;
  assign written.ready   = 1'b1;

  always_ff @(posedge clk) begin
    pending_q <= pending_q + 32'(write_cmd.valid && write_cmd.ready) - 32'(written.valid);
    if (written.valid && written.data.error) code_q <= RESULT_MEMORY_ERROR;
    unique case (state_q)
      COLLECT: begin
        came_q <= '0;
        if (job.valid) begin
          if (regions_q < 8'd2) region_q[regions_q[0]] <= job.data;
          if (regions_q != '1) regions_q <= regions_q + 1'b1;
          if (job.data.last) state_q <= CHECK;
        end
      end
      CHECK: begin
        code_q  <= RESULT_SUCCESS;
        to_q    <= region_q[1].addr;
        room_q  <= region_q[1].size;
        state_q <= ASK;
        if (sends) begin
          if (regions_q != 8'd1 || region_q[0].size[SIZE_W-1:32] != '0) begin
            code_q  <= RESULT_BAD_ARGUMENTS;
            state_q <= ANSWER;
          end else if (region_q[0].size == '0) state_q <= ANSWER;
        end else if (regions_q != 8'd2) begin
          code_q  <= RESULT_BAD_ARGUMENTS;
          state_q <= ANSWER;
        end else if (region_q[0].size < region_size_t'(COUNT_BYTES) || region_q[1].size < LONGEST) begin
          code_q  <= RESULT_REGION_TOO_SMALL;
          state_q <= ANSWER;
        end
      end
      ASK: if (read_cmd.ready) state_q <= sends ? SENDING : WANT;
      SENDING:
      if (words.tvalid && words.tready && words.tlast) begin
        if (malformed) code_q <= RESULT_BAD_ARGUMENTS;
        if (words.tuser) code_q <= RESULT_MEMORY_ERROR;
        state_q <= ANSWER;
      end
      WANT:
      if (words.tvalid) begin
        want_q <= words.tdata[31:0];
        if (words.tuser) code_q <= RESULT_MEMORY_ERROR;
        state_q <= words.tuser ? ANSWER : LISTEN;
      end
      LISTEN:
      if (came_q == want_q) state_q <= COUNT;
      else if (way_q == NONE && rx.tvalid) state_q <= occupies <= room_q ? TAKE : COUNT;
      TAKE:
      if (write_cmd.ready) begin
        to_q    <= to_q + addr_t'(occupies);
        room_q  <= room_q - occupies;
        came_q  <= came_q + 1'b1;
        state_q <= PASS;
      end
      PASS: if (rx_ends) state_q <= LISTEN;
      COUNT: if (write_cmd.ready) state_q <= PUT;
      PUT: if (stored.tready) state_q <= SETTLE;
      SETTLE: if (pending_q == '0) state_q <= ANSWER;
      default: begin
        regions_q <= '0;
        if (done.ready) state_q <= COLLECT;
      end
    endcase
    if (rst) begin
      state_q   <= COLLECT;
      regions_q <= '0;
      pending_q <= '0;
    end
  end

  // ---- registers ----
  logic        write;
  logic [11:0] at;
  logic [31:0] wdata, rdata;
  always_comb begin
    unique case (at)
      AT_CONTROL:   rdata = 32'(reflect_q);
      AT_REFLECTED: rdata = reflected_q;
      AT_IGNORED:   rdata = ignored_q;
      default:      rdata = '0;
    endcase
  end
  always_ff @(posedge clk) begin
    if (rst) reflect_q <= 1'b0;
    else if (write && at == AT_CONTROL) reflect_q <= wdata[0];
  end
  axil_access access (
      .clk, .rst, .bus(ctrl), .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata, .idle()
  );

  // ---- unused ports ----
  kernel_no_rdma no_rdma (.wqe, .cqe);
  kernel_no_connections no_connections (.connect, .conn);
  kernel_no_bus no_bus (.bus);
  kernel_no_messages no_messages (.msg_tx, .msg_rx);

  logic unused_ok;
  assign unused_ok = &{1'b0, wdata, head, rx.tuser};
endmodule
