// SPDX-License-Identifier: Apache-2.0

// DHCP (RFC 2131) messages and options (RFC 2132), as far as the client uses them.
package dhcp_pkg;
  import packet_pkg::*;
  import services_pkg::*;

  localparam logic [15:0] PORT_SERVER = 16'd67;

  localparam logic [7:0] OP_REQUEST = 8'd1;
  localparam logic [7:0] OP_REPLY = 8'd2;
  localparam logic [15:0] HARDWARE = {8'd1, 8'd6};   // htype Ethernet, hlen
  localparam logic [31:0] COOKIE = 32'h6382_5363;
  localparam logic [15:0] FLAG_BROADCAST = 16'h8000;

  // Offsets in a message.
  localparam message_length_t AT_SNAME = 11'd44;
  localparam message_length_t AT_FILE = 11'd108;
  localparam message_length_t AT_COOKIE = 11'd236;
  localparam message_length_t AT_OPTIONS = 11'd240;

  typedef enum logic [7:0] {
    OPTION_PAD           = 8'd0,
    OPTION_SUBNET_MASK   = 8'd1,
    OPTION_ROUTER        = 8'd3,
    OPTION_HOST_NAME     = 8'd12,
    OPTION_REQUESTED_IP  = 8'd50,
    OPTION_LEASE_TIME    = 8'd51,
    OPTION_OVERLOAD      = 8'd52,
    OPTION_MESSAGE_TYPE  = 8'd53,
    OPTION_SERVER_ID     = 8'd54,
    OPTION_PARAMETERS    = 8'd55,
    OPTION_MAX_SIZE      = 8'd57,
    OPTION_T1            = 8'd58,
    OPTION_T2            = 8'd59,
    OPTION_VENDOR_CLASS  = 8'd60,
    OPTION_CLIENT_ID     = 8'd61,
    OPTION_END           = 8'd255
  } option_e;

  typedef enum logic [7:0] {
    DHCPDISCOVER = 8'd1,
    DHCPOFFER    = 8'd2,
    DHCPREQUEST  = 8'd3,
    DHCPDECLINE  = 8'd4,
    DHCPACK      = 8'd5,
    DHCPNAK      = 8'd6,
    DHCPRELEASE  = 8'd7
  } dhcp_type_e;

  // Times of a lease in seconds, up to 194 days. A longer one is taken as 194 days, so it is renewed earlier than it need be; one for ever
  // has no end.
  typedef logic [23:0] seconds_t;
  localparam seconds_t FOR_EVER = '1;
  function automatic seconds_t seconds(logic [31:0] value);
    return value[31:24] == '0 && value[23:1] != '1 ? value[23:0] : {23'h7fffff, &value};
  endfunction

  // A well-formed answer to the client's last message. Fields whose option is absent are 0.
  typedef struct packed {
    dhcp_type_e  kind;             // OFFER, ACK or NAK
    mac_t        mac;              // of the server, or of the relay agent
    ipv4_addr_t  yiaddr;
    ipv4_addr_t  server;
    ipv4_addr_t  router;
    logic [5:0]  prefix_length;
    seconds_t    lease;
    seconds_t    t1;
    seconds_t    t2;
  } dhcp_answer_t;

  typedef struct packed {
    dhcp_type_e  kind;             // DISCOVER, REQUEST, DECLINE or RELEASE
    logic [31:0] xid;
    logic [7:0]  secs;
    ipv4_addr_t  ip;               // of the client:
    logic        owns;             // it has it: ciaddr, and the packet's source
    logic        requests;         // or it is only a matter of this message: requested address
    ipv4_addr_t  server;
    mac_t        server_mac;
    logic        names_server;
    logic        unicast;          // to the server
  } dhcp_request_t;
endpackage
