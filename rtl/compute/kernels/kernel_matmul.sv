// SPDX-License-Identifier: Apache-2.0

// Function 16: C = A * B, row-major matrices of int32 (modulo 2^32) or float32 (IEEE 754: each product and each sum rounded
// to nearest even, summed over ascending k from +0; NaNs are 0x7fc00000). Parameters of the call: region 0 the arguments
// (matmul_pkg::args_t), 1 A (m x k), 2 B (k x n), 3 C (m x n). Any shape that fits its regions; all is checked first.
//
// A systolic array of ROWS x COLS cells, each starting a multiplication in every cycle; A, B and C are double-buffered, so
// that loading and storing hide behind the array. B stays in the buffer for all of A if k is at most CHUNK_K.
// Latency: m/ROWS * n/PANEL * k * 8 cycles (both quotients rounded up), and some 230 at a memory latency of 40.
module kernel_matmul
  import memory_pkg::*;
  import compute_pkg::*;
  import kernel_matmul_pkg::*;
  import matmul_pkg::*;
#(
    parameter int unsigned DATA_W  = 512,
    parameter int unsigned ID_W    = 4,
    parameter int unsigned ROWS    = 4,
    parameter int unsigned COLS    = 4,
    parameter int unsigned CHUNK_K = 256
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
  localparam int unsigned PANEL = COLS * SLOTS;
  localparam int unsigned BUFFER = 2 * CHUNK_K;
  localparam int unsigned REGIONS = 4;
  localparam int unsigned ROWS_IN_FLIGHT = 64;
  localparam int unsigned WRITES_W = 16;

  if (DATA_W > 512) begin : g_bad_width
    $fatal(1, "the argument block takes a beat or more");
  end

  assign identity = IDENTITY;

  // ---- the job ----
  typedef enum logic [2:0] {
    COLLECT,   // regions
    ASK,       // for the arguments
    READ,
    CHECK,
    SIZES,     // of A, B, C
    RUN,
    ANSWER
  } state_e;

  typedef struct packed {
    addr_t        addr;
    region_size_t size;
  } region_t;

  state_e                      state_q;
  region_t [REGIONS-1:0]       regions_q;
  logic [7:0]                  count_q;          // parameters of the job
  tag_t                        tag_q;
  logic [6:0]                  code_q;
  logic                        start_q, error_q, float32_q, stored;
  logic [511:0]                args_bits;
  args_t                       args;
  shape_t                      shape;
  logic [WRITES_W-1:0]         writes_q;         // rows of C not visible yet

  assign args      = args_t'(args_bits);
  assign job.ready = state_q == COLLECT;
  assign done.valid = state_q == ANSWER;
  assign done.data  = '{tag: tag_q, code: code_q};

  always_comb begin
    shape.float32 = float32_q;
    shape.a       = regions_q[1].addr;
    shape.b       = regions_q[2].addr;
    shape.c       = regions_q[3].addr;
    shape.m       = args.m;
    shape.n       = args.n;
    shape.k       = args.k;
  end

  // One product for each matrix, one after another: 2 cycles to multiply, one to look.
  logic [1:0]  matrix_q;                         // region looked at: 1, 2, 3
  logic [1:0]  phase_q;
  logic [31:0] x_q, y_q;
  logic [63:0] elements_q;
  logic        too_small;
  assign too_small = elements_q[63:SIZE_W-2] != '0 || {elements_q[SIZE_W-3:0], 2'b00} > regions_q[matrix_q].size;

  logic args_loaded, load_error, fetched;

  always_ff @(posedge clk) begin
    start_q <= 1'b0;
    if (rst) begin
      state_q <= COLLECT;
      count_q <= '0;
      error_q <= 1'b0;
    end else begin
      error_q <= state_q != COLLECT && (error_q || load_error || (written.valid && written.data.error));
      unique case (state_q)
        COLLECT:
        if (job.valid) begin
          tag_q <= job.data.tag;
          if (!job.data.internal_) begin
            if (count_q < 8'(REGIONS)) regions_q[count_q[1:0]] <= '{addr: job.data.addr, size: job.data.size};
            if (count_q != '1) count_q <= count_q + 1'b1;
          end
          if (job.data.last) state_q <= ASK;
        end
        ASK: begin
          code_q <= count_q != 8'(REGIONS) ? RESULT_BAD_ARGUMENTS : RESULT_REGION_TOO_SMALL;
          if (count_q != 8'(REGIONS) || regions_q[0].size < region_size_t'(ARGS_BYTES)) state_q <= ANSWER;
          else if (fetched) state_q <= READ;
        end
        READ: if (args_loaded) state_q <= CHECK;
        CHECK: begin
          matrix_q  <= 2'd1;
          float32_q <= args.dtype == DTYPE_FLOAT32;
          phase_q   <= '0;
          x_q       <= args.m;
          y_q       <= args.k;
          code_q    <= error_q ? RESULT_MEMORY_ERROR : RESULT_BAD_ARGUMENTS;
          if (error_q || args.magic != ARGS_MAGIC || args.dtype > DTYPE_FLOAT32 || args.flags != '0 || args.reserved != '0
              || args.m == '0 || args.n == '0 || args.k == '0) state_q <= ANSWER;
          else state_q <= SIZES;
        end
        SIZES: begin
          phase_q    <= phase_q + 1'b1;
          elements_q <= 64'(x_q) * 64'(y_q);
          if (phase_q == 2'd2) begin
            phase_q  <= '0;
            matrix_q <= matrix_q + 1'b1;
            x_q      <= matrix_q == 2'd1 ? args.k : args.m;
            y_q      <= args.n;
            code_q   <= RESULT_REGION_TOO_SMALL;
            if (too_small) begin
              state_q <= ANSWER;
            end else if (matrix_q == 2'd3) begin
              state_q <= RUN;
              start_q <= 1'b1;
            end
          end
        end
        RUN:
        if (!start_q && stored) begin
          code_q  <= error_q ? RESULT_MEMORY_ERROR : RESULT_SUCCESS;
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

  // ---- memory to buffers ----
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) read_mem (), write_mem ();
  stream_if #(.T(fetch_t)) fetch[3] ();
  stream_if #(.T(fetch_t)) next ();
  stream_if #(.T(fetch_t)) next_fork[2] ();
  stream_if #(.T(fetch_t)) note ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  axis_if #(.DATA_W(DATA_W)) loaded ();
  logic keep, a_loaded, b_loaded, a_freed, reader_idle, none_noted;
  logic [$clog2(BUFFER):0] b_freed;

  assign keep = shape.k <= CHUNK_K;

  assign fetch[0].valid = state_q == ASK && count_q == 8'(REGIONS) && regions_q[0].size >= region_size_t'(ARGS_BYTES);
  assign fetch[0].data  = '{
      cmd: '{addr: regions_q[0].addr, length: ARGS_BYTES, default: '0}, place: TO_ARGS, row: '0, last: 1'b1
  };
  assign fetched        = fetch[0].ready;

  matmul_fetch_a #(.ROWS(ROWS), .PANEL(PANEL), .CHUNK_K(CHUNK_K)) fetch_a (
      .clk, .rst, .start(start_q), .shape, .freed(a_freed), .fetch(fetch[1])
  );
  matmul_fetch_b #(.ROWS(ROWS), .PANEL(PANEL), .BUFFER(BUFFER)) fetch_b (
      .clk, .rst, .start(start_q), .shape, .keep, .freed(b_freed), .fetch(fetch[2])
  );
  stream_arbiter #(.T(fetch_t), .N(3)) arbiter (.clk, .rst, .in(fetch), .last('1), .out(next));
  stream_fork #(.T(fetch_t), .N(2)) both (.clk, .rst, .in(next), .out(next_fork));
  stream_fifo #(.T(fetch_t), .DEPTH(ROWS_IN_FLIGHT)) notes (.clk, .rst, .in(next_fork[1]), .out(note), .empty(none_noted));
  assign read_cmd.valid     = next_fork[0].valid;
  assign read_cmd.data      = next_fork[0].data.cmd;
  assign next_fork[0].ready = read_cmd.ready;
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W)) reader (
      .clk, .rst, .cmd(read_cmd), .mem(read_mem), .data(loaded), .idle(reader_idle)
  );

  // ---- array ----
  step_t                      step, step_q, step_qq;
  logic                       read_half, complete, bank_freed, drain, drain_bank;
  logic [$clog2(CHUNK_K)-1:0] read_k;
  logic [$clog2(BUFFER)-1:0]  read_row;
  logic [ROWS-1:0][31:0]      west;
  logic [COLS-1:0][31:0]      north, drained;
  logic [$clog2(ROWS)-1:0]    drain_row;
  slot_t                      drain_slot;

  matmul_buffers #(.DATA_W(DATA_W), .ROWS(ROWS), .COLS(COLS), .CHUNK_K(CHUNK_K), .BUFFER(BUFFER)) buffers (
      .clk, .rst, .clear(start_q), .note, .data(loaded), .args(args_bits), .args_loaded, .a_loaded, .b_loaded, .error(load_error),
      .read(step.valid), .read_slot(step.slot), .read_half, .read_k, .read_row, .west, .north
  );
  matmul_sequencer #(.ROWS(ROWS), .PANEL(PANEL), .CHUNK_K(CHUNK_K), .BUFFER(BUFFER)) sequencer (
      .clk, .rst, .start(start_q), .shape, .keep, .a_loaded, .b_loaded, .a_freed, .b_freed, .bank_freed, .step, .read_half,
      .read_k, .read_row
  );
  always_ff @(posedge clk) begin
    step_q  <= rst ? '0 : step;     // the buffers take 2 cycles
    step_qq <= rst ? '0 : step_q;
  end
  matmul_array #(.ROWS(ROWS), .COLS(COLS)) cells (
      .clk, .rst, .float32(shape.float32), .step(step_qq), .west, .north, .complete, .drain, .drain_bank, .drain_row,
      .drain_slot, .drained
  );

  // ---- accumulators to memory ----
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(dma_done_t)) written ();
  axis_if #(.DATA_W(32 * COLS)) results (), rows ();
  axis_if #(.DATA_W(DATA_W)) stores ();
  logic store_active, writer_idle;

  matmul_store #(.ROWS(ROWS), .COLS(COLS), .PANEL(PANEL)) store (
      .clk, .rst, .start(start_q), .shape, .complete, .bank_freed, .drain, .drain_bank, .drain_row, .drain_slot, .drained,
      .cmd(write_cmd), .data(results), .active(store_active)
  );
  axis_slice #(.DATA_W(32 * COLS)) slice (.clk, .rst, .in(results), .out(rows));
  axis_resize #(.IN_W(32 * COLS), .OUT_W(DATA_W)) resize (.clk, .rst, .in(rows), .out(stores));
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W)) writer (
      .clk, .rst, .cmd(write_cmd), .data(stores), .mem(write_mem), .done(written), .idle(writer_idle)
  );
  assign written.ready = 1'b1;
  assign stored        = !store_active && writes_q == '0;
  always_ff @(posedge clk) begin
    if (rst) writes_q <= '0;
    else writes_q <= writes_q + WRITES_W'(write_cmd.valid && write_cmd.ready) - WRITES_W'(written.valid);
  end

  axi_join port (.reader(read_mem), .writer(write_mem), .out(mem));

  kernel_no_registers no_registers (.clk, .rst, .ctrl);
  kernel_no_network no_network (.rx, .tx, .wqe, .cqe, .connect, .conn, .msg_tx, .msg_rx);
  kernel_no_bus no_bus (.bus);

  logic unused_ok;
  assign unused_ok = &{1'b0, job.data.function_code, job.data.user, job.data.input_, job.data.output_, reader_idle, writer_idle,
                       none_noted, next_fork[0].data};
endmodule
