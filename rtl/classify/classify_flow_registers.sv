// SPDX-License-Identifier: Apache-2.0

// The registers of the flows (classifier.rdl, FLOW_*), a part of the page of classify_registers. A flow is staged word by word, and becomes one
// by the write to FLOW_PUT, in the 3 cycles before the bus can bring the next write. While a command is under way all writes are refused, and while
// counters wait to be cleared every command but FLOW_DELETE.
module classify_flow_registers
  import classify_pkg::*;
  import classifier_regs_pkg::*;
(
    input  logic          clk,
    input  logic          rst,
    input  logic [11:0]   at,
    input  logic          write,          // `wdata` to `at`, one of these registers, which was permitted in the cycle before
    input  logic [31:0]   wdata,
    output logic          permitted,
    output logic [31:0]   value,          // of `at` a cycle before
    // classify_flows
    output flow_command_t command,
    output flow_entry_t   entry,
    input  logic          busy,
    input  logic          clearing,
    input  logic          got,
    input  flow_entry_t   got_entry,
    input  logic [31:0]   got_frames,
    input  logic [39:0]   got_bytes,
    output logic [7:0]    used_at,
    input  logic [31:0]   used
);
  localparam int unsigned KEY_WORDS = ($bits(flow_key_t) + 31) / 32;
  localparam bit IN_PLACE = AT_FLOW_KEY == 12'h400 && AT_FLOW_USED == 12'h500;
  if (!IN_PLACE || FLOW_KEY_WORDS != KEY_WORDS || FLOW_USED_WORDS * 32 != FLOW_PLACES) begin : g_check
    $fatal(1, "classify_flow_registers: the registers are not where this module has them");
  end

  // What FLOW_PUT, FLOW_DELETE and FLOW_GET are given.
  typedef struct packed {
    logic [17:0] zero;
    logic        whole;                   // of IPv6: the row, from slot 0 on
    flow_place_t place;
  } place_word_t;

  logic [KEY_WORDS-1:0][31:0] key_q;
  decision_t     decision_q;
  logic [63:0]   seed_q;
  place_word_t   named;
  assign named = wdata;
  wire exists   = named.place.slot < 2'(FLOW_SLOTS) && !(named.whole && named.place.slot != '0);

  // Of the registers that can be written these bits of the address are enough to tell them apart.
  function automatic logic is(logic [11:0] register);
    return at[7:2] == register[7:2];
  endfunction
  wire is_put   = is(AT_FLOW_PUT);
  wire is_key   = at[7:6] == AT_FLOW_KEY[7:6] && at[5:2] < 4'(KEY_WORDS);
  wire is_place = is_put || is(AT_FLOW_DELETE) || is(AT_FLOW_GET);
  wire counts   = is_put || is(AT_FLOW_GET) || is(AT_FLOW_SEED_HI);       // has to do with the counters
  assign entry     = '{key: ($bits(flow_key_t))'(key_q), decision: decision_q};
  assign permitted = !busy && !write && !(counts && clearing) && !(is_place && !exists) && !(is_put && named.whole != entry.key.v6);

  always_comb begin
    command       = '0;
    command.place = named.place;
    command.v6    = named.whole;
    command.seed  = {wdata, seed_q[31:0]};
    if (write) begin
      command.put    = is_put;
      command.remove = is(AT_FLOW_DELETE);
      command.get    = is(AT_FLOW_GET);
      command.renew  = is(AT_FLOW_SEED_HI);
    end
  end

  always_ff @(posedge clk) begin
    if (write) begin
      if (is_key) key_q[at[5:2]] <= wdata;
      if (is(AT_FLOW_ACTION)) decision_q <= wdata[$bits(decision_t)-1:0];
      if (is(AT_FLOW_SEED_LO)) seed_q[31:0] <= wdata;
      if (is(AT_FLOW_SEED_HI)) seed_q[63:32] <= wdata;
    end
    if (got) begin
      key_q      <= (32 * KEY_WORDS)'(got_entry.key);
      decision_q <= got_entry.decision;
    end
    if (rst) begin
      key_q      <= '0;
      decision_q <= '0;
      seed_q     <= '0;
    end
  end

  // ---- read ----
  assign used_at = 8'(at[9:2] - AT_FLOW_USED[9:2]);
  always_ff @(posedge clk) begin
    unique case (at)
      AT_FLOW_ACTION:   value <= 32'(decision_q);
      AT_FLOW_SEED_LO:  value <= seed_q[31:0];
      AT_FLOW_SEED_HI:  value <= seed_q[63:32];
      AT_FLOW_FRAMES:   value <= got_frames;
      AT_FLOW_BYTES_LO: value <= got_bytes[31:0];
      AT_FLOW_BYTES_HI: value <= 32'(got_bytes[39:32]);
      default:          value <= at[11:8] == AT_FLOW_KEY[11:8] ? key_q[at[5:2]] : used;
    endcase
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, named.zero};
endmodule
