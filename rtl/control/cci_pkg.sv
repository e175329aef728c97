// SPDX-License-Identifier: Apache-2.0

// Accesses to the registers that come by way of the network: what cci_guard takes and answers, and its settings.
package cci_pkg;
  import packet_pkg::*;

  typedef logic [19:0] cci_addr_t;

  // Where a client logs in and out: nacelle.rdl. LOGIN has four words.
  localparam cci_addr_t CCI_LOGIN  = 20'h000f0;
  localparam cci_addr_t CCI_LOGOUT = 20'h00100;
  localparam int unsigned TOKEN_WORDS = 4;

  typedef struct packed {
    logic        write;
    cci_addr_t   address;
    logic [31:0] data;
    logic [7:0]  index;         // of the word in its block,
    logic [7:0]  count;         // which has this many words
    logic        authorised;    // the client has logged in
  } cci_ask_t;

  typedef enum logic [1:0] {
    CCI_DONE,
    CCI_REFUSED,
    CCI_NOBODY,                 // there is no such register
    CCI_SILENT                  // its owner does not answer
  } cci_result_e;

  typedef struct packed {
    cci_result_e result;
    logic [31:0] data;
    logic        login;         // the client has logged in by this access,
    logic        logout;        // or out
  } cci_told_t;

  typedef struct packed {
    logic [15:0]              port;            // 0: no management by way of the network
    ipv4_addr_t               source;          // packets from other networks are dropped
    logic [5:0]               source_prefix;   // 0: from everywhere
    logic [47:0]              session_cycles;  // after so long without a packet a client has to log in again
    logic [TOKEN_WORDS-1:0][31:0] token;       // word 0 first; all zero: nobody can log in
  } cci_settings_t;
endpackage
