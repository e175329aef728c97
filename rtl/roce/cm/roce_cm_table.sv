// SPDX-License-Identifier: Apache-2.0

// The state of each connection; and, in a separate memory with a second reader, the ids by which messages name it.
//
// Both are read a cycle after their index. `write` is visible to a read in the next cycle.
module roce_cm_table
  import packet_pkg::*;
  import roce_cm_pkg::*;
#(
    parameter int unsigned QPS = 16
) (
    input  logic       clk,
    input  logic       clear,             // set connection `idx` to idle
    input  logic       write,             // set connection `idx` to `conn`
    input  logic [$clog2(QPS)-1:0] idx,
    input  cm_conn_t   conn,
    input  logic [$clog2(QPS)-1:0] read_idx,
    output cm_conn_t   found,             // this connection, a cycle later
    input  comm_id_t   names_id,          // a message with this local communication id, from this address:
    input  ip_addr_t   names_ip,
    output logic       named              // it names a connection; a cycle later
);
  typedef logic [$clog2(QPS)-1:0] idx_t;

  // The address is folded: what has another one and all of the id is taken for a message of the connection here, and only here.
  function automatic logic [31:0] folded(ip_addr_t ip);
    return ip[127:96] ^ ip[95:64] ^ ip[63:32] ^ ip[31:0];
  endfunction

  // Local communication ids have their first bit set.
  typedef struct packed {
    logic        live;
    comm_id_t    id;
    logic [31:0] ip;
  } name_t;

  // Its address is mapped, as all are in a device without IPv6: so those bits are the same in all words.
  cm_conn_t idle;
  always_comb begin
    idle    = '0;
    idle.ip = ip_mapped('0);
  end

  (* ram_style = "block" *) logic [$bits(cm_conn_t)-1:0] conns[QPS];
  (* ram_style = "block" *) logic [$bits(name_t)-1:0] names[QPS];
  logic [$bits(cm_conn_t)-1:0] found_q;
  logic [$bits(name_t)-1:0] name_q;
  logic [31:0] folded_q;
  name_t name;
  assign name = '{live: conn.state != CM_IDLE, id: conn.ids.local_comm_id, ip: folded(conn.ip)};

  always_ff @(posedge clk) begin
    if (clear || write) begin
      conns[idx] <= clear ? idle : conn;
      names[idx] <= clear ? '0 : name;
    end
    found_q <= conns[read_idx];
    name_q  <= names[idx_t'(names_id)];
    folded_q <= folded(names_ip);
  end
  assign found = cm_conn_t'(found_q);
  assign named = name_q == {1'b1, names_id, folded_q};
endmodule
