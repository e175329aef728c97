/* SPDX-License-Identifier: Apache-2.0
 * Made by rtl/control/generate.py from the descriptions of the registers. Do not edit.
 *
 * The registers of a device on its control bus: byte addresses. NACELLE_<BLOCK>_BASE is the address of a block; if there
 * are several, number i is NACELLE_<BLOCK>_BLOCK_STRIDE * i behind it. NACELLE_<BLOCK>_<REGISTER> is the offset of a
 * register in its block. A block begins with TYPE, VERSION and NEXT, the address of the next one; the first is at 0.
 */
#ifndef NACELLE_REGISTERS_H
#define NACELLE_REGISTERS_H

/* ---- Device ---- */

#define NACELLE_DEVICE_BASE 0x00000u
#define NACELLE_DEVICE_BLOCK_TYPE 0x4e41434cu /* NACL */
#define NACELLE_DEVICE_BLOCK_VERSION 0x00000001u

#define NACELLE_DEVICE_TYPE 0x000u /* r: 0x4e41434c, "NACL": this is a Nacelle device. */
#define NACELLE_DEVICE_VERSION 0x004u /* r: Version of the device contract: major in the upper 16 bits, minor in the lower. */
#define NACELLE_DEVICE_NEXT 0x008u /* r: Byte address of the next block, that of the management port. */
#define NACELLE_DEVICE_CLOCK_HZ 0x00cu /* r: Frequency of the device clock that times are counted by. */
#define NACELLE_DEVICE_QPS 0x010u /* r: Connections that the device takes at once. */
#define NACELLE_DEVICE_SOCKETS 0x014u /* r: Sockets for kernels. */
#define NACELLE_DEVICE_DRAM_BYTES_LO 0x018u /* r: Device memory in bytes, lower half. */
#define NACELLE_DEVICE_DRAM_BYTES_HI 0x01cu /* r: Device memory in bytes, upper half. */
#define NACELLE_DEVICE_MAC_LO 0x020u /* rw: Lower 32 bits of the MAC address as a 48-bit number: 02:00:00:00:00:01 is 0x020000000001. */
#define NACELLE_DEVICE_MAC_HI 0x024u /* rw: Upper 16 bits of the MAC address. */
#define NACELLE_DEVICE_IP 0x028u /* rw: Static IPv4 address as a number: 10.0.0.1 is 0x0a000001. The one in use is in ADDRESS_IP. */
#define NACELLE_DEVICE_PREFIX_LEN 0x02cu /* rw: Length of the static address' network prefix, 0 to 32. */
#define NACELLE_DEVICE_GATEWAY 0x030u /* rw: IPv4 address of the gateway to other networks that goes with the static address; 0: none. */
#define NACELLE_DEVICE_RANDOM_SEED 0x034u /* w: Seed of keys, communication ids and starting PSNs. Write a random number before CTRL.enable. */
#define NACELLE_DEVICE_CTRL 0x038u /* rw: Control. */
#define NACELLE_DEVICE_CTRL_ENABLE_SHIFT 0 /* The device takes frames and answers. */
#define NACELLE_DEVICE_CTRL_ENABLE_MASK 0x00000001u
#define NACELLE_DEVICE_RPC_PORT 0x03cu /* rw: Where callers connect. */
#define NACELLE_DEVICE_KEEPALIVE_MS 0x040u /* rw: A connection idle for this long is probed by a zero-length RDMA WRITE; 0: never. */
#define NACELLE_DEVICE_KERNEL_TIMEOUT_MS 0x044u /* rw: A kernel that runs longer is given up; 0: no limit. */
#define NACELLE_DEVICE_EXTENSIONS 0x048u /* rw: Transport extensions are offered to peers and taken (docs/reference/extensions.md). */
#define NACELLE_DEVICE_LISTEN_PORT 0x04cu /* rw: Port of the RDMA IP CM service (port space TCP) at which the management port takes connections; 0: none. */
#define NACELLE_DEVICE_MAX_CONNECTIONS_PER_PEER 0x050u /* rw: Connections that callers with one IPv4 address may have at once; the next REQ is refused (REJ 3). 0: no limit. After reset a quarter of QPS. */
#define NACELLE_DEVICE_MAX_HALF_OPEN 0x054u /* rw: Callers' connections whose REP has not been followed by an RTU or a request yet, in all; the next REQ is refused (REJ 3). 0: no limit. After reset half of QPS. */
#define NACELLE_DEVICE_MAX_HALF_OPEN_PER_PEER 0x058u /* rw: Likewise, of callers with one IPv4 address. 0: as many as MAX_CONNECTIONS_PER_PEER, which counts them too. */
#define NACELLE_DEVICE_MEMORY_PER_CALLER 0x05cu /* rw: KiB of memory, in whole pages of 4, that the regions of all connections of one IPv4 address may take; 0: no limit. */
#define NACELLE_DEVICE_MESSAGES_LO 0x060u /* r: Device address of the memory for the messages of the first queue pair, QPN 2, lower half. Whoever has the queue pair uses it: the RPC engine or management. */
#define NACELLE_DEVICE_MESSAGES_HI 0x064u /* r: Likewise, upper half. */
#define NACELLE_DEVICE_MESSAGES_BYTES 0x068u /* r: Bytes of it. That of the next queue pair follows at once. */
#define NACELLE_DEVICE_MRS 0x06cu /* r: Memory regions that there can be at once. */
#define NACELLE_DEVICE_DATA_W 0x070u /* r: Width of the data path in bits. */
#define NACELLE_DEVICE_RP_ENABLE 0x080u /* rw: Congestion control: rates are limited, and data packets sent as ECN capable (docs/reference/congestion.md; names as Linux has them for mlx5). */
#define NACELLE_DEVICE_NP_ENABLE 0x084u /* rw: Congestion control: packets that met congestion are answered by CNPs. */
#define NACELLE_DEVICE_CLAMP_TGT_RATE 0x088u /* rw: Every cut takes the rate before it as the new target. */
#define NACELLE_DEVICE_CLAMP_TGT_RATE_AFTER_TIME_INC 0x08cu /* rw: Likewise if the timer has raised the rate since the last cut. */
#define NACELLE_DEVICE_DCE_TCP_G 0x090u /* rw: 1 - g in 1/1024, g being the gain of alpha. */
#define NACELLE_DEVICE_DCE_TCP_RTT 0x094u /* rw: Microseconds without a cut after which alpha decays; 0: never. */
#define NACELLE_DEVICE_INITIAL_ALPHA_VALUE 0x098u /* rw: Alpha at the first CNP, in 1/1024. */
#define NACELLE_DEVICE_RATE_REDUCE_MONITOR_PERIOD 0x09cu /* rw: Microseconds between two cuts, at least. */
#define NACELLE_DEVICE_RATE_TO_SET_ON_FIRST_CNP 0x0a0u /* rw: Mb/s; 0: the maximum, cut as by any CNP. */
#define NACELLE_DEVICE_RPG_AI_RATE 0x0a4u /* rw: Mb/s of additive increase. */
#define NACELLE_DEVICE_RPG_HAI_RATE 0x0a8u /* rw: Mb/s of hyper increase. */
#define NACELLE_DEVICE_RPG_BYTE_RESET 0x0acu /* rw: Bytes sent between increases; 0: not counted. */
#define NACELLE_DEVICE_RPG_TIME_RESET 0x0b0u /* rw: Microseconds between increases; 0: not counted. */
#define NACELLE_DEVICE_RPG_GD 0x0b4u /* rw: A cut takes alpha * 1024 / 2^this of the rate. */
#define NACELLE_DEVICE_RPG_MIN_DEC_FAC 0x0b8u /* rw: Percent of the rate that a cut leaves, at least. */
#define NACELLE_DEVICE_RPG_MIN_RATE 0x0bcu /* rw: Mb/s, lowest rate. */
#define NACELLE_DEVICE_RPG_MAX_RATE 0x0c0u /* rw: Mb/s, highest rate; 0: line rate. */
#define NACELLE_DEVICE_RPG_THRESHOLD 0x0c4u /* rw: Stages of fast recovery. */
#define NACELLE_DEVICE_MIN_TIME_BETWEEN_CNPS 0x0c8u /* rw: Microseconds between two CNPs of a QP, at least. */
#define NACELLE_DEVICE_CCI_PORT 0x0d0u /* rw: UDP port at which registers are read and written by IPbus 2.0; 0: none. */
#define NACELLE_DEVICE_CCI_SOURCE 0x0d4u /* rw: IPv4 address of a network; IPbus packets from other networks are dropped. */
#define NACELLE_DEVICE_CCI_SOURCE_PREFIX 0x0d8u /* rw: Length of that network's prefix, 0 to 32; 0: packets are taken from everywhere. */
#define NACELLE_DEVICE_CCI_SESSION 0x0dcu /* rw: Seconds after which an IPbus client that sends nothing has to log in again. */
#define NACELLE_DEVICE_CCI_TOKEN_0 0x0e0u /* w: The token of 16 bytes with which IPbus clients log in, its first word. All zero: nobody can, and nothing can be written by way of the network. */
#define NACELLE_DEVICE_CCI_TOKEN_1 0x0e4u /* w: Second word of the token. */
#define NACELLE_DEVICE_CCI_TOKEN_2 0x0e8u /* w: Third word of the token. */
#define NACELLE_DEVICE_CCI_TOKEN_3 0x0ecu /* w: Fourth word of the token. */
#define NACELLE_DEVICE_CCI_LOGIN_0 0x0f0u /* w: An IPbus client that writes the four words of the token here in one block, all to this address or to this and the next three, is authorised. */
#define NACELLE_DEVICE_CCI_LOGIN_1 0x0f4u /* w: Second word of the block. */
#define NACELLE_DEVICE_CCI_LOGIN_2 0x0f8u /* w: Third word of the block. */
#define NACELLE_DEVICE_CCI_LOGIN_3 0x0fcu /* w: Fourth word of the block. */
#define NACELLE_DEVICE_CCI_LOGOUT 0x100u /* w: An IPbus client that writes anything here is no longer authorised. */
#define NACELLE_DEVICE_ADDRESS_MODE 0x110u /* rw: Where the IPv4 address comes from. */
#define NACELLE_DEVICE_DHCP_COMMAND 0x114u /* w: Commands for the DHCP client: a bit that is written as 1 acts once. */
#define NACELLE_DEVICE_DHCP_COMMAND_RENEW_SHIFT 0 /* Renew the lease now; after a release, ask for one again. */
#define NACELLE_DEVICE_DHCP_COMMAND_RENEW_MASK 0x00000001u
#define NACELLE_DEVICE_DHCP_COMMAND_GIVE_UP_SHIFT 1 /* Give the address back, and have none until the next `renew` or change of the mode. */
#define NACELLE_DEVICE_DHCP_COMMAND_GIVE_UP_MASK 0x00000002u
#define NACELLE_DEVICE_ADDRESS_IP 0x118u /* r: IPv4 address in use; 0: none. */
#define NACELLE_DEVICE_ADDRESS_PREFIX 0x11cu /* r: Length of its network prefix. */
#define NACELLE_DEVICE_ADDRESS_GATEWAY 0x120u /* r: Gateway to other networks; 0: none. */
#define NACELLE_DEVICE_ADDRESS_STATE 0x124u /* r: State of the address. */
#define NACELLE_DEVICE_ADDRESS_STATE_ORIGIN_SHIFT 0 /* Where the address has come from: 0 there is none, 1 static, 2 DHCP, 3 link-local. */
#define NACELLE_DEVICE_ADDRESS_STATE_ORIGIN_MASK 0x00000003u
#define NACELLE_DEVICE_ADDRESS_STATE_STATE_SHIFT 4 /* What is done about it: 0 nothing, 1 before the first probe, 2 probing, 3 pause after a conflict, 4 connections are being closed, 5 the rest of them is dropped. */
#define NACELLE_DEVICE_ADDRESS_STATE_STATE_MASK 0x00000070u
#define NACELLE_DEVICE_ADDRESS_STATE_DHCP_SHIFT 8 /* State of the DHCP client: 0 off, 1 INIT, 2 SELECTING, 3 REQUESTING, 4 the address is probed, 5 BOUND, 6 RENEWING, 7 REBINDING. */
#define NACELLE_DEVICE_ADDRESS_STATE_DHCP_MASK 0x00000700u
#define NACELLE_DEVICE_LEASE_LEFT 0x128u /* r: Seconds until the DHCP lease ends; 0: there is none, 0xffffff: it does not end. */
#define NACELLE_DEVICE_DHCP_SERVER 0x12cu /* r: Identifier of the DHCP server of the lease, or of the last one. */
#define NACELLE_DEVICE_DISCOVERY 0x130u /* rw: How the device makes itself known on its network (docs/reference/discovery.md). */
#define NACELLE_DEVICE_DISCOVERY_MDNS_SHIFT 0 /* By multicast DNS. In use at once: the device announces itself, or says goodbye. */
#define NACELLE_DEVICE_DISCOVERY_MDNS_MASK 0x00000001u
#define NACELLE_DEVICE_DISCOVERY_LLDP_SHIFT 1 /* By LLDP, to the switch at the other end of the cable. In use at once. */
#define NACELLE_DEVICE_DISCOVERY_LLDP_MASK 0x00000002u
#define NACELLE_DEVICE_FLOW_CONTROL 0x140u /* rw: What the device does as the switch at its port asks. In use from the next frame on. */
#define NACELLE_DEVICE_FLOW_CONTROL_PAUSE_SHIFT 0 /* PAUSE frames (IEEE 802.3, annex 31B) stop all frames of the device. */
#define NACELLE_DEVICE_FLOW_CONTROL_PAUSE_MASK 0x00000001u
#define NACELLE_DEVICE_FLOW_CONTROL_PFC_SHIFT 1 /* PFC frames (IEEE 802.1Q, clause 36) stop those of the priorities that they name. */
#define NACELLE_DEVICE_FLOW_CONTROL_PFC_MASK 0x00000002u
#define NACELLE_DEVICE_PAUSE_QUANTA 0x144u /* rw: Pause quanta, 512 bit times of the line, that pass in a cycle of the device, in 1/65536. After reset those of 100 Gb/s. */
#define NACELLE_DEVICE_PAUSE_LIMIT_MS 0x148u /* rw: Milliseconds that a pause may last without an end; then it is ignored until it ends. 0: for ever. */
#define NACELLE_DEVICE_PRIORITY 0x14cu /* rw: Priorities of the frames that the device sends: in their VLAN tags, and in PFC frames that stop them. */
#define NACELLE_DEVICE_PRIORITY_ROCE_SHIFT 0 /* Of RoCE frames. */
#define NACELLE_DEVICE_PRIORITY_ROCE_MASK 0x00000007u
#define NACELLE_DEVICE_PRIORITY_OTHER_SHIFT 4 /* Of all other frames. */
#define NACELLE_DEVICE_PRIORITY_OTHER_MASK 0x00000070u
#define NACELLE_DEVICE_VLAN 0x150u /* rw: The VLAN that the device is in. In use from the next frame on. */
#define NACELLE_DEVICE_VLAN_VID_SHIFT 0 /* VLAN identifier, 1 to 4094. */
#define NACELLE_DEVICE_VLAN_VID_MASK 0x00000fffu
#define NACELLE_DEVICE_VLAN_UNTAGGED_SHIFT 16 /* Frames without a tag, or with VID 0, are taken as well. */
#define NACELLE_DEVICE_VLAN_UNTAGGED_MASK 0x00010000u
#define NACELLE_DEVICE_VLAN_ENABLE_SHIFT 31 /* The device is in this VLAN: it takes frames of no other, and tags all that it sends. */
#define NACELLE_DEVICE_VLAN_ENABLE_MASK 0x80000000u
#define NACELLE_DEVICE_ICMP_ERRORS 0x154u /* rw: Packets to a port or of a protocol that the device does not serve are answered by ICMP destination unreachable, up to 64 a second. */
#define NACELLE_DEVICE_NETWORK_CARD 0x158u /* rw: What the network card of the host gets and may send (docs/reference/network-card.md). In use from the next frame on. */
#define NACELLE_DEVICE_NETWORK_CARD_SHARED_SHIFT 0 /* The card has the MAC address of the device, and so its host can have the device's IP addresses, too; else one of its own. To be set before the host's driver starts. */
#define NACELLE_DEVICE_NETWORK_CARD_SHARED_MASK 0x00000001u
#define NACELLE_DEVICE_NETWORK_CARD_PROMISCUOUS_SHIFT 1 /* The card also gets what is for other stations. */
#define NACELLE_DEVICE_NETWORK_CARD_PROMISCUOUS_MASK 0x00000002u
#define NACELLE_DEVICE_NETWORK_CARD_HOST_ARP_SHIFT 2 /* With `shared`: the host answers ARP requests and neighbour solicitations for the device's addresses, and gets them. */
#define NACELLE_DEVICE_NETWORK_CARD_HOST_ARP_MASK 0x00000004u
#define NACELLE_DEVICE_NETWORK_CARD_HOST_ECHO_SHIFT 3 /* With `shared`: the host answers echo requests to the device's addresses, and gets them. */
#define NACELLE_DEVICE_NETWORK_CARD_HOST_ECHO_MASK 0x00000008u
#define NACELLE_DEVICE_NETWORK_CARD_ANY_SOURCE_SHIFT 4 /* The card may send from other MAC addresses than its own, for guests behind a bridge. */
#define NACELLE_DEVICE_NETWORK_CARD_ANY_SOURCE_MASK 0x00000010u
#define NACELLE_DEVICE_NETWORK_CARD_LINK_SHIFT 30 /* The line works, as the MAC says. */
#define NACELLE_DEVICE_NETWORK_CARD_LINK_MASK 0x40000000u
#define NACELLE_DEVICE_NETWORK_CARD_BUILT_SHIFT 31 /* The device was built with a network card. */
#define NACELLE_DEVICE_NETWORK_CARD_BUILT_MASK 0x80000000u
#define NACELLE_DEVICE_DSCP 0x160u /* rw: DSCP of RoCE packets (RFC 2474), by which the network tells traffic classes apart. */
#define NACELLE_DEVICE_DSCP_ROCE_SHIFT 0 /* Of connection management, and of the connections that it makes. Each keeps what it was made with. */
#define NACELLE_DEVICE_DSCP_ROCE_MASK 0x0000003fu
#define NACELLE_DEVICE_DSCP_CNP_SHIFT 8 /* Of CNPs. In use at once. */
#define NACELLE_DEVICE_DSCP_CNP_MASK 0x00003f00u
#define NACELLE_DEVICE_DSCP_OF_CALLER_SHIFT 16 /* A connection that a peer opens has the traffic class that its REQ names, and not that of `roce`. */
#define NACELLE_DEVICE_DSCP_OF_CALLER_MASK 0x00010000u
#define NACELLE_DEVICE_IPV6_MODE 0x170u /* rw: Which IPv6 addresses the device has. Nothing in a device that was built without IPv6. */
#define NACELLE_DEVICE_IPV6_MODE_ON_SHIFT 0 /* The device has a link-local address, and the static one of IPV6_FIXED if that is set. In use at once: connections are closed if addresses go. */
#define NACELLE_DEVICE_IPV6_MODE_ON_MASK 0x00000001u
#define NACELLE_DEVICE_IPV6_MODE_AUTONOMOUS_SHIFT 1 /* Without a static address, it takes one of the first prefix that a router offers; and the first router, in any case. */
#define NACELLE_DEVICE_IPV6_MODE_AUTONOMOUS_MASK 0x00000002u
#define NACELLE_DEVICE_IPV6_STATE 0x174u /* r: State of the IPv6 addresses. */
#define NACELLE_DEVICE_IPV6_STATE_ORIGIN_SHIFT 0 /* Where the global address has come from: 0 there is none, 1 static, 2 a router's prefix. */
#define NACELLE_DEVICE_IPV6_STATE_ORIGIN_MASK 0x00000003u
#define NACELLE_DEVICE_IPV6_STATE_STATE_SHIFT 4 /* What is done: 0 nothing, 1 before the probe of an address, 2 probing, 3 pause after a conflict, 4 IPv6 connections are being closed, 5 the rest of them is dropped. */
#define NACELLE_DEVICE_IPV6_STATE_STATE_MASK 0x00000070u
#define NACELLE_DEVICE_IPV6_STATE_HAS_LOCAL_SHIFT 8 /* The link-local address, which follows from the MAC address, is in use. */
#define NACELLE_DEVICE_IPV6_STATE_HAS_LOCAL_MASK 0x00000100u
#define NACELLE_DEVICE_IPV6_STATE_DEPRECATED_SHIFT 9 /* The preferred lifetime of the global address is over. */
#define NACELLE_DEVICE_IPV6_STATE_DEPRECATED_MASK 0x00000200u
#define NACELLE_DEVICE_IPV6_STATE_ON_LINK_SHIFT 10 /* Other addresses of the global address' prefix are on the same link. */
#define NACELLE_DEVICE_IPV6_STATE_ON_LINK_MASK 0x00000400u
#define NACELLE_DEVICE_IPV6_STATE_BUILT_SHIFT 31 /* The device was built with IPv6. */
#define NACELLE_DEVICE_IPV6_STATE_BUILT_MASK 0x80000000u
#define NACELLE_DEVICE_IPV6_VALID_LEFT 0x178u /* r: Seconds until the global address goes, if it is of a router's prefix; 0xffffffff: it does not. */
#define NACELLE_DEVICE_IPV6_PREFERRED_LEFT 0x17cu /* r: Seconds until it should get no new connections; 0xffffffff: for ever. */
#define NACELLE_DEVICE_IPV6_FIXED_0 0x180u /* w: Static global IPv6 address, bits 127 to 96: 2001:db8::1 is 0x20010db8, 0, 0, 1. All 0: none. */
#define NACELLE_DEVICE_IPV6_FIXED_1 0x184u /* w: Likewise, bits 95 to 64. */
#define NACELLE_DEVICE_IPV6_FIXED_2 0x188u /* w: Likewise, bits 63 to 32. */
#define NACELLE_DEVICE_IPV6_FIXED_3 0x18cu /* w: Likewise, bits 31 to 0. */
#define NACELLE_DEVICE_IPV6_GLOBAL_0 0x190u /* r: Global IPv6 address in use, bits 127 to 96; its prefix has 64 bits. All 0: none. */
#define NACELLE_DEVICE_IPV6_GLOBAL_1 0x194u /* r: Likewise, bits 95 to 64. */
#define NACELLE_DEVICE_IPV6_GLOBAL_2 0x198u /* r: Likewise, bits 63 to 32. */
#define NACELLE_DEVICE_IPV6_GLOBAL_3 0x19cu /* r: Likewise, bits 31 to 0. */
#define NACELLE_DEVICE_IPV6_ROUTER_HI 0x1a0u /* r: Interface identifier of the router, whose address is link-local, upper half. */
#define NACELLE_DEVICE_IPV6_ROUTER_LO 0x1a4u /* r: Likewise, lower half. */
#define NACELLE_DEVICE_IPV6_ROUTER_LEFT 0x1a8u /* r: Seconds until the device forgets the router; 0: there is none. */
#define NACELLE_DEVICE_DEVICE_ID_LO 0x3e0u /* r: What this device is called, and no other: also its GUID in messages of connection management. Lower half. */
#define NACELLE_DEVICE_DEVICE_ID_HI 0x3e4u /* r: Likewise, upper half. */
#define NACELLE_DEVICE_BUILD_REVISION 0x3e8u /* r: First 8 digits of the revision that the RTL was built from; 0: it was not said. */
#define NACELLE_DEVICE_BUILD_DIGEST_LO 0x3ecu /* r: Digest of what the device consists of, lower half: devices of different parameters or kernels have different ones. */
#define NACELLE_DEVICE_BUILD_DIGEST_HI 0x3f0u /* r: Likewise, upper half. */
#define NACELLE_DEVICE_PACKET_RX_FRAME 0x400u /* r: rx frame */
#define NACELLE_DEVICE_PACKET_RX_ROCE 0x404u /* r: rx roce */
#define NACELLE_DEVICE_PACKET_RX_ARP 0x408u /* r: rx arp */
#define NACELLE_DEVICE_PACKET_RX_ICMP 0x40cu /* r: also ICMPv6 */
#define NACELLE_DEVICE_PACKET_RX_ND 0x410u /* r: neighbour discovery */
#define NACELLE_DEVICE_PACKET_RX_UDP 0x414u /* r: rx udp */
#define NACELLE_DEVICE_PACKET_TX_FRAME 0x418u /* r: tx frame */
#define NACELLE_DEVICE_PACKET_TX_ROCE 0x41cu /* r: tx roce */
#define NACELLE_DEVICE_PACKET_DROP_OVERFLOW 0x420u /* r: arrived when the receive stores were full */
#define NACELLE_DEVICE_PACKET_DROP_FCS 0x424u /* r: tuser from the MAC */
#define NACELLE_DEVICE_PACKET_DROP_RUNT 0x428u /* r: shorter than its headers require */
#define NACELLE_DEVICE_PACKET_DROP_OVERSIZE 0x42cu /* r: longer than the frame store accepts */
#define NACELLE_DEVICE_PACKET_DROP_NOT_OURS 0x430u /* r: Ethernet or IPv4 destination of another station */
#define NACELLE_DEVICE_PACKET_DROP_GROUP 0x434u /* r: to a multicast or broadcast Ethernet address, and neither ARP nor an expected DHCP answer nor mDNS */
#define NACELLE_DEVICE_PACKET_DROP_VLAN 0x438u /* r: with a VLAN tag; with a VLAN of the device: not of that VLAN */
#define NACELLE_DEVICE_PACKET_DROP_IPV6 0x43cu /* r: the device has no IPv6 */
#define NACELLE_DEVICE_PACKET_DROP_IPV6_HEADER 0x440u /* r: version, or a source that no packet has */
#define NACELLE_DEVICE_PACKET_DROP_IPV6_EXTENSION 0x444u /* r: an extension header */
#define NACELLE_DEVICE_PACKET_DROP_IPV6_FRAGMENT 0x448u /* r: that of a fragment */
#define NACELLE_DEVICE_PACKET_DROP_ND 0x44cu /* r: neighbour discovery: malformed, checksum, or from behind a router */
#define NACELLE_DEVICE_PACKET_DROP_ETHERTYPE 0x450u /* r: any other */
#define NACELLE_DEVICE_PACKET_DROP_IPV4_HEADER 0x454u /* r: version, options, checksum, length */
#define NACELLE_DEVICE_PACKET_DROP_IPV4_FRAGMENT 0x458u /* r: drop ipv4 fragment */
#define NACELLE_DEVICE_PACKET_DROP_TCP 0x45cu /* r: drop tcp */
#define NACELLE_DEVICE_PACKET_DROP_IP_PROTOCOL 0x460u /* r: any other, also of IPv6 */
#define NACELLE_DEVICE_PACKET_DROP_UDP_LENGTH 0x464u /* r: drop udp length */
#define NACELLE_DEVICE_PACKET_DROP_UDP_CHECKSUM 0x468u /* r: wrong; IPv6: or none */
#define NACELLE_DEVICE_PACKET_DROP_UDP_PORT 0x46cu /* r: no protocol or service listens on the port, or the source of a packet to a service is not one host */
#define NACELLE_DEVICE_PACKET_DROP_ICMP 0x470u /* r: checksum, or any other type */
#define NACELLE_DEVICE_PACKET_DROP_ICMP_RATE 0x474u /* r: an echo request, after earlier ones had stalled other frames for too long */
#define NACELLE_DEVICE_PACKET_DROP_ARP 0x478u /* r: malformed */
#define NACELLE_DEVICE_PACKET_DROP_ARP_OVERFLOW 0x47cu /* r: ARP or neighbour discovery: arrived faster than it can be processed */
#define NACELLE_DEVICE_PACKET_DROP_ICRC 0x480u /* r: drop icrc */
#define NACELLE_DEVICE_PACKET_DROP_ROCE_OPCODE 0x484u /* r: unknown opcode: the length of its headers is not known */
#define NACELLE_DEVICE_PACKET_DROP_ICMP_UNREACHABLE 0x488u /* r: ICMP destination unreachable: has no effect */
#define NACELLE_DEVICE_PACKET_DROP_ICMP_TOO_BIG 0x48cu /* r: ICMP fragmentation needed: has no effect */
#define NACELLE_DEVICE_PACKET_RX_PAUSE 0x490u /* r: PAUSE frames */
#define NACELLE_DEVICE_PACKET_RX_PFC 0x494u /* r: PFC frames */
#define NACELLE_DEVICE_PACKET_STOPPED_ROCE 0x498u /* r: cycles in which RoCE frames were stopped by such frames */
#define NACELLE_DEVICE_PACKET_STOPPED_OTHER 0x49cu /* r: cycles in which other frames were */
#define NACELLE_DEVICE_PACKET_PAUSE_IGNORED 0x4a0u /* r: a pause lasted too long, and was ignored from then on */
#define NACELLE_DEVICE_PACKET_RX_CARD 0x4a4u /* r: given to the network card; not counted as dropped, and as rx_frame only if a unit takes it as well */
#define NACELLE_DEVICE_PACKET_TX_CARD 0x4a8u /* r: sent for the network card */
#define NACELLE_DEVICE_PACKET_DROP_CARD_SOURCE 0x4acu /* r: of the network card, from a MAC address that it may not use, or MAC control */
#define NACELLE_DEVICE_ROCE_RX_RCVD_PKTS 0x4b0u /* r: request packets for a live QP */
#define NACELLE_DEVICE_ROCE_RX_DUPLICATE_REQUEST 0x4b4u /* r: duplicate request */
#define NACELLE_DEVICE_ROCE_RX_OUT_OF_SEQ_REQUEST 0x4b8u /* r: PSN ahead of the expected one; the NAK may have been sent before */
#define NACELLE_DEVICE_ROCE_RX_OUT_OF_BUFFER 0x4bcu /* r: no receive posted: RNR NAK */
#define NACELLE_DEVICE_ROCE_RX_MEMORY_BUSY 0x4c0u /* r: the queue of its memory is full: RNR NAK, or dropped as if lost */
#define NACELLE_DEVICE_ROCE_RX_RX_WRITE_REQUESTS 0x4c4u /* r: messages */
#define NACELLE_DEVICE_ROCE_RX_RX_READ_REQUESTS 0x4c8u /* r: rx read requests */
#define NACELLE_DEVICE_ROCE_RX_RX_ATOMIC_REQUESTS 0x4ccu /* r: rx atomic requests */
#define NACELLE_DEVICE_ROCE_RX_RX_SEND_REQUESTS 0x4d0u /* r: rx send requests */
#define NACELLE_DEVICE_ROCE_RX_SENT_ACK 0x4d4u /* r: sent ack */
#define NACELLE_DEVICE_ROCE_RX_SENT_NAK 0x4d8u /* r: sent nak */
#define NACELLE_DEVICE_ROCE_RX_SEND_RNR_ERR 0x4dcu /* r: RNR NAK sent */
#define NACELLE_DEVICE_ROCE_RX_RESP_REMOTE_ACCESS_ERRORS 0x4e0u /* r: key, domain, QP, bounds or rights: NAK sent */
#define NACELLE_DEVICE_ROCE_RX_RESP_INVALID_REQUEST 0x4e4u /* r: opcode sequence, length, alignment, too many READs and atomics: NAK sent */
#define NACELLE_DEVICE_ROCE_RX_RESP_LOCAL_LENGTH_ERROR 0x4e8u /* r: SEND longer than the receive buffer: NAK sent */
#define NACELLE_DEVICE_ROCE_RX_RESP_LOCAL_PROTECTION_ERRORS 0x4ecu /* r: device memory reported an error: NAK sent */
#define NACELLE_DEVICE_ROCE_RX_RESP_CQE_FLUSH_ERROR 0x4f0u /* r: receives flushed */
#define NACELLE_DEVICE_ROCE_RX_OUT_OF_ORDER_PLACED 0x4f4u /* r: selective repeat: a WRITE packet ahead of the expected PSN was placed */
#define NACELLE_DEVICE_ROCE_RX_ATOMIC_REPLAYED 0x4f8u /* r: duplicate, answered from the response cache */
#define NACELLE_DEVICE_ROCE_RX_DROP_DUPLICATE_FORGOTTEN 0x4fcu /* r: duplicate READ or atomic that finds the queue full, or no cached response */
#define NACELLE_DEVICE_ROCE_RX_DROP_NO_QP 0x500u /* r: drop no qp */
#define NACELLE_DEVICE_ROCE_RX_DROP_WRONG_PEER 0x504u /* r: the QP is connected to another address */
#define NACELLE_DEVICE_ROCE_RX_DROP_BAD_BTH 0x508u /* r: TVer, P_Key, opcode of another service */
#define NACELLE_DEVICE_ROCE_RX_DROP_CM_RATE 0x50cu /* r: datagram to QP1, while those before it delay other packets */
#define NACELLE_DEVICE_ROCE_RX_DROP_QP_STATE 0x510u /* r: drop qp state */
#define NACELLE_DEVICE_ROCE_RX_NP_ECN_MARKED_ROCE_PACKETS 0x514u /* r: received with congestion experienced (CE) */
#define NACELLE_DEVICE_ROCE_RX_NP_CNP_SENT 0x518u /* r: np cnp sent */
#define NACELLE_DEVICE_ROCE_TX_SENT_PKTS 0x51cu /* r: request packets, including retransmissions */
#define NACELLE_DEVICE_ROCE_TX_SENT_WRITES 0x520u /* r: messages, not counting retransmissions */
#define NACELLE_DEVICE_ROCE_TX_SENT_SENDS 0x524u /* r: sent sends */
#define NACELLE_DEVICE_ROCE_TX_SENT_READS 0x528u /* r: sent reads */
#define NACELLE_DEVICE_ROCE_TX_SENT_ATOMICS 0x52cu /* r: sent atomics */
#define NACELLE_DEVICE_ROCE_TX_RCVD_ACKS 0x530u /* r: rcvd acks */
#define NACELLE_DEVICE_ROCE_TX_RCVD_READ_RESPONSES 0x534u /* r: packets */
#define NACELLE_DEVICE_ROCE_TX_RCVD_ATOMIC_RESPONSES 0x538u /* r: rcvd atomic responses */
#define NACELLE_DEVICE_ROCE_TX_RNR_NAK_RETRY_ERR 0x53cu /* r: RNR NAK received */
#define NACELLE_DEVICE_ROCE_TX_PACKET_SEQ_ERR 0x540u /* r: NAK PSN sequence error received */
#define NACELLE_DEVICE_ROCE_TX_IMPLIED_NAK_SEQ_ERR 0x544u /* r: a response skipped a READ or atomic, or part of a READ */
#define NACELLE_DEVICE_ROCE_TX_REQ_REMOTE_ACCESS_ERRORS 0x548u /* r: NAK received */
#define NACELLE_DEVICE_ROCE_TX_REQ_REMOTE_INVALID_REQUEST 0x54cu /* r: req remote invalid request */
#define NACELLE_DEVICE_ROCE_TX_REQ_REMOTE_OPERATIONAL_ERRORS 0x550u /* r: req remote operational errors */
#define NACELLE_DEVICE_ROCE_TX_BAD_RESPONSE_ERR 0x554u /* r: a READ response of the wrong length: the QP fails */
#define NACELLE_DEVICE_ROCE_TX_LOCAL_ACK_TIMEOUT_ERR 0x558u /* r: local ack timeout err */
#define NACELLE_DEVICE_ROCE_TX_PACKET_RETRANSMIT 0x55cu /* r: packet retransmit */
#define NACELLE_DEVICE_ROCE_TX_SELECTIVE_RETRANSMIT 0x560u /* r: selective retransmit */
#define NACELLE_DEVICE_ROCE_TX_RETRY_EXCEEDED_ERR 0x564u /* r: retry exceeded err */
#define NACELLE_DEVICE_ROCE_TX_RETRY_RNR_EXCEEDED_ERR 0x568u /* r: retry rnr exceeded err */
#define NACELLE_DEVICE_ROCE_TX_REQ_CQE_FLUSH_ERROR 0x56cu /* r: req cqe flush error */
#define NACELLE_DEVICE_ROCE_TX_QP_ERROR 0x570u /* r: qp error */
#define NACELLE_DEVICE_ROCE_TX_KEEPALIVE_SENT 0x574u /* r: keepalive sent */
#define NACELLE_DEVICE_ROCE_TX_DROP_GHOST_RESPONSE 0x578u /* r: for a PSN that was not sent or is already acknowledged (IBTA 9.7.5.1) */
#define NACELLE_DEVICE_ROCE_TX_DROP_RESPONSE_NO_QP 0x57cu /* r: no such QP, not from its peer, or not in RTS, SQD or SQE */
#define NACELLE_DEVICE_ROCE_TX_WQE_REFUSED 0x580u /* r: work request for a QP of another client */
#define NACELLE_DEVICE_ROCE_TX_RP_CNP_HANDLED 0x584u /* r: rp cnp handled */
#define NACELLE_DEVICE_ROCE_TX_RP_CNP_IGNORED 0x588u /* r: for no QP, or congestion control is off */
#define NACELLE_DEVICE_CM_REQ_RECEIVED 0x58cu /* r: req received */
#define NACELLE_DEVICE_CM_REQ_SENT 0x590u /* r: req sent */
#define NACELLE_DEVICE_CM_REP_RECEIVED 0x594u /* r: rep received */
#define NACELLE_DEVICE_CM_REP_SENT 0x598u /* r: rep sent */
#define NACELLE_DEVICE_CM_RTU_RECEIVED 0x59cu /* r: rtu received */
#define NACELLE_DEVICE_CM_RTU_SENT 0x5a0u /* r: rtu sent */
#define NACELLE_DEVICE_CM_MRA_RECEIVED 0x5a4u /* r: mra received */
#define NACELLE_DEVICE_CM_MRA_SENT 0x5a8u /* r: mra sent */
#define NACELLE_DEVICE_CM_REJ_RECEIVED 0x5acu /* r: rej received */
#define NACELLE_DEVICE_CM_REJ_SENT 0x5b0u /* r: rej sent */
#define NACELLE_DEVICE_CM_DREQ_RECEIVED 0x5b4u /* r: dreq received */
#define NACELLE_DEVICE_CM_DREQ_SENT 0x5b8u /* r: dreq sent */
#define NACELLE_DEVICE_CM_DREP_RECEIVED 0x5bcu /* r: drep received */
#define NACELLE_DEVICE_CM_DREP_SENT 0x5c0u /* r: drep sent */
#define NACELLE_DEVICE_CM_DUPLICATE_REQ 0x5c4u /* r: duplicate req */
#define NACELLE_DEVICE_CM_REQ_TIMEOUT 0x5c8u /* r: req timeout */
#define NACELLE_DEVICE_CM_REP_TIMEOUT 0x5ccu /* r: rep timeout */
#define NACELLE_DEVICE_CM_DREQ_TIMEOUT 0x5d0u /* r: dreq timeout */
#define NACELLE_DEVICE_CM_CONNECTION_OPENED 0x5d4u /* r: reported to the client; opened - closed = live connections */
#define NACELLE_DEVICE_CM_CONNECTION_CLOSED 0x5d8u /* r: connection closed */
#define NACELLE_DEVICE_CM_DROP_MALFORMED 0x5dcu /* r: not a valid communication management datagram */
#define NACELLE_DEVICE_CM_DROP_OVERFLOW 0x5e0u /* r: received faster than it could be answered; the peer retransmits it */
#define NACELLE_DEVICE_CM_DROP_NO_CONNECTION 0x5e4u /* r: for no connection, or not expected in its state */
#define NACELLE_DEVICE_CM_DROP_UNRESOLVED 0x5e8u /* r: no ARP reply for the address that a client connects to: no REQ sent */
#define NACELLE_DEVICE_CM_REFUSED_PER_PEER 0x5ecu /* r: REQ: its address has reached its limit of connections */
#define NACELLE_DEVICE_CM_REFUSED_HALF_OPEN 0x5f0u /* r: REQ: the limit of half-open connections is reached */
#define NACELLE_DEVICE_CM_REFUSED_HALF_OPEN_PER_PEER 0x5f4u /* r: REQ: the limit of half-open connections with its address is reached */
#define NACELLE_DEVICE_CM_REFUSED_NO_TOKEN 0x5f8u /* r: REQ without a token, and no entry is for its address */
#define NACELLE_DEVICE_CM_REFUSED_TOKEN 0x5fcu /* r: REQ with a token that no valid entry has for its address */
#define NACELLE_DEVICE_CM_REFUSED_PER_ENTRY 0x600u /* r: REQ: its entry has all its connections */
#define NACELLE_DEVICE_CM_ADMISSION_ENDED 0x604u /* r: a connection is closed because its entry was revoked, or its time is over */
#define NACELLE_DEVICE_RPC_REGIONS_GRANTED 0x608u /* r: regions granted */
#define NACELLE_DEVICE_RPC_REGIONS_REFUSED 0x60cu /* r: regions refused */
#define NACELLE_DEVICE_RPC_CALL_STARTED 0x610u /* r: call started */
#define NACELLE_DEVICE_RPC_CALL_FINISHED 0x614u /* r: call finished */
#define NACELLE_DEVICE_RPC_CALL_FAILED 0x618u /* r: call failed */
#define NACELLE_DEVICE_RPC_CALL_CANCELLED 0x61cu /* r: one of call_failed: its caller cancelled it */
#define NACELLE_DEVICE_RPC_MESSAGE_MALFORMED 0x620u /* r: message malformed */
#define NACELLE_DEVICE_RPC_IMMEDIATE_IGNORED 0x624u /* r: start while a call runs, or before set-up */
#define NACELLE_DEVICE_MEMORY_CORRECTED 0x628u /* r: beats of memory in which the device's ECC has corrected a flipped bit */
#define NACELLE_DEVICE_MEMORY_UNCORRECTABLE 0x62cu /* r: beats read, and writes, that memory answered with SLVERR */
#define NACELLE_DEVICE_SERVICE_RX_MESSAGE 0x630u /* r: taken into the store */
#define NACELLE_DEVICE_SERVICE_TX_MESSAGE 0x634u /* r: tx message */
#define NACELLE_DEVICE_SERVICE_DROP_LENGTH 0x638u /* r: empty, or longer than a message can be */
#define NACELLE_DEVICE_SERVICE_DROP_ROOM 0x63cu /* r: the store was full */
#define NACELLE_DEVICE_SERVICE_DROP_SOURCE 0x640u /* r: IPbus: from an address outside of the source filter */
#define NACELLE_DEVICE_SERVICE_DROP_RATE 0x644u /* r: IPbus: without authorisation, faster than such packets are taken */
#define NACELLE_DEVICE_SERVICE_DROP_MALFORMED 0x648u /* r: IPbus: no IPbus 2.0 packet */
#define NACELLE_DEVICE_SERVICE_DROP_ID 0x64cu /* r: IPbus: a control packet that is not the next one: executed before, or one before it is missing */
#define NACELLE_DEVICE_SERVICE_DROP_CONTEXT 0x650u /* r: IPbus: every context belongs to an authorised client */
#define NACELLE_DEVICE_SERVICE_RESENT 0x654u /* r: IPbus: a response was sent once more */
#define NACELLE_DEVICE_SERVICE_RESEND_UNKNOWN 0x658u /* r: IPbus: there is no such response, or it was resent too often without authorisation */
#define NACELLE_DEVICE_SERVICE_REFUSED 0x65cu /* r: IPbus: an access that is not public, without authorisation; or to what only the local bus may access */
#define NACELLE_DEVICE_SERVICE_BUS_ERROR 0x660u /* r: IPbus: there is no such register, or its owner did not answer */
#define NACELLE_DEVICE_SERVICE_LOGIN 0x664u /* r: login */
#define NACELLE_DEVICE_SERVICE_LOGIN_WRONG 0x668u /* r: with a wrong token */
#define NACELLE_DEVICE_SERVICE_LOGIN_REFUSED 0x66cu /* r: with the token, but every context belongs to an authorised client that is in use */
#define NACELLE_DEVICE_SERVICE_SESSION_EXPIRED 0x670u /* r: an authorised client was silent for too long */
#define NACELLE_DEVICE_SERVICE_MDNS_QUERY 0x674u /* r: mDNS: a query for a record of this device that it does not know yet */
#define NACELLE_DEVICE_SERVICE_MDNS_SENT 0x678u /* r: mDNS: an announcement, an answer or a goodbye was sent */
#define NACELLE_DEVICE_SERVICE_MDNS_OTHER 0x67cu /* r: mDNS: ignored: no query, or not from port 5353 of a host of this network */
#define NACELLE_DEVICE_SERVICE_MDNS_BUSY 0x680u /* r: mDNS: a query was dropped because another one was being read */
#define NACELLE_DEVICE_SERVICE_DROP_MDNS 0x684u /* r: mDNS: a query that is not well formed */
#define NACELLE_DEVICE_SERVICE_LLDP_SENT 0x688u /* r: LLDP: a frame was sent */
#define NACELLE_DEVICE_SERVICE_UNREACHABLE_SENT 0x68cu /* r: ICMP: destination unreachable */
#define NACELLE_DEVICE_SERVICE_UNREACHABLE_LIMITED 0x690u /* r: ICMP: was not sent: too many in a short time */
#define NACELLE_DEVICE_ADDRESS_CONFLICT 0x694u /* r: another host had, or wanted, the address in use or the one that was probed (RFC 5227) */
#define NACELLE_DEVICE_ADDRESS_DEFENDED 0x698u /* r: an address in use was announced once more because of that */
#define NACELLE_DEVICE_ADDRESS_LOST 0x69cu /* r: an address in use was given up: all connections were closed */
#define NACELLE_DEVICE_ADDRESS_LEASE 0x6a0u /* r: DHCP: an ACK, of a new lease or of a renewal */
#define NACELLE_DEVICE_ADDRESS_LEASE_LOST 0x6a4u /* r: DHCP: a lease has ended without a release */
#define NACELLE_DEVICE_ADDRESS_NAK 0x6a8u /* r: DHCP: a NAK */
#define NACELLE_DEVICE_ADDRESS_DROP_MALFORMED 0x6acu /* r: DHCP: an answer that is not well formed, or lacks an option that it must have */
#define NACELLE_DEVICE_ADDRESS_DROP_UNEXPECTED 0x6b0u /* r: DHCP: not for the current transaction, too many, or of no use in this state */
#define NACELLE_DEVICE_ADDRESS_IPV6_CONFLICT 0x6b4u /* r: IPv6: another host had the address that was probed (RFC 4862) */
#define NACELLE_DEVICE_ADDRESS_IPV6_LOST 0x6b8u /* r: IPv6: the global address in use was given up: the connections that used it were closed */
#define NACELLE_DEVICE_ADDRESS_ROUTER_HEARD 0x6bcu /* r: IPv6: a router advertisement */
#define NACELLE_DEVICE_ADDRESS_DROP_ROUTER 0x6c0u /* r: IPv6: a router advertisement that is not well formed */
#define NACELLE_DEVICE_PCIE_COMPLETER_READS 0x6c4u /* r: answered, or begun to be */
#define NACELLE_DEVICE_PCIE_COMPLETER_WRITES 0x6c8u /* r: completer writes */
#define NACELLE_DEVICE_PCIE_COMPLETER_REFUSED_READS 0x6ccu /* r: and other non-posted requests: UR */
#define NACELLE_DEVICE_PCIE_COMPLETER_REFUSED_WRITES 0x6d0u /* r: for no BAR, over a boundary of 4 KiB, or while memory space is off: dropped */
#define NACELLE_DEVICE_PCIE_COMPLETER_POISONED_WRITES 0x6d4u /* r: dropped */
#define NACELLE_DEVICE_PCIE_COMPLETER_DAMAGED_WRITES 0x6d8u /* r: by the block: dropped */
#define NACELLE_DEVICE_PCIE_COMPLETER_MESSAGES 0x6dcu /* r: dropped */
#define NACELLE_DEVICE_PCIE_COMPLETER_READ_ERRORS 0x6e0u /* r: an access in the device failed: CA */
#define NACELLE_DEVICE_PCIE_COMPLETER_WRITE_ERRORS 0x6e4u /* r: likewise, of a write: nobody is told */
#define NACELLE_DEVICE_PCIE_REQUESTER_WRITES 0x6e8u /* r: TLPs sent */
#define NACELLE_DEVICE_PCIE_REQUESTER_READS 0x6ecu /* r: requester reads */
#define NACELLE_DEVICE_PCIE_REQUESTER_WRITES_OFF 0x6f0u /* r: TLPs not sent: bus mastering is off, or reset */
#define NACELLE_DEVICE_PCIE_REQUESTER_READS_OFF 0x6f4u /* r: requester reads off */
#define NACELLE_DEVICE_PCIE_REQUESTER_UNSUPPORTED 0x6f8u /* r: completions: UR or CRS */
#define NACELLE_DEVICE_PCIE_REQUESTER_ABORTS 0x6fcu /* r: CA */
#define NACELLE_DEVICE_PCIE_REQUESTER_POISONED 0x700u /* r: requester poisoned */
#define NACELLE_DEVICE_PCIE_REQUESTER_MALFORMED 0x704u /* r: requester malformed */
#define NACELLE_DEVICE_PCIE_REQUESTER_TIMEOUTS 0x708u /* r: reads ended without a completion */
#define NACELLE_DEVICE_PCIE_REQUESTER_UNEXPECTED 0x70cu /* r: completions for no request: dropped */
#define NACELLE_DEVICE_PCIE_REQUESTER_LATE 0x710u /* r: completions for a request that was given up: dropped */
#define NACELLE_DEVICE_PCIE_MSIX_SENT 0x714u /* r: msix sent */
#define NACELLE_DEVICE_PCIE_MSIX_MERGED 0x718u /* r: a request for a vector that is pending already */
#define NACELLE_DEVICE_PCIE_RESETS 0x71cu /* r: function-level resets done */
#define NACELLE_DEVICE_PCIE_NETWORK_MSIX_SENT 0x720u /* r: network msix sent */
#define NACELLE_DEVICE_PCIE_NETWORK_MSIX_MERGED 0x724u /* r: a request for a vector that is pending already */
#define NACELLE_DEVICE_PCIE_NETWORK_RESETS 0x728u /* r: network resets */

