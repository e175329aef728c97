// SPDX-License-Identifier: Apache-2.0

// Multicast DNS (RFC 6762) and DNS-SD (RFC 6763): the names of the device, and the one message that it sends, with all of its records.
package mdns_pkg;
  import packet_pkg::*;

  localparam logic [15:0] TYPE_A = 16'd1;
  localparam logic [15:0] TYPE_PTR = 16'd12;
  localparam logic [15:0] TYPE_TXT = 16'd16;
  localparam logic [15:0] TYPE_SRV = 16'd33;
  localparam logic [15:0] TYPE_ANY = 16'd255;
  localparam logic [14:0] CLASS_IN = 15'd1;
  localparam logic [14:0] CLASS_ANY = 15'd255;
  localparam logic SHARED = 1'b0;                    // above the class: others may have records of this name and type, too,
  localparam logic UNIQUE = 1'b1;                    // or not: caches are flushed (RFC 6762, 10.2)
  localparam logic [15:0] FLAGS_ANSWER = 16'h8400;   // QR, AA (18.2, 18.4)
  localparam logic [31:0] TTL_HOST = 32'd120;        // of records that have to do with the host's name or address (10)
  localparam logic [31:0] TTL_OTHER = 32'd4500;

  // ---- names: labels, each behind its length (RFC 1035, 3.1). The digits are those of the MAC address ----
  localparam int unsigned DIGITS = 12;
  typedef logic [3:0] digit_at_t;                    // 0: the most significant one
  localparam logic [8*9-1:0] HOST_START = {8'(8 + DIGITS), "nacelle-"};
  localparam logic [8*(9+DIGITS)-1:0] HOST_LABEL = {HOST_START, (8 * DIGITS)'(0)};
  localparam logic [8*7-1:0] LOCAL_NAME = {8'd5, "local", 8'd0};
  localparam logic [8*5-1:0] UDP_LABEL = {8'd4, "_udp"};
  localparam logic [8*9-1:0] SERVICE_LABEL = {8'd8, "_nacelle"};
  localparam logic [8*18-1:0] TYPES_START = {8'd9, "_services", 8'd7, "_dns-sd"};
  localparam int unsigned DIGITS_AT = $bits(HOST_START) / 8;

  function automatic logic [7:0] hex_digit(mac_t mac, digit_at_t at);
    logic [DIGITS-1:0][3:0] digits;
    logic [3:0] value;
    digits = mac;
    value  = digits[4'(DIGITS - 1) - at];
    return value < 4'd10 ? 8'h30 + 8'(value) : 8'h57 + 8'(value);
  endfunction

  // The names that are looked for, side by side.
  typedef struct packed {
    logic host;                                      // nacelle-<mac>.local
    logic instance_name;                             // nacelle-<mac>._nacelle._udp.local
    logic service;                                   // _nacelle._udp.local
    logic types;                                     // _services._dns-sd._udp.local (RFC 6763, 9)
  } name_set_t;

  // ---- the message: five records, each name once and then as a pointer (RFC 1035, 4.1.4) ----
  localparam logic [15:0] RECORDS = 16'd5;
  localparam logic [8*12-1:0] HEADER = {16'd0, FLAGS_ANSWER, 16'd0, RECORDS, 16'd0, 16'd0};
  localparam int unsigned SERVICE_AT = $bits(HEADER) / 8;
  localparam int unsigned UDP_AT = SERVICE_AT + $bits(SERVICE_LABEL) / 8;
  localparam int unsigned LOCAL_AT = UDP_AT + $bits(UDP_LABEL) / 8;
  function automatic logic [15:0] pointer(int unsigned to);
    return 16'hc000 | 16'(to);
  endfunction

  localparam int unsigned HOST_BYTES = $bits(HOST_LABEL) / 8 + 2;   // with the pointer behind it
  localparam logic [8*(21+10+HOST_BYTES)-1:0] PTR_RECORD = {
    SERVICE_LABEL, UDP_LABEL, LOCAL_NAME, TYPE_PTR, SHARED, CLASS_IN, TTL_OTHER, 16'(HOST_BYTES), HOST_LABEL, pointer(SERVICE_AT)
  };
  localparam int unsigned TYPES_AT = SERVICE_AT + $bits(PTR_RECORD) / 8;
  localparam int unsigned INSTANCE_AT = TYPES_AT - HOST_BYTES;
  localparam logic [8*32-1:0] TYPES_RECORD = {
    TYPES_START, pointer(UDP_AT), TYPE_PTR, SHARED, CLASS_IN, TTL_OTHER, 16'd2, pointer(SERVICE_AT)
  };
  localparam int unsigned SRV_AT = TYPES_AT + $bits(TYPES_RECORD) / 8;
  localparam logic [8*(18+HOST_BYTES)-1:0] SRV_RECORD = {                  // priority, weight, port
    pointer(INSTANCE_AT), TYPE_SRV, UNIQUE, CLASS_IN, TTL_HOST, 16'(6 + HOST_BYTES), 48'd0, HOST_LABEL, pointer(LOCAL_AT)
  };
  localparam int unsigned TXT_AT = SRV_AT + $bits(SRV_RECORD) / 8;
  localparam int unsigned HOST_AT = TXT_AT - HOST_BYTES;
  localparam logic [8*38-1:0] TXT_STRINGS = {8'd9, "txtvers=1", 8'd14, "device=nacelle", 8'd12, "contract=0.1"};
  localparam logic [8*50-1:0] TXT_RECORD = {
    pointer(INSTANCE_AT), TYPE_TXT, UNIQUE, CLASS_IN, TTL_OTHER, 16'($bits(TXT_STRINGS) / 8), TXT_STRINGS
  };
  localparam int unsigned A_AT = TXT_AT + $bits(TXT_RECORD) / 8;
  localparam logic [8*16-1:0] A_RECORD = {pointer(HOST_AT), TYPE_A, UNIQUE, CLASS_IN, TTL_HOST, 16'd4, 32'd0};
  localparam int unsigned ANSWER_BYTES = A_AT + $bits(A_RECORD) / 8;
  localparam logic [8*ANSWER_BYTES-1:0] ANSWER = {HEADER, PTR_RECORD, TYPES_RECORD, SRV_RECORD, TXT_RECORD, A_RECORD};

  // Where its bytes are not constant: the port is behind priority and weight, the address at the end.
  localparam int unsigned PORT_AT = HOST_AT - 2;
  localparam int unsigned IP_AT = ANSWER_BYTES - 4;
  typedef enum logic [2:0] {
    BYTE_FIXED,
    BYTE_TTL,
    BYTE_DIGIT,
    BYTE_PORT,
    BYTE_IP
  } byte_e;

  function automatic byte_e byte_kind(int unsigned at);
    if (at >= INSTANCE_AT + DIGITS_AT && at < INSTANCE_AT + DIGITS_AT + DIGITS) return BYTE_DIGIT;
    if (at >= HOST_AT + DIGITS_AT && at < HOST_AT + DIGITS_AT + DIGITS) return BYTE_DIGIT;
    if (at >= PORT_AT && at < PORT_AT + 2) return BYTE_PORT;
    if (at >= IP_AT) return BYTE_IP;
    // The TTL is in front of the length of the data.
    if (at >= INSTANCE_AT - 6 && at < INSTANCE_AT - 2) return BYTE_TTL;
    if (at >= SRV_AT - 8 && at < SRV_AT - 4) return BYTE_TTL;
    if (at >= SRV_AT + 6 && at < SRV_AT + 10) return BYTE_TTL;
    if (at >= TXT_AT + 6 && at < TXT_AT + 10) return BYTE_TTL;
    if (at >= A_AT + 6 && at < A_AT + 10) return BYTE_TTL;
    return BYTE_FIXED;
  endfunction

  // Events: one pulse each; of service_events_t.
  typedef struct packed {
    logic mdns_query;
    logic mdns_sent;
    logic mdns_other;
    logic mdns_busy;
    logic drop_mdns;
  } mdns_events_t;

  // A query for records of the device, and where a unicast answer to it goes.
  typedef struct packed {
    logic       unicast;           // every question asks for that (RFC 6762, 5.4)
    mac_t       mac;
    ipv4_addr_t ip;
  } mdns_query_t;

  // A message to send: to the group, or to one host.
  typedef struct packed {
    logic       goodbye;           // the records are no longer valid (10.1)
    logic       unicast;
    mac_t       mac;
    ipv4_addr_t ip;
    ipv4_addr_t own_ip;
  } mdns_message_t;
endpackage
