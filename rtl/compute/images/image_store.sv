// SPDX-License-Identifier: Apache-2.0

// Takes images of kernels by its registers (images.rdl) into places of device memory that nobody else can write (axi_fence), verifies them
// (image_verifier) and gives their records and bitstreams to the sockets. There is a record only for an image that was verified: it is gone
// before the first word of another one can be written, and when a key is written. A place that is `used` takes no upload.
//
// One upload at a time: a new one ends the one before, whose client is told by the next access, as its number is no longer that of the
// upload. A client that goes away leaves nothing that waits. A register access takes the cycles of axil_access, a write beside that waits for
// memory to have the word before. Sockets read the store word by word, in turn with the verifier. `record_word`: one cycle.
module image_store
  import compute_pkg::*;
  import images_pkg::*;
  import images_regs_pkg::*;
#(
    parameter int unsigned  SLOTS      = 2,
    parameter int unsigned  SLOT_BYTES = 16384,       // power of two
    parameter int unsigned  SOCKETS    = 1,
    parameter logic [SOCKETS-1:0] TAKES = '1,         // sockets that take images
    parameter logic [63:0]  BUILD      = '0,          // digest of the device's build
    parameter logic [63:0]  BASE       = '0,          // of the store, in device memory: a multiple of its size
    parameter logic [31:0]  NEXT       = '0,          // the block of registers behind this one
    parameter int unsigned  DATA_W     = 512
) (
    input  logic            clk,
    input  logic            rst,
    axil_if.slave           bus,                                 // 12 bits of address
    input  logic [SOCKETS-1:0][MAX_SLOTS-1:0] used,              // by each socket: the image in it is there, or being put there
    output logic [SOCKETS-1:0][MAX_SLOTS-1:0] verified,          // for each socket: it has its record
    input  image_slot_t [SOCKETS-1:0]     record_slot,
    input  record_word_t [SOCKETS-1:0]    record_at,
    output logic [SOCKETS-1:0][31:0]      record_word,           // a cycle later
    stream_if.sink          fetch[SOCKETS],                      // store_word_t: a word of the store,
    stream_if.source        fetched[SOCKETS],                    // store_answer_t
    axi_if.master           mem,
    output logic            idle
);
  localparam int unsigned SLOT_WORDS = SLOT_BYTES / 4;
  typedef logic [$clog2(32 * SLOTS)-1:0] record_index_t;
  if (SLOTS < 1 || SLOTS > MAX_SLOTS || SLOT_BYTES < 4096 || 1 << $clog2(SLOT_BYTES) != SLOT_BYTES || SLOTS * SLOT_WORDS > 1 << 24) begin : g_bad
    $fatal(1, "image_store: 1 to %0d slots of a power of two from 4096 bytes, 64 MiB together", MAX_SLOTS);
  end

  typedef enum logic [1:0] {
    NOTHING,
    UPLOAD,
    VERIFY
  } state_e;

  state_e            state_q;
  store_error_e      error_q;
  logic [7:0]        select_q, upload_q;
  image_slot_t       slot_q;                 // of the upload
  store_word_t       place_q;
  logic              placed_q;               // PLACE was written in this upload
  logic              failed_q;               // memory has not taken a word of it
  logic [MAX_SLOTS-1:0] verified_q;
  logic [MAX_SLOTS-1:0][7:0] socket_q;
  logic [7:0]        written_q, nonzero_q;   // words of the key

  // ---- registers ----
  logic [11:0] at;
  logic        write, can_write, writing_q, access_idle;
  logic [31:0] wdata, rdata;
  axil_if #(.ADDR_W(12)) taken ();
  assign taken.awaddr  = bus.awaddr;
  assign taken.awvalid = bus.awvalid && !writing_q;
  assign bus.awready   = taken.awready;
  assign taken.wdata   = bus.wdata;
  assign taken.wstrb   = bus.wstrb;
  assign taken.wvalid  = bus.wvalid;
  assign bus.wready    = taken.wready;
  assign bus.bresp     = taken.bresp;
  assign bus.bvalid    = taken.bvalid;
  assign taken.bready  = bus.bready;
  assign taken.araddr  = bus.araddr;
  assign taken.arvalid = bus.arvalid;
  assign bus.arready   = taken.arready;
  assign bus.rdata     = taken.rdata;
  assign bus.rresp     = taken.rresp;
  assign bus.rvalid    = taken.rvalid;
  assign taken.rready  = bus.rready;
  axil_access registers (
      .clk, .rst, .bus(taken), .at, .write, .wdata, .readable(readable(at)), .writable(writable(at) && can_write), .rdata, .idle(access_idle)
  );

  logic [MAX_SLOTS-1:0] in_use;
  always_comb begin
    in_use = '0;
    for (int unsigned i = 0; i < SOCKETS; i++) in_use |= used[i];
  end
  wire has_slot = select_q < 8'(SLOTS);
  wire image_slot_t selected = has_slot ? select_q[1:0] : '0;
  wire provisioned = &written_q && |nonzero_q;
  wire to_key = at inside {[AT_KEY : AT_KEY + 12'(4 * KEY_WORDS - 1)]};
  wire to_place = state_q == UPLOAD && wdata[31:24] == upload_q && wdata[23:0] < store_word_t'(SLOT_WORDS);
  wire to_data = state_q == UPLOAD && placed_q && place_q < store_word_t'(SLOT_WORDS);

  always_comb begin
    unique case (at)
      AT_PLACE: can_write = to_place;
      AT_DATA:  can_write = to_data;
      default:  can_write = state_q != VERIFY;
    endcase
    unique case (at)
      AT_TYPE:       rdata = BLOCK_TYPE;
      AT_VERSION:    rdata = BLOCK_VERSION;
      AT_NEXT:       rdata = NEXT;
      AT_SLOTS:      rdata = SLOTS;
      AT_SLOT_BYTES: rdata = SLOT_BYTES;
      AT_SELECT:     rdata = 32'(select_q);
      AT_STATE:      rdata = {8'd0, upload_q, 8'(error_q), provisioned, 5'd0, state_q};
      AT_PLACE:      rdata = {upload_q, place_q};
      AT_SLOT:       rdata = has_slot ? {22'd0, in_use[selected], verified_q[selected], socket_q[selected]} : '0;
      default:       rdata = '0;
    endcase
  end

  // ---- commands ----
  logic         begins, ended, record_write;
  store_error_e verdict, refusal;
  logic [7:0]   of_socket;
  record_word_t verified_at;
  logic [31:0]  verified_word;
  wire command = write && at == AT_COMMAND;
  assign begins = command && wdata == STORE_VERIFY && state_q == UPLOAD && !failed_q;
  always_comb begin
    unique case (wdata)
      STORE_BEGIN:  refusal = !has_slot ? STORE_BAD_SLOT : !provisioned ? STORE_NO_KEY : in_use[selected] ? STORE_IN_USE : STORE_OK;
      STORE_VERIFY: refusal = state_q != UPLOAD ? STORE_NO_UPLOAD : failed_q ? STORE_MEMORY : STORE_OK;
      STORE_FORGET: refusal = !has_slot ? STORE_BAD_SLOT : in_use[selected] ? STORE_IN_USE : STORE_OK;
      default:      refusal = STORE_BAD_COMMAND;
    endcase
  end

  // ---- the ways to the store: words that come, the verifier, the sockets ----
  localparam int unsigned WRITER = SOCKETS, VERIFIER = SOCKETS + 1, USERS = SOCKETS + 2;
  stream_if #(.T(store_access_t)) user[USERS] ();
  stream_if #(.T(store_answer_t)) told[USERS] ();
  stream_if #(.T(store_access_t)) access ();
  stream_if #(.T(store_answer_t)) answer ();
  store_access_t word_q;
  logic          asked_q;
  assign user[WRITER].valid = writing_q && !asked_q;
  assign user[WRITER].data  = word_q;
  assign told[WRITER].ready = 1'b1;
  store_answer_t written;
  assign written = told[WRITER].data;
  for (genvar i = 0; i < SOCKETS; i++) begin : g_socket
    assign user[i].valid    = fetch[i].valid;
    assign user[i].data     = '{write: 1'b0, word: fetch[i].data & store_word_t'(SLOTS * SLOT_WORDS - 1), data: '0};
    assign fetch[i].ready   = user[i].ready;
    assign fetched[i].valid = told[i].valid;
    assign fetched[i].data  = told[i].data;
    assign told[i].ready    = fetched[i].ready;
    for (genvar k = 0; k < MAX_SLOTS; k++) begin : g_slot
      assign verified[i][k] = verified_q[k] && socket_q[k] == 8'(i);
    end
    if (TAKES[i]) begin : g_records
      ram_1w1r #(.T(logic [31:0]), .WORDS(32 * SLOTS)) records (
          .clk, .write(record_write), .write_at(record_index_t'({slot_q, verified_at})), .write_data(verified_word),
          .read(1'b1), .read_at(record_index_t'({record_slot[i], record_at[i]})), .read_data(record_word[i])
      );
    end else begin : g_no_records
      assign record_word[i] = '0;
      wire unused = &{1'b0, record_slot[i], record_at[i]};
    end
  end

  stream_share #(.COMMAND(store_access_t), .ANSWER(store_answer_t), .N(USERS)) share (
      .clk, .rst, .command(user), .answer(told), .to_server(access), .from_server(answer)
  );
  image_memory #(.DATA_W(DATA_W), .BASE(BASE)) memory (.clk, .rst, .access, .answer, .mem);

  image_verifier #(
      .SOCKETS(SOCKETS), .TAKES(TAKES), .BUILD(BUILD), .BASE(BASE), .SLOT_WORDS(SLOT_WORDS)
  ) verifier (
      .clk, .rst, .key_write(write && to_key), .key_at(at[4:2]), .key_word(swapped(wdata)), .begins, .slot(slot_q), .words(place_q),
      .ended, .error(verdict), .of_socket, .record_write, .record_at(verified_at), .record_word(verified_word),
      .access(user[VERIFIER]), .answer(told[VERIFIER])
  );

  always_ff @(posedge clk) begin
    if (write) begin
      unique case (at)
        AT_SELECT: select_q <= wdata[7:0];
        AT_PLACE: begin
          place_q  <= wdata[23:0];
          placed_q <= 1'b1;
        end
        AT_DATA: begin
          place_q   <= place_q + 1'b1;
          word_q    <= '{write: 1'b1, word: store_word_t'(slot_q) * store_word_t'(SLOT_WORDS) + place_q, data: wdata};
          writing_q <= 1'b1;
        end
        AT_COMMAND: begin
          error_q <= refusal;
          if (wdata == STORE_BEGIN && refusal == STORE_OK) begin
            state_q              <= UPLOAD;
            slot_q               <= selected;
            upload_q             <= upload_q + 1'b1;
            place_q              <= '0;
            placed_q             <= 1'b0;
            failed_q             <= 1'b0;
            verified_q[selected] <= 1'b0;
          end
          if (wdata == STORE_VERIFY) state_q <= begins ? VERIFY : NOTHING;
          if (wdata == STORE_FORGET && refusal == STORE_OK) verified_q[selected] <= 1'b0;
        end
        default: begin  // the key
          written_q[at[4:2]] <= 1'b1;
          nonzero_q[at[4:2]] <= wdata != '0;
          verified_q         <= '0;
        end
      endcase
    end
    if (user[WRITER].valid && user[WRITER].ready) asked_q <= 1'b1;
    if (told[WRITER].valid) begin
      writing_q <= 1'b0;
      asked_q   <= 1'b0;
      failed_q  <= failed_q || written.error;
    end
    if (ended) begin
      state_q <= NOTHING;
      error_q <= verdict;
      if (verdict == STORE_OK) begin
        verified_q[slot_q] <= 1'b1;
        socket_q[slot_q]   <= of_socket;
      end
    end
    if (rst) begin
      state_q    <= NOTHING;
      error_q    <= STORE_OK;
      select_q   <= '0;
      upload_q   <= '0;
      place_q    <= '0;
      placed_q   <= 1'b0;
      verified_q <= '0;
      socket_q   <= '0;
      written_q  <= '0;
      nonzero_q  <= '0;
      writing_q  <= 1'b0;
      asked_q    <= 1'b0;
    end
  end

  assign idle = access_idle && state_q != VERIFY && !writing_q && !bus.awvalid;
endmodule