/* ---- Management port ---- */

#define NACELLE_MANAGEMENT_BASE 0x01000u
#define NACELLE_MANAGEMENT_BLOCK_TYPE 0x4d474d54u /* MGMT */
#define NACELLE_MANAGEMENT_BLOCK_VERSION 0x00010001u

#define NACELLE_MANAGEMENT_TYPE 0x000u /* r: 0x4d474d54, "MGMT": a management port. */
#define NACELLE_MANAGEMENT_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_MANAGEMENT_NEXT 0x008u /* r: Byte address of the next block, that of admission. */
#define NACELLE_MANAGEMENT_COMMAND 0x00cu /* rw: Writing starts a command; without effect while one is in progress. */
#define NACELLE_MANAGEMENT_COMMAND_COMMAND_SHIFT 0 /* Number of the command; that of the last one is read. */
#define NACELLE_MANAGEMENT_COMMAND_COMMAND_MASK 0x000000ffu
#define NACELLE_MANAGEMENT_STATUS 0x010u /* r: State of the port. */
#define NACELLE_MANAGEMENT_STATUS_BUSY_SHIFT 0 /* A command is in progress. */
#define NACELLE_MANAGEMENT_STATUS_BUSY_MASK 0x00000001u
#define NACELLE_MANAGEMENT_STATUS_OK_SHIFT 1 /* The last command succeeded. */
#define NACELLE_MANAGEMENT_STATUS_OK_MASK 0x00000002u
#define NACELLE_MANAGEMENT_STATUS_COMPLETION_WAITS_SHIFT 2 /* A completion waits. */
#define NACELLE_MANAGEMENT_STATUS_COMPLETION_WAITS_MASK 0x00000004u
#define NACELLE_MANAGEMENT_STATUS_EVENT_WAITS_SHIFT 3 /* An event waits. */
#define NACELLE_MANAGEMENT_STATUS_EVENT_WAITS_MASK 0x00000008u
#define NACELLE_MANAGEMENT_STATUS_ERROR_SHIFT 8 /* Why the last command failed. */
#define NACELLE_MANAGEMENT_STATUS_ERROR_MASK 0x0000ff00u
#define NACELLE_MANAGEMENT_STATUS_FINISHED_SHIFT 16 /* Commands finished, modulo 2^16. */
#define NACELLE_MANAGEMENT_STATUS_FINISHED_MASK 0xffff0000u
#define NACELLE_MANAGEMENT_LOST 0x014u /* r: What the event queue had no room for. Both stop at 65535. */
#define NACELLE_MANAGEMENT_LOST_EVENTS_SHIFT 0 /* Events lost. */
#define NACELLE_MANAGEMENT_LOST_EVENTS_MASK 0x0000ffffu
#define NACELLE_MANAGEMENT_LOST_REFUSED_SHIFT 16 /* Connections refused. */
#define NACELLE_MANAGEMENT_LOST_REFUSED_MASK 0xffff0000u
#define NACELLE_MANAGEMENT_ARGUMENT 0x100u /* rw: Arguments of the next command; cannot be written while one is in progress. */
#define NACELLE_MANAGEMENT_ARGUMENT_WORDS 23u
#define NACELLE_MANAGEMENT_RESULT 0x200u /* r: Results of the last command; 0 where it has none. */
#define NACELLE_MANAGEMENT_RESULT_WORDS 23u

