// SPDX-License-Identifier: Apache-2.0

// Admission of callers (docs/reference/admission.md): a table of entries, each with a token of 16 bytes or for a network, its quotas, and
// its deadline. The connection manager asks with each REQ; the RPC engine asks for the quota of memory.
//
// A REQ is judged in 162 cycles, 114 without IPv6 (2 while admission is off), beside the connection manager's search: one word of the table a cycle,
// always all words of all entries, so the time tells nothing of a token. Deadlines are looked at once a second, in 17 cycles; a REQ
// that comes meanwhile waits for that. After reset the table is cleared in 256 cycles, and takes no access before.
//
// When an entry is revoked or its time is over, `sweep` pulses and `ended` says so, until software frees the entry. That takes that it
// has no connections, and that no REQ is being judged: so a connection never counts for what an entry became later.
module roce_admission
  import packet_pkg::*;
  import roce_pkg::*;
  import time_pkg::*;
  import event_log_pkg::*;
#(
    parameter longint unsigned CLOCK_HZ = 250_000_000,
    parameter bit              IPV6 = 1'b1       // callers may have IPv6 addresses; else an entry with an IPv6 network is for none
) (
    input  logic               clk,
    input  logic               rst,
    input  time_t              now,           // device cycles; may jump ahead
    axil_if.slave              bus,           // 12 bits of address

    input  logic               asks,          // a REQ is processed; `ask` is stable meanwhile
    input  admission_ask_t     ask,
    output logic               judged,        // while `asks`: the verdict is there
    output admission_verdict_t verdict,
    input  logic               opens,         // pulse: a connection by entry `changed` begins,
    input  logic               leaves,        // ends: all that it had is free
    input  admission_entry_t   changed,
    output admission_ended_t   ended,
    output logic               sweep,         // pulse: `ended` has one more

    input  admission_entry_t   quota_of,
    output logic [29:0]        quota,         // KiB of memory of this entry; same cycle
    output log_event_t [1:0]   to_log,          // states of entries: what software changes, whose time is over
    output logic               idle
);
  import admission_regs_pkg::*;

  typedef enum logic [1:0] {
    FREE,
    VALID,
    REVOKED,
    TIME_OVER
  } state_e;

  typedef enum logic [2:0] {
    CLEAR,
    IDLE,
    JUDGE,
    JUDGED,
    EXPIRE
  } fsm_e;

  // The words of an entry that a REQ is judged by, in this order: the prefix before what it is for. Of the address the last word first.
  typedef logic [3:0] step_t;
  localparam int unsigned ADDRESS_WORDS = IPV6 ? 4 : 1;
  localparam step_t S_PREFIX = 4'd0, S_FIRST_TOKEN = 4'd1, S_LAST_TOKEN = 4'd4, S_ADDRESS = 4'd5;
  localparam step_t S_CONNECTIONS = S_ADDRESS + step_t'(ADDRESS_WORDS);
  function automatic logic [3:0] word_of(step_t step);
    if (step == S_CONNECTIONS) return AT_CONNECTIONS[9:6];
    unique case (step)
      S_PREFIX: return AT_PREFIX[9:6];
      4'd1:     return AT_TOKEN_0[9:6];
      4'd2:     return AT_TOKEN_1[9:6];
      4'd3:     return AT_TOKEN_2[9:6];
      4'd4:     return AT_TOKEN_3[9:6];
      4'd5:     return AT_ADDRESS[9:6];
      4'd6:     return AT_ADDRESS_1[9:6];
      4'd7:     return AT_ADDRESS_2[9:6];
      default:  return AT_ADDRESS_3[9:6];
    endcase
  endfunction

  typedef logic [1:0] address_word_t;
  function automatic address_word_t address_word_of(step_t step);
    return IPV6 ? address_word_t'(step - S_ADDRESS) : '0;
  endfunction

  // The bits of a word of an address, 0 the last one, that are beyond a prefix of this length.
  function automatic logic [31:0] beyond(logic [7:0] length, address_word_t word);
    logic [2:0] earlier;                // words before it
    earlier = 3'd3 - 3'(word);
    if (length[7:5] > earlier) return '0;
    if (length[7:5] < earlier) return '1;
    return '1 >> length[4:0];
  endfunction

  localparam ip_addr_t MAPPED = ip_mapped('0);

  fsm_e             fsm_q;
  state_e [ADMISSION_ENTRIES-1:0] state_q;
  logic             enable, registers_idle;
  logic [31:0]      seconds_q;

  // ---- registers ----
  logic [7:0]       table_at;
  logic             table_write, state_write;
  logic [31:0]      table_in, table_out;
  admission_entry_t state_entry;
  logic [15:0]      used;
  roce_admission_registers registers (
      .clk, .rst, .ready(fsm_q != CLEAR), .bus, .enable, .seconds(seconds_q), .table_at, .table_write, .table_in, .table_out, .state_write,
      .state_entry, .state(state_q[state_entry]), .used, .idle(registers_idle)
  );

  // ---- the table: the registers' port, and one that is walked by ----
  (* ram_style = "block" *) logic [31:0] words[256];
  logic [7:0]  clear_q;
  logic [31:0] word_q;
  step_t       step_q, step_was_q;
  admission_entry_t entry_q, entry_was_q;
  wire clearing = fsm_q == CLEAR;
  wire free = state_q[table_at[3:0]] == FREE;
  wire write = clearing || table_write && free;
  wire [7:0] write_at = clearing ? clear_q : table_at;
  wire [31:0] write_data = clearing ? '0 : table_in;

  always_ff @(posedge clk) begin
    if (write) words[write_at] <= write_data;
    table_out <= words[write_at];
  end
  always_ff @(posedge clk) word_q <= words[{fsm_q == EXPIRE ? AT_DEADLINE[9:6] : word_of(step_q), entry_q}];

  // ---- quota of memory: read by the RPC engine in its own time ----
  (* ram_style = "distributed" *) logic [29:0] quotas[ADMISSION_ENTRIES];
  always_ff @(posedge clk) if (write && write_at[7:4] == AT_MEMORY[9:6]) quotas[write_at[3:0]] <= write_data[29:0];
  assign quota = quotas[quota_of];

  // ---- connections of each entry ----
  typedef logic [10:0] count_t;
  (* ram_style = "distributed" *) count_t counts[ADMISSION_ENTRIES];
  wire admission_entry_t count_at = clearing ? clear_q[3:0] : changed;
  always_ff @(posedge clk) begin
    if (clearing || opens || leaves) counts[count_at] <= clearing ? '0 : opens ? counts[changed] + 1'b1 : counts[changed] - 1'b1;
  end
  assign used = 16'(counts[state_entry]);

  // ---- seconds ----
  localparam time_t SECOND = time_t'(CLOCK_HZ);
  time_t next_q;
  logic  expire_due_q;
  wire   second = time_reached(now, next_q);   // after a jump of the time, one in each cycle
  always_ff @(posedge clk) begin
    if (second) begin
      seconds_q <= seconds_q + 1'b1;
      next_q    <= next_q + SECOND;
    end
    if (second) expire_due_q <= 1'b1;
    else if (fsm_q == IDLE) expire_due_q <= 1'b0;
    if (rst) begin
      seconds_q    <= '0;
      next_q       <= now + SECOND;
      expire_due_q <= 1'b0;
    end
  end

  // ---- the walk: a word is asked for in one cycle and looked at in the next ----
  logic walked_q, last_q;
  wire last_step = fsm_q == EXPIRE || step_q == S_CONNECTIONS;
  wire last = last_step && entry_q == admission_entry_t'(ADMISSION_ENTRIES - 1);
  wire walking = fsm_q inside {JUDGE, EXPIRE} && !last_q;

  always_ff @(posedge clk) begin
    walked_q    <= walking;
    step_was_q  <= step_q;
    entry_was_q <= entry_q;
    last_q      <= walking && last;
    step_q      <= !walking || last_step ? '0 : step_q + 1'b1;
    if (!walking) entry_q <= '0;
    else if (last_step) entry_q <= entry_q + 1'b1;
  end

  // ---- an entry against the REQ ----
  logic [31:0] outside_q;   // bits of a word of an address that the prefix does not compare
  logic        v6_q;        // the network is one of IPv6
  logic [7:0]  length_q;    // of its prefix; one of IPv4 is that of mapped addresses
  logic        anywhere_q, near_q, token_equal_q, token_none_q;
  wire [1:0]   token_word = 2'(S_LAST_TOKEN - step_was_q);
  wire         is_token = step_was_q inside {[S_FIRST_TOKEN:S_LAST_TOKEN]};
  wire         ask_word_equal = word_q == ask.token[token_word];
  wire         is_address = step_was_q inside {[S_ADDRESS:S_CONNECTIONS - 1'b1]};
  wire address_word_t address_word = address_word_of(step_was_q);
  wire [31:0]  network_word = v6_q || address_word == '0 ? word_q : MAPPED[32*address_word+:32];
  wire         near = ((network_word ^ ask.ip[32*address_word+:32]) & ~outside_q) == '0 && (IPV6 || !v6_q);
  wire [7:0]   stated = word_q[8] ? word_q[7:0] : {2'b00, word_q[5:0]};   // length of the prefix
  state_e      begun_q;     // what it was when its first word was looked at
  wire for_it = near_q && (ask.has_token ? token_equal_q && !token_none_q : token_none_q && !anywhere_q);
  wire decides = walked_q && fsm_q == JUDGE && step_was_q == S_CONNECTIONS && for_it;
  wire full = word_q[15:0] != '0 && 16'(counts[entry_was_q]) >= word_q[15:0];

  logic             valid_q, former_q, full_q;   // a valid entry is for it; one that has ended is
  admission_entry_t by_q;
  state_e           how_q;                       // of `former`

  always_ff @(posedge clk) begin
    if (step_was_q == S_PREFIX) begin
      anywhere_q    <= stated == '0;
      v6_q          <= word_q[8] && stated != '0;
      length_q      <= word_q[8] || stated == '0 ? stated : word_q[5] ? 8'd128 : 8'd96 + 8'(word_q[4:0]);
      token_equal_q <= 1'b1;
      token_none_q  <= 1'b1;
      begun_q       <= state_q[entry_was_q];
    end
    outside_q <= beyond(length_q, address_word_of(step_q));
    if (is_address) near_q <= near && (near_q || step_was_q == S_ADDRESS);
    if (is_token && !ask_word_equal) token_equal_q <= 1'b0;
    if (is_token && word_q != '0) token_none_q <= 1'b0;

    if (fsm_q == IDLE) begin
      valid_q  <= 1'b0;
      former_q <= 1'b0;
    end
    if (decides && begun_q == VALID && !valid_q) begin
      valid_q <= 1'b1;
      by_q    <= entry_was_q;
      full_q  <= full;
    end
    if (decides && begun_q inside {REVOKED, TIME_OVER}) begin
      former_q <= 1'b1;
      how_q    <= begun_q;
    end
  end

  logic open_q;   // admission is off
  assign judged = fsm_q == JUDGED;
  always_comb begin
    verdict.by = '{valid: !open_q, entry: by_q};
    if (open_q) verdict.why = ADM_NONE;
    else if (valid_q) verdict.why = full_q ? ADM_CONNECTIONS : ADM_NONE;
    else if (former_q) verdict.why = how_q == REVOKED ? ADM_REVOKED : ADM_TIME_OVER;
    else verdict.why = ask.has_token ? ADM_UNKNOWN : ADM_NO_TOKEN;
  end

  always_ff @(posedge clk) begin
    clear_q <= clearing ? clear_q + 1'b1 : '0;
    unique case (fsm_q)
      CLEAR: if (&clear_q) fsm_q <= IDLE;
      IDLE: begin
        open_q <= !enable;
        if (expire_due_q) fsm_q <= EXPIRE;
        else if (asks) fsm_q <= enable ? JUDGE : JUDGED;
      end
      JUDGE:  if (last_q) fsm_q <= JUDGED;
      EXPIRE: if (last_q) fsm_q <= IDLE;
      default: if (!asks) fsm_q <= IDLE;
    endcase
    if (rst) fsm_q <= CLEAR;
  end

  // ---- states ----
  wire [31:0] overdue = seconds_q - word_q;
  wire expires = walked_q && fsm_q == EXPIRE && state_q[entry_was_q] == VALID && word_q != '0 && !overdue[31];
  wire state_e wanted = state_e'(table_in[1:0]);
  wire state_e is = state_q[state_entry];

  wire state_known = state_write && table_in[31:2] == '0;
  wire adds = state_known && wanted == VALID && is == FREE;
  wire revokes = state_known && wanted == REVOKED && is == VALID;
  wire frees = state_known && wanted == FREE && is inside {REVOKED, TIME_OVER} && used == '0 && !asks;

  always_ff @(posedge clk) begin
    sweep <= 1'b0;
    if (expires) begin
      state_q[entry_was_q] <= TIME_OVER;
      sweep                <= 1'b1;
    end
    if (adds || revokes || frees) state_q[state_entry] <= wanted;
    if (revokes) sweep <= 1'b1;
    if (rst) begin
      state_q <= {ADMISSION_ENTRIES{FREE}};
      sweep   <= 1'b0;
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < ADMISSION_ENTRIES; i++) begin
      ended.revoked[i]   = state_q[i] == REVOKED;
      ended.time_over[i] = state_q[i] == TIME_OVER;
    end
  end

  // ---- event log ----
  assign to_log[0] = '{
      valid: adds || revokes || frees,
      item: '{kind: adds ? LOG_ENTRY_ADDED : revokes ? LOG_ENTRY_REVOKED : LOG_ENTRY_FREED, a: 32'(state_entry), b: '0}
  };
  assign to_log[1] = '{valid: expires, item: '{kind: LOG_ENTRY_TIME_OVER, a: 32'(entry_was_q), b: '0}};

  assign idle = fsm_q == IDLE && registers_idle && !asks && !second && !expire_due_q && !sweep;
endmodule
