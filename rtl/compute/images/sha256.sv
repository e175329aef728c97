// SPDX-License-Identifier: Apache-2.0

// SHA-256 (FIPS 180-4, 6.2) of a message of up to 2^32 - 1 bytes, in words with the first byte highest. A message ends with a word of 0 to 4
// bytes; the padding is added here. `done` pulses when `digest_word` is the digest's word `digest_at` (same cycle), until a word of the
// next message is taken.
//
// One block of 16 words at a time, and no word is taken meanwhile: 209 cycles behind its last word. A round takes 3 cycles, so that no
// cycle has more than two additions in a row. Words may come at any pace.
module sha256
  import images_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    stream_if.sink      message,     // sha256_word_t
    output logic        done,
    input  logic [2:0]  digest_at,
    output logic [31:0] digest_word
);
  // The first 32 bits of the fractional parts of the cube roots of the first 64 primes (4.2.2), the first one lowest.
  localparam logic [63:0][31:0] K = {
      32'hc67178f2, 32'hbef9a3f7, 32'ha4506ceb, 32'h90befffa, 32'h8cc70208, 32'h84c87814, 32'h78a5636f, 32'h748f82ee,
      32'h682e6ff3, 32'h5b9cca4f, 32'h4ed8aa4a, 32'h391c0cb3, 32'h34b0bcb5, 32'h2748774c, 32'h1e376c08, 32'h19a4c116,
      32'h106aa070, 32'hf40e3585, 32'hd6990624, 32'hd192e819, 32'hc76c51a3, 32'hc24b8b70, 32'ha81a664b, 32'ha2bfe8a1,
      32'h92722c85, 32'h81c2c92e, 32'h766a0abb, 32'h650a7354, 32'h53380d13, 32'h4d2c6dfc, 32'h2e1b2138, 32'h27b70a85,
      32'h14292967, 32'h06ca6351, 32'hd5a79147, 32'hc6e00bf3, 32'hbf597fc7, 32'hb00327c8, 32'ha831c66d, 32'h983e5152,
      32'h76f988da, 32'h5cb0a9dc, 32'h4a7484aa, 32'h2de92c6f, 32'h240ca1cc, 32'h0fc19dc6, 32'hefbe4786, 32'he49b69c1,
      32'hc19bf174, 32'h9bdc06a7, 32'h80deb1fe, 32'h72be5d74, 32'h550c7dc3, 32'h243185be, 32'h12835b01, 32'hd807aa98,
      32'hab1c5ed5, 32'h923f82a4, 32'h59f111f1, 32'h3956c25b, 32'he9b5dba5, 32'hb5c0fbcf, 32'h71374491, 32'h428a2f98
  };

  // Likewise of the square roots of the first 8 (5.3.3).
  localparam logic [7:0][31:0] INITIAL = {
      32'h5be0cd19, 32'h1f83d9ab, 32'h9b05688c, 32'h510e527f, 32'ha54ff53a, 32'h3c6ef372, 32'hbb67ae85, 32'h6a09e667
  };

  function automatic logic [31:0] rotated(logic [31:0] x, int unsigned n);
    return x >> n | x << (32 - n);
  endfunction

  typedef enum logic [1:0] {
    FEED,     // words of the message, then padding, into the schedule
    LOAD,     // the hash into the working variables, the last word first
    ROUNDS,
    ADD       // the working variables to the hash, the last word first
  } state_e;

  state_e           state_q;
  logic [15:0][31:0] w_q;                   // schedule: the word of this round lowest
  logic [31:0]      a_q, b_q, c_q, d_q, e_q, f_q, g_q, h_q;
  logic [31:0]      t1_q, t2_q, kw_q, next_q;
  logic [5:0]       round_q;                // also counts the words of LOAD and ADD
  logic [1:0]       phase_q;
  logic [3:0]       at_q;                   // the next word of the block
  logic             first_q;                // block of its message
  logic             ended_q;                // the message has ended,
  logic             marked_q;               // the bit behind it is there,
  logic             length_q;               // and the first word of its length
  logic             final_q;                // this block is the last one
  logic [31:0]      bytes_q;

  // ---- words ----
  sha256_word_t given;
  assign given = message.data;
  wire partial = given.last && given.bytes != 3'd4;
  wire [4:0] shift = {given.bytes[1:0], 3'd0};
  logic        feed;
  logic [31:0] word;
  always_comb begin
    feed = 1'b1;
    if (!ended_q) begin
      feed = message.valid;
      word = partial ? given.data & ~(32'hffff_ffff >> shift) | 32'h8000_0000 >> shift : given.data;
    end else if (!marked_q) word = 32'h8000_0000;
    else if (at_q == 4'd14) word = 32'(bytes_q[31:29]);
    else if (at_q == 4'd15 && length_q) word = {bytes_q[28:0], 3'd0};
    else word = '0;
    if (state_q != FEED) feed = 1'b0;
  end
  assign message.ready = state_q == FEED && !ended_q;

  // ---- the hash between blocks ----
  (* ram_style = "distributed" *) logic [31:0] hash[8];
  wire moves = state_q == LOAD || state_q == ADD;
  wire [2:0] hash_at = moves ? ~round_q[2:0] : digest_at;
  wire [31:0] stored = hash[hash_at];
  wire [31:0] former = first_q ? INITIAL[hash_at] : stored;
  always_ff @(posedge clk) if (state_q == ADD) hash[hash_at] <= former + h_q;
  assign digest_word = stored;

  // ---- rounds (6.2.2) ----
  wire [31:0] sum_e = rotated(e_q, 6) ^ rotated(e_q, 11) ^ rotated(e_q, 25);
  wire [31:0] sum_a = rotated(a_q, 2) ^ rotated(a_q, 13) ^ rotated(a_q, 22);
  wire [31:0] choice = e_q & f_q ^ ~e_q & g_q;
  wire [31:0] majority = a_q & b_q ^ a_q & c_q ^ b_q & c_q;
  wire [31:0] sigma_0 = rotated(w_q[1], 7) ^ rotated(w_q[1], 18) ^ w_q[1] >> 3;
  wire [31:0] sigma_1 = rotated(w_q[14], 17) ^ rotated(w_q[14], 19) ^ w_q[14] >> 10;
  wire step = state_q == ROUNDS && phase_q == 2'd2;

  always_ff @(posedge clk) begin
    done <= 1'b0;
    if (phase_q == 2'd0) begin
      kw_q   <= K[round_q] + w_q[0];
      t1_q   <= sum_e + choice;
      t2_q   <= sum_a + majority;
      next_q <= sigma_0 + w_q[0];
    end else begin
      t1_q   <= t1_q + h_q + kw_q;
      next_q <= next_q + sigma_1 + w_q[9];
    end
    if (step || moves) begin
      a_q <= moves ? former : t1_q + t2_q;
      b_q <= a_q;
      c_q <= b_q;
      d_q <= c_q;
      e_q <= moves ? d_q : d_q + t1_q;
      f_q <= e_q;
      g_q <= f_q;
      h_q <= g_q;
    end
    if (step || feed) w_q <= {step ? next_q : word, w_q[15:1]};

    unique case (state_q)
      FEED: begin
        round_q <= '0;
        phase_q <= '0;
        if (feed) begin
          at_q <= at_q + 1'b1;
          if (!ended_q) begin
            bytes_q  <= bytes_q + (given.last ? 32'(given.bytes) : 32'd4);
            ended_q  <= given.last;
            marked_q <= partial;
          end else begin
            marked_q <= 1'b1;
            if (at_q == 4'd14) length_q <= marked_q;
            if (at_q == 4'd15) final_q <= length_q;
          end
          if (at_q == 4'd15) state_q <= LOAD;
        end
      end
      LOAD: begin
        round_q <= round_q[2:0] == 3'd7 ? '0 : round_q + 1'b1;
        if (round_q[2:0] == 3'd7) state_q <= ROUNDS;
      end
      ROUNDS: begin
        phase_q <= phase_q == 2'd2 ? '0 : phase_q + 1'b1;
        if (phase_q == 2'd2) begin
          round_q <= round_q + 1'b1;
          if (round_q == '1) state_q <= ADD;
        end
      end
      default: begin  // ADD
        round_q <= round_q + 1'b1;
        if (round_q[2:0] == 3'd7) begin
          first_q <= final_q;
          state_q <= FEED;
          if (final_q) begin
            done     <= 1'b1;
            ended_q  <= 1'b0;
            length_q <= 1'b0;
            final_q  <= 1'b0;
            bytes_q  <= '0;
          end
        end
      end
    endcase
    if (rst) begin
      state_q  <= FEED;
      at_q     <= '0;
      first_q  <= 1'b1;
      ended_q  <= 1'b0;
      length_q <= 1'b0;
      final_q  <= 1'b0;
      bytes_q  <= '0;
      done     <= 1'b0;
    end
  end
endmodule