/* ---- Admission ---- */

#define NACELLE_ADMISSION_BASE 0x02000u
#define NACELLE_ADMISSION_BLOCK_TYPE 0x41444d4eu /* ADMN */
#define NACELLE_ADMISSION_BLOCK_VERSION 0x00010001u

#define NACELLE_ADMISSION_TYPE 0x000u /* r: 0x41444d4e, "ADMN": the entries by which callers are admitted. */
#define NACELLE_ADMISSION_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_ADMISSION_NEXT 0x008u /* r: Byte address of the next block, the event log. */
#define NACELLE_ADMISSION_CTRL 0x00cu /* rw: Control. */
#define NACELLE_ADMISSION_CTRL_ENABLE_SHIFT 0 /* Callers are accepted only if an entry admits them; without it everybody is. Connections that are there stay. */
#define NACELLE_ADMISSION_CTRL_ENABLE_MASK 0x00000001u
#define NACELLE_ADMISSION_SECONDS 0x010u /* r: The time that deadlines are given by. */
#define NACELLE_ADMISSION_STATE 0x100u /* rw: Writing 1 makes a free entry valid; 2 revokes a valid one, which closes its connections; 0 frees one that is revoked or whose time is over, once it has no connections. Any other write has no effect. */
#define NACELLE_ADMISSION_STATE_WORDS 16u
#define NACELLE_ADMISSION_USED 0x140u /* r: Connections that callers have by this entry, until their memory is free. */
#define NACELLE_ADMISSION_USED_WORDS 16u
#define NACELLE_ADMISSION_HANDLE 0x180u /* rw: For software: what the entry is called. */
#define NACELLE_ADMISSION_HANDLE_WORDS 16u
#define NACELLE_ADMISSION_CONNECTIONS 0x1c0u /* rw: Connections at once, at most; 0: no limit. */
#define NACELLE_ADMISSION_CONNECTIONS_WORDS 16u
#define NACELLE_ADMISSION_MEMORY 0x200u /* rw: KiB of memory, in whole pages of 4, that the regions of all its connections may take; 0: MEMORY_PER_CALLER applies. */
#define NACELLE_ADMISSION_MEMORY_WORDS 16u
#define NACELLE_ADMISSION_DEADLINE 0x240u /* rw: The time by SECONDS at which the entry ends, less than 2^31 s from now; 0: none. */
#define NACELLE_ADMISSION_DEADLINE_WORDS 16u
#define NACELLE_ADMISSION_ADDRESS 0x280u /* rw: IPv4 address of a network, or the last 32 bits of an IPv6 address: callers elsewhere are not admitted by this entry. */
#define NACELLE_ADMISSION_ADDRESS_WORDS 16u
#define NACELLE_ADMISSION_PREFIX 0x2c0u /* rw: Length of that network's prefix, 0 to 32, of IPv6 0 to 128; 0: callers from everywhere, if they have the token. */
#define NACELLE_ADMISSION_PREFIX_WORDS 16u
#define NACELLE_ADMISSION_PREFIX_LENGTH_SHIFT 0 /* Of the prefix. Both fields can be written while the entry is free; undefined before they were. */
#define NACELLE_ADMISSION_PREFIX_LENGTH_MASK 0x000000ffu
#define NACELLE_ADMISSION_PREFIX_IPV6_SHIFT 8 /* The network is one of IPv6: ADDRESS_1 to ADDRESS_3 are the rest of its address. */
#define NACELLE_ADMISSION_PREFIX_IPV6_MASK 0x00000100u
#define NACELLE_ADMISSION_TOKEN_0 0x300u /* w: First word of the token of 16 bytes that callers send. All zero: the entry is for callers that send none, from its network. */
#define NACELLE_ADMISSION_TOKEN_0_WORDS 16u
#define NACELLE_ADMISSION_TOKEN_1 0x340u /* w: Second word of the token. */
#define NACELLE_ADMISSION_TOKEN_1_WORDS 16u
#define NACELLE_ADMISSION_TOKEN_2 0x380u /* w: Third word of the token. */
#define NACELLE_ADMISSION_TOKEN_2_WORDS 16u
#define NACELLE_ADMISSION_TOKEN_3 0x3c0u /* w: Fourth word of the token. */
#define NACELLE_ADMISSION_TOKEN_3_WORDS 16u
#define NACELLE_ADMISSION_ADDRESS_1 0x400u /* rw: Bits 63 to 32 of the address of an IPv6 network. This register and the next two say nothing for one of IPv4. */
#define NACELLE_ADMISSION_ADDRESS_1_WORDS 16u
#define NACELLE_ADMISSION_ADDRESS_2 0x440u /* rw: Bits 95 to 64. */
#define NACELLE_ADMISSION_ADDRESS_2_WORDS 16u
#define NACELLE_ADMISSION_ADDRESS_3 0x480u /* rw: Bits 127 to 96. */
#define NACELLE_ADMISSION_ADDRESS_3_WORDS 16u

