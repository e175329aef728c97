// SPDX-License-Identifier: Apache-2.0

// The table of the kernel `nat`: which end takes the place of one. All entries are compared at once; of several that match the lowest counts.
// One look-up a cycle in each direction, 3 cycles. An entry that is written is not there for some cycles: a look-up, which reads it twice, sees
// it as it was, not at all, or as it is.
module nat_table
  import packet_pkg::*;
  import nat_pkg::*;
(
    input  logic          clk,
    input  logic          rst,                 // clears it
    input  nat_settings_t settings,
    input  logic          write,
    input  logic [$clog2(ENTRIES)-1:0] at,
    input  entry_t        entry,
    output entry_t        seen,                // the entry at `at`; 2 cycles
    input  end_t          tx_from,             // an end inside
    output logic          tx_hit,
    output end_t          tx_to,               // is this one outside
    input  end_t          rx_from,             // an end outside
    output logic          rx_hit,
    output end_t          rx_to
);
  typedef logic [ENTRIES-1:0] entries_t;

  localparam int unsigned LOOKUP = 3;
  typedef logic [$clog2(ENTRIES)-1:0] at_t;

  (* ram_style = "distributed" *) logic [$bits(entry_t)-1:0] shown[ENTRIES];
  entry_t [ENTRIES-1:0] entries_q;
  entry_t               shown_q;
  logic                 there_q;
  logic [LOOKUP:0]      write_q;               // until no look-up has the entry as it was
  at_t [LOOKUP:0]       at_q;
  always_ff @(posedge clk) if (write) shown[at] <= entry;
  always_ff @(posedge clk) begin
    write_q <= rst ? '0 : {write_q[LOOKUP-1:0], write};
    at_q    <= {at_q[LOOKUP-1:0], at};
    if (write_q[LOOKUP]) entries_q[at_q[LOOKUP]] <= entry_t'(shown[at_q[LOOKUP]]);
    if (write) entries_q[at].kind <= KIND_OTHER;
    if (rst) for (int unsigned i = 0; i < ENTRIES; i++) entries_q[i].kind <= KIND_OTHER;
  end
  always_ff @(posedge clk) begin
    shown_q <= entry_t'(shown[at]);
    there_q <= entries_q[at].kind != KIND_OTHER;
    seen    <= there_q ? shown_q : '0;
  end

  function automatic entries_t lowest(entries_t found);
    return found & (~found + 1'b1);
  endfunction

  // ---- 1: compare; 2: the lowest; 3: its other end. ARP is translated for one host, without an entry ----
  entries_t tx_match_q, tx_one_q, rx_match_q, rx_one_q;
  logic     tx_arp_q, tx_arp2_q, rx_arp_q, rx_arp2_q;
  kind_e    tx_kind_q, tx_kind2_q, rx_kind_q, rx_kind2_q;
  logic [15:0] outside_port;
  logic [$bits(ipv4_addr_t)+15:0] inner;       // address and port

  always_comb begin
    outside_port = '0;
    inner        = '0;
    for (int unsigned i = 0; i < ENTRIES; i++) begin
      if (tx_one_q[i]) outside_port |= entries_q[i].outside_port;
      if (rx_one_q[i]) inner |= {entries_q[i].inside_ip, entries_q[i].inside_port};
    end
  end

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < ENTRIES; i++) begin
      tx_match_q[i] <= tx_from.kind inside {KIND_TCP, KIND_UDP, KIND_ICMP}
                       && {entries_q[i].kind, entries_q[i].inside_ip, entries_q[i].inside_port} == tx_from;
      rx_match_q[i] <= rx_from.kind inside {KIND_TCP, KIND_UDP, KIND_ICMP}
                       && {entries_q[i].kind, settings.outside, entries_q[i].outside_port} == rx_from;
    end
    tx_arp_q   <= tx_from.kind == KIND_ARP && tx_from.ip == settings.host;
    rx_arp_q   <= rx_from.kind == KIND_ARP && rx_from.ip == settings.outside;
    tx_kind_q  <= tx_from.kind;
    rx_kind_q  <= rx_from.kind;
    tx_one_q   <= lowest(tx_match_q);
    rx_one_q   <= lowest(rx_match_q);
    tx_arp2_q  <= tx_arp_q;
    rx_arp2_q  <= rx_arp_q;
    tx_kind2_q <= tx_kind_q;
    rx_kind2_q <= rx_kind_q;
    tx_hit     <= tx_one_q != '0 || tx_arp2_q;
    tx_to      <= '{kind: tx_kind2_q, ip: settings.outside, port: outside_port};
    rx_hit     <= rx_one_q != '0 || rx_arp2_q;
    rx_to      <= rx_arp2_q ? '{kind: KIND_ARP, ip: settings.host, port: '0} : {rx_kind2_q, inner};
  end
endmodule
