// SPDX-License-Identifier: Apache-2.0

// Publishes the description of the device (docs/reference/device-description.md): after reset it copies the text from a ROM to device
// memory at BASE and registers it as a region that every connection may READ but not write.
//
// `published` rises after about 1 cycle for each byte, and stays high. From then on `description` is constant; its length is 0 if memory
// answered with an error or no key was free: then the device has no description.
module rpc_description
  import memory_pkg::*;
  import roce_pkg::*;
  import rpc_pkg::*;
  import description_pkg::*;
#(
    parameter addr_t BASE = '0,
    parameter pd_t   PD = '0            // protection domain of the connections
) (
    input  logic         clk,
    input  logic         rst,
    stream_if.source     write,         // word_t: the text, to be written at BASE
    stream_if.sink       written,       // logic: memory reported an error
    stream_if.source     mr_cmd,        // mr_cmd_t
    stream_if.sink       mr_rsp,        // mr_rsp_t
    output description_t description,
    output logic         published
);
  localparam int unsigned INDEX_W = $clog2(WORDS + 1);
  typedef logic [INDEX_W-1:0] index_t;

  typedef enum logic [2:0] {
    FETCH,      // a word from the ROM
    WRITE,
    WRITTEN,
    REGISTER,
    REGISTERED,
    PUBLISHED
  } state_e;

  (* rom_style = "block", ram_style = "block" *) logic [31:0] rom[WORDS];
  initial for (int unsigned i = 0; i < WORDS; i++) rom[i] = DESCRIPTION[i];

  state_e       state_q;
  index_t       index_q;
  logic  [31:0] word_q;
  description_t description_q;

  wire last = index_q == index_t'(WORDS - 1);
  assign write.valid   = state_q == WRITE;
  assign write.data    = '{data: word_q, first: index_q == '0, last: last, error: 1'b0};
  assign written.ready = state_q == WRITTEN;

  assign mr_cmd.valid = state_q == REGISTER;
  assign mr_cmd.data  = '{
      op: MR_REGISTER,
      mr: '{pd: PD, qpn: '0, group: '0, addr: BASE, length: region_size_t'(BYTES), access: '{remote_read: 1'b1, default: '0}},
      default: '0
  };
  assign mr_rsp.ready = state_q == REGISTERED;

  assign description = description_q;
  assign published   = state_q == PUBLISHED;

  always_ff @(posedge clk) begin
    word_q <= rom[index_q];
    unique case (state_q)
      FETCH: state_q <= WRITE;
      WRITE:
      if (write.ready) begin
        index_q <= index_q + 1'b1;
        state_q <= last ? WRITTEN : FETCH;
      end
      WRITTEN:  if (written.valid) state_q <= written.data ? PUBLISHED : REGISTER;
      REGISTER: if (mr_cmd.ready) state_q <= REGISTERED;
      REGISTERED:
      if (mr_rsp.valid) begin
        if (mr_rsp.data.ok) description_q <= '{addr: 64'(BASE), rkey: mr_rsp.data.rkey, length: 32'(BYTES)};
        state_q <= PUBLISHED;
      end
      default:  state_q <= PUBLISHED;
    endcase
    if (rst) begin
      state_q       <= FETCH;
      index_q       <= '0;
      description_q <= '0;
    end
  end

  wire unused = &{1'b0, mr_rsp.data.mr};
endmodule
