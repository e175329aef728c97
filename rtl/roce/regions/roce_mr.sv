// SPDX-License-Identifier: Apache-2.0

// Memory regions: registers them, generates their keys, and checks every access.
//
// A key is 32 bits: the low bits are the region's slot, the others are random and new at each registration of a slot (xorshift64
// stepped each cycle, from `seed`). A region belongs to a domain or, in it, to one QP. Freed slots are queued, so a slot is reused
// as late as possible. The random bits are never 0, so no key is LOCAL_DMA_LKEY.
// Check: one query a cycle, `granted` 3 cycles later if the key matches exactly, domain, QP and rights match, and [va, va + length)
// is inside the region without overflow (IBTA 10.6.3, 9.7.4.1.5).
// Keys: an access that continues after it was granted checks again that its key is valid: each of KEYS readers gets `live` for its
// `key` one cycle later.
// `invalidate` invalidates a region at once: queries fail from 2 cycles later on. The key must be one that a query was granted for
// since `pause` went high; commands change nothing while `pause` is high, and need it low for 3 cycles.
// Commands: one at a time, MR_REGISTER and MR_QUERY take 4 cycles. MR_DEREGISTER takes 4, MR_DEREGISTER_QP, _GROUP and _PD 1
// for each LANES slots of the table and 4 for each region of the owner; queries do not delay them. After the keys are invalid,
// `fence` passes through the responder behind all requests checked before, and returns as `fenced` when memory has confirmed those;
// the command is answered when the response unit's fence requested by then is complete. A command confined to a domain neither
// returns nor changes a region of another one. After reset the table is cleared for MRS cycles; commands wait for that.
module roce_mr
  import memory_pkg::*;
  import roce_wire_pkg::*;
  import roce_pkg::*;
  import roce_rx_pkg::*;
