// SPDX-License-Identifier: Apache-2.0

// Holds one kernel, the first of KERNELS, and isolates it: the kernel can access memory only through the window of its current job, by
// AXI bursts and by RDMA. A job that takes longer than `kernel_timeout_cycles` ends with RESULT_KERNEL_TIMEOUT, one that is cancelled with
// RESULT_CANCELLED, one whose kernel writes outside of its window with RESULT_MEMORY_ERROR; the kernel is then decoupled from memory and
// reset; connections that it has opened are closed. With several IMAGES software can put another of KERNELS in the kernel's place (see
// socket_swap). A job of a function that the kernel does not have is not passed to it: RESULT_UNKNOWN_FUNCTION; with several images it was
// called when the socket had the function, and another socket may have it: RESULT_SOCKET_UNAVAIL. There is exactly one
// `done` for each job, after all writes of the kernel are visible to every reader and all of its work requests are complete; it
// carries the job's tag. Regions that the kernel does not take are discarded.
//
// Latency: job 1 cycle, the kernel's done to `done` 2 cycles once memory and RDMA are idle. One job at a time: `job` stops until
// the answer to the previous one is taken. A kernel that is decoupled may have work requests outstanding: `abandon` has them
// flushed (see roce_clients), and the job ends when they are complete. The kernel's streams go to its port for datagrams (datagrams_plane),
// whether a job runs or not, but while `streams_off`: it is decoupled, or has not said yet what it is. Likewise its accesses to the device's
// registers go to `bus` (socket_bus); the job of a kernel that is decoupled ends when none is under way. Its message ports are tied off:
// nothing is received, and transmit is never ready.
module socket
  import memory_pkg::*;
  import compute_pkg::*;
  import socket_regs_pkg::*;
  import roce_pkg::*;
  import images_pkg::*;
  import datagrams_pkg::datagram_settings_t;
