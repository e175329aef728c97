// SPDX-License-Identifier: Apache-2.0

// Cuts read bursts into parts, one for each memory read TLP: at addresses that are a multiple of the largest read request, or of LARGEST;
// so none crosses 4 KiB. A part is whole dwords, from that of the burst's first byte. Latency 1 cycle, one part a cycle; between two bursts
// no bubble.
module pcie_read_parts
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned FUNCTIONS = 1,
    parameter int unsigned LARGEST = 512          // bytes, a power of two from 128
) (
    input  logic            clk,
    input  logic            rst,
    input  logic [FUNCTIONS_MAX-1:0][2:0] mrrs,   // by function, as pcie_config_t
    stream_if.sink          burst,                // read_burst_t
    input  logic [ID_W-1:0] burst_id,             // with it
    stream_if.source        part,                 // read_part_t
    output logic [ID_W-1:0] part_id               // with it
);
  localparam int unsigned DWORDS = DATA_W / 32;
  localparam int unsigned LANE_W = $clog2(DWORDS);
  localparam int unsigned LEFT_W = 9 + LANE_W;
  typedef logic [LEFT_W-1:0] left_t;              // dwords of a burst: up to 256 beats

  read_burst_t asked;
  assign asked = burst.data;

  logic        valid_q;
  addr_t       addr_q;
  left_t       left_q;
  tlp_dwords_t room_q;                            // dwords to the next boundary
  // The boundaries are at multiples of a power of two: it less one.
  tlp_bytes_t [FUNCTIONS_MAX-1:0] masks_q;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_mask
    always_ff @(posedge clk)
      masks_q[i] <= (size_bytes(mrrs[i]) > tlp_bytes_t'(LARGEST) ? tlp_bytes_t'(LARGEST) : size_bytes(mrrs[i])) - 1'b1;
  end
  wire tlp_bytes_t asked_mask = masks_q[function_of(asked.addr, FUNCTIONS)];
  wire tlp_bytes_t mask       = masks_q[function_of(addr_q, FUNCTIONS)];
  wire last = 16'(left_q) <= 16'(room_q);
  wire step = valid_q && part.ready;

  assign part.valid = valid_q;
  assign part.data  = '{ends: last, addr: addr_q, dwords: last ? tlp_dwords_t'(left_q) : room_q};
  assign burst.ready = !valid_q || (step && last);

  always_ff @(posedge clk) begin
    if (burst.ready) begin
      addr_q  <= {asked.addr[ADDR_W-1:2], 2'b00};
      left_q  <= ((left_t'(asked.len) + 1'b1) << LANE_W) - left_t'(asked.addr[2+:LANE_W]);
      room_q  <= {1'b0, ~asked.addr[11:2] & asked_mask[11:2]} + 1'b1;
      part_id <= burst_id;
    end else if (step) begin
      addr_q <= {addr_q[ADDR_W-1:12], addr_q[11:0] + 12'({room_q, 2'b00})};   // a burst lies in a page
      left_q <= left_q - left_t'(room_q);
      room_q <= {1'b0, mask[11:2]} + 1'b1;
    end
    if (rst) valid_q <= 1'b0;
    else if (burst.ready) valid_q <= burst.valid;
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, asked.addr[1:0], asked_mask[12], asked_mask[1:0], mask[12], mask[1:0]};
endmodule
