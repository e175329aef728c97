// SPDX-License-Identifier: Apache-2.0

// Receive side of a socket: keeps datagrams for its kernel, whole or not at all, and gives each as a packet: the header, then the payload.
// `in` never stops: a datagram for which there is no room is dropped and counted. So a kernel that does not read loses its own.
//
// One beat a cycle in. The first beat of the header is on `out` 3 cycles after the record, one beat a cycle from there on, and at least one cycle is
// between two packets. WAITING datagrams wait, and STORE_BYTES of their payload.
//
// While `off` is high the kernel is in reset: nothing is kept, and what is there is discarded, one beat a cycle. A kernel that comes out of
// reset sees the beginning of a packet, and none that came for the one before.
module datagram_receive
  import packet_pkg::*;
  import datagrams_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned STORE_BYTES = 16384     // a power of two, above DATAGRAM_BYTES
) (
    input  logic              clk,
    input  logic              rst,
    input  logic              off,
    input  ipv4_addr_t        own_ip,
    input  logic [15:0]       own_port,
    input  logic              offered,             // a datagram to this socket
    input  logic              fits,                // it is not longer than DATAGRAM_BYTES
    input  datagram_length_t  offered_length,
    output logic              keep,                // it is taken, with the number `number`; same cycle
    output datagram_number_t  number,
    input  logic              beat_valid,          // payload of those that were taken
    input  logic [DATA_W-1:0] beat_data,
    output datagram_number_t  shown,               // whose sender and length are needed,
    input  sender_t           sender,              // in the same cycle
    axis_if.source            out,
    output logic              drop_room,           // pulses
    output logic              discarded,
    output logic              idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned BYTE_W = $clog2(BYTES);
  localparam int unsigned DEPTH = STORE_BYTES / BYTES;
  localparam int unsigned HEAD_BEATS = HEADER_BYTES / BYTES;
  localparam int unsigned QUIET_W = 6;             // the kernel does not read for so many cycles, as a power of two: it is idle
  typedef logic [$clog2(DEPTH):0] beats_t;
  typedef logic [$clog2(HEAD_BEATS+1)-1:0] head_t;
  typedef logic [$clog2(WAITING):0] waiting_t;

  typedef enum logic [1:0] {
    S_NONE,
    S_HEAD,
    S_BODY
  } state_e;

  function automatic beats_t beats_of(datagram_length_t length);
    return beats_t'((length + datagram_length_t'(BYTES - 1)) >> BYTE_W);
  endfunction

  // ---- what is taken ----
  state_e           state_q;
  waiting_t         waiting_q;                     // one that is given to the kernel included
  beats_t           free_q;                        // beats that are not promised
  logic             leaves, popped, discards_q;
  datagram_number_t shown_q;
  beats_t           offered_beats;
  assign offered_beats = beats_of(offered_length);
  assign number = shown_q + datagram_number_t'(waiting_q);
  assign keep   = offered && fits && !off && !discards_q && waiting_q != waiting_t'(WAITING) && offered_beats <= free_q;

  stream_if #(.T(logic [DATA_W-1:0])) beat_in ();
  stream_if #(.T(logic [DATA_W-1:0])) beat ();
  assign beat_in.valid = beat_valid;
  assign beat_in.data  = beat_data;
  stream_fifo #(.T(logic [DATA_W-1:0]), .DEPTH(DEPTH), .BLOCK_RAM(1'b1)) beats (.clk, .rst, .in(beat_in), .out(beat), .empty());
  always_ff @(posedge clk) if (!rst && beat_valid) assert (beat_in.ready);   // room was promised

  always_ff @(posedge clk) begin
    drop_room <= !rst && offered && fits && !keep;
    if (rst) begin
      waiting_q <= '0;
      free_q    <= beats_t'(DEPTH);
      shown_q   <= '0;
    end else begin
      waiting_q <= waiting_q + waiting_t'(keep) - waiting_t'(leaves);
      free_q    <= free_q - (keep ? offered_beats : '0) + beats_t'(popped);
      shown_q   <= shown_q + datagram_number_t'(leaves);
    end
  end

  // ---- to the kernel: a register, into which header and payload go ----
  head_t             head_q;
  datagram_length_t  left_q;                       // bytes of the payload that are not in the register
  logic [DATA_W-1:0] data_q;
  logic              valid_q, last_q;
  logic [BYTE_W-1:0] top_q;                        // highest byte that is kept
  header_bytes_t     header;
  logic [HEAD_BEATS-1:0][DATA_W-1:0] header_beats;

  assign shown  = shown_q;
  assign header = bytes_of('{
      kind: KIND_DATAGRAM,
      length: 16'(sender.length),
      peer_port: sender.port,
      own_port: own_port,
      number: shown_q,
      peer: ip_mapped(sender.ip),
      own: ip_mapped(own_ip),
      default: '0
  });
  assign header_beats = header;

  wire free = !valid_q || out.tready || discards_q;
  wire ends = left_q <= datagram_length_t'(BYTES);
  wire last_head = head_q == head_t'(HEAD_BEATS - 1);
  wire shows_head = state_q == S_HEAD && free;
  assign popped     = state_q == S_BODY && free && beat.valid;
  assign beat.ready = popped;
  assign leaves     = (shows_head && last_head && left_q == '0) || (popped && ends);

  always_ff @(posedge clk) begin
    if (shows_head) data_q <= header_beats[head_q];
    else if (popped) data_q <= beat.data;
    if (shows_head || popped) begin
      last_q <= leaves;
      top_q  <= state_q == S_HEAD || !ends ? '1 : BYTE_W'(left_q - 1'b1);
    end
    if (popped) left_q <= left_q - datagram_length_t'(BYTES);
    unique case (state_q)
      S_NONE: begin
        head_q <= '0;
        left_q <= sender.length;
        if (waiting_q != '0) state_q <= S_HEAD;
      end
      S_HEAD:
      if (free) begin
        head_q <= head_q + 1'b1;
        if (last_head) state_q <= left_q == '0 ? S_NONE : S_BODY;
      end
      default: if (leaves) state_q <= S_NONE;
    endcase
    if (free) valid_q <= shows_head || popped;
    // Until the last one that came before is gone.
    discards_q <= off || (discards_q && (waiting_q != '0 || state_q != S_NONE || valid_q));
    discarded  <= !rst && discards_q && valid_q && last_q;
    if (rst) begin
      state_q    <= S_NONE;
      valid_q    <= 1'b0;
      discards_q <= 1'b0;
    end
  end

  assign out.tvalid = valid_q && !off && !discards_q;
  assign out.tdata  = data_q;
  assign out.tlast  = last_q;
  assign out.tuser  = 1'b0;
  for (genvar i = 0; i < BYTES; i++) begin : g_keep
    assign out.tkeep[i] = i == 0 || BYTE_W'(i) <= top_q;
  end

  logic [QUIET_W:0] stalled_q;
  always_ff @(posedge clk) stalled_q <= free || rst ? '0 : stalled_q[QUIET_W] ? stalled_q : stalled_q + 1'b1;
  assign idle = (waiting_q == '0 && state_q == S_NONE && !valid_q) || (stalled_q[QUIET_W] && !off && !discards_q);
endmodule
