// SPDX-License-Identifier: Apache-2.0

// The registers of the copy engine on AXI4-Lite (copy.rdl): settings, the doorbell, and counters. They live from power-on. A write takes 3 cycles, a
// read 5.
module copy_registers
  import copy_pkg::*;
  import copy_regs_pkg::*;
#(
    parameter memory_pkg::addr_t MEMORY_BASE = '0,    // of the memory that is the host's
    parameter memory_pkg::addr_t MEMORY_BYTES = '0,
    parameter logic [31:0] NEXT = '0     // the block after this one
) (
    input  logic           clk,
    input  logic           rst,
    axil_if.slave          bus,          // 12 bits of address
    output logic           enable,
    output copy_settings_t settings,
    output index_t         producer,
    input  copy_state_t    state,
    input  copy_events_t   events,
    output logic           idle          // no access in progress
);
  logic [11:0] at;
  logic        write;
  logic [31:0] wdata, read_data;
  axil_access #(.READ_CYCLES(2)) access (
      .clk, .rst, .bus, .at, .write, .wdata, .readable(readable(at)), .writable(writable(at)), .rdata(read_data), .idle
  );

  logic [1:0][31:0] descriptors_q, completions_q;
  logic [3:0] descriptors_log_q, completions_log_q;
  logic [6:0] vector_q;
  wire set = write && !state.running;
  always_ff @(posedge clk) begin
    if (rst) begin
      enable            <= 1'b0;
      producer          <= '0;
      descriptors_q     <= '0;
      completions_q     <= '0;
      descriptors_log_q <= '0;
      completions_log_q <= '0;
      vector_q          <= '0;
    end else begin
      if (write && at == AT_CTRL) enable <= wdata[0];
      if (write && at == AT_PRODUCER) producer <= index_t'(wdata);
      else if (write && at == AT_CTRL && !wdata[0]) producer <= '0;
      if (set && at == AT_DESCRIPTORS_LO) descriptors_q[0] <= wdata;
      if (set && at == AT_DESCRIPTORS_HI) descriptors_q[1] <= wdata;
      if (set && at == AT_COMPLETIONS_LO) completions_q[0] <= wdata;
      if (set && at == AT_COMPLETIONS_HI) completions_q[1] <= wdata;
      if (set && at == AT_SIZES) begin
        descriptors_log_q <= wdata[3:0];
        completions_log_q <= wdata[11:8];
        vector_q          <= wdata[22:16];
      end
    end
  end
  assign settings = '{
      vector: vector_q,
      completions_log: completions_log_q,
      completions: memory_pkg::addr_t'(completions_q),
      descriptors_log: descriptors_log_q,
      descriptors: memory_pkg::addr_t'(descriptors_q)
  };

  logic [31:0] copies_q, errors_q;
  logic [63:0] bytes_q;
  always_ff @(posedge clk) begin
    if (rst) begin
      copies_q <= '0;
      errors_q <= '0;
      bytes_q  <= '0;
    end else begin
      copies_q <= copies_q + 32'(events.copied);
      errors_q <= errors_q + 32'(events.copied && events.failed);
      bytes_q  <= bytes_q + 64'(events.bytes);
    end
  end

  always_ff @(posedge clk) begin
    unique case (at)
      AT_TYPE:           read_data <= BLOCK_TYPE;
      AT_VERSION:        read_data <= BLOCK_VERSION;
      AT_NEXT:           read_data <= NEXT;
      AT_CTRL:           read_data <= 32'(enable);
      AT_STATE:          read_data <= {21'd0, state.stopped, 7'd0, state.running};
      AT_DESCRIPTORS_LO: read_data <= descriptors_q[0];
      AT_DESCRIPTORS_HI: read_data <= descriptors_q[1];
      AT_COMPLETIONS_LO: read_data <= completions_q[0];
      AT_COMPLETIONS_HI: read_data <= completions_q[1];
      AT_SIZES:          read_data <= {9'd0, vector_q, 4'd0, completions_log_q, 4'd0, descriptors_log_q};
      AT_PRODUCER:       read_data <= 32'(producer);
      AT_CONSUMER:       read_data <= 32'(state.consumer);
      AT_REPORTED:       read_data <= 32'(state.reported);
      AT_COPIES:         read_data <= copies_q;
      AT_ERRORS:         read_data <= errors_q;
      AT_BYTES_LO:       read_data <= bytes_q[31:0];
      AT_BYTES_HI:       read_data <= bytes_q[63:32];
      AT_MEMORY_LO:      read_data <= 32'(MEMORY_BASE);
      AT_MEMORY_HI:      read_data <= 32'(64'(MEMORY_BASE) >> 32);
      AT_MEMORY_SIZE_LO: read_data <= 32'(MEMORY_BYTES);
      AT_MEMORY_SIZE_HI: read_data <= 32'(64'(MEMORY_BYTES) >> 32);
      default:           read_data <= '0;
    endcase
  end
endmodule
