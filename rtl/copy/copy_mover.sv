// SPDX-License-Identifier: Apache-2.0

// Moves data: pieces of copies from memory to memory, descriptors out of it, completions into it, by one read engine and one write engine.
//
// Everything that is read is a burst of its own, and in one order. A burst waits in the buffer of the read engine until all of it has arrived; then
// it is known whether the read failed, and only then is the write of a piece begun. So its data follows at once, which is the rule of
// axi_mux: 2 cycles behind the address as the write engine has it, and one more if the source is not aligned. A piece whose read failed is not written. Descriptors go to `fetched`, in the place of a failed read there is a pulse of `fetch_failed`.
// A report is written as soon as it is offered, between two pieces. While `give_up` is high nothing is written: pieces end with an error.
//
// There is no deadlock if whoever asks for descriptors has room for them: then each packet at the head of what is read has a place, because
// writes depend on nothing that is read behind them, and outcomes have their place before the write begins.
//
// Latency: 3 cycles from `fetch` or `piece` to AR; 4 from the last beat of R to AW, 2 more to W, more if earlier packets are still moving; 3 from
// `report` to AW; 2 from the (last) write response to `outcome`. One beat a cycle, a read and a write every 2 cycles: the way to the engines is cut by
// a register each. PIECES are under way at once, within the read engine's buffer of BUFFER_BEATS.
module copy_mover
  import memory_pkg::*;
  import copy_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ID_W = 4,
    parameter int unsigned PIECES = 64,         // power of two
    parameter int unsigned REPORTS = 32,        // outcomes that wait for their completion; power of two
    parameter int unsigned BUFFER_BEATS = 512
) (
    input  logic          clk,
    input  logic          rst,
    input  logic          start,                // no list has begun
    input  logic          give_up,
    stream_if.sink        fetch,                // copy_read_t: within a piece's bounds
    stream_if.sink        piece,                // copy_piece_t
    input  addr_t         source,               // of the piece
    axis_if.source        fetched,
    output logic          fetch_failed,
    stream_if.source      outcome,              // copy_outcome_t
    stream_if.sink        report,               // copy_report_t
    output logic          reported,             // pulse: a completion is visible,
    output logic          report_failed,        // or: it is not
    output copy_outcome_t of_report,            // with these: what it says
    axi_if.master         mem,
    output copy_events_t  events,
    output logic          idle
);
  // ---- what is read, in order ----
  localparam int unsigned LANE_W = $clog2(DATA_W / 8);
  typedef logic [LANE_W-1:0] lane_t;
  typedef struct packed {
    logic        fetch;
    logic        read;       // there is a burst
    lane_t       lane;       // of the source
    copy_piece_t piece;
  } entry_t;

  stream_if #(.T(dma_cmd_t)) read_cmd ();
  stream_if #(.T(entry_t)) entry_in ();
  stream_if #(.T(entry_t)) entry ();
  logic        none_waits;
  logic        ask_q;                            // a read that the engine has not taken
  addr_t       ask_address_q;
  piece_size_t ask_length_q;
  wire         fetches = fetch.valid;
  wire addr_t  address = fetches ? fetch.data.address : source;
  wire piece_size_t length = fetches ? fetch.data.length : piece.data.length;

  assign entry_in.valid = (fetch.valid || piece.valid) && !ask_q;
  always_comb begin
    entry_in.data = '{fetch: fetches, read: length != '0, lane: lane_t'(address), piece: piece.data};
    entry_in.data.piece.length = length;
  end
  wire taken = entry_in.valid && entry_in.ready;
  assign fetch.ready = taken && fetches;
  assign piece.ready = taken && !fetches;
  always_ff @(posedge clk) begin
    if (taken) begin
      ask_address_q <= address;
      ask_length_q  <= length;
    end
    if (rst) ask_q <= 1'b0;
    else ask_q <= ask_q ? !read_cmd.ready : taken && entry_in.data.read;
  end
  always_comb begin
    read_cmd.data        = '0;
    read_cmd.data.addr   = ask_address_q;
    read_cmd.data.length = 32'(ask_length_q);
  end
  assign read_cmd.valid = ask_q;
  stream_fifo #(.T(entry_t), .DEPTH(PIECES), .BLOCK_RAM(1'b0)) order (.clk, .rst, .in(entry_in), .out(entry), .empty(none_waits));

  axi_if #(.ADDR_W(ADDR_W), .DATA_W(DATA_W), .ID_W(ID_W)) reads (), writes ();
  axi_join both (.reader(reads), .writer(writes), .out(mem));
  axis_if #(.DATA_W(DATA_W)) read_data ();
  logic read_idle;
  axi_dma_read #(.DATA_W(DATA_W), .ID_W(ID_W), .BUFFER_BEATS(BUFFER_BEATS), .IN_PLACE(1'b1)) reader (
      .clk, .rst, .cmd(read_cmd), .mem(reads), .data(read_data), .idle(read_idle)
  );

  // Bursts that have arrived, and whether they are bad: no more than there are entries.
  stream_if #(.T(logic)) arrival ();
  stream_if #(.T(logic)) arrived ();
  logic bad_q, none_arrived;
  assign arrival.valid = mem.rvalid && mem.rlast;
  assign arrival.data  = bad_q || mem.rresp[1];
  always_ff @(posedge clk) begin
    if (rst) bad_q <= 1'b0;
    else if (mem.rvalid) bad_q <= arrival.data && !mem.rlast;
  end
  stream_fifo #(.T(logic), .DEPTH(PIECES), .BLOCK_RAM(1'b0)) arrivals (.clk, .rst, .in(arrival), .out(arrived), .empty(none_arrived));

  // ---- what becomes of it, and reports in between: a step goes into all queues that it concerns at once, when they have room ----
  stream_if #(.T(dma_cmd_t)) write_cmd ();
  stream_if #(.T(copy_begun_t)) begun ();
  stream_if #(.T(copy_move_t)) move ();
  copy_piece_t  now;
  copy_report_t told;
  logic none_moves, free;
  logic other_q;                               // the last packet is none that is written: data behind it could have a gap
  logic command_q;
  addr_t command_address_q;
  piece_size_t command_length_q;

  assign now  = entry.data.piece;
  assign told = report.data;
  wire read   = entry.data.read;
  wire here   = entry.valid && (arrived.valid || !read);
  wire failed = give_up || (read && arrived.data);
  wire lost   = entry.data.fetch && (give_up || arrived.data);
  wire quiet  = !other_q || none_moves;
  wire room   = !command_q && begun.ready && move.ready;

  wire do_report = report.valid && quiet && room;
  wire may_fetch = !report.valid && here && entry.data.fetch && move.ready;
  wire may_piece = !report.valid && here && !entry.data.fetch && room && (free || !(now.last && now.report));
  wire writes_it = read && !failed;
  wire do_piece  = may_piece && (quiet || !writes_it);

  assign report.ready  = do_report;
  assign entry.ready   = may_fetch || do_piece;
  assign arrived.ready = may_fetch || (do_piece && read);

  copy_status_e status;
  assign status = now.bad ? COPY_DESCRIPTOR : failed ? COPY_SOURCE : COPY_OK;

  // From the lanes of the source to those of the destination: of descriptors to byte 0, of a completion from byte 0.
  lane_t       from, to;
  piece_size_t reach;
  copy_shift_t shift;
  assign from  = report.valid ? '0 : entry.data.lane;
  assign to    = report.valid ? lane_t'(told.address) : entry.data.fetch ? '0 : lane_t'(now.destination);
  assign reach = now.length + piece_size_t'(to) + piece_size_t'(DATA_W / 8 - 1);
  assign shift = '{
      amount: 6'(lane_t'(from - to - 1'b1)),
      prime: from > to,
      beats: 8'(reach >> LANE_W),
      half: now.length[$clog2(DESCRIPTOR_BYTES)]
  };

  assign begun.valid = do_report || do_piece;
  assign begun.data  = '{
      completion: do_report,
      last: now.last,
      report: now.report,
      outcome: do_report ? told.outcome : '{tag: now.tag, status: status, interrupts: now.interrupts}
  };
  assign move.valid = do_report || may_fetch || (do_piece && read);
  assign move.data  = '{
      kind: do_report ? MOVE_REPORT : entry.data.fetch ? (lost ? MOVE_DROP : MOVE_FETCHED) : failed ? MOVE_DROP : MOVE_WRITE,
      shift: shift,
      generation: told.generation,
      status: told.outcome.status,
      tag: told.outcome.tag
  };

  // A piece that is not written is a transfer of length 0, so that it ends in its turn.
  always_ff @(posedge clk) begin
    if (do_report || do_piece) begin
      command_address_q <= do_report ? told.address : now.destination;
      command_length_q  <= do_report ? piece_size_t'(COMPLETION_BYTES) : writes_it ? now.length : '0;
    end
    fetch_failed <= !rst && may_fetch && lost;
    if (move.valid) other_q <= !(do_report || (do_piece && writes_it));
    if (rst) begin
      other_q   <= 1'b0;
      command_q <= 1'b0;
    end else command_q <= command_q ? !write_cmd.ready : do_report || do_piece;
  end
  always_comb begin
    write_cmd.data        = '0;
    write_cmd.data.addr   = command_address_q;
    write_cmd.data.length = 32'(command_length_q);
  end
  assign write_cmd.valid = command_q;

  axis_if #(.DATA_W(DATA_W)) write_data ();
  copy_steer #(.DATA_W(DATA_W)) steer (.clk, .rst, .move, .read(read_data), .write(write_data), .fetched, .empty(none_moves));

  stream_if #(.T(dma_done_t)) done ();
  logic write_idle, ends_idle;
  axi_dma_write #(.DATA_W(DATA_W), .ID_W(ID_W), .IN_PLACE(1'b1)) writer (.clk, .rst, .cmd(write_cmd), .data(write_data), .mem(writes), .done, .idle(write_idle));

  copy_ends #(.REPORTS(REPORTS)) ends (
      .clk, .rst, .start, .begun, .done, .outcome, .free, .reported, .report_failed, .of_report,
      .copied(events.copied), .failed(events.failed), .idle(ends_idle)
  );
  assign events.bytes = do_piece && writes_it ? now.length : '0;

  assign idle = none_waits && !ask_q && none_arrived && none_moves && !command_q && read_idle && write_idle && ends_idle;

  always_ff @(posedge clk) if (!rst && arrival.valid) assert (arrival.ready) else $error("more bursts than entries");
endmodule
