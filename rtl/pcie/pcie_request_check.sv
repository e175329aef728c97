// SPDX-License-Identifier: Apache-2.0

// Says what becomes of a request of the host: combinational. A request is answered if it is a read or write of memory, memory space is on, it is
// for a function that there is, hits a BAR of it that is there, and lies in one page of 4 KiB (Base Specification 2.2.7). BARs are whole pages, so it
// lies in its BAR.
module pcie_request_check
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter bar_maps_t BAR_MAP = '0   // by function; one that there is not has no BAR
) (
    input  logic [FUNCTIONS_MAX-1:0] memory_space,
    input  tlp_header_t   header,
    output host_request_t request,
    output logic          write,      // goes on as a write
    output logic          refused     // is none that is answered
);
  logic          hit;
  memory_range_t bar;
  function_t     func;
  logic [FUNCTIONS_MAX-1:0] functions;   // those that there are
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_there
    assign functions[i] = BAR_MAP[i] != '0;
  end
  assign func = function_t'(header.func);
  wire there    = 32'(header.func) < FUNCTIONS_MAX && functions[func];
  wire is_read  = header.kind == TLP_MEM_READ;
  wire is_write = header.kind == TLP_MEM_WRITE;
  wire in_page  = 12'(header.addr[11:2]) + 12'(header.length) <= 12'd1024 && header.length != '0;

  always_comb begin
    hit = 1'b0;
    bar = '0;
    for (int unsigned f = 0; f < FUNCTIONS_MAX; f++)
      for (int unsigned i = 0; i < BARS; i++)
        if (BAR_MAP[f][i].size != '0 && header.bar == 3'(i) && func == function_t'(f)) begin
          hit = 1'b1;
          bar = BAR_MAP[f][i];
        end
  end
  assign refused = !((is_read || is_write) && memory_space[func] && there && hit && in_page);
  assign write   = !refused && is_write && !header.poisoned;

  always_comb begin
    request              = '0;
    request.place        = refused ? PLACE_NOWHERE : header.bar == '0 ? PLACE_REGISTERS : PLACE_MEMORY;
    request.func         = there ? func : '0;   // of those that there are not the first one answers
    request.bar          = header.bar;
    request.addr         = bar.base | (header.addr & (bar.size - 1'b1));   // of what is refused its low bits are asked only
    request.dwords       = header.length;
    request.first_be     = header.first_be;
    request.last_be      = header.length == 11'd1 ? header.first_be : header.last_be;
    request.requester_id = header.requester_id;
    request.tag          = header.tag;
    request.tc           = header.tc;
    request.attr         = header.attr;
    if (!is_read && !is_write) begin   // a completion of it says 4 bytes from 0 (2.2.9)
      request.addr     = '0;
      request.dwords   = 11'd1;
      request.first_be = '1;
      request.last_be  = '1;
    end
  end

  for (genvar i = 0; i < FUNCTIONS_MAX * BARS; i++) begin : g_bar
    localparam memory_range_t IS = BAR_MAP[i/BARS][i%BARS];
    if ((IS.size & (IS.size - 1'b1)) != '0 || (IS.size != '0 && IS.size < 64'd4096) || (IS.base & (IS.size - 1'b1)) != '0 && IS.size != '0)
    begin : g_bad
      $fatal(1, "the size of a BAR must be a power of two from 4096, its base a multiple of that");
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, header.completer_id, header.status, header.byte_count, header.lower_addr};
endmodule
