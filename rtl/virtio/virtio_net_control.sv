// SPDX-License-Identifier: Apache-2.0

// The control queue of a network device (virtio 1.2, 5.1.6.5): reads a command, hands it on byte by byte, and when the unit that knows it has
// done it writes the ack, and gives the chain back when memory has that. What no unit says it can do, and what is longer than LONGEST, is
// answered with VIRTIO_NET_ERR; a chain without a byte for the answer is given back as it is.
//
// One command at a time. It is read by 16 bytes: a command takes a latency of memory and 20 cycles for each of them, and one latency for the ack.
// What is behind LONGEST is not read, nor is the rest of a command when the device halts.
module virtio_net_control
  import memory_pkg::*;
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W  = 512,
    parameter queue_t      QUEUE   = 3,
    parameter int unsigned UNITS   = 2,
    parameter int unsigned LONGEST = 4096       // bytes of a command
) (
    input  logic             clk,
    input  logic             rst,
    input  logic             halt,
    input  logic             ready,              // there is a chain
    stream_if.source         pull,               // queue_t
    stream_if.sink           segment,            // virtq_segment_t
    output virtq_settle_t    settle,
    stream_if.source         read,               // ring_read_t
    input  ring_reply_t      reply,
    input  virtq_desc_t      reply_data,
    output net_command_t     command,
    input  logic [UNITS-1:0] good,               // all that was handed on is a command of the unit
    input  logic [UNITS-1:0] busy,               // it has not done it yet
    stream_if.source         used,               // virtq_used_t
    stream_if.source         cmd,                // dma_cmd_t: the ack
    axis_if.source           data,
    stream_if.sink           done,               // dma_done_t
    output virtq_fail_t      fail,
    output logic             idle
);
  typedef enum logic [3:0] {
    C_WAIT,
    C_BUFFER,
    C_READ,
    C_REPLY,
    C_BYTES,
    C_JUDGE,
    C_DO,
    C_WRITE,
    C_DONE,
    C_USED
  } control_e;

  localparam int unsigned PART = $bits(virtq_desc_t) / 8;        // bytes of a read

  control_e           state_q;
  logic               ack_q;               // the chain has a byte for it,
  addr_t              ack_at_q;            // here
  logic [7:0]         answer_q;
  logic [15:0]        head_q;
  addr_t              at_q;                // of the buffer, from the byte at hand on
  logic [31:0]        left_q;
  logic               last_q;              // it is the last one of its chain
  logic               failed_q;            // memory has answered with an error
  logic [PART*8-1:0]  bytes_q;
  logic [4:0]         count_q;             // of them
  logic [16:0]        read_q;              // bytes of the command before
  logic [7:0]         class_q, command_q;
  logic [1:0]         taken_q;             // of the write: the command, the data
  wire  [1:0]         taken = taken_q | {data.tready, cmd.ready};

  wire too_long = 32'(read_q) >= LONGEST;
  wire skips = too_long || halt || failed_q;
  wire whole = !too_long && read_q >= 17'd2;
  wire takes = state_q == C_BUFFER && segment.valid;
  wire ends_buffer = left_q == 32'd1;
  wire answered = state_q == C_REPLY && reply.valid && reply.tag.kind == READ_COMMAND;

  assign pull.valid    = state_q == C_WAIT && ready;
  assign pull.data     = QUEUE;
  assign segment.ready = state_q == C_BUFFER;
  assign settle        = '{valid: takes && segment.data.last, vq: QUEUE, keep: 1'b1};

  assign read.valid = state_q == C_READ;
  always_comb begin
    read.data          = '0;
    read.data.addr     = at_q;
    read.data.bytes    = left_q < 32'(PART) ? 7'(left_q) : 7'(PART);
    read.data.tag.kind = READ_COMMAND;
    read.data.tag.vq   = QUEUE;
  end

  assign command = '{
      start: pull.valid && pull.ready,
      valid: state_q == C_BYTES && read_q >= 17'd2,
      value: bytes_q[7:0],
      length: read_q[15:0] - 16'd2,
      class_: class_q,
      command: command_q,
      apply: state_q == C_JUDGE && whole && !skips && |good
  };

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
    fail    <= '{valid: !rst && ((answered && reply.error) || (state_q == C_DONE && done.valid && done.data.error)), vq: QUEUE, code: VIRTQ_MEMORY};
    taken_q <= state_q == C_WRITE ? taken : '0;
    unique case (state_q)
      C_WAIT: if (pull.valid && pull.ready) begin
        ack_q    <= 1'b0;
        failed_q <= 1'b0;
        read_q   <= '0;
        state_q  <= C_BUFFER;
      end
      C_BUFFER: if (segment.valid) begin
        head_q <= segment.data.head;
        at_q   <= segment.data.addr;
        left_q <= segment.data.len;
        last_q <= segment.data.last;
        if (segment.data.writable && !ack_q) begin
          ack_q    <= 1'b1;
          ack_at_q <= segment.data.addr;
        end
        if (segment.data.error) state_q <= C_WAIT;         // its queue has stopped
        else if (!segment.data.writable && !skips) state_q <= C_READ;
        else if (segment.data.last) state_q <= C_JUDGE;
      end
      C_READ: if (read.ready) state_q <= C_REPLY;
      C_REPLY: if (answered) begin
        bytes_q  <= reply_data;
        count_q  <= left_q < 32'(PART) ? 5'(left_q) : 5'(PART);
        failed_q <= reply.error;
        state_q  <= !reply.error ? C_BYTES : last_q ? C_JUDGE : C_BUFFER;
      end
      C_BYTES: begin
        if (read_q == 17'd0) class_q <= bytes_q[7:0];
        if (read_q == 17'd1) command_q <= bytes_q[7:0];
        bytes_q <= bytes_q >> 8;
        count_q <= count_q - 1'b1;
        left_q  <= left_q - 1'b1;
        at_q    <= at_q + 1'b1;
        read_q  <= read_q + 1'b1;
        if (ends_buffer) state_q <= last_q ? C_JUDGE : C_BUFFER;
        else if (count_q == 5'd1) state_q <= !skips ? C_READ : last_q ? C_JUDGE : C_BUFFER;
      end
      C_JUDGE: begin
        answer_q <= command.apply ? VIRTIO_NET_OK : VIRTIO_NET_ERR;
        state_q  <= failed_q ? C_WAIT : C_DO;
      end
      C_DO: if (busy == '0) state_q <= ack_q ? C_WRITE : C_USED;
      C_WRITE: if (&taken) state_q <= C_DONE;
      C_DONE: if (done.valid) state_q <= done.data.error ? C_WAIT : C_USED;
      default: if (used.ready) state_q <= C_WAIT;
    endcase
    if (rst) state_q <= C_WAIT;
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, segment.data.vq, reply.tag.vq, reply.tag.slot, reply.tag.head, reply.tag.count, reply.tag.bad};
endmodule