/* ---- Event log ---- */

#define NACELLE_EVENT_LOG_BASE 0x03000u
#define NACELLE_EVENT_LOG_BLOCK_TYPE 0x454c4f47u /* ELOG */
#define NACELLE_EVENT_LOG_BLOCK_VERSION 0x00010000u

#define NACELLE_EVENT_LOG_TYPE 0x000u /* r: 0x454c4f47, "ELOG": the event log. */
#define NACELLE_EVENT_LOG_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_EVENT_LOG_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_EVENT_LOG_TICKS_HZ 0x00cu /* r: Ticks of a second: the unit of times. */
#define NACELLE_EVENT_LOG_NOW_LO 0x010u /* r: Ticks since reset, modulo 2^48: the lower 32 bits. */
#define NACELLE_EVENT_LOG_NOW_HI 0x014u /* r: Likewise, the upper 16 bits. */
#define NACELLE_EVENT_LOG_LOST 0x018u /* r: Events that came faster than they could be taken down, modulo 2^32. */
#define NACELLE_EVENT_LOG_HEAD 0x020u /* r: Entries that were written into ring i since reset, modulo 2^32. That of number n is in place n modulo 32, until number n + 32 begins to be written. */
#define NACELLE_EVENT_LOG_HEAD_WORDS 4u
#define NACELLE_EVENT_LOG_WORDS 0x800u /* r: The entries, of 4 words each, 32 of each ring: the time's lower 32 bits; kind in bits 31:24 and the time's upper bits in 15:0; two words of details. Undefined before one is written. */
#define NACELLE_EVENT_LOG_WORDS_WORDS 512u

/* ---- Trace of frames ---- */

#define NACELLE_TRACE_BASE 0x04000u
#define NACELLE_TRACE_BLOCK_TYPE 0x54524143u /* TRAC */
#define NACELLE_TRACE_BLOCK_VERSION 0x00010000u

