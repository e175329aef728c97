// SPDX-License-Identifier: Apache-2.0

// The way to the store in device memory: a word at a time, by one beat of the fabric. One access at a time; an answer for each, for a write
// when all readers see it. 3 cycles beside those of memory. `answer` must be taken for the next access to begin.
module image_memory
  import memory_pkg::*;
  import images_pkg::*;
#(
    parameter int unsigned DATA_W = 512,
    parameter addr_t       BASE   = '0     // of the store, in device memory
) (
    input  logic     clk,
    input  logic     rst,
    stream_if.sink   access,   // store_access_t
    stream_if.source answer,   // store_answer_t
    axi_if.master    mem
);
  localparam int unsigned LANES = DATA_W / 32;
  localparam int unsigned LANE_W = $clog2(LANES);

  typedef enum logic [1:0] {
    IDLE,
    ASK,      // the address
    WAIT,     // memory's answer
    ANSWER
  } state_e;

  state_e        state_q;
  store_access_t access_q;
  store_answer_t answer_q;
  logic          data_q;       // still to be taken by the fabric

  store_access_t asked;
  assign asked = access.data;
  wire [LANE_W-1:0] lane = access_q.word[LANE_W-1:0];
  wire addr_t addr = BASE + (addr_t'(access_q.word) << 2);

  assign access.ready = state_q == IDLE;
  assign answer.valid = state_q == ANSWER;
  assign answer.data  = answer_q;

  assign mem.awid    = '0;
  assign mem.awaddr  = addr;
  assign mem.awlen   = '0;
  assign mem.awvalid = state_q == ASK && access_q.write;
  assign mem.wdata   = {LANES{access_q.data}};
  assign mem.wlast   = 1'b1;
  assign mem.wvalid  = data_q;
  assign mem.bready  = 1'b1;
  assign mem.arid    = '0;
  assign mem.araddr  = addr;
  assign mem.arlen   = '0;
  assign mem.arvalid = state_q == ASK && !access_q.write;
  assign mem.rready  = 1'b1;
  always_comb begin
    mem.wstrb = '0;
    mem.wstrb[lane*4+:4] = '1;
  end

  always_ff @(posedge clk) begin
    unique case (state_q)
      IDLE: begin
        access_q <= access.data;
        if (access.valid) state_q <= ASK;
      end
      ASK: if (access_q.write ? mem.awready : mem.arready) state_q <= WAIT;
      WAIT: begin
        answer_q <= '{
            error: (access_q.write ? mem.bresp : mem.rresp) != AXI_OKAY,
            data: mem.rdata[lane*32+:32]
        };
        if (access_q.write ? mem.bvalid : mem.rvalid) state_q <= ANSWER;
      end
      default: if (answer.ready) state_q <= IDLE;
    endcase
    data_q <= state_q == IDLE ? access.valid && asked.write : data_q && !mem.wready;
    if (rst) begin
      state_q <= IDLE;
      data_q  <= 1'b0;
    end
  end

  wire unused = &{1'b0, mem.bid, mem.rid, mem.rlast};
endmodule
