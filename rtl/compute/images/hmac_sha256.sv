// SPDX-License-Identifier: Apache-2.0

// SHA-256 of a message, or its HMAC-SHA-256 (RFC 2104) if `keyed`, with a key of 32 bytes, which can be written here and read by nothing.
// `keyed` is stable from before the first word of a message until `done`; so is the key. Message, `done` and digest are as sha256 has them.
//
// Cycles beside those of sha256 for the message: none without a key; with one, 4 blocks more: about 900.
module hmac_sha256
  import images_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        key_write,
    input  logic [2:0]  key_at,
    input  logic [31:0] key_word,    // the first byte highest
    input  logic        keyed,
    stream_if.sink      message,     // sha256_word_t
    output logic        done,
    input  logic [2:0]  digest_at,
    output logic [31:0] digest_word
);
  typedef enum logic [2:0] {
    IDLE,
    INNER_KEY,
    MESSAGE,
    INNER,      // its hash is awaited,
    KEEP,       // and kept
    OUTER_KEY,
    OUTER,      // the inner hash is given
    LAST
  } state_e;

  state_e      state_q;
  logic [3:0]  at_q;         // word of a key's block, or of the inner hash
  (* ram_style = "distributed" *) logic [31:0] key[8];
  (* ram_style = "distributed" *) logic [31:0] inner[8];
  logic        hashed;
  logic [31:0] hash_word;
  stream_if #(.T(sha256_word_t)) words ();

  always_ff @(posedge clk) if (key_write) key[key_at] <= key_word;
  always_ff @(posedge clk) if (state_q == KEEP) inner[at_q[2:0]] <= hash_word;

  // The key, with zeros behind it to a whole block.
  wire [31:0] block_word = at_q[3] ? '0 : key[at_q[2:0]];
  wire [31:0] inner_word = inner[at_q[2:0]];
  sha256_word_t given;
  assign given = message.data;
  always_comb begin
    unique case (state_q)
      INNER_KEY: words.data = '{data: block_word ^ 32'h3636_3636, last: 1'b0, bytes: '0};
      OUTER_KEY: words.data = '{data: block_word ^ 32'h5c5c_5c5c, last: 1'b0, bytes: '0};
      OUTER:     words.data = '{data: inner_word, last: at_q[2:0] == 3'd7, bytes: 3'd4};
      default:   words.data = given;
    endcase
  end
  assign words.valid   = state_q == MESSAGE ? message.valid : state_q inside {INNER_KEY, OUTER_KEY, OUTER};
  assign message.ready = state_q == MESSAGE && words.ready;

  sha256 blocks (
      .clk, .rst, .message(words), .done(hashed), .digest_at(state_q == KEEP ? at_q[2:0] : digest_at), .digest_word(hash_word)
  );
  assign digest_word = hash_word;

  wire moved = words.valid && words.ready;
  always_ff @(posedge clk) begin
    done <= 1'b0;
    unique case (state_q)
      IDLE: begin
        at_q <= '0;
        if (message.valid) state_q <= keyed ? INNER_KEY : MESSAGE;
      end
      INNER_KEY: begin
        at_q <= at_q + 4'(moved);
        if (moved && at_q == '1) state_q <= MESSAGE;
      end
      MESSAGE: if (moved && given.last) state_q <= keyed ? INNER : LAST;
      INNER: if (hashed) state_q <= KEEP;
      KEEP: begin
        at_q <= at_q[2:0] == '1 ? '0 : at_q + 1'b1;
        if (at_q[2:0] == '1) state_q <= OUTER_KEY;
      end
      OUTER_KEY: begin
        at_q <= at_q + 4'(moved);
        if (moved && at_q == '1) state_q <= OUTER;
      end
      OUTER: begin
        at_q <= at_q + 4'(moved);
        if (moved && at_q[2:0] == '1) state_q <= LAST;
      end
      default:
      if (hashed) begin
        done    <= 1'b1;
        state_q <= IDLE;
      end
    endcase
    if (rst) begin
      state_q <= IDLE;
      done    <= 1'b0;
    end
  end
endmodule
