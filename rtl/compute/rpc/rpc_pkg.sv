// SPDX-License-Identifier: Apache-2.0

// Types inside the RPC engine, and the layout of its messages in device memory.
package rpc_pkg;
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import compute_pkg::*;

  // ---- limits ----
  localparam int unsigned RECEIVES = 2;               // receives posted for every context of a connection
  localparam int unsigned MESSAGE_BYTES = 1024;       // size of a receive buffer
  localparam int unsigned CTRL_BYTES = 4096;          // control memory of a context: two receive buffers of the connection, then its answer

  // ---- connections and their contexts ----
  typedef qp_index_t slot_t;                          // a connection: qp_index of its QP
  localparam int unsigned NUMBER_W = $clog2(MAX_CONTEXTS);
  typedef logic [NUMBER_W-1:0] number_t;              // of a context in its connection

  typedef struct packed {
    slot_t   slot;
    number_t number;
  } context_t;

  // Index of a context in the tables of a device with up to `contexts` for each connection.
  typedef logic [$bits(context_t)-1:0] context_index_t;
  function automatic context_index_t context_index(context_t of, int unsigned contexts);
    return {of.slot, NUMBER_W'(0)} >> (NUMBER_W - $clog2(contexts)) | context_index_t'(of.number);
  endfunction

  // Number of contexts of a connection: one if none are agreed.
  function automatic contexts_t contexts_of(contexts_t agreed);
    return agreed == '0 ? contexts_t'(1) : agreed;
  endfunction

  // ---- time, in ticks of 2^TICK_W cycles; modulo more than twice the longest deadline, which is 2^32 ms at up to 2 GHz ----
  localparam int unsigned TICK_W = 10;
  typedef logic [43:0] ticks_t;

  // A connection closes in this cycle.
  typedef struct packed {
    logic  valid;
    slot_t slot;
  } closing_t;

  // ---- device memory: regions are made of pages ----
  localparam int unsigned PAGE_W = 12;                // NAAICE rounds each region up to 4096 bytes
  // Regions lie below 2^40, or where addresses have fewer bits below their end: that limits the width of page numbers in the tables.
  localparam int unsigned HEAP_ADDR_W = ADDR_W < SIZE_W ? ADDR_W : SIZE_W;
  typedef logic [HEAP_ADDR_W-PAGE_W-1:0] page_t;      // number of a page, or of pages

  function automatic addr_t page_addr(page_t page);
    return addr_t'({page, PAGE_W'(0)});
  endfunction

  // `pages`, and those of a region of `size` bytes. The highest bit: more than any device has.
  function automatic logic [$bits(page_t):0] add_pages(page_t pages, region_size_t size);
    logic [SIZE_W-PAGE_W:0] sum;
    sum = (SIZE_W - PAGE_W + 1)'(pages) + {1'b0, size[SIZE_W-1:PAGE_W]} + (SIZE_W - PAGE_W + 1)'(|size[PAGE_W-1:0]);
    return {sum >> $bits(page_t) != '0, page_t'(sum)};
  endfunction

  typedef struct packed {
    logic     free;                                   // free the extent of the context; otherwise allocate one
    context_t of;
    page_t    pages;                                  // at least 1
  } extent_cmd_t;

  typedef struct packed {
    logic  ok;                                        // allocated, or freed
    page_t base;
  } extent_rsp_t;

  // What matters of a message when its extent is clear.
  typedef struct packed {
    logic with_imm;                                   // the answer has an immediate
    logic long_;                                       // and is that of a long set-up,
    logic chain;                                      // which has a chain
  } form_t;

  // An extent to be cleared, and the result.
  typedef struct packed {
    context_t of;
    form_t    form;
    page_t    base;
    page_t    pages;
  } extent_t;

  typedef struct packed {
    context_t of;
    form_t    form;
    logic     ok;                                     // all of it is zero. Else memory reported an error, or the connection is closed
  } cleared_t;

  // ---- regions ----
  typedef logic [5:0] region_index_t;

  // The size is first: the tables of a device without long set-ups do not have its high bits.
  typedef struct packed {
    region_size_t size;
    logic        input_;
    logic        output_;
    logic        internal_;
    page_t       offset;                              // from the base of the context's extent
    logic [63:0] host_addr;
    logic [31:0] host_rkey;
  } region_t;

  // The grant of a context.
  typedef struct packed {
    page_t         base;
    page_t         pages;
    region_index_t params;                            // regions that are not internal
    region_index_t last;                              // index of the last region
    logic          has_output;
    region_index_t first_output;                      // 0 without an output
    region_index_t last_output;
  } grant_t;

  typedef struct packed {
    context_t      of;
    region_index_t index;
  } region_key_t;

  // One region as read from the tables.
  typedef struct packed {
    grant_t  grant;
    region_t region;
    addr_t   addr;                                    // device address
  } region_view_t;

  // ---- the device's description ----
  // Address of the description for callers: private data of a REP (docs/reference/device-description.md).
  localparam logic [31:0] DESCRIPTION_MAGIC = "NACD";
  localparam logic [7:0] DESCRIPTION_VERSION = 8'd1;

  typedef struct packed {
    logic [63:0] addr;
    logic [31:0] rkey;
    logic [31:0] length;                              // 0: there is none
  } description_t;

  typedef struct packed {
    logic [31:0]  magic;
    logic [7:0]   version;
    logic [23:0]  reserved;
    description_t description;
  } description_private_t;

  function automatic private_t description_private(description_t description);
    description_private_t fields;
    fields = '{magic: DESCRIPTION_MAGIC, version: DESCRIPTION_VERSION, reserved: '0, description: description};
    return description.length == '0 ? '0 : {fields, {($bits(private_t) - $bits(fields)) {1'b0}}};
  endfunction

  // ---- how busy the device is: a record in memory, directly before the description ----
  localparam int unsigned LOAD_BYTES = 64;            // the record, and zeros behind it

  typedef struct packed {
    logic [31:0] connections;
    logic [31:0] running;                             // functions
    logic [31:0] waiting;                             // calls, for a socket
    logic [31:0] reserved;
    logic [63:0] memory_held;                         // bytes that callers have
    logic [63:0] calls;                               // since reset
  } load_t;

  // What happens to calls in a cycle, for telemetry: one comes, one gets its socket, one ends with its job, one ends without.
  typedef logic [3:0] socket_number_t;
  typedef struct packed {
    logic           arrives;
    socket_number_t arrives_at;
    context_t       arriving;
    logic           begins;
    socket_number_t begins_at;
    context_t       beginning;
    logic           ends;
    socket_number_t ends_at;
    logic           leaves;
    socket_number_t leaves_at;
  } call_progress_t;

  typedef logic [$bits(context_t):0] waiting_count_t; // calls that wait for a socket: up to one of every context

  // ---- between the units ----

  // One of the connection's receives: its buffer lies in the control memory of a context, but any arrival may consume it.
  typedef struct packed {
    number_t home;
    logic    second;                                  // of the two there
  } buffer_t;

  typedef struct packed {
    slot_t   slot;
    buffer_t buffer;
  } receive_t;

  // Length of a received message; all ones: longer than a buffer.
  typedef logic [$clog2(MESSAGE_BYTES):0] message_length_t;

  function automatic message_length_t message_length(logic [31:0] length);
    return |length[31:$bits(message_length_t)] ? '1 : message_length_t'(length);
  endfunction

  // What a message is, in the place of an immediate.
  typedef struct packed {
    logic            with_imm;                          // its answer has an immediate
    logic [31-$bits(message_length_t)-1:0] reserved;
    message_length_t length;
  } message_t;

  // A receive completion that waits for its turn: a message in a buffer, or a start.
  typedef struct packed {
    ticks_t      time_;                               // of the arrival. A device without deadlines stores the rest alone
    logic        message;
    buffer_t     buffer;                              // which of the connection's receives was consumed
    logic [31:0] value;                               // message_t, or the start: `user`, then 1, then the function
  } arrival_t;

  // The address of a receive buffer, and that of the buffer of a context's answers.
  function automatic addr_t ctrl_addr(addr_t ctrl_base, context_t of, int unsigned contexts);
    return ctrl_base + addr_t'(context_index(of, contexts)) * addr_t'(CTRL_BYTES);
  endfunction
  function automatic addr_t receive_addr(addr_t ctrl_base, receive_t receive, int unsigned contexts);
    return ctrl_addr(ctrl_base, '{slot: receive.slot, number: receive.buffer.home}, contexts)
         + (receive.buffer.second ? addr_t'(MESSAGE_BYTES) : '0);
  endfunction
  function automatic addr_t answer_addr(addr_t ctrl_base, context_t of, int unsigned contexts);
    return ctrl_addr(ctrl_base, of, contexts) + addr_t'(RECEIVES * MESSAGE_BYTES);
  endfunction

  // A job for rpc_setup: a message to answer.
  typedef struct packed {
    context_t  of;
    contexts_t contexts;                              // that the connection has
    logic      long_;                                  // and that long set-ups are agreed
    logic      held;                                  // the context has an extent and keys,
    logic      chain;                                 // and a chain
    buffer_t   buffer;
    message_t  message;
  } setup_job_t;

  // A job for rpc_setup: a context of a closed connection, whose memory and keys are to be freed.
  typedef struct packed {
    context_t of;
    logic     held;
  } release_job_t;

  typedef struct packed {
    logic     close;
    context_t of;
    logic     held;                                   // the context has an extent and keys now,
    logic     chain;                                  // and a chain
    logic     failed;                                 // memory reported an error for the answer: the connection must be closed
  } setup_done_t;

  // ---- chains: functions that one call runs one after the other ----
  localparam int unsigned MAX_STEPS = 4;
  typedef logic [$clog2(MAX_STEPS)-1:0] step_index_t;

  typedef struct packed {
    logic           last;                             // of the chain
    function_code_t function_code;
    region_index_t  first_region;
    region_index_t  last_region;
    logic [23:0]    user;
  } step_t;

  typedef struct packed {
    context_t    of;
    step_index_t number;
    step_t       step;
  } step_write_t;

  // The call of a chain begins.
  typedef struct packed {
    context_t of;
    logic     odd;                                    // as of a call
  } chain_t;

  // A call is a step of a chain.
  typedef struct packed {
    logic          chain;
    logic          more;                              // others follow it
    step_index_t   number;
    region_index_t first_region;
    region_index_t last_region;
  } part_t;

  // A call accepted for a socket.
  typedef struct packed {
    logic [3:0]     socket;
    context_t       of;
    logic           odd;                              // of two successive calls of a context one is
    function_code_t function_code;
    logic [23:0]    user;
    part_t          part;                             // 0: all regions
  } call_t;

  // The call that is to end: the newest of its context for a socket, if it has not ended.
  typedef struct packed {
    context_t of;
    logic     odd;
    logic     late;                                   // its deadline has passed; else its caller cancels it
  } cancel_t;

  // The result of a call that is cancelled.
  function automatic logic [6:0] cancel_code(logic late);
    return late ? RESULT_DEADLINE : RESULT_CANCELLED;
  endfunction

  typedef struct packed {
    context_t   of;
    logic [6:0] code;
  } result_t;

  // ---- answers of regions that are longer than a WRITE ----
  localparam int unsigned LONGEST_WRITE_W = 31;       // a WRITE has at most 2^31 bytes (IBTA 9.7.7)
  typedef logic [SIZE_W-LONGEST_WRITE_W-1:0] part_number_t;  // of a WRITE among those of its region

  // The WRITE from which on an answer is posted; 0: all of it. It fits the `wr_id` of the WRITE before, beside the context's number.
  typedef logic [4:0] region_number_t;                // an index in a device with long set-ups
  typedef struct packed {
    region_number_t index;
    part_number_t part;
  } progress_t;

  // The wr_id of a send: the context, and from where on its answer is continued. And back.
  function automatic logic [15:0] answer_wr_id(number_t number, progress_t from);
    return {from, number};
  endfunction
  function automatic progress_t answer_from(logic [15:0] wr_id);
    return progress_t'(wr_id[15:NUMBER_W]);
  endfunction

  // To rpc_answer: a result, or an answer to be continued.
  typedef struct packed {
    result_t   result;
    progress_t from;
  } answer_t;

  // From rpc_answer: it has posted an answer, or as much of it as may be outstanding, or has discarded it.
  typedef struct packed {
    context_t of;
    logic     more;                                   // the rest is posted when the completion of the last WRITE has come
  } posted_t;

  // The result of a call, or of a step.
  typedef struct packed {
    result_t     result;
    logic        odd;                                 // the next three are valid if `more`
    step_index_t number;
    logic        more;
  } outcome_t;

  // 32 bits of a message, first byte in the most significant bits.
  typedef struct packed {
    logic [31:0] data;
    logic        first;
    logic        last;
    logic        error;                               // memory answered the read with an error; with `last`
  } word_t;

  typedef struct packed {
    addr_t       addr;
    logic [10:0] length;                              // bytes, 1..MESSAGE_BYTES
  } message_read_t;
endpackage
