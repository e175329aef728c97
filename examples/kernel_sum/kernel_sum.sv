// SPDX-License-Identifier: Apache-2.0

// Function 32: adds up the 32-bit words (little-endian, modulo 2^32) of region 0 and writes the sum to region 1.
// One beat a cycle; the sum is written about DATA_W / 32 + 5 cycles after the last beat. RESULT_BAD_ARGUMENTS unless there are two
// regions and the first is whole words, RESULT_REGION_TOO_SMALL if the sum does not fit, RESULT_MEMORY_ERROR if memory
// answers with an error.
module kernel_sum
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_sum_pkg::*;
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
  localparam int unsigned LANES = DATA_W / 32;

  // Who this kernel is: the socket shows it to callers and gives it no other function.
  assign identity = IDENTITY;

  // What it does not use.
  kernel_no_registers no_registers (.clk, .rst, .ctrl);
  kernel_no_network no_network (.rx, .tx, .wqe, .cqe, .connect, .conn, .msg_tx, .msg_rx);
  kernel_no_bus no_bus (.bus);

  // How it reaches memory: one engine reads, one writes, together they are a port.
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) read_mem (), write_mem ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) written ();
  axis_if #(.DATA_W(DATA_W)) words (), sum ();
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) reader (
      .clk, .rst, .cmd(read_cmd), .mem(read_mem), .data(words), .idle()
  );
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W)) writer (
      .clk, .rst, .cmd(write_cmd), .data(sum), .mem(write_mem), .done(written), .idle()
  );
  axi_join port (.reader(read_mem), .writer(write_mem), .out(mem));

  typedef enum logic [2:0] {
    COLLECT,   // the regions of a job
    ASK,       // memory for region 0
    ADD,
    FOLD,      // one lane a cycle
    WRITE,     // the command, then
    SEND,      // its data
    WAIT,      // until the sum is visible
    ANSWER
  } state_e;

  state_e                   state_q;
  job_t [1:0]               region_q;
  logic [7:0]               count_q;
  logic [6:0]               code_q;
  logic [LANES-1:0][31:0]   lane_q;
  logic [$clog2(LANES)-1:0] fold_q;
  logic [31:0]              sum_q;
  logic                     two_regions, fits;

  // A transfer has less than 2^32 bytes: this kernel makes one.
  assign two_regions = count_q == 8'd2 && region_q[0].size[1:0] == '0 && region_q[0].size[SIZE_W-1:32] == '0;
  assign fits        = region_q[1].size >= region_size_t'(4);

  assign job.ready       = state_q == COLLECT;
  assign done.valid      = state_q == ANSWER;
  assign done.data       = '{tag: region_q[0].tag, code: code_q};
  // Behind the window of a socket neither the target nor the key of a transfer is used.
  assign read_cmd.valid  = state_q == ASK && two_regions && fits;
  assign read_cmd.data   = '{addr: region_q[0].addr, length: region_q[0].size[31:0], default: '0};
  assign words.tready    = state_q == ADD;
  assign write_cmd.valid = state_q == WRITE;
  assign write_cmd.data  = '{addr: region_q[1].addr, length: 32'd4, default: '0};
  assign sum.tvalid      = state_q == SEND;
  assign sum.tdata       = DATA_W'(sum_q);
  assign sum.tkeep       = 'hf;
  assign sum.tlast       = 1'b1;
  assign sum.tuser       = 1'b0;
  assign written.ready   = 1'b1;

  always_ff @(posedge clk) begin
    if (rst) begin
      state_q <= COLLECT;
      count_q <= '0;
    end else begin
      unique case (state_q)
        COLLECT:
        if (job.valid) begin
          if (count_q < 8'd2) region_q[count_q[0]] <= job.data;
          if (count_q != '1) count_q <= count_q + 1'b1;
          if (job.data.last) state_q <= ASK;
        end
        ASK: begin
          lane_q <= '0;
          sum_q  <= '0;
          fold_q <= '0;
          code_q <= RESULT_SUCCESS;
          if (!two_regions) begin
            code_q  <= RESULT_BAD_ARGUMENTS;
            state_q <= ANSWER;
          end else if (!fits) begin
            code_q  <= RESULT_REGION_TOO_SMALL;
            state_q <= ANSWER;
          end else if (read_cmd.ready) begin
            state_q <= region_q[0].size == '0 ? FOLD : ADD;
          end
        end
        ADD:
        if (words.tvalid) begin
          for (int unsigned i = 0; i < LANES; i++) if (words.tkeep[4*i]) lane_q[i] <= lane_q[i] + words.tdata[32*i+:32];
          if (words.tlast && words.tuser) code_q <= RESULT_MEMORY_ERROR;
          if (words.tlast) state_q <= words.tuser ? ANSWER : FOLD;
        end
        FOLD: begin
          sum_q  <= sum_q + lane_q[fold_q];
          fold_q <= fold_q + 1'b1;
          if (fold_q == '1) state_q <= WRITE;
        end
        WRITE: if (write_cmd.ready) state_q <= SEND;
        SEND: if (sum.tready) state_q <= WAIT;
        WAIT:
        if (written.valid) begin
          if (written.data.error) code_q <= RESULT_MEMORY_ERROR;
          state_q <= ANSWER;
        end
        ANSWER: begin
          count_q <= '0;
          if (done.ready) state_q <= COLLECT;
        end
        default: state_q <= COLLECT;
      endcase
    end
  end
endmodule
