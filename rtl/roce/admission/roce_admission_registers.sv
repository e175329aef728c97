// SPDX-License-Identifier: Apache-2.0

// The registers of admission on AXI4-Lite (admission.rdl): one page of 4 KiB. What an entry says is in a table behind `table_at`, its
// words in the order of their addresses modulo 1 KiB. An access takes 3 cycles; one at a time, writes before reads. One that no register has is
// answered with DECERR, a write to a part of one with SLVERR. In reset, and until `ready`, no access is accepted.
module roce_admission_registers
  import memory_pkg::*;
  import roce_pkg::*;
  import admission_regs_pkg::*;
(
    input  logic             clk,
    input  logic             rst,
    input  logic             ready,
    axil_if.slave            bus,          // 12 bits of address
    output logic             enable,
    input  logic [31:0]      seconds,
    output logic [7:0]       table_at,     // number of the word among those of entries, and its entry
    output logic             table_write,
    output logic [31:0]      table_in,
    input  logic [31:0]      table_out,    // the word at `table_at`, a cycle later
    output logic             state_write,  // pulse: STATE of `state_entry` is written with `table_in`
    output admission_entry_t state_entry,  // its entry; with a read that of `state` and `used`
    input  logic [1:0]       state,
    input  logic [15:0]      used,
    output logic             idle          // no access in progress
);
  localparam logic [31:0] NEXT = {12'd0, cci_map_pkg::EVENT_LOG_PAGE, 12'd0};

  if (STATE_WORDS != ADMISSION_ENTRIES || AT_STATE != 12'h100 || AT_TOKEN_3 != 12'h3c0 || AT_ADDRESS_1 != 12'h400 || AT_ADDRESS_3 != 12'h480) begin : g_check
    $fatal(1, "roce_admission_registers: the words of the entries must be those of 0x100 to 0x4bf, the last three in the places of the table that the first registers leave free");
  end

  typedef enum logic [1:0] {
    B_IDLE,
    B_READ,
    B_ANSWER_WRITE,
    B_ANSWER_READ
  } state_e;

  state_e      state_q;
  logic [11:0] read_at_q;
  logic [31:0] rdata_q;
  axi_resp_e   resp_q;

  wire accepting = !rst && ready && state_q == B_IDLE;
  wire writing = accepting && bus.awvalid && bus.wvalid;
  wire whole = &bus.wstrb;
  wire [11:0] write_at = {bus.awaddr[11:2], 2'b00};
  wire [11:0] at = writing ? write_at : {bus.araddr[11:2], 2'b00};
  wire takes = writing && whole && writable(write_at);
  wire of_entry = write_at >= AT_STATE;

  assign bus.awready = writing;
  assign bus.wready  = writing;
  assign bus.bvalid  = state_q == B_ANSWER_WRITE;
  assign bus.bresp   = resp_q;
  assign bus.arready = accepting && !writing;
  assign bus.rvalid  = state_q == B_ANSWER_READ;
  assign bus.rresp   = resp_q;
  assign bus.rdata   = rdata_q;
  assign idle        = state_q == B_IDLE && !bus.awvalid && !bus.arvalid;

  wire is_state = write_at[11:6] == AT_STATE[11:6];
  assign table_at    = at[9:2];
  assign table_write = takes && of_entry && !is_state;
  assign state_write = takes && is_state;
  assign state_entry = writing ? write_at[5:2] : read_at_q[5:2];

  // What a register does not have stays 0.
  always_comb begin
    table_in = bus.wdata;
    if (write_at[11:6] == AT_CONNECTIONS[11:6]) table_in[31:16] = '0;
    if (write_at[11:6] == AT_MEMORY[11:6]) table_in[31:30] = '0;
    if (write_at[11:6] == AT_PREFIX[11:6]) table_in[31:9] = '0;
  end

  logic [31:0] read_data;
  always_comb begin
    unique case (read_at_q)
      AT_TYPE:    read_data = BLOCK_TYPE;
      AT_VERSION: read_data = BLOCK_VERSION;
      AT_NEXT:    read_data = NEXT;
      AT_CTRL:    read_data = 32'(enable);
      AT_SECONDS: read_data = seconds;
      default: begin
        if (read_at_q[11:6] == AT_STATE[11:6]) read_data = 32'(state);
        else if (read_at_q[11:6] == AT_USED[11:6]) read_data = 32'(used);
        else read_data = table_out;
      end
    endcase
  end

  always_ff @(posedge clk) begin
    unique case (state_q)
      B_IDLE: begin
        read_at_q <= at;
        resp_q    <= !writable(write_at) ? AXI_DECERR : whole ? AXI_OKAY : AXI_SLVERR;
        if (writing) state_q <= B_ANSWER_WRITE;
        else if (accepting && bus.arvalid) state_q <= B_READ;
      end
      B_READ: begin
        // A token is not readable, whoever asks.
        rdata_q <= readable(read_at_q) ? read_data : '0;
        resp_q  <= readable(read_at_q) ? AXI_OKAY : AXI_DECERR;
        state_q <= B_ANSWER_READ;
      end
      B_ANSWER_WRITE: if (bus.bready) state_q <= B_IDLE;
      default: if (bus.rready) state_q <= B_IDLE;
    endcase
    if (takes && write_at == AT_CTRL) enable <= bus.wdata[0];
    if (rst) begin
      state_q <= B_IDLE;
      enable  <= 1'b0;
    end
  end
endmodule
