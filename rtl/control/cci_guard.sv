// SPDX-License-Identifier: Apache-2.0

// Access control between the network and the register bus: an access that cci_policy_pkg does not give to this client is refused and never
// reaches the bus. One access at a time; 4 cycles more than the bus takes, 4 cycles for one that is refused. The bus always answers
// (axil_demux), and its answer is always taken.
//
// A client logs in by one block of four words to CCI_LOGIN, at the same address each or at ascending ones, which must equal the token. The
// words are compared here and go no further. All four are looked at before the answer, so that it says nothing about a part of the token.
// A wrong token is counted and closes nothing: 128 bits cannot be guessed, and strangers could keep out who has the right one.
module cci_guard
  import cci_pkg::*;
  import cci_policy_pkg::*;
  import memory_pkg::*;
(
    input  logic  clk,
    input  logic  rst,
    input  logic [TOKEN_WORDS-1:0][31:0] token,
    stream_if.sink   ask,       // cci_ask_t
    stream_if.source told,      // cci_told_t: one for each
    axil_if.master   bus,       // 20 bits of address
    output logic  refused,      // pulses: an access,
    output logic  login_wrong
);
  typedef enum logic [2:0] {
    S_IDLE,
    S_LOOK,
    S_CHECK,
    S_BUS,
    S_TELL
  } state_e;

  state_e    state_q;
  cci_ask_t  ask_q;
  cci_told_t told_q;
  logic      address_q, data_q;       // still to be taken by the bus

  // ---- login ----
  logic  logging_q, same_q;
  logic  at_login, at_logout, first, begins, word_same, complete, token_set;
  always_ff @(posedge clk) begin
    at_login  <= ask_q.write && ask_q.address[19:4] == CCI_LOGIN[19:4];
    at_logout <= ask_q.write && ask_q.address == CCI_LOGOUT;
    first     <= ask_q.index == '0;
    begins    <= ask_q.index == '0 && ask_q.address == CCI_LOGIN && ask_q.count == 8'(TOKEN_WORDS);
    word_same <= ask_q.data == token[ask_q.index[1:0]];
    complete  <= ask_q.index == 8'(TOKEN_WORDS - 1);
    token_set <= token != '0;
  end
  wire   logging = first ? begins : logging_q;
  wire   same = (first || same_q) && word_same;
  wire   right = same && token_set;

  // ---- policy ----
  cci_access_e access_q;
  wire allowed = access_q == CCI_PUBLIC || (access_q == CCI_AUTHORISED && ask_q.authorised);

  assign ask.ready  = state_q == S_IDLE;
  assign told.valid = state_q == S_TELL;
  assign told.data  = told_q;

  assign bus.awaddr  = ask_q.address;
  assign bus.awvalid = state_q == S_BUS && ask_q.write && address_q;
  assign bus.wdata   = ask_q.data;
  assign bus.wstrb   = '1;
  assign bus.wvalid  = state_q == S_BUS && ask_q.write && data_q;
  assign bus.bready  = state_q == S_BUS;
  assign bus.araddr  = ask_q.address;
  assign bus.arvalid = state_q == S_BUS && !ask_q.write && address_q;
  assign bus.rready  = state_q == S_BUS;

  function automatic cci_result_e result_of(logic [1:0] resp);
    return resp == AXI_OKAY ? CCI_DONE : resp == AXI_DECERR ? CCI_NOBODY : CCI_SILENT;
  endfunction

  always_ff @(posedge clk) begin
    refused       <= 1'b0;
    login_wrong   <= 1'b0;

    unique case (state_q)
      S_IDLE: begin
        cci_ask_t asked;
        asked = ask.data;
        ask_q     <= asked;
        access_q  <= cci_access(asked.address, asked.write);
        address_q <= 1'b1;
        data_q    <= 1'b1;
        if (ask.valid) state_q <= S_LOOK;
      end

      S_LOOK: state_q <= S_CHECK;

      S_CHECK: begin
        told_q  <= '{result: CCI_DONE, default: '0};
        state_q <= S_TELL;
        same_q    <= same;
        logging_q <= at_login && logging;
        if (at_login) begin
          if (!logging) begin
            told_q.result <= CCI_REFUSED;
            refused       <= 1'b1;
          end else if (complete) begin
            told_q.login  <= right;
            told_q.result <= right ? CCI_DONE : CCI_REFUSED;
            login_wrong   <= !right;
          end
        end else if (!allowed) begin
          told_q.result <= CCI_REFUSED;
          refused       <= 1'b1;
        end else if (at_logout) begin
          told_q.logout <= 1'b1;
        end else begin
          state_q <= S_BUS;
        end
      end

      S_BUS: begin
        if ((bus.awvalid && bus.awready) || (bus.arvalid && bus.arready)) address_q <= 1'b0;
        if (bus.wvalid && bus.wready) data_q <= 1'b0;
        told_q.data   <= bus.rdata;
        told_q.result <= result_of(ask_q.write ? bus.bresp : bus.rresp);
        if (ask_q.write ? bus.bvalid : bus.rvalid) state_q <= S_TELL;
      end

      default: if (told.ready) state_q <= S_IDLE;
    endcase
    if (rst) state_q <= S_IDLE;
  end
endmodule
