// SPDX-License-Identifier: Apache-2.0

// The write engine of several users: writes their packets, round robin, each to its memory. One axi_dma_write per memory, its *lane*; each
// user receives the outcomes of its own packets, per lane, in the order of the lane.
//
// Lane 0 writes a packet as it arrives and stalls its users when its memory stalls. Every other lane has a store: a user reserves space
// before it offers a packet, so no packet of one memory waits for another memory; a packet is presented to its memory when all of it has
// arrived. `room` means that space for a packet of any size may be reserved, even if another reservation was made up to two cycles ago;
// each user has its own share of each store.
//
// Latency from `cmd` to AW 3 cycles, W 5, in lane 0; in the others the packet's beats and 4 more. One beat a cycle in total. The `done`
// queue of a user holds PENDING outcomes; a user must have no more packets outstanding.
module dma_write_lanes
  import memory_pkg::*;
#(
    parameter int unsigned DATA_W      = 512,
    parameter int unsigned ID_W        = 4,
    parameter int unsigned USERS       = 2,
    parameter int unsigned LANES       = 1,
    parameter int unsigned PENDING     = 64,      // packets of a user, power of two
    parameter int unsigned STORE_UNITS = 256,     // of each lane except the first; power of two, at least USERS * 64
    parameter int unsigned OUTSTANDING = 32,      // bursts of the first lane
    parameter int unsigned FAR_OUTSTANDING = 128  // and of the others; powers of two
) (
    input  logic           clk,
    input  logic           rst,
    stream_if.sink         cmd[USERS],            // dma_cmd_t, length > 0, at most 4096
    axis_if.sink           data[USERS],
    stream_if.source       done[USERS*LANES],     // dma_done_t, of user u in lane l at u * LANES + l
    input  logic [USERS-1:0] reserve,             // pulse: a `cmd` will follow, with
    input  write_size_t [USERS-1:0] reserve_size, // this target and length
    output targets_t [USERS-1:0] room,            // per lane; in lane 0 always set
    axi_if.master          mem[LANES],
    output logic           idle
);
  if (LANES == 1) begin : g_unused
    logic unused_ok;
    assign unused_ok = &{1'b0, reserve, reserve_size};
  end

  localparam int unsigned USER_W = USERS > 1 ? $clog2(USERS) : 1;
  typedef logic [USER_W-1:0] user_t;

  if (STORE_UNITS < USERS * 64) begin : g_bad_store
    $fatal(1, "STORE_UNITS must be at least USERS * 64 (16 KiB per user)");
  end

  // ---- arbitration of the users ----
  typedef struct packed {
    user_t    user;
    target_t  target;
    dma_cmd_t cmd;
  } owned_t;
  typedef struct packed {
    user_t   user;
    target_t target;
  } steer_t;

  stream_if #(.T(owned_t)) asked[USERS] ();
  stream_if #(.T(owned_t)) next ();
  stream_if #(.T(owned_t)) taken[2] ();          // to its lane; to the data routing
  stream_if #(.T(steer_t)) steer_in ();
  stream_if #(.T(steer_t)) steer ();
  logic none_steered;

  for (genvar u = 0; u < USERS; u++) begin : g_asked
    assign asked[u].valid = cmd[u].valid;
    assign asked[u].data  = '{user: user_t'(u), target: cmd[u].data.target, cmd: cmd[u].data};
    assign cmd[u].ready   = asked[u].ready;
  end
  stream_arbiter #(.T(owned_t), .N(USERS)) turns (.clk, .rst, .in(asked), .last('1), .out(next));
  stream_fork #(.T(owned_t), .N(2)) both (.clk, .rst, .in(next), .out(taken));

  assign steer_in.valid = taken[1].valid;
  assign steer_in.data  = '{user: taken[1].data.user, target: taken[1].data.target};
  assign taken[1].ready = steer_in.ready;
  stream_fifo #(.T(steer_t), .DEPTH(16)) steers (.clk, .rst, .in(steer_in), .out(steer), .empty(none_steered));

  // ---- data of the selected user, to its lane ----
  typedef struct packed {
    logic                tlast;
    logic [DATA_W/8-1:0] tkeep;
    logic [DATA_W-1:0]   tdata;
  } beat_t;

  logic [USERS-1:0] offered;
  beat_t            from[USERS];
  beat_t            beat;
  logic             beat_valid, beat_taken;
  targets_t         lane_ready, cmd_ready;
  for (genvar u = 0; u < USERS; u++) begin : g_data
    assign offered[u]      = data[u].tvalid;
    assign from[u]         = '{tlast: data[u].tlast, tkeep: data[u].tkeep, tdata: data[u].tdata};
    assign data[u].tready  = steer.valid && steer.data.user == user_t'(u) && lane_ready[steer.data.target];
  end
  assign beat        = from[steer.data.user];
  assign beat_valid  = steer.valid && offered[steer.data.user];
  assign beat_taken  = beat_valid && lane_ready[steer.data.target];
  assign steer.ready = beat_taken && beat.tlast;

  // ---- the lanes ----
  logic [LANES-1:0] lane_idle;
  for (genvar l = LANES; l < MAX_TARGETS; l++) begin : g_no_lane
    assign lane_ready[l] = 1'b0;
    assign cmd_ready[l]  = 1'b0;
    for (genvar u = 0; u < USERS; u++) begin : g_room
      assign room[u][l] = 1'b0;
    end
  end
  assign taken[0].ready = cmd_ready[taken[0].data.target];
  assign idle           = (&lane_idle) && none_steered && !next.valid;

  for (genvar l = 0; l < LANES; l++) begin : g_lane
    stream_if #(.T(dma_cmd_t)) dma_cmd ();
    axis_if #(.DATA_W(DATA_W)) dma_data ();
    stream_if #(.T(dma_done_t)) dma_done ();
    stream_if #(.T(user_t)) owner_in ();
    stream_if #(.T(user_t)) owner ();
    stream_if #(.T(owned_t)) mine ();
    logic dma_idle, none_owned, store_idle;
    wire here = steer.data.target == target_t'(l);
    wire asks = taken[0].valid && taken[0].data.target == target_t'(l);

    // The user of each packet.
    logic [1:0] cmd_parts;
    stream_if #(.T(logic)) part_in ();
    stream_if #(.T(logic)) part[2] ();
    assign part_in.valid = asks;
    assign part_in.data  = 1'b0;
    assign cmd_ready[l]  = part_in.ready;
    stream_fork #(.T(logic), .N(2)) parts (.clk, .rst, .in(part_in), .out(part));
    assign cmd_parts = {part[1].valid, part[0].valid};

    assign owner_in.valid = cmd_parts[0];
    assign owner_in.data  = taken[0].data.user;
    assign part[0].ready  = owner_in.ready;
    stream_fifo #(.T(user_t), .DEPTH(l == 0 ? 2 * PENDING : 2 * STORE_UNITS)) owners (.clk, .rst, .in(owner_in), .out(owner), .empty(none_owned));

    assign mine.valid    = cmd_parts[1];
    assign mine.data     = taken[0].data;
    assign part[1].ready = mine.ready;

    if (l == 0) begin : g_direct
      assign dma_cmd.valid   = mine.valid;
      assign dma_cmd.data    = mine.data.cmd;
      assign mine.ready      = dma_cmd.ready;
      // So that no path leads from the memory's ready through the users to where they store their packets.
      stream_if #(.T(beat_t)) direct_in ();
      stream_if #(.T(beat_t)) direct ();
      assign direct_in.valid = beat_valid && here;
      assign direct_in.data  = beat;
      assign lane_ready[l]   = direct_in.ready;
      stream_skid #(.T(beat_t)) skid (.clk, .rst, .in(direct_in), .out(direct));
      assign dma_data.tvalid = direct.valid;
      assign dma_data.tdata  = direct.data.tdata;
      assign dma_data.tkeep  = direct.data.tkeep;
      assign dma_data.tlast  = direct.data.tlast;
      assign dma_data.tuser  = 1'b0;
      assign direct.ready    = dma_data.tready;
      assign store_idle      = 1'b1;
      for (genvar u = 0; u < USERS; u++) begin : g_room
        assign room[u][l] = 1'b1;
      end
    end else begin : g_stored
      localparam int unsigned BEATS = STORE_UNITS * WRITE_UNIT / (DATA_W / 8);
      typedef logic [$clog2(STORE_UNITS):0] units_t;

      stream_if #(.T(owned_t)) waiting ();
      axis_if #(.DATA_W(DATA_W)) store_in ();
      axis_if #(.DATA_W(DATA_W)) store_out ();
      logic   none_waiting, none_stored;
      units_t whole_q;                           // packets complete in the store and not presented to memory

      stream_fifo #(.T(owned_t), .DEPTH(STORE_UNITS)) cmds (.clk, .rst, .in(mine), .out(waiting), .empty(none_waiting));
      assign store_in.tvalid = beat_valid && here;
      assign store_in.tdata  = beat.tdata;
      assign store_in.tkeep  = beat.tkeep;
      assign store_in.tlast  = beat.tlast;
      assign store_in.tuser  = 1'b0;
      assign lane_ready[l]   = store_in.tready;
      axis_fifo #(.DATA_W(DATA_W), .DEPTH(BEATS)) store (.clk, .rst, .in(store_in), .out(store_out), .empty(none_stored));

      assign dma_cmd.valid   = waiting.valid && whole_q != '0;
      assign dma_cmd.data    = waiting.data.cmd;
      assign waiting.ready   = dma_cmd.ready && whole_q != '0;
      assign dma_data.tvalid = store_out.tvalid;
      assign dma_data.tdata  = store_out.tdata;
      assign dma_data.tkeep  = store_out.tkeep;
      assign dma_data.tlast  = store_out.tlast;
      assign dma_data.tuser  = 1'b0;
      assign store_out.tready = dma_data.tready;
      assign store_idle       = none_waiting && none_stored;

      // A packet's space is freed when its data has left.
      typedef struct packed {
        user_t       user;
        write_size_t size;
      } leaving_t;
      stream_if #(.T(leaving_t)) leaving_in ();
      stream_if #(.T(leaving_t)) leaving ();
      assign leaving_in.valid = waiting.valid && waiting.ready;
      assign leaving_in.data  = '{user: waiting.data.user, size: write_size(waiting.data.target, waiting.data.cmd.length[15:0])};
      stream_fifo #(.T(leaving_t), .DEPTH(32)) under_way (.clk, .rst, .in(leaving_in), .out(leaving), .empty());
      assign leaving.ready = store_out.tvalid && store_out.tready && store_out.tlast;

      always_ff @(posedge clk) begin
        if (rst) whole_q <= '0;
        else whole_q <= whole_q + units_t'(store_in.tvalid && store_in.tready && store_in.tlast) - units_t'(leaving_in.valid);
        if (!rst && leaving_in.valid) assert (leaving_in.ready);
        if (!rst && store_in.tvalid) assert (store_in.tready) else $error("a packet without reserved space");
      end

      for (genvar u = 0; u < USERS; u++) begin : g_room
        units_t held_q;
        wire    takes = reserve[u] && reserve_size[u].target == target_t'(l);
        wire    frees = leaving.valid && leaving.ready && leaving.data.user == user_t'(u);
        assign room[u][l] = held_q <= units_t'(STORE_UNITS / USERS - 2 * WRITE_UNITS_MAX);
        always_ff @(posedge clk) begin
          if (rst) held_q <= '0;
          else held_q <= held_q + (takes ? units_t'(reserve_size[u].units) : '0) - (frees ? units_t'(leaving.data.size.units) : '0);
        end
      end
    end

    axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W), .OUTSTANDING(l == 0 ? OUTSTANDING : FAR_OUTSTANDING)) dma (
        .clk, .rst, .cmd(dma_cmd), .data(dma_data), .mem(mem[l]), .done(dma_done), .idle(dma_idle)
    );

    // ---- outcomes, in one queue per user, so that no user delays another ----
    logic [USERS-1:0] told, none_told;
    assign dma_done.ready = owner.valid && |told;
    assign owner.ready    = dma_done.valid && dma_done.ready;
    for (genvar u = 0; u < USERS; u++) begin : g_told
      stream_if #(.T(dma_done_t)) result ();
      stream_if #(.T(dma_done_t)) kept ();
      assign result.valid = dma_done.valid && owner.valid && owner.data == user_t'(u);
      assign result.data  = dma_done.data;
      assign told[u]      = result.valid && result.ready;
      stream_fifo #(.T(dma_done_t), .DEPTH(PENDING)) results (.clk, .rst, .in(result), .out(kept), .empty(none_told[u]));
      assign done[u*LANES+l].valid = kept.valid;
      assign done[u*LANES+l].data  = kept.data;
      assign kept.ready            = done[u*LANES+l].ready;
    end

    assign lane_idle[l] = dma_idle && none_owned && store_idle && (&none_told);
  end
endmodule
