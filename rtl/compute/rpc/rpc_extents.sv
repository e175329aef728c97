// SPDX-License-Identifier: Apache-2.0

// Allocates device memory: one extent of pages a connection, first fit by address.
//
// The extents in use form a list sorted by address, a node a slot, held in one RAM: nothing has to be merged when an extent is
// given back, and a walk ends after at most QPS nodes. A command is answered in 3 cycles and 2 more for each node passed
// (1 more for the node before it, which is relinked). One command at a time; the answer waits for `rsp`.
module rpc_extents
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter page_t FIRST_PAGE = '0,  // of the memory that is shared out
    parameter page_t PAGES = '0        // how many
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   cmd,   // extent_cmd_t. A slot has one extent at most: it is freed before the next is asked for
    stream_if.source rsp    // extent_rsp_t
);
  localparam int unsigned SLOT_W = $clog2(QPS);
  typedef logic [SLOT_W-1:0] index_t;

  typedef struct packed {
    logic   valid;
    index_t slot;
  } link_t;

  typedef struct packed {
    page_t base;
    page_t pages;
    link_t next;
  } node_t;

  typedef enum logic [2:0] {
    IDLE,
    READ,    // the node at `at_q` is on its way
    STEP,    // judge it
    RELINK,  // change the link of the node before it
    ANSWER
  } state_e;

  (* ram_style = "distributed" *) logic [$bits(node_t)-1:0] nodes[QPS];

  state_e      state_q;
  extent_cmd_t cmd_q;
  extent_rsp_t rsp_q;
  link_t       head_q;             // first extent
  link_t       at_q;               // node looked at
  link_t       before_q;           // node before it
  node_t       node_q, before_node_q;
  page_t       free_q;             // first page after the node before

  // Between the node before and this one, or the end of memory.
  wire page_t limit = at_q.valid ? node_q.base : FIRST_PAGE + PAGES;
  wire        fits = page_t'(limit - free_q) >= cmd_q.pages;
  wire        found = at_q.valid && at_q.slot == index_t'(cmd_q.slot);
  wire link_t own = '{valid: 1'b1, slot: index_t'(cmd_q.slot)};
  wire        insert = state_q == STEP && !cmd_q.free && fits;
  wire        remove = state_q == STEP && cmd_q.free && found;

  // One writer: the new node when it is inserted, then the node before it.
  wire    write = insert || state_q == RELINK;
  index_t write_at;
  node_t  write_node;
  always_comb begin
    write_at   = index_t'(cmd_q.slot);
    write_node = '{base: free_q, pages: cmd_q.pages, next: at_q};
    if (state_q == RELINK) begin
      write_at        = before_q.slot;
      write_node      = before_node_q;
      write_node.next = cmd_q.free ? node_q.next : own;
    end
  end
  always_ff @(posedge clk) if (write) nodes[write_at] <= write_node;
  always_ff @(posedge clk) if (state_q == READ) node_q <= nodes[at_q.slot];

  assign cmd.ready = state_q == IDLE;
  assign rsp.valid = state_q == ANSWER;
  assign rsp.data  = rsp_q;

  always_ff @(posedge clk) begin
    unique case (state_q)
      IDLE: begin
        cmd_q    <= cmd.data;
        at_q     <= head_q;
        before_q <= '0;
        free_q   <= FIRST_PAGE;
        if (cmd.valid) state_q <= READ;
      end
      READ: state_q <= STEP;
      STEP: begin
        rsp_q <= '{ok: insert || remove, base: free_q};
        if (insert || remove) begin
          state_q <= before_q.valid ? RELINK : ANSWER;
          if (!before_q.valid) head_q <= insert ? own : node_q.next;
        end else if (!at_q.valid) begin
          state_q <= ANSWER;
        end else begin
          before_q      <= at_q;
          before_node_q <= node_q;
          free_q        <= node_q.base + node_q.pages;
          at_q          <= node_q.next;
          state_q       <= READ;
        end
      end
      RELINK:  state_q <= ANSWER;
      ANSWER:  if (rsp.ready) state_q <= IDLE;
      default: state_q <= IDLE;
    endcase
    if (rst) begin
      state_q <= IDLE;
      head_q  <= '0;
    end
  end
endmodule
