// SPDX-License-Identifier: Apache-2.0

// Changes the kernel of a socket at run time. On a command it checks the record of the image, stops new jobs, waits for the running one,
// decouples the kernel and waits until no access of it is outstanding, has the image loaded, takes the kernel out of reset, compares what
// it says of itself with the record, and publishes its functions. An image that is not loaded, or does not say within START_CYCLES
// what its record says, is replaced by the former one. If that fails as well, the socket is dead until an image is activated: it
// has no functions and answers each job itself.
//
// Its registers are those of images in socket.rdl, by their addresses. `readable` and `writable` say whether they are now.
//
// `load` is the interface of a controller for partial reconfiguration: a request, then exactly one answer in a bounded time, during all of
// which the kernel is decoupled and in reset.
//
// Images behind those of the build are uploaded ones, a number for each place of the store: they exist while `uploaded` says that they were
// verified. `used` keeps their places from another upload: of the one that is there, and of the one of a command under way. A place that is
// written nevertheless, because both began in the same cycle, is no longer `uploaded` in the next one, and that is looked at before the drain.
//
// Latency of a swap when nothing runs, from the write of COMMAND to its end: 59 cycles and the time of the controller; 43 for a
// roll back. No job can begin for 43 of these and that time. After reset the first image, which is there, is checked and published: 32 cycles.
module socket_swap
  import compute_pkg::*;
  import socket_regs_pkg::*;
  import images_pkg::MAX_SLOTS;
