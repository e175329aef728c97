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
    input  ipv4_addr_t names_ip,
    output logic       named              // it names a connection; a cycle later
);
  typedef logic [$clog2(QPS)-1:0] idx_t;

  // Local communication ids have their first bit set.
  typedef struct packed {
    logic       live;
    comm_id_t   id;
    ipv4_addr_t ip;
  } name_t;

  (* ram_style = "block" *) logic [$bits(cm_conn_t)-1:0] conns[QPS];
  (* ram_style = "block" *) logic [$bits(name_t)-1:0] names[QPS];
  logic [$bits(cm_conn_t)-1:0] found_q;
  logic [$bits(name_t)-1:0] name_q;
  name_t name;
  assign name = '{live: conn.state != CM_IDLE, id: conn.ids.local_comm_id, ip: conn.ip};

  always_ff @(posedge clk) begin
    if (clear || write) begin
      conns[idx] <= clear ? '0 : conn;
      names[idx] <= clear ? '0 : name;
    end
    found_q <= conns[read_idx];
    name_q  <= names[idx_t'(names_id)];
  end
  assign found = cm_conn_t'(found_q);
  assign named = name_q == {1'b1, names_id, names_ip};
endmodule
