// SPDX-License-Identifier: Apache-2.0

// Decides which IPbus packets are taken at all, before they take room: those from within the source filter, and of these the ones of
// authorised clients, and of all others a few: BURST at once, and one more for each PAUSE cycles. So a flood reaches neither the register
// bus nor the transmit side, and authorised clients work on while it lasts. The answer follows in the next cycle; the budget follows 3 cycles later.
module ipbus_admission
  import packet_pkg::*;
  import services_pkg::*;
  import time_pkg::*;
#(
    parameter int unsigned BURST = 8,
    parameter int unsigned PAUSE = 16384
) (
    input  logic        clk,
    input  logic        rst,
    input  time_t       now,
    input  ipv4_addr_t  source,          // the filter
    input  logic [5:0]  source_prefix,
    input  logic        offered_valid,
    input  ipv4_addr_t  ip,              // of the sender
    input  logic        authorised,      // in the next cycle: the sender has logged in
    output logic        admitted,        // in the next cycle
    output logic        favoured,
    output logic        drop_source,     // pulses
    output logic        drop_rate
);
  ipv4_addr_t mask_q;
  logic       allowed;
  always_ff @(posedge clk) mask_q <= ~(ipv4_addr_t'('1) >> source_prefix);

  logic offered_q, inside_q;
  always_ff @(posedge clk) begin
    offered_q <= !rst && offered_valid;
    inside_q  <= ((ip ^ source) & mask_q) == '0;
  end

  hold_budget #(.CREDIT(BURST), .PAUSE(PAUSE)) budget (
      .clk, .rst, .now, .holds(offered_q && inside_q && !authorised && allowed), .allowed
  );

  assign favoured = authorised;
  assign admitted = inside_q && (authorised || allowed);
  always_ff @(posedge clk) begin
    drop_source <= !rst && offered_q && !inside_q;
    drop_rate   <= !rst && offered_q && inside_q && !admitted;
  end
endmodule
