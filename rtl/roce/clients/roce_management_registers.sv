// SPDX-License-Identifier: Apache-2.0

// The registers of the management port on AXI4-Lite (management.rdl, docs/reference/management.md): one page of 4 KiB. A write to
// COMMAND starts a command; while it executes `busy` is set, and until `finish` writes to COMMAND and the arguments are ignored.
// An access takes 3 cycles; one at a time, writes before reads. One that no register has is answered with DECERR, a write to a part
// of one with SLVERR. In reset no access is accepted.
module roce_management_registers
  import memory_pkg::*;
  import roce_management_pkg::*;
  import management_regs_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    axil_if.slave        bus,           // 12 bits of address

    output words_t       argument,
    output man_command_e command,
    output logic         busy,          // a command is in progress
    input  logic         finish,        // pulse, with
    input  man_error_e   error,         // this
    input  words_t       result,
    input  logic         event_waits,
    input  logic         cqe_waits,
    input  logic         lost,          // pulse: an event was lost
    input  logic         refused,       // pulse: a connection was refused
    output logic         idle           // no access in progress
);
  typedef logic [11:0] offset_t;
  localparam offset_t ARRAY = offset_t'(4 * WORDS);   // bytes
  localparam logic [31:0] NEXT = {12'd0, cci_map_pkg::ADMISSION_PAGE, 12'd0};

  if (RESULT_WORDS != WORDS || AT_ARGUMENT[6:0] != '0 || AT_RESULT[6:0] != '0) begin : g_check
    $fatal(1, "roce_management_registers: as many results as arguments, each array at a multiple of 128");
  end

  typedef enum logic [1:0] {
    B_IDLE,
    B_READ,
    B_ANSWER_WRITE,
    B_ANSWER_READ
  } state_e;

  state_e      state_q;
  offset_t     read_at_q;
  logic [31:0] rdata_q;
  axi_resp_e   resp_q;
  logic        ok_q;
  logic [15:0] finished_q, lost_q, refused_q;

  wire       writing = !rst && state_q == B_IDLE && bus.awvalid && bus.wvalid;
  wire       whole = &bus.wstrb;                  // partial writes to a register are errors
  offset_t   write_at;
  assign     write_at = {bus.awaddr[11:2], 2'b00};
  wire       in_arguments = write_at >= AT_ARGUMENT && write_at < AT_ARGUMENT + ARRAY;
  wire       start = writing && whole && write_at == AT_COMMAND && !busy;

  assign bus.awready = writing;
  assign bus.wready  = writing;
  assign bus.bvalid  = state_q == B_ANSWER_WRITE;
  assign bus.bresp   = resp_q;
  assign bus.arready = !rst && state_q == B_IDLE && !writing;
  assign bus.rvalid  = state_q == B_ANSWER_READ;
  assign bus.rresp   = resp_q;
  assign bus.rdata   = rdata_q;
  assign idle        = state_q == B_IDLE && !bus.awvalid && !bus.arvalid;

  logic [31:0] read_data;
  wire  [4:0]  read_word = read_at_q[6:2];
  always_comb begin
    if (read_at_q[11:7] == AT_ARGUMENT[11:7]) read_data = argument[read_word];
    else if (read_at_q[11:7] == AT_RESULT[11:7]) read_data = result[read_word];
    else begin
      unique case (read_at_q)
        AT_TYPE:    read_data = BLOCK_TYPE;
        AT_VERSION: read_data = BLOCK_VERSION;
        AT_NEXT:    read_data = NEXT;
        AT_COMMAND: read_data = 32'(command);
        AT_STATUS:  read_data = {finished_q, error, 4'd0, event_waits, cqe_waits, ok_q, busy};
        AT_LOST:    read_data = {refused_q, lost_q};
        default:    read_data = '0;
      endcase
    end
  end

  always_ff @(posedge clk) begin
    unique case (state_q)
      B_IDLE: begin
        read_at_q <= {bus.araddr[11:2], 2'b00};
        resp_q    <= !writable(write_at) ? AXI_DECERR : whole ? AXI_OKAY : AXI_SLVERR;
        if (writing) state_q <= B_ANSWER_WRITE;
        else if (bus.arvalid) state_q <= B_READ;
      end
      B_READ: begin
        rdata_q <= readable(read_at_q) ? read_data : '0;
        resp_q  <= readable(read_at_q) ? AXI_OKAY : AXI_DECERR;
        state_q <= B_ANSWER_READ;
      end
      B_ANSWER_WRITE: if (bus.bready) state_q <= B_IDLE;
      default: if (bus.rready) state_q <= B_IDLE;
    endcase
    if (writing && whole && in_arguments && !busy) argument[write_at[6:2]] <= bus.wdata;
    if (start) begin
      command <= man_command_e'(bus.wdata[7:0]);
      busy    <= 1'b1;
      ok_q    <= 1'b0;
    end
    if (finish) begin
      busy       <= 1'b0;
      ok_q       <= error == MAN_OK;
      finished_q <= finished_q + 1'b1;
    end
    if (lost && !(&lost_q)) lost_q <= lost_q + 1'b1;
    if (refused && !(&refused_q)) refused_q <= refused_q + 1'b1;

    if (rst) begin
      state_q    <= B_IDLE;
      argument   <= '0;
      command    <= MAN_NONE;
      busy       <= 1'b0;
      ok_q       <= 1'b0;
      finished_q <= '0;
      lost_q     <= '0;
      refused_q  <= '0;
    end
  end
endmodule