#(
    parameter int unsigned IMAGES       = 2,    // of the build
    parameter int unsigned SLOTS        = 0,    // places for uploaded ones
    parameter int unsigned START_CYCLES = 256   // for a kernel to say what it is, after its reset
) (
    input  logic             clk,
    input  logic             rst,

    input  logic [11:0]      read_at,           // registers
    output logic [31:0]      value,
    output logic             readable,
    input  logic             write,
    input  logic [11:0]      write_at,
    input  logic [31:0]      wdata,
    output logic             writable,

    output image_t           record_image,      // record of an image,
    output record_word_t     record_at,
    input  logic [31:0]      record_word,       // a cycle later

    input  logic [MAX_SLOTS-1:0] uploaded,      // images in the places were verified, for this socket
    output logic [MAX_SLOTS-1:0] used,          // and may not be written

    input  kernel_identity_t identity,          // what the kernel says
    input  logic             busy,              // a job runs
    input  logic             quiet,             // no access of the kernel is outstanding
    output logic             hold,              // no job may begin
    output logic             cut_job,           // the running job is to be cut off
    output logic             cut,               // the kernel is decoupled and in reset
    stream_if.source         load,              // reconfigure_t
    stream_if.sink           loaded,            // logic: it failed
    input  image_t           kernel,            // the image of the build that has the kernel that is loaded

    output held_t            held,
    output kernel_identity_t published,         // what the socket says of itself
    output function_set_t    functions,
    output logic             idle
);
  if (IMAGES < 2 || IMAGES + SLOTS > MAX_IMAGES || SLOTS > MAX_SLOTS) begin : g_bad_images
    $fatal(1, "socket_swap: IMAGES must be from 2, and %0d with SLOTS", MAX_IMAGES);
  end

  localparam int unsigned WAIT_W = $clog2(START_CYCLES + 1);

  typedef enum logic [3:0] {
    READY,
    DIGEST,    // compare
    STOP,      // wait for the running job
    DRAIN,     // and for every access
    LOCATE,    // the bitstream
    LOAD,
    LOADING,
    START      // compare the identity
  } state_e;

  state_e            state_q;
  record_word_t      word_q;         // of the record,
  logic              there_q;        // which is in `record_word` now
  image_t            select_q, target_q, former_q;
  record_word_t      select_word_q;
  logic              live_q, has_former_q, cut_job_q;
  logic              returning_q;    // `target_q` was there before: nothing is left to try
  image_error_e      error_q;
  logic [15:0]       finished_q;
  logic [WAIT_W-1:0] wait_q;
  logic [95:0]       place_q;        // address and length
  image_t            active_q, kernel_q;
  kernel_identity_t  published_q;
  function_set_t     functions_q;

  function automatic logic exists(image_t image, logic [MAX_SLOTS-1:0] there);
    logic found;
    found = image < image_t'(IMAGES);
    for (int unsigned i = 0; i < SLOTS; i++) if (there[i] && image == image_t'(IMAGES + i)) found = 1'b1;
    return found;
  endfunction

  // ---- registers ----
  wire ready = state_q == READY;
  wire to_command = write_at == AT_IMAGE_COMMAND;
  wire to_digest = write_at inside {[AT_IMAGE_DIGEST : AT_IMAGE_DIGEST + 12'(4 * IMAGE_DIGEST_WORDS - 1)]};
  wire commands = write && writable && to_command && ready;
  wire cuts = wdata == 32'(IMAGE_CUT);
  wire names = write && writable && to_digest;

  (* ram_style = "distributed" *) logic [31:0] digest[IMAGE_DIGEST_WORDS];
  always_ff @(posedge clk) if (names) digest[write_at[4:2]] <= wdata;

  always_comb begin
    readable = 1'b1;
    unique case (read_at)
      AT_IMAGES: value = {7'd0, has_former_q, former_q, active_q, 8'(IMAGES + SLOTS)};
      AT_IMAGE_SELECT: value = {19'd0, select_word_q, select_q};
      AT_IMAGE_RECORD: begin
        value    = exists(select_q, uploaded) ? record_word : '0;
        readable = ready;
      end
      AT_IMAGE_STATE: value = {finished_q, error_q, live_q, 3'd0, state_q};
      default: value = '0;
    endcase
  end
  assign writable = to_command ? ready ^ cuts : ready && (to_digest || write_at == AT_IMAGE_SELECT);

  // ---- records: a word every two cycles ----
  assign record_image = ready ? select_q : target_q;
  assign record_at    = ready ? select_word_q : word_q;
  wire same_digest = record_word == digest[word_q[2:0]];
  wire same_identity = record_word == identity_word(identity, word_q[3:0]);
  wire expired = wait_q == WAIT_W'(START_CYCLES);

  // ---- the command ----
  wire failed = state_q == LOADING && loaded.valid && loaded.data || state_q == START && expired;
  wire starts = state_q == START && there_q && same_identity && word_q == RECORD_IDENTITY_END && !expired;

  always_ff @(posedge clk) begin
    there_q <= !ready && !there_q;
    if (there_q) word_q <= word_q + 1'b1;
    wait_q <= state_q == START ? wait_q + 1'b1 : '0;
    if (state_q == LOCATE && there_q) place_q <= {record_word, place_q[95:32]};
    if (write && writable && write_at == AT_IMAGE_SELECT) {select_word_q, select_q} <= wdata[12:0];
    if (!ready && write && to_command && cuts) cut_job_q <= 1'b1;
    unique case (state_q)
      READY:
      if (commands) begin
        cut_job_q <= 1'b0;
        error_q   <= IMAGE_OK;
        word_q    <= RECORD_DIGEST;
        there_q   <= 1'b0;
        if (wdata == 32'(IMAGE_ACTIVATE) && exists(select_q, uploaded)) begin
          target_q <= select_q;
          state_q  <= DIGEST;
        end else if (wdata == 32'(IMAGE_ROLL_BACK) && has_former_q && exists(former_q, uploaded)) begin
          target_q <= former_q;
          state_q  <= STOP;
        end else begin
          finished_q <= finished_q + 1'b1;
          error_q    <= wdata == 32'(IMAGE_ACTIVATE) ? IMAGE_BAD_IMAGE : wdata == 32'(IMAGE_ROLL_BACK) ? IMAGE_NO_FORMER : IMAGE_BAD_COMMAND;
        end
      end
      DIGEST:
      if (there_q) begin
        if (!same_digest) begin
          state_q    <= READY;
          error_q    <= IMAGE_BAD_DIGEST;
          finished_q <= finished_q + 1'b1;
        end else if (word_q == RECORD_DIGEST_END) state_q <= STOP;
      end
      STOP:
      if (!exists(target_q, uploaded)) begin
        state_q    <= READY;
        error_q    <= IMAGE_BAD_IMAGE;
        finished_q <= finished_q + 1'b1;
      end else if (!busy) state_q <= DRAIN;
      DRAIN: begin
        word_q  <= RECORD_ADDR;
        there_q <= 1'b0;
        if (quiet) state_q <= LOCATE;
      end
      LOCATE: if (there_q && word_q == RECORD_LENGTH) state_q <= LOAD;
      LOAD: if (load.ready) state_q <= LOADING;
      LOADING:
      if (loaded.valid) begin
        word_q  <= RECORD_IDENTITY;
        there_q <= 1'b0;
        state_q <= START;
      end
      default: begin  // START
        if (there_q && !same_identity) word_q <= RECORD_IDENTITY;
        if (starts) begin
          published_q <= identity;
          functions_q <= kernel_functions(identity);
          live_q      <= 1'b1;
          active_q    <= target_q;
          kernel_q    <= kernel;
          if (!returning_q && live_q && target_q != active_q) begin
            former_q     <= active_q;
            has_former_q <= 1'b1;
          end
          returning_q <= 1'b0;
          finished_q  <= finished_q + 1'b1;
          state_q     <= READY;
        end
      end
    endcase
    if (failed) begin
      if (!returning_q) error_q <= state_q == START ? IMAGE_NO_IDENTITY : IMAGE_NOT_LOADED;
      target_q <= active_q;
      if (returning_q || !live_q) begin
        live_q      <= 1'b0;
        published_q <= '0;
        functions_q <= '0;
        returning_q <= 1'b0;
        finished_q  <= finished_q + 1'b1;
        state_q     <= READY;
      end else begin
        returning_q <= 1'b1;
        state_q     <= DRAIN;
      end
    end
    if (rst) begin
      state_q       <= START;
      word_q        <= RECORD_IDENTITY;
      there_q       <= 1'b0;
      select_q      <= '0;
      select_word_q <= '0;
      target_q      <= '0;
      active_q      <= '0;
      kernel_q      <= '0;
      former_q      <= '0;
      has_former_q  <= 1'b0;
      cut_job_q     <= 1'b0;
      returning_q   <= 1'b1;   // the first image is there
      live_q        <= 1'b0;
      error_q       <= IMAGE_OK;
      finished_q    <= '1;     // this is not a command
      published_q   <= '0;
      functions_q   <= '0;
    end
  end

  always_comb begin
    used = '0;
    for (int unsigned i = 0; i < SLOTS; i++) used[i] = live_q && active_q == image_t'(IMAGES + i) || !ready && target_q == image_t'(IMAGES + i);
  end

  assign load.valid   = state_q == LOAD;
  assign load.data    = '{image: target_q, addr: place_q[63:0], length: place_q[95:64]};
  assign loaded.ready = state_q == LOADING;

  wire decoupled = state_q inside {DRAIN, LOCATE, LOAD, LOADING};
  assign hold      = decoupled || state_q inside {STOP, START};
  assign cut       = decoupled || !live_q && state_q != START;
  assign cut_job   = state_q == STOP && cut_job_q;
  assign held      = '{live: live_q, image: active_q, kernel: kernel_q};
  assign published = published_q;
  assign functions = functions_q;
  assign idle      = ready;
endmodule
