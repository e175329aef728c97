// SPDX-License-Identifier: Apache-2.0

// Removes the first bytes of each packet and moves the rest down to byte 0. How many is one of a short list, each less than a
// beat, so that the shifter stays small; every packet must be longer than what is removed from it.
// One beat a cycle, no bubble between packets. Latency 1 cycle (0 where the next beat is there already). Stops with `out`.
module axis_strip #(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned CHOICES = 2,
    parameter logic [CHOICES-1:0][7:0] SHIFTS = '0  // bytes, by choice
) (
    input logic                       clk,
    input logic                       rst,
    axis_if.sink                      in,
    input logic [$clog2(CHOICES)-1:0] choice,  // stands with each beat of the packet
    axis_if.source                    out
);
  localparam int unsigned BYTES = DATA_W / 8;

  // The beat before: what `out` shows begins in it and ends in the beat on `in`.
  logic [DATA_W-1:0]          data_q;
  logic [BYTES-1:0]           keep_q;
  logic [$clog2(CHOICES)-1:0] choice_q;
  logic                       valid_q, last_q, user_q;

  wire [2*DATA_W-1:0] data = {in.tdata, data_q};
  wire [ 2*BYTES-1:0] keep = {last_q ? BYTES'(0) : in.tkeep, keep_q};

  logic [DATA_W-1:0] data_by_choice[CHOICES];
  logic [ BYTES-1:0] keep_by_choice[CHOICES];
  logic [ CHOICES-1:0] more_by_choice;  // the beat on `in` has bytes that do not fit
  for (genvar c = 0; c < CHOICES; c++) begin : g_choice
    if (32'(SHIFTS[c]) >= BYTES) begin : g_bad
      $fatal(1, "axis_strip: a shift must be less than a beat");
    end
    localparam int unsigned SHIFT = 32'(SHIFTS[c]);
    assign data_by_choice[c] = data[SHIFT*8+:DATA_W];
    assign keep_by_choice[c] = keep[SHIFT+:BYTES];
    assign more_by_choice[c] = in.tkeep[SHIFT];
  end

  wire ends = last_q || (in.tlast && !more_by_choice[choice_q]);

  assign in.tready  = !valid_q || out.tready;
  assign out.tvalid = valid_q && (last_q || in.tvalid);
  assign out.tdata  = data_by_choice[choice_q];
  assign out.tkeep  = keep_by_choice[choice_q];
  assign out.tlast  = ends;
  assign out.tuser  = last_q ? user_q : in.tuser;

  // A beat that is used up at once is not held.
  wire used_up = valid_q && !last_q && ends;

  always_ff @(posedge clk) begin
    if (in.tvalid && in.tready) begin
      data_q   <= in.tdata;
      keep_q   <= in.tkeep;
      last_q   <= in.tlast;
      user_q   <= in.tuser;
      choice_q <= choice;
    end
    if (rst) valid_q <= 1'b0;
    else if (in.tvalid && in.tready) valid_q <= !used_up;
    else if (out.tvalid && out.tready) valid_q <= 1'b0;
  end

  always_ff @(posedge clk) if (!rst && valid_q && last_q) assert (out.tkeep[0]);
endmodule
