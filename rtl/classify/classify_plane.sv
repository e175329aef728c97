// SPDX-License-Identifier: Apache-2.0

// The classifier: what rules say about each frame of the line, for packet_plane, which gives it to the units of the device, the network card,
// both or nobody (docs/reference/classifier.md). It sees the line from beside, and cannot stop anything.
//
// One frame a cycle. `classified` is there 10 cycles after the last beat of its frame, until `next`: when packet_rx has its own verdict, so
// that neither the device nor the card waits for it. After a reset there are no entries and flows: everything is as without a classifier.
module classify_plane
  import classify_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned PAIRS = 0,               // of queues of the network card; 0: there is none
    parameter logic [31:0] NEXT = '0                // the register block after this one
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        line_rst,                   // of packet_plane: frames that end in it have no verdict
    axis_if.monitor     line,                       // what packet_plane gets from the MAC
    output classified_t classified,                 // of the oldest frame that has not had its `next`
    input  logic        next,                       // pulse, for each frame in order
    input  logic        applied,                    // with it: the frame was good, so that its entry has decided
    axil_if.slave       bus,                        // 12 bits of address
    output logic        idle                        // no access in progress, and no frame inside
);
  localparam int unsigned INSIDE = 32;              // frames at most

  // ---- settings: the window is in use at once, entries when the first frame with it has got to them ----
  localparam int unsigned COMMIT_CYCLES = 5;        // from a last beat to the cycle in which its entries are chosen
  table_settings_t staged, current_q;
  logic            commit, load, loading, word_write, clear, cleared, access_idle;
  logic [COMMIT_CYCLES-1:0] commits_q;
  logic [$clog2(UNITS)-1:0] load_unit;
  position_t       entry;
  logic [$clog2(ENTRY_WORDS)-1:0] entry_word;
  word_t           word_wdata, word;
  logic [POSITIONS-1:0] loaded, usable;             // entries that the table has; of a wide one all of its positions
  logic [31:0]     frames;
  logic [47:0]     bytes;

  logic [11:0]   at;
  logic          flow_write, meter_write, flow_busy, flow_clearing, flow_permitted, flow_got;
  logic [31:0]   wdata, flow_value, flow_frames, flow_used, meter_value;
  logic [39:0]   flow_bytes;
  logic [7:0]    flow_used_at;
  flow_command_t flow_command;
  flow_entry_t   flow_staged, flow_read;

  always_comb
    for (int unsigned g = 0; g < GROUPS; g++)
      usable[g*QUARTERS+:QUARTERS] = staged.wide[g] ? {QUARTERS{&loaded[g*QUARTERS+:QUARTERS]}} : loaded[g*QUARTERS+:QUARTERS];

  always_ff @(posedge clk) begin
    commits_q <= {commits_q[COMMIT_CYCLES-2:0], commit};
    if (commit) current_q.offset <= staged.offset;
    if (commits_q[COMMIT_CYCLES-1]) begin
      current_q.enable <= staged.enable & usable;
      current_q.wide   <= staged.wide;
    end
    if (rst) begin
      commits_q <= '0;
      current_q <= '0;
    end
  end

  classify_registers #(.PAIRS(PAIRS), .NEXT(NEXT)) registers (
      .clk, .rst, .bus, .staged, .commit, .current(current_q), .busy(loading || load || commit || commits_q != '0), .load, .load_unit,
      .entry, .entry_word, .word_write, .word_wdata, .word, .clear, .cleared, .frames, .bytes,
      .at, .flow_write, .meter_write, .wdata, .flow_busy(flow_busy || flow_clearing), .flow_permitted, .flow_value, .meter_value,
      .idle(access_idle)
  );
  classify_flow_registers flow_registers (
      .clk, .rst, .at, .write(flow_write), .wdata, .permitted(flow_permitted), .value(flow_value), .command(flow_command), .entry(flow_staged),
      .busy(flow_busy), .clearing(flow_clearing), .got(flow_got), .got_entry(flow_read), .got_frames(flow_frames),
      .got_bytes(flow_bytes), .used_at(flow_used_at), .used(flow_used)
  );

  logic row_write;
  logic [ACTION_WORDS-1:0] action_write;
  logic [$clog2(UNITS)-1:0]  row_unit;
  logic [$clog2(CHUNKS)-1:0] row_chunk;
  logic [CHUNK_W-1:0] row_at;
  logic [UNIT-1:0]    row_bits;
  position_t          action_at;
  word_t              action;
  classify_entries entries (
      .clk, .rst, .at(entry), .at_word(entry_word), .write(word_write), .wdata(word_wdata), .rdata(word), .load, .load_unit,
      .busy(loading), .loaded, .row_write, .row_unit, .row_chunk, .row_at, .row_bits, .action_write, .action_at, .action
  );

  // ---- a frame: its key, its flow or else the entry with wildcards, what that says ----
  localparam int unsigned LOOKUP = 5;               // cycles of classify_ternary and classify_flows
  logic        key_valid, hit, flow_hit;
  flow_place_t place;
  decision_t   flow_decision;
  key_t        key;
  logic [15:0] length;
  logic        sound;
  position_t   position;
  classify_headers #(.DATA_W(DATA_W)) headers (
      .clk, .rst(line_rst), .line, .offset(current_q.offset), .valid(key_valid), .key, .length, .sound
  );
  classify_ternary ternary (
      .clk, .rst(line_rst), .valid(key_valid), .key, .enable(current_q.enable), .wide(current_q.wide), .write(row_write),
      .write_unit(row_unit), .write_chunk(row_chunk), .write_at(row_at), .write_bits(row_bits), .hit, .position
  );

  logic        count_q;                             // a frame has been decided:
  classified_t counted_q;
  classify_flows flows (
      .clk, .rst, .key, .valid(key_valid), .hit(flow_hit), .place, .decision(flow_decision), .count(count_q && counted_q.flow),
      .counted(counted_q.place), .length(counted_q.length), .command(flow_command), .entry(flow_staged), .busy(flow_busy), .clearing(flow_clearing),
      .got(flow_got), .got_entry(flow_read), .got_frames(flow_frames), .got_bytes(flow_bytes), .used_at(flow_used_at), .used(flow_used)
  );

  logic [LOOKUP-1:0]       valid_q, sound_q;
  logic [LOOKUP-1:0][15:0] length_q;
  always_ff @(posedge clk) begin
    valid_q  <= line_rst ? '0 : {valid_q[LOOKUP-2:0], key_valid};
    sound_q  <= {sound_q[LOOKUP-2:0], sound};
    length_q <= {length_q[LOOKUP-2:0], length};
  end

  word_t [ACTION_WORDS-1:0] found;
  for (genvar i = 0; i < ACTION_WORDS; i++) begin : g_decisions
    (* ram_style = "distributed" *) word_t words[POSITIONS];
    always_ff @(posedge clk) if (action_write[i]) words[action_at] <= action;
    assign found[i] = words[position];
  end
  decision_t decision;
  assign decision = flow_hit ? flow_decision : hit ? ($bits(decision_t))'(found) : '0;

  // ---- meters: a cycle more ----
  logic            over, over_to_host, meter_put, meter_remove;
  meter_t          set_meter;
  meter_settings_t meter_settings, meter_current;
  logic [METERS-1:0] meter_present;
  classify_meters meters (
      .clk, .rst, .valid(valid_q[LOOKUP-1] && sound_q[LOOKUP-1] && decision.metered), .meter(decision.meter), .length(length_q[LOOKUP-1]),
      .over, .to_host(over_to_host), .put(meter_put), .remove(meter_remove), .at(set_meter), .settings(meter_settings),
      .current(meter_current), .present(meter_present)
  );
  classify_meter_registers meter_registers (
      .clk, .rst, .at, .write(meter_write), .wdata, .value(meter_value), .put(meter_put), .remove(meter_remove), .meter(set_meter),
      .settings(meter_settings), .current(meter_current), .present(meter_present), .over(count_q && counted_q.over),
      .over_meter(counted_q.decision.meter)
  );

  stream_if #(.T(classified_t)) known ();
  stream_if #(.T(classified_t)) oldest ();
  logic        none_known, known_q;
  classified_t unmetered_q, told;
  always_ff @(posedge clk) begin
    known_q     <= valid_q[LOOKUP-1] && !line_rst;
    unmetered_q <= '{
        flow: flow_hit,
        place: place,
        hit: hit && !flow_hit,
        position: position,
        length: length_q[LOOKUP-1],
        over: 1'b0,
        decision: decision
    };
  end
  always_comb begin
    told = unmetered_q;
    if (over) begin
      told.over = 1'b1;
      told.decision.keep_away = 1'b1;
      told.decision.card = over_to_host ? CARD_ALWAYS : CARD_NEVER;
    end
  end
  assign known.valid = known_q;
  assign known.data  = told;
  stream_fifo #(.T(classified_t), .DEPTH(INSIDE)) verdicts (.clk, .rst(line_rst), .in(known), .out(oldest), .empty(none_known));
  assign classified   = oldest.data;
  assign oldest.ready = next;

  always_ff @(posedge clk)
    if (!line_rst) begin
      assert (!known.valid || known.ready);
      assert (!next || oldest.valid);
    end

  // ---- counters ----
  always_ff @(posedge clk) begin
    count_q   <= next && applied && oldest.valid && !line_rst;
    counted_q <= classified;
  end
  classify_counters counters (
      .clk, .rst, .count(count_q && counted_q.hit), .position(counted_q.position), .length(counted_q.length), .at(entry), .clear, .cleared, .frames, .bytes
  );

  assign idle = access_idle && none_known && valid_q == '0 && !key_valid && !known_q;

  logic unused_ok;
  assign unused_ok = &{1'b0, counted_q.decision};
endmodule