#(
    parameter int unsigned MRS = 256,   // regions; a power of two, 4 or more
    parameter int unsigned LANES = MRS < 32 ? 2 : MRS < 512 ? MRS / 16 : 32,  // slots searched per cycle; a power of two, 2 to MRS / 2
    parameter int unsigned KEYS = 6,
    parameter bit LONG_REGIONS = 1'b0,    // of 2^32 bytes and more
    parameter int unsigned TARGETS = 1,   // memories
    parameter memory_map_t MAP = '0       // and their address ranges
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [63:0] seed,           // of the keys; read in reset
    stream_if.sink      cmd,            // mr_cmd_t
    stream_if.source    rsp,            // mr_rsp_t. ok 0: table full, no such key, region too long, beyond the addresses or in two memories
    input  mr_query_t   query,
    output logic        granted,
    input  logic        pause,
    input  logic        invalidate,
    input  logic [31:0] invalid_key,
    input  logic [KEYS-1:0][31:0] key,
    output logic [KEYS-1:0] live,
    stream_if.source    fence,          // logic: to the responder
    input  logic        fenced,         // pulse: the fence has left it
    input  fence_t      fence_number,   // with `fenced`: number of the response unit's fence to wait for
    input  fence_t      fences_through, // the response unit's last complete fence
    output logic        idle
);
  localparam int unsigned SLOT_W = $clog2(MRS);
  typedef logic [SLOT_W-1:0]  slot_t;
  typedef logic [31-SLOT_W:0] secret_t; // the random bits of a key, above its slot
  typedef logic [ADDR_W:0]    end_t;    // first byte after a region: may be 2^ADDR_W
  localparam int unsigned LENGTH_W = size_w(LONG_REGIONS);
  typedef logic [LENGTH_W-1:0] length_t;

  if (LOCAL_DMA_LKEY != '0) begin : g_bad_local
    $fatal(1, "roce_mr: LOCAL_DMA_LKEY must be 0");
  end
  if (MRS < 4 || 2 ** SLOT_W != MRS) begin : g_bad
    $fatal(1, "roce_mr: MRS must be a power of two, 4 or more");
  end
  if (LANES < 2 || LANES > MRS / 2 || 2 ** $clog2(LANES) != LANES) begin : g_bad_lanes
    $fatal(1, "roce_mr: LANES must be a power of two, 2 to MRS / 2");
  end

  typedef struct packed {
    logic        valid;
    secret_t     secret;
    pd_t         pd;
    qpn_t        qpn;
    mr_group_t   group;
    addr_t       addr;
    length_t     length;
    access_t     access;
  } region_t;

  // One port for the check, one for the commands.
  (* ram_style = "block" *) logic [$bits(region_t)-1:0] regions[MRS];

  logic    write, write_q;                // requested, and executed one cycle later
  slot_t   write_slot, write_slot_q;
  region_t write_region, write_region_q;
  always_ff @(posedge clk) begin
    write_q        <= write;
    write_slot_q   <= write_slot;
    write_region_q <= write_region;
  end
  slot_t   command_slot;                  // address of the commands' port
  region_t held_q;                        // the word there, one cycle later
  always_ff @(posedge clk) begin
    held_q <= regions[command_slot];
    if (write_q) regions[command_slot] <= write_region_q;
  end

  // ---- keys that are checked again ----
  for (genvar i = 0; i < KEYS; i++) begin : g_key
    roce_mr_live #(.MRS(MRS)) reader (
        .clk,
        .write(write_q), .write_key({write_region_q.secret, write_slot_q}), .write_valid(write_region_q.valid),
        .key(key[i]), .live(live[i])
    );
  end

  // ---- the regions of an owner ----
  localparam int unsigned LANE_W = $clog2(LANES);
  localparam int unsigned ROW_W = SLOT_W - LANE_W;
  typedef logic [LANE_W-1:0] lane_t;

  logic [ROW_W:0]   rows_q, rows_d;       // rows searched
  logic [LANES-1:0] found, found_q, found_d;  // matching slots of the last row
  logic [ROW_W-1:0] row_q, row_d;         // its number
  mr_cmd_t          command;              // held until `taken`

  roce_mr_owners #(.MRS(MRS), .LANES(LANES)) owner_rows (
      .clk,
      .write(write_q), .write_slot(write_slot_q), .write_valid(write_region_q.valid),
      .write_pd(write_region_q.pd), .write_qpn(write_region_q.qpn),
      .row(rows_q[ROW_W-1:0]), .of_qp(command.op != MR_DEREGISTER_PD), .pd(command.mr.pd), .qpn(command.mr.qpn), .found
  );

  lane_t lane;                            // the first slot in found_q
  wire [LANES-1:0] first = found_q & (~found_q + 1'b1);
  always_comb begin
    lane = '0;
    for (int unsigned i = 0; i < LANES; i++) if (first[i]) lane |= lane_t'(i);
  end

  // ---- check ----
  region_t   region;
  mr_query_t query_q;
  logic      key_ok_q, owner_ok_q, rights_ok_q, unbounded_q;
  logic      before_q, longer_q, far_q;   // far: beyond all addresses of the device
  addr_t     offset_q;                    // of the access in the region
  length_t   room_q;                      // largest valid offset

  always_ff @(posedge clk) begin
    region      <= regions[slot_t'(query.key)];
    query_q     <= query;

    key_ok_q    <= region.valid && region.secret == secret_t'(query_q.key >> SLOT_W);
    owner_ok_q  <= region.pd == query_q.pd && (region.qpn == query_q.qpn || region.qpn == '0);
    rights_ok_q <= (region.access & query_q.access) == query_q.access;
    unbounded_q <= !query_q.bounded;
    far_q       <= query_q.va >> ADDR_W != '0;
    {before_q, offset_q} <= end_t'(query_q.va) - end_t'(region.addr);
    {longer_q, room_q}   <= (LENGTH_W + 1)'(region.length) - (LENGTH_W + 1)'(query_q.length);

    granted <= key_ok_q && owner_ok_q && rights_ok_q
               && (unbounded_q || (!before_q && !longer_q && !far_q && offset_q <= addr_t'(room_q)));
  end

  // ---- keys ----
  // Marsaglia, "Xorshift RNGs" (2003), triple 13, 7, 17: period 2^64 - 1.
  function automatic logic [63:0] xorshift(logic [63:0] x);
    logic [63:0] y;
    y = x ^ (x << 13);
    y = y ^ (y >> 7);
    return y ^ (y << 17);
  endfunction

  logic [63:0] random_q;
  always_ff @(posedge clk) random_q <= rst ? {seed[63:1], 1'b1} : xorshift(random_q);

  // ---- commands ----
  typedef enum logic [3:0] {
    CLEAR,       // after reset: slot by slot
    IDLE,
    SEARCH,      // find the regions of an owner, LANES slots a cycle
    READ,        // read the word of slot_q,
    COMPARE,     // and compare it
    ACT,
    FENCE,       // the keys are invalid: start the fence
    PASS,        // wait for the responder,
    SETTLE,      // and for the response unit
    ANSWER
  } state_e;

  state_e  state_q, state_d;
  slot_t   slot_q, slot_d;
  mr_rsp_t rsp_q, rsp_d;
  fence_t  number_q;                     // of the response unit's fence to wait for
  end_t    command_end;
  addr_t   command_last;
  logic    taken, match;

  logic  frees;
  slot_t frees_slot;
  stream_if #(.T(slot_t)) freed ();
  stream_if #(.T(slot_t)) unused ();
  stream_fifo #(.T(slot_t), .DEPTH(MRS), .BLOCK_RAM(MRS > 256)) free (.clk, .rst, .in(freed), .out(unused), .empty());

  assign command      = cmd.data;
  wire too_long       = command.mr.length >> LENGTH_W != '0;
  assign command_end  = end_t'(command.mr.addr) + end_t'(command.mr.length);
  assign command_last = command.mr.addr + addr_t'(command.mr.length) - addr_t'(command.mr.length != '0);
  assign cmd.ready   = taken;
  assign fence.valid = state_q == FENCE;
  assign fence.data  = 1'b1;
  assign rsp.valid   = state_q == ANSWER;
  assign rsp.data    = rsp_q;
  assign idle        = state_q == IDLE && !cmd.valid;

  assign command_slot = write_q ? write_slot_q : slot_q;

  // The random bits of a new key differ from the slot's last ones and are never 0, so no key is LOCAL_DMA_LKEY. Otherwise one bit,
  // or another one, is inverted.
  secret_t fresh, turned, new_secret;
  assign fresh      = random_q[63:32+SLOT_W];
  assign turned     = {~fresh[31-SLOT_W], fresh[30-SLOT_W:0]};
  wire fit          = fresh != held_q.secret && fresh != '0;
  wire turned_fit   = turned != held_q.secret && turned != '0;
  assign new_secret = fit ? fresh : turned_fit ? turned : {fresh[31-SLOT_W:1], ~fresh[0]};

  // A confined command must not name another domain (`foreign`), and may access regions of its own domain only (`open`).
  wire foreign = command.confined && command.mr.pd != command.domain && command.op inside {MR_REGISTER, MR_DEREGISTER_PD};
  wire open    = held_q.valid && (!command.confined || held_q.pd == command.domain);
  logic open_q, match_q;                 // the cycle before

  always_comb begin
    unique case (command.op)
      MR_DEREGISTER:    match = open && {held_q.secret, slot_q} == command.rkey;
      MR_DEREGISTER_QP, MR_DEREGISTER_GROUP:
      match = open && held_q.qpn == command.mr.qpn && command.mr.qpn != '0
              && (command.op == MR_DEREGISTER_QP || held_q.group == command.mr.group);
      MR_DEREGISTER_PD: match = open && held_q.pd == command.mr.pd;
      default:          match = 1'b0;
    endcase
  end

  wire searches = command.op inside {MR_DEREGISTER_QP, MR_DEREGISTER_GROUP, MR_DEREGISTER_PD};

  always_comb begin
    state_d      = state_q;
    slot_d       = slot_q;
    rows_d       = rows_q;
    row_d        = row_q;
    found_d      = found_q;
    rsp_d        = rsp_q;
    taken        = 1'b0;
    write        = 1'b0;
    write_slot   = slot_q;
    write_region = '0;
    frees        = 1'b0;
    frees_slot   = slot_q;
    unused.ready = 1'b0;

    if (state_q == SEARCH) slot_d = {row_q, lane};

    unique case (state_q)
      CLEAR: begin
        write  = 1'b1;
        frees  = 1'b1;
        slot_d = slot_q + 1'b1;
        if (&slot_q) state_d = IDLE;
      end

      IDLE: if (cmd.valid) begin
        rsp_d   = '0;
        state_d = READ;
        unique case (command.op)
          MR_REGISTER: begin
            slot_d = unused.data;
            if (too_long || command_end > end_t'(1) << ADDR_W || !unused.valid || !in_one_target(MAP, TARGETS, command.mr.addr, command_last)) begin
              taken   = 1'b1;
              state_d = ANSWER;
            end else begin
              unused.ready = 1'b1;
            end
          end
          MR_DEREGISTER: slot_d = slot_t'(command.rkey);
          MR_QUERY: begin
            slot_d = slot_t'(command.rkey);
            if (command.rkey >= MRS) begin
              taken   = 1'b1;
              state_d = ANSWER;
            end
          end
          default: begin
            rows_d  = '0;
            found_d = '0;
            state_d = SEARCH;
          end
        endcase
        if (foreign) begin
          taken        = 1'b1;
          state_d      = ANSWER;
          unused.ready = 1'b0;
        end
      end

      // A region that was found may have been invalidated meanwhile: it is read and compared again.
      SEARCH: if (|found_q) begin
        found_d = found_q & ~first;
        state_d = READ;
      end else if (rows_q[ROW_W]) begin
        taken      = 1'b1;
        rsp_d.ok   = 1'b1;
        rsp_d.rkey = command.rkey;
        state_d    = FENCE;
      end else begin
        found_d = found;
        row_d   = rows_q[ROW_W-1:0];
        rows_d  = rows_q + 1'b1;
      end

      READ: if (!pause && !write_q) state_d = COMPARE;

      COMPARE: state_d = pause ? READ : ACT;

      ACT: if (pause) begin
        state_d = READ;                    // the region may be invalidated meanwhile
      end else begin
        taken   = 1'b1;
        state_d = ANSWER;
        unique case (command.op)
          MR_REGISTER: begin
            write        = 1'b1;
            write_region = '{
                valid: 1'b1,
                secret: new_secret,
                pd: command.mr.pd,
                qpn: command.mr.qpn,
                group: command.mr.group,
                addr: command.mr.addr,
                length: length_t'(command.mr.length),
                access: command.mr.access
            };
            // Remote write or atomic implies local write (ibv_reg_mr requires both).
            if (command.mr.access.remote_write || command.mr.access.remote_atomic) write_region.access.local_write = 1'b1;
            rsp_d.ok     = 1'b1;
            rsp_d.rkey   = {new_secret, slot_q};
          end
          MR_QUERY: if (open_q) begin
            rsp_d.ok   = 1'b1;
            rsp_d.rkey = {held_q.secret, slot_q};
            rsp_d.mr   = '{
                pd: held_q.pd,
                qpn: held_q.qpn,
                group: held_q.group,
                addr: held_q.addr,
                length: region_size_t'(held_q.length),
                access: held_q.access
            };
          end
          default: begin
            // The invalid key stays in the slot, as the next one must differ from it.
            write               = match_q;
            write_region.secret = held_q.secret;
            frees               = match_q;
            rsp_d.ok            = match_q;
            rsp_d.rkey          = command.rkey;
            // Also if no region matched: a SEND with Invalidate may have just invalidated the key.
            state_d             = searches ? SEARCH : FENCE;
            taken               = !searches;
          end
        endcase
      end

      FENCE:  if (fence.ready) state_d = PASS;
      PASS:   if (fenced) state_d = SETTLE;
      SETTLE: if (fence_reached(fences_through, number_q)) state_d = ANSWER;

      default: if (rsp.ready) state_d = IDLE;
    endcase

    if (invalidate) begin
      write               = 1'b1;
      write_slot          = slot_t'(invalid_key);
      write_region        = '0;
      write_region.secret = secret_t'(invalid_key >> SLOT_W);
      frees               = 1'b1;
      frees_slot          = slot_t'(invalid_key);
    end
  end

  always_ff @(posedge clk) begin
    slot_q      <= slot_d;
    rows_q      <= rows_d;
    row_q       <= row_d;
    found_q     <= found_d;
    rsp_q       <= rsp_d;
    open_q      <= open;
    match_q     <= match;
    if (fenced) number_q <= fence_number;
    freed.valid <= frees && !rst;
    freed.data  <= frees_slot;
    if (rst) begin
      state_q <= CLEAR;
      slot_q  <= '0;
    end else begin
      state_q <= state_d;
    end
  end

  // While the table is cleared there is no valid key, and later `pause` keeps commands from writing.
  always_ff @(posedge clk) if (!rst && invalidate) assert (pause && state_q != CLEAR);

  // The queue of free slots has an entry for every slot.
  always_ff @(posedge clk) if (!rst && freed.valid) assert (freed.ready);
endmodule
