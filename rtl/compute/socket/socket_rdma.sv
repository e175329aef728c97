// SPDX-License-Identifier: Apache-2.0

// The work requests of a kernel: one whose local memory is not wholly inside `window` completes with WC_LOC_PROT_ERR and never
// reaches the engine. The window is what confines a kernel, so a kernel has no L_Keys: here each request gets LOCAL_DMA_LKEY, with which
// the engine trusts this client. A request of length 0 has no local memory; while the window is closed (size 0) each request is refused.
// An atomic has 8 bytes, whatever its length field.
//
// Latency: 2 cycles to the engine, completions 0; one work request every 2 cycles. When the engine stops, the kernel's work
// requests stop; when the kernel takes no completions, they wait, and a refusal holds up the work requests behind it.
//
// While `cut` is high the kernel may do anything (it may be in reset): its work requests and their refusals are dropped but for one
// that was already offered to the engine, completions are taken and dropped.
module socket_rdma
  import memory_pkg::*;
  import compute_pkg::*;
  import roce_pkg::*;
(
    input  logic     clk,
    input  logic     rst,
    input  window_t  window,       // whole pages; counts in the cycle in which a work request is taken
    input  logic     cut,
    stream_if.sink   kernel_wqe,   // rdma_wqe_t
    stream_if.source kernel_cqe,   // rdma_cqe_t
    stream_if.source wqe,          // rdma_wqe_t
    stream_if.sink   cqe,          // rdma_cqe_t
    output logic     violation,    // pulse: a work request was refused
    output logic     idle          // no work request here, no completion
);
  typedef logic [ADDR_W:0] end_t;   // one bit more: the end of memory has an address too

  rdma_wqe_t asked, asked_q;
  end_t      asked_end_q, begin_q, end_q;
  logic      asked_valid_q, open_q, none_q, permitted, pass, refuse;
  logic      refused_valid_q;
  rdma_cqe_t refused_q;

  assign asked            = kernel_wqe.data;
  assign kernel_wqe.ready = !cut && !asked_valid_q;
  wire atomic             = asked.opcode inside {WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD};
  wire [31:0] length      = atomic ? 32'd8 : asked.length;

  assign permitted = open_q && (none_q || (end_t'(asked_q.local_addr) >= begin_q && asked_end_q <= end_q));
  assign pass   = asked_valid_q && !cut && permitted && (!wqe.valid || wqe.ready);
  assign refuse = asked_valid_q && !cut && !permitted && !refused_valid_q && (!cqe.valid || cqe.ready);

  always_ff @(posedge clk) begin
    open_q  <= window.size != '0;
    begin_q <= end_t'(window.base);
    end_q   <= end_t'(window.base) + end_t'(window.size);
    if (kernel_wqe.ready) begin
      asked_q     <= asked;
      asked_end_q <= end_t'(asked.local_addr) + end_t'(length);
      none_q      <= length == '0;
    end
    if (pass) begin
      wqe.data      <= asked_q;
      wqe.data.lkey <= LOCAL_DMA_LKEY;
    end
    if (refuse) refused_q <= '{status: WC_LOC_PROT_ERR, opcode: wc_opcode_of(asked_q.opcode), qpn: asked_q.qpn, wr_id: asked_q.wr_id, default: '0};
    violation <= !rst && refuse;
    if (rst) begin
      asked_valid_q   <= 1'b0;
      refused_valid_q <= 1'b0;
      wqe.valid       <= 1'b0;
    end else begin
      asked_valid_q   <= !cut && (asked_valid_q ? !pass && !refuse : kernel_wqe.valid);
      refused_valid_q <= !cut && (refuse || (refused_valid_q && !kernel_cqe.ready));
      if (!wqe.valid || wqe.ready) wqe.valid <= pass;
    end
  end

  assign kernel_cqe.valid = !cut && (refused_valid_q || cqe.valid);
  assign kernel_cqe.data  = refused_valid_q ? refused_q : cqe.data;
  assign cqe.ready        = cut || (kernel_cqe.ready && !refused_valid_q);
  assign idle             = !asked_valid_q && !refused_valid_q && !wqe.valid && !cqe.valid;
endmodule
