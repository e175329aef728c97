// SPDX-License-Identifier: Apache-2.0

// Types of the compute plane: the jobs that the RPC engine gives to the kernels in their sockets, and the messages of the
// region set-up protocol (NAAICE MRSP; all integers big-endian on the wire).
package compute_pkg;
  import memory_pkg::*;

  // ---- jobs ----

  typedef logic [6:0] function_code_t;   // 1..127, bits 6..0 of the immediate
  typedef logic [7:0] tag_t;             // names a job in flight; returned with its result

  // A job is one packet of these, one a region in index order, internal regions last. Constant in it: tag, function_code, user. The size
  // is first: a device without long set-ups does not keep its high bits, which are 0 there.
  typedef struct packed {
    region_size_t   size;          // bytes
    tag_t           tag;
    function_code_t function_code;
    logic [23:0]    user;          // the caller's own bits of the immediate (31..8)
    logic           last;          // last region of the job
    logic           input_;        // the caller writes it
    logic           output_;       // the caller gets it back
    logic           internal_;     // scratch: the caller never sees it
    addr_t          addr;
  } job_t;

  // Result codes (NAAICE: 0x00..0x0f reserved, 0x10..0x7f the kernel's own).
  localparam logic [6:0] RESULT_SUCCESS          = 7'h00;
  localparam logic [6:0] RESULT_SOCKET_UNAVAIL   = 7'h01;
  localparam logic [6:0] RESULT_KERNEL_TIMEOUT   = 7'h02;
  localparam logic [6:0] RESULT_UNKNOWN_FUNCTION = 7'h03;
  localparam logic [6:0] RESULT_DEADLINE         = 7'h04;
  localparam logic [6:0] RESULT_CANCELLED        = 7'h05;
  localparam logic [6:0] RESULT_BAD_ARGUMENTS    = 7'h10;
  localparam logic [6:0] RESULT_REGION_TOO_SMALL = 7'h11;
  localparam logic [6:0] RESULT_MEMORY_ERROR     = 7'h12;

  typedef struct packed {
    tag_t       tag;
    logic [6:0] code;
  } done_t;

  // Which functions a socket has: bit c for code c.
  typedef logic [127:0] function_set_t;

  // The part of memory that a socket may touch: [base, base + size), whole pages of 4 KiB. Closed: size 0.
  typedef struct packed {
    addr_t       base;
    logic [ADDR_W-1:0] size;
  } window_t;

  // ---- kernels ----

  localparam int unsigned KERNEL_FUNCTIONS_MAX = 8;

  // The identity of a kernel, readable in the registers of its socket. `block_type` 0: it has no described registers.
  typedef struct packed {
    logic [15:0][7:0]                          name;            // ASCII, character i in name[i], zeros behind it
    logic [15:0]                               version_major;
    logic [15:0]                               version_minor;
    logic [3:0]                                functions;       // how many: 1 to KERNEL_FUNCTIONS_MAX
    function_code_t [KERNEL_FUNCTIONS_MAX-1:0] function_code;   // ascending, the first in [0]
    logic [31:0]                               block_type;      // of its registers, four ASCII characters
    logic [31:0]                               block_version;
  } kernel_identity_t;

  // A name from a string literal, which has its last character lowest.
  function automatic logic [15:0][7:0] kernel_name(logic [15:0][7:0] literal);
    logic [15:0][7:0] name;
    int unsigned      length;
    name   = '0;
    length = 0;
    for (int unsigned i = 16; i > 0; i--) begin
      if (literal[i-1] != '0) begin
        name[length] = literal[i-1];
        length       = length + 1;
      end
    end
    return name;
  endfunction

  // The functions of a kernel.
  function automatic function_set_t kernel_functions(kernel_identity_t kernel);
    function_set_t functions;
    functions = '0;
    for (int unsigned i = 0; i < KERNEL_FUNCTIONS_MAX; i++) begin
      if (4'(i) < kernel.functions) functions[kernel.function_code[i]] = 1'b1;
    end
    return functions;
  endfunction

  // ---- images: kernels that take each other's place in a socket (docs/reference/kernels.md) ----

  localparam int unsigned MAX_IMAGES = 8;
  typedef logic [127:0] kernel_text_t;                         // the name of a kernel as a string literal has it
  typedef kernel_text_t [MAX_IMAGES-1:0] kernel_texts_t;
  typedef logic [7:0] image_t;                                 // number of an image of a socket

  // What is known of an image before it is loaded; IMAGE_RECORD of socket.rdl has its words.
  typedef struct packed {
    kernel_identity_t identity;
    logic [31:0][7:0] digest;    // SHA-256, byte i in digest[i]
    logic [63:0]      addr;      // of the bitstream, where its controller finds it
    logic [31:0]      length;    // bytes
  } image_record_t;
  typedef logic [4:0] record_word_t;
  localparam record_word_t RECORD_IDENTITY = 5'd0, RECORD_IDENTITY_END = 5'd15;
  localparam record_word_t RECORD_DIGEST = 5'd16, RECORD_DIGEST_END = 5'd23;
  localparam record_word_t RECORD_ADDR = 5'd24, RECORD_LENGTH = 5'd26;

  function automatic logic [31:0] identity_word(kernel_identity_t identity, logic [3:0] word);
    unique case (word) inside
      4'h0:          return identity.block_type;
      4'h1:          return identity.block_version;
      4'h2:          return {identity.version_major, identity.version_minor};
      4'h3:          return 32'(identity.functions);
      [4'h4 : 4'h7]: return identity.name[{word[1:0], 2'b00}+:4];
      default:       return 32'(identity.function_code[word[2:0]]);
    endcase
  endfunction

  function automatic logic [31:0] record_value(image_record_t record, record_word_t word);
    unique case (word) inside
      [5'h00 : 5'h0f]: return identity_word(record.identity, word[3:0]);
      [5'h10 : 5'h17]: return record.digest[{word[2:0], 2'b00}+:4];
      5'h18:           return record.addr[31:0];
      5'h19:           return record.addr[63:32];
      5'h1a:           return record.length;
      default:         return '0;
    endcase
  endfunction

  // A request to whatever loads an image, and its answer.
  typedef struct packed {
    image_t      image;
    logic [63:0] addr;
    logic [31:0] length;
  } reconfigure_t;

  // What a socket holds. Not live: nothing. `kernel` is the image of the build that has the same kernel as `image`, which may be uploaded.
  typedef struct packed {
    logic   live;
    image_t image;
    image_t kernel;
  } held_t;

  // Commands and errors of the registers for images.
  localparam logic [7:0] IMAGE_ACTIVATE  = 8'd1;
  localparam logic [7:0] IMAGE_ROLL_BACK = 8'd2;
  localparam logic [7:0] IMAGE_CUT       = 8'd3;

  typedef enum logic [7:0] {
    IMAGE_OK,
    IMAGE_BAD_COMMAND,     // no such command
    IMAGE_BAD_IMAGE,       // no such image
    IMAGE_BAD_DIGEST,      // the digest that was named is not that of the record
    IMAGE_NO_FORMER,       // nothing to roll back to
    IMAGE_NOT_LOADED,      // the controller reported an error
    IMAGE_NO_IDENTITY      // what was loaded did not say what its record says
  } image_error_e;

  // ---- region set-up messages ----
  localparam logic [7:0] MRSP_ERR = 8'h00;
  localparam logic [7:0] MRSP_AAR = 8'h01;   // advertise and request, caller -> device
  localparam logic [7:0] MRSP_A   = 8'h02;   // advertise, device -> caller
  localparam logic [7:0] MRSP_LONG        = 8'h11;   // long set-up (docs/reference/calls.md), caller -> device
  localparam logic [7:0] MRSP_LONG_ANSWER = 8'h12;   // device -> caller

  // Why a set-up is refused: the code in an ERR. The upstream library distinguishes it only from an A.
  localparam logic [7:0] MRSP_ERR_MALFORMED = 8'h01;         // type, length against count, order of regions
  localparam logic [7:0] MRSP_ERR_NO_MEMORY = 8'h02;         // no room for the regions, the caller's quota is reached, or memory failed
  localparam logic [7:0] MRSP_ERR_TOO_MANY_REGIONS = 8'h03;  // count above the device's limit
  localparam logic [7:0] MRSP_ERR_NO_KEYS = 8'h04;           // no key left for a region

  typedef struct packed {
    logic [7:0]  msg_type;
    logic [7:0]  count;
    logic [15:0] pad;
  } mrsp_head_t;

  typedef struct packed {
    logic [3:0] reserved;
    logic       output_;
    logic       input_;
    logic       single_send;
    logic       internal_;
  } region_flags_t;

  typedef struct packed {
    region_flags_t flags;
    logic [55:0]   requested_addr;
    logic [63:0]   host_addr;
    logic [31:0]   host_rkey;
    logic [31:0]   size;
  } mrsp_request_t;    // 24 bytes, one a region in an AAR

  typedef struct packed {
    logic [63:0]   addr;
    logic [31:0]   rkey;
    logic [31:0]   size;
  } mrsp_advert_t;     // 16 bytes, one a region that is not internal in an A

  localparam int unsigned MRSP_LONG_HEAD_BYTES = 8;
  localparam int unsigned MRSP_STEP_BYTES = 8;
  localparam int unsigned MRSP_LONG_REQUEST_BYTES = 32;
  localparam int unsigned MRSP_LONG_ADVERT_BYTES = 24;

  // The first word of a step.
  typedef struct packed {
    logic [7:0] function_code;
    logic [7:0] first;
    logic [7:0] count;
    logic [7:0] reserved;
  } mrsp_step_t;

  // A region of a long set-up, from its third word on; before come its flags and 7 bytes, behind it 4.
  typedef struct packed {
    logic [63:0] host_addr;
    logic [63:0] size;
    logic [31:0] host_rkey;
  } mrsp_long_request_t;

  // A region in its answer.
  typedef struct packed {
    logic [63:0] addr;
    logic [63:0] size;
    logic [31:0] rkey;
    logic [31:0] reserved;
  } mrsp_long_advert_t;

  // ---- events for the counters ----
  typedef struct packed {
    logic regions_granted;
    logic regions_refused;
    logic call_started;
    logic call_finished;
    logic call_failed;
    logic call_cancelled;        // one of call_failed: its caller cancelled it
    logic message_malformed;
    logic immediate_ignored;     // start while a call runs, or before set-up
  } rpc_events_t;
endpackage
