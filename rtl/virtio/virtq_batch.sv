// SPDX-License-Identifier: Apache-2.0

// Collects what one client gives back to elements of a used ring that are written at once (virtio 1.2, 2.7.8): up to four, and no
// more than a beat has, of one queue, not past the end of its ring. One element a cycle. A batch is offered at once and grows until it is taken or
// full.
module virtq_batch
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned QUEUES = 4
) (
    input  logic            clk,
    input  logic            rst,
    input  virtq_setup_t    setup,
    stream_if.sink          used,         // virtq_used_t
    output logic            valid,        // the outputs below are those of a batch; they change until it is taken
    input  logic            take,
    output ring_write_tag_t tag,
    output logic [15:0]     at,           // position of the first element in the ring
    output logic [6:0]      bytes,
    output logic [DATA_W-1:0] data
);
  localparam int unsigned ELEMS = DATA_W < 256 ? DATA_W / $bits(virtq_used_elem_t) : 4;
  localparam int unsigned COUNT_W = $clog2(ELEMS + 1);
  typedef logic [COUNT_W-1:0] count_t;
  typedef logic [$clog2(QUEUES)-1:0] index_t;

  (* ram_style = "distributed" *) logic [15:0] sizes[MAX_QUEUES];
  always_ff @(posedge clk) if (setup.valid) sizes[setup.vq] <= setup.values.size;

  logic        valid_q, whole_q, room_q;     // whole: a frame ends in it,
  queue_t      vq_q;
  logic [15:0] start_q, at_q;                // index of the first element; its position
  count_t      count_q, upto_q;              // upto: with this element
  virtq_used_elem_t [ELEMS-1:0] elems_q;
  logic [15:0] given_q[QUEUES];              // elements of each queue, counted

  wire joins = used.valid && valid_q && used.data.vq == vq_q && room_q && !take;
  wire [15:0] size = sizes[used.data.vq];
  wire [15:0] first = ring_position(given_q[index_t'(used.data.vq)], size);
  virtq_used_elem_t elem;
  assign elem = '{len: used.data.len, id: 32'(used.data.head)};
  assign used.ready = joins || !valid_q || take;

  always_ff @(posedge clk) begin
    if (used.valid && used.ready) begin
      given_q[index_t'(used.data.vq)] <= given_q[index_t'(used.data.vq)] + 1'b1;
      if (joins) begin
        for (int unsigned i = 0; i < ELEMS; i++) if (count_q == count_t'(i)) elems_q[i] <= elem;
        count_q <= count_q + 1'b1;
        room_q  <= 32'(count_q) + 1 < ELEMS && first + 1'b1 != size;
        if (used.data.last) begin
          whole_q <= 1'b1;
          upto_q  <= count_q + 1'b1;
        end
      end else begin
        vq_q       <= used.data.vq;
        start_q    <= given_q[index_t'(used.data.vq)];
        at_q       <= first;
        room_q     <= ELEMS > 1 && first + 1'b1 != size;
        count_q    <= count_t'(1);
        whole_q    <= used.data.last;
        upto_q     <= count_t'(1);
        elems_q[0] <= elem;
      end
    end
    if (rst) begin
      valid_q <= 1'b0;
      for (int unsigned i = 0; i < QUEUES; i++) given_q[i] <= '0;
    end else begin
      valid_q <= used.valid || (valid_q && !take);
    end
  end

  assign valid = valid_q;
  assign tag   = '{kind: WRITE_ELEMENTS, vq: vq_q, whole: whole_q, index: start_q + 16'(upto_q)};
  assign at    = at_q;
  assign bytes = 7'({count_q, 3'd0});
  assign data  = DATA_W'(elems_q);

  logic unused_ok;
  assign unused_ok = &{1'b0, setup.values.vector, setup.values.desc, setup.values.avail, setup.values.used};
endmodule
