// SPDX-License-Identifier: Apache-2.0

// The control queue of a network device (virtio 1.2, 5.1.6.5): does a command, writes its ack, and when memory has that gives its chain back.
// It knows VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET (5.1.6.5.6.1) and answers any other with VIRTIO_NET_ERR; a chain without a byte for the answer is
// given back as it is. virtio_net_tx reads the commands, one at a time: none is pulled while `busy`. From `command` to `used` a latency
// of memory and 8 cycles.
module virtio_net_control
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned PAIRS  = 2,
    parameter queue_t      QUEUE  = 5
) (
    input  logic           clk,
    input  logic           rst,
    input  logic           pulled,         // pulse: a chain is on its way
    input  logic           segment_valid,  // pulse: a buffer of the chain, if it is one of QUEUE
    input  virtq_segment_t segment,
    input  net_command_t   command,        // after all of them
    stream_if.source       used,           // virtq_used_t
    stream_if.source       cmd,            // dma_cmd_t: the ack
    axis_if.source         data,
    stream_if.sink         done,           // dma_done_t
    output virtq_fail_t    fail,
    output logic           busy,
    output logic [PAIR_W:0] pairs,         // that the driver uses
    output logic           idle
);
  typedef enum logic [1:0] {
    C_WAIT,
    C_WRITE,
    C_DONE,
    C_USED
  } control_e;

  control_e    state_q;
  logic        ack_q;                      // the chain has a byte for it,
  addr_t       ack_at_q;                   // here
  logic [7:0]  answer_q;
  logic [15:0] head_q;
  logic [1:0]  taken_q;                    // of the write: the command, the data
  wire [1:0]   taken = taken_q | {data.tready, cmd.ready};

  wire known = command.whole && command.value.class_ == VIRTIO_NET_CTRL_MQ && command.value.command == VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET
             && command.value.virtqueue_pairs != '0 && command.value.virtqueue_pairs <= 16'(PAIRS);

  assign cmd.valid   = state_q == C_WRITE && !taken_q[0];
  assign cmd.data    = '{target: '0, key: '0, addr: ack_at_q, length: 32'd1};
  assign data.tvalid = state_q == C_WRITE && !taken_q[1];
  assign data.tdata  = DATA_W'(answer_q);
  assign data.tkeep  = (DATA_W / 8)'(1);
  assign data.tlast  = 1'b1;
  assign data.tuser  = 1'b0;
  assign done.ready  = 1'b1;
  assign used.valid  = state_q == C_USED;
  assign used.data   = '{vq: QUEUE, head: head_q, len: 32'(ack_q), last: 1'b1};
  assign idle        = state_q == C_WAIT;

  always_ff @(posedge clk) begin
    fail    <= '{valid: state_q == C_DONE && done.valid && done.data.error && !rst, vq: QUEUE, code: VIRTQ_MEMORY};
    taken_q <= state_q == C_WRITE ? taken : '0;
    if (pulled) ack_q <= 1'b0;
    if (segment_valid && segment.vq == QUEUE && segment.writable && !ack_q) begin
      ack_q    <= 1'b1;
      ack_at_q <= segment.addr;
    end
    unique case (state_q)
      C_WAIT: if (command.valid) begin
        state_q  <= ack_q ? C_WRITE : C_USED;
        answer_q <= known ? VIRTIO_NET_OK : VIRTIO_NET_ERR;
        head_q   <= command.head;
        if (known) pairs <= command.value.virtqueue_pairs[PAIR_W:0];
      end
      C_WRITE: if (&taken) state_q <= C_DONE;
      C_DONE: if (done.valid) state_q <= done.data.error ? C_WAIT : C_USED;
      default: if (used.ready) begin
        state_q <= C_WAIT;
        busy    <= 1'b0;
      end
    endcase
    if (pulled) busy <= 1'b1;
    if (rst) begin
      state_q <= C_WAIT;
      busy    <= 1'b0;
      pairs   <= (PAIR_W + 1)'(1);
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, segment.head, segment.len, segment.last, segment.error};
endmodule
