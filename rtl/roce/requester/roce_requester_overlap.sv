// SPDX-License-Identifier: Apache-2.0

// Detects overlap with outstanding WRITEs and atomics, for selective repeat: a WRITE must not start while an earlier WRITE or
// atomic of its QP to some of the same bytes is unacknowledged (docs/reference/extensions.md).
//
// Stores one interval per QP (the hull) that contains all address ranges written since nothing was outstanding. `meets` may be a
// false positive, for a WRITE between two others, but never a false negative; writes to ascending addresses never overlap.
// `meets` is valid 2 cycles after `range`; `extend`, later, adds that range to the hull. `read` reads a QP's hull, and `load` makes
// it the current one.
module roce_requester_overlap
  import roce_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input logic clk,

    input logic      read,
    input qp_index_t read_index,
    input logic      load,           // at least a cycle later

    input  logic        range,       // [va, va + length), of a work request
    input  logic [63:0] va,
    input  logic [31:0] length,
    input  logic        some,        // the hull is not empty
    output logic        meets,       // until the next `range`

    input logic      extend,         // that work request starts
    input qp_index_t index
);
  localparam int unsigned INDEX_W = $clog2(QPS);

  typedef struct packed {
    logic [64:0] past;               // first byte after the range
    logic [63:0] first;
  } hull_t;

  (* ram_style = "block" *) logic [$bits(hull_t)-1:0] words[QPS];
  logic [$bits(hull_t)-1:0] word_q;
  hull_t hull_q, range_q, joined;
  logic  some_bytes_q, starts_before_q, ends_behind_q, meets_q;

  // Extended by the part of the range outside of the hull, as the comparison found.
  always_comb begin
    joined = hull_q;
    if (!some || starts_before_q) joined.first = range_q.first;
    if (!some || ends_behind_q) joined.past = range_q.past;
  end

  always_ff @(posedge clk) begin
    if (read) word_q <= words[read_index[INDEX_W-1:0]];
    if (extend) words[index[INDEX_W-1:0]] <= joined;

    if (load) hull_q <= hull_t'(word_q);
    else if (extend) hull_q <= joined;

    if (range) begin
      range_q      <= '{first: va, past: 65'(va) + 65'(length)};
      some_bytes_q <= length != 0;
    end
    starts_before_q <= range_q.first < hull_q.first;
    ends_behind_q   <= range_q.past > hull_q.past;
    meets_q         <= some && some_bytes_q && 65'(range_q.first) < hull_q.past && 65'(hull_q.first) < range_q.past;
  end
  assign meets = meets_q;
endmodule
