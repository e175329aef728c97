// SPDX-License-Identifier: Apache-2.0

// The registers of the classifier on AXI4-Lite (classifier.rdl): one page of 4 KiB. A write takes 3 cycles, a read 7.
//
// What would change an entry that is in use, or come between a load or a commit, is refused: no order of writes makes an entry take effect
// in parts.
module classify_registers
  import classify_pkg::*;
  import classifier_regs_pkg::*;
#(
    parameter int unsigned PAIRS = 0,               // of queues of the network card
    parameter logic [31:0] NEXT = '0                // the block after this one
) (
    input  logic            clk,
    input  logic            rst,
    axil_if.slave           bus,                    // 12 bits of address
    output table_settings_t staged,
    output logic            commit,                 // pulse: `staged` shall be in use
    input  table_settings_t current,
    input  logic            busy,
    output logic            load,                   // pulse
    output logic [$clog2(UNITS)-1:0] load_unit,
    output position_t       entry,
    output logic [$clog2(ENTRY_WORDS)-1:0] entry_word,
    output logic            word_write,
    output word_t           word_wdata,
    input  word_t           word,                   // a cycle behind `entry_word`
    output logic            clear,                  // until `cleared`
    input  logic            cleared,
    input  logic [31:0]     frames,                 // of `entry`
    input  logic [47:0]     bytes,
    output logic [11:0]     at,                     // for flows and meters: the address of an access,
    output logic            flow_write,             // pulse: `wdata` is written there, to a register of flows,
    output logic            meter_write,            // or of meters
    output logic [31:0]     wdata,
    input  logic            flow_busy,
    input  logic            flow_permitted,
    input  logic [31:0]     flow_value,             // of `at` a cycle before
    input  logic [31:0]     meter_value,
    output logic            idle                    // no access in progress
);
  localparam bit IN_PLACE = AT_ENABLE == 12'h040 && AT_WIDE == 12'h050 && AT_WORDS == 12'h800;
  if (!IN_PLACE || WORDS_WORDS != ENTRY_WORDS || ENABLE_WORDS != POSITIONS / 32) begin : g_check
    $fatal(1, "classify_registers: the registers are not where this module has them");
  end

  logic        permitted, accepted, write, in_use_q;
  logic [31:0] read_data;
  axil_access #(.READ_CYCLES(4)) access (
      .clk, .rst, .bus, .at, .write(accepted), .wdata, .readable(readable(at)), .writable(writable(at) && permitted), .rdata(read_data), .idle
  );

  position_t            entry_q;
  logic                 clear_q;
  wire [$clog2(GROUPS)-1:0] group = entry_q[$bits(position_t)-1:$clog2(QUARTERS)];
  always_ff @(posedge clk) in_use_q <= current.wide[group] ? current.enable[{group, ($clog2(QUARTERS))'(0)}] : current.enable[entry_q];

  wire is_word = at[11];
  wire is_meter = at[11:7] == AT_METER[11:7];
  wire is_flow = at[11:10] == AT_FLOW_KEY[11:10] && !is_meter;
  assign permitted = is_meter ? 1'b1 : is_flow ? flow_permitted : at == AT_ENTRY || (!busy && !clear_q && !(is_word && in_use_q));

  // A cycle after it was accepted, in which address and data are still there.
  always_ff @(posedge clk) write <= accepted && !rst;
  assign flow_write  = write && is_flow;
  assign meter_write = write && is_meter;

  always_ff @(posedge clk) begin
    commit <= !rst && write && at == AT_COMMAND && wdata[0];
    load   <= !rst && write && at == AT_LOAD;
    if (cleared) clear_q <= 1'b0;
    if (write) begin
      unique case (at)
        AT_LOAD:    load_unit <= wdata[$clog2(UNITS)-1:0];
        AT_COMMAND: clear_q <= wdata[1];
        AT_OFFSET:  staged.offset <= wdata[6:0];
        AT_ENTRY:   entry_q <= wdata[$bits(position_t)-1:0];
        AT_WIDE:    staged.wide <= wdata;
        default: ;
      endcase
      if (at[11:4] == AT_ENABLE[11:4]) staged.enable[at[3:2]*32+:32] <= wdata;
    end
    if (rst) begin
      staged  <= '0;
      entry_q <= '0;
      clear_q <= 1'b0;
    end
  end
  assign entry      = entry_q;
  assign entry_word = at[2+:$clog2(ENTRY_WORDS)];
  assign word_write = write && is_word;
  assign word_wdata = wdata[WORD_W-1:0];
  assign clear      = clear_q;

  // ---- read ----
  logic [31:0] value_q;
  logic [31:0] low;
  wire [3:0][31:0] enable = current.enable;
  always_comb begin
    unique case (at)
      AT_TYPE:      low = BLOCK_TYPE;
      AT_VERSION:   low = BLOCK_VERSION;
      AT_NEXT:      low = NEXT;
      AT_POSITIONS: low = POSITIONS;
      AT_PAIRS:     low = PAIRS;
      AT_FLOW_PLACES: low = FLOW_PLACES;
      AT_METERS:    low = METERS;
      AT_STATUS:    low = 32'({flow_busy, busy || clear_q});
      AT_OFFSET:    low = 32'(current.offset);
      AT_ENTRY:     low = 32'(entry_q);
      AT_FRAMES:    low = frames;
      AT_BYTES_LO:  low = bytes[31:0];
      AT_BYTES_HI:  low = 32'(bytes[47:32]);
      default:      low = '0;
    endcase
  end
  always_ff @(posedge clk)
    value_q <= is_word ? 32'(word) : is_meter ? meter_value : is_flow ? flow_value : !at[6] ? low : at == AT_WIDE ? current.wide : enable[at[3:2]];
  assign read_data = value_q;
endmodule
