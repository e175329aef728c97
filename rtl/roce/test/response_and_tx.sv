// SPDX-License-Identifier: Apache-2.0

// roce_response and roce_tx as they stand in the engine, with the memory reader of the latter.
module response_and_tx
  import packet_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_events_pkg::*;
  import roce_requester_pkg::*;
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W   = 512,
    parameter int unsigned QPS      = 16,
    parameter int unsigned RD_DEPTH = 8
) (
    input logic        clk,
    input logic        rst,
    input local_addr_t local_addr,
    stream_if.sink     cmd,
    stream_if.source   answer,
    stream_if.sink     respond,
    input qp_index_t   rd_done_slot,
    output logic [7:0] rd_done,
    stream_if.sink     request,
    stream_if.source   request_fault,
    input logic        peer_write,
    input qp_index_t   peer_write_index,
    input sq_peer_t    peer_write_data,
    input logic        flush_acks,
    output logic       flushed,
    axi_if.master      reads,
    axi_if.master      atomics,
    stream_if.source   frame,
    axis_if.source     payload,
    stream_if.source   qp_event,
    stream_if.source   failed,
    input logic        key_write,        // as roce_mr has it: this key is valid or not
    input logic [31:0] key,
    input logic        key_valid,
    input logic        fence,
    output fence_t     fence_number,
    output fence_t     fences_through,
    output logic       asked,            // a read of memory was asked for
    output roce_rx_events_t events,
    output logic       idle
);
  stream_if #(.T(tx_packet_t)) packet[2] ();
  stream_if #(.T(ack_tx_t)) ack ();
  stream_if #(.T(tx_fault_t)) fault[2] ();
  stream_if #(.T(dma_cmd_t)) read_cmd ();
  axis_if #(.DATA_W(DATA_W)) read_data ();
  logic       left;
  logic [1:0] passed;
  qpn_t       left_qpn;
  logic [1:0][31:0] keys;
  logic [1:0] key_live;
  logic       data_idle;
  logic       response_idle, tx_idle;

  assign packet[1].valid     = request.valid;
  assign packet[1].data      = request.data;
  assign request.ready       = packet[1].ready;
  assign request_fault.valid = fault[1].valid;
  assign request_fault.data  = fault[1].data;
  assign fault[1].ready      = request_fault.ready;
  assign asked               = read_cmd.valid && read_cmd.ready;
  assign idle                = response_idle && tx_idle;

  roce_response #(.DATA_W(DATA_W), .QPS(QPS), .RD_DEPTH(RD_DEPTH)) response (
      .clk, .rst, .cmd, .answer, .respond, .rd_done_slot, .rd_done, .packet(packet[0]), .ack, .fault(fault[0]), .left, .left_qpn,
      .tx_idle(data_idle), .passed(targets_t'(passed[0])), .room('1), .waits_index(), .waits('0), .freed(1'b0), .key(keys), .key_live, .fence, .fence_number,
      .fences_through, .fencing(), .others_over(1'b1), .mem(atomics), .qp_event, .failed,
      .events, .idle(response_idle)
  );

  for (genvar i = 0; i < 2; i++) begin : g_key
    roce_mr_live #(.MRS(32)) reader (
        .clk, .write(key_write), .write_key(key), .write_valid(key_valid), .key(keys[i]), .live(key_live[i])
    );
  end

  roce_tx #(.QPS(QPS)) tx (
      .clk, .rst, .local_addr, .cnp_dscp(6'd48), .ect(1'b0), .packet, .ack, .flush_requests(1'b0), .flush_acks, .flushed,
      .peer_write, .peer_write_index, .peer_write_data, .read_cmd, .read_source(), .read_data, .frame, .payload, .fault, .left, .left_qpn, .passed,
      .went(), .events(), .data_idle, .idle(tx_idle)
  );

  axi_dma_read #(.DATA_W(DATA_W)) reader (.clk, .rst, .cmd(read_cmd), .mem(reads), .data(read_data), .idle());
endmodule