#define NACELLE_TRACE_TYPE 0x000u /* r: 0x54524143, "TRAC": the trace of frames. */
#define NACELLE_TRACE_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_TRACE_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_TRACE_TICKS_HZ 0x00cu /* r: Ticks of a second: the unit of times. */
#define NACELLE_TRACE_ROW_BYTES 0x010u /* r: Bytes of a row. */
#define NACELLE_TRACE_ROWS 0x014u /* r: Rows for received frames, and as many for sent ones. */
#define NACELLE_TRACE_FRAMES 0x018u /* r: Received frames that there is room for, and as many sent ones. */
#define NACELLE_TRACE_COMMAND 0x01cu /* w: A bit that is written as 1 acts once. */
#define NACELLE_TRACE_COMMAND_START_SHIFT 0 /* Forget what was recorded, and begin with the settings as they are. */
#define NACELLE_TRACE_COMMAND_START_MASK 0x00000001u
#define NACELLE_TRACE_COMMAND_STOP_SHIFT 1 /* Record no more. */
#define NACELLE_TRACE_COMMAND_STOP_MASK 0x00000002u
#define NACELLE_TRACE_MODE 0x020u /* w: How it records. In use at once, as all settings, which cannot be read. */
#define NACELLE_TRACE_MODE_TRIGGER_SHIFT 0 /* 0 none, 1 a frame that matches, 2 a drop: any counter whose name has `_drop_`. */
#define NACELLE_TRACE_MODE_TRIGGER_MASK 0x00000003u
#define NACELLE_TRACE_MODE_RING_SHIFT 2 /* New frames take the place of the oldest; else they are missed when there is no room. */
#define NACELLE_TRACE_MODE_RING_MASK 0x00000004u
#define NACELLE_TRACE_MODE_MATCHING_SHIFT 3 /* Only frames that match are recorded. */
#define NACELLE_TRACE_MODE_MATCHING_MASK 0x00000008u
#define NACELLE_TRACE_MODE_RX_SHIFT 4 /* Received frames are recorded. */
#define NACELLE_TRACE_MODE_RX_MASK 0x00000010u
#define NACELLE_TRACE_MODE_TX_SHIFT 5 /* Sent frames are recorded. */
#define NACELLE_TRACE_MODE_TX_MASK 0x00000020u
#define NACELLE_TRACE_SNAP 0x024u /* w: How much of each frame is recorded, rounded up to whole rows. */
#define NACELLE_TRACE_AFTER 0x028u /* w: Frames after the trigger, or without one from the start, after which it stops; one more if two end in the same cycle. 0: it goes on. */
#define NACELLE_TRACE_MATCH 0x02cu /* w: What a frame must have to match: all that is set here. Terms after the first are of frames with an IPv4 header of 20 bytes; they look at its bytes, whatever the frame is. */
#define NACELLE_TRACE_MATCH_ETHERTYPE_SHIFT 0 /* The EtherType is that of ETHERTYPE. */
#define NACELLE_TRACE_MATCH_ETHERTYPE_MASK 0x00000001u
#define NACELLE_TRACE_MATCH_ROCE_SHIFT 1 /* It is UDP to port 4791. */
#define NACELLE_TRACE_MATCH_ROCE_MASK 0x00000002u
#define NACELLE_TRACE_MATCH_OPCODE_SHIFT 2 /* The opcode of the BTH is OPCODE. */
#define NACELLE_TRACE_MATCH_OPCODE_MASK 0x00000004u
#define NACELLE_TRACE_MATCH_PEER_SHIFT 3 /* The source of what is received, the destination of what is sent, is PEER. */
#define NACELLE_TRACE_MATCH_PEER_MASK 0x00000008u
#define NACELLE_TRACE_MATCH_QPN_SHIFT 4 /* The destination queue pair is QPN_RX, of sent frames QPN_TX. */
#define NACELLE_TRACE_MATCH_QPN_MASK 0x00000010u
#define NACELLE_TRACE_ETHERTYPE 0x030u /* w: EtherType of frames that match. */
#define NACELLE_TRACE_OPCODE 0x034u /* w: BTH opcode of frames that match. */
#define NACELLE_TRACE_PEER 0x038u /* w: IPv4 address of the peer of frames that match. */
#define NACELLE_TRACE_QPN_RX 0x03cu /* w: Destination queue pair of received frames that match: one of the device. */
#define NACELLE_TRACE_QPN_TX 0x040u /* w: Destination queue pair of sent frames that match: one of a peer. */
#define NACELLE_TRACE_WINDOW 0x044u /* w: What is seen at WORDS: a piece of 2 KiB of the rows or of the entries. */
#define NACELLE_TRACE_WINDOW_PIECE_SHIFT 0 /* Number of the piece. */
#define NACELLE_TRACE_WINDOW_PIECE_MASK 0x00000fffu
#define NACELLE_TRACE_WINDOW_ENTRIES_SHIFT 12 /* Entries, else rows. */
#define NACELLE_TRACE_WINDOW_ENTRIES_MASK 0x00001000u
#define NACELLE_TRACE_WINDOW_TX_SHIFT 13 /* Of sent frames, else of received ones. */
#define NACELLE_TRACE_WINDOW_TX_MASK 0x00002000u
#define NACELLE_TRACE_RECORDED 0x060u /* r: Frames that were recorded, received and sent ones, modulo 2^32. That of number n is in entry n modulo FRAMES. */
#define NACELLE_TRACE_RECORDED_WORDS 2u
#define NACELLE_TRACE_PLACES 0x068u /* r: For received and for sent frames, since the last start. */
#define NACELLE_TRACE_PLACES_WORDS 2u
#define NACELLE_TRACE_PLACES_USED_SHIFT 0 /* Rows that were used, modulo 2^16. */
#define NACELLE_TRACE_PLACES_USED_MASK 0x0000ffffu
#define NACELLE_TRACE_PLACES_MISSED_SHIFT 16 /* Frames that were to be recorded, and for which there was no room; no more than 0xffff. */
#define NACELLE_TRACE_PLACES_MISSED_MASK 0xffff0000u
#define NACELLE_TRACE_STATE 0x070u /* r: What it does. What was recorded is read when it is stopped. */
#define NACELLE_TRACE_STATE_STATE_SHIFT 0 /* 0 stopped, 1 it records and waits for the trigger, 2 it records. */
#define NACELLE_TRACE_STATE_STATE_MASK 0x00000003u
#define NACELLE_TRACE_STATE_TRIGGERED_SHIFT 2 /* The trigger has come since the start. */
#define NACELLE_TRACE_STATE_TRIGGERED_MASK 0x00000004u
#define NACELLE_TRACE_STATE_TRIGGER_SHIFT 16 /* When the trigger came, the upper 16 bits. */
#define NACELLE_TRACE_STATE_TRIGGER_MASK 0xffff0000u
#define NACELLE_TRACE_TRIGGER 0x074u /* r: When the trigger came, the lower 32 bits. */
#define NACELLE_TRACE_WORDS 0x800u /* r: Rows: the bytes of frames, in order, the first one lowest. Entries, of 4 words: the time's lower 32 bits; in bits 15:0 its upper bits, in 31:16 the first row, modulo 2^16; in bits 15:0 the bytes of the frame without FCS, 0xffff if there were more, and in bit 16 whether the MAC found it bad; 0. */
#define NACELLE_TRACE_WORDS_WORDS 512u

/* ---- Histograms ---- */

#define NACELLE_HISTOGRAMS_BASE 0x05000u
#define NACELLE_HISTOGRAMS_BLOCK_TYPE 0x48495354u /* HIST */
#define NACELLE_HISTOGRAMS_BLOCK_VERSION 0x00010000u

#define NACELLE_HISTOGRAMS_TYPE 0x000u /* r: 0x48495354, "HIST": the histograms. */
#define NACELLE_HISTOGRAMS_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_HISTOGRAMS_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_HISTOGRAMS_CLOCK_HZ 0x00cu /* r: Cycles of a second: the unit of all times. */
#define NACELLE_HISTOGRAMS_NOW_LO 0x010u /* r: Cycles since reset, modulo 2^48: the lower 32 bits. */
#define NACELLE_HISTOGRAMS_NOW_HI 0x014u /* r: Likewise, the upper 16 bits. */
#define NACELLE_HISTOGRAMS_SHAPE 0x018u /* r: What the arrays have. */
#define NACELLE_HISTOGRAMS_SHAPE_BINS_SHIFT 0 /* Bins of a time. */
#define NACELLE_HISTOGRAMS_SHAPE_BINS_MASK 0x000000ffu
#define NACELLE_HISTOGRAMS_SHAPE_SOCKETS_SHIFT 8 /* Sockets that there are: the words of others are 0. */
#define NACELLE_HISTOGRAMS_SHAPE_SOCKETS_MASK 0x0000ff00u
#define NACELLE_HISTOGRAMS_SHAPE_FIRST_SHIFT 16 /* Bin b of a time has what is below 2^(first + b) cycles and in no bin before; the last has the rest. */
#define NACELLE_HISTOGRAMS_SHAPE_FIRST_MASK 0x00ff0000u
#define NACELLE_HISTOGRAMS_COMMAND 0x01cu /* w: A bit that is written as 1 acts once. */
#define NACELLE_HISTOGRAMS_COMMAND_CLEAR_SHIFT 0 /* Set every bin and every sum to 0. */
#define NACELLE_HISTOGRAMS_COMMAND_CLEAR_MASK 0x00000001u
#define NACELLE_HISTOGRAMS_STATUS 0x020u /* r: Whether what is read counts from one begin. */
#define NACELLE_HISTOGRAMS_STATUS_CLEARING_SHIFT 0 /* Bins are being set to 0, which takes 1024 cycles: what ends meanwhile is in none. */
#define NACELLE_HISTOGRAMS_STATUS_CLEARING_MASK 0x00000001u
#define NACELLE_HISTOGRAMS_STATUS_LOST_SHIFT 8 /* Calls that are not in LATENCY or RUN because their socket ended another one a few cycles later; no more than 255. */
#define NACELLE_HISTOGRAMS_STATUS_LOST_MASK 0x0000ff00u
#define NACELLE_HISTOGRAMS_STATUS_CLEARS_SHIFT 16 /* How often they were since reset, modulo 2^8. */
#define NACELLE_HISTOGRAMS_STATUS_CLEARS_MASK 0x00ff0000u
#define NACELLE_HISTOGRAMS_RUNNING 0x024u /* r: Bit s: socket s has a call. */
#define NACELLE_HISTOGRAMS_SINCE 0x040u /* r: When its call got socket s, in units of 256 cycles, modulo 2^32. Undefined before the first one. */
#define NACELLE_HISTOGRAMS_SINCE_WORDS 16u
#define NACELLE_HISTOGRAMS_LATENCY_SUM_LO 0x080u /* r: Sum of what is in LATENCY, modulo 2^56: the lower 32 bits. */
#define NACELLE_HISTOGRAMS_LATENCY_SUM_LO_WORDS 16u
#define NACELLE_HISTOGRAMS_LATENCY_SUM_HI 0x0c0u /* r: Likewise, the upper 24 bits. */
#define NACELLE_HISTOGRAMS_LATENCY_SUM_HI_WORDS 16u
#define NACELLE_HISTOGRAMS_RUN_SUM_LO 0x100u /* r: Sum of what is in RUN, modulo 2^56: the lower 32 bits. */
#define NACELLE_HISTOGRAMS_RUN_SUM_LO_WORDS 16u
#define NACELLE_HISTOGRAMS_RUN_SUM_HI 0x140u /* r: Likewise, the upper 24 bits. */
#define NACELLE_HISTOGRAMS_RUN_SUM_HI_WORDS 16u
#define NACELLE_HISTOGRAMS_QUEUE_SUM_LO 0x180u /* r: Sum of what is in QUEUE, modulo 2^56: the lower 32 bits. */
#define NACELLE_HISTOGRAMS_QUEUE_SUM_LO_WORDS 16u
#define NACELLE_HISTOGRAMS_QUEUE_SUM_HI 0x1c0u /* r: Likewise, the upper 24 bits. */
#define NACELLE_HISTOGRAMS_QUEUE_SUM_HI_WORDS 16u
#define NACELLE_HISTOGRAMS_QUEUE 0x200u /* r: Calls that came, modulo 2^32, by the calls that the socket had then, waiting or running: bin b has what is below 2^b and in no bin before, the last of 8 the rest. */
#define NACELLE_HISTOGRAMS_QUEUE_WORDS 128u
#define NACELLE_HISTOGRAMS_LATENCY 0x400u /* r: Calls that ended, modulo 2^32, by the cycles from their arrival to their result. */
#define NACELLE_HISTOGRAMS_LATENCY_WORDS 384u
#define NACELLE_HISTOGRAMS_RUN 0xa00u /* r: Calls that ended, modulo 2^32, by the cycles that they had the socket. */
#define NACELLE_HISTOGRAMS_RUN_WORDS 384u

/* ---- Images ---- */

#define NACELLE_IMAGES_BASE 0x06000u
#define NACELLE_IMAGES_BLOCK_TYPE 0x494d4753u /* IMGS */
#define NACELLE_IMAGES_BLOCK_VERSION 0x00010000u

#define NACELLE_IMAGES_TYPE 0x000u /* r: 0x494d4753, "IMGS": images of kernels. */
#define NACELLE_IMAGES_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_IMAGES_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_IMAGES_SLOTS 0x00cu /* r: Places for an image. */
#define NACELLE_IMAGES_SLOT_BYTES 0x010u /* r: Bytes of a place: the longest file. */
#define NACELLE_IMAGES_SELECT 0x014u /* rw: The place that a command, and SLOT, is about. */
#define NACELLE_IMAGES_SELECT_SLOT_SHIFT 0 /* Number of a place. */
#define NACELLE_IMAGES_SELECT_SLOT_MASK 0x000000ffu
#define NACELLE_IMAGES_COMMAND 0x018u /* w: Begins a command. Refused while an image is verified. */
#define NACELLE_IMAGES_STATE 0x01cu /* r: What has become of the last command. */
#define NACELLE_IMAGES_STATE_STATE_SHIFT 0 /* 0: nothing is under way; 1: an upload; 2: an image is verified. */
#define NACELLE_IMAGES_STATE_STATE_MASK 0x00000003u
#define NACELLE_IMAGES_STATE_PROVISIONED_SHIFT 7 /* There is a key. Without one no upload begins. */
#define NACELLE_IMAGES_STATE_PROVISIONED_MASK 0x00000080u
#define NACELLE_IMAGES_STATE_ERROR_SHIFT 8 /* Of the last command: docs/reference/images.md. */
#define NACELLE_IMAGES_STATE_ERROR_MASK 0x0000ff00u
#define NACELLE_IMAGES_STATE_UPLOAD_SHIFT 16 /* Number of the upload, modulo 2^8: the next one has the next number. */
#define NACELLE_IMAGES_STATE_UPLOAD_MASK 0x00ff0000u
#define NACELLE_IMAGES_PLACE 0x020u /* rw: Where the next word of DATA goes. Refused if no upload of this number is under way, and behind the end of the place. */
#define NACELLE_IMAGES_PLACE_WORD_SHIFT 0 /* Words before it in the place. */
#define NACELLE_IMAGES_PLACE_WORD_MASK 0x00ffffffu
#define NACELLE_IMAGES_PLACE_UPLOAD_SHIFT 24 /* The number of the upload, in STATE. */
#define NACELLE_IMAGES_PLACE_UPLOAD_MASK 0xff000000u
#define NACELLE_IMAGES_DATA 0x024u /* w: The next word of the file; PLACE counts on. Refused before PLACE is written in this upload, and behind the end of the place. */
#define NACELLE_IMAGES_SLOT 0x028u /* r: The place that SELECT names. */
#define NACELLE_IMAGES_SLOT_SOCKET_SHIFT 0 /* The socket whose image it is. */
#define NACELLE_IMAGES_SLOT_SOCKET_MASK 0x000000ffu
#define NACELLE_IMAGES_SLOT_VERIFIED_SHIFT 8 /* It holds an image that was verified: then the socket has its record. */
#define NACELLE_IMAGES_SLOT_VERIFIED_MASK 0x00000100u
#define NACELLE_IMAGES_SLOT_USED_SHIFT 9 /* The socket holds it, or it is being loaded: the place takes no upload. */
#define NACELLE_IMAGES_SLOT_USED_MASK 0x00000200u
#define NACELLE_IMAGES_KEY 0x040u /* w: The key of 32 bytes with which images are signed. It is set when all words were written and one of them is not 0. */
#define NACELLE_IMAGES_KEY_WORDS 8u

/* ---- Sensors of the board ---- */

#define NACELLE_SENSORS_BASE 0x07000u
#define NACELLE_SENSORS_BLOCK_TYPE 0x53454e53u /* SENS */
#define NACELLE_SENSORS_BLOCK_VERSION 0x00010000u

