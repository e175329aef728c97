// SPDX-License-Identifier: Apache-2.0

// The table of flows, which match exactly: 6,144 of IPv4, or fewer with some of IPv6, in two banks of 1,024 rows. Where one can be is what
// the hash says: software chooses between the banks, and moves flows from one to the other to make room.
//
// One key a cycle, result 5 cycles later. A change is one for frames: each finds the flow as it was or as it is. After a reset, or
// a new seed, it is renewed: for 3,200 cycles nothing matches, then it is empty.
module classify_flows
  import packet_pkg::*;
  import classify_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  key_t        key,
    input  logic        valid,
    output logic        hit,          // 5 cycles after `key`
    output flow_place_t place,
    output decision_t   decision,
    // frames that have been decided
    input  logic        count,
    input  flow_place_t counted,
    input  logic [15:0] length,
    // software: one command at a time
    input  flow_command_t command,
    input  flow_entry_t entry,        // of `put`; stays while it is busy
    output logic        busy,         // from the cycle behind the command on
    output logic        clearing,     // the counters of the last one that was put are not yet 0: they wait for a cycle without a frame
    output logic        got,          // pulse: these are what `get` has found
    output flow_entry_t got_entry,
    output logic [31:0] got_frames,
    output logic [39:0] got_bytes,
    input  logic [7:0]  used_at,      // a word of
    output logic [31:0] used          // slots in use: of a slot {bank, row} in rows of 32
);
  typedef enum logic [2:0] {
    F_RENEW,                          // the hash is made anew, and rows are cleared
    F_IDLE,
    F_COUNTERS,                       // until they are read
    F_READ,                           // until the row can be read
    F_TAKE,                           // it is read
    F_WRITE                           // the slots are written
  } state_e;

  state_e        state_q;
  flow_command_t command_q;
  flow_place_t   cleared_q;            // the place whose counters are cleared
  logic          started_q, clearing_q;
  logic          renewing;
  logic [11:0]   renewed;
  wire           start = state_q == F_RENEW && !started_q;

  // ---- 1, 2: rows; a frame is of a flow if that can be seen in each packet of it ----
  flow_key_t key0;
  assign key0 = '{
      v6: key.common.v6,
      protocol: key.common.protocol,
      src_port: key.common.src_port,
      dst_port: key.common.dst_port,
      src: key.common.v6 ? {key.addresses[3], key.addresses[2]} : ip_addr_t'(key.addresses[0][63:32]),
      dst: key.common.v6 ? {key.addresses[1], key.addresses[0]} : ip_addr_t'(key.addresses[0][31:0])
  };
  wire of_flow = (key.common.v4 || key.common.v6) && !key.common.fragment
                 && (key.common.ports || !(key.common.protocol inside {IPPROTO_TCP, IPPROTO_UDP}));

  flow_row_t [FLOW_BANKS-1:0] rows;
  classify_flow_hash hash (.clk, .rst, .key(key0), .rows, .start, .seed(command_q.seed), .busy(renewing), .count(renewed));

  logic [3:0] valid_q, of_flow_q;
  logic       v6_3_q, v6_4_q;
  flow_key_t  key1_q, key2_q;
  flow_parts_t parts3_q;
  always_ff @(posedge clk) begin
    valid_q   <= rst ? '0 : {valid_q[2:0], valid};
    of_flow_q <= {of_flow_q[2:0], valid && of_flow};
    key1_q    <= key0;
    key2_q    <= key1_q;
    v6_3_q    <= key2_q.v6;
    v6_4_q    <= v6_3_q;
    parts3_q  <= flow_parts(key2_q);
  end

  // ---- 3, 4: slots ----
  flow_slots_t [FLOW_BANKS-1:0] slots, write_slots;
  logic [FLOW_BANKS-1:0][FLOW_SLOTS-1:0] match, write;
  decision_t [FLOW_BANKS-1:0][FLOW_SLOTS-1:0] decisions;
  flow_row_t write_at;
  wire       reads = state_q == F_READ && !valid_q[1];      // no frame needs its rows in this cycle

  for (genvar b = 0; b < FLOW_BANKS; b++) begin : g_bank
    classify_flow_bank bank (
        .clk, .at(reads ? command_q.place.row : rows[b]), .slots(slots[b]), .v6(v6_3_q), .parts(parts3_q), .match(match[b]),
        .decision(decisions[b]), .write(write[b]), .write_at, .write_slots(write_slots[b])
    );
  end

  // ---- 5: the flow. While one moves it is in two places, which say the same: the first one counts ----
  logic        any;
  flow_place_t first;
  decision_t   chosen;
  flow_row_t [FLOW_BANKS-1:0] rows3_q, rows4_q;
  always_comb begin
    any    = 1'b0;
    first  = '0;
    chosen = '0;
    for (int unsigned b = FLOW_BANKS; b > 0; b--)
      for (int unsigned s = FLOW_SLOTS; s > 0; s--)
        if (v6_4_q ? &match[b-1] : match[b-1][s-1]) begin
          any    = 1'b1;
          first  = '{slot: 2'(s - 1), bank: 1'(b - 1), row: rows4_q[b-1]};
          chosen = decisions[b-1][s-1];
        end
  end
  always_ff @(posedge clk) begin
    rows3_q  <= rows;
    rows4_q  <= rows3_q;
    hit      <= any && of_flow_q[3] && state_q != F_RENEW;
    place    <= first;
    decision <= chosen;
  end

  // ---- software ----
  logic  accessed;
  wire   whole = command_q.v6;
  wire [FLOW_SLOTS-1:0] touched = whole ? '1 : FLOW_SLOTS'(1) << command_q.place.slot;
  flow_parts_t parts;
  assign parts = flow_parts(entry.key);

  always_comb begin
    write       = '0;
    write_slots = '0;
    write_at    = command_q.place.row;
    if (state_q == F_RENEW) begin
      write    = '1;
      write_at = renewed[$bits(flow_row_t)-1:0];
    end else if (state_q == F_WRITE) begin
      write[command_q.place.bank] = touched;
    end
    for (int unsigned b = 0; b < FLOW_BANKS; b++)
      for (int unsigned s = 0; s < FLOW_SLOTS; s++)
        if (state_q == F_WRITE && command_q.put)
          write_slots[b][s] = '{used: 1'b1, v6: entry.key.v6, decision: entry.decision, part: parts[s]};
  end

  classify_flow_counters counters (
      .clk, .rst, .count, .place(counted), .length, .access(clearing_q || state_q == F_COUNTERS), .clear(clearing_q),
      .at(clearing_q ? cleared_q : command_q.place), .accessed, .frames(got_frames), .bytes(got_bytes)
  );

  // Which slots are in use.
  wire [5:0] word = state_q == F_RENEW ? renewed[5:0] : {command_q.place.bank, command_q.place.row[9:5]};
  logic [3:0][31:0] words;
  assign words[3] = '0;
  for (genvar s = 0; s < FLOW_SLOTS; s++) begin : g_used
    (* ram_style = "distributed" *) logic [31:0] slots_used[64];
    wire [31:0] bit_ = 32'd1 << command_q.place.row[4:0];
    wire [31:0] now  = slots_used[word];
    always_ff @(posedge clk)
      if (state_q == F_RENEW) slots_used[word] <= '0;
      else if (state_q == F_WRITE && touched[s]) slots_used[word] <= command_q.put ? now | bit_ : now & ~bit_;
    assign words[s] = slots_used[used_at[5:0]];
  end
  assign used = words[used_at[7:6]];

  assign clearing = clearing_q;
  assign busy     = state_q != F_IDLE;
  always_ff @(posedge clk) begin
    got       <= 1'b0;
    if (accessed) clearing_q <= 1'b0;
    started_q <= state_q == F_RENEW;
    if (state_q == F_TAKE) begin
      got_entry <= flow_entry(slots[command_q.place.bank], command_q.place.slot);
      got       <= 1'b1;
    end
    unique case (state_q)
      F_RENEW: if (started_q && !renewing) state_q <= F_IDLE;
      F_IDLE: begin
        command_q <= command;
        if (command.renew) state_q <= F_RENEW;
        else if (command.get) state_q <= F_COUNTERS;
        else if (command.put || command.remove) state_q <= F_WRITE;
        if (command.put) begin
          clearing_q <= 1'b1;
          cleared_q  <= command.place;
        end
      end
      F_COUNTERS: if (accessed) state_q <= F_READ;
      F_READ:     if (reads) state_q <= F_TAKE;
      default:    state_q <= F_IDLE;                        // F_TAKE, F_WRITE
    endcase
    if (rst) begin
      state_q    <= F_RENEW;
      started_q  <= 1'b0;
      clearing_q <= 1'b0;
      command_q  <= '0;
      got        <= 1'b0;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, key.window, valid_q[3:2], key.common};
endmodule
