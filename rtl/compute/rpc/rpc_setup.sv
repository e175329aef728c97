// SPDX-License-Identifier: Apache-2.0

// Region set-up (NAAICE MRSP): reads an AAR, allocates memory, registers the keys, writes and sends the A, or an ERR. Also frees the
// resources of the contexts of a closed connection. One step at a time; set-ups and releases alternate, each in order, so a set-up waits for at most one
// release for itself and for each set-up before it. A set-up for which no memory or key is free is retried after each pending release, then
// refused.
//
//   AAR in 32-bit words -> table of regions with their offsets, one record each 6 cycles -> the connection's receive is posted
//   again -> an earlier set-up is released -> one extent for all regions -> `extent`, cleared while the next job is processed
//   `cleared` -> a key for each parameter, followed by its advert -> SEND, when the answer is visible in memory.
//
// A long set-up (docs/reference/calls.md) has a deadline and steps before its regions, which take 2 cycles more each: 1, and 3 for each
// step.
//
// An AAR with a correct head (type, count, length) replaces an earlier set-up, even if it is then refused; any other message changes
// nothing. Cycles from job to SEND for n regions, without clearing: 2 x memory latency + 6 n + n x (key latency + 9) + extents passed +
// about 35.
module rpc_setup
  import packet_pkg::*;
  import memory_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter int unsigned MAX_REGIONS = 32,  // of a connection: its contexts have equal shares
    parameter bit LONG_SET_UP = 1'b0,         // long set-ups are taken
    parameter int unsigned CYCLES_PER_MS = 250_000,
    parameter addr_t DESCRIPTION_BASE = '0,
    parameter addr_t CTRL_BASE = '0,
    parameter addr_t HEAP_BASE = '0,
    parameter addr_t HEAP_SIZE = '0,
    parameter pd_t PD = '0,             // protection domain of the connections
    parameter bit READ_BACK = 1'b1,     // a caller may also read its regions, and use atomics on them
    parameter int unsigned SOCKETS = 1
) (
    input  logic         clk,
    input  logic         rst,
    stream_if.sink       job,           // setup_job_t
    stream_if.sink       release_,      // release_job_t
    input  load_t        load,          // at this moment, without `memory_held`, which this unit knows
    input  held_t [SOCKETS-1:0] held,   // the image in each socket
    input  logic         paused,        // that of some socket is not known yet
    input  logic         clear_idle,    // no extent is being cleared
    output description_t description,   // constant from `published` on
    output logic         published,     // no job is allowed before
    stream_if.source     done,          // setup_done_t: of each job, when its context is answered or freed
    stream_if.source     extent,        // extent_t: to be cleared
    stream_if.sink       cleared,       // cleared_t: one for each, in any order
    input  logic         opened,        // a connection is opened: its slot and caller
    input  slot_t        opened_slot,
    input  ip_addr_t     opened_ip,
    input  admitted_t    opened_by,
    input  logic [29:0]  memory_per_caller,  // KiB; 0: no limit
    output admission_entry_t quota_of,
    input  logic [29:0]  quota,              // KiB, of this entry; 0: memory_per_caller
    axi_if.master        mem,
    stream_if.source     mr_cmd,        // mr_cmd_t
    stream_if.sink       mr_rsp,        // mr_rsp_t
    stream_if.source     wqe,           // rdma_wqe_t
    output logic         region_write,  // to rpc_regions
    output logic         grant_write,
    output region_key_t  write_key,
    output region_t      region,
    output grant_t       grant,
    output logic         step_write,    // to rpc_chain
    output step_write_t  step,
    output ticks_t       limit,         // with `grant_write`, to rpc_deadlines: of a call; 0: none
    stream_if.source     view_read,     // region_key_t
    input  logic         view_valid,
    input  region_view_t view,
    output logic         granted,       // events
    output logic         refused,
    output logic         malformed,
    output logic         idle
);
  localparam int unsigned HEAD_BYTES = $bits(mrsp_head_t) / 8;
  localparam int unsigned REQUEST_BYTES = $bits(mrsp_request_t) / 8;
  localparam int unsigned REQUEST_WORDS = REQUEST_BYTES / 4;
  localparam int unsigned LONG_REQUEST_WORDS = MRSP_LONG_REQUEST_BYTES / 4;
  localparam int unsigned ADVERT_BYTES = $bits(mrsp_advert_t) / 8;
  localparam int unsigned LONGEST = HEAD_BYTES + REQUEST_BYTES * MAX_REGIONS;

  if (LONGEST > MESSAGE_BYTES) begin : g_bad_regions
    $fatal(1, "rpc_setup: MAX_REGIONS does not fit a message buffer");
  end

  typedef enum logic [4:0] {
    IDLE,
    ASK,           // read the message
    HEAD,
    CHECK,         // counts against length
    DEADLINE,      // of a long set-up,
    STEPS,         // and its chain: checked,
    COPY,          // then stored
    RECORDS,
    DRAIN,         // discard the rest of a refused message
    REPOST,        // the receive
    RELEASE,       // the keys, then the extent
    RELEASE_KEYS,
    FREE,
    FREE_EXTENT,
    FREED,
    ALLOCATE,
    ALLOCATE_EXTENT,
    CLEAR,         // pass the extent to rpc_clear; other jobs are processed meanwhile
    LOOK_UP,       // next region
    LOOKED_UP,
    ADVERT_HEAD,
    REGISTER,
    REGISTERED,
    ADVERT,        // 4 words, 6 of a long one
    ERR,
    WRITTEN,       // the answer is being written
    SEND,
    DONE
  } state_e;

  state_e           state_q;
  setup_job_t       job_q;
  release_job_t     release_q;
  logic             releases_q;      // a release is in progress,
  state_e           resume_q;        // after which the job continues in this state
  logic             release_next_q;  // the next turn is a release's
  mrsp_head_t       head_q;
  logic             head_ok_q;       // a well-formed AAR: an earlier set-up is released
  logic             long_q;          // a long set-up
  logic             chain_q;         // the context has a chain
  logic [7:0]       err_q;           // code of the ERR; 0: none
  logic             held_q;          // extent and keys
  logic             failed_q;
  logic [REQUEST_BYTES*8-33:0] record_q;  // the words of a record before the last one
  logic [2:0]       word_q;          // of the record, or of the advert
  region_index_t    index_q;
  logic             internal_q;      // the previous region is internal
  logic             misordered_q;    // a parameter after an internal region, or a memory error
  logic             too_large_q;     // the regions of a long set-up are larger than any device
  page_t            total_q;
  grant_t           grant_q;
  region_view_t     view_q;
  logic [31:0]      rkey_q;

  wire context_t of = releases_q ? release_q.of : job_q.of;

  // ---- parts ----
  page_t pages_held;
  load_t whole_load;
  logic  describes, described;
  always_comb begin
    whole_load             = load;
    whole_load.memory_held = 64'(page_addr(pages_held));
  end
  stream_if #(.T(message_read_t)) read ();
  stream_if #(.T(word_t)) word ();
  stream_if #(.T(word_t)) write ();
  stream_if #(.T(logic)) written ();
  stream_if #(.T(word_t)) text ();
  stream_if #(.T(logic)) text_written ();
  stream_if #(.T(word_t)) message ();
  stream_if #(.T(logic)) message_written ();
  stream_if #(.T(mr_cmd_t)) setup_mr_cmd ();
  stream_if #(.T(mr_cmd_t)) text_mr_cmd ();
  stream_if #(.T(mr_rsp_t)) setup_mr_rsp ();
  stream_if #(.T(mr_rsp_t)) text_mr_rsp ();
  stream_if #(.T(extent_cmd_t)) extent_cmd ();
  stream_if #(.T(extent_rsp_t)) extent_rsp ();

  wire addr_t receive_at = receive_addr(CTRL_BASE, '{slot: job_q.of.slot, buffer: job_q.buffer}, CONTEXTS);
  wire addr_t answer_at = answer_addr(CTRL_BASE, job_q.of, CONTEXTS);

  rpc_messages #(.DATA_W(DATA_W)) messages (
      .clk, .rst, .mem, .read, .word, .write(message), .write_addr(describes ? DESCRIPTION_BASE : answer_at), .written(message_written)
  );
  rpc_description #(.BASE(DESCRIPTION_BASE), .PD(PD), .HOLDERS(SOCKETS)) description_unit (
      .clk, .rst, .load(whole_load), .held, .paused, .turn(state_q == IDLE && clear_idle), .write(text), .written(text_written),
      .mr_cmd(text_mr_cmd), .mr_rsp(text_mr_rsp), .description, .published, .writing(describes), .idle(described)
  );

  // The load is written between set-ups, so it delays none but for one that comes meanwhile.
  assign message.valid         = describes ? text.valid : write.valid;
  assign message.data          = describes ? text.data : write.data;
  assign write.ready           = !describes && message.ready;
  assign text.ready            = describes && message.ready;
  assign written.valid         = !describes && message_written.valid;
  assign written.data          = message_written.data;
  assign text_written.valid    = describes && message_written.valid;
  assign text_written.data     = message_written.data;
  assign message_written.ready = describes ? text_written.ready : written.ready;
  // Before the description is published, only rpc_description uses the region table.
  assign mr_cmd.valid          = published ? setup_mr_cmd.valid : text_mr_cmd.valid;
  assign mr_cmd.data           = published ? setup_mr_cmd.data : text_mr_cmd.data;
  assign setup_mr_cmd.ready    = published && mr_cmd.ready;
  assign text_mr_cmd.ready     = !published && mr_cmd.ready;
  assign setup_mr_rsp.valid    = published && mr_rsp.valid;
  assign setup_mr_rsp.data     = mr_rsp.data;
  assign text_mr_rsp.valid     = !published && mr_rsp.valid;
  assign text_mr_rsp.data      = mr_rsp.data;
  assign mr_rsp.ready          = published ? setup_mr_rsp.ready : text_mr_rsp.ready;
  rpc_extents #(
      .QPS(QPS),
      .CONTEXTS(CONTEXTS),
      .FIRST_PAGE(page_t'(64'(HEAP_BASE) >> PAGE_W)),
      .PAGES(page_t'(64'(HEAP_SIZE) >> PAGE_W))
  ) extents (
      .clk, .rst, .opened, .opened_slot, .opened_ip, .opened_by, .memory_per_caller, .quota_of, .quota,
      .cmd(extent_cmd), .rsp(extent_rsp), .held(pages_held)
  );

  // ---- the received message ----
  wire long_message = LONG_SET_UP && job_q.long_ && head_q.msg_type == MRSP_LONG;
  wire long_ = LONG_SET_UP && long_q;
  region_flags_t      flags_q;    // of a long one: they come first
  wire mrsp_request_t short_record = {record_q, word.data.data};
  wire mrsp_long_request_t long_record = record_q;
  mrsp_request_t record;
  always_comb begin
    record = short_record;
    if (long_) begin
      record.flags     = flags_q;
      record.host_addr = long_record.host_addr;
      record.host_rkey = long_record.host_rkey;
    end
  end
  wire region_size_t size = long_ ? region_size_t'(long_record.size) : region_size_t'(record.size);
  wire [$bits(page_t):0] total = add_pages(total_q, size);
  wire too_large = long_ && (total[$bits(page_t)] || |long_record.size[63:SIZE_W]);
  wire record_end = state_q == RECORDS && word.valid && word_q == (long_ ? 3'(LONG_REQUEST_WORDS - 1) : 3'(REQUEST_WORDS - 1));
  wire message_length_t length = job_q.message.length;
  wire length_ok = length >= message_length_t'(HEAD_BYTES + REQUEST_BYTES) && length <= message_length_t'(MESSAGE_BYTES);
  wire aar = head_q.msg_type == MRSP_AAR || long_message;
  logic [7:0] most;  // regions of a context
  always_comb begin
    unique case (job_q.contexts)
      contexts_t'(4): most = 8'(MAX_REGIONS / 4);
      contexts_t'(2): most = 8'(MAX_REGIONS / 2);
      default:        most = 8'(MAX_REGIONS);
    endcase
  end
  wire count_ok = head_q.count != '0 && head_q.count <= most;
  // 24 bytes per region, or 32 and 8 per step, without a multiplier.
  wire [7:0] step_count = head_q.pad[15:8];
  wire       steps_ok = step_count <= 8'(MAX_STEPS);
  wire [13:0] short_length = 14'(HEAD_BYTES) + (14'(head_q.count) << 4) + (14'(head_q.count) << 3);
  wire [13:0] long_length = 14'(MRSP_LONG_HEAD_BYTES) + (14'(head_q.count) << 5) + (14'(step_count) << 3);
  wire short_agrees = 14'(length) == short_length;
  wire long_agrees = 14'(length) == long_length && steps_ok;
  wire lengths_agree = long_message ? long_agrees : short_agrees;

  // ---- the chain ----
  mrsp_step_t  step_head_q;   // its first word
  step_index_t number_q;
  logic        wrong_q;       // a step is
  mrsp_step_t  step_head;
  assign step_head = word.data.data;
  wire [8:0]   step_end = 9'(step_head.first) + 9'(step_head.count);
  wire step_wrong = step_head.function_code == '0 || step_head.function_code[7]
                 || step_head.count == '0 || step_end > 9'(head_q.count);
  wire last_step = 8'(number_q) == step_count - 1'b1;
  wire step_stored = state_q == STEPS && word.valid && word_q[0];

  (* ram_style = "distributed" *) logic [$bits(step_t)-1:0] steps[MAX_STEPS];
  step_t stored;
  assign stored = '{
      last: last_step,
      function_code: function_code_t'(step_head_q.function_code),
      first_region: region_index_t'(step_head_q.first),
      last_region: region_index_t'(step_head_q.first + step_head_q.count - 1'b1),
      user: word.data.data[23:0]
  };
  always_ff @(posedge clk) if (step_stored) steps[number_q] <= stored;
  assign step_write = state_q == COPY;
  assign step       = '{of: job_q.of, number: number_q, step: step_t'(steps[number_q])};

  // ---- the deadline: at least so many milliseconds ----
  logic [31:0] deadline_q;
  logic [63:0] cycles_q;
  ticks_t      limit_q;
  always_ff @(posedge clk) begin
    cycles_q <= 64'(deadline_q) * 64'(CYCLES_PER_MS);
    limit_q  <= deadline_q == '0 ? '0 : ticks_t'(cycles_q >> TICK_W) + ticks_t'(2);
  end
  assign limit = LONG_SET_UP ? limit_q : '0;

  assign read.valid = state_q == ASK && length_ok;
  assign read.data  = '{addr: receive_at, length: length};
  assign word.ready = state_q inside {HEAD, DEADLINE, STEPS, RECORDS, DRAIN};

  assign region_write = record_end;
  assign grant_write  = state_q == CLEAR;
  assign write_key    = '{of: job_q.of, index: index_q};
  assign region = '{
      size: size,
      input_: record.flags.input_ || record.flags.single_send,  // NAAICE: single send implies input
      output_: record.flags.output_ && !record.flags.internal_,
      internal_: record.flags.internal_,
      offset: total_q,
      host_addr: record.host_addr,
      host_rkey: record.host_rkey
  };
  assign grant = grant_q;

  // ---- the answer ----
  wire mrsp_advert_t short_advert = '{addr: 64'(view_q.addr), rkey: rkey_q, size: 32'(view_q.region.size)};
  wire mrsp_long_advert_t long_advert = '{addr: 64'(view_q.addr), size: 64'(view_q.region.size), rkey: rkey_q, reserved: '0};
  localparam int unsigned ADVERT_WORDS = MRSP_LONG_ADVERT_BYTES / 4;  // of the longer one
  wire [MRSP_LONG_ADVERT_BYTES*8-1:0] advert = long_ ? long_advert : {short_advert, 64'd0};
  wire advert_end = word_q == (long_ ? 3'(ADVERT_WORDS - 1) : 3'(ADVERT_BYTES / 4 - 1));
  wire mrsp_head_t   a_head = '{msg_type: long_ ? MRSP_LONG_ANSWER : MRSP_A, count: 8'(view_q.grant.params), pad: '0};
  wire mrsp_head_t   err_head = '{msg_type: MRSP_ERR, count: err_q, pad: '0};
  wire               last_advert = index_q == view_q.grant.params - 1'b1;

  assign write.valid = state_q inside {ADVERT_HEAD, ADVERT, ERR};
  always_comb begin
    write.data = '{data: a_head, first: state_q != ADVERT, last: state_q == ERR, error: 1'b0};
    if (state_q == ERR) write.data.data = err_head;
    if (state_q == ADVERT) begin
      write.data.data = '0;
      for (int unsigned i = 0; i < ADVERT_WORDS; i++) if (word_q == 3'(i)) write.data.data |= advert[(ADVERT_WORDS-1-i)*32+:32];
      write.data.last = last_advert && advert_end;
    end
  end
  assign written.ready = state_q == WRITTEN;

  assign view_read.valid = state_q == LOOK_UP;
  assign view_read.data  = '{of: job_q.of, index: index_q};

  wire page_t need = total_q == '0 ? page_t'(1) : total_q;
  assign extent_cmd.valid = state_q inside {FREE, ALLOCATE};
  assign extent_cmd.data  = '{free: state_q == FREE, of: of, pages: need};
  assign extent_rsp.ready = state_q inside {FREE_EXTENT, ALLOCATE_EXTENT};
  assign extent.valid     = state_q == CLEAR;
  assign extent.data      = '{
      of: job_q.of,
      form: '{with_imm: job_q.message.with_imm, long_: long_, chain: chain_q},
      base: grant_q.base,
      pages: grant_q.pages
  };

  assign setup_mr_cmd.valid = state_q inside {RELEASE, REGISTER};
  always_comb begin
    setup_mr_cmd.data = '{
        op: MR_DEREGISTER_GROUP,
        mr: '{
            pd: PD,
            qpn: qp_number(of.slot),
            group: mr_group_t'(of.number),
            addr: view_q.addr,
            length: view_q.region.size,
            access: '{remote_write: 1'b1, remote_read: READ_BACK, remote_atomic: READ_BACK, default: '0}
        },
        default: '0
    };
    if (state_q == REGISTER) setup_mr_cmd.data.op = MR_REGISTER;
  end
  assign setup_mr_rsp.ready = state_q inside {RELEASE_KEYS, REGISTERED};

  assign wqe.valid = state_q inside {REPOST, SEND};
  always_comb begin
    wqe.data            = '0;
    wqe.data.opcode     = WR_RECV;
    wqe.data.qpn        = qp_number(job_q.of.slot);
    wqe.data.wr_id      = 16'(job_q.buffer);
    wqe.data.lkey       = LOCAL_DMA_LKEY;
    wqe.data.local_addr = receive_at;
    wqe.data.length     = 32'(MESSAGE_BYTES);
    if (state_q == SEND) begin
      wqe.data.opcode     = job_q.message.with_imm ? WR_SEND_WITH_IMM : WR_SEND;
      wqe.data.imm_data   = {8'(job_q.of.number), 24'd0};
      wqe.data.signaled   = 1'b1;
      wqe.data.solicited  = 1'b1;
      wqe.data.wr_id      = 16'(job_q.of.number);
      wqe.data.local_addr = answer_at;
      wqe.data.length     = err_q != '0 ? 32'(HEAD_BYTES) : 32'(HEAD_BYTES)
                          + 32'(view_q.grant.params) * (long_ ? 32'(MRSP_LONG_ADVERT_BYTES) : 32'(ADVERT_BYTES));
    end
  end

  // A job without a free extent or key is retried after each pending release.
  wire no_extent = state_q == ALLOCATE_EXTENT && extent_rsp.valid && !extent_rsp.data.ok;
  wire no_key = state_q == REGISTERED && setup_mr_rsp.valid && !setup_mr_rsp.data.ok;
  wire turn = state_q == IDLE && !cleared.valid;
  wire begins_release = release_.valid && release_.ready;

  assign cleared.ready  = state_q == IDLE;
  assign release_.ready = turn && (release_next_q || !job.valid) || no_extent || no_key;
  assign job.ready      = turn && !(release_next_q && release_.valid);
  assign done.valid     = state_q == DONE;
  assign done.data      = '{
      close: releases_q, of: of, held: held_q && !releases_q, chain: chain_q, failed: failed_q && !releases_q
  };
  assign idle          = state_q == IDLE && described;

  wire answered = state_q == SEND && wqe.ready;
  assign granted   = answered && err_q == '0;
  assign refused   = answered && err_q inside {MRSP_ERR_NO_MEMORY, MRSP_ERR_NO_KEYS};
  assign malformed = answered && err_q inside {MRSP_ERR_MALFORMED, MRSP_ERR_TOO_MANY_REGIONS};

  always_ff @(posedge clk) begin
    unique case (state_q)
      IDLE: begin
        job_q <= job.data;
        if (cleared.valid) begin
          job_q.of             <= cleared.data.of;
          job_q.message.with_imm <= cleared.data.form.with_imm;
        end
        resume_q     <= IDLE;
        held_q       <= cleared.valid || job.data.held;
        head_ok_q    <= 1'b0;
        long_q       <= cleared.valid && cleared.data.form.long_;
        chain_q      <= cleared.valid ? cleared.data.form.chain : job.data.chain;
        deadline_q   <= '0;
        number_q     <= '0;
        wrong_q      <= 1'b0;
        too_large_q  <= 1'b0;
        err_q        <= cleared.valid && !cleared.data.ok ? MRSP_ERR_NO_MEMORY : '0;
        failed_q     <= 1'b0;
        word_q       <= '0;
        index_q      <= '0;
        misordered_q <= 1'b0;
        internal_q   <= 1'b0;
        total_q      <= '0;
        grant_q      <= '0;
        if (cleared.valid) state_q <= cleared.data.ok ? LOOK_UP : FREE;
        else if (job.valid) state_q <= ASK;
        if (turn) release_next_q <= !begins_release;
      end

      // ---- the received message ----
      ASK:
      if (!length_ok) begin
        err_q   <= MRSP_ERR_MALFORMED;
        state_q <= REPOST;
      end else if (read.ready) state_q <= HEAD;
      HEAD: begin
        head_q <= word.data.data;
        if (word.valid) state_q <= CHECK;
      end
      CHECK: begin
        if (long_message) begin
          long_q  <= 1'b1;
          state_q <= lengths_agree && head_q.count != '0 ? DEADLINE : DRAIN;
        end else begin
          head_ok_q <= aar && count_ok && lengths_agree;
          state_q   <= aar && count_ok && lengths_agree ? RECORDS : DRAIN;
          if (aar && count_ok && lengths_agree) chain_q <= 1'b0;
        end
        err_q     <= !aar || !lengths_agree || head_q.count == '0 ? MRSP_ERR_MALFORMED
                   : !count_ok ? MRSP_ERR_TOO_MANY_REGIONS : '0;
      end
      DEADLINE: begin
        deadline_q <= word.data.data;
        if (word.valid) begin
          if (step_count != '0) state_q <= STEPS;
          else begin
            head_ok_q <= err_q == '0;
            chain_q   <= chain_q && err_q != '0;
            state_q   <= err_q == '0 ? RECORDS : DRAIN;
          end
        end
      end
      STEPS:
      if (word.valid) begin
        word_q[0] <= !word_q[0];
        if (!word_q[0]) begin
          step_head_q <= step_head;
          wrong_q     <= wrong_q || step_wrong;
        end else begin
          number_q <= last_step ? '0 : number_q + 1'b1;
          if (last_step) begin
            if (wrong_q) err_q <= MRSP_ERR_MALFORMED;
            state_q <= wrong_q || err_q != '0 ? DRAIN : COPY;
          end
        end
      end
      COPY: begin
        number_q  <= number_q + 1'b1;
        head_ok_q <= 1'b1;
        chain_q   <= 1'b1;
        if (last_step) state_q <= RECORDS;
      end
      RECORDS:
      if (word.valid) begin
        if (word_q == '0) flags_q <= word.data.data[31:24];
        record_q <= {record_q[REQUEST_BYTES*8-65:0], word.data.data};
        word_q   <= word_q + 1'b1;
        if (record_end) begin
          word_q       <= '0;
          index_q      <= index_q + 1'b1;
          total_q      <= page_t'(total);
          internal_q   <= region.internal_;
          misordered_q <= misordered_q || (internal_q && !region.internal_) || word.data.error;
          too_large_q  <= too_large_q || too_large;
          grant_q.last   <= index_q;
          grant_q.params <= grant_q.params + region_index_t'(!region.internal_);
          if (region.output_) begin
            grant_q.has_output  <= 1'b1;
            grant_q.last_output <= index_q;
            if (!grant_q.has_output) grant_q.first_output <= index_q;
          end
          if (word.data.last) state_q <= REPOST;
        end
      end
      DRAIN: if (word.valid && word.data.last) state_q <= REPOST;
      REPOST: begin
        if (err_q == '0 && too_large_q) err_q <= MRSP_ERR_NO_MEMORY;
        if (err_q == '0 && (misordered_q || grant_q.params == '0)) err_q <= MRSP_ERR_MALFORMED;
        if (wqe.ready) state_q <= head_ok_q && held_q ? RELEASE : FREED;
      end

      // ---- release of the earlier set-up ----
      RELEASE:      if (setup_mr_cmd.ready) state_q <= RELEASE_KEYS;
      RELEASE_KEYS: if (setup_mr_rsp.valid) state_q <= FREE;
      FREE:         if (extent_cmd.ready) state_q <= FREE_EXTENT;
      FREE_EXTENT:
      if (extent_rsp.valid) begin
        if (!releases_q) held_q <= 1'b0;
        state_q <= FREED;
      end
      FREED: state_q <= releases_q ? DONE : err_q != '0 ? ERR : ALLOCATE;

      // ---- allocation ----
      ALLOCATE: begin
        grant_q.pages <= need;
        if (extent_cmd.ready) state_q <= ALLOCATE_EXTENT;
      end
      ALLOCATE_EXTENT: begin
        grant_q.base <= extent_rsp.data.base;
        if (extent_rsp.valid) begin
          resume_q <= ALLOCATE;
          state_q  <= extent_rsp.data.ok ? CLEAR : ERR;
          if (!extent_rsp.data.ok && !release_.valid) err_q <= MRSP_ERR_NO_MEMORY;
        end
      end
      CLEAR:   if (extent.ready) state_q <= IDLE;
      LOOK_UP: if (view_read.ready) state_q <= LOOKED_UP;
      LOOKED_UP: begin
        view_q <= view;
        if (view_valid) state_q <= index_q == '0 ? ADVERT_HEAD : REGISTER;
      end
      ADVERT_HEAD: if (write.ready) state_q <= REGISTER;
      REGISTER: if (setup_mr_cmd.ready) state_q <= REGISTERED;
      REGISTERED: begin
        rkey_q <= setup_mr_rsp.data.rkey;
        if (setup_mr_rsp.valid) begin
          resume_q <= REGISTER;
          state_q  <= setup_mr_rsp.data.ok ? ADVERT : RELEASE;
          if (!setup_mr_rsp.data.ok && !release_.valid) err_q <= MRSP_ERR_NO_KEYS;
        end
      end
      ADVERT:
      if (write.ready) begin
        word_q <= word_q + 1'b1;
        if (advert_end) begin
          word_q  <= '0;
          index_q <= index_q + 1'b1;
          state_q <= last_advert ? WRITTEN : LOOK_UP;
        end
      end

      // ---- the answer ----
      ERR: if (write.ready) state_q <= WRITTEN;
      WRITTEN: begin
        failed_q <= written.data;
        if (written.valid) state_q <= written.data ? DONE : SEND;
      end
      SEND: if (wqe.ready) state_q <= DONE;
      DONE:
      if (done.ready) begin
        releases_q <= 1'b0;
        state_q    <= releases_q ? resume_q : IDLE;
      end
      default: state_q <= IDLE;
    endcase
    if (begins_release) begin
      release_q  <= release_.data;
      releases_q <= 1'b1;
      state_q    <= release_.data.held ? RELEASE : DONE;
    end
    if (rst) begin
      state_q        <= IDLE;
      releases_q     <= 1'b0;
      release_next_q <= 1'b0;
    end
  end

  wire unused = &{1'b0, word.data.first, job_q.held, job_q.chain, job_q.long_, job_q.message.reserved, head_q.pad, step_head_q.reserved,
                  record.requested_addr, record.flags.reserved, view_q};
endmodule
