// SPDX-License-Identifier: Apache-2.0

// Which received frames a driver wants (virtio 1.2, 5.1.6.5.1 to 5.1.6.5.3), as it says by commands: modes, a table of addresses, its own
// address, a table of VLANs. Frames pass with a delay of 2 cycles, one beat a cycle; those that are not wanted are marked `unwanted` with their
// last beat. What the driver has not negotiated filters nothing.
//
// The address table is exact for up to ADDRESSES addresses of both kinds together; unicast addresses or groups that do not fit turn on all of their
// kind. While a new table is copied, for ADDRESSES cycles, every address passes: a frame for an address of the old and the new table is not lost.
// In promiscuous mode frames of every VLAN pass, too.
//
// The driver may set another address than `mac` while `mac_free`, and never `mac_taken`; its address is `station`.
module virtio_net_filter
  import virtio_pkg::*;
#(
    parameter int unsigned DATA_W  = 512,
    parameter int unsigned ADDRESSES = 16          // a power of two
) (
    input  logic         clk,
    input  logic         rst,                    // clears the table of VLANs in 128 cycles
    input  logic [63:0]  features,               // negotiated
    input  logic [47:0]  mac,
    input  logic         mac_free,
    input  logic [47:0]  mac_taken,
    output logic [47:0]  station,
    output logic         mac_set,                // pulse: the driver has changed it
    input  net_command_t command,
    output logic         good,
    output logic         busy,
    axis_if.sink         in,                     // tready is always high
    input  net_rx_t      in_info,                // with the last beat
    axis_if.source       out,                    // tready is not looked at
    output net_rx_t      out_info
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned GROUP_BIT = 40;        // of an address
  localparam int unsigned TAG_AT = 12;           // EtherType and tag (IEEE 802.1Q)
  localparam int unsigned TAG_BEAT = TAG_AT / BYTES;
  localparam logic [15:0] CTAG = 16'h8100;
  localparam int unsigned VLAN_WORDS = 128;
  typedef logic [$clog2(VLAN_WORDS)-1:0] word_at_t;
  typedef logic [31:0] vlan_word_t;
  typedef logic [$clog2(ADDRESSES)-1:0] entry_at_t;

  wire filters = features[VIRTIO_NET_F_CTRL_RX];
  wire filters_vlan = features[VIRTIO_NET_F_CTRL_VLAN];

  // ---- commands: the last bytes, the first of them highest ----
  logic [47:0] last_q;
  always_ff @(posedge clk) if (command.valid) last_q <= {last_q[39:0], command.value};

  wire in_rx = command.class_ == VIRTIO_NET_CTRL_RX;
  wire sets_table = filters && command.class_ == VIRTIO_NET_CTRL_MAC && command.command == VIRTIO_NET_CTRL_MAC_TABLE_SET;
  wire sets_address = features[VIRTIO_NET_F_CTRL_MAC_ADDR] && command.class_ == VIRTIO_NET_CTRL_MAC
                    && command.command == VIRTIO_NET_CTRL_MAC_ADDR_SET;
  wire sets_vlan = filters_vlan && command.class_ == VIRTIO_NET_CTRL_VLAN
                 && command.command inside {VIRTIO_NET_CTRL_VLAN_ADD, VIRTIO_NET_CTRL_VLAN_DEL};
  // PROMISC and ALLMULTI, or one of those of VIRTIO_NET_F_CTRL_RX_EXTRA
  wire sets_mode = in_rx && (command.command < 8'd2 ? filters : features[VIRTIO_NET_F_CTRL_RX_EXTRA] && command.command < 8'($bits(rx_mode_t)));

  // ---- modes ----
  rx_mode_t mode_q;
  wire good_mode = sets_mode && command.length == 16'd1 && last_q[7:1] == '0;
  always_ff @(posedge clk) begin
    if (rst) mode_q <= '0;
    else if (command.apply && good_mode) mode_q[command.command[2:0]] <= last_q[0];
  end

  // ---- the driver's address ----
  logic [47:0] own_q;
  logic        own_valid_q;
  wire allowed = last_q == station || last_q == mac || (mac_free && last_q != mac_taken);
  wire good_address = sets_address && command.length == 16'd6 && allowed && !last_q[GROUP_BIT] && last_q != '0;
  always_ff @(posedge clk) begin
    station <= own_valid_q && mac_free && own_q != mac_taken ? own_q : mac;
    mac_set <= command.apply && good_address && !rst;
    if (command.apply && good_address) begin
      own_q       <= last_q;
      own_valid_q <= last_q != mac;
    end
    if (rst) own_valid_q <= 1'b0;
  end

  // ---- VIRTIO_NET_CTRL_MAC_TABLE_SET: a number and so many addresses, twice: unicast, groups ----
  typedef enum logic [1:0] {
    T_NUMBER,
    T_ADDRESSES,
    T_WHOLE,
    T_BEYOND
  } table_e;
  table_e      table_q;
  logic        second_q;                         // of the lists: groups
  logic [2:0]  byte_q;                           // of the number or the address
  logic [31:0] left_q;                           // addresses
  entry_at_t   entry_q;
  logic        full_q;
  logic [1:0]  overflow_q, all_q;                // addresses that do not fit: unicast, groups
  wire [31:0]  number = {command.value, last_q[7:0], last_q[15:8], last_q[23:16]};
  wire [47:0]  address = {last_q[39:0], command.value};
  wire         ends_address = table_q == T_ADDRESSES && command.valid && byte_q == 3'd5;
  wire         keeps = ends_address && sets_table && !full_q;

  (* ram_style = "distributed" *) logic [47:0] fresh[ADDRESSES];       // the new table, until the command is known to be good
  always_ff @(posedge clk) if (keeps) fresh[entry_q] <= address;

  always_ff @(posedge clk) begin
    if (command.valid) begin
      byte_q <= byte_q + 1'b1;
      unique case (table_q)
        T_NUMBER: if (byte_q == 3'd3) begin
          byte_q   <= '0;
          left_q   <= number;
          table_q  <= number != '0 ? T_ADDRESSES : second_q ? T_WHOLE : T_NUMBER;
          if (number == '0) second_q <= 1'b1;
        end
        T_ADDRESSES: if (ends_address) begin
          byte_q <= '0;
          left_q <= left_q - 1'b1;
          if (keeps) begin
            entry_q <= entry_q + 1'b1;
            full_q  <= &entry_q;
          end else begin
            overflow_q[second_q] <= 1'b1;
          end
          if (left_q == 32'd1) begin
            table_q  <= second_q ? T_WHOLE : T_NUMBER;
            second_q <= 1'b1;
          end
        end
        default: table_q <= T_BEYOND;
      endcase
    end
    if (command.start) begin
      table_q    <= T_NUMBER;
      second_q   <= 1'b0;
      byte_q     <= '0;
      entry_q    <= '0;
      full_q     <= 1'b0;
      overflow_q <= '0;
    end
  end
  wire good_table = sets_table && table_q == T_WHOLE;

  // The table in use.
  logic [ADDRESSES-1:0][47:0] addresses_q;
  logic [ADDRESSES-1:0]       used_q;
  logic                     copies_q;
  entry_at_t                copy_q;
  always_ff @(posedge clk) begin
    if (copies_q) begin
      copy_q              <= copy_q + 1'b1;
      copies_q            <= !(&copy_q);
      addresses_q[copy_q] <= fresh[copy_q];
      used_q[copy_q]      <= full_q || copy_q < entry_q;
    end
    if (command.apply && good_table) begin
      copies_q <= 1'b1;
      copy_q   <= '0;
      all_q    <= overflow_q;
    end
    if (rst) begin
      copies_q <= 1'b0;
      used_q   <= '0;
      all_q    <= '0;
    end
  end

  // ---- VLANs: a bit each, in words of 32 ----
  typedef enum logic [1:0] {
    V_CLEAR,
    V_WAIT,
    V_READ,
    V_WRITE
  } vlan_e;
  vlan_e      vlan_q;
  word_at_t   clear_q;
  vlan_word_t seen, old_word, new_word;
  wire [15:0] vid = {last_q[7:0], last_q[15:8]};
  wire        good_vlan = sets_vlan && command.length == 16'd2 && vid[15:12] == '0;
  wire        vlan_write = vlan_q inside {V_CLEAR, V_WRITE};
  wire        tag_read;
  word_at_t   tag_at;

  always_comb begin
    new_word = old_word;
    new_word[vid[4:0]] = command.command == VIRTIO_NET_CTRL_VLAN_ADD;
    if (vlan_q == V_CLEAR) new_word = '0;
  end
  always_ff @(posedge clk) begin
    unique case (vlan_q)
      V_CLEAR: begin
        clear_q <= clear_q + 1'b1;
        if (&clear_q) vlan_q <= V_WAIT;
      end
      V_WAIT: if (command.apply && good_vlan) vlan_q <= V_READ;
      V_READ: vlan_q <= V_WRITE;
      default: vlan_q <= V_WAIT;
    endcase
    if (rst) begin
      vlan_q  <= V_CLEAR;
      clear_q <= '0;
    end
  end
  wire word_at_t vlan_at = vlan_q == V_CLEAR ? clear_q : vid[11:5];
  ram_1w1r #(.T(vlan_word_t), .WORDS(VLAN_WORDS)) vlans (
      .clk, .write(vlan_write), .write_at(vlan_at), .write_data(new_word), .read(tag_read), .read_at(tag_at), .read_data(seen)
  );
  ram_1w1r #(.T(vlan_word_t), .WORDS(VLAN_WORDS)) same_vlans (          // the same again, to change a bit of
      .clk, .write(vlan_write), .write_at(vlan_at), .write_data(new_word), .read(vlan_q == V_READ), .read_at(vlan_at), .read_data(old_word)
  );

  assign good = good_mode || good_address || good_table || good_vlan;
  assign busy = copies_q || vlan_q inside {V_READ, V_WRITE};

  // ---- frames: stage 1 compares, stage 2 decides. Frames are told apart in reset, too ----
  typedef struct packed {
    logic              last;
    logic              bad;
    logic [BYTES-1:0]  keep;
    logic [DATA_W-1:0] data;
  } beat_t;

  logic [BYTES-1:0][7:0] bytes;
  logic [47:0]           dst;
  logic [15:0]           ethertype, tci;
  logic                  first_q = 1'b1;         // the next beat begins a frame
  logic                  second_beat_q = 1'b0;
  assign bytes = in.tdata;
  always_comb for (int unsigned i = 0; i < 6; i++) dst[8*(5-i)+:8] = bytes[i];
  assign ethertype = {bytes[TAG_AT%BYTES], bytes[TAG_AT%BYTES+1]};
  assign tci       = {bytes[TAG_AT%BYTES+2], bytes[TAG_AT%BYTES+3]};
  assign tag_read  = in.tvalid && (TAG_BEAT == 0 ? first_q : second_beat_q);
  assign tag_at    = tci[11:5];
  assign in.tready = 1'b1;

  beat_t                beat1_q, beat2_q;
  net_rx_t              info1_q, info2_q;
  logic                 valid1_q = 1'b0, valid2_q = 1'b0;
  logic [ADDRESSES-1:0]   match_q;
  logic                 group_q, broadcast_q, mine_q, tagged_q, passes_q;
  logic [4:0]           bit_q;

  logic listed, passes_address, passes_vlan;
  always_comb begin
    listed = |match_q || copies_q;
    if (broadcast_q) passes_address = !mode_q.nobcast;
    else if (group_q) passes_address = !mode_q.nomulti && (mode_q.allmulti || all_q[1] || listed);
    else passes_address = !mode_q.nouni && (mode_q.alluni || all_q[0] || mine_q || listed);
    passes_vlan = !tagged_q || seen[bit_q];
  end

  always_ff @(posedge clk) begin
    if (in.tvalid) begin
      first_q       <= in.tlast;
      second_beat_q <= first_q && !in.tlast;
    end
    if (in.tvalid && first_q) begin
      for (int unsigned i = 0; i < ADDRESSES; i++) match_q[i] <= used_q[i] && addresses_q[i] == dst;
      group_q     <= dst[GROUP_BIT];
      broadcast_q <= dst == '1;
      mine_q      <= dst == station;
      tagged_q    <= 1'b0;
    end
    if (tag_read) begin
      tagged_q <= ethertype == CTAG;
      bit_q    <= tci[4:0];
    end
    beat1_q  <= '{last: in.tlast, bad: in.tuser, keep: in.tkeep, data: in.tdata};
    info1_q  <= in_info;
    valid1_q <= in.tvalid;
    beat2_q  <= beat1_q;
    info2_q  <= info1_q;
    valid2_q <= valid1_q;
    passes_q <= mode_q.promisc || ((!filters || passes_address) && (!filters_vlan || passes_vlan));
  end

  assign out.tvalid = valid2_q;
  assign out.tdata  = beat2_q.data;
  assign out.tkeep  = beat2_q.keep;
  assign out.tlast  = beat2_q.last;
  assign out.tuser  = beat2_q.bad;
  always_comb begin
    out_info = info2_q;
    if (!passes_q) out_info.unwanted = 1'b1;
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, out.tready, tci[15:12]};
endmodule