#define NACELLE_SENSORS_TYPE 0x000u /* r: 0x53454e53, "SENS": the sensors of the board. */
#define NACELLE_SENSORS_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_SENSORS_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_SENSORS_CLOCK_HZ 0x00cu /* r: Cycles of a second: the unit of ages. */
#define NACELLE_SENSORS_SENSORS 0x010u /* r: Sensors, 1 to 16. */
#define NACELLE_SENSORS_NOW 0x014u /* r: Time since reset in units of 65536 cycles, modulo 2^24. */
#define NACELLE_SENSORS_KIND 0x040u /* r: What sensor s measures, and the unit of which its value has thousandths: 1 temperature, degree Celsius; 2 voltage, volt; 3 current, ampere; 4 power, watt; 5 fan, turns a minute. 0 behind the last sensor. */
#define NACELLE_SENSORS_KIND_WORDS 16u
#define NACELLE_SENSORS_VALUE 0x080u /* r: Value of sensor s in thousandths of its unit, a two's complement number. It says nothing if STATE of s does not have `known`. */
#define NACELLE_SENSORS_VALUE_WORDS 16u
#define NACELLE_SENSORS_STATE 0x0c0u /* r: What is to be thought of the value of sensor s. */
#define NACELLE_SENSORS_STATE_WORDS 16u
#define NACELLE_SENSORS_STATE_CAME_SHIFT 0 /* NOW when the value came. */
#define NACELLE_SENSORS_STATE_CAME_MASK 0x00ffffffu
#define NACELLE_SENSORS_STATE_KNOWN_SHIFT 24 /* There is a value: one has come, was not taken back, and another one has come since each time within 2^32 cycles. */
#define NACELLE_SENSORS_STATE_KNOWN_MASK 0x01000000u
#define NACELLE_SENSORS_STATE_SIMULATED_SHIFT 25 /* The value is not measured, but that of a model. */
#define NACELLE_SENSORS_STATE_SIMULATED_MASK 0x02000000u
#define NACELLE_SENSORS_NAME 0x100u /* r: Words 4 s to 4 s + 3: name of sensor s: 16 ASCII bytes, the first one lowest in the first word, zeros behind it. */
#define NACELLE_SENSORS_NAME_WORDS 64u

/* ---- Copy engine ---- */

#define NACELLE_COPY_BASE 0x08000u
#define NACELLE_COPY_BLOCK_TYPE 0x434f5059u /* COPY */
#define NACELLE_COPY_BLOCK_VERSION 0x00010001u

#define NACELLE_COPY_TYPE 0x000u /* r: 0x434f5059, "COPY": the copy engine. */
#define NACELLE_COPY_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_COPY_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_COPY_CTRL 0x00cu /* rw: Begins and ends the queue. A queue that has stopped begins again by 0, then 1. */
#define NACELLE_COPY_CTRL_ENABLE_SHIFT 0 /* 1: the queue runs, from the first place of both rings; 0: it takes no more descriptors, ends what it has, and PRODUCER is 0 again. */
#define NACELLE_COPY_CTRL_ENABLE_MASK 0x00000001u
#define NACELLE_COPY_STATE 0x010u /* r: What the queue does. */
#define NACELLE_COPY_STATE_RUNNING_SHIFT 0 /* The queue has begun, and not all of it has ended: settings that are written are ignored. */
#define NACELLE_COPY_STATE_RUNNING_MASK 0x00000001u
#define NACELLE_COPY_STATE_STOPPED_SHIFT 8 /* Why the queue has stopped: 0 it has not, 1 a size that no ring has, 2 PRODUCER is further ahead than the ring is long, 3 descriptors could not be read, 4 a completion could not be written, 5 a bad descriptor, 6 the function was reset. */
#define NACELLE_COPY_STATE_STOPPED_MASK 0x00000700u
#define NACELLE_COPY_DESCRIPTORS_LO 0x014u /* rw: Device address of the ring of descriptors, lower half. It is a multiple of the bytes of the ring: lower bits are ignored. */
#define NACELLE_COPY_DESCRIPTORS_HI 0x018u /* rw: Its upper half. Host memory is from 2^63 on. */
#define NACELLE_COPY_COMPLETIONS_LO 0x01cu /* rw: Device address of the ring of completions, lower half; aligned likewise. */
#define NACELLE_COPY_COMPLETIONS_HI 0x020u /* rw: Its upper half. */
#define NACELLE_COPY_SIZES 0x024u /* rw: How long the rings are. Not while STATE.running. */
#define NACELLE_COPY_SIZES_DESCRIPTORS_SHIFT 0 /* 2^n descriptors, n from 5 to 15. */
#define NACELLE_COPY_SIZES_DESCRIPTORS_MASK 0x0000000fu
#define NACELLE_COPY_SIZES_COMPLETIONS_SHIFT 8 /* 2^n completions, likewise. */
#define NACELLE_COPY_SIZES_COMPLETIONS_MASK 0x00000f00u
#define NACELLE_COPY_SIZES_VECTOR_SHIFT 16 /* Vector of MSI-X for descriptors with `interrupt`; one that there is not: none. */
#define NACELLE_COPY_SIZES_VECTOR_MASK 0x007f0000u
#define NACELLE_COPY_PRODUCER 0x028u /* rw: Descriptors that were ever put into the ring: the doorbell. */
#define NACELLE_COPY_CONSUMER 0x02cu /* r: Descriptors that have left the ring: their places are free. */
#define NACELLE_COPY_REPORTED 0x030u /* r: Completions that are being written, or were. */
#define NACELLE_COPY_COPIES 0x034u /* r: Descriptors that have ended. */
#define NACELLE_COPY_ERRORS 0x038u /* r: Those of them that ended with an error. */
#define NACELLE_COPY_BYTES_LO 0x03cu /* r: Bytes that were given to memory, lower half. */
#define NACELLE_COPY_BYTES_HI 0x040u /* r: Upper half. Read it before and after the lower one. */
#define NACELLE_COPY_MEMORY_LO 0x044u /* r: Device address of the memory that is the host's, lower half: the device gives it to nobody. */
#define NACELLE_COPY_MEMORY_HI 0x048u /* r: Its upper half. */
#define NACELLE_COPY_MEMORY_SIZE_LO 0x04cu /* r: Its bytes, lower half. */
#define NACELLE_COPY_MEMORY_SIZE_HI 0x050u /* r: Upper half. */

/* ---- Classifier ---- */

#define NACELLE_CLASSIFIER_BASE 0x09000u
#define NACELLE_CLASSIFIER_BLOCK_TYPE 0x434c4153u /* CLAS */
#define NACELLE_CLASSIFIER_BLOCK_VERSION 0x00010001u

#define NACELLE_CLASSIFIER_TYPE 0x000u /* r: 0x434c4153, "CLAS": the classifier. */
#define NACELLE_CLASSIFIER_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_CLASSIFIER_NEXT 0x008u /* r: Byte address of the next block. */
#define NACELLE_CLASSIFIER_POSITIONS 0x00cu /* r: Entries of the table with wildcards. The lowest position that matches decides. */
#define NACELLE_CLASSIFIER_PAIRS 0x010u /* r: Pairs of queues of the network card; 0: there is none, and no frame can be given to the host. */
#define NACELLE_CLASSIFIER_STATUS 0x014u /* r: What it does. */
#define NACELLE_CLASSIFIER_STATUS_BUSY_SHIFT 0 /* A unit is loaded, or settings are about to be in use: every write but to ENTRY and FLOW_* is refused. */
#define NACELLE_CLASSIFIER_STATUS_BUSY_MASK 0x00000001u
#define NACELLE_CLASSIFIER_STATUS_FLOW_BUSY_SHIFT 1 /* A command is under way: every write to FLOW_* is refused; or the counters of a flow that was put wait for a cycle without a frame to be cleared: every command but FLOW_DELETE is. */
#define NACELLE_CLASSIFIER_STATUS_FLOW_BUSY_MASK 0x00000002u
#define NACELLE_CLASSIFIER_COMMAND 0x018u /* w: A bit that is written as 1 acts once. */
#define NACELLE_CLASSIFIER_COMMAND_COMMIT_SHIFT 0 /* ENABLE, WIDE and OFFSET as written are in use, for every frame that ends from now on, and all of them together. */
#define NACELLE_CLASSIFIER_COMMAND_COMMIT_MASK 0x00000001u
#define NACELLE_CLASSIFIER_COMMAND_CLEAR_SHIFT 1 /* The counters of the entry of ENTRY are 0. */
#define NACELLE_CLASSIFIER_COMMAND_CLEAR_MASK 0x00000002u
#define NACELLE_CLASSIFIER_LOAD 0x01cu /* w: The words of 32 entries are taken into the table. Those that are enabled stay as they are. Takes 3,400 cycles. */
#define NACELLE_CLASSIFIER_LOAD_UNIT_SHIFT 0 /* Positions from 32 times this on. */
#define NACELLE_CLASSIFIER_LOAD_UNIT_MASK 0x00000003u
#define NACELLE_CLASSIFIER_OFFSET 0x020u /* rw: Where the window of 16 bytes is. In use after COMMAND.commit; what is in use is read. */
#define NACELLE_CLASSIFIER_ENTRY 0x024u /* rw: The entry that is seen at WORDS, FRAMES and BYTES. */
#define NACELLE_CLASSIFIER_FRAMES 0x028u /* r: Frames for which the entry has decided. */
#define NACELLE_CLASSIFIER_BYTES_LO 0x02cu /* r: Bytes of these frames, the lower 32 bits. */
#define NACELLE_CLASSIFIER_BYTES_HI 0x030u /* r: The upper bits. */
#define NACELLE_CLASSIFIER_FLOW_PLACES 0x034u /* r: Flows of IPv4 that there is room for; one of IPv6 takes the room of three. */
#define NACELLE_CLASSIFIER_METERS 0x038u /* r: Meters, from 0. */
#define NACELLE_CLASSIFIER_ENABLE 0x040u /* rw: Entries that are looked at, of those whose words are loaded as they are. In use after COMMAND.commit; what is in use is read. */
#define NACELLE_CLASSIFIER_ENABLE_WORDS 4u
#define NACELLE_CLASSIFIER_WIDE 0x050u /* rw: Groups of four positions that are one entry. In use after COMMAND.commit; what is in use is read. */
#define NACELLE_CLASSIFIER_FLOW_KEY 0x400u /* rw: What FLOW_PUT writes or FLOW_GET has read: words 0 to 3 destination, 4 to 7 source, an IPv4 address in the lowest bits; word 8 source port (upper half) and destination port; word 9 protocol, and bit 8: IPv6. */
#define NACELLE_CLASSIFIER_FLOW_KEY_WORDS 10u
#define NACELLE_CLASSIFIER_FLOW_ACTION 0x428u /* rw: The action of the flow of FLOW_KEY. */
#define NACELLE_CLASSIFIER_FLOW_PUT 0x42cu /* w: The flow of FLOW_KEY with FLOW_ACTION is in this place, with counters of 0, for every frame that is looked up from now on. Refused if the place does not exist, or the key is of IPv6 without `whole` or the reverse. */
#define NACELLE_CLASSIFIER_FLOW_PUT_ROW_SHIFT 0 /* Row of the bank. */
#define NACELLE_CLASSIFIER_FLOW_PUT_ROW_MASK 0x000003ffu
#define NACELLE_CLASSIFIER_FLOW_PUT_BANK_SHIFT 10 /* Bank. */
#define NACELLE_CLASSIFIER_FLOW_PUT_BANK_MASK 0x00000400u
#define NACELLE_CLASSIFIER_FLOW_PUT_SLOT_SHIFT 11 /* Slot of the row, 0 to 2. */
#define NACELLE_CLASSIFIER_FLOW_PUT_SLOT_MASK 0x00001800u
#define NACELLE_CLASSIFIER_FLOW_PUT_WHOLE_SHIFT 13 /* A flow of IPv6: all slots, from slot 0 on. */
#define NACELLE_CLASSIFIER_FLOW_PUT_WHOLE_MASK 0x00002000u
#define NACELLE_CLASSIFIER_FLOW_DELETE 0x430u /* w: This place is empty. */
#define NACELLE_CLASSIFIER_FLOW_DELETE_ROW_SHIFT 0 /* Row of the bank. */
#define NACELLE_CLASSIFIER_FLOW_DELETE_ROW_MASK 0x000003ffu
#define NACELLE_CLASSIFIER_FLOW_DELETE_BANK_SHIFT 10 /* Bank. */
#define NACELLE_CLASSIFIER_FLOW_DELETE_BANK_MASK 0x00000400u
#define NACELLE_CLASSIFIER_FLOW_DELETE_SLOT_SHIFT 11 /* Slot of the row, 0 to 2. */
#define NACELLE_CLASSIFIER_FLOW_DELETE_SLOT_MASK 0x00001800u
#define NACELLE_CLASSIFIER_FLOW_DELETE_WHOLE_SHIFT 13 /* A flow of IPv6: all slots, from slot 0 on. */
#define NACELLE_CLASSIFIER_FLOW_DELETE_WHOLE_MASK 0x00002000u
#define NACELLE_CLASSIFIER_FLOW_GET 0x434u /* w: What is in this place is read: FLOW_KEY, FLOW_ACTION, FLOW_FRAMES and FLOW_BYTES have it when STATUS.flow_busy is 0. */
#define NACELLE_CLASSIFIER_FLOW_GET_ROW_SHIFT 0 /* Row of the bank. */
#define NACELLE_CLASSIFIER_FLOW_GET_ROW_MASK 0x000003ffu
#define NACELLE_CLASSIFIER_FLOW_GET_BANK_SHIFT 10 /* Bank. */
#define NACELLE_CLASSIFIER_FLOW_GET_BANK_MASK 0x00000400u
#define NACELLE_CLASSIFIER_FLOW_GET_SLOT_SHIFT 11 /* Slot of the row, 0 to 2. */
#define NACELLE_CLASSIFIER_FLOW_GET_SLOT_MASK 0x00001800u
#define NACELLE_CLASSIFIER_FLOW_GET_WHOLE_SHIFT 13 /* A flow of IPv6: all slots, from slot 0 on. */
#define NACELLE_CLASSIFIER_FLOW_GET_WHOLE_MASK 0x00002000u
#define NACELLE_CLASSIFIER_FLOW_SEED_LO 0x438u /* rw: The lower half of the seed of the hash. */
#define NACELLE_CLASSIFIER_FLOW_SEED_HI 0x43cu /* rw: The upper half. A write deletes all flows, for every frame from now on, and gives the hash this seed. Takes 3,200 cycles. To be random: see the page of the classifier. */
#define NACELLE_CLASSIFIER_FLOW_FRAMES 0x440u /* r: Frames of the flow that FLOW_GET has read. */
#define NACELLE_CLASSIFIER_FLOW_BYTES_LO 0x444u /* r: Their bytes, the lower 32 bits. */
#define NACELLE_CLASSIFIER_FLOW_BYTES_HI 0x448u /* r: The upper bits. */
#define NACELLE_CLASSIFIER_METER 0x480u /* rw: The meter that the other registers of meters are about. */
#define NACELLE_CLASSIFIER_METER_RATE 0x484u /* rw: What is filled into the bucket every 16 cycles. In use after METER_COMMAND.put; what is in use is read, and is not defined without settings. */
#define NACELLE_CLASSIFIER_METER_BURST 0x488u /* rw: What the bucket holds. Likewise. */
#define NACELLE_CLASSIFIER_METER_MODE 0x48cu /* rw: How it works. Likewise. */
#define NACELLE_CLASSIFIER_METER_MODE_FRAMES_SHIFT 0 /* Tokens are frames, else bytes without FCS. */
#define NACELLE_CLASSIFIER_METER_MODE_FRAMES_MASK 0x00000001u
#define NACELLE_CLASSIFIER_METER_MODE_TO_HOST_SHIFT 1 /* Frames above the rate are for the host, else for nobody. */
#define NACELLE_CLASSIFIER_METER_MODE_TO_HOST_MASK 0x00000002u
#define NACELLE_CLASSIFIER_METER_COMMAND 0x490u /* w: A bit that is written as 1 acts once. */
#define NACELLE_CLASSIFIER_METER_COMMAND_PUT_SHIFT 0 /* METER_RATE, METER_BURST and METER_MODE as written are in use, all together, with a full bucket and a counter of 0. */
#define NACELLE_CLASSIFIER_METER_COMMAND_PUT_MASK 0x00000001u
#define NACELLE_CLASSIFIER_METER_COMMAND_DELETE_SHIFT 1 /* The meter has no settings: nothing is above its rate. */
#define NACELLE_CLASSIFIER_METER_COMMAND_DELETE_MASK 0x00000002u
#define NACELLE_CLASSIFIER_METER_PRESENT 0x494u /* r: Meters with settings. */
#define NACELLE_CLASSIFIER_METER_OVER 0x498u /* r: Frames above the rate since the settings were put. */
#define NACELLE_CLASSIFIER_FLOW_USED 0x500u /* r: Places that are in use, of IPv6 all three slots: word 64 * slot + 32 * bank + row / 32. */
#define NACELLE_CLASSIFIER_FLOW_USED_WORDS 192u
#define NACELLE_CLASSIFIER_WORDS 0x800u /* rw: Words 0 to 33: a piece of the key, value in bits 5:0 and in bits 11:6 which of them are compared. Words 34 and 35: the action, its lower half first. The others are kept for software. After power-on they are not defined. */
#define NACELLE_CLASSIFIER_WORDS_WORDS 64u

