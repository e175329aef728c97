// SPDX-License-Identifier: Apache-2.0

// Segmentation (virtio 1.2, 5.1.6.2, VIRTIO_NET_F_HOST_TSO4 and HOST_TSO6): cuts a frame whose header asks for it into TCP segments of
// gso_size bytes of payload, each with the frame's headers: total length, identification (one more each) and checksum of IPv4, payload
// length of IPv6, sequence number of TCP are its own; FIN and PSH are in the last one only, CWR in the first. The checksum of TCP is left to
// virtio_net_csum. Other frames pass as they are, one beat a cycle, latency 1 cycle.
//
// The lengths of headers are those that the headers have; hdr_len is not looked at. A frame whose headers are not as they must be, or whose
// segments would be shorter than MIN_GSO_SIZE or longer than MAX_FRAME, is dropped as a whole: `refused`. Reading the headers takes a
// cycle for each 4 bytes of them, and 12 cycles more. A segment takes the beats that it has and 1 to 2 cycles more, 6 cycles at least.
// When `out` stops, `in` does. While `halt` is high no segment begins.
module virtio_net_segment
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W    = 512,
    parameter int unsigned MAX_FRAME = 9018
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            halt,
    input  net_offload_t    offload,
    axis_if.sink            in,                // frames; tuser: memory could not be read, from there on up to the last beat
    input  virtio_net_hdr_t header,            // of the frame on `in`, from its first beat on,
    input  virtio_net_hdr_t header_now,        // and from the cycle before
    input  logic            sized,             // `whole` and `size` are defined: with the last beat at the latest
    input  logic            whole,             // all of the frame will come
    input  logic [16:0]     size,              // bytes
    input  queue_t          vq,                // with `sized`
    input  logic            leaves,            // with the last beat: the frame is to be sent, if it is not segmented
    output logic            segments,          // the frame on `in` is to be segmented, from its first beat on;
    output logic            refused,           // with the last beat: and cannot be
    axis_if.source          out,               // frames; tuser with the last beat: it is to be forgotten
    output queue_t          out_vq,            // with the last beat
    output csum_ask_t       ask,               // of the frame on `out`
    output logic [15:0]     start_now,         // ask.start, a cycle earlier
    output logic            idle
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned LANE_W = $clog2(BYTES);
  localparam int unsigned WORD_W = LANE_W - 2;                          // of the number of a word in a beat
  localparam int unsigned TEMPLATE = 2 ** $clog2(MAX_TCP_HEADERS / BYTES + 1);
  localparam int unsigned BEAT_W = $clog2(TEMPLATE);
  localparam logic [15:0] TCP_CSUM_AT = 16'd16;                         // in its header
  localparam int unsigned MAX_BEATS = (MAX_FRAME + BYTES - 1) / BYTES;  // of a frame that passes
  typedef logic [LANE_W-1:0] lane_t;
  typedef logic [BEAT_W-1:0] beat_t;

  typedef enum logic [3:0] {
    S_PASS,    // frames that stay as they are
    S_PARSE,   // the headers are read
    S_CHECK,   // and judged
    S_COPY,    // what is left of them goes into the template
    S_WAIT,    // for the next segment's fields
    S_LOAD,    // the end of its headers, from which on there is payload, is held
    S_HEADER,  // its headers leave, but for that
    S_PAYLOAD, // its payload follows
    S_REST,    // the last bytes of the frame, which are held
    S_DRAIN    // what is left of a frame is thrown away
  } state_e;

  state_e state_q;

  // ---- frames that stay as they are ----
  logic gso_q, unfit_q;
  wire [7:0] type_now = header_now.gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
  wire ecn_now = |(header_now.gso_type & VIRTIO_NET_HDR_GSO_ECN);
  wire negotiated = (type_now == VIRTIO_NET_HDR_GSO_TCPV4 && offload.tso4) || (type_now == VIRTIO_NET_HDR_GSO_TCPV6 && offload.tso6);
  always_ff @(posedge clk) begin
    gso_q   <= header_now.gso_type != VIRTIO_NET_HDR_GSO_NONE;
    unfit_q <= !negotiated || (ecn_now && !offload.ecn) || !header_now.flags[VIRTIO_NET_HDR_F_NEEDS_CSUM]
            || header_now.csum_offset != TCP_CSUM_AT || header_now.gso_size < 16'(MIN_GSO_SIZE);
  end
  assign segments = gso_q;

  wire free = !out.tvalid || out.tready;
  wire here = in.tvalid && state_q == S_PASS;
  wire pass = here && !gso_q && free;

  // Of one that is too long no more is passed on than of the longest.
  logic [$clog2(MAX_BEATS+1)-1:0] passed_q;
  wire swallow = 32'(passed_q) == MAX_BEATS;
  always_ff @(posedge clk) begin
    if (rst || (pass && in.tlast)) passed_q <= '0;
    else if (pass && !swallow) passed_q <= passed_q + 1'b1;
  end

  // ---- the headers ----
  logic         reads, bad_headers, headers_done, begins;
  logic [5:0]   number;
  tcp_headers_t headers;
  beat_t        beat_q;                        // of the frame: that on `in`
  logic [31:0]  word;
  logic [1:0]   check_q;
  logic         unfit_now_q, refused_q;
  logic [17:0]  payload_q;
  logic [16:0]  longest_q;
  assign begins = here && gso_q && sized && whole;
  wire [31:0] picked = in.tdata[32'(number[WORD_W-1:0])*32+:32];
  assign word = {picked[7:0], picked[15:8], picked[23:16], picked[31:24]};
  wire at_beat = (6 - WORD_W)'(number >> WORD_W) == (6 - WORD_W)'(beat_q);
  wire parses = state_q == S_PARSE && in.tvalid && reads;
  wire cut = parses && !at_beat && in.tlast;   // the frame ends within them
  virtio_net_tcp_headers reader (
      .clk, .start(begins), .reads, .number, .word_valid(parses && at_beat), .word, .refused(bad_headers), .done(headers_done), .headers
  );
  wire v6 = (header.gso_type & ~VIRTIO_NET_HDR_GSO_ECN) == VIRTIO_NET_HDR_GSO_TCPV6;
  wire lane_t head_lane = headers.bytes[LANE_W-1:0];
  wire beat_t head_beats = beat_t'(headers.bytes >> LANE_W);
  always_ff @(posedge clk) begin
    payload_q <= 18'(size) - 18'(headers.bytes);
    longest_q <= 17'(headers.bytes) + 17'(header.gso_size);
    unfit_now_q <= unfit_q || payload_q[17] || payload_q == '0 || longest_q > 17'(MAX_FRAME) || header.csum_start != 16'(headers.tcp_at) || headers.v6 != v6;
  end

  // ---- the segments ----
  stream_if #(.T(tcp_segment_t)) segment ();   // the next one
  tcp_segment_t segment_q;                     // this one
  wire judged = state_q == S_CHECK && check_q == 2'd2;
  virtio_net_tcp_fields #(.BYTES(BYTES)) fields (
      .clk, .rst, .start(state_q == S_CHECK && check_q == 2'd1), .headers, .payload(17'(payload_q)), .gso_size(header.gso_size), .segment
  );

  logic [DATA_W-1:0] head;
  beat_t             read_at, read_q;          // of the template
  wire copies = state_q == S_COPY && in.tvalid;
  wire copied = beat_q == head_beats;          // but for the beat on `in`, in which there may be payload as well
  virtio_net_tcp_template #(.DATA_W(DATA_W), .BEATS(TEMPLATE)) template (
      .clk, .write(parses || copies), .write_at(beat_q), .write_data(in.tdata), .headers, .read_at, .patch(segment_q.patch), .data(head)
  );

  logic [13:0] visits_q;                       // beats of `in` that this segment still needs
  logic        opens_q, ends_q;                // the first of them, the last of them is on `in`
  logic        rest_q;                         // the last bytes of the segment before are held
  wire takes = state_q == S_PAYLOAD && in.tvalid && free;
  wire fails = takes && in.tuser;
  wire ends = takes && ends_q && !in.tuser;
  wire heads = state_q == S_HEADER && free;
  wire loads = state_q == S_LOAD && (free || !rest_q);
  wire gives_up = state_q == S_WAIT && halt && (free || !rest_q);
  wire rests = rest_q && (loads || gives_up || (state_q == S_REST && free));
  wire last_head = read_q + 1'b1 == head_beats;
  assign segment.ready = !halt && (state_q == S_WAIT || ends);

  always_comb begin
    read_at = head_beats;
    if (loads) read_at = '0;
    else if (state_q == S_HEADER) read_at = heads ? read_q + 1'b1 : read_q;
  end

  always_comb begin
    unique case (state_q)
      S_PASS:    in.tready = free && !gso_q;
      S_PARSE:   in.tready = reads && !at_beat && !in.tlast;
      S_COPY:    in.tready = !copied;
      S_PAYLOAD: in.tready = free && !in.tuser && (!ends_q || segment_q.consumes);
      S_DRAIN:   in.tready = 1'b1;
      default:   in.tready = 1'b0;
    endcase
  end

  always_ff @(posedge clk) begin
    unique case (state_q)
      S_PASS: if (here && gso_q && sized) state_q <= whole ? S_PARSE : S_DRAIN;
      S_PARSE: begin
        if (bad_headers || cut) state_q <= S_DRAIN;
        else if (headers_done) state_q <= S_CHECK;
      end
      S_CHECK: if (judged) state_q <= unfit_now_q ? S_DRAIN : S_COPY;
      S_COPY: if (copies && copied) state_q <= S_WAIT;
      S_WAIT: begin
        if (gives_up) state_q <= S_DRAIN;
        else if (segment.valid && !halt) state_q <= S_LOAD;
      end
      S_LOAD: if (loads) state_q <= head_beats == '0 ? S_PAYLOAD : S_HEADER;
      S_HEADER: if (heads && last_head) state_q <= S_PAYLOAD;
      S_PAYLOAD: begin
        if (fails) state_q <= S_DRAIN;
        else if (ends && segment_q.last) state_q <= segment_q.rest ? S_REST : S_PASS;
        else if (ends) state_q <= segment.valid && !halt ? S_LOAD : S_WAIT;
      end
      S_REST: if (free) state_q <= S_PASS;
      default: if (in.tvalid && in.tlast) state_q <= S_PASS;
    endcase
    if (rst) state_q <= S_PASS;

    check_q <= state_q == S_CHECK ? check_q + 1'b1 : '0;
    beat_q  <= begins ? '0 : beat_q + beat_t'(in.tvalid && in.tready);
    read_q  <= loads ? '0 : read_q + beat_t'(heads);
    if (begins) refused_q <= 1'b0;
    else if (state_q == S_PARSE ? bad_headers || cut : judged && unfit_now_q) refused_q <= 1'b1;
    if (segment.valid && segment.ready) segment_q <= segment.data;
    if (ends || fails) rest_q <= ends && segment_q.rest;
    else if (rests || rst) rest_q <= 1'b0;
    if (loads) begin
      visits_q <= segment_q.visits;
      ends_q   <= segment_q.visits == 14'd1;
      opens_q  <= 1'b1;
    end else if (takes) begin
      visits_q <= visits_q - 1'b1;
      ends_q   <= visits_q == 14'd2;
      opens_q  <= 1'b0;
    end
  end
  assign refused = refused_q;

  // ---- a beat of `out`: of `in`, turned, behind what is held; or of the headers ----
  function automatic logic [BYTES-1:0] below(lane_t lane);
    return ~({BYTES{1'b1}} << lane);
  endfunction
  function automatic logic [BYTES-1:0] up_to(lane_t lane);
    return ~({BYTES{1'b1}} << lane << 1);
  endfunction

  logic [BYTES-1:0][7:0] turned, merged, hold_q;
  logic [BYTES-1:0]      held_q, next_held_q;  // lanes of `out` that come from what is held: in this beat, and from the second one on
  logic [BYTES-1:0]      last_keep_q;          // of the last beat
  lane_t                 amount_q;
  wire emits = !(opens_q && segment_q.skip);
  wire push = (pass && (!swallow || in.tlast)) || (takes && (emits || in.tuser)) || heads || rests;
  wire closes = (ends && !segment_q.rest) || rests;
  wire last = pass ? in.tlast : closes || fails;
  wire over = (ends && segment_q.last) || fails || state_q == S_DRAIN || rst;  // no more of the frame is turned
  byte_funnel #(.DATA_W(DATA_W)) turn (.low(in.tdata), .high(in.tdata), .amount(amount_q), .out(turned));
  for (genvar i = 0; i < BYTES; i++) begin : g_lane
    assign merged[i] = held_q[i] ? hold_q[i] : turned[i];
    always_ff @(posedge clk) begin
      if (loads) hold_q[i] <= head[i*8+:8];
      else if (takes) hold_q[i] <= emits ? turned[i] : merged[i];
      if (free) out.tdata[i*8+:8] <= state_q == S_HEADER ? head[i*8+:8] : merged[i];
    end
  end

  always_ff @(posedge clk) begin
    if (loads) begin
      amount_q    <= lane_t'(segment_q.first) - head_lane;
      next_held_q <= below(head_lane - lane_t'(segment_q.first));
      last_keep_q <= up_to(lane_t'(segment_q.last_lane));
    end else if (over) amount_q <= '0;
    if (loads) held_q <= below(head_lane);
    else if (ends && segment_q.rest) held_q <= '1;
    else if (over || (state_q == S_REST && free)) held_q <= '0;
    else if (takes) held_q <= next_held_q;
  end

  logic first_q;                               // the next beat is the first of a frame
  wire csum_ask_t asks = '{asks: header.flags[VIRTIO_NET_HDR_F_NEEDS_CSUM], start: header.csum_start,
                           at: header.csum_start + header.csum_offset, extra: state_q == S_PASS ? '0 : segment_q.csum_extra};
  assign start_now = push && first_q ? header.csum_start : ask.start;
  always_ff @(posedge clk) begin
    if (free) begin
      out.tkeep <= pass ? in.tkeep : closes ? last_keep_q : '1;
      out.tlast <= last;
      out.tuser <= pass ? !leaves : fails;
      if (state_q != S_REST) out_vq <= vq;
    end
    if (push && first_q) ask <= asks;
    if (rst) first_q <= 1'b1;
    else if (push) first_q <= last;
    if (rst) out.tvalid <= 1'b0;
    else if (free) out.tvalid <= push;
  end
  assign idle = state_q == S_PASS && !out.tvalid;

  always_ff @(posedge clk) begin
    if (!rst && ends) assert (!segment_q.last || in.tlast) else $error("a frame is not as long as its chain");
  end
endmodule
