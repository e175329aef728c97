// SPDX-License-Identifier: Apache-2.0

// The receive side of every QP in block RAM: its attributes, written by QP_SETUP alone, and its state, which one pipeline reads, changes
// and writes back.
//
//   cycle 0: read_slot        cycle 1: state (including the write of that cycle)        cycle 2: write, write_slot, write_state
//   cycle 3: fails, if an error is detected too late for cycle 2
//
// One operation every 2 cycles, also on the same QP: a write in cycle 2 is forwarded to the read of that cycle. `attr` is valid one cycle
// after its slot; an `attr_write` is visible from the next cycle on. `view` is combinational and lags the pipeline by one write. After
// reset all QPs are put into QPS_RESET, which takes QPS cycles; until then `ready` is low and no read is allowed.
module roce_qp_rx
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic        clk,
    input  logic        rst,
    output logic        ready,

    input  qp_index_t   attr_slot,
    output qp_rx_attr_t attr,
    input  logic        attr_write,
    input  qp_index_t   attr_write_slot,
    input  qp_rx_attr_t attr_new,

    input  qp_index_t   read_slot,
    output qp_rx_t      state,
    input  logic        write,
    input  qp_index_t   write_slot,
    input  qp_rx_t      write_state,
    input  logic        fails,          // the QP written in the previous cycle enters the error state

    input  qp_index_t   view_slot,
    output qp_rx_view_t view
);
  localparam int unsigned SLOT_W = $clog2(QPS);
  typedef logic [SLOT_W-1:0] slot_t;

  if (QPS < 2 || QPS > 1024) begin : g_bad
    $fatal(1, "roce_qp_rx: QPS must be between 2 and 1024");
  end

  (* ram_style = "block" *)       logic [$bits(qp_rx_attr_t)-1:0] attrs[QPS];
  (* ram_style = "block" *)       logic [$bits(qp_rx_t)-1:0]      states[QPS];
  (* ram_style = "distributed" *) logic [$bits(qp_rx_view_t)-1:0] views[QPS];

  // The newest write is held here until the next one, and is forwarded while it is on its way to the RAM.
  logic   pending_q, held_valid_q, forward_q;
  slot_t  held_slot_q;
  qp_rx_t held_q, held, stored_q;
  logic   ready_q;
  slot_t  init_q;                      // the next QP to put into QPS_RESET

  assign ready = ready_q;
  assign state = forward_q ? held : stored_q;
  assign view  = views[slot_t'(view_slot)];

  wire        store      = pending_q || !ready;
  wire slot_t store_slot = ready ? held_slot_q : init_q;
  wire qp_rx_t store_state = ready ? held : '0;
  always_comb begin
    held = held_q;
    if (fails) held.state = QPS_ERR;
  end

  always_ff @(posedge clk) attr <= attrs[slot_t'(attr_slot)];
  always_ff @(posedge clk) if (attr_write) attrs[slot_t'(attr_write_slot)] <= attr_new;

  always_ff @(posedge clk) stored_q <= states[slot_t'(read_slot)];
  always_ff @(posedge clk) if (store) states[store_slot] <= store_state;
  always_ff @(posedge clk) if (store) views[store_slot] <= {store_state.state, store_state.rq_head};

  always_ff @(posedge clk) begin
    pending_q <= write;
    forward_q <= write ? slot_t'(write_slot) == slot_t'(read_slot)
                       : held_valid_q && held_slot_q == slot_t'(read_slot);
    held_q <= write ? write_state : held;
    if (write) begin
      held_slot_q  <= slot_t'(write_slot);
      held_valid_q <= 1'b1;
    end
    if (!ready) init_q <= init_q + 1'b1;
    if (init_q == slot_t'(QPS - 1)) ready_q <= 1'b1;
    if (rst) begin
      ready_q      <= 1'b0;
      pending_q    <= 1'b0;
      held_valid_q <= 1'b0;
      init_q       <= '0;
    end
  end
endmodule