#(
    parameter int unsigned   IMAGES  = 1,
    parameter int unsigned   SLOTS   = 0,             // places for uploaded images, if it has several
    parameter kernel_texts_t KERNELS = kernel_texts_t'(128'("increment")),   // of the images, the first one lowest
    parameter int unsigned   DATA_W  = 512,
    parameter int unsigned   ID_W    = 4,
    parameter int unsigned   LOAD_CYCLES = 2500,     // see socket_images
    parameter bit            RDMA    = 1'b1,         // its kernel may start RDMA; else each work request is refused
    parameter int unsigned   CONNECTIONS = 0,        // that its kernel can open, MAX_KERNEL_CONNECTIONS at most
    parameter bit            DATAGRAMS = 1'b0,       // it has a port for them
    parameter bit            REGISTERS = 1'b0        // and one to the device's registers
) (
    input  logic            clk,
    input  logic            rst,
    input  logic [7:0]      page,                    // of its registers on the control bus; constant
    input  logic [19:0]     next_block,              // address of the block of registers behind its own; constant
    input  logic [47:0]     kernel_timeout_cycles,   // 0: none
    input  logic            cancel,                  // while high, the job is aborted
    stream_if.sink          job,                     // job_t: one packet of regions a job
    input  window_t         window,                  // the job's; stable from its first region to its done
    stream_if.source        done,                    // done_t
    stream_if.source        wqe,                     // rdma_wqe_t: RDMA that the kernel starts itself
    stream_if.sink          cqe,                     // rdma_cqe_t
    output logic            abandon,                 // the kernel is decoupled: its outstanding work requests are to be flushed
    stream_if.source        connect,                 // connect_t: connections of the kernel (see socket_connections)
    stream_if.sink          conn,                    // conn_event_t
    stream_if.source        conn_answer,             // conn_answer_t
    stream_if.source        close,                   // qpn_t
    input  logic            rdma_settled,            // nothing of `wqe` is outstanding, from the cycle after it was taken on
    axi_if.master           mem,
    axis_if.sink            rx,                      // packets of datagrams_pkg: to the kernel,
    axis_if.source          tx,                      // from it
    output logic            streams_off,
    output datagram_settings_t datagrams,
    output logic [$clog2(datagrams_pkg::COUNTS)-1:0] counter_at,   // of datagrams
    input  logic [31:0]     counter,                 // same cycle
    axil_if.slave           ctrl,                    // see socket_registers
    axil_if.master          bus,                     // the device's registers: 20 bits of address
    input  logic [MAX_SLOTS-1:0] uploaded,           // places whose image was verified for this socket,
    output logic [MAX_SLOTS-1:0] used,               // those that it uses,
    output image_slot_t     record_slot,             // and a word of a record,
    output record_word_t    record_at,
    input  logic [31:0]     store_word,              // a cycle later
    stream_if.source        fetch,                   // store_word_t: a word of the store
    stream_if.sink          fetched,                 // store_answer_t
    output function_set_t   functions,               // that can be called; constant with one image
    output held_t           held,                    // the image that has them
    output logic            paused,                  // jobs wait: the kernel is being replaced
    output logic            idle                     // no job, no access
);
  typedef enum logic [2:0] {
    IDLE,
    RUN,       // the kernel has the job
    FINISH,    // it has answered, or never got it: wait for memory and RDMA, discard the regions that it did not take
    CUT,       // given up: the kernel is in reset and cut off, the same waits
    ANSWER
  } state_e;

  state_e      state_q;
  logic        known, start, job_taken, memory_idle, rdma_idle, quiet, expired, given_up, last_seen_q;
  logic        violates, violated_q;
  tag_t        tag_q;
  logic [6:0]  code_q;
  logic [47:0] cycles_q;
  logic [31:0] last_cycles_q, jobs_q, timeouts_q, refused_q;
  logic        cut, kernel_rst, read_violation, write_violation, rdma_violation, peer_refused, registers_idle, connections_idle;
  logic        bus_read, bus_write, bus_refused, bus_settled, bus_idle;
  window_t     software_window, rdma_window;
  kernel_peers_t peers;
  logic [MAX_KERNEL_CONNECTIONS-1:0] connected;

  kernel_identity_t kernel_identity, identity;   // of the kernel, of the socket
  logic             swap_cut, cut_job, swap_idle;

  stream_if #(.T(job_t)) kernel_job ();
  stream_if #(.T(done_t)) kernel_done ();
  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) kernel_mem ();
  axil_if kernel_ctrl (), kernel_bus ();

  // ---- jobs ----
  assign known = functions[job.data.function_code];
  assign start = state_q == IDLE && job.valid && !paused;

  assign kernel_job.valid = job.valid && !last_seen_q && state_q == RUN;   // a kernel may act on `valid` alone
  assign kernel_job.data  = job.data;
  assign job.ready = !last_seen_q && (state_q == FINISH || state_q == CUT || (state_q == RUN && kernel_job.ready));
  assign job_taken = job.valid && job.ready;

  assign kernel_done.ready = 1'b1;
  assign expired           = kernel_timeout_cycles != '0 && cycles_q >= kernel_timeout_cycles;
  assign violates          = write_violation && (state_q == RUN || state_q == FINISH);
  assign given_up          = expired || cancel || cut_job || violates;

  assign done.valid = state_q == ANSWER;
  assign done.data  = '{tag: tag_q, code: code_q};

  always_ff @(posedge clk) begin
    if (start) tag_q <= job.data.tag;
    violated_q <= state_q != IDLE && (violated_q || violates);
    if (rst) begin
      state_q       <= IDLE;
      last_seen_q   <= 1'b0;
      cycles_q      <= '0;
      last_cycles_q <= '0;
      jobs_q        <= '0;
      timeouts_q    <= '0;
      refused_q     <= '0;
    end else begin
      last_seen_q <= state_q != ANSWER && (last_seen_q || (job_taken && job.data.last));
      cycles_q    <= state_q == IDLE ? '0 : cycles_q + 1'b1;
      refused_q   <= refused_q + 32'(read_violation) + 32'(write_violation) + 32'(rdma_violation) + 32'(peer_refused) + 32'(bus_refused);
      unique case (state_q)
        IDLE:
        if (start) begin
          state_q <= known ? RUN : FINISH;
          code_q  <= IMAGES > 1 ? RESULT_SOCKET_UNAVAIL : RESULT_UNKNOWN_FUNCTION;
        end
        RUN:
        if (kernel_done.valid && !violates) begin
          state_q <= FINISH;
          code_q  <= kernel_done.data.code;
        end else if (given_up) begin
          state_q <= CUT;
        end
        FINISH:
        if (last_seen_q && quiet && !violates) state_q <= ANSWER;
        else if (given_up) state_q <= CUT;
        CUT: begin
          code_q <= violated_q ? RESULT_MEMORY_ERROR
                  : expired ? RESULT_KERNEL_TIMEOUT
                  : cut_job && !cancel ? RESULT_SOCKET_UNAVAIL : RESULT_CANCELLED;
          if (last_seen_q && quiet) begin
            state_q    <= ANSWER;
            timeouts_q <= timeouts_q + 32'(expired);
          end
        end
        ANSWER:
        if (done.ready) begin
          state_q       <= IDLE;
          jobs_q        <= jobs_q + 1'b1;
          last_cycles_q <= |cycles_q[47:32] ? '1 : cycles_q[31:0];
        end
        default: state_q <= IDLE;
      endcase
    end
  end

  // ---- memory ----
  axi_window #(.DATA_W(DATA_W), .ID_W(ID_W)) fence (
      .clk, .rst, .window(state_q == RUN ? window : '0), .decouple(cut), .socket(kernel_mem), .mem,
      .read_violation, .write_violation, .idle(memory_idle)
  );
  assign cut     = state_q == CUT || swap_cut;
  assign abandon = cut;
  assign quiet = memory_idle && rdma_idle && rdma_settled && (!cut || bus_settled);

  // ---- registers ----
  logic [11:0] images_read_at, images_write_at;
  logic [31:0] images_value, images_wdata;
  logic        images_readable, images_write, images_writable;
  socket_registers #(.CONNECTIONS(CONNECTIONS), .DATAGRAMS(DATAGRAMS), .REGISTERS(REGISTERS)) registers (
      .clk, .rst, .kernel_rst, .ctrl, .kernel(kernel_ctrl), .identity, .page, .next_block, .busy(state_q != IDLE), .cut,
      .outstanding(!rdma_settled), .jobs(jobs_q), .last_cycles(last_cycles_q), .timeouts(timeouts_q), .refused(refused_q),
      .images_read_at, .images_value, .images_readable, .images_write, .images_write_at, .images_wdata, .images_writable,
      .datagrams, .counter_at, .counter, .software_window, .peers, .connections(connected), .bus_read, .bus_write, .idle(registers_idle)
  );

  assign idle = state_q == IDLE && memory_idle && rdma_idle && registers_idle && swap_idle && connections_idle && bus_idle && !kernel_wqe.valid;

  // ---- the image ----
  image_t       record_image, region_kernel;
  logic [31:0]  record_word;
  stream_if #(.T(reconfigure_t)) load ();
  stream_if #(.T(logic)) loaded ();

  if (IMAGES > 1) begin : g_images
    socket_swap #(.IMAGES(IMAGES), .SLOTS(SLOTS)) swap (
        .clk, .rst, .read_at(images_read_at), .value(images_value), .readable(images_readable),
        .write(images_write), .write_at(images_write_at), .wdata(images_wdata), .writable(images_writable),
        .record_image, .record_at, .record_word, .uploaded, .used, .identity(kernel_identity), .busy(state_q != IDLE), .quiet,
        .hold(paused), .cut_job, .cut(swap_cut), .load, .loaded, .kernel(region_kernel), .held, .published(identity), .functions, .idle(swap_idle)
    );
  end else begin : g_one_image
    // There is one, it is live, and nothing can be changed.
    assign images_value    = images_read_at == AT_IMAGES ? 32'h01 : images_read_at == AT_IMAGE_STATE ? 32'h80 : '0;
    assign images_readable = 1'b1;
    assign images_writable = images_write_at != AT_IMAGE_COMMAND;
    assign record_image    = '0;
    assign record_at       = '0;
    assign used            = '0;
    assign paused          = 1'b0;
    assign cut_job         = 1'b0;
    assign swap_cut        = 1'b0;
    assign load.valid      = 1'b0;
    assign load.data       = '0;
    assign loaded.ready    = 1'b0;
    assign held            = '{live: 1'b1, image: '0, kernel: '0};
    assign identity        = kernel_identity;
    assign functions       = kernel_functions(kernel_identity);
    assign swap_idle       = 1'b1;
    wire unused = &{1'b0, images_write, images_wdata, record_word, load.ready, loaded.valid, loaded.data, uploaded, region_kernel};
  end

  // ---- the kernel ----
  axis_if #(.DATA_W(DATA_W)) msg_tx (), msg_rx ();
  stream_if #(.T(rdma_wqe_t)) kernel_wqe ();
  stream_if #(.T(rdma_cqe_t)) kernel_cqe ();
  stream_if #(.T(kernel_connect_t)) kernel_connect ();
  stream_if #(.T(kernel_conn_t)) kernel_conn ();

  assign kernel_rst    = rst || cut;
  assign msg_rx.tvalid = 1'b0;
  assign msg_rx.tdata  = '0;
  assign msg_rx.tkeep  = '0;
  assign msg_rx.tlast  = 1'b0;
  assign msg_rx.tuser  = 1'b0;
  assign msg_tx.tready = 1'b0;

  // A kernel that takes another's place talks to nobody before it is known.
  assign streams_off = kernel_rst || (paused && state_q == IDLE);

  // While no job runs, software owns the kernel.
  always_comb begin
    unique case (state_q)
      IDLE:    rdma_window = paused ? '0 : software_window;
      RUN:     rdma_window = window;
      default: rdma_window = '0;
    endcase
    if (!RDMA) rdma_window = '0;
  end
  socket_rdma rdma (
      .clk, .rst, .window(rdma_window), .cut, .kernel_wqe, .kernel_cqe, .wqe, .cqe,
      .violation(rdma_violation), .idle(rdma_idle)
  );

  if (CONNECTIONS != 0) begin : g_connections
    socket_connections #(.SLOTS(CONNECTIONS)) connections (
        .clk, .rst, .peers, .cut, .kernel_connect, .kernel_conn, .connect, .conn, .conn_answer, .close,
        .used(connected), .refused(peer_refused), .idle(connections_idle)
    );
  end else begin : g_connections
    socket_no_connections connections (.clk, .rst, .cut, .kernel_connect, .kernel_conn, .refused(peer_refused));
    assign connect.valid     = 1'b0;
    assign connect.data      = '0;
    assign conn.ready        = 1'b1;
    assign conn_answer.valid = 1'b0;
    assign conn_answer.data  = '0;
    assign close.valid       = 1'b0;
    assign close.data        = '0;
    assign connected         = '0;
    assign connections_idle  = 1'b1;
    wire unused = &{1'b0, peers, connect.ready, conn.valid, conn.data, conn_answer.ready, close.ready};
  end

  if (REGISTERS) begin : g_bus
    socket_bus registers_of_device (
        .clk, .rst, .kernel_rst, .off(streams_off), .may_read(bus_read), .may_write(bus_write), .kernel(kernel_bus), .bus,
        .refused(bus_refused), .settled(bus_settled), .idle(bus_idle)
    );
  end else begin : g_no_bus
    kernel_no_registers #(.RESP(AXI_SLVERR)) nobody (.clk, .rst(kernel_rst), .ctrl(kernel_bus));
    kernel_no_bus nothing (.bus);
    assign bus_refused = 1'b0;
    assign bus_settled = 1'b1;
    assign bus_idle    = 1'b1;
    wire unused = &{1'b0, bus_read, bus_write};
  end

  socket_images #(.IMAGES(IMAGES), .SLOTS(SLOTS), .KERNELS(KERNELS), .LOAD_CYCLES(LOAD_CYCLES), .DATA_W(DATA_W), .ID_W(ID_W)) region (
      .clk, .rst, .load, .loaded, .record_image, .record_at, .record_word, .kernel(region_kernel), .store_slot(record_slot), .store_word,
      .fetch, .fetched, .kernel_rst, .identity(kernel_identity), .ctrl(kernel_ctrl), .job(kernel_job), .done(kernel_done), .mem(kernel_mem),
      .rx, .tx, .wqe(kernel_wqe), .cqe(kernel_cqe), .connect(kernel_connect), .conn(kernel_conn), .bus(kernel_bus), .msg_tx, .msg_rx
  );

  logic unused_ok;
  assign unused_ok = &{1'b0, kernel_done.data.tag, msg_rx.tready, msg_tx.tdata, msg_tx.tkeep, msg_tx.tlast, msg_tx.tuser, msg_tx.tvalid};
endmodule
