// SPDX-License-Identifier: Apache-2.0

// N masters on M memories. Each memory has an axi_mux of its own, so traffic to one memory does not delay the others; order is kept per
// memory and, for each master, per direction. REACH lists the memories that a master may use. A master that reaches a single memory is
// connected to it directly: its user has selected the memory, which answers addresses outside of it. A master that reaches several has an
// axi_demux, which decodes the address; an address outside of all memories that it reaches is answered with DECERR.
//
// The rule of axi_mux holds for all masters. Latency and throughput are those of axi_mux; with M = 1 it is one axi_mux.
module axi_crossbar
  import memory_pkg::*;
#(
    parameter int unsigned N = 2,
    parameter int unsigned M = 1,
    parameter memory_range_t [M-1:0] MAP = '0,
    parameter logic [N-1:0][M-1:0] REACH = '1,
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,         // of the masters
    parameter int unsigned OUTSTANDING = 32, // see axi_mux
    parameter int unsigned BACKGROUND = N    // likewise
) (
    input  logic  clk,
    input  logic  rst,
    axi_if.slave  in[N],
    axi_if.master out[M],                    // ID_W + axi_mux_index_w(N) bits of ID
    output logic [M-1:0] others_write        // at this memory, see axi_mux
);
  // A memory that is not reached has no addresses: none has a base beyond its size.
  function automatic memory_range_t [M-1:0] reached(logic [M-1:0] reach);
    for (int unsigned k = 0; k < M; k++) reached[k] = reach[k] ? MAP[k] : '{base: '1, size: '0};
  endfunction

  if (M == 1) begin : g_one
    axi_mux #(
        .N(N), .DATA_W(DATA_W), .ID_W(ID_W), .OUTSTANDING(OUTSTANDING), .BACKGROUND(BACKGROUND)
    ) mux (.clk, .rst, .in, .out(out[0]), .others_write(others_write[0]));
  end else begin : g_several
    axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) user[M*N] ();   // of memory k: from k * N on

    for (genvar i = 0; i < N; i++) begin : g_master
      if ($countones(REACH[i]) == 1) begin : g_wires
        for (genvar k = 0; k < M; k++) begin : g_memory
          if (REACH[i][k]) begin : g_this
            axi_wires whole (.in(in[i]), .out(user[k*N+i]));
          end else begin : g_other
            axi_silent none (.out(user[k*N+i]));
          end
        end
      end else begin : g_decoded
        axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) way[M] ();
        axi_demux #(.M(M), .MAP(reached(REACH[i])), .DATA_W(DATA_W), .ID_W(ID_W)) demux (.clk, .rst, .in(in[i]), .out(way));
        for (genvar k = 0; k < M; k++) begin : g_memory
          axi_wires crossing (.in(way[k]), .out(user[k*N+i]));
        end
      end
    end

    for (genvar k = 0; k < M; k++) begin : g_memory
      axi_mux #(
          .N(N), .DATA_W(DATA_W), .ID_W(ID_W), .OUTSTANDING(OUTSTANDING), .BACKGROUND(BACKGROUND)
      ) mux (.clk, .rst, .in(user[k*N:k*N+N-1]), .out(out[k]), .others_write(others_write[k]));
    end
  end
endmodule
