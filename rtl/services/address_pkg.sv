// SPDX-License-Identifier: Apache-2.0

// The device's addresses: settings, status, and what passes between those who get them and those who keep them.
package address_pkg;
  import packet_pkg::*;

  // Times of both are counted in ticks of 1/16 s.
  localparam int unsigned TICKS = 16;                // in a second

  // Where the address is to come from (ADDRESS_MODE). The fall-backs are used while no DHCP server answers.
  typedef enum logic [1:0] {
    MODE_STATIC,
    MODE_DHCP,
    MODE_DHCP_OR_STATIC,
    MODE_DHCP_OR_LINK_LOCAL
  } address_mode_e;

  // Where it has come from.
  typedef enum logic [1:0] {
    ORIGIN_NONE,
    ORIGIN_STATIC,
    ORIGIN_DHCP,
    ORIGIN_LINK_LOCAL
  } address_origin_e;

  typedef struct packed {
    ipv4_addr_t ip;
    logic [5:0] prefix_length;
    ipv4_addr_t gateway;                             // 0: none
  } address_t;

  // ---- IPv6 ----
  typedef logic [31:0] seconds32_t;                  // all ones: for ever

  typedef struct packed {
    logic     on;                                    // the device has a link-local address
    logic     autonomous;                            // and what routers offer
    ip_addr_t fixed;                                 // the static global address; 0: none
  } ipv6_settings_t;

  // Where the global address has come from.
  typedef enum logic [1:0] {
    IPV6_NONE,
    IPV6_STATIC,
    IPV6_ROUTER
  } ipv6_origin_e;

  typedef enum logic [2:0] {
    IPV6_REST,                                       // as ADDRESS_REST and so on
    IPV6_WAIT,
    IPV6_PROBE,
    IPV6_PAUSE,
    IPV6_LEAVE,
    IPV6_ABANDON
  } ipv6_state_e;

  typedef struct packed {
    logic         has_local;                         // the link-local address is in use
    ipv6_origin_e origin;
    ipv6_state_e  state;
    logic         deprecated;                        // the global address should get no new connections (RFC 4862, 5.5.4)
    seconds32_t   valid_left;
    seconds32_t   preferred_left;
    logic [15:0]  router_left;
  } ipv6_status_t;

  // A prefix that a router offers: addresses of it are on this link, seconds that an address of it is valid, and preferred.
  typedef struct packed {
    logic [63:0] prefix;
    logic        on_link;
    seconds32_t  valid;
    seconds32_t  preferred;
  } prefix_t;

  // What a router has said of itself, and of one prefix.
  typedef struct packed {
    logic [63:0] router;                             // interface identifier
    logic [15:0] lifetime;                           // seconds; 0: it is no router
    logic        has_prefix;
    logic        current;                            // the prefix is the one in use
    prefix_t     prefix;
  } advertisement_t;

  typedef struct packed {
    address_mode_e mode;
    logic          renew;                            // pulse: renew the lease now; begin again after a release
    logic          give_up;                          // pulse: release the lease
    address_t      fixed;                            // of the modes with a static address
    ipv6_settings_t ipv6;
    logic [31:0]   seed;                             // of the random times and transaction ids; read in reset
  } address_settings_t;

  // Names of RFC 2131, 4.4; CHECKING: the address of an ACK is probed (RFC 5227).
  typedef enum logic [2:0] {
    DHCP_OFF,
    DHCP_INIT,
    DHCP_SELECTING,
    DHCP_REQUESTING,
    DHCP_CHECKING,
    DHCP_BOUND,
    DHCP_RENEWING,
    DHCP_REBINDING
  } dhcp_state_e;

  typedef enum logic [2:0] {
    ADDRESS_REST,                                    // nothing to do: there is an address, or none to be had
    ADDRESS_WAIT,                                    // before the first probe
    ADDRESS_PROBE,                                   // is somebody else using it?
    ADDRESS_PAUSE,                                   // after a conflict
    ADDRESS_LEAVE,                                   // the address in use is given up: connections are being closed
    ADDRESS_ABANDON                                  // what is left of them is dropped
  } address_state_e;

  typedef struct packed {
    address_origin_e origin;
    address_state_e  state;
    dhcp_state_e     dhcp;
    logic [23:0]     lease_left;                     // seconds; all ones: for ever
    ipv4_addr_t      server;                         // of the lease, or of the last one
    ipv6_status_t    ipv6;
  } address_status_t;

  // What the DHCP client has got. Valid from the ACK until the lease ends.
  typedef struct packed {
    logic     valid;
    address_t address;
  } lease_t;

  // Events: one pulse each, counted by the control plane.
  typedef struct packed {
    logic conflict;                // another host had, or wanted, the address in use or the one that was probed (RFC 5227)
    logic defended;                // an address in use was announced once more because of that
    logic lost;                    // an address in use was given up: all connections were closed
    logic lease;                   // DHCP: an ACK, of a new lease or of a renewal
    logic lease_lost;              // DHCP: a lease has ended without a release
    logic nak;                     // DHCP: a NAK
    logic drop_malformed;          // DHCP: an answer that is not well formed, or lacks an option that it must have
    logic drop_unexpected;         // DHCP: not for the current transaction, too many, or of no use in this state
    logic ipv6_conflict;           // IPv6: another host had the address that was probed (RFC 4862)
    logic ipv6_lost;               // IPv6: the global address in use was given up: the connections that used it were closed
    logic router_heard;            // IPv6: a router advertisement
    logic drop_router;             // IPv6: a router advertisement that is not well formed
  } address_events_t;

  // What the connections are told when addresses go.
  typedef struct packed {
    own_set_t leaving;                               // close those that use one of these: peers get a DREQ
    logic     abandon;                               // and do not wait for their answers any longer
  } withdrawal_t;
endpackage
