// SPDX-License-Identifier: Apache-2.0

// Which receive queue a frame gets to (virtio 1.2, 5.1.6.5.6 and 5.1.6.5.7), as the driver says by commands: with VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET the one
// that was chosen before the device, if its pair is in use, else the first; with VIRTIO_NET_CTRL_MQ_RSS_CONFIG the one in the indirection
// table at the packet's hash, or the queue for packets without one. The last of these commands counts. A queue that is `fixed` stays, if the
// driver uses its pair: with RSS_CONFIG as many pairs as it says that it sends by.
//
// The choice is combinational. Nothing of a command that is not good has an effect: the indirection table has two halves, one in use.
module virtio_net_steering
  import virtio_pkg::*;
#(
    parameter int unsigned PAIRS  = 4,
    parameter hash_types_t HASHES = '1           // that there are
) (
    input  logic         clk,
    input  logic         rst,
    input  logic [63:0]  features,               // negotiated
    input  pairs_set_t   pairs_set,              // the same as VQ_PAIRS_SET, without a command
    input  net_command_t command,
    output logic         good,
    output net_hash_t    hash,                   // how packets are to be hashed
    input  net_rx_t      info,
    output queue_t       vq
);
  typedef logic [PAIR_W-1:0] pair_t;

  wire sets_pairs = features[VIRTIO_NET_F_MQ] && command.class_ == VIRTIO_NET_CTRL_MQ && command.command == VIRTIO_NET_CTRL_MQ_VQ_PAIRS_SET;
  wire sets_rss = features[VIRTIO_NET_F_RSS] && command.class_ == VIRTIO_NET_CTRL_MQ && command.command == VIRTIO_NET_CTRL_MQ_RSS_CONFIG;

  // ---- virtio_net_rss_config, field after field ----
  typedef enum logic [2:0] {
    R_TYPES,
    R_MASK,
    R_UNCLASSIFIED,
    R_TABLE,
    R_TRANSMIT,
    R_KEY_LENGTH,
    R_KEY,
    R_WHOLE
  } field_e;

  field_e      field_q;
  logic [5:0]  byte_q;                           // of the field, or of the entry
  logic        bad_q;                            // a value cannot be
  logic [7:0]  before_q;                         // the byte before
  hash_types_t types_q;
  hash_index_t mask_q, entry_q;
  pair_t       unclassified_q;
  logic [PAIR_W:0] transmit_q;
  logic [HASH_KEY_BYTES*8-1:0] key_q;
  wire [15:0]  number = {command.value, before_q};
  wire         ends_number = byte_q[0];
  wire         no_pair = number >= 16'(PAIRS);

  always_ff @(posedge clk) begin
    if (command.valid) begin
      before_q <= command.value;
      byte_q   <= byte_q + 1'b1;
      unique case (field_q)
        R_TYPES: begin
          if (byte_q == '0) types_q <= command.value[$bits(hash_types_t)-1:0];
          if ((command.value & (byte_q == '0 ? ~8'(HASHES) : 8'hff)) != '0) bad_q <= 1'b1;
          if (byte_q == 6'd3) begin
            field_q <= R_MASK;
            byte_q  <= '0;
          end
        end
        R_MASK: if (ends_number) begin
          if (number >= 16'(INDIRECTIONS) || (number & (number + 1'b1)) != '0) bad_q <= 1'b1;
          mask_q  <= number[$bits(hash_index_t)-1:0];
          field_q <= R_UNCLASSIFIED;
        end
        R_UNCLASSIFIED: if (ends_number) begin
          if (no_pair) bad_q <= 1'b1;
          unclassified_q <= number[PAIR_W-1:0];
          field_q        <= R_TABLE;
        end
        R_TABLE: if (ends_number) begin
          if (no_pair) bad_q <= 1'b1;
          entry_q <= entry_q + 1'b1;
          if (entry_q == mask_q) field_q <= R_TRANSMIT;
        end
        R_TRANSMIT: if (ends_number) begin
          if (number == '0 || number > 16'(PAIRS)) bad_q <= 1'b1;
          transmit_q <= number[PAIR_W:0];
          field_q <= R_KEY_LENGTH;
        end
        R_KEY_LENGTH: begin
          if (command.value != 8'(HASH_KEY_BYTES)) bad_q <= 1'b1;
          field_q <= R_KEY;
          byte_q  <= '0;
        end
        R_KEY: begin
          key_q <= {key_q[HASH_KEY_BYTES*8-9:0], command.value};
          if (byte_q == 6'(HASH_KEY_BYTES - 1)) field_q <= R_WHOLE;
        end
        default: bad_q <= 1'b1;                  // more bytes than there should be
      endcase
    end
    if (command.start) begin
      field_q <= R_TYPES;
      byte_q  <= '0;
      entry_q <= '0;
      bad_q   <= 1'b0;
    end
  end

  // ---- what is in use ----
  logic        rss_q;                            // the last good command was RSS_CONFIG
  logic        half_q;                           // of the table
  logic [PAIR_W:0] pairs_q;
  hash_index_t mask_used_q;
  pair_t       unclassified_used_q;
  net_hash_t   hash_q;
  logic [15:0] pairs_number;                     // the last two bytes
  wire         good_pairs = sets_pairs && command.length == 16'd2 && pairs_number != '0 && pairs_number <= 16'(PAIRS);
  wire         good_rss = sets_rss && field_q == R_WHOLE && !bad_q;
  always_ff @(posedge clk) if (command.valid) pairs_number <= {command.value, pairs_number[15:8]};
  assign good = good_pairs || good_rss;
  assign hash = hash_q;

  always_ff @(posedge clk) begin
    if (pairs_set.valid && pairs_set.pairs != '0 && pairs_set.pairs <= 16'(PAIRS)) begin
      pairs_q <= pairs_set.pairs[PAIR_W:0];
      rss_q   <= 1'b0;
    end
    if (command.apply && good_pairs) begin
      pairs_q <= pairs_number[PAIR_W:0];
      rss_q   <= 1'b0;
    end
    if (command.apply && good_rss) begin
      rss_q               <= 1'b1;
      half_q              <= !half_q;
      pairs_q             <= transmit_q;
      mask_used_q         <= mask_q;
      unclassified_used_q <= unclassified_q;
      hash_q              <= '{types: types_q, key: key_q};
    end
    if (rst) begin
      pairs_q <= (PAIR_W + 1)'(1);
      rss_q   <= 1'b0;
      half_q  <= 1'b0;
      hash_q.types <= '0;
    end
  end

  (* ram_style = "distributed" *) logic [PAIR_W-1:0] indirection[2*INDIRECTIONS];
  always_ff @(posedge clk)
    if (command.valid && sets_rss && field_q == R_TABLE && ends_number) indirection[{!half_q, entry_q}] <= number[PAIR_W-1:0];
  wire pair_t indirect = indirection[{half_q, info.hash & mask_used_q}];

  always_comb begin
    vq = 32'(info.vq[QUEUE_W-1:1]) < 32'(pairs_q) ? info.vq : '0;
    if (rss_q && !info.fixed) vq = queue_t'({info.hashed ? indirect : unclassified_used_q, 1'b0});
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, info};
endmodule