/* ---- Streaming socket ---- */

#define NACELLE_STREAM_BASE 0x0b000u
#define NACELLE_STREAM_BLOCK_TYPE 0x5354524du /* STRM */
#define NACELLE_STREAM_BLOCK_VERSION 0x00010000u

#define NACELLE_STREAM_TYPE 0x000u /* r: 0x5354524d, "STRM": a streaming socket. */
#define NACELLE_STREAM_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_STREAM_NEXT 0x008u /* r: Byte address of the next block: that of the kernel, at 0x100 of this page, if it has registers. */
#define NACELLE_STREAM_KERNEL_VERSION 0x00cu /* r: Version of the kernel. */
#define NACELLE_STREAM_KERNEL_VERSION_MINOR_SHIFT 0 /* Minor. */
#define NACELLE_STREAM_KERNEL_VERSION_MINOR_MASK 0x0000ffffu
#define NACELLE_STREAM_KERNEL_VERSION_MAJOR_SHIFT 16 /* Major. */
#define NACELLE_STREAM_KERNEL_VERSION_MAJOR_MASK 0xffff0000u
#define NACELLE_STREAM_NAME 0x010u /* r: Name of the kernel. */
#define NACELLE_STREAM_NAME_WORDS 4u
#define NACELLE_STREAM_CONTROL 0x020u /* rw: Which frames go through the kernel. In use from the next frame on. */
#define NACELLE_STREAM_CONTROL_RX_SHIFT 0 /* Received frames go through the kernel, else round it; those about which a rule says so by that. */
#define NACELLE_STREAM_CONTROL_RX_MASK 0x00000001u
#define NACELLE_STREAM_CONTROL_TX_SHIFT 1 /* Frames that the card sends do. */
#define NACELLE_STREAM_CONTROL_TX_MASK 0x00000002u
#define NACELLE_STREAM_LIMIT 0x024u /* rw: How long the oldest frame may stay in the kernel. */
#define NACELLE_STREAM_COMMAND 0x028u /* w: A bit that is written as 1 acts once. */
#define NACELLE_STREAM_COMMAND_RESTART_SHIFT 0 /* The kernel is reset, with its registers; frames inside are lost. Then it is no longer cut off. */
#define NACELLE_STREAM_COMMAND_RESTART_MASK 0x00000001u
#define NACELLE_STREAM_STATUS 0x02cu /* r: Whether the kernel works. */
#define NACELLE_STREAM_STATUS_CUT_SHIFT 0 /* The kernel is cut off, and in reset: all frames go round it, and its registers answer with SLVERR. */
#define NACELLE_STREAM_STATUS_CUT_MASK 0x00000001u
#define NACELLE_STREAM_STATUS_TX_SHIFT 1 /* The last time that it was cut off it was for frames that are sent. */
#define NACELLE_STREAM_STATUS_TX_MASK 0x00000002u
#define NACELLE_STREAM_STATUS_CAUSE_SHIFT 8 /* Why: 0 it never was, 1 a frame was late, 2 a frame that it was not given, 3 too long a frame, 4 a malformed one, 5 COMMAND.restart. */
#define NACELLE_STREAM_STATUS_CAUSE_MASK 0x00000700u
#define NACELLE_STREAM_CUTS 0x030u /* r: How often it was cut off. */
#define NACELLE_STREAM_RX_FRAMES 0x040u /* r: Received frames given to the kernel. */
#define NACELLE_STREAM_RX_DROPPED 0x044u /* r: Of these, dropped by it. */
#define NACELLE_STREAM_RX_LOST 0x048u /* r: Of these, inside when it was cut off. */
#define NACELLE_STREAM_RX_ROUND 0x04cu /* r: Received frames that went round the kernel. */
#define NACELLE_STREAM_RX_OVERFLOW 0x050u /* r: Received frames for which there was no room in front of the kernel, or that were longer than the card takes. */
#define NACELLE_STREAM_TX_FRAMES 0x060u /* r: Frames of the card given to the kernel. */
#define NACELLE_STREAM_TX_DROPPED 0x064u /* r: Of these, dropped by it. */
#define NACELLE_STREAM_TX_LOST 0x068u /* r: Of these, inside when it was cut off. */
#define NACELLE_STREAM_TX_ROUND 0x06cu /* r: Frames of the card that went round the kernel. */

/* ---- Socket ---- */

#define NACELLE_SOCKET_BASE 0x10000u
#define NACELLE_SOCKET_BLOCK_STRIDE 0x1000u
#define NACELLE_SOCKET_BLOCK_COUNT 16u
#define NACELLE_SOCKET_BLOCK_TYPE 0x534f434bu /* SOCK */
#define NACELLE_SOCKET_BLOCK_VERSION 0x00010004u

#define NACELLE_SOCKET_TYPE 0x000u /* r: 0x534f434b, "SOCK": a socket. */
#define NACELLE_SOCKET_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_SOCKET_NEXT 0x008u /* r: Byte address of the next block: that of the kernel if it has one, else the next socket's, or 0. */
#define NACELLE_SOCKET_FUNCTIONS 0x00cu /* r: How many functions the kernel has. */
#define NACELLE_SOCKET_NAME 0x010u /* r: Name of the kernel: 16 ASCII bytes, the first one lowest in the first word, zeros behind it. */
#define NACELLE_SOCKET_NAME_WORDS 4u
#define NACELLE_SOCKET_FUNCTION_CODE 0x020u /* r: Codes of the functions, ascending, zeros behind them. */
#define NACELLE_SOCKET_FUNCTION_CODE_WORDS 8u
#define NACELLE_SOCKET_STATUS 0x040u /* r: State of the socket. */
#define NACELLE_SOCKET_STATUS_BUSY_SHIFT 0 /* A job is in progress. */
#define NACELLE_SOCKET_STATUS_BUSY_MASK 0x00000001u
#define NACELLE_SOCKET_STATUS_CUT_SHIFT 1 /* The kernel is decoupled. */
#define NACELLE_SOCKET_STATUS_CUT_MASK 0x00000002u
#define NACELLE_SOCKET_STATUS_OUTSTANDING_SHIFT 2 /* Work requests of the kernel are outstanding. */
#define NACELLE_SOCKET_STATUS_OUTSTANDING_MASK 0x00000004u
#define NACELLE_SOCKET_JOBS 0x044u /* r: Jobs finished. */
#define NACELLE_SOCKET_LAST_CYCLES 0x048u /* r: Cycles of the last job, from its first region to its answer taken. */
#define NACELLE_SOCKET_TIMEOUTS 0x04cu /* r: Jobs that took too long. */
#define NACELLE_SOCKET_REFUSED 0x050u /* r: Bursts and work requests outside of the window, connections to peers that are not permitted, and accesses to registers that are not (BUS). */
#define NACELLE_SOCKET_RDMA_PAGE 0x054u /* rw: First page of 4 KiB for work requests of the kernel while no job runs. */
#define NACELLE_SOCKET_RDMA_PAGES 0x058u /* rw: How many pages. */
#define NACELLE_SOCKET_KERNEL_VERSION 0x05cu /* r: Version of the kernel: major in the upper 16 bits, minor in the lower. */
#define NACELLE_SOCKET_IMAGES 0x060u /* r: Kernels that can take each other's place in the socket. */
#define NACELLE_SOCKET_IMAGES_COUNT_SHIFT 0 /* Images that it can hold, one at a time. */
#define NACELLE_SOCKET_IMAGES_COUNT_MASK 0x000000ffu
#define NACELLE_SOCKET_IMAGES_ACTIVE_SHIFT 8 /* The one that it holds, if IMAGE_STATE says that it holds one. */
#define NACELLE_SOCKET_IMAGES_ACTIVE_MASK 0x0000ff00u
#define NACELLE_SOCKET_IMAGES_FORMER_SHIFT 16 /* The one before. */
#define NACELLE_SOCKET_IMAGES_FORMER_MASK 0x00ff0000u
#define NACELLE_SOCKET_IMAGES_HAS_FORMER_SHIFT 24 /* There was one before. */
#define NACELLE_SOCKET_IMAGES_HAS_FORMER_MASK 0x01000000u
#define NACELLE_SOCKET_IMAGE_SELECT 0x064u /* rw: Which image is meant. SLVERR while a command is under way. */
#define NACELLE_SOCKET_IMAGE_SELECT_IMAGE_SHIFT 0 /* An image, for IMAGE_RECORD and IMAGE_COMMAND. */
#define NACELLE_SOCKET_IMAGE_SELECT_IMAGE_MASK 0x000000ffu
#define NACELLE_SOCKET_IMAGE_SELECT_WORD_SHIFT 8 /* A word of its record, for IMAGE_RECORD. */
#define NACELLE_SOCKET_IMAGE_SELECT_WORD_MASK 0x00001f00u
#define NACELLE_SOCKET_IMAGE_RECORD 0x068u /* r: A word of the record of an image. SLVERR while a command is under way. */
#define NACELLE_SOCKET_IMAGE_COMMAND 0x06cu /* w: Begins a command. SLVERR for 3 while none is under way, for others while one is, and if the socket has one image. */
#define NACELLE_SOCKET_IMAGE_STATE 0x070u /* r: What has become of the last command. */
#define NACELLE_SOCKET_IMAGE_STATE_STATE_SHIFT 0 /* 0: ready; 1: compares the digest; 2: waits for the running job; 3: for its accesses; 4 to 6: the image is loaded; 7: waits for the kernel to say what it is. */
#define NACELLE_SOCKET_IMAGE_STATE_STATE_MASK 0x0000000fu
#define NACELLE_SOCKET_IMAGE_STATE_LIVE_SHIFT 7 /* The socket holds a kernel. */
#define NACELLE_SOCKET_IMAGE_STATE_LIVE_MASK 0x00000080u
#define NACELLE_SOCKET_IMAGE_STATE_ERROR_SHIFT 8 /* Of the last command: docs/reference/kernels.md. */
#define NACELLE_SOCKET_IMAGE_STATE_ERROR_MASK 0x0000ff00u
#define NACELLE_SOCKET_IMAGE_STATE_FINISHED_SHIFT 16 /* Commands, modulo 2^16. */
#define NACELLE_SOCKET_IMAGE_STATE_FINISHED_MASK 0xffff0000u
#define NACELLE_SOCKET_IMAGE_DIGEST 0x080u /* w: SHA-256 of the image that is to be activated. SLVERR while a command is under way. */
#define NACELLE_SOCKET_IMAGE_DIGEST_WORDS 8u
#define NACELLE_SOCKET_DATAGRAM_PORT 0x0a0u /* rw: UDP port of the kernel. */
#define NACELLE_SOCKET_DATAGRAM_PORT_PORT_SHIFT 0 /* The port. */
#define NACELLE_SOCKET_DATAGRAM_PORT_PORT_MASK 0x0000ffffu
#define NACELLE_SOCKET_DATAGRAM_PORT_ENABLE_SHIFT 16 /* Datagrams to it are received, and sent as `to` says. */
#define NACELLE_SOCKET_DATAGRAM_PORT_ENABLE_MASK 0x00010000u
#define NACELLE_SOCKET_DATAGRAM_PORT_TO_SHIFT 24 /* To whom the kernel may send: 0: nobody; 1: an answer to each of the last 32 datagrams that it has got, at most three times as long; 2: to hosts of DATAGRAM_NETWORK. */
#define NACELLE_SOCKET_DATAGRAM_PORT_TO_MASK 0x03000000u
#define NACELLE_SOCKET_DATAGRAM_NETWORK 0x0a4u /* rw: IPv4 address of a network, the first byte highest. Of a host's address the bits in DATAGRAM_MASK must be the same. */
#define NACELLE_SOCKET_DATAGRAM_MASK 0x0a8u /* rw: See DATAGRAM_NETWORK. */
#define NACELLE_SOCKET_DATAGRAM_PACE 0x0acu /* rw: Time that each byte sent takes, in 1/256 cycle; a datagram has 64 bytes of headers, too. */
#define NACELLE_SOCKET_PEER_NETWORK 0x0b0u /* rw: An IPv6 address, its first four bytes in the first word, the first byte highest; IPv4 mapped into them: 0, 0, 0x0000ffff, address. SLVERR if the kernel can open no connections. */
#define NACELLE_SOCKET_PEER_NETWORK_WORDS 4u
#define NACELLE_SOCKET_PEERS 0x0c0u /* rw: Whom the kernel may connect to. Connections that are open stay. SLVERR if the kernel can open none. */
#define NACELLE_SOCKET_PEERS_PREFIX_SHIFT 0 /* Bits of PEER_NETWORK with which the address of a peer must begin; of an IPv4 network 96 more than its own. */
#define NACELLE_SOCKET_PEERS_PREFIX_MASK 0x000000ffu
#define NACELLE_SOCKET_PEERS_ENABLE_SHIFT 31 /* 0: the kernel may connect to nobody. */
#define NACELLE_SOCKET_PEERS_ENABLE_MASK 0x80000000u
#define NACELLE_SOCKET_CONNECTIONS 0x0c4u /* r: Connections that the kernel has opened. */
#define NACELLE_SOCKET_CONNECTIONS_SLOTS_SHIFT 0 /* Connections that the kernel can have at once. */
#define NACELLE_SOCKET_CONNECTIONS_SLOTS_MASK 0x000000ffu
#define NACELLE_SOCKET_CONNECTIONS_USED_SHIFT 16 /* Which of these are in use, a bit each. */
#define NACELLE_SOCKET_CONNECTIONS_USED_MASK 0x00ff0000u
#define NACELLE_SOCKET_BUS 0x0c8u /* rw: Registers of the device that the kernel may access; in use from the next access on. In a socket without a port to them it is 0, and a write is answered with SLVERR. */
#define NACELLE_SOCKET_BUS_READ_SHIFT 0 /* Read those that the column `kernel` of the tables names `read` or `write`; else only those that anybody may read. */
#define NACELLE_SOCKET_BUS_READ_MASK 0x00000001u
#define NACELLE_SOCKET_BUS_WRITE_SHIFT 1 /* Write those that it names `write`. */
#define NACELLE_SOCKET_BUS_WRITE_MASK 0x00000002u
#define NACELLE_SOCKET_DATAGRAMS_RECEIVED 0x0d0u /* r: Datagrams taken for the kernel. */
#define NACELLE_SOCKET_DATAGRAMS_DROP_ROOM 0x0d4u /* r: Received, but there was no room, or the kernel was decoupled. */
#define NACELLE_SOCKET_DATAGRAMS_DROP_LENGTH 0x0d8u /* r: Received, but longer than 4096 bytes. */
#define NACELLE_SOCKET_DATAGRAMS_DISCARDED 0x0dcu /* r: Of either direction: the kernel was decoupled. */
#define NACELLE_SOCKET_DATAGRAMS_SENT 0x0e0u /* r: Datagrams sent. */
#define NACELLE_SOCKET_DATAGRAMS_MALFORMED 0x0e4u /* r: From the kernel: no datagram, or not as long as its header says. */
#define NACELLE_SOCKET_DATAGRAMS_REFUSED 0x0e8u /* r: From the kernel, to whom it may not send. */
#define NACELLE_SOCKET_DATAGRAMS_UNRESOLVED 0x0ecu /* r: From the kernel: no MAC address was found for its destination. */

