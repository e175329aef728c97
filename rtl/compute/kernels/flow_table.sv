// SPDX-License-Identifier: Apache-2.0

// The flows of one direction: each has the place that its hash says, and shares it with others. The flow that has the most bytes keeps it: a frame
// of another one takes its bytes from the votes of the flow that is there, and takes the place when there are none left (Boyer and Moore's
// majority vote). So a flow with more than half of the bytes of its place has it. What a flow that is there is short of is at most `earlier`.
//
// One frame a cycle. `seen` is there 2 cycles after `look`, in a cycle without a frame.
module flow_table
  import flow_telemetry_pkg::*;
(
    input  logic        clk,
    input  logic        clear,
    input  logic [31:0] now,
    input  logic [31:0] threshold,             // bytes from which on a flow is heavy; 0: none is
    input  logic        valid,                 // a frame,
    input  telemetry_place_t      place,
    input  telemetry_key_t   key,
    input  logic [15:0] length,                // bytes
    input  logic        look,                  // at `place`, if there is no frame
    output logic        seen_used,
    output telemetry_entry_t seen,
    output logic        again,                 // pulse: the flow had a frame before,
    output logic [31:0] gap,                   // so many cycles ago
    output logic        replaced,              // pulse: another flow lost its place
    input  flags_at_t   flags_at,
    output logic [31:0] heavy                  // of the places from 32 times this on: they have heavy flows; 1 cycle
);
  // ---- 1: read; 2: change; 3: write. What is read while a write of it is under way is old: the last two are kept. That a place is one of
  // these is found out in 1, and the key is compared with all that it could be in ----
  logic        valid_q, look_q;
  telemetry_place_t place_q;
  telemetry_key_t key_q;
  logic [15:0] length_q;
  logic [TELEMETRY_PLACES-1:0] used_q;
  logic        used;                           // the place, in 2
  logic [1:0]  same_q;                         // it is that of the last write, or of the one before
  logic        written_q;                      // there is a last one
  telemetry_place_t written_at_q;
  telemetry_entry_t written_entry_q[2];
  telemetry_entry_t stored, entry, next;
  logic        hit, keeps;

  ram_1w1r #(.T(telemetry_entry_t), .WORDS(TELEMETRY_PLACES)) entries (
      .clk, .write(written_q), .write_at(written_at_q), .write_data(written_entry_q[0]), .read(valid || look), .read_at(place),
      .read_data(stored)
  );

  always_comb begin
    unique case (same_q) inside
      2'b?1:   entry = written_entry_q[0];
      2'b10:   entry = written_entry_q[1];
      default: entry = stored;
    endcase
  end
  wire stored_hit = stored.key == key_q;
  wire [1:0] written_hit = {written_entry_q[1].key == key_q, written_entry_q[0].key == key_q};
  assign hit   = used && (same_q[0] ? written_hit[0] : same_q[1] ? written_hit[1] : stored_hit);
  assign keeps = entry.votes >= 32'(length_q);

  wire [32:0] votes = {1'b0, entry.votes} + 33'(length_q);
  always_comb begin
    next       = entry;
    next.total = entry.total + 48'(length_q);
    if (hit) begin
      next.frames = entry.frames + 1'b1;
      next.bytes  = entry.bytes + 48'(length_q);
      next.votes  = votes[32] ? '1 : votes[31:0];
      next.last   = now;
    end else if (used && keeps) begin
      next.votes = entry.votes - 32'(length_q);
    end else begin
      next.key    = key_q;
      next.frames = 32'd1;
      next.bytes  = 48'(length_q);
      next.earlier= used ? entry.total : '0;
      next.votes  = used ? 32'(length_q) - entry.votes : 32'(length_q);
      next.last   = now;
      if (!used) next.total = 48'(length_q);
    end
  end

  logic   changed_q;                           // a flow has new bytes:
  telemetry_place_t changed_at_q;
  logic [TELEMETRY_PLACES/32-1:0][31:0] heavy_q;
  always_ff @(posedge clk) begin
    valid_q         <= valid && !clear;
    look_q          <= look;
    place_q         <= place;
    key_q           <= key;
    length_q        <= length;
    same_q          <= {written_q && written_at_q == place, valid_q && place_q == place};
    used            <= used_q[place] || (valid_q && place_q == place);
    written_q       <= valid_q;
    written_at_q    <= place_q;
    written_entry_q <= '{next, written_entry_q[0]};
    if (valid_q) used_q[place_q] <= 1'b1;
    again        <= valid_q && hit && !clear;
    gap          <= now - entry.last;
    replaced     <= valid_q && used && !hit && !keeps && !clear;
    if (look_q) begin
      seen_used <= used;
      seen      <= used ? entry : '0;
    end
    changed_q    <= valid_q;
    changed_at_q <= place_q;
    if (changed_q)
      heavy_q[changed_at_q[$bits(telemetry_place_t)-1:5]][changed_at_q[4:0]] <= threshold != '0
                                                                                && written_entry_q[0].bytes >= 48'(threshold);
    if (clear) begin
      same_q    <= '0;
      used      <= 1'b0;
      written_q <= 1'b0;
      used_q    <= '0;
      heavy_q   <= '0;
      changed_q <= 1'b0;
    end
    heavy <= heavy_q[flags_at];
  end
endmodule
