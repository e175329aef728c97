// SPDX-License-Identifier: Apache-2.0

// Executes atomics (IBTA 9.4.5) on device memory: fetch and add, compare and swap, on 8 bytes at an address that is a multiple of 8. One at
// a time and in order, so that each sees the effect of those before it; writes by other masters in between are not excluded.
//
// Memory holds a value in the host's byte order, least significant byte first; `op` and `done` carry numbers. A compare and swap that does
// not match writes nothing. `error`: memory answered the read or the write with an error; after a failed read nothing is written.
//
// From `op` to `done`: 6 cycles plus the latencies of a read and a write of memory. An operation with `denied` does not access memory and
// passes in 1 cycle.
module roce_atomic
  import memory_pkg::*;
  import roce_response_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W   = 4
) (
    input logic      clk,
    input logic      rst,
    stream_if.sink   op,       // atomic_op_t
    stream_if.source done,     // rsp_result_t
    axi_if.master    mem,      // bursts of one beat, all with ID 0
    output logic     idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANES = BYTES / 8;
  localparam int unsigned LANE_W = LANES > 1 ? $clog2(LANES) : 1;

  typedef enum logic [2:0] {
    A_IDLE,
    A_ASK,       // read address
    A_READ,      // read data
    A_COMPUTE,
    A_WRITE,     // write address and data, independently
    A_CONFIRM,   // write response
    A_DONE
  } state_e;

  state_e      state_q;
  atomic_op_t  came;
  rsp_operation_t op_q;
  logic [63:0] original_q, value_q;
  logic        error_q, denied_q, matches_q, address_out_q, data_out_q;

  assign came = op.data;

  logic [LANE_W-1:0] lane;
  assign lane = LANES > 1 ? op_q.addr[3+:LANE_W] : '0;
  wire writes = matches_q && !error_q;

  assign op.ready    = state_q == A_IDLE;
  assign mem.arvalid = state_q == A_ASK;
  assign mem.araddr  = op_q.addr;
  assign mem.arid    = ID_W'(0);
  assign mem.arlen   = '0;
  assign mem.rready  = state_q == A_READ;
  assign mem.awvalid = state_q == A_WRITE && writes && !address_out_q;
  assign mem.awaddr  = op_q.addr;
  assign mem.awid    = ID_W'(0);
  assign mem.awlen   = '0;
  assign mem.wvalid  = state_q == A_WRITE && writes && !data_out_q;
  assign mem.wlast   = 1'b1;
  assign mem.bready  = state_q == A_CONFIRM;
  for (genvar i = 0; i < LANES; i++) begin : g_lane
    assign mem.wdata[i*64+:64] = value_q;
    assign mem.wstrb[i*8+:8]   = lane == i ? '1 : '0;
  end

  assign done.valid = state_q == A_DONE;
  assign done.data  = rsp_result_t'{psn: op_q.psn, error: error_q && !denied_q, denied: denied_q, original: original_q};
  assign idle = state_q == A_IDLE;

  always_ff @(posedge clk) begin
    if (state_q == A_READ) begin
      original_q <= mem.rdata[lane*64+:64];
      error_q    <= mem.rresp[1];
    end else if (state_q == A_CONFIRM && mem.bvalid && mem.bresp[1]) error_q <= 1'b1;
    value_q   <= op_q.compare_swap ? op_q.swap_add : original_q + op_q.swap_add;
    matches_q <= !op_q.compare_swap || original_q == op_q.compare;

    if (rst) begin
      state_q       <= A_IDLE;
      address_out_q <= 1'b0;
      data_out_q    <= 1'b0;
    end else begin
      unique case (state_q)
        A_IDLE:
        if (op.valid) begin
          op_q     <= came.operation;
          denied_q <= came.denied;
          state_q  <= came.denied ? A_DONE : A_ASK;
        end
        A_ASK: if (mem.arready) state_q <= A_READ;
        A_READ: if (mem.rvalid) state_q <= A_COMPUTE;
        A_COMPUTE: state_q <= A_WRITE;
        A_WRITE: begin
          if (!writes) state_q <= A_DONE;
          else if ((address_out_q || mem.awready) && (data_out_q || mem.wready)) begin
            state_q       <= A_CONFIRM;
            address_out_q <= 1'b0;
            data_out_q    <= 1'b0;
          end else begin
            address_out_q <= address_out_q || mem.awready;
            data_out_q    <= data_out_q || mem.wready;
          end
        end
        A_CONFIRM: if (mem.bvalid) state_q <= A_DONE;
        A_DONE: if (done.ready) state_q <= A_IDLE;
        default: state_q <= A_IDLE;
      endcase
    end
  end

  always_ff @(posedge clk) if (!rst && mem.arvalid) assert (op_q.addr[2:0] == 0);

  logic unused_ok;
  assign unused_ok = &{1'b0, mem.rid, mem.rresp[0], mem.rlast, mem.bid, mem.bresp[0]};
endmodule