/* ---- Kernel `reflect` ---- */

#define NACELLE_REFLECT_BASE 0x10100u
#define NACELLE_REFLECT_BLOCK_STRIDE 0x1000u
#define NACELLE_REFLECT_BLOCK_COUNT 16u
#define NACELLE_REFLECT_BLOCK_TYPE 0x5245464cu /* REFL */
#define NACELLE_REFLECT_BLOCK_VERSION 0x00010000u

#define NACELLE_REFLECT_TYPE 0x000u /* r: 0x5245464c, "REFL": the kernel `reflect`. */
#define NACELLE_REFLECT_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_REFLECT_NEXT 0x008u /* r: Byte address of the next block: the next socket's, or 0. */
#define NACELLE_REFLECT_CONTROL 0x010u /* rw: What it does. Else datagrams wait for `receive`. */
#define NACELLE_REFLECT_CONTROL_REFLECT_SHIFT 0 /* Each datagram is sent back to its sender, but while `receive` runs. */
#define NACELLE_REFLECT_CONTROL_REFLECT_MASK 0x00000001u
#define NACELLE_REFLECT_REFLECTED 0x014u /* r: Datagrams sent back. */
#define NACELLE_REFLECT_IGNORED 0x018u /* r: Datagrams that were not, because they came from the kernel's own port number: two reflectors would go on for ever. */

/* ---- Kernel `traffic` ---- */

#define NACELLE_TRAFFIC_BASE 0x10100u
#define NACELLE_TRAFFIC_BLOCK_STRIDE 0x1000u
#define NACELLE_TRAFFIC_BLOCK_COUNT 16u
#define NACELLE_TRAFFIC_BLOCK_TYPE 0x54524146u /* TRAF */
#define NACELLE_TRAFFIC_BLOCK_VERSION 0x00010000u

#define NACELLE_TRAFFIC_TYPE 0x000u /* r: 0x54524146, "TRAF": the kernel `traffic`. */
#define NACELLE_TRAFFIC_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_TRAFFIC_NEXT 0x008u /* r: Byte address of the next block: the next socket's, or 0. */
#define NACELLE_TRAFFIC_CONTROL 0x010u /* w: Starts and stops. */
#define NACELLE_TRAFFIC_CONTROL_START_SHIFT 0 /* Start a run. An error during one. */
#define NACELLE_TRAFFIC_CONTROL_START_MASK 0x00000001u
#define NACELLE_TRAFFIC_CONTROL_STOP_SHIFT 1 /* Stop posting; the run ends with what is outstanding. */
#define NACELLE_TRAFFIC_CONTROL_STOP_MASK 0x00000002u
#define NACELLE_TRAFFIC_STATUS 0x014u /* r: State of the run. */
#define NACELLE_TRAFFIC_STATUS_RUNNING_SHIFT 0 /* A run is in progress. */
#define NACELLE_TRAFFIC_STATUS_RUNNING_MASK 0x00000001u
#define NACELLE_TRAFFIC_OPCODE 0x018u /* w: As ibv_wr_opcode; 15: post receives. */
#define NACELLE_TRAFFIC_LENGTH 0x01cu /* w: Bytes a request. */
#define NACELLE_TRAFFIC_QPN 0x020u /* w: The first queue pair. */
#define NACELLE_TRAFFIC_QPS 0x024u /* w: How many queue pairs, in turn. */
#define NACELLE_TRAFFIC_DEPTH 0x028u /* w: Requests outstanding on each, 1 to 255. */
#define NACELLE_TRAFFIC_COUNT 0x02cu /* w: Requests in all. */
#define NACELLE_TRAFFIC_LOCAL_LO 0x030u /* w: Local address, lower half. */
#define NACELLE_TRAFFIC_LOCAL_HI 0x034u /* w: Likewise, upper half. */
#define NACELLE_TRAFFIC_REMOTE_LO 0x038u /* w: Remote address, lower half. */
#define NACELLE_TRAFFIC_REMOTE_HI 0x03cu /* w: Likewise, upper half. */
#define NACELLE_TRAFFIC_RKEY 0x040u /* w: Key of the remote memory. */
#define NACELLE_TRAFFIC_STRIDE 0x044u /* w: Request i is for the addresses + (i mod WRAP) * STRIDE. */
#define NACELLE_TRAFFIC_WRAP 0x048u /* w: See STRIDE. */
#define NACELLE_TRAFFIC_POSTED 0x050u /* r: Requests posted. */
#define NACELLE_TRAFFIC_COMPLETED 0x054u /* r: Requests completed. */
#define NACELLE_TRAFFIC_FAILED 0x058u /* r: Of these, failed. */
#define NACELLE_TRAFFIC_FAILURE 0x05cu /* r: Status of the first that failed; 0: none. */
#define NACELLE_TRAFFIC_CYCLES 0x060u /* r: Cycles from the start to the last completion. */
#define NACELLE_TRAFFIC_FIRST 0x064u /* r: Cycles from the start to the first completion. */

/* ---- Stream kernel `nat` ---- */

#define NACELLE_NAT_BASE 0x0b100u
#define NACELLE_NAT_BLOCK_TYPE 0x4e415054u /* NAPT */
#define NACELLE_NAT_BLOCK_VERSION 0x00010000u

#define NACELLE_NAT_TYPE 0x000u /* r: 0x4e415054, "NAPT": the stream kernel `nat`. */
#define NACELLE_NAT_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_NAT_NEXT 0x008u /* r: Byte address of the next block: a socket's. */
#define NACELLE_NAT_CONTROL 0x010u /* rw: What becomes of frames. In use from the next frame on. */
#define NACELLE_NAT_CONTROL_ENABLE_SHIFT 0 /* Frames are translated; else all pass as they are. */
#define NACELLE_NAT_CONTROL_ENABLE_MASK 0x00000001u
#define NACELLE_NAT_CONTROL_DROP_RX_SHIFT 1 /* Received frames that are neither translated nor ARP are dropped. */
#define NACELLE_NAT_CONTROL_DROP_RX_MASK 0x00000002u
#define NACELLE_NAT_CONTROL_DROP_TX_SHIFT 2 /* So are those that are sent. */
#define NACELLE_NAT_CONTROL_DROP_TX_MASK 0x00000004u
#define NACELLE_NAT_OUTSIDE 0x014u /* rw: The address that the network sees. */
#define NACELLE_NAT_HOST 0x018u /* rw: The host whose ARP is translated: it answers for OUTSIDE, and asks with that address. */
#define NACELLE_NAT_ENTRIES 0x01cu /* r: Entries of the table. */
#define NACELLE_NAT_ENTRY 0x020u /* rw: The entry of PROTOCOL. A write sets INSIDE and PORTS to what it has. */
#define NACELLE_NAT_INSIDE 0x024u /* rw: Its address inside, in use with the next write of PROTOCOL. */
#define NACELLE_NAT_PORTS 0x028u /* rw: Its ports; of ICMP identifiers of echo. In use with the next write of PROTOCOL. */
#define NACELLE_NAT_PORTS_OUTSIDE_PORT_SHIFT 0 /* Outside. */
#define NACELLE_NAT_PORTS_OUTSIDE_PORT_MASK 0x0000ffffu
#define NACELLE_NAT_PORTS_INSIDE_PORT_SHIFT 16 /* Inside. */
#define NACELLE_NAT_PORTS_INSIDE_PORT_MASK 0xffff0000u
#define NACELLE_NAT_PROTOCOL 0x02cu /* rw: Writes the entry, with INSIDE and PORTS: one change for frames. What the entry has is read. */
#define NACELLE_NAT_TRANSLATED_TX 0x030u /* r: Frames from inside that were translated, ARP included. */
#define NACELLE_NAT_TRANSLATED_RX 0x034u /* r: Frames from outside that were. */
#define NACELLE_NAT_UNKNOWN_TX 0x038u /* r: Other frames from inside, dropped or not. Frames that pass while CONTROL.enable is 0 are not counted. */
#define NACELLE_NAT_UNKNOWN_RX 0x03cu /* r: Other frames from outside. */

/* ---- Stream kernel `pass` ---- */

#define NACELLE_PASS_BASE 0x0b100u
#define NACELLE_PASS_BLOCK_TYPE 0x50415353u /* PASS */
#define NACELLE_PASS_BLOCK_VERSION 0x00010000u

#define NACELLE_PASS_TYPE 0x000u /* r: 0x50415353, "PASS": the stream kernel `pass`. */
#define NACELLE_PASS_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_PASS_NEXT 0x008u /* r: Byte address of the next block: a socket's. */
#define NACELLE_PASS_HOLD 0x010u /* rw: The kernel stops, to see what becomes of one that does. */
#define NACELLE_PASS_HOLD_RX_SHIFT 0 /* Received frames stay inside. */
#define NACELLE_PASS_HOLD_RX_MASK 0x00000001u
#define NACELLE_PASS_HOLD_TX_SHIFT 1 /* Frames that are sent do. */
#define NACELLE_PASS_HOLD_TX_MASK 0x00000002u

/* ---- Stream kernel `telemetry` ---- */

#define NACELLE_TELEMETRY_BASE 0x0b100u
#define NACELLE_TELEMETRY_BLOCK_TYPE 0x464c4f57u /* FLOW */
#define NACELLE_TELEMETRY_BLOCK_VERSION 0x00010000u

#define NACELLE_TELEMETRY_TYPE 0x000u /* r: 0x464c4f57, "FLOW": the stream kernel `telemetry`. */
#define NACELLE_TELEMETRY_VERSION 0x004u /* r: Version of this block: major in the upper 16 bits, minor in the lower. */
#define NACELLE_TELEMETRY_NEXT 0x008u /* r: Byte address of the next block: a socket's. */
#define NACELLE_TELEMETRY_COMMAND 0x010u /* w: A bit that is written as 1 acts once. */
#define NACELLE_TELEMETRY_COMMAND_CLEAR_SHIFT 0 /* Tables, histograms and counters are empty. */
#define NACELLE_TELEMETRY_COMMAND_CLEAR_MASK 0x00000001u
#define NACELLE_TELEMETRY_SEED 0x014u /* rw: Of the hash. */
#define NACELLE_TELEMETRY_THRESHOLD 0x018u /* rw: From how many bytes on a flow is heavy. Looked at with each frame. */
#define NACELLE_TELEMETRY_PLACES 0x01cu /* r: Places of flows, of each direction. */
#define NACELLE_TELEMETRY_ENTRY 0x020u /* rw: The place that the registers up to LAST show, as it is when this is written. */
#define NACELLE_TELEMETRY_ENTRY_PLACE_SHIFT 0 /* A place. */
#define NACELLE_TELEMETRY_ENTRY_PLACE_MASK 0x000001ffu
#define NACELLE_TELEMETRY_ENTRY_TX_SHIFT 16 /* Of sent frames, else of received ones. */
#define NACELLE_TELEMETRY_ENTRY_TX_MASK 0x00010000u
#define NACELLE_TELEMETRY_FLOW 0x024u /* r: What kind of flow it is. */
#define NACELLE_TELEMETRY_FLOW_USED_SHIFT 0 /* There is a flow. */
#define NACELLE_TELEMETRY_FLOW_USED_MASK 0x00000001u
#define NACELLE_TELEMETRY_FLOW_V6_SHIFT 1 /* IPv6. */
#define NACELLE_TELEMETRY_FLOW_V6_MASK 0x00000002u
#define NACELLE_TELEMETRY_FLOW_PROTOCOL_SHIFT 8 /* Protocol of IPv4, next header of IPv6. */
#define NACELLE_TELEMETRY_FLOW_PROTOCOL_MASK 0x0000ff00u
#define NACELLE_TELEMETRY_PORTS 0x028u /* r: Its ports. */
#define NACELLE_TELEMETRY_PORTS_DST_PORT_SHIFT 0 /* 0 if it has none. */
#define NACELLE_TELEMETRY_PORTS_DST_PORT_MASK 0x0000ffffu
#define NACELLE_TELEMETRY_PORTS_SRC_PORT_SHIFT 16 /* Likewise. */
#define NACELLE_TELEMETRY_PORTS_SRC_PORT_MASK 0xffff0000u
#define NACELLE_TELEMETRY_LAST 0x02cu /* r: Time of its last frame, the lower bits, in device cycles. */
#define NACELLE_TELEMETRY_SRC 0x030u /* r: Its source, the highest word first; IPv4 in mapped form. */
#define NACELLE_TELEMETRY_SRC_WORDS 4u
#define NACELLE_TELEMETRY_DST 0x040u /* r: Its destination. */
#define NACELLE_TELEMETRY_DST_WORDS 4u
#define NACELLE_TELEMETRY_FRAMES 0x050u /* r: Its frames, since it has the place. */
#define NACELLE_TELEMETRY_BYTES_LO 0x054u /* r: Bytes of these frames, without FCS, the lower 32 bits. */
#define NACELLE_TELEMETRY_BYTES_HI 0x058u /* r: The upper 16 bits. */
#define NACELLE_TELEMETRY_BEFORE_LO 0x05cu /* r: Bytes of all flows of the place before it had it: so many of its own can be missing. */
#define NACELLE_TELEMETRY_BEFORE_HI 0x060u /* r: The upper 16 bits. */
#define NACELLE_TELEMETRY_OTHER_RX 0x070u /* r: Received frames that carry no IP, and are in no flow. */
#define NACELLE_TELEMETRY_REPLACED_RX 0x074u /* r: Flows of received frames that have lost their place to another one. */
#define NACELLE_TELEMETRY_OTHER_TX 0x078u /* r: Likewise of sent frames. */
#define NACELLE_TELEMETRY_REPLACED_TX 0x07cu /* r: Likewise. */
#define NACELLE_TELEMETRY_GAPS_RX 0x100u /* r: Word n: frames that came 2^n to 2^(n+1) - 1 cycles behind the frame before of their flow; word 0 also 0 cycles. */
#define NACELLE_TELEMETRY_GAPS_RX_WORDS 32u
#define NACELLE_TELEMETRY_GAPS_TX 0x180u /* r: The same of sent frames. */
#define NACELLE_TELEMETRY_GAPS_TX_WORDS 32u
#define NACELLE_TELEMETRY_HEAVY_RX 0x200u /* r: Places with a heavy flow. */
#define NACELLE_TELEMETRY_HEAVY_RX_WORDS 16u
#define NACELLE_TELEMETRY_HEAVY_TX 0x240u /* r: The same of sent frames. */
#define NACELLE_TELEMETRY_HEAVY_TX_WORDS 16u

#endif
