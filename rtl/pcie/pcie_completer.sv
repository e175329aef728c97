// SPDX-License-Identifier: Apache-2.0

// Answers the requests of the host: BAR 0 is the device's registers (AXI4-Lite, a dword an access), the other BARs are memory (AXI4). Order
// (Base Specification 2.4.1): writes take effect in the order in which they came, also over several BARs; a read begins when all writes
// before it are done. Reads are answered in order for each of registers and memory. Up to READS non-posted requests wait without being in
// the way of writes: the receiver must advertise no more non-posted header credits. What is not answered is refused: UR for a non-posted
// request, else it is dropped and counted. All of that is so whichever function is asked: BAR 0 of each is registers, at its own place
// among the addresses of `registers`.
//
// Latency: rx_header of a read to AR 7 cycles; last beat of a write to AW 7. One beat a cycle each way, a write a cycle, a read every 2
// cycles.
module pcie_completer
  import memory_pkg::*;
  import pcie_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned AXIL_ADDR_W = 20,
    parameter int unsigned ID_W = 4,
    parameter bar_maps_t BAR_MAP = '0,
    parameter int unsigned LARGEST = 512,    // bytes of a completion's payload, if the largest payload allows more
    parameter int unsigned READS = 64,       // power of two
    parameter int unsigned WRITES = 32       // power of two
) (
    input  logic              clk,
    input  logic              rst,
    input  pcie_configs_t     settings,
    input  logic [FUNCTIONS_MAX-1:0] refuse, // every request to this function
    stream_if.sink            rx_header,     // tlp_header_t, of requests
    axis_if.sink              rx_data,
    stream_if.source          tx_header,     // tlp_header_t, of completions
    axis_if.source            tx_data,
    axil_if.master            registers,
    axi_if.master             memory,
    output completer_events_t events,
    output logic [FUNCTIONS_MAX-1:0] quiet,  // no request to this function inside, and no completion of it
    output logic              idle           // no request inside
);
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_check
    if (BAR_MAP[i][0].base + BAR_MAP[i][0].size > 64'd1 << AXIL_ADDR_W) begin : g_bad
      $fatal(1, "BAR 0 is larger than the addresses of the registers");
    end
  end

  // ---- what comes in ----
  localparam int unsigned WRITE = 0;
  localparam int unsigned READ = 1;      // and other non-posted requests
  localparam int unsigned DROP = 2;

  tlp_header_t   header;
  host_request_t request;
  logic          write, refused, steer_empty;
  logic [1:0]    way;
  typedef struct packed {
    logic [1:0]    way;
    logic          has_data;
    logic          memory_write;
    logic          refused;
    logic          poisoned;
    host_request_t request;
  } checked_t;
  checked_t now;
  stream_if #(.T(checked_t)) checked_in ();
  stream_if #(.T(checked_t)) checked ();
  stream_if #(.T(checked_t)) way_header[3] ();
  axis_if #(.DATA_W(DATA_W)) way_data[3] ();

  assign header = rx_header.data;
  logic [FUNCTIONS_MAX-1:0] memory_space;
  logic [FUNCTIONS_MAX-1:0][2:0] mps;
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_settings
    assign memory_space[i] = settings[i].memory_space && !refuse[i];
    assign mps[i]          = settings[i].mps;
  end
  pcie_request_check #(.BAR_MAP(BAR_MAP)) check (
      .memory_space, .header, .request, .write, .refused
  );
  assign way = write ? 2'(WRITE) : tlp_is_posted(header.kind) || tlp_is_completion(header.kind) ? 2'(DROP) : 2'(READ);
  assign checked_in.valid = rx_header.valid;
  assign checked_in.data  = '{
      way: way, has_data: tlp_has_data(header.kind), memory_write: header.kind == TLP_MEM_WRITE, refused: refused,
      poisoned: header.poisoned, request: request
  };
  assign rx_header.ready  = checked_in.ready;
  stream_slice #(.T(checked_t), .SKID(1'b0)) verdict (.clk, .rst, .in(checked_in), .out(checked));
  assign now = checked.data;
  tlp_steer #(.T(checked_t), .DATA_W(DATA_W), .N(3)) steer (
      .clk, .rst, .in_header(checked), .in_data(rx_data), .has_data(now.has_data), .select(now.way), .out_header(way_header), .out_data(way_data),
      .empty(steer_empty)
  );

  // Data of what is refused goes nowhere.
  assign way_header[DROP].ready = 1'b1;
  assign way_data[DROP].tready  = 1'b1;
  assign way_data[READ].tready  = 1'b1;

  // ---- writes ----
  localparam int unsigned COUNT_W = $clog2(WRITES) + 1;
  stream_if #(.T(host_request_t)) write_in ();
  stream_if #(.T(host_request_t)) write_out[2] ();
  axis_if #(.DATA_W(DATA_W)) write_data[2] ();
  logic [1:0]         written, write_errors;
  logic               damaged, ended;
  function_t          ended_func;
  logic [COUNT_W-1:0] inside_;

  assign write_in.valid              = way_header[WRITE].valid;
  assign write_in.data               = now.request;
  assign way_header[WRITE].ready = write_in.ready;
  pcie_host_writes #(.DATA_W(DATA_W), .WRITES(WRITES)) writes (
      .clk, .rst, .request(write_in), .data(way_data[WRITE]), .out_request(write_out), .out_data(write_data), .done(written),
      .dropped(damaged), .ended, .ended_func, .inside_
  );

  // ---- reads, each behind the writes before it ----
  stream_if #(.T(host_request_t)) read_in ();
  stream_if #(.T(host_request_t)) read ();
  stream_if #(.T(host_request_t)) read_now ();
  stream_if #(.T(read_piece_t)) piece ();
  stream_if #(.T(read_piece_t)) pieces[3] ();
  logic no_reads;

  assign read_in.valid              = way_header[READ].valid;
  assign read_in.data               = now.request;
  assign way_header[READ].ready = read_in.ready;
  stream_fifo #(.T(host_request_t), .DEPTH(READS), .BLOCK_RAM(1'b0)) reads (.clk, .rst, .in(read_in), .out(read), .empty(no_reads));
  tlp_behind #(.T(host_request_t), .COUNT_W(COUNT_W)) behind (.clk, .rst, .in(read), .inside_, .gone({1'b0, ended}), .out(read_now));
  pcie_completion_split #(.LARGEST(LARGEST)) split (.clk, .rst, .mps, .request(read_now), .piece);

  // So that no path leads from a place's ready to the queue.
  stream_if #(.T(read_piece_t)) cut ();
  read_piece_t piece_now;
  stream_skid #(.T(read_piece_t)) cut_ready (.clk, .rst, .in(piece), .out(cut));
  assign piece_now = cut.data;
  stream_demux #(.T(read_piece_t), .N(3)) places (.in(cut), .select(piece_now.place), .out(pieces));

  // ---- the places, by their numbers ----
  localparam int unsigned REGISTERS = 32'(PLACE_REGISTERS);
  localparam int unsigned MEMORY = 32'(PLACE_MEMORY);
  localparam int unsigned NOWHERE = 32'(PLACE_NOWHERE);
  stream_if #(.T(tlp_header_t)) answer[3] ();
  axis_if #(.DATA_W(DATA_W)) answer_data[3] ();
  logic [1:0] read_errors, place_idle;

  pcie_host_registers #(.DATA_W(DATA_W), .AXIL_ADDR_W(AXIL_ADDR_W)) host_registers (
      .clk, .rst, .settings, .request(write_out[REGISTERS]), .data(write_data[REGISTERS]), .written(written[REGISTERS]),
      .write_error(write_errors[REGISTERS]), .piece(pieces[REGISTERS]), .header(answer[REGISTERS]),
      .payload(answer_data[REGISTERS]), .read_error(read_errors[REGISTERS]), .registers,
      .reads_idle(place_idle[REGISTERS])
  );
  pcie_host_memory #(.DATA_W(DATA_W), .ID_W(ID_W), .LARGEST(LARGEST)) host_memory (
      .clk, .rst, .settings, .request(write_out[MEMORY]), .data(write_data[MEMORY]), .written(written[MEMORY]),
      .write_error(write_errors[MEMORY]), .piece(pieces[MEMORY]), .header(answer[MEMORY]),
      .payload(answer_data[MEMORY]), .read_error(read_errors[MEMORY]), .memory,
      .reads_idle(place_idle[MEMORY])
  );
  stream_if #(.T(tlp_header_t)) refusal ();
  assign refusal.valid         = pieces[NOWHERE].valid;
  assign refusal.data          = completion_of(pieces[NOWHERE].data, settings, CPL_UNSUPPORTED);
  assign pieces[NOWHERE].ready = refusal.ready;
  stream_slice #(.T(tlp_header_t), .SKID(1'b0)) refusals (.clk, .rst, .in(refusal), .out(answer[NOWHERE]));
  assign answer_data[NOWHERE].tvalid = 1'b0;
  assign answer_data[NOWHERE].tdata  = '0;
  assign answer_data[NOWHERE].tkeep  = '0;
  assign answer_data[NOWHERE].tlast  = 1'b0;
  assign answer_data[NOWHERE].tuser  = 1'b0;

  logic        none_leave;
  tlp_header_t answered;
  stream_if #(.T(tlp_header_t)) merged ();
  tlp_arbiter #(.DATA_W(DATA_W), .N(3)) merge (
      .clk, .rst, .in_header(answer), .in_data(answer_data), .may('1), .out_header(merged), .out_data(tx_data), .empty(none_leave)
  );
  assign answered        = merged.data;
  assign tx_header.valid = merged.valid;
  assign merged.ready    = tx_header.ready;
  always_comb begin
    tlp_header_t told;
    told           = answered;
    told.func      = '0;
    tx_header.data = told;
  end

  // ---- events; what is inside ----
  logic     took_q;
  checked_t was_q;
  always_ff @(posedge clk) begin
    took_q <= !rst && checked.valid && checked.ready;
    was_q  <= now;
  end
  always_ff @(posedge clk) begin
    events.reads           <= read_now.valid && read_now.ready;
    events.writes          <= took_q && was_q.way == 2'(WRITE);
    events.refused_reads   <= took_q && was_q.way == 2'(READ) && was_q.refused;
    events.refused_writes  <= took_q && was_q.memory_write && was_q.refused;
    events.poisoned_writes <= took_q && was_q.memory_write && !was_q.refused && was_q.poisoned;
    events.damaged_writes  <= damaged;
    events.messages        <= took_q && was_q.way == 2'(DROP) && !was_q.memory_write;
    events.read_errors     <= |read_errors;
    events.write_errors    <= |write_errors;
    if (rst) events <= '0;
  end

  // ---- what is inside of each function ----
  localparam int unsigned INSIDE_W = $clog2(READS + WRITES) + 2;
  function_t   came_func_q, told_func_q;
  logic        came_q, told_q;                     // a request that is answered or refused; the last completion of a read
  always_ff @(posedge clk) begin
    came_q      <= !rst && checked_in.valid && checked_in.ready && way != 2'(DROP);
    came_func_q <= request.func;
    told_q      <= !rst && merged.valid && merged.ready && completion_ends(answered);
    told_func_q <= function_t'(answered.func);
  end
  for (genvar i = 0; i < FUNCTIONS_MAX; i++) begin : g_quiet
    logic [INSIDE_W-1:0] count_q;
    always_ff @(posedge clk)
      if (rst) count_q <= '0;
      else
        count_q <= count_q + INSIDE_W'(came_q && came_func_q == function_t'(i)) - INSIDE_W'(told_q && told_func_q == function_t'(i))
                   - INSIDE_W'(ended && ended_func == function_t'(i));
    assign quiet[i] = count_q == '0 && !came_q;
  end

  assign idle = !rx_header.valid && !checked.valid && steer_empty && inside_ == '0 && no_reads && !cut.valid && (&place_idle)
                && !answer[NOWHERE].valid && none_leave;
endmodule
