// SPDX-License-Identifier: Apache-2.0

// Frames and bytes of each place of the flows, in block RAM. One frame a cycle, also of the same flow; a counter has it 2 cycles later.
// Counters wrap. An access by software waits for a cycle without a frame: there is one on every line, on which a frame of one beat takes longer.
module classify_flow_counters
  import classify_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        count,            // a frame
    input  flow_place_t place,
    input  logic [15:0] length,           // its bytes
    input  logic        access,           // until `accessed`: software reads
    input  logic        clear,            // and with this sets to 0
    input  flow_place_t at,               // the counters of this place
    output logic        accessed,         // pulse
    output logic [31:0] frames,           // before that; stay until the next access
    output logic [39:0] bytes
);
  typedef struct packed {
    logic [31:0] frames;
    logic [39:0] bytes;
  } counts_t;
  localparam int unsigned W = $bits({place.bank, place.row});

  typedef struct packed {
    logic        valid;
    logic        software;
    logic        clear;
    flow_place_t place;
    logic [15:0] length;
  } step_t;

  step_t   step, read_q, sum_q, done_q;    // the address is at the memory; its value has come; is added up; is in the memory
  counts_t old, value, sum_value_q, done_value_q;
  counts_t [FLOW_SLOTS-1:0] stored;
  logic    accessing_q;                    // on its way

  always_comb begin
    step = '{valid: count, software: 1'b0, clear: 1'b0, place: place, length: length};
    if (!count && access && !accessing_q) step = '{valid: 1'b1, software: 1'b1, clear: clear, place: at, length: '0};
  end

  for (genvar s = 0; s < FLOW_SLOTS; s++) begin : g_slot
    (* ram_style = "block" *) logic [$bits(counts_t)-1:0] memory[2**W];
    counts_t value_q;
    always_ff @(posedge clk) if (sum_q.valid && sum_q.place.slot == 2'(s)) memory[{sum_q.place.bank, sum_q.place.row}] <= sum_value_q;
    always_ff @(posedge clk) value_q <= counts_t'(memory[{step.place.bank, step.place.row}]);
    assign stored[s] = value_q;
  end

  // The memory does not have yet what the two steps before add.
  always_comb begin
    old = stored[0];
    for (int unsigned s = 1; s < FLOW_SLOTS; s++) if (read_q.place.slot == 2'(s)) old = stored[s];
    if (done_q.valid && done_q.place == read_q.place) old = done_value_q;
    if (sum_q.valid && sum_q.place == read_q.place) old = sum_value_q;
    value = '{frames: old.frames + 32'(!read_q.software), bytes: old.bytes + 40'(read_q.length)};
    if (read_q.clear) value = '0;
  end

  always_ff @(posedge clk) begin
    read_q       <= step;
    sum_q        <= read_q;
    done_q       <= sum_q;
    sum_value_q  <= value;
    done_value_q <= sum_value_q;
    accessed     <= read_q.valid && read_q.software;
    if (read_q.valid && read_q.software) begin
      frames <= old.frames;
      bytes  <= old.bytes;
    end
    accessing_q  <= access && !accessed && (accessing_q || step.software);
    if (rst) begin
      read_q.valid <= 1'b0;
      sum_q.valid  <= 1'b0;
      done_q.valid <= 1'b0;
      accessed     <= 1'b0;
      accessing_q  <= 1'b0;
    end
  end
endmodule
