// SPDX-License-Identifier: Apache-2.0

// Sets a device up and enables it, for a board without software beside it: a master of the register bus that writes the addresses, the
// mode in which the device gets its IPv4 address, the random seed when there is one, and CTRL.enable. `done` then; a register that
// refuses its value stops all, and `failed` says so. One write at a time.
module device_start #(
    parameter logic [47:0] MAC = 48'h02_4e_41_43_4c_02,
    parameter logic [31:0] IP = 32'h0a_4d_00_02,      // static: 10.77.0.2
    parameter logic [5:0]  PREFIX_LEN = 6'd16,
    parameter logic [31:0] GATEWAY = 32'd0,           // 0: none
    parameter logic [1:0]  ADDRESS_MODE = 2'd0        // static
) (
    input  logic        clk,
    input  logic        rst,
    input  logic        seed_valid,
    input  logic [31:0] seed,                         // stays from `seed_valid` on
    axil_if.master      bus,
    output logic        done,
    output logic        failed
);
  // Registers, as rtl/control/nacelle.rdl has them; the test compares them.
  localparam logic [11:0] AT_MAC_LO = 12'h020;
  localparam logic [11:0] AT_MAC_HI = 12'h024;
  localparam logic [11:0] AT_IP = 12'h028;
  localparam logic [11:0] AT_PREFIX_LEN = 12'h02c;
  localparam logic [11:0] AT_GATEWAY = 12'h030;
  localparam logic [11:0] AT_RANDOM_SEED = 12'h034;
  localparam logic [11:0] AT_CTRL = 12'h038;
  localparam logic [11:0] AT_ADDRESS_MODE = 12'h110;

  typedef struct packed {
    logic [11:0] address;
    logic [31:0] value;
  } step_t;

  localparam int unsigned STEPS = 8;
  localparam int unsigned SEED = 6;                   // the step that waits for the seed
  step_t [STEPS-1:0] steps;
  always_comb begin
    steps[0]    = '{AT_MAC_LO, MAC[31:0]};
    steps[1]    = '{AT_MAC_HI, 32'(MAC[47:32])};
    steps[2]    = '{AT_IP, IP};
    steps[3]    = '{AT_PREFIX_LEN, 32'(PREFIX_LEN)};
    steps[4]    = '{AT_GATEWAY, GATEWAY};
    steps[5]    = '{AT_ADDRESS_MODE, 32'(ADDRESS_MODE)};
    steps[SEED] = '{AT_RANDOM_SEED, seed};
    steps[7]    = '{AT_CTRL, 32'd1};
  end

  logic [2:0] step_q;
  logic       waits_q;                                // for the response
  wire        last = step_q == 3'(STEPS - 1);
  wire        ready = !(bus.awvalid || bus.wvalid || waits_q || done || failed) && (step_q != 3'(SEED) || seed_valid);

  assign bus.awaddr  = 20'(steps[step_q].address);
  assign bus.wdata   = steps[step_q].value;
  assign bus.wstrb   = '1;
  assign bus.bready  = 1'b1;
  assign bus.arvalid = 1'b0;
  assign bus.araddr  = '0;
  assign bus.rready  = 1'b1;

  always_ff @(posedge clk) begin
    if (bus.awready) bus.awvalid <= 1'b0;
    if (bus.wready) bus.wvalid <= 1'b0;
    if (ready) begin
      bus.awvalid <= 1'b1;
      bus.wvalid  <= 1'b1;
      waits_q     <= 1'b1;
    end
    if (waits_q && bus.bvalid) begin
      waits_q <= 1'b0;
      failed  <= bus.bresp != '0;
      done    <= bus.bresp == '0 && last;
      if (!last) step_q <= step_q + 1'b1;
    end
    if (rst) begin
      step_q      <= '0;
      waits_q     <= 1'b0;
      done        <= 1'b0;
      failed      <= 1'b0;
      bus.awvalid <= 1'b0;
      bus.wvalid  <= 1'b0;
    end
  end

  logic unused_ok;
  assign unused_ok = &{1'b0, bus.arready, bus.rdata, bus.rresp, bus.rvalid};
endmodule
