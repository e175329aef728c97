// SPDX-License-Identifier: Apache-2.0

// IPbus 2.0: headers, codes and sizes. The names are those of the specification.
package ipbus_pkg;
  import services_pkg::*;

  localparam logic [3:0] VERSION = 4'd2;
  localparam logic [3:0] ORDER_MARK = 4'hf;      // as it stands in a word that was read in the right order
  localparam logic [3:0] REQUEST = 4'hf;         // information code of a request

  typedef enum logic [3:0] {
    PACKET_CONTROL = 4'd0,
    PACKET_STATUS  = 4'd1,
    PACKET_RESEND  = 4'd2
  } packet_kind_e;

  typedef struct packed {
    logic [3:0]  version;
    logic [3:0]  reserved;
    logic [15:0] id;                             // 0: not part of a sequence
    logic [3:0]  byte_order;
    logic [3:0]  kind;
  } packet_hdr_t;

  function automatic packet_hdr_t packet_hdr(logic [15:0] id, packet_kind_e kind);
    return '{version: VERSION, reserved: '0, id: id, byte_order: ORDER_MARK, kind: kind};
  endfunction

  // The packet identifier behind this one: 0 is not part of the sequence.
  function automatic logic [15:0] next_id(logic [15:0] id);
    return id == '1 ? 16'd1 : id + 1'b1;
  endfunction

  typedef enum logic [3:0] {
    TYPE_READ           = 4'd0,
    TYPE_WRITE          = 4'd1,
    TYPE_READ_SAME      = 4'd2,                  // non-incrementing
    TYPE_WRITE_SAME     = 4'd3,
    TYPE_RMW_BITS       = 4'd4,
    TYPE_RMW_SUM        = 4'd5,
    TYPE_READ_CONFIG    = 4'd6,
    TYPE_WRITE_CONFIG   = 4'd7
  } type_e;

  typedef enum logic [3:0] {
    INFO_SUCCESS       = 4'd0,
    INFO_BAD_HEADER    = 4'd1,
    INFO_READ_ERROR    = 4'd4,
    INFO_WRITE_ERROR   = 4'd5,
    INFO_READ_TIMEOUT  = 4'd6,
    INFO_WRITE_TIMEOUT = 4'd7
  } info_e;

  typedef struct packed {
    logic [3:0]  version;
    logic [11:0] id;
    logic [7:0]  words;
    logic [3:0]  kind;                           // type_e
    logic [3:0]  info;
  } transaction_hdr_t;

  localparam int unsigned STATUS_WORDS = 16;

  // The first words of the configuration space: whose it is, and its version.
  localparam logic [31:0] CONFIG_TYPE = "NACL";
  localparam logic [31:0] CONFIG_VERSION = 32'd1;

  // Responses are built and kept in one memory, each in a place of its own.
  localparam int unsigned PLACE_WORDS = 448;     // a message and some: 512 - 64, which is easy to multiply by
endpackage
