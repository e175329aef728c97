// SPDX-License-Identifier: Apache-2.0

// Network address and port translation on the path of the network card (RFC 3022): the network sees one address, whatever address the driver's
// side of a connection has. Which connections there are is in a table that software writes (stream_nat.rdl). Both directions have one beat a
// cycle; latency: nat_path.
module stream_nat
  import nat_pkg::*;
  import packet_pkg::*;
  import stream_nat_pkg::*;
#(
    parameter int unsigned DATA_W = 512
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [47:0] now,      // cycles; not used
    axil_if.slave       ctrl,     // 12 bits of address
    axis_if.sink        rx_in,
    axis_if.source      rx_out,
    axis_if.sink        tx_in,
    axis_if.source      tx_out
);
  // ---- registers ----
  // A read comes late enough to see the entry that was written before.
  logic [11:0]   at, at_q;
  logic          write, write_q;
  logic [31:0]   wdata, wdata_q, value, value_q;
  axil_access #(.READ_CYCLES(8)) access (
      .clk, .rst, .bus(ctrl), .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata(value_q), .idle()
  );

  nat_settings_t settings_q;
  entry_t        entry_q, seen;                // entry_q: as it is written next
  logic          put_q;
  logic [2:0]    load_q;                       // ENTRY was written: `seen` is that entry after 3 cycles
  logic [$clog2(ENTRIES)-1:0] entry_at_q;
  logic [31:0]   translated_tx_q, translated_rx_q, unknown_tx_q, unknown_rx_q;
  logic          tx_translated, rx_translated, tx_unknown, rx_unknown;

  function automatic kind_e kind_of(logic [31:0] protocol);
    unique case (protocol)
      32'(IPPROTO_TCP):  return KIND_TCP;
      32'(IPPROTO_UDP):  return KIND_UDP;
      32'(IPPROTO_ICMP): return KIND_ICMP;
      default:           return KIND_OTHER;
    endcase
  endfunction

  function automatic logic [31:0] protocol_of(kind_e kind);
    unique case (kind)
      KIND_TCP:  return 32'(IPPROTO_TCP);
      KIND_UDP:  return 32'(IPPROTO_UDP);
      KIND_ICMP: return 32'(IPPROTO_ICMP);
      default:   return '0;
    endcase
  endfunction

  always_ff @(posedge clk) begin
    write_q <= write && !rst;
    at_q    <= at;
    wdata_q <= wdata;
    put_q   <= write_q && at_q == AT_PROTOCOL && !rst;
    load_q  <= {load_q[1:0], write_q && at_q == AT_ENTRY};
    if (load_q[2]) entry_q <= seen;
    if (write_q) begin
      unique case (at_q)
        AT_CONTROL:  {settings_q.drop_tx, settings_q.drop_rx, settings_q.enable} <= wdata_q[2:0];
        AT_OUTSIDE:  settings_q.outside <= wdata_q;
        AT_HOST:     settings_q.host <= wdata_q;
        AT_ENTRY:    entry_at_q <= wdata_q[$clog2(ENTRIES)-1:0];
        AT_INSIDE:   entry_q.inside_ip <= wdata_q;
        AT_PORTS:    {entry_q.inside_port, entry_q.outside_port} <= wdata_q;
        AT_PROTOCOL: entry_q.kind <= kind_of(wdata_q);
        default: ;
      endcase
    end
    translated_tx_q <= translated_tx_q + 32'(tx_translated);
    translated_rx_q <= translated_rx_q + 32'(rx_translated);
    unknown_tx_q    <= unknown_tx_q + 32'(tx_unknown);
    unknown_rx_q    <= unknown_rx_q + 32'(rx_unknown);
    if (rst) begin
      settings_q      <= '0;
      entry_q         <= '0;
      entry_at_q      <= '0;
      load_q          <= '0;
      translated_tx_q <= '0;
      translated_rx_q <= '0;
      unknown_tx_q    <= '0;
      unknown_rx_q    <= '0;
    end
  end

  always_comb
    unique case (at)
      AT_CONTROL:       value = 32'({settings_q.drop_tx, settings_q.drop_rx, settings_q.enable});
      AT_OUTSIDE:       value = settings_q.outside;
      AT_HOST:          value = settings_q.host;
      AT_ENTRIES:       value = ENTRIES;
      AT_ENTRY:         value = 32'(entry_at_q);
      AT_INSIDE:        value = entry_q.inside_ip;
      AT_PORTS:         value = {entry_q.inside_port, entry_q.outside_port};
      AT_PROTOCOL:      value = protocol_of(seen.kind);
      AT_TRANSLATED_TX: value = translated_tx_q;
      AT_TRANSLATED_RX: value = translated_rx_q;
      AT_UNKNOWN_TX:    value = unknown_tx_q;
      default:          value = unknown_rx_q;
    endcase
  always_ff @(posedge clk) value_q <= value;

  // ---- frames ----
  end_t tx_from, tx_to, rx_from, rx_to;
  logic tx_hit, rx_hit;
  nat_table table_ (
      .clk, .rst, .settings(settings_q), .write(put_q), .at(entry_at_q), .entry(entry_q), .seen, .tx_from, .tx_hit, .tx_to, .rx_from,
      .rx_hit, .rx_to
  );
  nat_path #(.DATA_W(DATA_W), .RX(1'b0)) tx (
      .clk, .rst, .settings(settings_q), .in(tx_in), .out(tx_out), .from(tx_from), .hit(tx_hit), .to(tx_to), .translated(tx_translated),
      .unknown(tx_unknown)
  );
  nat_path #(.DATA_W(DATA_W), .RX(1'b1)) rx (
      .clk, .rst, .settings(settings_q), .in(rx_in), .out(rx_out), .from(rx_from), .hit(rx_hit), .to(rx_to), .translated(rx_translated),
      .unknown(rx_unknown)
  );

  logic unused_ok;
  assign unused_ok = &{1'b0, now};
endmodule
