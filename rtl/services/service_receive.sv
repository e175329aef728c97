// SPDX-License-Identifier: Apache-2.0

// Receive side of the services: takes UDP datagrams from the packet plane, whole or not at all, and gives each as a record and a stream of
// 32-bit words. Whatever the services do, the packet plane never waits for them: a message that finds no room is dropped and counted.
//
// A service may refuse a message before it takes room: `offered` shows its record for one cycle, and `admitted` answers in the next.
// Messages that are not `favoured` use half of the store at most, so that they cannot keep out those that are.
//
// One beat a cycle in; payload waits at most 3 cycles for the verdict on its record. One word a cycle out, with one cycle between two messages; the first word 4 cycles after the
// first beat, the record 4 cycles after the frame's.
module service_receive
  import packet_pkg::*;
  import frame_pkg::*;
  import services_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned STORE_BYTES = 8192  // a power of two, 4096 or more
) (
    input  logic           clk,
    input  logic           rst,
    input  service_ports_t ports,
    stream_if.sink         frame,          // frame_rx_t of CLASS_UDP to one of the ports, from one host, or CLASS_RA; always accepted
    axis_if.sink           payload,
    output logic           offered_valid,
    output service_rx_t    offered,
    output logic [63:0]    offered_first,  // of its payload, if it has 8 bytes
    input  logic           admitted,
    input  logic           favoured,
    stream_if.source       message,        // service_rx_t
    stream_if.source       words,          // service_word_t
    output logic           rx_message,     // pulses
    output logic           drop_length,
    output logic           drop_room,
    output logic           idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANES = DATA_W / 32;
  localparam int unsigned DEPTH = STORE_BYTES / BYTES;
  localparam int unsigned QUEUE = 16;      // more than frames whose payload can still be on its way (packet_plane)
  localparam int unsigned LANE_W = $clog2(LANES);
  typedef logic [$clog2(DEPTH):0] beats_t;
  typedef logic [LANE_W-1:0] lane_t;

  // ---- the record ----
  frame_rx_t   from;
  udp_hdr_t    udp;
  service_rx_t seen_q, judged_q;
  logic [63:0] seen_first_q;
  beats_t      seen_beats_q, beats_q;
  logic        seen_valid_q, seen_fits_q, seen_empty_q, judged_valid_q, fits_q, empty_q;
  assign from = frame.data;
  assign udp  = from.headers.l4.udp.udp;
  assign frame.ready = 1'b1;

  service_e service;
  always_comb begin
    service = SERVICE_IPBUS;
    for (int unsigned i = 1; i < 32'(SERVICE_ROUTER); i++) if (udp.dst_port == ports[i]) service = service_e'(i);
  end

  always_ff @(posedge clk) begin
    seen_valid_q <= !rst && frame.valid;
    seen_q <= '{
        service: service,
        mac: from.headers.l2.src,
        ip: ipv4_of(from.headers.l3.src),
        port: udp.src_port,
        length: message_length_t'(from.payload_length)
    };
    if (from.cls == CLASS_RA)
      seen_q <= router_record(from.headers.l3.src[63:0], from.headers.l4.icmp.echo.sequence_number,
                               message_length_t'(from.payload_length));
    seen_first_q <= from.headers.l4.udp.first;
    seen_fits_q  <= from.payload_length != '0 && from.payload_length <= 16'(MESSAGE_BYTES);
    seen_empty_q <= from.payload_length == '0;
    seen_beats_q <= beats_t'((message_length_t'(from.payload_length) + message_length_t'(BYTES - 1)) / message_length_t'(BYTES));
    judged_valid_q <= !rst && seen_valid_q;
    judged_q <= seen_q;
    fits_q   <= seen_fits_q;
    empty_q  <= seen_empty_q;
    beats_q  <= seen_beats_q;
  end
  assign offered_valid = seen_valid_q && seen_fits_q;
  assign offered       = seen_q;
  assign offered_first = seen_first_q;

  // ---- the verdict ----
  stream_if #(.T(service_rx_t)) taken ();
  stream_if #(.T(logic)) verdict ();
  stream_if #(.T(logic)) current ();
  stream_if #(.T(message_words_t)) size_in ();
  stream_if #(.T(message_words_t)) size ();
  logic   messages_empty, verdicts_empty, sizes_empty, beat_popped;
  beats_t free_q;                          // beats that are not promised
  wire    room = beats_q <= (favoured ? free_q : free_q - beats_t'(DEPTH / 2)) && (favoured || free_q >= beats_t'(DEPTH / 2));
  wire    keep = judged_valid_q && fits_q && admitted && room && taken.ready && size_in.ready;

  assign taken.valid = keep;
  assign taken.data  = judged_q;
  stream_fifo #(.T(service_rx_t), .DEPTH(QUEUE)) messages (.clk, .rst, .in(taken), .out(message), .empty(messages_empty));

  assign size_in.valid = keep;
  assign size_in.data  = message_words_t'((judged_q.length + 11'd3) >> 2);
  stream_fifo #(.T(message_words_t), .DEPTH(QUEUE)) sizes (.clk, .rst, .in(size_in), .out(size), .empty(sizes_empty));

  assign verdict.valid = judged_valid_q && !empty_q;
  assign verdict.data  = keep;
  stream_fifo #(.T(logic), .DEPTH(QUEUE)) verdicts (.clk, .rst, .in(verdict), .out(current), .empty(verdicts_empty));
  always_ff @(posedge clk) if (!rst && verdict.valid) assert (verdict.ready);

  always_ff @(posedge clk) begin
    if (rst) free_q <= beats_t'(DEPTH);
    else free_q <= keep ? free_q - beats_q + beats_t'(beat_popped) : free_q + beats_t'(beat_popped);
    rx_message  <= !rst && keep;
    drop_length <= !rst && judged_valid_q && !fits_q;
    drop_room   <= !rst && judged_valid_q && fits_q && admitted && !keep;
  end

  // ---- the store: room was promised to every beat that comes ----
  stream_if #(.T(logic [DATA_W-1:0])) beat_in ();
  stream_if #(.T(logic [DATA_W-1:0])) beat ();
  logic beats_empty;
  assign payload.tready = current.valid;
  assign current.ready  = payload.tvalid && payload.tlast;
  assign beat_in.valid  = payload.tvalid && current.valid && current.data;
  assign beat_in.data   = payload.tdata;
  stream_fifo #(.T(logic [DATA_W-1:0]), .DEPTH(DEPTH), .BLOCK_RAM(1'b1)) beats (.clk, .rst, .in(beat_in), .out(beat), .empty(beats_empty));
  always_ff @(posedge clk) if (!rst && beat_in.valid) assert (beat_in.ready);

  // ---- to words ----
  stream_if #(.T(service_word_t)) word ();
  logic           busy_q, last_q;          // a message is taken apart; this is its last word
  message_words_t left_q;                  // words behind this one
  lane_t          lane_q;
  logic [LANES-1:0][31:0] lanes;
  assign lanes = beat.data;
  wire pass = word.valid && word.ready;

  assign word.valid  = beat.valid && busy_q;
  assign word.data   = '{last: last_q, data: byte_swapped(lanes[lane_q])};
  assign size.ready  = !busy_q;
  assign beat_popped = pass && (last_q || lane_q == lane_t'(LANES - 1));
  assign beat.ready  = beat_popped;

  always_ff @(posedge clk) begin
    if (!busy_q) begin
      busy_q <= size.valid;
      left_q <= size.data - 1'b1;
      last_q <= size.data == message_words_t'(1);
      lane_q <= '0;
    end else if (pass) begin
      busy_q <= !last_q;
      left_q <= left_q - 1'b1;
      last_q <= left_q == message_words_t'(1);
      lane_q <= lane_q + 1'b1;
    end
    if (rst) busy_q <= 1'b0;
  end
  stream_slice #(.T(service_word_t), .SKID(1'b0)) word_slice (.clk, .rst, .in(word), .out(words));

  assign idle = !seen_valid_q && !judged_valid_q && messages_empty && verdicts_empty && sizes_empty && beats_empty && !busy_q && !words.valid;
endmodule
