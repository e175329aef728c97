// SPDX-License-Identifier: Apache-2.0

// The registers of the trace of frames on AXI4-Lite (trace.rdl): one page of 4 KiB. A write takes 3 cycles, a read 6.
module frame_trace_registers
  import trace_pkg::*;
  import trace_regs_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter int unsigned ROWS = 512,
    parameter int unsigned FRAMES = 256,
    parameter logic [31:0] TICKS_HZ = 250_000_000,
    parameter logic [31:0] NEXT = '0            // the block after this one
) (
    input  logic           clk,
    input  logic           rst,
    axil_if.slave          bus,                 // 12 bits of address
    output logic           start,               // pulse
    output logic           stop,                // likewise
    output trace_trigger_e trigger,
    output trace_mode_t    mode,
    output logic [1:0]     directions,          // that are recorded: received, sent
    output logic [15:0]    after,
    output trace_match_t [1:0] match,
    input  trace_state_e   state,
    input  logic           triggered,
    input  logic [47:0]    trigger_ticks,
    input  logic [1:0][31:0] recorded,
    input  logic [1:0][15:0] used,
    input  logic [1:0][15:0] missed,
    output logic [$clog2(ROWS):0]   row_at,     // the upper bit is the direction
    input  logic [DATA_W-1:0]       row,        // a cycle later
    output logic [$clog2(FRAMES):0] entry_at,   // likewise
    input  trace_entry_t            entry,      // likewise
    output logic           idle                 // no access in progress
);
  localparam int unsigned BYTES = DATA_W / 8;
  localparam int unsigned WORDS_OF_ROW = DATA_W / 32;
  localparam int unsigned GROUP = WORDS_OF_ROW < 4 ? WORDS_OF_ROW : 4;   // words of a row, one of which is chosen in a cycle
  localparam int unsigned GROUPS = WORDS_OF_ROW / GROUP;
  localparam int unsigned GROUP_W = $clog2(GROUP);
  localparam int unsigned GROUPS_W = GROUPS > 1 ? $clog2(GROUPS) : 1;

  localparam bit IN_PLACE = AT_RECORDED == 12'h060 && AT_PLACES == 12'h068 && AT_STATE == 12'h070 && AT_TRIGGER == 12'h074;
  if (WORDS_WORDS != 512 || AT_WORDS != 12'h800 || AT_FRAMES != 12'h018 || !IN_PLACE) begin : g_check
    $fatal(1, "frame_trace_registers: the registers are not where this module has them");
  end

  logic [11:0] at;
  logic        write;
  logic [31:0] wdata, read_data;
  axil_access #(.READ_CYCLES(3)) access (
      .clk, .rst, .bus, .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata(read_data), .idle
  );

  // ---- settings ----
  logic [5:0]  mode_q;
  logic [13:0] snap_q, window_q;
  logic [11:0] snap_rows_q;
  logic [15:0] after_q, ethertype_q;
  trace_terms_t terms_q;
  logic [7:0]  opcode_q;
  logic [31:0] peer_q;
  logic [1:0][23:0] qpn_q;

  always_ff @(posedge clk) begin
    start       <= !rst && write && at == AT_COMMAND && wdata[0];
    stop        <= !rst && write && at == AT_COMMAND && wdata[1];
    snap_rows_q <= 12'((snap_q + 14'(BYTES - 1)) >> $clog2(BYTES));
    if (write) begin
      unique case (at)
        AT_MODE:      mode_q <= wdata[5:0];
        AT_SNAP:      snap_q <= wdata[13:0];
        AT_AFTER:     after_q <= wdata[15:0];
        AT_MATCH:     {terms_q.qpn, terms_q.peer, terms_q.opcode, terms_q.roce, terms_q.ethertype} <= wdata[4:0];
        AT_ETHERTYPE: ethertype_q <= wdata[15:0];
        AT_OPCODE:    opcode_q <= wdata[7:0];
        AT_PEER:      peer_q <= wdata;
        AT_QPN_RX:    qpn_q[0] <= wdata[23:0];
        AT_QPN_TX:    qpn_q[1] <= wdata[23:0];
        AT_WINDOW:    window_q <= wdata[13:0];
        default: ;
      endcase
    end
    if (rst) begin
      mode_q      <= 6'h30;
      snap_q      <= 14'd384;
      after_q     <= '0;
      terms_q     <= '0;
      ethertype_q <= '0;
      opcode_q    <= '0;
      peer_q      <= '0;
      qpn_q       <= '0;
      window_q    <= '0;
    end
  end

  assign trigger    = trace_trigger_e'(mode_q[1:0]);
  assign mode       = '{ring: mode_q[2], matching: mode_q[3], snap_rows: snap_rows_q};
  assign directions = mode_q[5:4];
  assign after      = after_q;
  for (genvar i = 0; i < 2; i++) begin : g_match
    assign match[i] = '{terms: terms_q, ethertype: ethertype_q, opcode: opcode_q, peer: peer_q, qpn: qpn_q[i]};
  end

  // ---- what was recorded ----
  wire [22:0] byte_at = {window_q[11:0], at[10:0]};
  wire        of_tx = window_q[13];
  assign row_at   = {of_tx, ($clog2(ROWS))'(byte_at / 23'(BYTES))};
  assign entry_at = {of_tx, ($clog2(FRAMES))'(byte_at / 23'd16)};

  logic [31:0] word_q;
  logic [GROUPS-1:0][31:0] word_of_group_q;
  wire [3:0][31:0] entry_words = {32'd0, 15'd0, entry.bad, entry.length, entry.row, entry.ticks[47:32], entry.ticks[31:0]};
  wire [GROUPS-1:0][GROUP-1:0][31:0] row_words = row;
  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < GROUPS; i++) word_of_group_q[i] <= row_words[i][at[2+:GROUP_W]];
    word_q <= window_q[12] ? entry_words[at[3:2]] : word_of_group_q[GROUPS > 1 ? at[2+GROUP_W+:GROUPS_W] : '0];
  end

  // The state of the recording is at 0x060 to 0x07f, facts are below, words at 0x800 and above.
  logic [31:0] status_q, fact;
  wire [7:0][31:0] status = {
      32'd0, 32'd0, trigger_ticks[31:0], {trigger_ticks[47:32], 13'd0, triggered, state},
      {missed[1], used[1]}, {missed[0], used[0]}, recorded[1], recorded[0]
  };
  always_ff @(posedge clk) status_q <= status[at[4:2]];

  always_comb begin
    unique case (at)
      AT_TYPE:      fact = BLOCK_TYPE;
      AT_VERSION:   fact = BLOCK_VERSION;
      AT_NEXT:      fact = NEXT;
      AT_TICKS_HZ:  fact = TICKS_HZ;
      AT_ROW_BYTES: fact = BYTES;
      AT_ROWS:      fact = ROWS;
      default:      fact = FRAMES;
    endcase
  end

  assign read_data = at[11] ? word_q : at[6] ? status_q : fact;
endmodule
