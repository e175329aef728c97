// SPDX-License-Identifier: Apache-2.0

// Verifies an image as it is in the store, in one pass: its header, the digest of all bytes before the digest, and the digest's signature.
// `begins` starts it, with `slot` and the words that came; `ended` pulses with `error`. What the record of the image has goes to `record`
// word by word on the way, so it means something only if there was no error.
//
// `begins` also ends a hash that an earlier error has left.
//
// The words are read once, and what is hashed is what was read: the store is not written from `begins` on. All 8 words of the digest and of
// the signature are compared before the answer. A word takes as long as the store does, beside it every block of 16 words 209 cycles, and
// the signature about 1,100; so it ends if memory answers.
module image_verifier
  import compute_pkg::*;
  import images_pkg::*;
#(
    parameter int unsigned  SOCKETS    = 1,
    parameter logic [SOCKETS-1:0] TAKES = '1,         // sockets that take images
    parameter logic [63:0]  BUILD      = '0,
    parameter logic [63:0]  BASE       = '0,          // of the store, in device memory
    parameter int unsigned  SLOT_WORDS = 4096
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            key_write,                // see hmac_sha256
    input  logic [2:0]      key_at,
    input  logic [31:0]     key_word,
    input  logic            begins,
    input  image_slot_t           slot,
    input  store_word_t     words,                    // of the file
    output logic            ended,
    output store_error_e    error,
    output logic [7:0]      of_socket,                // from `ended` on
    output logic            record_write,
    output record_word_t    record_at,
    output logic [31:0]     record_word,
    stream_if.source        access,                   // store_access_t: reads
    stream_if.sink          answer                    // store_answer_t
);
  localparam store_word_t HEAD = store_word_t'(IMAGE_HEAD_WORDS);
  localparam store_word_t AROUND = store_word_t'(IMAGE_HEAD_WORDS + IMAGE_TAIL_WORDS);

  typedef enum logic [2:0] {
    IDLE,
    READ,       // a word of what is hashed is asked for,
    HASH,       // comes, and goes into the hash
    DIGEST,     // the hash is awaited,
    COMPARE,    // and compared with the words behind
    SIGN,       // its words go into the keyed hash, which is awaited,
    PLACE,      // where the image is goes to the record
    END
  } state_e;

  state_e       state_q;
  image_slot_t        slot_q;
  store_word_t  words_q, word_q;
  store_error_e error_q;
  logic         asked_q;        // the word is asked for
  logic         keyed_q;        // the signature is looked at
  logic         same_q;
  logic [3:0]   at_q;           // word of a digest
  store_answer_t got;
  assign got = answer.data;

  // ---- header ----
  wire head = state_q == HASH && word_q < HEAD;
  wire [4:0] head_at = word_q[4:0];
  wire [31:0] length = {6'd0, words_q - AROUND, 2'd0};   // of the bitstream
  logic takes;
  always_comb begin
    takes = 1'b0;
    for (int unsigned i = 0; i < SOCKETS; i++) if (TAKES[i] && got.data == 32'(i)) takes = 1'b1;
  end
  store_error_e wrong;
  always_comb begin
    wrong = STORE_OK;
    if (head) begin
      unique case (head_at) inside
        HEAD_MAGIC:                           if (got.data != IMAGE_MAGIC) wrong = STORE_BAD_HEADER;
        HEAD_VERSION:                         if (got.data != IMAGE_VERSION) wrong = STORE_BAD_HEADER;
        HEAD_BUILD_LO:                        if (got.data != BUILD[31:0]) wrong = STORE_BAD_BUILD;
        HEAD_BUILD_HI:                        if (got.data != BUILD[63:32]) wrong = STORE_BAD_BUILD;
        HEAD_SOCKET:                          if (!takes) wrong = STORE_BAD_SOCKET;
        HEAD_LENGTH:                          if (got.data != length) wrong = STORE_BAD_LENGTH;
        [HEAD_IDENTITY : HEAD_IDENTITY_END]:  wrong = STORE_OK;
        default:                              if (got.data != '0) wrong = STORE_BAD_HEADER;
      endcase
    end
    if (got.error) wrong = STORE_MEMORY;
  end
  wire fits = wrong == STORE_OK;

  // ---- hash ----
  (* ram_style = "distributed" *) logic [31:0] digest[8];
  stream_if #(.T(sha256_word_t)) hashed ();
  logic         hash_done;
  logic [31:0]  hash_word;
  wire          last = word_q == words_q - store_word_t'(IMAGE_TAIL_WORDS) - 1'b1;
  assign hashed.valid = state_q == HASH && answer.valid && fits || state_q == SIGN && !at_q[3];
  assign hashed.data  = keyed_q ? '{data: digest[at_q[2:0]], last: at_q[2:0] == '1, bytes: 3'd4}
                                : '{data: swapped(got.data), last: last, bytes: 3'd4};
  hmac_sha256 hasher (
      .clk, .rst(rst || begins), .key_write, .key_at, .key_word, .keyed(keyed_q), .message(hashed), .done(hash_done), .digest_at(at_q[2:0]),
      .digest_word(hash_word)
  );

  // ---- record ----
  wire identity = head && head_at inside {[HEAD_IDENTITY : HEAD_IDENTITY_END]};
  wire [63:0] place = BASE + 64'(slot_q) * 64'(SLOT_WORDS * 4) + 64'(IMAGE_HEAD_WORDS * 4);
  always_comb begin
    record_write = identity && answer.valid || state_q == COMPARE && !keyed_q && answer.valid || state_q == PLACE;
    record_at    = identity ? record_word_t'(head_at - HEAD_IDENTITY) : RECORD_DIGEST | record_word_t'(at_q[2:0]);
    record_word  = got.data;
    if (state_q == PLACE) begin
      record_at = RECORD_ADDR + record_word_t'(at_q[1:0]);
      unique case (at_q[1:0])
        2'd0:    record_word = place[31:0];
        2'd1:    record_word = place[63:32];
        default: record_word = length;
      endcase
    end
  end

  // ---- words ----
  assign access.valid = (state_q == READ || state_q == COMPARE) && !asked_q;
  assign access.data  = '{write: 1'b0, word: store_word_t'(slot_q) * store_word_t'(SLOT_WORDS) + word_q, data: '0};
  assign answer.ready = state_q == HASH ? hashed.ready || !fits : state_q == COMPARE;
  assign ended        = state_q == END;
  assign error        = error_q;

  wire same = same_q && got.data == swapped(hash_word);
  always_ff @(posedge clk) begin
    if (state_q == COMPARE && !keyed_q) digest[at_q[2:0]] <= hash_word;
    if (head && answer.valid && head_at == HEAD_SOCKET) of_socket <= got.data[7:0];
    unique case (state_q)
      IDLE: begin
        slot_q  <= slot;
        words_q <= words;
        word_q  <= '0;
        keyed_q <= 1'b0;
        asked_q <= 1'b0;
        at_q    <= '0;
        same_q  <= 1'b1;
        error_q <= words > AROUND ? STORE_OK : STORE_BAD_LENGTH;
        if (begins) state_q <= words > AROUND ? READ : END;
      end
      READ: if (access.ready) state_q <= HASH;
      HASH:
      if (answer.valid && answer.ready) begin
        word_q <= word_q + 1'b1;
        state_q <= last ? DIGEST : READ;
        if (!fits) begin
          error_q <= wrong;
          state_q <= END;
        end
      end
      DIGEST: if (hash_done) state_q <= COMPARE;
      COMPARE: begin
        if (access.valid && access.ready) asked_q <= 1'b1;
        if (answer.valid) begin
          asked_q <= 1'b0;
          word_q  <= word_q + 1'b1;
          at_q    <= at_q[2:0] == '1 ? '0 : at_q + 1'b1;
          same_q  <= same;
          if (got.error) begin
            error_q <= STORE_MEMORY;
            state_q <= END;
          end else if (at_q[2:0] == '1) begin
            if (!same) error_q <= keyed_q ? STORE_BAD_SIGNATURE : STORE_BAD_DIGEST;
            state_q <= !same ? END : keyed_q ? PLACE : SIGN;
            keyed_q <= 1'b1;
          end
        end
      end
      SIGN: begin
        if (hashed.valid && hashed.ready) at_q <= at_q + 1'b1;
        if (hash_done) begin
          at_q    <= '0;
          state_q <= COMPARE;
        end
      end
      PLACE: begin
        at_q <= at_q + 1'b1;
        if (at_q[1:0] == 2'd2) state_q <= END;
      end
      default: state_q <= IDLE;  // END
    endcase
    if (rst) state_q <= IDLE;
  end
endmodule
