// SPDX-License-Identifier: Apache-2.0

// The headers of a frame, from which those of its segments are made: beats go in as they are, and come out with the fields of `patch` in
// place of their own. A beat is on `data` one cycle after `read_at`, with the fields that `patch` has then.
module virtio_net_tcp_template
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned BEATS = 4                // a power of two
) (
    input  logic                     clk,
    input  logic                     write,
    input  logic [$clog2(BEATS)-1:0] write_at,
    input  logic [DATA_W-1:0]        write_data,
    input  tcp_headers_t             headers,       // where the fields are: constant from a cycle before the first read on
    input  logic [$clog2(BEATS)-1:0] read_at,
    input  tcp_patch_t               patch,
    output logic [DATA_W-1:0]        data
);
  localparam int unsigned HALVES = DATA_W / 16;     // of 16 bits: every field begins at an even byte
  localparam int unsigned HALF_W = $clog2(HALVES);

  // Fields in odd half-words, and those in even ones: the headers begin at an odd half-word, and are a multiple of 4 bytes long.
  typedef enum logic [1:0] {
    KEEP,
    FIELD_IP_ID,     // of IPv6: payload length
    FIELD_SEQ_HIGH,
    FIELD_FLAGS
  } odd_field_e;
  typedef enum logic [1:0] {
    KEEP_EVEN,
    FIELD_LENGTH,
    FIELD_IP_CSUM,
    FIELD_SEQ_LOW
  } even_field_e;

  logic [DATA_W-1:0] stored;
  ram_1w1r #(.T(logic [DATA_W-1:0]), .WORDS(BEATS)) beats (
      .clk, .write, .write_at, .write_data, .read(1'b1), .read_at, .read_data(stored)
  );

  logic [6:0] ip_q, tcp_q;                          // half-words of the frame
  always_ff @(posedge clk) begin
    ip_q  <= 7'(headers.l2_bytes[5:1]);
    tcp_q <= 7'(headers.tcp_at[6:1]);
  end

  function automatic logic [15:0] swapped(logic [15:0] value);
    return {value[7:0], value[15:8]};
  endfunction

  for (genvar i = 0; i < HALVES; i++) begin : g_half
    wire [6:0] at = 7'({read_at, HALF_W'(i)});
    logic [15:0] kept;
    assign kept = stored[i*16+:16];
    if (i % 2 == 1) begin : g_odd
      odd_field_e field_q;
      always_ff @(posedge clk) begin
        field_q <= at == ip_q + 7'd2 ? FIELD_IP_ID : at == tcp_q + 7'd2 ? FIELD_SEQ_HIGH : at == tcp_q + 7'd6 ? FIELD_FLAGS : KEEP;
      end
      always_comb begin
        unique case (field_q)
          FIELD_IP_ID:    data[i*16+:16] = swapped(headers.v6 ? patch.length : patch.id);
          FIELD_SEQ_HIGH: data[i*16+:16] = swapped(patch.seq[31:16]);
          FIELD_FLAGS:    data[i*16+:16] = swapped(patch.flags);
          default:        data[i*16+:16] = kept;
        endcase
      end
    end else begin : g_even
      even_field_e field_q;
      always_ff @(posedge clk) begin
        field_q <= at == ip_q + 7'd1 && !headers.v6 ? FIELD_LENGTH : at == ip_q + 7'd5 && !headers.v6 ? FIELD_IP_CSUM
                 : at == tcp_q + 7'd3 ? FIELD_SEQ_LOW : KEEP_EVEN;
      end
      always_comb begin
        unique case (field_q)
          FIELD_LENGTH:  data[i*16+:16] = swapped(patch.length);
          FIELD_IP_CSUM: data[i*16+:16] = swapped(patch.ip_csum);
          FIELD_SEQ_LOW: data[i*16+:16] = swapped(patch.seq[15:0]);
          default:       data[i*16+:16] = kept;
        endcase
      end
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, headers.bytes, headers.id, headers.ip_sum, headers.pseudo_sum, headers.seq, headers.flags, headers.l2_bytes[0],
                       headers.tcp_at[0]};
endmodule
