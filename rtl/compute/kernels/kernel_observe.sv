// SPDX-License-Identifier: Apache-2.0

// Function 8 reads the registers of the device whose addresses region 0 lists, one after the other, and writes value and response of each
// into region 1. An address that is none of a word on the bus is answered as one that no register has, without an access.
//
// A register takes 3 cycles beside its access. Nothing is read from the bus while memory does not take what was.
module kernel_observe
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_observe_pkg::*;
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
  localparam int unsigned WORD_W = 32;
  localparam int unsigned ANSWER_W = 64;
  localparam int unsigned BUS_W = 20;         // bits of an address on the bus

  assign identity = IDENTITY;
  kernel_no_registers no_registers (.clk, .rst, .ctrl);
  kernel_no_network no_network (.rx, .tx, .wqe, .cqe, .connect, .conn, .msg_tx, .msg_rx);

  typedef enum logic [3:0] {
    COLLECT,   // the regions of a job
    CHECK,
    LOAD,      // region 0
    NEXT,      // address
    READ,      // until the bus takes the access
    WAIT,      // until it is answered
    STORE,     // region 1, once there is something
    PUT,       // the answer
    SETTLE,    // until all is visible
    ANSWER
  } state_e;

  // As region 1 has it.
  typedef struct packed {
    logic [31:0] response;
    logic [31:0] value;
  } answer_t;

  state_e      state_q;
  job_t [1:0]  region_q;
  logic [7:0]  regions_q;
  logic [6:0]  code_q;
  logic [31:0] at_q;
  logic        last_q, storing_q;             // the last address; the command to write was given
  answer_t     answer_q;

  // ---- memory ----
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) read_mem (), write_mem ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) written ();
  axis_if #(.DATA_W(DATA_W)) loaded (), stored ();
  axis_if #(.DATA_W(WORD_W)) addresses ();
  axis_if #(.DATA_W(ANSWER_W)) answers ();
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) reader (.clk, .rst, .cmd(read_cmd), .mem(read_mem), .data(loaded), .idle());
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W)) writer (
      .clk, .rst, .cmd(write_cmd), .data(stored), .mem(write_mem), .done(written), .idle()
  );
  axi_join port (.reader(read_mem), .writer(write_mem), .out(mem));
  axis_resize #(.IN_W(DATA_W), .OUT_W(WORD_W)) to_words (.clk, .rst, .in(loaded), .out(addresses));
  axis_resize #(.IN_W(ANSWER_W), .OUT_W(DATA_W)) to_beats (.clk, .rst, .in(answers), .out(stored));

  wire [31:0] length = region_q[0].size[31:0];
  assign read_cmd.valid   = state_q == LOAD;
  assign read_cmd.data    = '{addr: region_q[0].addr, length: length, default: '0};
  assign write_cmd.valid  = state_q == STORE;
  assign write_cmd.data   = '{addr: region_q[1].addr, length: length << 1, default: '0};
  assign written.ready    = 1'b1;
  assign addresses.tready = state_q == NEXT;
  assign answers.tvalid   = state_q == PUT;
  assign answers.tdata    = answer_q;
  assign answers.tkeep    = '1;
  assign answers.tlast    = last_q;
  assign answers.tuser    = 1'b0;

  // ---- registers of the device: it writes none ----
  assign bus.araddr  = at_q[BUS_W-1:0];
  assign bus.arvalid = state_q == READ;
  assign bus.rready  = state_q == WAIT;
  assign bus.awaddr  = '0;
  assign bus.awvalid = 1'b0;
  assign bus.wdata   = '0;
  assign bus.wstrb   = '0;
  assign bus.wvalid  = 1'b0;
  assign bus.bready  = 1'b1;

  wire none = |addresses.tdata[31:BUS_W] || |addresses.tdata[1:0];

  // ---- jobs ----
  assign job.ready  = state_q == COLLECT;
  assign done.valid = state_q == ANSWER;
  assign done.data  = '{tag: region_q[0].tag, code: code_q};

  always_ff @(posedge clk) begin
    if (written.valid && written.data.error) code_q <= RESULT_MEMORY_ERROR;
    unique case (state_q)
      COLLECT:
      if (job.valid) begin
        if (regions_q < 8'd2) region_q[regions_q[0]] <= job.data;
        if (regions_q != '1) regions_q <= regions_q + 1'b1;
        if (job.data.last) state_q <= CHECK;
      end
      CHECK: begin
        storing_q <= 1'b0;
        code_q    <= RESULT_SUCCESS;
        state_q   <= ANSWER;
        if (regions_q != 8'd2 || |region_q[0].size[1:0] || |region_q[0].size[SIZE_W-1:31]) code_q <= RESULT_BAD_ARGUMENTS;
        else if (region_q[1].size < region_q[0].size << 1) code_q <= RESULT_REGION_TOO_SMALL;
        else if (region_q[0].size != '0) state_q <= LOAD;
      end
      LOAD: if (read_cmd.ready) state_q <= NEXT;
      NEXT: begin
        at_q     <= addresses.tdata;
        last_q   <= addresses.tlast;
        answer_q <= '{response: 32'(AXI_DECERR), value: '0};
        if (addresses.tvalid) begin
          if (addresses.tlast && addresses.tuser) code_q <= RESULT_MEMORY_ERROR;
          state_q <= !none ? READ : storing_q ? PUT : STORE;
        end
      end
      READ: if (bus.arready) state_q <= WAIT;
      WAIT: begin
        answer_q <= '{response: 32'(bus.rresp), value: bus.rdata};
        if (bus.rvalid) state_q <= storing_q ? PUT : STORE;
      end
      STORE: begin
        storing_q <= 1'b1;
        if (write_cmd.ready) state_q <= PUT;
      end
      PUT: if (answers.tready) state_q <= last_q ? SETTLE : NEXT;
      SETTLE: if (written.valid) state_q <= ANSWER;
      default: begin
        regions_q <= '0;
        if (done.ready) state_q <= COLLECT;
      end
    endcase
    if (rst) begin
      state_q   <= COLLECT;
      regions_q <= '0;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, job.data, addresses.tkeep, region_q, bus.awready, bus.wready, bus.bvalid, bus.bresp};
endmodule
