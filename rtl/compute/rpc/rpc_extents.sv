// SPDX-License-Identifier: Apache-2.0

// Allocates device memory: one extent of pages per context, first fit by address. All connections of a caller together have at most as
// much as its quota. A caller is an entry of admission with its `quota`, or, without one, an IP address; `memory_per_caller` is that of
// an address, and of an entry that has none.
//
// The extents in use form a list sorted by address, one node per context, in RAM: free extents need not be merged, and a walk ends
// after at most QPS * CONTEXTS nodes. A command takes 4 cycles and 1 more for each node passed (1 more to relink the previous node). A walk for free space ends
// at the first gap that fits; if there is a quota, at the end of the list, adding up the caller's pages. One command at a time; the next one waits
// until `rsp` is taken.
module rpc_extents
  import packet_pkg::*;
  import roce_pkg::*;
  import rpc_pkg::*;
#(
    parameter int unsigned QPS = 16,
    parameter int unsigned CONTEXTS = 1,
    parameter page_t FIRST_PAGE = '0,  // first page of the memory to allocate
    parameter page_t PAGES = '0        // number of pages
) (
    input  logic       clk,
    input  logic       rst,
    input  logic       opened,         // a connection is opened: its slot and caller. It has no extent
    input  slot_t      opened_slot,
    input  ip_addr_t   opened_ip,
    input  admitted_t  opened_by,
    input  logic [29:0] memory_per_caller,  // KiB; 0: no limit
    output admission_entry_t quota_of,      // of this entry:
    input  logic [29:0] quota,              // KiB, same cycle; 0: memory_per_caller
    stream_if.sink     cmd,            // extent_cmd_t. A context has at most one extent: it is freed before the next one is allocated
    stream_if.source   rsp,            // extent_rsp_t
    output page_t      held            // pages of all extents
);
  localparam int unsigned NODES = QPS * CONTEXTS;
  typedef logic [$clog2(NODES)-1:0] index_t;
  typedef logic [$clog2(QPS)-1:0] slot_index_t;

  typedef struct packed {
    logic   valid;
    index_t node;
  } link_t;

  function automatic index_t index_of(context_t of);
    return index_t'(context_index(of, CONTEXTS));
  endfunction
  function automatic slot_index_t slot_of(index_t node);
    return slot_index_t'(node >> $clog2(CONTEXTS));
  endfunction

  typedef struct packed {
    page_t base;
    page_t pages;
  } node_t;

  typedef struct packed {
    logic       entry;             // of admission: its number is in `who`
    ip_addr_t   who;
  } caller_t;

  typedef enum logic [2:0] {
    IDLE,
    READ,    // the first node is being read
    STEP,    // check a node
    CHANGE,  // insert or remove at the gap or node found
    RELINK,  // update the link of the previous node
    ANSWER
  } state_e;

  (* ram_style = "block" *) logic [$bits(node_t)-1:0] nodes[NODES];
  (* ram_style = "block" *) logic [$bits(link_t)-1:0] links[NODES];   // link of each node to the next
  (* ram_style = "block" *) logic [$bits(caller_t)-1:0] callers[QPS];

  state_e      state_q;
  extent_cmd_t cmd_q;
  logic        ok_q;
  link_t       head_q;             // first extent
  link_t       at_q;               // current node
  link_t       before_q;           // previous node
  node_t       node_q;
  link_t       next_q;
  page_t       free_q;             // first page after the previous node
  caller_t     caller_q;           // of the current node; at first, of the command's context
  caller_t     own_caller_q;
  page_t       used_q;             // pages of the caller
  page_t       held_q;

  // The position found by the walk, kept while the walk continues.
  logic        place_q;
  link_t       place_before_q, place_next_q;
  page_t       place_base_q;

  // The quota is read when the caller is known, and not needed before the next cycle.
  wire caller_t opened_caller = opened_by.valid ? '{entry: 1'b1, who: ip_mapped(ipv4_addr_t'(opened_by.entry))} : '{entry: 1'b0, who: opened_ip};
  logic [29:0] quota_q;
  wire         own_quota = caller_q.entry && quota != '0;
  wire         limited = quota_q != '0;
  wire [29:0]  quota_pages = quota_q >> (PAGE_W - 10);
  wire page_t  most = quota_pages >> $bits(page_t) != '0 ? '1 : page_t'(quota_pages);
  assign quota_of = admission_entry_t'(ipv4_of(caller_q.who));

  // Between the previous node and this one, or the end of memory.
  wire page_t limit = at_q.valid ? node_q.base : FIRST_PAGE + PAGES;
  wire        fits = page_t'(limit - free_q) >= cmd_q.pages;
  wire        found = at_q.valid && at_q.node == index_of(cmd_q.of);
  wire        here = state_q == STEP && (cmd_q.free ? found : fits && !place_q);
  wire link_t link = cmd_q.free ? place_next_q : '{valid: 1'b1, node: index_of(cmd_q.of)};  // new link of the previous node
  wire        allowed = !limited || {1'b0, used_q} + {1'b0, cmd_q.pages} <= {1'b0, most};
  wire        ok = place_q && (cmd_q.free || allowed);
  wire        insert = state_q == CHANGE && ok && !cmd_q.free;

  // The link of the new node is written when it is inserted, then the link of the previous node.
  wire relink = state_q == RELINK;
  always_ff @(posedge clk) if (insert) nodes[index_of(cmd_q.of)] <= {place_base_q, cmd_q.pages};
  always_ff @(posedge clk) begin
    if (insert || relink) links[relink ? place_before_q.node : index_of(cmd_q.of)] <= relink ? link : place_next_q;
  end

  // Each step fetches the next node.
  wire index_t fetch = state_q == STEP ? next_q.node : head_q.node;
  always_ff @(posedge clk) node_q <= nodes[fetch];
  always_ff @(posedge clk) next_q <= links[fetch];
  always_ff @(posedge clk) caller_q <= callers[slot_of(state_q == IDLE ? index_of(cmd.data.of) : fetch)];
  always_ff @(posedge clk) if (opened) callers[slot_index_t'(opened_slot)] <= opened_caller;

  assign cmd.ready = state_q == IDLE;
  assign rsp.valid = state_q == ANSWER;
  assign rsp.data  = '{ok: ok_q, base: place_base_q};
  assign held      = held_q;

  always_ff @(posedge clk) begin
    unique case (state_q)
      IDLE: begin
        cmd_q    <= cmd.data;
        at_q     <= head_q;
        before_q <= '0;
        free_q   <= FIRST_PAGE;
        place_q  <= 1'b0;
        used_q   <= '0;
        if (cmd.valid) state_q <= READ;
      end
      READ: begin
        own_caller_q <= caller_q;
        quota_q      <= own_quota ? quota : memory_per_caller;
        state_q      <= STEP;
      end
      STEP: begin
        if (here) begin
          place_q        <= 1'b1;
          place_before_q <= before_q;
          place_base_q   <= free_q;
          place_next_q   <= cmd_q.free ? next_q : at_q;
          if (cmd_q.free) cmd_q.pages <= node_q.pages;
        end
        before_q <= at_q;
        free_q   <= node_q.base + node_q.pages;
        at_q     <= next_q;
        if (at_q.valid && caller_q == own_caller_q) used_q <= used_q + node_q.pages;
        if (!at_q.valid || here && (cmd_q.free || !limited)) state_q <= CHANGE;
      end
      CHANGE: begin
        ok_q    <= ok;
        if (ok) held_q <= cmd_q.free ? held_q - cmd_q.pages : held_q + cmd_q.pages;
        state_q <= ok && place_before_q.valid ? RELINK : ANSWER;
        if (ok && !place_before_q.valid) head_q <= link;
      end
      RELINK:  state_q <= ANSWER;
      ANSWER:  if (rsp.ready) state_q <= IDLE;
      default: state_q <= IDLE;
    endcase
    if (rst) begin
      state_q <= IDLE;
      head_q  <= '0;
      held_q  <= '0;
    end
  end
endmodule
