// SPDX-License-Identifier: Apache-2.0

// Finds the regions of a QP or of a domain. Holds the owner of each slot of the region table in distributed RAM, LANES slots a row.
// `found` marks, in the same cycle, the slots of `row` whose owner matches. Only the low bits of a QP number are compared, so there
// are false positives but no false negatives; the user reads each marked slot to decide. A write is visible from the next cycle on.
module roce_mr_owners
  import roce_wire_pkg::*;
  import roce_pkg::*;
#(
    parameter int unsigned MRS   = 256,   // regions; a power of two
    parameter int unsigned LANES = 32     // a power of two, 2 to MRS / 2
) (
    input  logic                     clk,
    input  logic                     write,
    input  logic [$clog2(MRS)-1:0]   write_slot,
    input  logic                     write_valid,  // the slot has a region,
    input  pd_t                      write_pd,     // of this domain,
    input  qpn_t                     write_qpn,    // and QP
    input  logic [$clog2(MRS/LANES)-1:0] row,
    input  logic                     of_qp,        // search for the QP, else for the domain
    input  pd_t                      pd,
    input  qpn_t                     qpn,
    output logic [LANES-1:0]         found
);
  localparam int unsigned LANE_W = $clog2(LANES);
  localparam int unsigned NUMBER_W = $clog2(MAX_QPS) + 1;   // distinguishes all QP numbers in use

  typedef logic [$clog2(MRS/LANES)-1:0] row_t;
  typedef logic [NUMBER_W-1:0]          number_t;

  typedef struct packed {
    logic    valid;
    pd_t     pd;
    number_t number;
  } owner_t;

  wire row_t              write_row  = row_t'(write_slot >> LANE_W);
  wire logic [LANE_W-1:0] write_lane = write_slot[LANE_W-1:0];
  owner_t write_owner;
  assign write_owner = '{valid: write_valid, pd: write_pd, number: number_t'(write_qpn)};

  for (genvar i = 0; i < LANES; i++) begin : g_lane
    (* ram_style = "distributed" *) logic [$bits(owner_t)-1:0] owners[MRS/LANES];
    owner_t owner;
    always_ff @(posedge clk) if (write && write_lane == LANE_W'(i)) owners[write_row] <= write_owner;
    assign owner    = owner_t'(owners[row]);
    assign found[i] = owner.valid && (of_qp ? owner.number == number_t'(qpn) : owner.pd == pd);
  end
endmodule
