// SPDX-License-Identifier: Apache-2.0
// Made by rtl/control/generate.py from the descriptions of the registers. Do not edit.
//! Every register block that is known here.

use super::{Block, Field, Mode, Register, Who};

/// All blocks.
pub const BLOCKS: &[Block] = &[device::BLOCK, management::BLOCK, admission::BLOCK, event_log::BLOCK, trace::BLOCK, histograms::BLOCK, images::BLOCK, sensors::BLOCK, copy::BLOCK, classifier::BLOCK, stream::BLOCK, socket::BLOCK, reflect::BLOCK, traffic::BLOCK, nat::BLOCK, pass::BLOCK, telemetry::BLOCK];

/// Device.
pub mod device {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x0;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "device",
        kind: *b"NACL",
        version: 0x00000001,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CLOCK_HZ,
            QPS,
            SOCKETS,
            DRAM_BYTES_LO,
            DRAM_BYTES_HI,
            MAC_LO,
            MAC_HI,
            IP,
            PREFIX_LEN,
            GATEWAY,
            RANDOM_SEED,
            CTRL,
            RPC_PORT,
            KEEPALIVE_MS,
            KERNEL_TIMEOUT_MS,
            EXTENSIONS,
            LISTEN_PORT,
            MAX_CONNECTIONS_PER_PEER,
            MAX_HALF_OPEN,
            MAX_HALF_OPEN_PER_PEER,
            MEMORY_PER_CALLER,
            MESSAGES_LO,
            MESSAGES_HI,
            MESSAGES_BYTES,
            MRS,
            DATA_W,
            RP_ENABLE,
            NP_ENABLE,
            CLAMP_TGT_RATE,
            CLAMP_TGT_RATE_AFTER_TIME_INC,
            DCE_TCP_G,
            DCE_TCP_RTT,
            INITIAL_ALPHA_VALUE,
            RATE_REDUCE_MONITOR_PERIOD,
            RATE_TO_SET_ON_FIRST_CNP,
            RPG_AI_RATE,
            RPG_HAI_RATE,
            RPG_BYTE_RESET,
            RPG_TIME_RESET,
            RPG_GD,
            RPG_MIN_DEC_FAC,
            RPG_MIN_RATE,
            RPG_MAX_RATE,
            RPG_THRESHOLD,
            MIN_TIME_BETWEEN_CNPS,
            CCI_PORT,
            CCI_SOURCE,
            CCI_SOURCE_PREFIX,
            CCI_SESSION,
            CCI_TOKEN_0,
            CCI_TOKEN_1,
            CCI_TOKEN_2,
            CCI_TOKEN_3,
            CCI_LOGIN_0,
            CCI_LOGIN_1,
            CCI_LOGIN_2,
            CCI_LOGIN_3,
            CCI_LOGOUT,
            ADDRESS_MODE,
            DHCP_COMMAND,
            ADDRESS_IP,
            ADDRESS_PREFIX,
            ADDRESS_GATEWAY,
            ADDRESS_STATE,
            LEASE_LEFT,
            DHCP_SERVER,
            DISCOVERY,
            FLOW_CONTROL,
            PAUSE_QUANTA,
            PAUSE_LIMIT_MS,
            PRIORITY,
            VLAN,
            ICMP_ERRORS,
            NETWORK_CARD,
            DSCP,
            IPV6_MODE,
            IPV6_STATE,
            IPV6_VALID_LEFT,
            IPV6_PREFERRED_LEFT,
            IPV6_FIXED_0,
            IPV6_FIXED_1,
            IPV6_FIXED_2,
            IPV6_FIXED_3,
            IPV6_GLOBAL_0,
            IPV6_GLOBAL_1,
            IPV6_GLOBAL_2,
            IPV6_GLOBAL_3,
            IPV6_ROUTER_HI,
            IPV6_ROUTER_LO,
            IPV6_ROUTER_LEFT,
            DEVICE_ID_LO,
            DEVICE_ID_HI,
            BUILD_REVISION,
            BUILD_DIGEST_LO,
            BUILD_DIGEST_HI,
            PACKET_RX_FRAME,
            PACKET_RX_ROCE,
            PACKET_RX_ARP,
            PACKET_RX_ICMP,
            PACKET_RX_ND,
            PACKET_RX_UDP,
            PACKET_TX_FRAME,
            PACKET_TX_ROCE,
            PACKET_DROP_OVERFLOW,
            PACKET_DROP_FCS,
            PACKET_DROP_RUNT,
            PACKET_DROP_OVERSIZE,
            PACKET_DROP_NOT_OURS,
            PACKET_DROP_GROUP,
            PACKET_DROP_VLAN,
            PACKET_DROP_IPV6,
            PACKET_DROP_IPV6_HEADER,
            PACKET_DROP_IPV6_EXTENSION,
            PACKET_DROP_IPV6_FRAGMENT,
            PACKET_DROP_ND,
            PACKET_DROP_ETHERTYPE,
            PACKET_DROP_IPV4_HEADER,
            PACKET_DROP_IPV4_FRAGMENT,
            PACKET_DROP_TCP,
            PACKET_DROP_IP_PROTOCOL,
            PACKET_DROP_UDP_LENGTH,
            PACKET_DROP_UDP_CHECKSUM,
            PACKET_DROP_UDP_PORT,
            PACKET_DROP_ICMP,
            PACKET_DROP_ICMP_RATE,
            PACKET_DROP_ARP,
            PACKET_DROP_ARP_OVERFLOW,
            PACKET_DROP_ICRC,
            PACKET_DROP_ROCE_OPCODE,
            PACKET_DROP_ICMP_UNREACHABLE,
            PACKET_DROP_ICMP_TOO_BIG,
            PACKET_RX_PAUSE,
            PACKET_RX_PFC,
            PACKET_STOPPED_ROCE,
            PACKET_STOPPED_OTHER,
            PACKET_PAUSE_IGNORED,
            PACKET_RX_CARD,
            PACKET_TX_CARD,
            PACKET_DROP_CARD_SOURCE,
            ROCE_RX_RCVD_PKTS,
            ROCE_RX_DUPLICATE_REQUEST,
            ROCE_RX_OUT_OF_SEQ_REQUEST,
            ROCE_RX_OUT_OF_BUFFER,
            ROCE_RX_MEMORY_BUSY,
            ROCE_RX_RX_WRITE_REQUESTS,
            ROCE_RX_RX_READ_REQUESTS,
            ROCE_RX_RX_ATOMIC_REQUESTS,
            ROCE_RX_RX_SEND_REQUESTS,
            ROCE_RX_SENT_ACK,
            ROCE_RX_SENT_NAK,
            ROCE_RX_SEND_RNR_ERR,
            ROCE_RX_RESP_REMOTE_ACCESS_ERRORS,
            ROCE_RX_RESP_INVALID_REQUEST,
            ROCE_RX_RESP_LOCAL_LENGTH_ERROR,
            ROCE_RX_RESP_LOCAL_PROTECTION_ERRORS,
            ROCE_RX_RESP_CQE_FLUSH_ERROR,
            ROCE_RX_OUT_OF_ORDER_PLACED,
            ROCE_RX_ATOMIC_REPLAYED,
            ROCE_RX_DROP_DUPLICATE_FORGOTTEN,
            ROCE_RX_DROP_NO_QP,
            ROCE_RX_DROP_WRONG_PEER,
            ROCE_RX_DROP_BAD_BTH,
            ROCE_RX_DROP_CM_RATE,
            ROCE_RX_DROP_QP_STATE,
            ROCE_RX_NP_ECN_MARKED_ROCE_PACKETS,
            ROCE_RX_NP_CNP_SENT,
            ROCE_TX_SENT_PKTS,
            ROCE_TX_SENT_WRITES,
            ROCE_TX_SENT_SENDS,
            ROCE_TX_SENT_READS,
            ROCE_TX_SENT_ATOMICS,
            ROCE_TX_RCVD_ACKS,
            ROCE_TX_RCVD_READ_RESPONSES,
            ROCE_TX_RCVD_ATOMIC_RESPONSES,
            ROCE_TX_RNR_NAK_RETRY_ERR,
            ROCE_TX_PACKET_SEQ_ERR,
            ROCE_TX_IMPLIED_NAK_SEQ_ERR,
            ROCE_TX_REQ_REMOTE_ACCESS_ERRORS,
            ROCE_TX_REQ_REMOTE_INVALID_REQUEST,
            ROCE_TX_REQ_REMOTE_OPERATIONAL_ERRORS,
            ROCE_TX_BAD_RESPONSE_ERR,
            ROCE_TX_LOCAL_ACK_TIMEOUT_ERR,
            ROCE_TX_PACKET_RETRANSMIT,
            ROCE_TX_SELECTIVE_RETRANSMIT,
            ROCE_TX_RETRY_EXCEEDED_ERR,
            ROCE_TX_RETRY_RNR_EXCEEDED_ERR,
            ROCE_TX_REQ_CQE_FLUSH_ERROR,
            ROCE_TX_QP_ERROR,
            ROCE_TX_KEEPALIVE_SENT,
            ROCE_TX_DROP_GHOST_RESPONSE,
            ROCE_TX_DROP_RESPONSE_NO_QP,
            ROCE_TX_WQE_REFUSED,
            ROCE_TX_RP_CNP_HANDLED,
            ROCE_TX_RP_CNP_IGNORED,
            CM_REQ_RECEIVED,
            CM_REQ_SENT,
            CM_REP_RECEIVED,
            CM_REP_SENT,
            CM_RTU_RECEIVED,
            CM_RTU_SENT,
            CM_MRA_RECEIVED,
            CM_MRA_SENT,
            CM_REJ_RECEIVED,
            CM_REJ_SENT,
            CM_DREQ_RECEIVED,
            CM_DREQ_SENT,
            CM_DREP_RECEIVED,
            CM_DREP_SENT,
            CM_DUPLICATE_REQ,
            CM_REQ_TIMEOUT,
            CM_REP_TIMEOUT,
            CM_DREQ_TIMEOUT,
            CM_CONNECTION_OPENED,
            CM_CONNECTION_CLOSED,
            CM_DROP_MALFORMED,
            CM_DROP_OVERFLOW,
            CM_DROP_NO_CONNECTION,
            CM_DROP_UNRESOLVED,
            CM_REFUSED_PER_PEER,
            CM_REFUSED_HALF_OPEN,
            CM_REFUSED_HALF_OPEN_PER_PEER,
            CM_REFUSED_NO_TOKEN,
            CM_REFUSED_TOKEN,
            CM_REFUSED_PER_ENTRY,
            CM_ADMISSION_ENDED,
            RPC_REGIONS_GRANTED,
            RPC_REGIONS_REFUSED,
            RPC_CALL_STARTED,
            RPC_CALL_FINISHED,
            RPC_CALL_FAILED,
            RPC_CALL_CANCELLED,
            RPC_MESSAGE_MALFORMED,
            RPC_IMMEDIATE_IGNORED,
            MEMORY_CORRECTED,
            MEMORY_UNCORRECTABLE,
            SERVICE_RX_MESSAGE,
            SERVICE_TX_MESSAGE,
            SERVICE_DROP_LENGTH,
            SERVICE_DROP_ROOM,
            SERVICE_DROP_SOURCE,
            SERVICE_DROP_RATE,
            SERVICE_DROP_MALFORMED,
            SERVICE_DROP_ID,
            SERVICE_DROP_CONTEXT,
            SERVICE_RESENT,
            SERVICE_RESEND_UNKNOWN,
            SERVICE_REFUSED,
            SERVICE_BUS_ERROR,
            SERVICE_LOGIN,
            SERVICE_LOGIN_WRONG,
            SERVICE_LOGIN_REFUSED,
            SERVICE_SESSION_EXPIRED,
            SERVICE_MDNS_QUERY,
            SERVICE_MDNS_SENT,
            SERVICE_MDNS_OTHER,
            SERVICE_MDNS_BUSY,
            SERVICE_DROP_MDNS,
            SERVICE_LLDP_SENT,
            SERVICE_UNREACHABLE_SENT,
            SERVICE_UNREACHABLE_LIMITED,
            ADDRESS_CONFLICT,
            ADDRESS_DEFENDED,
            ADDRESS_LOST,
            ADDRESS_LEASE,
            ADDRESS_LEASE_LOST,
            ADDRESS_NAK,
            ADDRESS_DROP_MALFORMED,
            ADDRESS_DROP_UNEXPECTED,
            ADDRESS_IPV6_CONFLICT,
            ADDRESS_IPV6_LOST,
            ADDRESS_ROUTER_HEARD,
            ADDRESS_DROP_ROUTER,
            PCIE_COMPLETER_READS,
            PCIE_COMPLETER_WRITES,
            PCIE_COMPLETER_REFUSED_READS,
            PCIE_COMPLETER_REFUSED_WRITES,
            PCIE_COMPLETER_POISONED_WRITES,
            PCIE_COMPLETER_DAMAGED_WRITES,
            PCIE_COMPLETER_MESSAGES,
            PCIE_COMPLETER_READ_ERRORS,
            PCIE_COMPLETER_WRITE_ERRORS,
            PCIE_REQUESTER_WRITES,
            PCIE_REQUESTER_READS,
            PCIE_REQUESTER_WRITES_OFF,
            PCIE_REQUESTER_READS_OFF,
            PCIE_REQUESTER_UNSUPPORTED,
            PCIE_REQUESTER_ABORTS,
            PCIE_REQUESTER_POISONED,
            PCIE_REQUESTER_MALFORMED,
            PCIE_REQUESTER_TIMEOUTS,
            PCIE_REQUESTER_UNEXPECTED,
            PCIE_REQUESTER_LATE,
            PCIE_MSIX_SENT,
            PCIE_MSIX_MERGED,
            PCIE_RESETS,
            PCIE_NETWORK_MSIX_SENT,
            PCIE_NETWORK_MSIX_MERGED,
            PCIE_NETWORK_RESETS,
        ],
    };
    /// 0x4e41434c, "NACL": this is a Nacelle device.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x4e41434c, \"NACL\": this is a Nacelle device." };
    /// Version of the device contract: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of the device contract: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block, that of the management port.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block, that of the management port." };
    /// Frequency of the device clock that times are counted by.
    pub const CLOCK_HZ: Register = Register { name: "CLOCK_HZ", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Frequency of the device clock that times are counted by." };
    /// Connections that the device takes at once.
    pub const QPS: Register = Register { name: "QPS", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Connections that the device takes at once." };
    /// Sockets for kernels.
    pub const SOCKETS: Register = Register { name: "SOCKETS", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Sockets for kernels." };
    /// Device memory in bytes, lower half.
    pub const DRAM_BYTES_LO: Register = Register { name: "DRAM_BYTES_LO", offset: 0x18, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Device memory in bytes, lower half." };
    /// Device memory in bytes, upper half.
    pub const DRAM_BYTES_HI: Register = Register { name: "DRAM_BYTES_HI", offset: 0x1c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Device memory in bytes, upper half." };
    /// Lower 32 bits of the MAC address as a 48-bit number: 02:00:00:00:00:01 is 0x020000000001.
    pub const MAC_LO: Register = Register { name: "MAC_LO", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Lower 32 bits of the MAC address as a 48-bit number: 02:00:00:00:00:01 is 0x020000000001." };
    /// Upper 16 bits of the MAC address.
    pub const MAC_HI: Register = Register { name: "MAC_HI", offset: 0x24, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Upper 16 bits of the MAC address." };
    /// Static IPv4 address as a number: 10.0.0.1 is 0x0a000001. The one in use is in ADDRESS_IP.
    pub const IP: Register = Register { name: "IP", offset: 0x28, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Static IPv4 address as a number: 10.0.0.1 is 0x0a000001. The one in use is in ADDRESS_IP." };
    /// Length of the static address' network prefix, 0 to 32.
    pub const PREFIX_LEN: Register = Register { name: "PREFIX_LEN", offset: 0x2c, count: None, mode: Mode::ReadWrite, mask: 0x3f, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Length of the static address' network prefix, 0 to 32." };
    /// IPv4 address of the gateway to other networks that goes with the static address; 0: none.
    pub const GATEWAY: Register = Register { name: "GATEWAY", offset: 0x30, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPv4 address of the gateway to other networks that goes with the static address; 0: none." };
    /// Seed of keys, communication ids and starting PSNs. Write a random number before CTRL.enable.
    pub const RANDOM_SEED: Register = Register { name: "RANDOM_SEED", offset: 0x34, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Seed of keys, communication ids and starting PSNs. Write a random number before CTRL.enable." };
    /// `CTRL.enable`: The device takes frames and answers.
    pub const CTRL_ENABLE: Field = Field { name: "enable", low: 0, width: 1, doc: "The device takes frames and answers." };
    /// Control.
    pub const CTRL: Register = Register { name: "CTRL", offset: 0x38, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[CTRL_ENABLE], doc: "Control." };
    /// Where callers connect.
    pub const RPC_PORT: Register = Register { name: "RPC_PORT", offset: 0x3c, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Where callers connect." };
    /// A connection idle for this long is probed by a zero-length RDMA WRITE; 0: never.
    pub const KEEPALIVE_MS: Register = Register { name: "KEEPALIVE_MS", offset: 0x40, count: None, mode: Mode::ReadWrite, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "A connection idle for this long is probed by a zero-length RDMA WRITE; 0: never." };
    /// A kernel that runs longer is given up; 0: no limit.
    pub const KERNEL_TIMEOUT_MS: Register = Register { name: "KERNEL_TIMEOUT_MS", offset: 0x44, count: None, mode: Mode::ReadWrite, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "A kernel that runs longer is given up; 0: no limit." };
    /// Transport extensions are offered to peers and taken (docs/reference/extensions.md).
    pub const EXTENSIONS: Register = Register { name: "EXTENSIONS", offset: 0x48, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Transport extensions are offered to peers and taken (docs/reference/extensions.md)." };
    /// Port of the RDMA IP CM service (port space TCP) at which the management port takes connections; 0: none.
    pub const LISTEN_PORT: Register = Register { name: "LISTEN_PORT", offset: 0x4c, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Port of the RDMA IP CM service (port space TCP) at which the management port takes connections; 0: none." };
    /// Connections that callers with one IPv4 address may have at once; the next REQ is refused (REJ 3). 0: no limit. After reset a quarter of QPS.
    pub const MAX_CONNECTIONS_PER_PEER: Register = Register { name: "MAX_CONNECTIONS_PER_PEER", offset: 0x50, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Connections that callers with one IPv4 address may have at once; the next REQ is refused (REJ 3). 0: no limit. After reset a quarter of QPS." };
    /// Callers' connections whose REP has not been followed by an RTU or a request yet, in all; the next REQ is refused (REJ 3). 0: no limit. After reset half of QPS.
    pub const MAX_HALF_OPEN: Register = Register { name: "MAX_HALF_OPEN", offset: 0x54, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Callers' connections whose REP has not been followed by an RTU or a request yet, in all; the next REQ is refused (REJ 3). 0: no limit. After reset half of QPS." };
    /// Likewise, of callers with one IPv4 address. 0: as many as MAX_CONNECTIONS_PER_PEER, which counts them too.
    pub const MAX_HALF_OPEN_PER_PEER: Register = Register { name: "MAX_HALF_OPEN_PER_PEER", offset: 0x58, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, of callers with one IPv4 address. 0: as many as MAX_CONNECTIONS_PER_PEER, which counts them too." };
    /// KiB of memory, in whole pages of 4, that the regions of all connections of one IPv4 address may take; 0: no limit.
    pub const MEMORY_PER_CALLER: Register = Register { name: "MEMORY_PER_CALLER", offset: 0x5c, count: None, mode: Mode::ReadWrite, mask: 0x3fffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "KiB of memory, in whole pages of 4, that the regions of all connections of one IPv4 address may take; 0: no limit." };
    /// Device address of the memory for the messages of the first queue pair, QPN 2, lower half. Whoever has the queue pair uses it: the RPC engine or management.
    pub const MESSAGES_LO: Register = Register { name: "MESSAGES_LO", offset: 0x60, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Device address of the memory for the messages of the first queue pair, QPN 2, lower half. Whoever has the queue pair uses it: the RPC engine or management." };
    /// Likewise, upper half.
    pub const MESSAGES_HI: Register = Register { name: "MESSAGES_HI", offset: 0x64, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, upper half." };
    /// Bytes of it. That of the next queue pair follows at once.
    pub const MESSAGES_BYTES: Register = Register { name: "MESSAGES_BYTES", offset: 0x68, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Bytes of it. That of the next queue pair follows at once." };
    /// Memory regions that there can be at once.
    pub const MRS: Register = Register { name: "MRS", offset: 0x6c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Memory regions that there can be at once." };
    /// Width of the data path in bits.
    pub const DATA_W: Register = Register { name: "DATA_W", offset: 0x70, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Width of the data path in bits." };
    /// Congestion control: rates are limited, and data packets sent as ECN capable (docs/reference/congestion.md; names as Linux has them for mlx5).
    pub const RP_ENABLE: Register = Register { name: "RP_ENABLE", offset: 0x80, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Congestion control: rates are limited, and data packets sent as ECN capable (docs/reference/congestion.md; names as Linux has them for mlx5)." };
    /// Congestion control: packets that met congestion are answered by CNPs.
    pub const NP_ENABLE: Register = Register { name: "NP_ENABLE", offset: 0x84, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Congestion control: packets that met congestion are answered by CNPs." };
    /// Every cut takes the rate before it as the new target.
    pub const CLAMP_TGT_RATE: Register = Register { name: "CLAMP_TGT_RATE", offset: 0x88, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Every cut takes the rate before it as the new target." };
    /// Likewise if the timer has raised the rate since the last cut.
    pub const CLAMP_TGT_RATE_AFTER_TIME_INC: Register = Register { name: "CLAMP_TGT_RATE_AFTER_TIME_INC", offset: 0x8c, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise if the timer has raised the rate since the last cut." };
    /// 1 - g in 1/1024, g being the gain of alpha.
    pub const DCE_TCP_G: Register = Register { name: "DCE_TCP_G", offset: 0x90, count: None, mode: Mode::ReadWrite, mask: 0x3ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "1 - g in 1/1024, g being the gain of alpha." };
    /// Microseconds without a cut after which alpha decays; 0: never.
    pub const DCE_TCP_RTT: Register = Register { name: "DCE_TCP_RTT", offset: 0x94, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Microseconds without a cut after which alpha decays; 0: never." };
    /// Alpha at the first CNP, in 1/1024.
    pub const INITIAL_ALPHA_VALUE: Register = Register { name: "INITIAL_ALPHA_VALUE", offset: 0x98, count: None, mode: Mode::ReadWrite, mask: 0x7ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Alpha at the first CNP, in 1/1024." };
    /// Microseconds between two cuts, at least.
    pub const RATE_REDUCE_MONITOR_PERIOD: Register = Register { name: "RATE_REDUCE_MONITOR_PERIOD", offset: 0x9c, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Microseconds between two cuts, at least." };
    /// Mb/s; 0: the maximum, cut as by any CNP.
    pub const RATE_TO_SET_ON_FIRST_CNP: Register = Register { name: "RATE_TO_SET_ON_FIRST_CNP", offset: 0xa0, count: None, mode: Mode::ReadWrite, mask: 0xfffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Mb/s; 0: the maximum, cut as by any CNP." };
    /// Mb/s of additive increase.
    pub const RPG_AI_RATE: Register = Register { name: "RPG_AI_RATE", offset: 0xa4, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Mb/s of additive increase." };
    /// Mb/s of hyper increase.
    pub const RPG_HAI_RATE: Register = Register { name: "RPG_HAI_RATE", offset: 0xa8, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Mb/s of hyper increase." };
    /// Bytes sent between increases; 0: not counted.
    pub const RPG_BYTE_RESET: Register = Register { name: "RPG_BYTE_RESET", offset: 0xac, count: None, mode: Mode::ReadWrite, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes sent between increases; 0: not counted." };
    /// Microseconds between increases; 0: not counted.
    pub const RPG_TIME_RESET: Register = Register { name: "RPG_TIME_RESET", offset: 0xb0, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Microseconds between increases; 0: not counted." };
    /// A cut takes alpha * 1024 / 2^this of the rate.
    pub const RPG_GD: Register = Register { name: "RPG_GD", offset: 0xb4, count: None, mode: Mode::ReadWrite, mask: 0xf, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "A cut takes alpha * 1024 / 2^this of the rate." };
    /// Percent of the rate that a cut leaves, at least.
    pub const RPG_MIN_DEC_FAC: Register = Register { name: "RPG_MIN_DEC_FAC", offset: 0xb8, count: None, mode: Mode::ReadWrite, mask: 0x7f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Percent of the rate that a cut leaves, at least." };
    /// Mb/s, lowest rate.
    pub const RPG_MIN_RATE: Register = Register { name: "RPG_MIN_RATE", offset: 0xbc, count: None, mode: Mode::ReadWrite, mask: 0xfffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Mb/s, lowest rate." };
    /// Mb/s, highest rate; 0: line rate.
    pub const RPG_MAX_RATE: Register = Register { name: "RPG_MAX_RATE", offset: 0xc0, count: None, mode: Mode::ReadWrite, mask: 0xfffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Mb/s, highest rate; 0: line rate." };
    /// Stages of fast recovery.
    pub const RPG_THRESHOLD: Register = Register { name: "RPG_THRESHOLD", offset: 0xc4, count: None, mode: Mode::ReadWrite, mask: 0x1f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Stages of fast recovery." };
    /// Microseconds between two CNPs of a QP, at least.
    pub const MIN_TIME_BETWEEN_CNPS: Register = Register { name: "MIN_TIME_BETWEEN_CNPS", offset: 0xc8, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Microseconds between two CNPs of a QP, at least." };
    /// UDP port at which registers are read and written by IPbus 2.0; 0: none.
    pub const CCI_PORT: Register = Register { name: "CCI_PORT", offset: 0xd0, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "UDP port at which registers are read and written by IPbus 2.0; 0: none." };
    /// IPv4 address of a network; IPbus packets from other networks are dropped.
    pub const CCI_SOURCE: Register = Register { name: "CCI_SOURCE", offset: 0xd4, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "IPv4 address of a network; IPbus packets from other networks are dropped." };
    /// Length of that network's prefix, 0 to 32; 0: packets are taken from everywhere.
    pub const CCI_SOURCE_PREFIX: Register = Register { name: "CCI_SOURCE_PREFIX", offset: 0xd8, count: None, mode: Mode::ReadWrite, mask: 0x3f, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Length of that network's prefix, 0 to 32; 0: packets are taken from everywhere." };
    /// Seconds after which an IPbus client that sends nothing has to log in again.
    pub const CCI_SESSION: Register = Register { name: "CCI_SESSION", offset: 0xdc, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Seconds after which an IPbus client that sends nothing has to log in again." };
    /// The token of 16 bytes with which IPbus clients log in, its first word. All zero: nobody can, and nothing can be written by way of the network.
    pub const CCI_TOKEN_0: Register = Register { name: "CCI_TOKEN_0", offset: 0xe0, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "The token of 16 bytes with which IPbus clients log in, its first word. All zero: nobody can, and nothing can be written by way of the network." };
    /// Second word of the token.
    pub const CCI_TOKEN_1: Register = Register { name: "CCI_TOKEN_1", offset: 0xe4, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Second word of the token." };
    /// Third word of the token.
    pub const CCI_TOKEN_2: Register = Register { name: "CCI_TOKEN_2", offset: 0xe8, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Third word of the token." };
    /// Fourth word of the token.
    pub const CCI_TOKEN_3: Register = Register { name: "CCI_TOKEN_3", offset: 0xec, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Fourth word of the token." };
    /// An IPbus client that writes the four words of the token here in one block, all to this address or to this and the next three, is authorised.
    pub const CCI_LOGIN_0: Register = Register { name: "CCI_LOGIN_0", offset: 0xf0, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "An IPbus client that writes the four words of the token here in one block, all to this address or to this and the next three, is authorised." };
    /// Second word of the block.
    pub const CCI_LOGIN_1: Register = Register { name: "CCI_LOGIN_1", offset: 0xf4, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Second word of the block." };
    /// Third word of the block.
    pub const CCI_LOGIN_2: Register = Register { name: "CCI_LOGIN_2", offset: 0xf8, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Third word of the block." };
    /// Fourth word of the block.
    pub const CCI_LOGIN_3: Register = Register { name: "CCI_LOGIN_3", offset: 0xfc, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "Fourth word of the block." };
    /// An IPbus client that writes anything here is no longer authorised.
    pub const CCI_LOGOUT: Register = Register { name: "CCI_LOGOUT", offset: 0x100, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "An IPbus client that writes anything here is no longer authorised." };
    /// Where the IPv4 address comes from.
    pub const ADDRESS_MODE: Register = Register { name: "ADDRESS_MODE", offset: 0x110, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Where the IPv4 address comes from." };
    /// `DHCP_COMMAND.renew`: Renew the lease now; after a release, ask for one again.
    pub const DHCP_COMMAND_RENEW: Field = Field { name: "renew", low: 0, width: 1, doc: "Renew the lease now; after a release, ask for one again." };
    /// `DHCP_COMMAND.give_up`: Give the address back, and have none until the next `renew` or change of the mode.
    pub const DHCP_COMMAND_GIVE_UP: Field = Field { name: "give_up", low: 1, width: 1, doc: "Give the address back, and have none until the next `renew` or change of the mode." };
    /// Commands for the DHCP client: a bit that is written as 1 acts once.
    pub const DHCP_COMMAND: Register = Register { name: "DHCP_COMMAND", offset: 0x114, count: None, mode: Mode::Write, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[DHCP_COMMAND_RENEW, DHCP_COMMAND_GIVE_UP], doc: "Commands for the DHCP client: a bit that is written as 1 acts once." };
    /// IPv4 address in use; 0: none.
    pub const ADDRESS_IP: Register = Register { name: "ADDRESS_IP", offset: 0x118, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPv4 address in use; 0: none." };
    /// Length of its network prefix.
    pub const ADDRESS_PREFIX: Register = Register { name: "ADDRESS_PREFIX", offset: 0x11c, count: None, mode: Mode::Read, mask: 0x3f, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Length of its network prefix." };
    /// Gateway to other networks; 0: none.
    pub const ADDRESS_GATEWAY: Register = Register { name: "ADDRESS_GATEWAY", offset: 0x120, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Gateway to other networks; 0: none." };
    /// `ADDRESS_STATE.origin`: Where the address has come from: 0 there is none, 1 static, 2 DHCP, 3 link-local.
    pub const ADDRESS_STATE_ORIGIN: Field = Field { name: "origin", low: 0, width: 2, doc: "Where the address has come from: 0 there is none, 1 static, 2 DHCP, 3 link-local." };
    /// `ADDRESS_STATE.state`: What is done about it: 0 nothing, 1 before the first probe, 2 probing, 3 pause after a conflict, 4 connections are being closed, 5 the rest of them is dropped.
    pub const ADDRESS_STATE_STATE: Field = Field { name: "state", low: 4, width: 3, doc: "What is done about it: 0 nothing, 1 before the first probe, 2 probing, 3 pause after a conflict, 4 connections are being closed, 5 the rest of them is dropped." };
    /// `ADDRESS_STATE.dhcp`: State of the DHCP client: 0 off, 1 INIT, 2 SELECTING, 3 REQUESTING, 4 the address is probed, 5 BOUND, 6 RENEWING, 7 REBINDING.
    pub const ADDRESS_STATE_DHCP: Field = Field { name: "dhcp", low: 8, width: 3, doc: "State of the DHCP client: 0 off, 1 INIT, 2 SELECTING, 3 REQUESTING, 4 the address is probed, 5 BOUND, 6 RENEWING, 7 REBINDING." };
    /// State of the address.
    pub const ADDRESS_STATE: Register = Register { name: "ADDRESS_STATE", offset: 0x124, count: None, mode: Mode::Read, mask: 0x773, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[ADDRESS_STATE_ORIGIN, ADDRESS_STATE_STATE, ADDRESS_STATE_DHCP], doc: "State of the address." };
    /// Seconds until the DHCP lease ends; 0: there is none, 0xffffff: it does not end.
    pub const LEASE_LEFT: Register = Register { name: "LEASE_LEFT", offset: 0x128, count: None, mode: Mode::Read, mask: 0xffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Seconds until the DHCP lease ends; 0: there is none, 0xffffff: it does not end." };
    /// Identifier of the DHCP server of the lease, or of the last one.
    pub const DHCP_SERVER: Register = Register { name: "DHCP_SERVER", offset: 0x12c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Identifier of the DHCP server of the lease, or of the last one." };
    /// `DISCOVERY.mdns`: By multicast DNS. In use at once: the device announces itself, or says goodbye.
    pub const DISCOVERY_MDNS: Field = Field { name: "mdns", low: 0, width: 1, doc: "By multicast DNS. In use at once: the device announces itself, or says goodbye." };
    /// `DISCOVERY.lldp`: By LLDP, to the switch at the other end of the cable. In use at once.
    pub const DISCOVERY_LLDP: Field = Field { name: "lldp", low: 1, width: 1, doc: "By LLDP, to the switch at the other end of the cable. In use at once." };
    /// How the device makes itself known on its network (docs/reference/discovery.md).
    pub const DISCOVERY: Register = Register { name: "DISCOVERY", offset: 0x130, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[DISCOVERY_MDNS, DISCOVERY_LLDP], doc: "How the device makes itself known on its network (docs/reference/discovery.md)." };
    /// `FLOW_CONTROL.pause`: PAUSE frames (IEEE 802.3, annex 31B) stop all frames of the device.
    pub const FLOW_CONTROL_PAUSE: Field = Field { name: "pause", low: 0, width: 1, doc: "PAUSE frames (IEEE 802.3, annex 31B) stop all frames of the device." };
    /// `FLOW_CONTROL.pfc`: PFC frames (IEEE 802.1Q, clause 36) stop those of the priorities that they name.
    pub const FLOW_CONTROL_PFC: Field = Field { name: "pfc", low: 1, width: 1, doc: "PFC frames (IEEE 802.1Q, clause 36) stop those of the priorities that they name." };
    /// What the device does as the switch at its port asks. In use from the next frame on.
    pub const FLOW_CONTROL: Register = Register { name: "FLOW_CONTROL", offset: 0x140, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[FLOW_CONTROL_PAUSE, FLOW_CONTROL_PFC], doc: "What the device does as the switch at its port asks. In use from the next frame on." };
    /// Pause quanta, 512 bit times of the line, that pass in a cycle of the device, in 1/65536. After reset those of 100 Gb/s.
    pub const PAUSE_QUANTA: Register = Register { name: "PAUSE_QUANTA", offset: 0x144, count: None, mode: Mode::ReadWrite, mask: 0x3ffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Pause quanta, 512 bit times of the line, that pass in a cycle of the device, in 1/65536. After reset those of 100 Gb/s." };
    /// Milliseconds that a pause may last without an end; then it is ignored until it ends. 0: for ever.
    pub const PAUSE_LIMIT_MS: Register = Register { name: "PAUSE_LIMIT_MS", offset: 0x148, count: None, mode: Mode::ReadWrite, mask: 0x3ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Milliseconds that a pause may last without an end; then it is ignored until it ends. 0: for ever." };
    /// `PRIORITY.roce`: Of RoCE frames.
    pub const PRIORITY_ROCE: Field = Field { name: "roce", low: 0, width: 3, doc: "Of RoCE frames." };
    /// `PRIORITY.other`: Of all other frames.
    pub const PRIORITY_OTHER: Field = Field { name: "other", low: 4, width: 3, doc: "Of all other frames." };
    /// Priorities of the frames that the device sends: in their VLAN tags, and in PFC frames that stop them.
    pub const PRIORITY: Register = Register { name: "PRIORITY", offset: 0x14c, count: None, mode: Mode::ReadWrite, mask: 0x77, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PRIORITY_ROCE, PRIORITY_OTHER], doc: "Priorities of the frames that the device sends: in their VLAN tags, and in PFC frames that stop them." };
    /// `VLAN.vid`: VLAN identifier, 1 to 4094.
    pub const VLAN_VID: Field = Field { name: "vid", low: 0, width: 12, doc: "VLAN identifier, 1 to 4094." };
    /// `VLAN.untagged`: Frames without a tag, or with VID 0, are taken as well.
    pub const VLAN_UNTAGGED: Field = Field { name: "untagged", low: 16, width: 1, doc: "Frames without a tag, or with VID 0, are taken as well." };
    /// `VLAN.enable`: The device is in this VLAN: it takes frames of no other, and tags all that it sends.
    pub const VLAN_ENABLE: Field = Field { name: "enable", low: 31, width: 1, doc: "The device is in this VLAN: it takes frames of no other, and tags all that it sends." };
    /// The VLAN that the device is in. In use from the next frame on.
    pub const VLAN: Register = Register { name: "VLAN", offset: 0x150, count: None, mode: Mode::ReadWrite, mask: 0x80010fff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[VLAN_VID, VLAN_UNTAGGED, VLAN_ENABLE], doc: "The VLAN that the device is in. In use from the next frame on." };
    /// Packets to a port or of a protocol that the device does not serve are answered by ICMP destination unreachable, up to 64 a second.
    pub const ICMP_ERRORS: Register = Register { name: "ICMP_ERRORS", offset: 0x154, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Packets to a port or of a protocol that the device does not serve are answered by ICMP destination unreachable, up to 64 a second." };
    /// `NETWORK_CARD.shared`: The card has the MAC address of the device, and so its host can have the device's IP addresses, too; else one of its own. To be set before the host's driver starts.
    pub const NETWORK_CARD_SHARED: Field = Field { name: "shared", low: 0, width: 1, doc: "The card has the MAC address of the device, and so its host can have the device's IP addresses, too; else one of its own. To be set before the host's driver starts." };
    /// `NETWORK_CARD.promiscuous`: The card also gets what is for other stations.
    pub const NETWORK_CARD_PROMISCUOUS: Field = Field { name: "promiscuous", low: 1, width: 1, doc: "The card also gets what is for other stations." };
    /// `NETWORK_CARD.host_arp`: With `shared`: the host answers ARP requests and neighbour solicitations for the device's addresses, and gets them.
    pub const NETWORK_CARD_HOST_ARP: Field = Field { name: "host_arp", low: 2, width: 1, doc: "With `shared`: the host answers ARP requests and neighbour solicitations for the device's addresses, and gets them." };
    /// `NETWORK_CARD.host_echo`: With `shared`: the host answers echo requests to the device's addresses, and gets them.
    pub const NETWORK_CARD_HOST_ECHO: Field = Field { name: "host_echo", low: 3, width: 1, doc: "With `shared`: the host answers echo requests to the device's addresses, and gets them." };
    /// `NETWORK_CARD.any_source`: The card may send from other MAC addresses than its own, for guests behind a bridge.
    pub const NETWORK_CARD_ANY_SOURCE: Field = Field { name: "any_source", low: 4, width: 1, doc: "The card may send from other MAC addresses than its own, for guests behind a bridge." };
    /// `NETWORK_CARD.link`: The line works, as the MAC says.
    pub const NETWORK_CARD_LINK: Field = Field { name: "link", low: 30, width: 1, doc: "The line works, as the MAC says." };
    /// `NETWORK_CARD.built`: The device was built with a network card.
    pub const NETWORK_CARD_BUILT: Field = Field { name: "built", low: 31, width: 1, doc: "The device was built with a network card." };
    /// What the network card of the host gets and may send (docs/reference/network-card.md). In use from the next frame on.
    pub const NETWORK_CARD: Register = Register { name: "NETWORK_CARD", offset: 0x158, count: None, mode: Mode::ReadWrite, mask: 0xc000001f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[NETWORK_CARD_SHARED, NETWORK_CARD_PROMISCUOUS, NETWORK_CARD_HOST_ARP, NETWORK_CARD_HOST_ECHO, NETWORK_CARD_ANY_SOURCE, NETWORK_CARD_LINK, NETWORK_CARD_BUILT], doc: "What the network card of the host gets and may send (docs/reference/network-card.md). In use from the next frame on." };
    /// `DSCP.roce`: Of connection management, and of the connections that it makes. Each keeps what it was made with.
    pub const DSCP_ROCE: Field = Field { name: "roce", low: 0, width: 6, doc: "Of connection management, and of the connections that it makes. Each keeps what it was made with." };
    /// `DSCP.cnp`: Of CNPs. In use at once.
    pub const DSCP_CNP: Field = Field { name: "cnp", low: 8, width: 6, doc: "Of CNPs. In use at once." };
    /// `DSCP.of_caller`: A connection that a peer opens has the traffic class that its REQ names, and not that of `roce`.
    pub const DSCP_OF_CALLER: Field = Field { name: "of_caller", low: 16, width: 1, doc: "A connection that a peer opens has the traffic class that its REQ names, and not that of `roce`." };
    /// DSCP of RoCE packets (RFC 2474), by which the network tells traffic classes apart.
    pub const DSCP: Register = Register { name: "DSCP", offset: 0x160, count: None, mode: Mode::ReadWrite, mask: 0x13f3f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[DSCP_ROCE, DSCP_CNP, DSCP_OF_CALLER], doc: "DSCP of RoCE packets (RFC 2474), by which the network tells traffic classes apart." };
    /// `IPV6_MODE.on`: The device has a link-local address, and the static one of IPV6_FIXED if that is set. In use at once: connections are closed if addresses go.
    pub const IPV6_MODE_ON: Field = Field { name: "on", low: 0, width: 1, doc: "The device has a link-local address, and the static one of IPV6_FIXED if that is set. In use at once: connections are closed if addresses go." };
    /// `IPV6_MODE.autonomous`: Without a static address, it takes one of the first prefix that a router offers; and the first router, in any case.
    pub const IPV6_MODE_AUTONOMOUS: Field = Field { name: "autonomous", low: 1, width: 1, doc: "Without a static address, it takes one of the first prefix that a router offers; and the first router, in any case." };
    /// Which IPv6 addresses the device has. Nothing in a device that was built without IPv6.
    pub const IPV6_MODE: Register = Register { name: "IPV6_MODE", offset: 0x170, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[IPV6_MODE_ON, IPV6_MODE_AUTONOMOUS], doc: "Which IPv6 addresses the device has. Nothing in a device that was built without IPv6." };
    /// `IPV6_STATE.origin`: Where the global address has come from: 0 there is none, 1 static, 2 a router's prefix.
    pub const IPV6_STATE_ORIGIN: Field = Field { name: "origin", low: 0, width: 2, doc: "Where the global address has come from: 0 there is none, 1 static, 2 a router's prefix." };
    /// `IPV6_STATE.state`: What is done: 0 nothing, 1 before the probe of an address, 2 probing, 3 pause after a conflict, 4 IPv6 connections are being closed, 5 the rest of them is dropped.
    pub const IPV6_STATE_STATE: Field = Field { name: "state", low: 4, width: 3, doc: "What is done: 0 nothing, 1 before the probe of an address, 2 probing, 3 pause after a conflict, 4 IPv6 connections are being closed, 5 the rest of them is dropped." };
    /// `IPV6_STATE.has_local`: The link-local address, which follows from the MAC address, is in use.
    pub const IPV6_STATE_HAS_LOCAL: Field = Field { name: "has_local", low: 8, width: 1, doc: "The link-local address, which follows from the MAC address, is in use." };
    /// `IPV6_STATE.deprecated`: The preferred lifetime of the global address is over.
    pub const IPV6_STATE_DEPRECATED: Field = Field { name: "deprecated", low: 9, width: 1, doc: "The preferred lifetime of the global address is over." };
    /// `IPV6_STATE.on_link`: Other addresses of the global address' prefix are on the same link.
    pub const IPV6_STATE_ON_LINK: Field = Field { name: "on_link", low: 10, width: 1, doc: "Other addresses of the global address' prefix are on the same link." };
    /// `IPV6_STATE.built`: The device was built with IPv6.
    pub const IPV6_STATE_BUILT: Field = Field { name: "built", low: 31, width: 1, doc: "The device was built with IPv6." };
    /// State of the IPv6 addresses.
    pub const IPV6_STATE: Register = Register { name: "IPV6_STATE", offset: 0x174, count: None, mode: Mode::Read, mask: 0x80000773, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[IPV6_STATE_ORIGIN, IPV6_STATE_STATE, IPV6_STATE_HAS_LOCAL, IPV6_STATE_DEPRECATED, IPV6_STATE_ON_LINK, IPV6_STATE_BUILT], doc: "State of the IPv6 addresses." };
    /// Seconds until the global address goes, if it is of a router's prefix; 0xffffffff: it does not.
    pub const IPV6_VALID_LEFT: Register = Register { name: "IPV6_VALID_LEFT", offset: 0x178, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Seconds until the global address goes, if it is of a router's prefix; 0xffffffff: it does not." };
    /// Seconds until it should get no new connections; 0xffffffff: for ever.
    pub const IPV6_PREFERRED_LEFT: Register = Register { name: "IPV6_PREFERRED_LEFT", offset: 0x17c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Seconds until it should get no new connections; 0xffffffff: for ever." };
    /// Static global IPv6 address, bits 127 to 96: 2001:db8::1 is 0x20010db8, 0, 0, 1. All 0: none.
    pub const IPV6_FIXED_0: Register = Register { name: "IPV6_FIXED_0", offset: 0x180, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Static global IPv6 address, bits 127 to 96: 2001:db8::1 is 0x20010db8, 0, 0, 1. All 0: none." };
    /// Likewise, bits 95 to 64.
    pub const IPV6_FIXED_1: Register = Register { name: "IPV6_FIXED_1", offset: 0x184, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, bits 95 to 64." };
    /// Likewise, bits 63 to 32.
    pub const IPV6_FIXED_2: Register = Register { name: "IPV6_FIXED_2", offset: 0x188, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, bits 63 to 32." };
    /// Likewise, bits 31 to 0.
    pub const IPV6_FIXED_3: Register = Register { name: "IPV6_FIXED_3", offset: 0x18c, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, bits 31 to 0." };
    /// Global IPv6 address in use, bits 127 to 96; its prefix has 64 bits. All 0: none.
    pub const IPV6_GLOBAL_0: Register = Register { name: "IPV6_GLOBAL_0", offset: 0x190, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Global IPv6 address in use, bits 127 to 96; its prefix has 64 bits. All 0: none." };
    /// Likewise, bits 95 to 64.
    pub const IPV6_GLOBAL_1: Register = Register { name: "IPV6_GLOBAL_1", offset: 0x194, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, bits 95 to 64." };
    /// Likewise, bits 63 to 32.
    pub const IPV6_GLOBAL_2: Register = Register { name: "IPV6_GLOBAL_2", offset: 0x198, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, bits 63 to 32." };
    /// Likewise, bits 31 to 0.
    pub const IPV6_GLOBAL_3: Register = Register { name: "IPV6_GLOBAL_3", offset: 0x19c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, bits 31 to 0." };
    /// Interface identifier of the router, whose address is link-local, upper half.
    pub const IPV6_ROUTER_HI: Register = Register { name: "IPV6_ROUTER_HI", offset: 0x1a0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Interface identifier of the router, whose address is link-local, upper half." };
    /// Likewise, lower half.
    pub const IPV6_ROUTER_LO: Register = Register { name: "IPV6_ROUTER_LO", offset: 0x1a4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, lower half." };
    /// Seconds until the device forgets the router; 0: there is none.
    pub const IPV6_ROUTER_LEFT: Register = Register { name: "IPV6_ROUTER_LEFT", offset: 0x1a8, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Seconds until the device forgets the router; 0: there is none." };
    /// What this device is called, and no other: also its GUID in messages of connection management. Lower half.
    pub const DEVICE_ID_LO: Register = Register { name: "DEVICE_ID_LO", offset: 0x3e0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "What this device is called, and no other: also its GUID in messages of connection management. Lower half." };
    /// Likewise, upper half.
    pub const DEVICE_ID_HI: Register = Register { name: "DEVICE_ID_HI", offset: 0x3e4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, upper half." };
    /// First 8 digits of the revision that the RTL was built from; 0: it was not said.
    pub const BUILD_REVISION: Register = Register { name: "BUILD_REVISION", offset: 0x3e8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "First 8 digits of the revision that the RTL was built from; 0: it was not said." };
    /// Digest of what the device consists of, lower half: devices of different parameters or kernels have different ones.
    pub const BUILD_DIGEST_LO: Register = Register { name: "BUILD_DIGEST_LO", offset: 0x3ec, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Digest of what the device consists of, lower half: devices of different parameters or kernels have different ones." };
    /// Likewise, upper half.
    pub const BUILD_DIGEST_HI: Register = Register { name: "BUILD_DIGEST_HI", offset: 0x3f0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Likewise, upper half." };
    /// rx frame
    pub const PACKET_RX_FRAME: Register = Register { name: "packet_rx_frame", offset: 0x400, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx frame" };
    /// rx roce
    pub const PACKET_RX_ROCE: Register = Register { name: "packet_rx_roce", offset: 0x404, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx roce" };
    /// rx arp
    pub const PACKET_RX_ARP: Register = Register { name: "packet_rx_arp", offset: 0x408, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx arp" };
    /// also ICMPv6
    pub const PACKET_RX_ICMP: Register = Register { name: "packet_rx_icmp", offset: 0x40c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "also ICMPv6" };
    /// neighbour discovery
    pub const PACKET_RX_ND: Register = Register { name: "packet_rx_nd", offset: 0x410, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "neighbour discovery" };
    /// rx udp
    pub const PACKET_RX_UDP: Register = Register { name: "packet_rx_udp", offset: 0x414, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx udp" };
    /// tx frame
    pub const PACKET_TX_FRAME: Register = Register { name: "packet_tx_frame", offset: 0x418, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "tx frame" };
    /// tx roce
    pub const PACKET_TX_ROCE: Register = Register { name: "packet_tx_roce", offset: 0x41c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "tx roce" };
    /// arrived when the receive stores were full
    pub const PACKET_DROP_OVERFLOW: Register = Register { name: "packet_drop_overflow", offset: 0x420, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "arrived when the receive stores were full" };
    /// tuser from the MAC
    pub const PACKET_DROP_FCS: Register = Register { name: "packet_drop_fcs", offset: 0x424, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "tuser from the MAC" };
    /// shorter than its headers require
    pub const PACKET_DROP_RUNT: Register = Register { name: "packet_drop_runt", offset: 0x428, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "shorter than its headers require" };
    /// longer than the frame store accepts
    pub const PACKET_DROP_OVERSIZE: Register = Register { name: "packet_drop_oversize", offset: 0x42c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "longer than the frame store accepts" };
    /// Ethernet or IPv4 destination of another station
    pub const PACKET_DROP_NOT_OURS: Register = Register { name: "packet_drop_not_ours", offset: 0x430, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Ethernet or IPv4 destination of another station" };
    /// to a multicast or broadcast Ethernet address, and neither ARP nor an expected DHCP answer nor mDNS
    pub const PACKET_DROP_GROUP: Register = Register { name: "packet_drop_group", offset: 0x434, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "to a multicast or broadcast Ethernet address, and neither ARP nor an expected DHCP answer nor mDNS" };
    /// with a VLAN tag; with a VLAN of the device: not of that VLAN
    pub const PACKET_DROP_VLAN: Register = Register { name: "packet_drop_vlan", offset: 0x438, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "with a VLAN tag; with a VLAN of the device: not of that VLAN" };
    /// the device has no IPv6
    pub const PACKET_DROP_IPV6: Register = Register { name: "packet_drop_ipv6", offset: 0x43c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "the device has no IPv6" };
    /// version, or a source that no packet has
    pub const PACKET_DROP_IPV6_HEADER: Register = Register { name: "packet_drop_ipv6_header", offset: 0x440, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "version, or a source that no packet has" };
    /// an extension header
    pub const PACKET_DROP_IPV6_EXTENSION: Register = Register { name: "packet_drop_ipv6_extension", offset: 0x444, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "an extension header" };
    /// that of a fragment
    pub const PACKET_DROP_IPV6_FRAGMENT: Register = Register { name: "packet_drop_ipv6_fragment", offset: 0x448, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "that of a fragment" };
    /// neighbour discovery: malformed, checksum, or from behind a router
    pub const PACKET_DROP_ND: Register = Register { name: "packet_drop_nd", offset: 0x44c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "neighbour discovery: malformed, checksum, or from behind a router" };
    /// any other
    pub const PACKET_DROP_ETHERTYPE: Register = Register { name: "packet_drop_ethertype", offset: 0x450, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "any other" };
    /// version, options, checksum, length
    pub const PACKET_DROP_IPV4_HEADER: Register = Register { name: "packet_drop_ipv4_header", offset: 0x454, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "version, options, checksum, length" };
    /// drop ipv4 fragment
    pub const PACKET_DROP_IPV4_FRAGMENT: Register = Register { name: "packet_drop_ipv4_fragment", offset: 0x458, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drop ipv4 fragment" };
    /// drop tcp
    pub const PACKET_DROP_TCP: Register = Register { name: "packet_drop_tcp", offset: 0x45c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drop tcp" };
    /// any other, also of IPv6
    pub const PACKET_DROP_IP_PROTOCOL: Register = Register { name: "packet_drop_ip_protocol", offset: 0x460, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "any other, also of IPv6" };
    /// drop udp length
    pub const PACKET_DROP_UDP_LENGTH: Register = Register { name: "packet_drop_udp_length", offset: 0x464, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drop udp length" };
    /// wrong; IPv6: or none
    pub const PACKET_DROP_UDP_CHECKSUM: Register = Register { name: "packet_drop_udp_checksum", offset: 0x468, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "wrong; IPv6: or none" };
    /// no protocol or service listens on the port, or the source of a packet to a service is not one host
    pub const PACKET_DROP_UDP_PORT: Register = Register { name: "packet_drop_udp_port", offset: 0x46c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "no protocol or service listens on the port, or the source of a packet to a service is not one host" };
    /// checksum, or any other type
    pub const PACKET_DROP_ICMP: Register = Register { name: "packet_drop_icmp", offset: 0x470, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "checksum, or any other type" };
    /// an echo request, after earlier ones had stalled other frames for too long
    pub const PACKET_DROP_ICMP_RATE: Register = Register { name: "packet_drop_icmp_rate", offset: 0x474, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "an echo request, after earlier ones had stalled other frames for too long" };
    /// malformed
    pub const PACKET_DROP_ARP: Register = Register { name: "packet_drop_arp", offset: 0x478, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "malformed" };
    /// ARP or neighbour discovery: arrived faster than it can be processed
    pub const PACKET_DROP_ARP_OVERFLOW: Register = Register { name: "packet_drop_arp_overflow", offset: 0x47c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "ARP or neighbour discovery: arrived faster than it can be processed" };
    /// drop icrc
    pub const PACKET_DROP_ICRC: Register = Register { name: "packet_drop_icrc", offset: 0x480, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drop icrc" };
    /// unknown opcode: the length of its headers is not known
    pub const PACKET_DROP_ROCE_OPCODE: Register = Register { name: "packet_drop_roce_opcode", offset: 0x484, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "unknown opcode: the length of its headers is not known" };
    /// ICMP destination unreachable: has no effect
    pub const PACKET_DROP_ICMP_UNREACHABLE: Register = Register { name: "packet_drop_icmp_unreachable", offset: 0x488, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "ICMP destination unreachable: has no effect" };
    /// ICMP fragmentation needed: has no effect
    pub const PACKET_DROP_ICMP_TOO_BIG: Register = Register { name: "packet_drop_icmp_too_big", offset: 0x48c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "ICMP fragmentation needed: has no effect" };
    /// PAUSE frames
    pub const PACKET_RX_PAUSE: Register = Register { name: "packet_rx_pause", offset: 0x490, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "PAUSE frames" };
    /// PFC frames
    pub const PACKET_RX_PFC: Register = Register { name: "packet_rx_pfc", offset: 0x494, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "PFC frames" };
    /// cycles in which RoCE frames were stopped by such frames
    pub const PACKET_STOPPED_ROCE: Register = Register { name: "packet_stopped_roce", offset: 0x498, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "cycles in which RoCE frames were stopped by such frames" };
    /// cycles in which other frames were
    pub const PACKET_STOPPED_OTHER: Register = Register { name: "packet_stopped_other", offset: 0x49c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "cycles in which other frames were" };
    /// a pause lasted too long, and was ignored from then on
    pub const PACKET_PAUSE_IGNORED: Register = Register { name: "packet_pause_ignored", offset: 0x4a0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "a pause lasted too long, and was ignored from then on" };
    /// given to the network card; not counted as dropped, and as rx_frame only if a unit takes it as well
    pub const PACKET_RX_CARD: Register = Register { name: "packet_rx_card", offset: 0x4a4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "given to the network card; not counted as dropped, and as rx_frame only if a unit takes it as well" };
    /// sent for the network card
    pub const PACKET_TX_CARD: Register = Register { name: "packet_tx_card", offset: 0x4a8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "sent for the network card" };
    /// of the network card, from a MAC address that it may not use, or MAC control
    pub const PACKET_DROP_CARD_SOURCE: Register = Register { name: "packet_drop_card_source", offset: 0x4ac, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "of the network card, from a MAC address that it may not use, or MAC control" };
    /// request packets for a live QP
    pub const ROCE_RX_RCVD_PKTS: Register = Register { name: "roce_rx_rcvd_pkts", offset: 0x4b0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "request packets for a live QP" };
    /// duplicate request
    pub const ROCE_RX_DUPLICATE_REQUEST: Register = Register { name: "roce_rx_duplicate_request", offset: 0x4b4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "duplicate request" };
    /// PSN ahead of the expected one; the NAK may have been sent before
    pub const ROCE_RX_OUT_OF_SEQ_REQUEST: Register = Register { name: "roce_rx_out_of_seq_request", offset: 0x4b8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "PSN ahead of the expected one; the NAK may have been sent before" };
    /// no receive posted: RNR NAK
    pub const ROCE_RX_OUT_OF_BUFFER: Register = Register { name: "roce_rx_out_of_buffer", offset: 0x4bc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "no receive posted: RNR NAK" };
    /// the queue of its memory is full: RNR NAK, or dropped as if lost
    pub const ROCE_RX_MEMORY_BUSY: Register = Register { name: "roce_rx_memory_busy", offset: 0x4c0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "the queue of its memory is full: RNR NAK, or dropped as if lost" };
    /// messages
    pub const ROCE_RX_RX_WRITE_REQUESTS: Register = Register { name: "roce_rx_rx_write_requests", offset: 0x4c4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "messages" };
    /// rx read requests
    pub const ROCE_RX_RX_READ_REQUESTS: Register = Register { name: "roce_rx_rx_read_requests", offset: 0x4c8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx read requests" };
    /// rx atomic requests
    pub const ROCE_RX_RX_ATOMIC_REQUESTS: Register = Register { name: "roce_rx_rx_atomic_requests", offset: 0x4cc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx atomic requests" };
    /// rx send requests
    pub const ROCE_RX_RX_SEND_REQUESTS: Register = Register { name: "roce_rx_rx_send_requests", offset: 0x4d0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rx send requests" };
    /// sent ack
    pub const ROCE_RX_SENT_ACK: Register = Register { name: "roce_rx_sent_ack", offset: 0x4d4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "sent ack" };
    /// sent nak
    pub const ROCE_RX_SENT_NAK: Register = Register { name: "roce_rx_sent_nak", offset: 0x4d8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "sent nak" };
    /// RNR NAK sent
    pub const ROCE_RX_SEND_RNR_ERR: Register = Register { name: "roce_rx_send_rnr_err", offset: 0x4dc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "RNR NAK sent" };
    /// key, domain, QP, bounds or rights: NAK sent
    pub const ROCE_RX_RESP_REMOTE_ACCESS_ERRORS: Register = Register { name: "roce_rx_resp_remote_access_errors", offset: 0x4e0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "key, domain, QP, bounds or rights: NAK sent" };
    /// opcode sequence, length, alignment, too many READs and atomics: NAK sent
    pub const ROCE_RX_RESP_INVALID_REQUEST: Register = Register { name: "roce_rx_resp_invalid_request", offset: 0x4e4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "opcode sequence, length, alignment, too many READs and atomics: NAK sent" };
    /// SEND longer than the receive buffer: NAK sent
    pub const ROCE_RX_RESP_LOCAL_LENGTH_ERROR: Register = Register { name: "roce_rx_resp_local_length_error", offset: 0x4e8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "SEND longer than the receive buffer: NAK sent" };
    /// device memory reported an error: NAK sent
    pub const ROCE_RX_RESP_LOCAL_PROTECTION_ERRORS: Register = Register { name: "roce_rx_resp_local_protection_errors", offset: 0x4ec, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "device memory reported an error: NAK sent" };
    /// receives flushed
    pub const ROCE_RX_RESP_CQE_FLUSH_ERROR: Register = Register { name: "roce_rx_resp_cqe_flush_error", offset: 0x4f0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "receives flushed" };
    /// selective repeat: a WRITE packet ahead of the expected PSN was placed
    pub const ROCE_RX_OUT_OF_ORDER_PLACED: Register = Register { name: "roce_rx_out_of_order_placed", offset: 0x4f4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "selective repeat: a WRITE packet ahead of the expected PSN was placed" };
    /// duplicate, answered from the response cache
    pub const ROCE_RX_ATOMIC_REPLAYED: Register = Register { name: "roce_rx_atomic_replayed", offset: 0x4f8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "duplicate, answered from the response cache" };
    /// duplicate READ or atomic that finds the queue full, or no cached response
    pub const ROCE_RX_DROP_DUPLICATE_FORGOTTEN: Register = Register { name: "roce_rx_drop_duplicate_forgotten", offset: 0x4fc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "duplicate READ or atomic that finds the queue full, or no cached response" };
    /// drop no qp
    pub const ROCE_RX_DROP_NO_QP: Register = Register { name: "roce_rx_drop_no_qp", offset: 0x500, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drop no qp" };
    /// the QP is connected to another address
    pub const ROCE_RX_DROP_WRONG_PEER: Register = Register { name: "roce_rx_drop_wrong_peer", offset: 0x504, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "the QP is connected to another address" };
    /// TVer, P_Key, opcode of another service
    pub const ROCE_RX_DROP_BAD_BTH: Register = Register { name: "roce_rx_drop_bad_bth", offset: 0x508, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "TVer, P_Key, opcode of another service" };
    /// datagram to QP1, while those before it delay other packets
    pub const ROCE_RX_DROP_CM_RATE: Register = Register { name: "roce_rx_drop_cm_rate", offset: 0x50c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "datagram to QP1, while those before it delay other packets" };
    /// drop qp state
    pub const ROCE_RX_DROP_QP_STATE: Register = Register { name: "roce_rx_drop_qp_state", offset: 0x510, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drop qp state" };
    /// received with congestion experienced (CE)
    pub const ROCE_RX_NP_ECN_MARKED_ROCE_PACKETS: Register = Register { name: "roce_rx_np_ecn_marked_roce_packets", offset: 0x514, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "received with congestion experienced (CE)" };
    /// np cnp sent
    pub const ROCE_RX_NP_CNP_SENT: Register = Register { name: "roce_rx_np_cnp_sent", offset: 0x518, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "np cnp sent" };
    /// request packets, including retransmissions
    pub const ROCE_TX_SENT_PKTS: Register = Register { name: "roce_tx_sent_pkts", offset: 0x51c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "request packets, including retransmissions" };
    /// messages, not counting retransmissions
    pub const ROCE_TX_SENT_WRITES: Register = Register { name: "roce_tx_sent_writes", offset: 0x520, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "messages, not counting retransmissions" };
    /// sent sends
    pub const ROCE_TX_SENT_SENDS: Register = Register { name: "roce_tx_sent_sends", offset: 0x524, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "sent sends" };
    /// sent reads
    pub const ROCE_TX_SENT_READS: Register = Register { name: "roce_tx_sent_reads", offset: 0x528, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "sent reads" };
    /// sent atomics
    pub const ROCE_TX_SENT_ATOMICS: Register = Register { name: "roce_tx_sent_atomics", offset: 0x52c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "sent atomics" };
    /// rcvd acks
    pub const ROCE_TX_RCVD_ACKS: Register = Register { name: "roce_tx_rcvd_acks", offset: 0x530, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rcvd acks" };
    /// packets
    pub const ROCE_TX_RCVD_READ_RESPONSES: Register = Register { name: "roce_tx_rcvd_read_responses", offset: 0x534, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "packets" };
    /// rcvd atomic responses
    pub const ROCE_TX_RCVD_ATOMIC_RESPONSES: Register = Register { name: "roce_tx_rcvd_atomic_responses", offset: 0x538, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rcvd atomic responses" };
    /// RNR NAK received
    pub const ROCE_TX_RNR_NAK_RETRY_ERR: Register = Register { name: "roce_tx_rnr_nak_retry_err", offset: 0x53c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "RNR NAK received" };
    /// NAK PSN sequence error received
    pub const ROCE_TX_PACKET_SEQ_ERR: Register = Register { name: "roce_tx_packet_seq_err", offset: 0x540, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "NAK PSN sequence error received" };
    /// a response skipped a READ or atomic, or part of a READ
    pub const ROCE_TX_IMPLIED_NAK_SEQ_ERR: Register = Register { name: "roce_tx_implied_nak_seq_err", offset: 0x544, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "a response skipped a READ or atomic, or part of a READ" };
    /// NAK received
    pub const ROCE_TX_REQ_REMOTE_ACCESS_ERRORS: Register = Register { name: "roce_tx_req_remote_access_errors", offset: 0x548, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "NAK received" };
    /// req remote invalid request
    pub const ROCE_TX_REQ_REMOTE_INVALID_REQUEST: Register = Register { name: "roce_tx_req_remote_invalid_request", offset: 0x54c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "req remote invalid request" };
    /// req remote operational errors
    pub const ROCE_TX_REQ_REMOTE_OPERATIONAL_ERRORS: Register = Register { name: "roce_tx_req_remote_operational_errors", offset: 0x550, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "req remote operational errors" };
    /// a READ response of the wrong length: the QP fails
    pub const ROCE_TX_BAD_RESPONSE_ERR: Register = Register { name: "roce_tx_bad_response_err", offset: 0x554, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "a READ response of the wrong length: the QP fails" };
    /// local ack timeout err
    pub const ROCE_TX_LOCAL_ACK_TIMEOUT_ERR: Register = Register { name: "roce_tx_local_ack_timeout_err", offset: 0x558, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "local ack timeout err" };
    /// packet retransmit
    pub const ROCE_TX_PACKET_RETRANSMIT: Register = Register { name: "roce_tx_packet_retransmit", offset: 0x55c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "packet retransmit" };
    /// selective retransmit
    pub const ROCE_TX_SELECTIVE_RETRANSMIT: Register = Register { name: "roce_tx_selective_retransmit", offset: 0x560, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "selective retransmit" };
    /// retry exceeded err
    pub const ROCE_TX_RETRY_EXCEEDED_ERR: Register = Register { name: "roce_tx_retry_exceeded_err", offset: 0x564, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "retry exceeded err" };
    /// retry rnr exceeded err
    pub const ROCE_TX_RETRY_RNR_EXCEEDED_ERR: Register = Register { name: "roce_tx_retry_rnr_exceeded_err", offset: 0x568, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "retry rnr exceeded err" };
    /// req cqe flush error
    pub const ROCE_TX_REQ_CQE_FLUSH_ERROR: Register = Register { name: "roce_tx_req_cqe_flush_error", offset: 0x56c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "req cqe flush error" };
    /// qp error
    pub const ROCE_TX_QP_ERROR: Register = Register { name: "roce_tx_qp_error", offset: 0x570, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "qp error" };
    /// keepalive sent
    pub const ROCE_TX_KEEPALIVE_SENT: Register = Register { name: "roce_tx_keepalive_sent", offset: 0x574, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "keepalive sent" };
    /// for a PSN that was not sent or is already acknowledged (IBTA 9.7.5.1)
    pub const ROCE_TX_DROP_GHOST_RESPONSE: Register = Register { name: "roce_tx_drop_ghost_response", offset: 0x578, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "for a PSN that was not sent or is already acknowledged (IBTA 9.7.5.1)" };
    /// no such QP, not from its peer, or not in RTS, SQD or SQE
    pub const ROCE_TX_DROP_RESPONSE_NO_QP: Register = Register { name: "roce_tx_drop_response_no_qp", offset: 0x57c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "no such QP, not from its peer, or not in RTS, SQD or SQE" };
    /// work request for a QP of another client
    pub const ROCE_TX_WQE_REFUSED: Register = Register { name: "roce_tx_wqe_refused", offset: 0x580, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "work request for a QP of another client" };
    /// rp cnp handled
    pub const ROCE_TX_RP_CNP_HANDLED: Register = Register { name: "roce_tx_rp_cnp_handled", offset: 0x584, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rp cnp handled" };
    /// for no QP, or congestion control is off
    pub const ROCE_TX_RP_CNP_IGNORED: Register = Register { name: "roce_tx_rp_cnp_ignored", offset: 0x588, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "for no QP, or congestion control is off" };
    /// req received
    pub const CM_REQ_RECEIVED: Register = Register { name: "cm_req_received", offset: 0x58c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "req received" };
    /// req sent
    pub const CM_REQ_SENT: Register = Register { name: "cm_req_sent", offset: 0x590, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "req sent" };
    /// rep received
    pub const CM_REP_RECEIVED: Register = Register { name: "cm_rep_received", offset: 0x594, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rep received" };
    /// rep sent
    pub const CM_REP_SENT: Register = Register { name: "cm_rep_sent", offset: 0x598, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rep sent" };
    /// rtu received
    pub const CM_RTU_RECEIVED: Register = Register { name: "cm_rtu_received", offset: 0x59c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rtu received" };
    /// rtu sent
    pub const CM_RTU_SENT: Register = Register { name: "cm_rtu_sent", offset: 0x5a0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rtu sent" };
    /// mra received
    pub const CM_MRA_RECEIVED: Register = Register { name: "cm_mra_received", offset: 0x5a4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mra received" };
    /// mra sent
    pub const CM_MRA_SENT: Register = Register { name: "cm_mra_sent", offset: 0x5a8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mra sent" };
    /// rej received
    pub const CM_REJ_RECEIVED: Register = Register { name: "cm_rej_received", offset: 0x5ac, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rej received" };
    /// rej sent
    pub const CM_REJ_SENT: Register = Register { name: "cm_rej_sent", offset: 0x5b0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rej sent" };
    /// dreq received
    pub const CM_DREQ_RECEIVED: Register = Register { name: "cm_dreq_received", offset: 0x5b4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "dreq received" };
    /// dreq sent
    pub const CM_DREQ_SENT: Register = Register { name: "cm_dreq_sent", offset: 0x5b8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "dreq sent" };
    /// drep received
    pub const CM_DREP_RECEIVED: Register = Register { name: "cm_drep_received", offset: 0x5bc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drep received" };
    /// drep sent
    pub const CM_DREP_SENT: Register = Register { name: "cm_drep_sent", offset: 0x5c0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "drep sent" };
    /// duplicate req
    pub const CM_DUPLICATE_REQ: Register = Register { name: "cm_duplicate_req", offset: 0x5c4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "duplicate req" };
    /// req timeout
    pub const CM_REQ_TIMEOUT: Register = Register { name: "cm_req_timeout", offset: 0x5c8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "req timeout" };
    /// rep timeout
    pub const CM_REP_TIMEOUT: Register = Register { name: "cm_rep_timeout", offset: 0x5cc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "rep timeout" };
    /// dreq timeout
    pub const CM_DREQ_TIMEOUT: Register = Register { name: "cm_dreq_timeout", offset: 0x5d0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "dreq timeout" };
    /// reported to the client; opened - closed = live connections
    pub const CM_CONNECTION_OPENED: Register = Register { name: "cm_connection_opened", offset: 0x5d4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "reported to the client; opened - closed = live connections" };
    /// connection closed
    pub const CM_CONNECTION_CLOSED: Register = Register { name: "cm_connection_closed", offset: 0x5d8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "connection closed" };
    /// not a valid communication management datagram
    pub const CM_DROP_MALFORMED: Register = Register { name: "cm_drop_malformed", offset: 0x5dc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "not a valid communication management datagram" };
    /// received faster than it could be answered; the peer retransmits it
    pub const CM_DROP_OVERFLOW: Register = Register { name: "cm_drop_overflow", offset: 0x5e0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "received faster than it could be answered; the peer retransmits it" };
    /// for no connection, or not expected in its state
    pub const CM_DROP_NO_CONNECTION: Register = Register { name: "cm_drop_no_connection", offset: 0x5e4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "for no connection, or not expected in its state" };
    /// no ARP reply for the address that a client connects to: no REQ sent
    pub const CM_DROP_UNRESOLVED: Register = Register { name: "cm_drop_unresolved", offset: 0x5e8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "no ARP reply for the address that a client connects to: no REQ sent" };
    /// REQ: its address has reached its limit of connections
    pub const CM_REFUSED_PER_PEER: Register = Register { name: "cm_refused_per_peer", offset: 0x5ec, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "REQ: its address has reached its limit of connections" };
    /// REQ: the limit of half-open connections is reached
    pub const CM_REFUSED_HALF_OPEN: Register = Register { name: "cm_refused_half_open", offset: 0x5f0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "REQ: the limit of half-open connections is reached" };
    /// REQ: the limit of half-open connections with its address is reached
    pub const CM_REFUSED_HALF_OPEN_PER_PEER: Register = Register { name: "cm_refused_half_open_per_peer", offset: 0x5f4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "REQ: the limit of half-open connections with its address is reached" };
    /// REQ without a token, and no entry is for its address
    pub const CM_REFUSED_NO_TOKEN: Register = Register { name: "cm_refused_no_token", offset: 0x5f8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "REQ without a token, and no entry is for its address" };
    /// REQ with a token that no valid entry has for its address
    pub const CM_REFUSED_TOKEN: Register = Register { name: "cm_refused_token", offset: 0x5fc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "REQ with a token that no valid entry has for its address" };
    /// REQ: its entry has all its connections
    pub const CM_REFUSED_PER_ENTRY: Register = Register { name: "cm_refused_per_entry", offset: 0x600, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "REQ: its entry has all its connections" };
    /// a connection is closed because its entry was revoked, or its time is over
    pub const CM_ADMISSION_ENDED: Register = Register { name: "cm_admission_ended", offset: 0x604, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "a connection is closed because its entry was revoked, or its time is over" };
    /// regions granted
    pub const RPC_REGIONS_GRANTED: Register = Register { name: "rpc_regions_granted", offset: 0x608, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "regions granted" };
    /// regions refused
    pub const RPC_REGIONS_REFUSED: Register = Register { name: "rpc_regions_refused", offset: 0x60c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "regions refused" };
    /// call started
    pub const RPC_CALL_STARTED: Register = Register { name: "rpc_call_started", offset: 0x610, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "call started" };
    /// call finished
    pub const RPC_CALL_FINISHED: Register = Register { name: "rpc_call_finished", offset: 0x614, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "call finished" };
    /// call failed
    pub const RPC_CALL_FAILED: Register = Register { name: "rpc_call_failed", offset: 0x618, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "call failed" };
    /// one of call_failed: its caller cancelled it
    pub const RPC_CALL_CANCELLED: Register = Register { name: "rpc_call_cancelled", offset: 0x61c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "one of call_failed: its caller cancelled it" };
    /// message malformed
    pub const RPC_MESSAGE_MALFORMED: Register = Register { name: "rpc_message_malformed", offset: 0x620, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "message malformed" };
    /// start while a call runs, or before set-up
    pub const RPC_IMMEDIATE_IGNORED: Register = Register { name: "rpc_immediate_ignored", offset: 0x624, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "start while a call runs, or before set-up" };
    /// beats of memory in which the device's ECC has corrected a flipped bit
    pub const MEMORY_CORRECTED: Register = Register { name: "memory_corrected", offset: 0x628, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "beats of memory in which the device's ECC has corrected a flipped bit" };
    /// beats read, and writes, that memory answered with SLVERR
    pub const MEMORY_UNCORRECTABLE: Register = Register { name: "memory_uncorrectable", offset: 0x62c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "beats read, and writes, that memory answered with SLVERR" };
    /// taken into the store
    pub const SERVICE_RX_MESSAGE: Register = Register { name: "service_rx_message", offset: 0x630, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "taken into the store" };
    /// tx message
    pub const SERVICE_TX_MESSAGE: Register = Register { name: "service_tx_message", offset: 0x634, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "tx message" };
    /// empty, or longer than a message can be
    pub const SERVICE_DROP_LENGTH: Register = Register { name: "service_drop_length", offset: 0x638, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "empty, or longer than a message can be" };
    /// the store was full
    pub const SERVICE_DROP_ROOM: Register = Register { name: "service_drop_room", offset: 0x63c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "the store was full" };
    /// IPbus: from an address outside of the source filter
    pub const SERVICE_DROP_SOURCE: Register = Register { name: "service_drop_source", offset: 0x640, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: from an address outside of the source filter" };
    /// IPbus: without authorisation, faster than such packets are taken
    pub const SERVICE_DROP_RATE: Register = Register { name: "service_drop_rate", offset: 0x644, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: without authorisation, faster than such packets are taken" };
    /// IPbus: no IPbus 2.0 packet
    pub const SERVICE_DROP_MALFORMED: Register = Register { name: "service_drop_malformed", offset: 0x648, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: no IPbus 2.0 packet" };
    /// IPbus: a control packet that is not the next one: executed before, or one before it is missing
    pub const SERVICE_DROP_ID: Register = Register { name: "service_drop_id", offset: 0x64c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: a control packet that is not the next one: executed before, or one before it is missing" };
    /// IPbus: every context belongs to an authorised client
    pub const SERVICE_DROP_CONTEXT: Register = Register { name: "service_drop_context", offset: 0x650, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: every context belongs to an authorised client" };
    /// IPbus: a response was sent once more
    pub const SERVICE_RESENT: Register = Register { name: "service_resent", offset: 0x654, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: a response was sent once more" };
    /// IPbus: there is no such response, or it was resent too often without authorisation
    pub const SERVICE_RESEND_UNKNOWN: Register = Register { name: "service_resend_unknown", offset: 0x658, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: there is no such response, or it was resent too often without authorisation" };
    /// IPbus: an access that is not public, without authorisation; or to what only the local bus may access
    pub const SERVICE_REFUSED: Register = Register { name: "service_refused", offset: 0x65c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: an access that is not public, without authorisation; or to what only the local bus may access" };
    /// IPbus: there is no such register, or its owner did not answer
    pub const SERVICE_BUS_ERROR: Register = Register { name: "service_bus_error", offset: 0x660, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPbus: there is no such register, or its owner did not answer" };
    /// login
    pub const SERVICE_LOGIN: Register = Register { name: "service_login", offset: 0x664, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "login" };
    /// with a wrong token
    pub const SERVICE_LOGIN_WRONG: Register = Register { name: "service_login_wrong", offset: 0x668, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "with a wrong token" };
    /// with the token, but every context belongs to an authorised client that is in use
    pub const SERVICE_LOGIN_REFUSED: Register = Register { name: "service_login_refused", offset: 0x66c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "with the token, but every context belongs to an authorised client that is in use" };
    /// an authorised client was silent for too long
    pub const SERVICE_SESSION_EXPIRED: Register = Register { name: "service_session_expired", offset: 0x670, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "an authorised client was silent for too long" };
    /// mDNS: a query for a record of this device that it does not know yet
    pub const SERVICE_MDNS_QUERY: Register = Register { name: "service_mdns_query", offset: 0x674, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mDNS: a query for a record of this device that it does not know yet" };
    /// mDNS: an announcement, an answer or a goodbye was sent
    pub const SERVICE_MDNS_SENT: Register = Register { name: "service_mdns_sent", offset: 0x678, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mDNS: an announcement, an answer or a goodbye was sent" };
    /// mDNS: ignored: no query, or not from port 5353 of a host of this network
    pub const SERVICE_MDNS_OTHER: Register = Register { name: "service_mdns_other", offset: 0x67c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mDNS: ignored: no query, or not from port 5353 of a host of this network" };
    /// mDNS: a query was dropped because another one was being read
    pub const SERVICE_MDNS_BUSY: Register = Register { name: "service_mdns_busy", offset: 0x680, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mDNS: a query was dropped because another one was being read" };
    /// mDNS: a query that is not well formed
    pub const SERVICE_DROP_MDNS: Register = Register { name: "service_drop_mdns", offset: 0x684, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "mDNS: a query that is not well formed" };
    /// LLDP: a frame was sent
    pub const SERVICE_LLDP_SENT: Register = Register { name: "service_lldp_sent", offset: 0x688, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "LLDP: a frame was sent" };
    /// ICMP: destination unreachable
    pub const SERVICE_UNREACHABLE_SENT: Register = Register { name: "service_unreachable_sent", offset: 0x68c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "ICMP: destination unreachable" };
    /// ICMP: was not sent: too many in a short time
    pub const SERVICE_UNREACHABLE_LIMITED: Register = Register { name: "service_unreachable_limited", offset: 0x690, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "ICMP: was not sent: too many in a short time" };
    /// another host had, or wanted, the address in use or the one that was probed (RFC 5227)
    pub const ADDRESS_CONFLICT: Register = Register { name: "address_conflict", offset: 0x694, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "another host had, or wanted, the address in use or the one that was probed (RFC 5227)" };
    /// an address in use was announced once more because of that
    pub const ADDRESS_DEFENDED: Register = Register { name: "address_defended", offset: 0x698, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "an address in use was announced once more because of that" };
    /// an address in use was given up: all connections were closed
    pub const ADDRESS_LOST: Register = Register { name: "address_lost", offset: 0x69c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "an address in use was given up: all connections were closed" };
    /// DHCP: an ACK, of a new lease or of a renewal
    pub const ADDRESS_LEASE: Register = Register { name: "address_lease", offset: 0x6a0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "DHCP: an ACK, of a new lease or of a renewal" };
    /// DHCP: a lease has ended without a release
    pub const ADDRESS_LEASE_LOST: Register = Register { name: "address_lease_lost", offset: 0x6a4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "DHCP: a lease has ended without a release" };
    /// DHCP: a NAK
    pub const ADDRESS_NAK: Register = Register { name: "address_nak", offset: 0x6a8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "DHCP: a NAK" };
    /// DHCP: an answer that is not well formed, or lacks an option that it must have
    pub const ADDRESS_DROP_MALFORMED: Register = Register { name: "address_drop_malformed", offset: 0x6ac, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "DHCP: an answer that is not well formed, or lacks an option that it must have" };
    /// DHCP: not for the current transaction, too many, or of no use in this state
    pub const ADDRESS_DROP_UNEXPECTED: Register = Register { name: "address_drop_unexpected", offset: 0x6b0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "DHCP: not for the current transaction, too many, or of no use in this state" };
    /// IPv6: another host had the address that was probed (RFC 4862)
    pub const ADDRESS_IPV6_CONFLICT: Register = Register { name: "address_ipv6_conflict", offset: 0x6b4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPv6: another host had the address that was probed (RFC 4862)" };
    /// IPv6: the global address in use was given up: the connections that used it were closed
    pub const ADDRESS_IPV6_LOST: Register = Register { name: "address_ipv6_lost", offset: 0x6b8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPv6: the global address in use was given up: the connections that used it were closed" };
    /// IPv6: a router advertisement
    pub const ADDRESS_ROUTER_HEARD: Register = Register { name: "address_router_heard", offset: 0x6bc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPv6: a router advertisement" };
    /// IPv6: a router advertisement that is not well formed
    pub const ADDRESS_DROP_ROUTER: Register = Register { name: "address_drop_router", offset: 0x6c0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "IPv6: a router advertisement that is not well formed" };
    /// answered, or begun to be
    pub const PCIE_COMPLETER_READS: Register = Register { name: "pcie_completer_reads", offset: 0x6c4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "answered, or begun to be" };
    /// completer writes
    pub const PCIE_COMPLETER_WRITES: Register = Register { name: "pcie_completer_writes", offset: 0x6c8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "completer writes" };
    /// and other non-posted requests: UR
    pub const PCIE_COMPLETER_REFUSED_READS: Register = Register { name: "pcie_completer_refused_reads", offset: 0x6cc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "and other non-posted requests: UR" };
    /// for no BAR, over a boundary of 4 KiB, or while memory space is off: dropped
    pub const PCIE_COMPLETER_REFUSED_WRITES: Register = Register { name: "pcie_completer_refused_writes", offset: 0x6d0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "for no BAR, over a boundary of 4 KiB, or while memory space is off: dropped" };
    /// dropped
    pub const PCIE_COMPLETER_POISONED_WRITES: Register = Register { name: "pcie_completer_poisoned_writes", offset: 0x6d4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "dropped" };
    /// by the block: dropped
    pub const PCIE_COMPLETER_DAMAGED_WRITES: Register = Register { name: "pcie_completer_damaged_writes", offset: 0x6d8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "by the block: dropped" };
    /// dropped
    pub const PCIE_COMPLETER_MESSAGES: Register = Register { name: "pcie_completer_messages", offset: 0x6dc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "dropped" };
    /// an access in the device failed: CA
    pub const PCIE_COMPLETER_READ_ERRORS: Register = Register { name: "pcie_completer_read_errors", offset: 0x6e0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "an access in the device failed: CA" };
    /// likewise, of a write: nobody is told
    pub const PCIE_COMPLETER_WRITE_ERRORS: Register = Register { name: "pcie_completer_write_errors", offset: 0x6e4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "likewise, of a write: nobody is told" };
    /// TLPs sent
    pub const PCIE_REQUESTER_WRITES: Register = Register { name: "pcie_requester_writes", offset: 0x6e8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "TLPs sent" };
    /// requester reads
    pub const PCIE_REQUESTER_READS: Register = Register { name: "pcie_requester_reads", offset: 0x6ec, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "requester reads" };
    /// TLPs not sent: bus mastering is off, or reset
    pub const PCIE_REQUESTER_WRITES_OFF: Register = Register { name: "pcie_requester_writes_off", offset: 0x6f0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "TLPs not sent: bus mastering is off, or reset" };
    /// requester reads off
    pub const PCIE_REQUESTER_READS_OFF: Register = Register { name: "pcie_requester_reads_off", offset: 0x6f4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "requester reads off" };
    /// completions: UR or CRS
    pub const PCIE_REQUESTER_UNSUPPORTED: Register = Register { name: "pcie_requester_unsupported", offset: 0x6f8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "completions: UR or CRS" };
    /// CA
    pub const PCIE_REQUESTER_ABORTS: Register = Register { name: "pcie_requester_aborts", offset: 0x6fc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "CA" };
    /// requester poisoned
    pub const PCIE_REQUESTER_POISONED: Register = Register { name: "pcie_requester_poisoned", offset: 0x700, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "requester poisoned" };
    /// requester malformed
    pub const PCIE_REQUESTER_MALFORMED: Register = Register { name: "pcie_requester_malformed", offset: 0x704, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "requester malformed" };
    /// reads ended without a completion
    pub const PCIE_REQUESTER_TIMEOUTS: Register = Register { name: "pcie_requester_timeouts", offset: 0x708, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "reads ended without a completion" };
    /// completions for no request: dropped
    pub const PCIE_REQUESTER_UNEXPECTED: Register = Register { name: "pcie_requester_unexpected", offset: 0x70c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "completions for no request: dropped" };
    /// completions for a request that was given up: dropped
    pub const PCIE_REQUESTER_LATE: Register = Register { name: "pcie_requester_late", offset: 0x710, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "completions for a request that was given up: dropped" };
    /// msix sent
    pub const PCIE_MSIX_SENT: Register = Register { name: "pcie_msix_sent", offset: 0x714, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "msix sent" };
    /// a request for a vector that is pending already
    pub const PCIE_MSIX_MERGED: Register = Register { name: "pcie_msix_merged", offset: 0x718, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "a request for a vector that is pending already" };
    /// function-level resets done
    pub const PCIE_RESETS: Register = Register { name: "pcie_resets", offset: 0x71c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "function-level resets done" };
    /// network msix sent
    pub const PCIE_NETWORK_MSIX_SENT: Register = Register { name: "pcie_network_msix_sent", offset: 0x720, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "network msix sent" };
    /// a request for a vector that is pending already
    pub const PCIE_NETWORK_MSIX_MERGED: Register = Register { name: "pcie_network_msix_merged", offset: 0x724, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "a request for a vector that is pending already" };
    /// network resets
    pub const PCIE_NETWORK_RESETS: Register = Register { name: "pcie_network_resets", offset: 0x728, count: None, mode: Mode::Read, mask: 0xffffffff, counter: true, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "network resets" };
}

/// Management port.
pub mod management {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x1000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "management",
        kind: *b"MGMT",
        version: 0x00010001,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            COMMAND,
            STATUS,
            LOST,
            ARGUMENT,
            RESULT,
        ],
    };
    /// 0x4d474d54, "MGMT": a management port.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x4d474d54, \"MGMT\": a management port." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block, that of admission.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block, that of admission." };
    /// `COMMAND.command`: Number of the command; that of the last one is read.
    pub const COMMAND_COMMAND: Field = Field { name: "command", low: 0, width: 8, doc: "Number of the command; that of the last one is read." };
    /// Writing starts a command; without effect while one is in progress.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0xc, count: None, mode: Mode::ReadWrite, mask: 0xff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[COMMAND_COMMAND], doc: "Writing starts a command; without effect while one is in progress." };
    /// `STATUS.busy`: A command is in progress.
    pub const STATUS_BUSY: Field = Field { name: "busy", low: 0, width: 1, doc: "A command is in progress." };
    /// `STATUS.ok`: The last command succeeded.
    pub const STATUS_OK: Field = Field { name: "ok", low: 1, width: 1, doc: "The last command succeeded." };
    /// `STATUS.completion_waits`: A completion waits.
    pub const STATUS_COMPLETION_WAITS: Field = Field { name: "completion_waits", low: 2, width: 1, doc: "A completion waits." };
    /// `STATUS.event_waits`: An event waits.
    pub const STATUS_EVENT_WAITS: Field = Field { name: "event_waits", low: 3, width: 1, doc: "An event waits." };
    /// `STATUS.error`: Why the last command failed.
    pub const STATUS_ERROR: Field = Field { name: "error", low: 8, width: 8, doc: "Why the last command failed." };
    /// `STATUS.finished`: Commands finished, modulo 2^16.
    pub const STATUS_FINISHED: Field = Field { name: "finished", low: 16, width: 16, doc: "Commands finished, modulo 2^16." };
    /// State of the port.
    pub const STATUS: Register = Register { name: "STATUS", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffff0f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATUS_BUSY, STATUS_OK, STATUS_COMPLETION_WAITS, STATUS_EVENT_WAITS, STATUS_ERROR, STATUS_FINISHED], doc: "State of the port." };
    /// `LOST.events`: Events lost.
    pub const LOST_EVENTS: Field = Field { name: "events", low: 0, width: 16, doc: "Events lost." };
    /// `LOST.refused`: Connections refused.
    pub const LOST_REFUSED: Field = Field { name: "refused", low: 16, width: 16, doc: "Connections refused." };
    /// What the event queue had no room for. Both stop at 65535.
    pub const LOST: Register = Register { name: "LOST", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[LOST_EVENTS, LOST_REFUSED], doc: "What the event queue had no room for. Both stop at 65535." };
    /// Arguments of the next command; cannot be written while one is in progress.
    pub const ARGUMENT: Register = Register { name: "ARGUMENT", offset: 0x100, count: Some(23), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Arguments of the next command; cannot be written while one is in progress." };
    /// Results of the last command; 0 where it has none.
    pub const RESULT: Register = Register { name: "RESULT", offset: 0x200, count: Some(23), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Results of the last command; 0 where it has none." };
}

/// Admission.
pub mod admission {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x2000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "admission",
        kind: *b"ADMN",
        version: 0x00010001,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CTRL,
            SECONDS,
            STATE,
            USED,
            HANDLE,
            CONNECTIONS,
            MEMORY,
            DEADLINE,
            ADDRESS,
            PREFIX,
            TOKEN_0,
            TOKEN_1,
            TOKEN_2,
            TOKEN_3,
            ADDRESS_1,
            ADDRESS_2,
            ADDRESS_3,
        ],
    };
    /// 0x41444d4e, "ADMN": the entries by which callers are admitted.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x41444d4e, \"ADMN\": the entries by which callers are admitted." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block, the event log.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block, the event log." };
    /// `CTRL.enable`: Callers are accepted only if an entry admits them; without it everybody is. Connections that are there stay.
    pub const CTRL_ENABLE: Field = Field { name: "enable", low: 0, width: 1, doc: "Callers are accepted only if an entry admits them; without it everybody is. Connections that are there stay." };
    /// Control.
    pub const CTRL: Register = Register { name: "CTRL", offset: 0xc, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[CTRL_ENABLE], doc: "Control." };
    /// The time that deadlines are given by.
    pub const SECONDS: Register = Register { name: "SECONDS", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The time that deadlines are given by." };
    /// Writing 1 makes a free entry valid; 2 revokes a valid one, which closes its connections; 0 frees one that is revoked or whose time is over, once it has no connections. Any other write has no effect.
    pub const STATE: Register = Register { name: "STATE", offset: 0x100, count: Some(16), mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Writing 1 makes a free entry valid; 2 revokes a valid one, which closes its connections; 0 frees one that is revoked or whose time is over, once it has no connections. Any other write has no effect." };
    /// Connections that callers have by this entry, until their memory is free.
    pub const USED: Register = Register { name: "USED", offset: 0x140, count: Some(16), mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Connections that callers have by this entry, until their memory is free." };
    /// For software: what the entry is called.
    pub const HANDLE: Register = Register { name: "HANDLE", offset: 0x180, count: Some(16), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "For software: what the entry is called." };
    /// Connections at once, at most; 0: no limit.
    pub const CONNECTIONS: Register = Register { name: "CONNECTIONS", offset: 0x1c0, count: Some(16), mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Connections at once, at most; 0: no limit." };
    /// KiB of memory, in whole pages of 4, that the regions of all its connections may take; 0: MEMORY_PER_CALLER applies.
    pub const MEMORY: Register = Register { name: "MEMORY", offset: 0x200, count: Some(16), mode: Mode::ReadWrite, mask: 0x3fffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "KiB of memory, in whole pages of 4, that the regions of all its connections may take; 0: MEMORY_PER_CALLER applies." };
    /// The time by SECONDS at which the entry ends, less than 2^31 s from now; 0: none.
    pub const DEADLINE: Register = Register { name: "DEADLINE", offset: 0x240, count: Some(16), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The time by SECONDS at which the entry ends, less than 2^31 s from now; 0: none." };
    /// IPv4 address of a network, or the last 32 bits of an IPv6 address: callers elsewhere are not admitted by this entry.
    pub const ADDRESS: Register = Register { name: "ADDRESS", offset: 0x280, count: Some(16), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "IPv4 address of a network, or the last 32 bits of an IPv6 address: callers elsewhere are not admitted by this entry." };
    /// `PREFIX.length`: Of the prefix. Both fields can be written while the entry is free; undefined before they were.
    pub const PREFIX_LENGTH: Field = Field { name: "length", low: 0, width: 8, doc: "Of the prefix. Both fields can be written while the entry is free; undefined before they were." };
    /// `PREFIX.ipv6`: The network is one of IPv6: ADDRESS_1 to ADDRESS_3 are the rest of its address.
    pub const PREFIX_IPV6: Field = Field { name: "ipv6", low: 8, width: 1, doc: "The network is one of IPv6: ADDRESS_1 to ADDRESS_3 are the rest of its address." };
    /// Length of that network's prefix, 0 to 32, of IPv6 0 to 128; 0: callers from everywhere, if they have the token.
    pub const PREFIX: Register = Register { name: "PREFIX", offset: 0x2c0, count: Some(16), mode: Mode::ReadWrite, mask: 0x1ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PREFIX_LENGTH, PREFIX_IPV6], doc: "Length of that network's prefix, 0 to 32, of IPv6 0 to 128; 0: callers from everywhere, if they have the token." };
    /// First word of the token of 16 bytes that callers send. All zero: the entry is for callers that send none, from its network.
    pub const TOKEN_0: Register = Register { name: "TOKEN_0", offset: 0x300, count: Some(16), mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "First word of the token of 16 bytes that callers send. All zero: the entry is for callers that send none, from its network." };
    /// Second word of the token.
    pub const TOKEN_1: Register = Register { name: "TOKEN_1", offset: 0x340, count: Some(16), mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Second word of the token." };
    /// Third word of the token.
    pub const TOKEN_2: Register = Register { name: "TOKEN_2", offset: 0x380, count: Some(16), mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Third word of the token." };
    /// Fourth word of the token.
    pub const TOKEN_3: Register = Register { name: "TOKEN_3", offset: 0x3c0, count: Some(16), mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Fourth word of the token." };
    /// Bits 63 to 32 of the address of an IPv6 network. This register and the next two say nothing for one of IPv4.
    pub const ADDRESS_1: Register = Register { name: "ADDRESS_1", offset: 0x400, count: Some(16), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bits 63 to 32 of the address of an IPv6 network. This register and the next two say nothing for one of IPv4." };
    /// Bits 95 to 64.
    pub const ADDRESS_2: Register = Register { name: "ADDRESS_2", offset: 0x440, count: Some(16), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bits 95 to 64." };
    /// Bits 127 to 96.
    pub const ADDRESS_3: Register = Register { name: "ADDRESS_3", offset: 0x480, count: Some(16), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bits 127 to 96." };
}

/// Event log.
pub mod event_log {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x3000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "event_log",
        kind: *b"ELOG",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            TICKS_HZ,
            NOW_LO,
            NOW_HI,
            LOST,
            HEAD,
            WORDS,
        ],
    };
    /// 0x454c4f47, "ELOG": the event log.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x454c4f47, \"ELOG\": the event log." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// Ticks of a second: the unit of times.
    pub const TICKS_HZ: Register = Register { name: "TICKS_HZ", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Ticks of a second: the unit of times." };
    /// Ticks since reset, modulo 2^48: the lower 32 bits.
    pub const NOW_LO: Register = Register { name: "NOW_LO", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Ticks since reset, modulo 2^48: the lower 32 bits." };
    /// Likewise, the upper 16 bits.
    pub const NOW_HI: Register = Register { name: "NOW_HI", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, the upper 16 bits." };
    /// Events that came faster than they could be taken down, modulo 2^32.
    pub const LOST: Register = Register { name: "LOST", offset: 0x18, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Events that came faster than they could be taken down, modulo 2^32." };
    /// Entries that were written into ring i since reset, modulo 2^32. That of number n is in place n modulo 32, until number n + 32 begins to be written.
    pub const HEAD: Register = Register { name: "HEAD", offset: 0x20, count: Some(4), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Entries that were written into ring i since reset, modulo 2^32. That of number n is in place n modulo 32, until number n + 32 begins to be written." };
    /// The entries, of 4 words each, 32 of each ring: the time's lower 32 bits; kind in bits 31:24 and the time's upper bits in 15:0; two words of details. Undefined before one is written.
    pub const WORDS: Register = Register { name: "WORDS", offset: 0x800, count: Some(512), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The entries, of 4 words each, 32 of each ring: the time's lower 32 bits; kind in bits 31:24 and the time's upper bits in 15:0; two words of details. Undefined before one is written." };
}

/// Trace of frames.
pub mod trace {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x4000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "trace",
        kind: *b"TRAC",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            TICKS_HZ,
            ROW_BYTES,
            ROWS,
            FRAMES,
            COMMAND,
            MODE,
            SNAP,
            AFTER,
            MATCH,
            ETHERTYPE,
            OPCODE,
            PEER,
            QPN_RX,
            QPN_TX,
            WINDOW,
            RECORDED,
            PLACES,
            STATE,
            TRIGGER,
            WORDS,
        ],
    };
    /// 0x54524143, "TRAC": the trace of frames.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x54524143, \"TRAC\": the trace of frames." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// Ticks of a second: the unit of times.
    pub const TICKS_HZ: Register = Register { name: "TICKS_HZ", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Ticks of a second: the unit of times." };
    /// Bytes of a row.
    pub const ROW_BYTES: Register = Register { name: "ROW_BYTES", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes of a row." };
    /// Rows for received frames, and as many for sent ones.
    pub const ROWS: Register = Register { name: "ROWS", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Rows for received frames, and as many for sent ones." };
    /// Received frames that there is room for, and as many sent ones.
    pub const FRAMES: Register = Register { name: "FRAMES", offset: 0x18, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received frames that there is room for, and as many sent ones." };
    /// `COMMAND.start`: Forget what was recorded, and begin with the settings as they are.
    pub const COMMAND_START: Field = Field { name: "start", low: 0, width: 1, doc: "Forget what was recorded, and begin with the settings as they are." };
    /// `COMMAND.stop`: Record no more.
    pub const COMMAND_STOP: Field = Field { name: "stop", low: 1, width: 1, doc: "Record no more." };
    /// A bit that is written as 1 acts once.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0x1c, count: None, mode: Mode::Write, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[COMMAND_START, COMMAND_STOP], doc: "A bit that is written as 1 acts once." };
    /// `MODE.trigger`: 0 none, 1 a frame that matches, 2 a drop: any counter whose name has `_drop_`.
    pub const MODE_TRIGGER: Field = Field { name: "trigger", low: 0, width: 2, doc: "0 none, 1 a frame that matches, 2 a drop: any counter whose name has `_drop_`." };
    /// `MODE.ring`: New frames take the place of the oldest; else they are missed when there is no room.
    pub const MODE_RING: Field = Field { name: "ring", low: 2, width: 1, doc: "New frames take the place of the oldest; else they are missed when there is no room." };
    /// `MODE.matching`: Only frames that match are recorded.
    pub const MODE_MATCHING: Field = Field { name: "matching", low: 3, width: 1, doc: "Only frames that match are recorded." };
    /// `MODE.rx`: Received frames are recorded.
    pub const MODE_RX: Field = Field { name: "rx", low: 4, width: 1, doc: "Received frames are recorded." };
    /// `MODE.tx`: Sent frames are recorded.
    pub const MODE_TX: Field = Field { name: "tx", low: 5, width: 1, doc: "Sent frames are recorded." };
    /// How it records. In use at once, as all settings, which cannot be read.
    pub const MODE: Register = Register { name: "MODE", offset: 0x20, count: None, mode: Mode::Write, mask: 0x3f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[MODE_TRIGGER, MODE_RING, MODE_MATCHING, MODE_RX, MODE_TX], doc: "How it records. In use at once, as all settings, which cannot be read." };
    /// How much of each frame is recorded, rounded up to whole rows.
    pub const SNAP: Register = Register { name: "SNAP", offset: 0x24, count: None, mode: Mode::Write, mask: 0x3fff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "How much of each frame is recorded, rounded up to whole rows." };
    /// Frames after the trigger, or without one from the start, after which it stops; one more if two end in the same cycle. 0: it goes on.
    pub const AFTER: Register = Register { name: "AFTER", offset: 0x28, count: None, mode: Mode::Write, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames after the trigger, or without one from the start, after which it stops; one more if two end in the same cycle. 0: it goes on." };
    /// `MATCH.ethertype`: The EtherType is that of ETHERTYPE.
    pub const MATCH_ETHERTYPE: Field = Field { name: "ethertype", low: 0, width: 1, doc: "The EtherType is that of ETHERTYPE." };
    /// `MATCH.roce`: It is UDP to port 4791.
    pub const MATCH_ROCE: Field = Field { name: "roce", low: 1, width: 1, doc: "It is UDP to port 4791." };
    /// `MATCH.opcode`: The opcode of the BTH is OPCODE.
    pub const MATCH_OPCODE: Field = Field { name: "opcode", low: 2, width: 1, doc: "The opcode of the BTH is OPCODE." };
    /// `MATCH.peer`: The source of what is received, the destination of what is sent, is PEER.
    pub const MATCH_PEER: Field = Field { name: "peer", low: 3, width: 1, doc: "The source of what is received, the destination of what is sent, is PEER." };
    /// `MATCH.qpn`: The destination queue pair is QPN_RX, of sent frames QPN_TX.
    pub const MATCH_QPN: Field = Field { name: "qpn", low: 4, width: 1, doc: "The destination queue pair is QPN_RX, of sent frames QPN_TX." };
    /// What a frame must have to match: all that is set here. Terms after the first are of frames with an IPv4 header of 20 bytes; they look at its bytes, whatever the frame is.
    pub const MATCH: Register = Register { name: "MATCH", offset: 0x2c, count: None, mode: Mode::Write, mask: 0x1f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[MATCH_ETHERTYPE, MATCH_ROCE, MATCH_OPCODE, MATCH_PEER, MATCH_QPN], doc: "What a frame must have to match: all that is set here. Terms after the first are of frames with an IPv4 header of 20 bytes; they look at its bytes, whatever the frame is." };
    /// EtherType of frames that match.
    pub const ETHERTYPE: Register = Register { name: "ETHERTYPE", offset: 0x30, count: None, mode: Mode::Write, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "EtherType of frames that match." };
    /// BTH opcode of frames that match.
    pub const OPCODE: Register = Register { name: "OPCODE", offset: 0x34, count: None, mode: Mode::Write, mask: 0xff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "BTH opcode of frames that match." };
    /// IPv4 address of the peer of frames that match.
    pub const PEER: Register = Register { name: "PEER", offset: 0x38, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "IPv4 address of the peer of frames that match." };
    /// Destination queue pair of received frames that match: one of the device.
    pub const QPN_RX: Register = Register { name: "QPN_RX", offset: 0x3c, count: None, mode: Mode::Write, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Destination queue pair of received frames that match: one of the device." };
    /// Destination queue pair of sent frames that match: one of a peer.
    pub const QPN_TX: Register = Register { name: "QPN_TX", offset: 0x40, count: None, mode: Mode::Write, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Destination queue pair of sent frames that match: one of a peer." };
    /// `WINDOW.piece`: Number of the piece.
    pub const WINDOW_PIECE: Field = Field { name: "piece", low: 0, width: 12, doc: "Number of the piece." };
    /// `WINDOW.entries`: Entries, else rows.
    pub const WINDOW_ENTRIES: Field = Field { name: "entries", low: 12, width: 1, doc: "Entries, else rows." };
    /// `WINDOW.tx`: Of sent frames, else of received ones.
    pub const WINDOW_TX: Field = Field { name: "tx", low: 13, width: 1, doc: "Of sent frames, else of received ones." };
    /// What is seen at WORDS: a piece of 2 KiB of the rows or of the entries.
    pub const WINDOW: Register = Register { name: "WINDOW", offset: 0x44, count: None, mode: Mode::Write, mask: 0x3fff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[WINDOW_PIECE, WINDOW_ENTRIES, WINDOW_TX], doc: "What is seen at WORDS: a piece of 2 KiB of the rows or of the entries." };
    /// Frames that were recorded, received and sent ones, modulo 2^32. That of number n is in entry n modulo FRAMES.
    pub const RECORDED: Register = Register { name: "RECORDED", offset: 0x60, count: Some(2), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames that were recorded, received and sent ones, modulo 2^32. That of number n is in entry n modulo FRAMES." };
    /// `PLACES.used`: Rows that were used, modulo 2^16.
    pub const PLACES_USED: Field = Field { name: "used", low: 0, width: 16, doc: "Rows that were used, modulo 2^16." };
    /// `PLACES.missed`: Frames that were to be recorded, and for which there was no room; no more than 0xffff.
    pub const PLACES_MISSED: Field = Field { name: "missed", low: 16, width: 16, doc: "Frames that were to be recorded, and for which there was no room; no more than 0xffff." };
    /// For received and for sent frames, since the last start.
    pub const PLACES: Register = Register { name: "PLACES", offset: 0x68, count: Some(2), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PLACES_USED, PLACES_MISSED], doc: "For received and for sent frames, since the last start." };
    /// `STATE.state`: 0 stopped, 1 it records and waits for the trigger, 2 it records.
    pub const STATE_STATE: Field = Field { name: "state", low: 0, width: 2, doc: "0 stopped, 1 it records and waits for the trigger, 2 it records." };
    /// `STATE.triggered`: The trigger has come since the start.
    pub const STATE_TRIGGERED: Field = Field { name: "triggered", low: 2, width: 1, doc: "The trigger has come since the start." };
    /// `STATE.trigger`: When the trigger came, the upper 16 bits.
    pub const STATE_TRIGGER: Field = Field { name: "trigger", low: 16, width: 16, doc: "When the trigger came, the upper 16 bits." };
    /// What it does. What was recorded is read when it is stopped.
    pub const STATE: Register = Register { name: "STATE", offset: 0x70, count: None, mode: Mode::Read, mask: 0xffff0007, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATE_STATE, STATE_TRIGGERED, STATE_TRIGGER], doc: "What it does. What was recorded is read when it is stopped." };
    /// When the trigger came, the lower 32 bits.
    pub const TRIGGER: Register = Register { name: "TRIGGER", offset: 0x74, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "When the trigger came, the lower 32 bits." };
    /// Rows: the bytes of frames, in order, the first one lowest. Entries, of 4 words: the time's lower 32 bits; in bits 15:0 its upper bits, in 31:16 the first row, modulo 2^16; in bits 15:0 the bytes of the frame without FCS, 0xffff if there were more, and in bit 16 whether the MAC found it bad; 0.
    pub const WORDS: Register = Register { name: "WORDS", offset: 0x800, count: Some(512), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Rows: the bytes of frames, in order, the first one lowest. Entries, of 4 words: the time's lower 32 bits; in bits 15:0 its upper bits, in 31:16 the first row, modulo 2^16; in bits 15:0 the bytes of the frame without FCS, 0xffff if there were more, and in bit 16 whether the MAC found it bad; 0." };
}

/// Histograms.
pub mod histograms {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x5000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "histograms",
        kind: *b"HIST",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CLOCK_HZ,
            NOW_LO,
            NOW_HI,
            SHAPE,
            COMMAND,
            STATUS,
            RUNNING,
            SINCE,
            LATENCY_SUM_LO,
            LATENCY_SUM_HI,
            RUN_SUM_LO,
            RUN_SUM_HI,
            QUEUE_SUM_LO,
            QUEUE_SUM_HI,
            QUEUE,
            LATENCY,
            RUN,
        ],
    };
    /// 0x48495354, "HIST": the histograms.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x48495354, \"HIST\": the histograms." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// Cycles of a second: the unit of all times.
    pub const CLOCK_HZ: Register = Register { name: "CLOCK_HZ", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Cycles of a second: the unit of all times." };
    /// Cycles since reset, modulo 2^48: the lower 32 bits.
    pub const NOW_LO: Register = Register { name: "NOW_LO", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Cycles since reset, modulo 2^48: the lower 32 bits." };
    /// Likewise, the upper 16 bits.
    pub const NOW_HI: Register = Register { name: "NOW_HI", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, the upper 16 bits." };
    /// `SHAPE.bins`: Bins of a time.
    pub const SHAPE_BINS: Field = Field { name: "bins", low: 0, width: 8, doc: "Bins of a time." };
    /// `SHAPE.sockets`: Sockets that there are: the words of others are 0.
    pub const SHAPE_SOCKETS: Field = Field { name: "sockets", low: 8, width: 8, doc: "Sockets that there are: the words of others are 0." };
    /// `SHAPE.first`: Bin b of a time has what is below 2^(first + b) cycles and in no bin before; the last has the rest.
    pub const SHAPE_FIRST: Field = Field { name: "first", low: 16, width: 8, doc: "Bin b of a time has what is below 2^(first + b) cycles and in no bin before; the last has the rest." };
    /// What the arrays have.
    pub const SHAPE: Register = Register { name: "SHAPE", offset: 0x18, count: None, mode: Mode::Read, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[SHAPE_BINS, SHAPE_SOCKETS, SHAPE_FIRST], doc: "What the arrays have." };
    /// `COMMAND.clear`: Set every bin and every sum to 0.
    pub const COMMAND_CLEAR: Field = Field { name: "clear", low: 0, width: 1, doc: "Set every bin and every sum to 0." };
    /// A bit that is written as 1 acts once.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0x1c, count: None, mode: Mode::Write, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[COMMAND_CLEAR], doc: "A bit that is written as 1 acts once." };
    /// `STATUS.clearing`: Bins are being set to 0, which takes 1024 cycles: what ends meanwhile is in none.
    pub const STATUS_CLEARING: Field = Field { name: "clearing", low: 0, width: 1, doc: "Bins are being set to 0, which takes 1024 cycles: what ends meanwhile is in none." };
    /// `STATUS.lost`: Calls that are not in LATENCY or RUN because their socket ended another one a few cycles later; no more than 255.
    pub const STATUS_LOST: Field = Field { name: "lost", low: 8, width: 8, doc: "Calls that are not in LATENCY or RUN because their socket ended another one a few cycles later; no more than 255." };
    /// `STATUS.clears`: How often they were since reset, modulo 2^8.
    pub const STATUS_CLEARS: Field = Field { name: "clears", low: 16, width: 8, doc: "How often they were since reset, modulo 2^8." };
    /// Whether what is read counts from one begin.
    pub const STATUS: Register = Register { name: "STATUS", offset: 0x20, count: None, mode: Mode::Read, mask: 0xffff01, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATUS_CLEARING, STATUS_LOST, STATUS_CLEARS], doc: "Whether what is read counts from one begin." };
    /// Bit s: socket s has a call.
    pub const RUNNING: Register = Register { name: "RUNNING", offset: 0x24, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bit s: socket s has a call." };
    /// When its call got socket s, in units of 256 cycles, modulo 2^32. Undefined before the first one.
    pub const SINCE: Register = Register { name: "SINCE", offset: 0x40, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "When its call got socket s, in units of 256 cycles, modulo 2^32. Undefined before the first one." };
    /// Sum of what is in LATENCY, modulo 2^56: the lower 32 bits.
    pub const LATENCY_SUM_LO: Register = Register { name: "LATENCY_SUM_LO", offset: 0x80, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Sum of what is in LATENCY, modulo 2^56: the lower 32 bits." };
    /// Likewise, the upper 24 bits.
    pub const LATENCY_SUM_HI: Register = Register { name: "LATENCY_SUM_HI", offset: 0xc0, count: Some(16), mode: Mode::Read, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, the upper 24 bits." };
    /// Sum of what is in RUN, modulo 2^56: the lower 32 bits.
    pub const RUN_SUM_LO: Register = Register { name: "RUN_SUM_LO", offset: 0x100, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Sum of what is in RUN, modulo 2^56: the lower 32 bits." };
    /// Likewise, the upper 24 bits.
    pub const RUN_SUM_HI: Register = Register { name: "RUN_SUM_HI", offset: 0x140, count: Some(16), mode: Mode::Read, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, the upper 24 bits." };
    /// Sum of what is in QUEUE, modulo 2^56: the lower 32 bits.
    pub const QUEUE_SUM_LO: Register = Register { name: "QUEUE_SUM_LO", offset: 0x180, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Sum of what is in QUEUE, modulo 2^56: the lower 32 bits." };
    /// Likewise, the upper 24 bits.
    pub const QUEUE_SUM_HI: Register = Register { name: "QUEUE_SUM_HI", offset: 0x1c0, count: Some(16), mode: Mode::Read, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, the upper 24 bits." };
    /// Calls that came, modulo 2^32, by the calls that the socket had then, waiting or running: bin b has what is below 2^b and in no bin before, the last of 8 the rest.
    pub const QUEUE: Register = Register { name: "QUEUE", offset: 0x200, count: Some(128), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Calls that came, modulo 2^32, by the calls that the socket had then, waiting or running: bin b has what is below 2^b and in no bin before, the last of 8 the rest." };
    /// Calls that ended, modulo 2^32, by the cycles from their arrival to their result.
    pub const LATENCY: Register = Register { name: "LATENCY", offset: 0x400, count: Some(384), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Calls that ended, modulo 2^32, by the cycles from their arrival to their result." };
    /// Calls that ended, modulo 2^32, by the cycles that they had the socket.
    pub const RUN: Register = Register { name: "RUN", offset: 0xa00, count: Some(384), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Calls that ended, modulo 2^32, by the cycles that they had the socket." };
}

/// Images.
pub mod images {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x6000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "images",
        kind: *b"IMGS",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            SLOTS,
            SLOT_BYTES,
            SELECT,
            COMMAND,
            STATE,
            PLACE,
            DATA,
            SLOT,
            KEY,
        ],
    };
    /// 0x494d4753, "IMGS": images of kernels.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x494d4753, \"IMGS\": images of kernels." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// Places for an image.
    pub const SLOTS: Register = Register { name: "SLOTS", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Places for an image." };
    /// Bytes of a place: the longest file.
    pub const SLOT_BYTES: Register = Register { name: "SLOT_BYTES", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes of a place: the longest file." };
    /// `SELECT.slot`: Number of a place.
    pub const SELECT_SLOT: Field = Field { name: "slot", low: 0, width: 8, doc: "Number of a place." };
    /// The place that a command, and SLOT, is about.
    pub const SELECT: Register = Register { name: "SELECT", offset: 0x14, count: None, mode: Mode::ReadWrite, mask: 0xff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[SELECT_SLOT], doc: "The place that a command, and SLOT, is about." };
    /// Begins a command. Refused while an image is verified.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0x18, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Begins a command. Refused while an image is verified." };
    /// `STATE.state`: 0: nothing is under way; 1: an upload; 2: an image is verified.
    pub const STATE_STATE: Field = Field { name: "state", low: 0, width: 2, doc: "0: nothing is under way; 1: an upload; 2: an image is verified." };
    /// `STATE.provisioned`: There is a key. Without one no upload begins.
    pub const STATE_PROVISIONED: Field = Field { name: "provisioned", low: 7, width: 1, doc: "There is a key. Without one no upload begins." };
    /// `STATE.error`: Of the last command: docs/reference/images.md.
    pub const STATE_ERROR: Field = Field { name: "error", low: 8, width: 8, doc: "Of the last command: docs/reference/images.md." };
    /// `STATE.upload`: Number of the upload, modulo 2^8: the next one has the next number.
    pub const STATE_UPLOAD: Field = Field { name: "upload", low: 16, width: 8, doc: "Number of the upload, modulo 2^8: the next one has the next number." };
    /// What has become of the last command.
    pub const STATE: Register = Register { name: "STATE", offset: 0x1c, count: None, mode: Mode::Read, mask: 0xffff83, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATE_STATE, STATE_PROVISIONED, STATE_ERROR, STATE_UPLOAD], doc: "What has become of the last command." };
    /// `PLACE.word`: Words before it in the place.
    pub const PLACE_WORD: Field = Field { name: "word", low: 0, width: 24, doc: "Words before it in the place." };
    /// `PLACE.upload`: The number of the upload, in STATE.
    pub const PLACE_UPLOAD: Field = Field { name: "upload", low: 24, width: 8, doc: "The number of the upload, in STATE." };
    /// Where the next word of DATA goes. Refused if no upload of this number is under way, and behind the end of the place.
    pub const PLACE: Register = Register { name: "PLACE", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PLACE_WORD, PLACE_UPLOAD], doc: "Where the next word of DATA goes. Refused if no upload of this number is under way, and behind the end of the place." };
    /// The next word of the file; PLACE counts on. Refused before PLACE is written in this upload, and behind the end of the place.
    pub const DATA: Register = Register { name: "DATA", offset: 0x24, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The next word of the file; PLACE counts on. Refused before PLACE is written in this upload, and behind the end of the place." };
    /// `SLOT.socket`: The socket whose image it is.
    pub const SLOT_SOCKET: Field = Field { name: "socket", low: 0, width: 8, doc: "The socket whose image it is." };
    /// `SLOT.verified`: It holds an image that was verified: then the socket has its record.
    pub const SLOT_VERIFIED: Field = Field { name: "verified", low: 8, width: 1, doc: "It holds an image that was verified: then the socket has its record." };
    /// `SLOT.used`: The socket holds it, or it is being loaded: the place takes no upload.
    pub const SLOT_USED: Field = Field { name: "used", low: 9, width: 1, doc: "The socket holds it, or it is being loaded: the place takes no upload." };
    /// The place that SELECT names.
    pub const SLOT: Register = Register { name: "SLOT", offset: 0x28, count: None, mode: Mode::Read, mask: 0x3ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[SLOT_SOCKET, SLOT_VERIFIED, SLOT_USED], doc: "The place that SELECT names." };
    /// The key of 32 bytes with which images are signed. It is set when all words were written and one of them is not 0.
    pub const KEY: Register = Register { name: "KEY", offset: 0x40, count: Some(8), mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Nobody, fields: &[], doc: "The key of 32 bytes with which images are signed. It is set when all words were written and one of them is not 0." };
}

/// Sensors of the board.
pub mod sensors {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x7000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "sensors",
        kind: *b"SENS",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CLOCK_HZ,
            SENSORS,
            NOW,
            KIND,
            VALUE,
            STATE,
            NAME,
        ],
    };
    /// 0x53454e53, "SENS": the sensors of the board.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x53454e53, \"SENS\": the sensors of the board." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// Cycles of a second: the unit of ages.
    pub const CLOCK_HZ: Register = Register { name: "CLOCK_HZ", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Cycles of a second: the unit of ages." };
    /// Sensors, 1 to 16.
    pub const SENSORS: Register = Register { name: "SENSORS", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Sensors, 1 to 16." };
    /// Time since reset in units of 65536 cycles, modulo 2^24.
    pub const NOW: Register = Register { name: "NOW", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Time since reset in units of 65536 cycles, modulo 2^24." };
    /// What sensor s measures, and the unit of which its value has thousandths: 1 temperature, degree Celsius; 2 voltage, volt; 3 current, ampere; 4 power, watt; 5 fan, turns a minute. 0 behind the last sensor.
    pub const KIND: Register = Register { name: "KIND", offset: 0x40, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "What sensor s measures, and the unit of which its value has thousandths: 1 temperature, degree Celsius; 2 voltage, volt; 3 current, ampere; 4 power, watt; 5 fan, turns a minute. 0 behind the last sensor." };
    /// Value of sensor s in thousandths of its unit, a two's complement number. It says nothing if STATE of s does not have `known`.
    pub const VALUE: Register = Register { name: "VALUE", offset: 0x80, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Value of sensor s in thousandths of its unit, a two's complement number. It says nothing if STATE of s does not have `known`." };
    /// `STATE.came`: NOW when the value came.
    pub const STATE_CAME: Field = Field { name: "came", low: 0, width: 24, doc: "NOW when the value came." };
    /// `STATE.known`: There is a value: one has come, was not taken back, and another one has come since each time within 2^32 cycles.
    pub const STATE_KNOWN: Field = Field { name: "known", low: 24, width: 1, doc: "There is a value: one has come, was not taken back, and another one has come since each time within 2^32 cycles." };
    /// `STATE.simulated`: The value is not measured, but that of a model.
    pub const STATE_SIMULATED: Field = Field { name: "simulated", low: 25, width: 1, doc: "The value is not measured, but that of a model." };
    /// What is to be thought of the value of sensor s.
    pub const STATE: Register = Register { name: "STATE", offset: 0xc0, count: Some(16), mode: Mode::Read, mask: 0x3ffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATE_CAME, STATE_KNOWN, STATE_SIMULATED], doc: "What is to be thought of the value of sensor s." };
    /// Words 4 s to 4 s + 3: name of sensor s: 16 ASCII bytes, the first one lowest in the first word, zeros behind it.
    pub const NAME: Register = Register { name: "NAME", offset: 0x100, count: Some(64), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Words 4 s to 4 s + 3: name of sensor s: 16 ASCII bytes, the first one lowest in the first word, zeros behind it." };
}

/// Copy engine.
pub mod copy {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x8000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "copy",
        kind: *b"COPY",
        version: 0x00010001,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CTRL,
            STATE,
            DESCRIPTORS_LO,
            DESCRIPTORS_HI,
            COMPLETIONS_LO,
            COMPLETIONS_HI,
            SIZES,
            PRODUCER,
            CONSUMER,
            REPORTED,
            COPIES,
            ERRORS,
            BYTES_LO,
            BYTES_HI,
            MEMORY_LO,
            MEMORY_HI,
            MEMORY_SIZE_LO,
            MEMORY_SIZE_HI,
        ],
    };
    /// 0x434f5059, "COPY": the copy engine.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x434f5059, \"COPY\": the copy engine." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// `CTRL.enable`: 1: the queue runs, from the first place of both rings; 0: it takes no more descriptors, ends what it has, and PRODUCER is 0 again.
    pub const CTRL_ENABLE: Field = Field { name: "enable", low: 0, width: 1, doc: "1: the queue runs, from the first place of both rings; 0: it takes no more descriptors, ends what it has, and PRODUCER is 0 again." };
    /// Begins and ends the queue. A queue that has stopped begins again by 0, then 1.
    pub const CTRL: Register = Register { name: "CTRL", offset: 0xc, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[CTRL_ENABLE], doc: "Begins and ends the queue. A queue that has stopped begins again by 0, then 1." };
    /// `STATE.running`: The queue has begun, and not all of it has ended: settings that are written are ignored.
    pub const STATE_RUNNING: Field = Field { name: "running", low: 0, width: 1, doc: "The queue has begun, and not all of it has ended: settings that are written are ignored." };
    /// `STATE.stopped`: Why the queue has stopped: 0 it has not, 1 a size that no ring has, 2 PRODUCER is further ahead than the ring is long, 3 descriptors could not be read, 4 a completion could not be written, 5 a bad descriptor, 6 the function was reset.
    pub const STATE_STOPPED: Field = Field { name: "stopped", low: 8, width: 3, doc: "Why the queue has stopped: 0 it has not, 1 a size that no ring has, 2 PRODUCER is further ahead than the ring is long, 3 descriptors could not be read, 4 a completion could not be written, 5 a bad descriptor, 6 the function was reset." };
    /// What the queue does.
    pub const STATE: Register = Register { name: "STATE", offset: 0x10, count: None, mode: Mode::Read, mask: 0x701, counter: false, reader: Who::Nobody, writer: Who::Authorised, fields: &[STATE_RUNNING, STATE_STOPPED], doc: "What the queue does." };
    /// Device address of the ring of descriptors, lower half. It is a multiple of the bytes of the ring: lower bits are ignored.
    pub const DESCRIPTORS_LO: Register = Register { name: "DESCRIPTORS_LO", offset: 0x14, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Device address of the ring of descriptors, lower half. It is a multiple of the bytes of the ring: lower bits are ignored." };
    /// Its upper half. Host memory is from 2^63 on.
    pub const DESCRIPTORS_HI: Register = Register { name: "DESCRIPTORS_HI", offset: 0x18, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Its upper half. Host memory is from 2^63 on." };
    /// Device address of the ring of completions, lower half; aligned likewise.
    pub const COMPLETIONS_LO: Register = Register { name: "COMPLETIONS_LO", offset: 0x1c, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Device address of the ring of completions, lower half; aligned likewise." };
    /// Its upper half.
    pub const COMPLETIONS_HI: Register = Register { name: "COMPLETIONS_HI", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Its upper half." };
    /// `SIZES.descriptors`: 2^n descriptors, n from 5 to 15.
    pub const SIZES_DESCRIPTORS: Field = Field { name: "descriptors", low: 0, width: 4, doc: "2^n descriptors, n from 5 to 15." };
    /// `SIZES.completions`: 2^n completions, likewise.
    pub const SIZES_COMPLETIONS: Field = Field { name: "completions", low: 8, width: 4, doc: "2^n completions, likewise." };
    /// `SIZES.vector`: Vector of MSI-X for descriptors with `interrupt`; one that there is not: none.
    pub const SIZES_VECTOR: Field = Field { name: "vector", low: 16, width: 7, doc: "Vector of MSI-X for descriptors with `interrupt`; one that there is not: none." };
    /// How long the rings are. Not while STATE.running.
    pub const SIZES: Register = Register { name: "SIZES", offset: 0x24, count: None, mode: Mode::ReadWrite, mask: 0x7f0f0f, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[SIZES_DESCRIPTORS, SIZES_COMPLETIONS, SIZES_VECTOR], doc: "How long the rings are. Not while STATE.running." };
    /// Descriptors that were ever put into the ring: the doorbell.
    pub const PRODUCER: Register = Register { name: "PRODUCER", offset: 0x28, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Nobody, writer: Who::Nobody, fields: &[], doc: "Descriptors that were ever put into the ring: the doorbell." };
    /// Descriptors that have left the ring: their places are free.
    pub const CONSUMER: Register = Register { name: "CONSUMER", offset: 0x2c, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Nobody, writer: Who::Authorised, fields: &[], doc: "Descriptors that have left the ring: their places are free." };
    /// Completions that are being written, or were.
    pub const REPORTED: Register = Register { name: "REPORTED", offset: 0x30, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Nobody, writer: Who::Authorised, fields: &[], doc: "Completions that are being written, or were." };
    /// Descriptors that have ended.
    pub const COPIES: Register = Register { name: "COPIES", offset: 0x34, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Descriptors that have ended." };
    /// Those of them that ended with an error.
    pub const ERRORS: Register = Register { name: "ERRORS", offset: 0x38, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Those of them that ended with an error." };
    /// Bytes that were given to memory, lower half.
    pub const BYTES_LO: Register = Register { name: "BYTES_LO", offset: 0x3c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Bytes that were given to memory, lower half." };
    /// Upper half. Read it before and after the lower one.
    pub const BYTES_HI: Register = Register { name: "BYTES_HI", offset: 0x40, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Upper half. Read it before and after the lower one." };
    /// Device address of the memory that is the host's, lower half: the device gives it to nobody.
    pub const MEMORY_LO: Register = Register { name: "MEMORY_LO", offset: 0x44, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Device address of the memory that is the host's, lower half: the device gives it to nobody." };
    /// Its upper half.
    pub const MEMORY_HI: Register = Register { name: "MEMORY_HI", offset: 0x48, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Its upper half." };
    /// Its bytes, lower half.
    pub const MEMORY_SIZE_LO: Register = Register { name: "MEMORY_SIZE_LO", offset: 0x4c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Its bytes, lower half." };
    /// Upper half.
    pub const MEMORY_SIZE_HI: Register = Register { name: "MEMORY_SIZE_HI", offset: 0x50, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Upper half." };
}

/// Classifier.
pub mod classifier {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0x9000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "classifier",
        kind: *b"CLAS",
        version: 0x00010001,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            POSITIONS,
            PAIRS,
            STATUS,
            COMMAND,
            LOAD,
            OFFSET,
            ENTRY,
            FRAMES,
            BYTES_LO,
            BYTES_HI,
            FLOW_PLACES,
            METERS,
            ENABLE,
            WIDE,
            FLOW_KEY,
            FLOW_ACTION,
            FLOW_PUT,
            FLOW_DELETE,
            FLOW_GET,
            FLOW_SEED_LO,
            FLOW_SEED_HI,
            FLOW_FRAMES,
            FLOW_BYTES_LO,
            FLOW_BYTES_HI,
            METER,
            METER_RATE,
            METER_BURST,
            METER_MODE,
            METER_COMMAND,
            METER_PRESENT,
            METER_OVER,
            FLOW_USED,
            WORDS,
        ],
    };
    /// 0x434c4153, "CLAS": the classifier.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x434c4153, \"CLAS\": the classifier." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block." };
    /// Entries of the table with wildcards. The lowest position that matches decides.
    pub const POSITIONS: Register = Register { name: "POSITIONS", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Entries of the table with wildcards. The lowest position that matches decides." };
    /// Pairs of queues of the network card; 0: there is none, and no frame can be given to the host.
    pub const PAIRS: Register = Register { name: "PAIRS", offset: 0x10, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Pairs of queues of the network card; 0: there is none, and no frame can be given to the host." };
    /// `STATUS.busy`: A unit is loaded, or settings are about to be in use: every write but to ENTRY and FLOW_* is refused.
    pub const STATUS_BUSY: Field = Field { name: "busy", low: 0, width: 1, doc: "A unit is loaded, or settings are about to be in use: every write but to ENTRY and FLOW_* is refused." };
    /// `STATUS.flow_busy`: A command is under way: every write to FLOW_* is refused; or the counters of a flow that was put wait for a cycle without a frame to be cleared: every command but FLOW_DELETE is.
    pub const STATUS_FLOW_BUSY: Field = Field { name: "flow_busy", low: 1, width: 1, doc: "A command is under way: every write to FLOW_* is refused; or the counters of a flow that was put wait for a cycle without a frame to be cleared: every command but FLOW_DELETE is." };
    /// What it does.
    pub const STATUS: Register = Register { name: "STATUS", offset: 0x14, count: None, mode: Mode::Read, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATUS_BUSY, STATUS_FLOW_BUSY], doc: "What it does." };
    /// `COMMAND.commit`: ENABLE, WIDE and OFFSET as written are in use, for every frame that ends from now on, and all of them together.
    pub const COMMAND_COMMIT: Field = Field { name: "commit", low: 0, width: 1, doc: "ENABLE, WIDE and OFFSET as written are in use, for every frame that ends from now on, and all of them together." };
    /// `COMMAND.clear`: The counters of the entry of ENTRY are 0.
    pub const COMMAND_CLEAR: Field = Field { name: "clear", low: 1, width: 1, doc: "The counters of the entry of ENTRY are 0." };
    /// A bit that is written as 1 acts once.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0x18, count: None, mode: Mode::Write, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[COMMAND_COMMIT, COMMAND_CLEAR], doc: "A bit that is written as 1 acts once." };
    /// `LOAD.unit`: Positions from 32 times this on.
    pub const LOAD_UNIT: Field = Field { name: "unit", low: 0, width: 2, doc: "Positions from 32 times this on." };
    /// The words of 32 entries are taken into the table. Those that are enabled stay as they are. Takes 3,400 cycles.
    pub const LOAD: Register = Register { name: "LOAD", offset: 0x1c, count: None, mode: Mode::Write, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[LOAD_UNIT], doc: "The words of 32 entries are taken into the table. Those that are enabled stay as they are. Takes 3,400 cycles." };
    /// Where the window of 16 bytes is. In use after COMMAND.commit; what is in use is read.
    pub const OFFSET: Register = Register { name: "OFFSET", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0x7f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Where the window of 16 bytes is. In use after COMMAND.commit; what is in use is read." };
    /// The entry that is seen at WORDS, FRAMES and BYTES.
    pub const ENTRY: Register = Register { name: "ENTRY", offset: 0x24, count: None, mode: Mode::ReadWrite, mask: 0x7f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The entry that is seen at WORDS, FRAMES and BYTES." };
    /// Frames for which the entry has decided.
    pub const FRAMES: Register = Register { name: "FRAMES", offset: 0x28, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames for which the entry has decided." };
    /// Bytes of these frames, the lower 32 bits.
    pub const BYTES_LO: Register = Register { name: "BYTES_LO", offset: 0x2c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes of these frames, the lower 32 bits." };
    /// The upper bits.
    pub const BYTES_HI: Register = Register { name: "BYTES_HI", offset: 0x30, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The upper bits." };
    /// Flows of IPv4 that there is room for; one of IPv6 takes the room of three.
    pub const FLOW_PLACES: Register = Register { name: "FLOW_PLACES", offset: 0x34, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Flows of IPv4 that there is room for; one of IPv6 takes the room of three." };
    /// Meters, from 0.
    pub const METERS: Register = Register { name: "METERS", offset: 0x38, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Meters, from 0." };
    /// Entries that are looked at, of those whose words are loaded as they are. In use after COMMAND.commit; what is in use is read.
    pub const ENABLE: Register = Register { name: "ENABLE", offset: 0x40, count: Some(4), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Entries that are looked at, of those whose words are loaded as they are. In use after COMMAND.commit; what is in use is read." };
    /// Groups of four positions that are one entry. In use after COMMAND.commit; what is in use is read.
    pub const WIDE: Register = Register { name: "WIDE", offset: 0x50, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Groups of four positions that are one entry. In use after COMMAND.commit; what is in use is read." };
    /// What FLOW_PUT writes or FLOW_GET has read: words 0 to 3 destination, 4 to 7 source, an IPv4 address in the lowest bits; word 8 source port (upper half) and destination port; word 9 protocol, and bit 8: IPv6.
    pub const FLOW_KEY: Register = Register { name: "FLOW_KEY", offset: 0x400, count: Some(10), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "What FLOW_PUT writes or FLOW_GET has read: words 0 to 3 destination, 4 to 7 source, an IPv4 address in the lowest bits; word 8 source port (upper half) and destination port; word 9 protocol, and bit 8: IPv6." };
    /// The action of the flow of FLOW_KEY.
    pub const FLOW_ACTION: Register = Register { name: "FLOW_ACTION", offset: 0x428, count: None, mode: Mode::ReadWrite, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The action of the flow of FLOW_KEY." };
    /// `FLOW_PUT.row`: Row of the bank.
    pub const FLOW_PUT_ROW: Field = Field { name: "row", low: 0, width: 10, doc: "Row of the bank." };
    /// `FLOW_PUT.bank`: Bank.
    pub const FLOW_PUT_BANK: Field = Field { name: "bank", low: 10, width: 1, doc: "Bank." };
    /// `FLOW_PUT.slot`: Slot of the row, 0 to 2.
    pub const FLOW_PUT_SLOT: Field = Field { name: "slot", low: 11, width: 2, doc: "Slot of the row, 0 to 2." };
    /// `FLOW_PUT.whole`: A flow of IPv6: all slots, from slot 0 on.
    pub const FLOW_PUT_WHOLE: Field = Field { name: "whole", low: 13, width: 1, doc: "A flow of IPv6: all slots, from slot 0 on." };
    /// The flow of FLOW_KEY with FLOW_ACTION is in this place, with counters of 0, for every frame that is looked up from now on. Refused if the place does not exist, or the key is of IPv6 without `whole` or the reverse.
    pub const FLOW_PUT: Register = Register { name: "FLOW_PUT", offset: 0x42c, count: None, mode: Mode::Write, mask: 0x3fff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[FLOW_PUT_ROW, FLOW_PUT_BANK, FLOW_PUT_SLOT, FLOW_PUT_WHOLE], doc: "The flow of FLOW_KEY with FLOW_ACTION is in this place, with counters of 0, for every frame that is looked up from now on. Refused if the place does not exist, or the key is of IPv6 without `whole` or the reverse." };
    /// `FLOW_DELETE.row`: Row of the bank.
    pub const FLOW_DELETE_ROW: Field = Field { name: "row", low: 0, width: 10, doc: "Row of the bank." };
    /// `FLOW_DELETE.bank`: Bank.
    pub const FLOW_DELETE_BANK: Field = Field { name: "bank", low: 10, width: 1, doc: "Bank." };
    /// `FLOW_DELETE.slot`: Slot of the row, 0 to 2.
    pub const FLOW_DELETE_SLOT: Field = Field { name: "slot", low: 11, width: 2, doc: "Slot of the row, 0 to 2." };
    /// `FLOW_DELETE.whole`: A flow of IPv6: all slots, from slot 0 on.
    pub const FLOW_DELETE_WHOLE: Field = Field { name: "whole", low: 13, width: 1, doc: "A flow of IPv6: all slots, from slot 0 on." };
    /// This place is empty.
    pub const FLOW_DELETE: Register = Register { name: "FLOW_DELETE", offset: 0x430, count: None, mode: Mode::Write, mask: 0x3fff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[FLOW_DELETE_ROW, FLOW_DELETE_BANK, FLOW_DELETE_SLOT, FLOW_DELETE_WHOLE], doc: "This place is empty." };
    /// `FLOW_GET.row`: Row of the bank.
    pub const FLOW_GET_ROW: Field = Field { name: "row", low: 0, width: 10, doc: "Row of the bank." };
    /// `FLOW_GET.bank`: Bank.
    pub const FLOW_GET_BANK: Field = Field { name: "bank", low: 10, width: 1, doc: "Bank." };
    /// `FLOW_GET.slot`: Slot of the row, 0 to 2.
    pub const FLOW_GET_SLOT: Field = Field { name: "slot", low: 11, width: 2, doc: "Slot of the row, 0 to 2." };
    /// `FLOW_GET.whole`: A flow of IPv6: all slots, from slot 0 on.
    pub const FLOW_GET_WHOLE: Field = Field { name: "whole", low: 13, width: 1, doc: "A flow of IPv6: all slots, from slot 0 on." };
    /// What is in this place is read: FLOW_KEY, FLOW_ACTION, FLOW_FRAMES and FLOW_BYTES have it when STATUS.flow_busy is 0.
    pub const FLOW_GET: Register = Register { name: "FLOW_GET", offset: 0x434, count: None, mode: Mode::Write, mask: 0x3fff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[FLOW_GET_ROW, FLOW_GET_BANK, FLOW_GET_SLOT, FLOW_GET_WHOLE], doc: "What is in this place is read: FLOW_KEY, FLOW_ACTION, FLOW_FRAMES and FLOW_BYTES have it when STATUS.flow_busy is 0." };
    /// The lower half of the seed of the hash.
    pub const FLOW_SEED_LO: Register = Register { name: "FLOW_SEED_LO", offset: 0x438, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The lower half of the seed of the hash." };
    /// The upper half. A write deletes all flows, for every frame from now on, and gives the hash this seed. Takes 3,200 cycles. To be random: see the page of the classifier.
    pub const FLOW_SEED_HI: Register = Register { name: "FLOW_SEED_HI", offset: 0x43c, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The upper half. A write deletes all flows, for every frame from now on, and gives the hash this seed. Takes 3,200 cycles. To be random: see the page of the classifier." };
    /// Frames of the flow that FLOW_GET has read.
    pub const FLOW_FRAMES: Register = Register { name: "FLOW_FRAMES", offset: 0x440, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames of the flow that FLOW_GET has read." };
    /// Their bytes, the lower 32 bits.
    pub const FLOW_BYTES_LO: Register = Register { name: "FLOW_BYTES_LO", offset: 0x444, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Their bytes, the lower 32 bits." };
    /// The upper bits.
    pub const FLOW_BYTES_HI: Register = Register { name: "FLOW_BYTES_HI", offset: 0x448, count: None, mode: Mode::Read, mask: 0xff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The upper bits." };
    /// The meter that the other registers of meters are about.
    pub const METER: Register = Register { name: "METER", offset: 0x480, count: None, mode: Mode::ReadWrite, mask: 0xf, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The meter that the other registers of meters are about." };
    /// What is filled into the bucket every 16 cycles. In use after METER_COMMAND.put; what is in use is read, and is not defined without settings.
    pub const METER_RATE: Register = Register { name: "METER_RATE", offset: 0x484, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "What is filled into the bucket every 16 cycles. In use after METER_COMMAND.put; what is in use is read, and is not defined without settings." };
    /// What the bucket holds. Likewise.
    pub const METER_BURST: Register = Register { name: "METER_BURST", offset: 0x488, count: None, mode: Mode::ReadWrite, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "What the bucket holds. Likewise." };
    /// `METER_MODE.frames`: Tokens are frames, else bytes without FCS.
    pub const METER_MODE_FRAMES: Field = Field { name: "frames", low: 0, width: 1, doc: "Tokens are frames, else bytes without FCS." };
    /// `METER_MODE.to_host`: Frames above the rate are for the host, else for nobody.
    pub const METER_MODE_TO_HOST: Field = Field { name: "to_host", low: 1, width: 1, doc: "Frames above the rate are for the host, else for nobody." };
    /// How it works. Likewise.
    pub const METER_MODE: Register = Register { name: "METER_MODE", offset: 0x48c, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[METER_MODE_FRAMES, METER_MODE_TO_HOST], doc: "How it works. Likewise." };
    /// `METER_COMMAND.put`: METER_RATE, METER_BURST and METER_MODE as written are in use, all together, with a full bucket and a counter of 0.
    pub const METER_COMMAND_PUT: Field = Field { name: "put", low: 0, width: 1, doc: "METER_RATE, METER_BURST and METER_MODE as written are in use, all together, with a full bucket and a counter of 0." };
    /// `METER_COMMAND.delete`: The meter has no settings: nothing is above its rate.
    pub const METER_COMMAND_DELETE: Field = Field { name: "delete", low: 1, width: 1, doc: "The meter has no settings: nothing is above its rate." };
    /// A bit that is written as 1 acts once.
    pub const METER_COMMAND: Register = Register { name: "METER_COMMAND", offset: 0x490, count: None, mode: Mode::Write, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[METER_COMMAND_PUT, METER_COMMAND_DELETE], doc: "A bit that is written as 1 acts once." };
    /// Meters with settings.
    pub const METER_PRESENT: Register = Register { name: "METER_PRESENT", offset: 0x494, count: None, mode: Mode::Read, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Meters with settings." };
    /// Frames above the rate since the settings were put.
    pub const METER_OVER: Register = Register { name: "METER_OVER", offset: 0x498, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames above the rate since the settings were put." };
    /// Places that are in use, of IPv6 all three slots: word 64 * slot + 32 * bank + row / 32.
    pub const FLOW_USED: Register = Register { name: "FLOW_USED", offset: 0x500, count: Some(192), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Places that are in use, of IPv6 all three slots: word 64 * slot + 32 * bank + row / 32." };
    /// Words 0 to 33: a piece of the key, value in bits 5:0 and in bits 11:6 which of them are compared. Words 34 and 35: the action, its lower half first. The others are kept for software. After power-on they are not defined.
    pub const WORDS: Register = Register { name: "WORDS", offset: 0x800, count: Some(64), mode: Mode::ReadWrite, mask: 0xfff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Words 0 to 33: a piece of the key, value in bits 5:0 and in bits 11:6 which of them are compared. Words 34 and 35: the action, its lower half first. The others are kept for software. After power-on they are not defined." };
}

/// Streaming socket.
pub mod stream {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0xb000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "stream",
        kind: *b"STRM",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            KERNEL_VERSION,
            NAME,
            CONTROL,
            LIMIT,
            COMMAND,
            STATUS,
            CUTS,
            RX_FRAMES,
            RX_DROPPED,
            RX_LOST,
            RX_ROUND,
            RX_OVERFLOW,
            TX_FRAMES,
            TX_DROPPED,
            TX_LOST,
            TX_ROUND,
        ],
    };
    /// 0x5354524d, "STRM": a streaming socket.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x5354524d, \"STRM\": a streaming socket." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: that of the kernel, at 0x100 of this page, if it has registers.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: that of the kernel, at 0x100 of this page, if it has registers." };
    /// `KERNEL_VERSION.minor`: Minor.
    pub const KERNEL_VERSION_MINOR: Field = Field { name: "minor", low: 0, width: 16, doc: "Minor." };
    /// `KERNEL_VERSION.major`: Major.
    pub const KERNEL_VERSION_MAJOR: Field = Field { name: "major", low: 16, width: 16, doc: "Major." };
    /// Version of the kernel.
    pub const KERNEL_VERSION: Register = Register { name: "KERNEL_VERSION", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[KERNEL_VERSION_MINOR, KERNEL_VERSION_MAJOR], doc: "Version of the kernel." };
    /// Name of the kernel.
    pub const NAME: Register = Register { name: "NAME", offset: 0x10, count: Some(4), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Name of the kernel." };
    /// `CONTROL.rx`: Received frames go through the kernel, else round it; those about which a rule says so by that.
    pub const CONTROL_RX: Field = Field { name: "rx", low: 0, width: 1, doc: "Received frames go through the kernel, else round it; those about which a rule says so by that." };
    /// `CONTROL.tx`: Frames that the card sends do.
    pub const CONTROL_TX: Field = Field { name: "tx", low: 1, width: 1, doc: "Frames that the card sends do." };
    /// Which frames go through the kernel. In use from the next frame on.
    pub const CONTROL: Register = Register { name: "CONTROL", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[CONTROL_RX, CONTROL_TX], doc: "Which frames go through the kernel. In use from the next frame on." };
    /// How long the oldest frame may stay in the kernel.
    pub const LIMIT: Register = Register { name: "LIMIT", offset: 0x24, count: None, mode: Mode::ReadWrite, mask: 0xffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "How long the oldest frame may stay in the kernel." };
    /// `COMMAND.restart`: The kernel is reset, with its registers; frames inside are lost. Then it is no longer cut off.
    pub const COMMAND_RESTART: Field = Field { name: "restart", low: 0, width: 1, doc: "The kernel is reset, with its registers; frames inside are lost. Then it is no longer cut off." };
    /// A bit that is written as 1 acts once.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0x28, count: None, mode: Mode::Write, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[COMMAND_RESTART], doc: "A bit that is written as 1 acts once." };
    /// `STATUS.cut`: The kernel is cut off, and in reset: all frames go round it, and its registers answer with SLVERR.
    pub const STATUS_CUT: Field = Field { name: "cut", low: 0, width: 1, doc: "The kernel is cut off, and in reset: all frames go round it, and its registers answer with SLVERR." };
    /// `STATUS.tx`: The last time that it was cut off it was for frames that are sent.
    pub const STATUS_TX: Field = Field { name: "tx", low: 1, width: 1, doc: "The last time that it was cut off it was for frames that are sent." };
    /// `STATUS.cause`: Why: 0 it never was, 1 a frame was late, 2 a frame that it was not given, 3 too long a frame, 4 a malformed one, 5 COMMAND.restart.
    pub const STATUS_CAUSE: Field = Field { name: "cause", low: 8, width: 3, doc: "Why: 0 it never was, 1 a frame was late, 2 a frame that it was not given, 3 too long a frame, 4 a malformed one, 5 COMMAND.restart." };
    /// Whether the kernel works.
    pub const STATUS: Register = Register { name: "STATUS", offset: 0x2c, count: None, mode: Mode::Read, mask: 0x703, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATUS_CUT, STATUS_TX, STATUS_CAUSE], doc: "Whether the kernel works." };
    /// How often it was cut off.
    pub const CUTS: Register = Register { name: "CUTS", offset: 0x30, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "How often it was cut off." };
    /// Received frames given to the kernel.
    pub const RX_FRAMES: Register = Register { name: "RX_FRAMES", offset: 0x40, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received frames given to the kernel." };
    /// Of these, dropped by it.
    pub const RX_DROPPED: Register = Register { name: "RX_DROPPED", offset: 0x44, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of these, dropped by it." };
    /// Of these, inside when it was cut off.
    pub const RX_LOST: Register = Register { name: "RX_LOST", offset: 0x48, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of these, inside when it was cut off." };
    /// Received frames that went round the kernel.
    pub const RX_ROUND: Register = Register { name: "RX_ROUND", offset: 0x4c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received frames that went round the kernel." };
    /// Received frames for which there was no room in front of the kernel, or that were longer than the card takes.
    pub const RX_OVERFLOW: Register = Register { name: "RX_OVERFLOW", offset: 0x50, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received frames for which there was no room in front of the kernel, or that were longer than the card takes." };
    /// Frames of the card given to the kernel.
    pub const TX_FRAMES: Register = Register { name: "TX_FRAMES", offset: 0x60, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames of the card given to the kernel." };
    /// Of these, dropped by it.
    pub const TX_DROPPED: Register = Register { name: "TX_DROPPED", offset: 0x64, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of these, dropped by it." };
    /// Of these, inside when it was cut off.
    pub const TX_LOST: Register = Register { name: "TX_LOST", offset: 0x68, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of these, inside when it was cut off." };
    /// Frames of the card that went round the kernel.
    pub const TX_ROUND: Register = Register { name: "TX_ROUND", offset: 0x6c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames of the card that went round the kernel." };
}

/// Socket.
pub mod socket {
    use super::*;

    /// Byte address of the first.
    pub const BASE: u32 = 0x10000;
    /// How many there can be.
    pub const BLOCK_COUNT: u32 = 16;
    /// Bytes from one to the next.
    pub const BLOCK_STRIDE: u32 = 0x1000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "socket",
        kind: *b"SOCK",
        version: 0x00010004,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            FUNCTIONS,
            NAME,
            FUNCTION_CODE,
            STATUS,
            JOBS,
            LAST_CYCLES,
            TIMEOUTS,
            REFUSED,
            RDMA_PAGE,
            RDMA_PAGES,
            KERNEL_VERSION,
            IMAGES,
            IMAGE_SELECT,
            IMAGE_RECORD,
            IMAGE_COMMAND,
            IMAGE_STATE,
            IMAGE_DIGEST,
            DATAGRAM_PORT,
            DATAGRAM_NETWORK,
            DATAGRAM_MASK,
            DATAGRAM_PACE,
            PEER_NETWORK,
            PEERS,
            CONNECTIONS,
            BUS,
            DATAGRAMS_RECEIVED,
            DATAGRAMS_DROP_ROOM,
            DATAGRAMS_DROP_LENGTH,
            DATAGRAMS_DISCARDED,
            DATAGRAMS_SENT,
            DATAGRAMS_MALFORMED,
            DATAGRAMS_REFUSED,
            DATAGRAMS_UNRESOLVED,
        ],
    };
    /// 0x534f434b, "SOCK": a socket.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x534f434b, \"SOCK\": a socket." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: that of the kernel if it has one, else the next socket's, or 0.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: that of the kernel if it has one, else the next socket's, or 0." };
    /// How many functions the kernel has.
    pub const FUNCTIONS: Register = Register { name: "FUNCTIONS", offset: 0xc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "How many functions the kernel has." };
    /// Name of the kernel: 16 ASCII bytes, the first one lowest in the first word, zeros behind it.
    pub const NAME: Register = Register { name: "NAME", offset: 0x10, count: Some(4), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Name of the kernel: 16 ASCII bytes, the first one lowest in the first word, zeros behind it." };
    /// Codes of the functions, ascending, zeros behind them.
    pub const FUNCTION_CODE: Register = Register { name: "FUNCTION_CODE", offset: 0x20, count: Some(8), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Codes of the functions, ascending, zeros behind them." };
    /// `STATUS.busy`: A job is in progress.
    pub const STATUS_BUSY: Field = Field { name: "busy", low: 0, width: 1, doc: "A job is in progress." };
    /// `STATUS.cut`: The kernel is decoupled.
    pub const STATUS_CUT: Field = Field { name: "cut", low: 1, width: 1, doc: "The kernel is decoupled." };
    /// `STATUS.outstanding`: Work requests of the kernel are outstanding.
    pub const STATUS_OUTSTANDING: Field = Field { name: "outstanding", low: 2, width: 1, doc: "Work requests of the kernel are outstanding." };
    /// State of the socket.
    pub const STATUS: Register = Register { name: "STATUS", offset: 0x40, count: None, mode: Mode::Read, mask: 0x7, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATUS_BUSY, STATUS_CUT, STATUS_OUTSTANDING], doc: "State of the socket." };
    /// Jobs finished.
    pub const JOBS: Register = Register { name: "JOBS", offset: 0x44, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Jobs finished." };
    /// Cycles of the last job, from its first region to its answer taken.
    pub const LAST_CYCLES: Register = Register { name: "LAST_CYCLES", offset: 0x48, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Cycles of the last job, from its first region to its answer taken." };
    /// Jobs that took too long.
    pub const TIMEOUTS: Register = Register { name: "TIMEOUTS", offset: 0x4c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Jobs that took too long." };
    /// Bursts and work requests outside of the window, connections to peers that are not permitted, and accesses to registers that are not (BUS).
    pub const REFUSED: Register = Register { name: "REFUSED", offset: 0x50, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bursts and work requests outside of the window, connections to peers that are not permitted, and accesses to registers that are not (BUS)." };
    /// First page of 4 KiB for work requests of the kernel while no job runs.
    pub const RDMA_PAGE: Register = Register { name: "RDMA_PAGE", offset: 0x54, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "First page of 4 KiB for work requests of the kernel while no job runs." };
    /// How many pages.
    pub const RDMA_PAGES: Register = Register { name: "RDMA_PAGES", offset: 0x58, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "How many pages." };
    /// Version of the kernel: major in the upper 16 bits, minor in the lower.
    pub const KERNEL_VERSION: Register = Register { name: "KERNEL_VERSION", offset: 0x5c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of the kernel: major in the upper 16 bits, minor in the lower." };
    /// `IMAGES.count`: Images that it can hold, one at a time.
    pub const IMAGES_COUNT: Field = Field { name: "count", low: 0, width: 8, doc: "Images that it can hold, one at a time." };
    /// `IMAGES.active`: The one that it holds, if IMAGE_STATE says that it holds one.
    pub const IMAGES_ACTIVE: Field = Field { name: "active", low: 8, width: 8, doc: "The one that it holds, if IMAGE_STATE says that it holds one." };
    /// `IMAGES.former`: The one before.
    pub const IMAGES_FORMER: Field = Field { name: "former", low: 16, width: 8, doc: "The one before." };
    /// `IMAGES.has_former`: There was one before.
    pub const IMAGES_HAS_FORMER: Field = Field { name: "has_former", low: 24, width: 1, doc: "There was one before." };
    /// Kernels that can take each other's place in the socket.
    pub const IMAGES: Register = Register { name: "IMAGES", offset: 0x60, count: None, mode: Mode::Read, mask: 0x1ffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[IMAGES_COUNT, IMAGES_ACTIVE, IMAGES_FORMER, IMAGES_HAS_FORMER], doc: "Kernels that can take each other's place in the socket." };
    /// `IMAGE_SELECT.image`: An image, for IMAGE_RECORD and IMAGE_COMMAND.
    pub const IMAGE_SELECT_IMAGE: Field = Field { name: "image", low: 0, width: 8, doc: "An image, for IMAGE_RECORD and IMAGE_COMMAND." };
    /// `IMAGE_SELECT.word`: A word of its record, for IMAGE_RECORD.
    pub const IMAGE_SELECT_WORD: Field = Field { name: "word", low: 8, width: 5, doc: "A word of its record, for IMAGE_RECORD." };
    /// Which image is meant. SLVERR while a command is under way.
    pub const IMAGE_SELECT: Register = Register { name: "IMAGE_SELECT", offset: 0x64, count: None, mode: Mode::ReadWrite, mask: 0x1fff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[IMAGE_SELECT_IMAGE, IMAGE_SELECT_WORD], doc: "Which image is meant. SLVERR while a command is under way." };
    /// A word of the record of an image. SLVERR while a command is under way.
    pub const IMAGE_RECORD: Register = Register { name: "IMAGE_RECORD", offset: 0x68, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "A word of the record of an image. SLVERR while a command is under way." };
    /// Begins a command. SLVERR for 3 while none is under way, for others while one is, and if the socket has one image.
    pub const IMAGE_COMMAND: Register = Register { name: "IMAGE_COMMAND", offset: 0x6c, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Begins a command. SLVERR for 3 while none is under way, for others while one is, and if the socket has one image." };
    /// `IMAGE_STATE.state`: 0: ready; 1: compares the digest; 2: waits for the running job; 3: for its accesses; 4 to 6: the image is loaded; 7: waits for the kernel to say what it is.
    pub const IMAGE_STATE_STATE: Field = Field { name: "state", low: 0, width: 4, doc: "0: ready; 1: compares the digest; 2: waits for the running job; 3: for its accesses; 4 to 6: the image is loaded; 7: waits for the kernel to say what it is." };
    /// `IMAGE_STATE.live`: The socket holds a kernel.
    pub const IMAGE_STATE_LIVE: Field = Field { name: "live", low: 7, width: 1, doc: "The socket holds a kernel." };
    /// `IMAGE_STATE.error`: Of the last command: docs/reference/kernels.md.
    pub const IMAGE_STATE_ERROR: Field = Field { name: "error", low: 8, width: 8, doc: "Of the last command: docs/reference/kernels.md." };
    /// `IMAGE_STATE.finished`: Commands, modulo 2^16.
    pub const IMAGE_STATE_FINISHED: Field = Field { name: "finished", low: 16, width: 16, doc: "Commands, modulo 2^16." };
    /// What has become of the last command.
    pub const IMAGE_STATE: Register = Register { name: "IMAGE_STATE", offset: 0x70, count: None, mode: Mode::Read, mask: 0xffffff8f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[IMAGE_STATE_STATE, IMAGE_STATE_LIVE, IMAGE_STATE_ERROR, IMAGE_STATE_FINISHED], doc: "What has become of the last command." };
    /// SHA-256 of the image that is to be activated. SLVERR while a command is under way.
    pub const IMAGE_DIGEST: Register = Register { name: "IMAGE_DIGEST", offset: 0x80, count: Some(8), mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "SHA-256 of the image that is to be activated. SLVERR while a command is under way." };
    /// `DATAGRAM_PORT.port`: The port.
    pub const DATAGRAM_PORT_PORT: Field = Field { name: "port", low: 0, width: 16, doc: "The port." };
    /// `DATAGRAM_PORT.enable`: Datagrams to it are received, and sent as `to` says.
    pub const DATAGRAM_PORT_ENABLE: Field = Field { name: "enable", low: 16, width: 1, doc: "Datagrams to it are received, and sent as `to` says." };
    /// `DATAGRAM_PORT.to`: To whom the kernel may send: 0: nobody; 1: an answer to each of the last 32 datagrams that it has got, at most three times as long; 2: to hosts of DATAGRAM_NETWORK.
    pub const DATAGRAM_PORT_TO: Field = Field { name: "to", low: 24, width: 2, doc: "To whom the kernel may send: 0: nobody; 1: an answer to each of the last 32 datagrams that it has got, at most three times as long; 2: to hosts of DATAGRAM_NETWORK." };
    /// UDP port of the kernel.
    pub const DATAGRAM_PORT: Register = Register { name: "DATAGRAM_PORT", offset: 0xa0, count: None, mode: Mode::ReadWrite, mask: 0x301ffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[DATAGRAM_PORT_PORT, DATAGRAM_PORT_ENABLE, DATAGRAM_PORT_TO], doc: "UDP port of the kernel." };
    /// IPv4 address of a network, the first byte highest. Of a host's address the bits in DATAGRAM_MASK must be the same.
    pub const DATAGRAM_NETWORK: Register = Register { name: "DATAGRAM_NETWORK", offset: 0xa4, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "IPv4 address of a network, the first byte highest. Of a host's address the bits in DATAGRAM_MASK must be the same." };
    /// See DATAGRAM_NETWORK.
    pub const DATAGRAM_MASK: Register = Register { name: "DATAGRAM_MASK", offset: 0xa8, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "See DATAGRAM_NETWORK." };
    /// Time that each byte sent takes, in 1/256 cycle; a datagram has 64 bytes of headers, too.
    pub const DATAGRAM_PACE: Register = Register { name: "DATAGRAM_PACE", offset: 0xac, count: None, mode: Mode::ReadWrite, mask: 0xffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Time that each byte sent takes, in 1/256 cycle; a datagram has 64 bytes of headers, too." };
    /// An IPv6 address, its first four bytes in the first word, the first byte highest; IPv4 mapped into them: 0, 0, 0x0000ffff, address. SLVERR if the kernel can open no connections.
    pub const PEER_NETWORK: Register = Register { name: "PEER_NETWORK", offset: 0xb0, count: Some(4), mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "An IPv6 address, its first four bytes in the first word, the first byte highest; IPv4 mapped into them: 0, 0, 0x0000ffff, address. SLVERR if the kernel can open no connections." };
    /// `PEERS.prefix`: Bits of PEER_NETWORK with which the address of a peer must begin; of an IPv4 network 96 more than its own.
    pub const PEERS_PREFIX: Field = Field { name: "prefix", low: 0, width: 8, doc: "Bits of PEER_NETWORK with which the address of a peer must begin; of an IPv4 network 96 more than its own." };
    /// `PEERS.enable`: 0: the kernel may connect to nobody.
    pub const PEERS_ENABLE: Field = Field { name: "enable", low: 31, width: 1, doc: "0: the kernel may connect to nobody." };
    /// Whom the kernel may connect to. Connections that are open stay. SLVERR if the kernel can open none.
    pub const PEERS: Register = Register { name: "PEERS", offset: 0xc0, count: None, mode: Mode::ReadWrite, mask: 0x800000ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PEERS_PREFIX, PEERS_ENABLE], doc: "Whom the kernel may connect to. Connections that are open stay. SLVERR if the kernel can open none." };
    /// `CONNECTIONS.slots`: Connections that the kernel can have at once.
    pub const CONNECTIONS_SLOTS: Field = Field { name: "slots", low: 0, width: 8, doc: "Connections that the kernel can have at once." };
    /// `CONNECTIONS.used`: Which of these are in use, a bit each.
    pub const CONNECTIONS_USED: Field = Field { name: "used", low: 16, width: 8, doc: "Which of these are in use, a bit each." };
    /// Connections that the kernel has opened.
    pub const CONNECTIONS: Register = Register { name: "CONNECTIONS", offset: 0xc4, count: None, mode: Mode::Read, mask: 0xff00ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[CONNECTIONS_SLOTS, CONNECTIONS_USED], doc: "Connections that the kernel has opened." };
    /// `BUS.read`: Read those that the column `kernel` of the tables names `read` or `write`; else only those that anybody may read.
    pub const BUS_READ: Field = Field { name: "read", low: 0, width: 1, doc: "Read those that the column `kernel` of the tables names `read` or `write`; else only those that anybody may read." };
    /// `BUS.write`: Write those that it names `write`.
    pub const BUS_WRITE: Field = Field { name: "write", low: 1, width: 1, doc: "Write those that it names `write`." };
    /// Registers of the device that the kernel may access; in use from the next access on. In a socket without a port to them it is 0, and a write is answered with SLVERR.
    pub const BUS: Register = Register { name: "BUS", offset: 0xc8, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[BUS_READ, BUS_WRITE], doc: "Registers of the device that the kernel may access; in use from the next access on. In a socket without a port to them it is 0, and a write is answered with SLVERR." };
    /// Datagrams taken for the kernel.
    pub const DATAGRAMS_RECEIVED: Register = Register { name: "DATAGRAMS_RECEIVED", offset: 0xd0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Datagrams taken for the kernel." };
    /// Received, but there was no room, or the kernel was decoupled.
    pub const DATAGRAMS_DROP_ROOM: Register = Register { name: "DATAGRAMS_DROP_ROOM", offset: 0xd4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received, but there was no room, or the kernel was decoupled." };
    /// Received, but longer than 4096 bytes.
    pub const DATAGRAMS_DROP_LENGTH: Register = Register { name: "DATAGRAMS_DROP_LENGTH", offset: 0xd8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received, but longer than 4096 bytes." };
    /// Of either direction: the kernel was decoupled.
    pub const DATAGRAMS_DISCARDED: Register = Register { name: "DATAGRAMS_DISCARDED", offset: 0xdc, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of either direction: the kernel was decoupled." };
    /// Datagrams sent.
    pub const DATAGRAMS_SENT: Register = Register { name: "DATAGRAMS_SENT", offset: 0xe0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Datagrams sent." };
    /// From the kernel: no datagram, or not as long as its header says.
    pub const DATAGRAMS_MALFORMED: Register = Register { name: "DATAGRAMS_MALFORMED", offset: 0xe4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "From the kernel: no datagram, or not as long as its header says." };
    /// From the kernel, to whom it may not send.
    pub const DATAGRAMS_REFUSED: Register = Register { name: "DATAGRAMS_REFUSED", offset: 0xe8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "From the kernel, to whom it may not send." };
    /// From the kernel: no MAC address was found for its destination.
    pub const DATAGRAMS_UNRESOLVED: Register = Register { name: "DATAGRAMS_UNRESOLVED", offset: 0xec, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "From the kernel: no MAC address was found for its destination." };
}

/// Kernel `reflect`.
pub mod reflect {
    use super::*;

    /// Byte address of the first.
    pub const BASE: u32 = 0x10100;
    /// How many there can be.
    pub const BLOCK_COUNT: u32 = 16;
    /// Bytes from one to the next.
    pub const BLOCK_STRIDE: u32 = 0x1000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "reflect",
        kind: *b"REFL",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CONTROL,
            REFLECTED,
            IGNORED,
        ],
    };
    /// 0x5245464c, "REFL": the kernel `reflect`.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x5245464c, \"REFL\": the kernel `reflect`." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: the next socket's, or 0.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: the next socket's, or 0." };
    /// `CONTROL.reflect`: Each datagram is sent back to its sender, but while `receive` runs.
    pub const CONTROL_REFLECT: Field = Field { name: "reflect", low: 0, width: 1, doc: "Each datagram is sent back to its sender, but while `receive` runs." };
    /// What it does. Else datagrams wait for `receive`.
    pub const CONTROL: Register = Register { name: "CONTROL", offset: 0x10, count: None, mode: Mode::ReadWrite, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[CONTROL_REFLECT], doc: "What it does. Else datagrams wait for `receive`." };
    /// Datagrams sent back.
    pub const REFLECTED: Register = Register { name: "REFLECTED", offset: 0x14, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Datagrams sent back." };
    /// Datagrams that were not, because they came from the kernel's own port number: two reflectors would go on for ever.
    pub const IGNORED: Register = Register { name: "IGNORED", offset: 0x18, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Datagrams that were not, because they came from the kernel's own port number: two reflectors would go on for ever." };
}

/// Kernel `traffic`.
pub mod traffic {
    use super::*;

    /// Byte address of the first.
    pub const BASE: u32 = 0x10100;
    /// How many there can be.
    pub const BLOCK_COUNT: u32 = 16;
    /// Bytes from one to the next.
    pub const BLOCK_STRIDE: u32 = 0x1000;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "traffic",
        kind: *b"TRAF",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CONTROL,
            STATUS,
            OPCODE,
            LENGTH,
            QPN,
            QPS,
            DEPTH,
            COUNT,
            LOCAL_LO,
            LOCAL_HI,
            REMOTE_LO,
            REMOTE_HI,
            RKEY,
            STRIDE,
            WRAP,
            POSTED,
            COMPLETED,
            FAILED,
            FAILURE,
            CYCLES,
            FIRST,
        ],
    };
    /// 0x54524146, "TRAF": the kernel `traffic`.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x54524146, \"TRAF\": the kernel `traffic`." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: the next socket's, or 0.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: the next socket's, or 0." };
    /// `CONTROL.start`: Start a run. An error during one.
    pub const CONTROL_START: Field = Field { name: "start", low: 0, width: 1, doc: "Start a run. An error during one." };
    /// `CONTROL.stop`: Stop posting; the run ends with what is outstanding.
    pub const CONTROL_STOP: Field = Field { name: "stop", low: 1, width: 1, doc: "Stop posting; the run ends with what is outstanding." };
    /// Starts and stops.
    pub const CONTROL: Register = Register { name: "CONTROL", offset: 0x10, count: None, mode: Mode::Write, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[CONTROL_START, CONTROL_STOP], doc: "Starts and stops." };
    /// `STATUS.running`: A run is in progress.
    pub const STATUS_RUNNING: Field = Field { name: "running", low: 0, width: 1, doc: "A run is in progress." };
    /// State of the run.
    pub const STATUS: Register = Register { name: "STATUS", offset: 0x14, count: None, mode: Mode::Read, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[STATUS_RUNNING], doc: "State of the run." };
    /// As ibv_wr_opcode; 15: post receives.
    pub const OPCODE: Register = Register { name: "OPCODE", offset: 0x18, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "As ibv_wr_opcode; 15: post receives." };
    /// Bytes a request.
    pub const LENGTH: Register = Register { name: "LENGTH", offset: 0x1c, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes a request." };
    /// The first queue pair.
    pub const QPN: Register = Register { name: "QPN", offset: 0x20, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The first queue pair." };
    /// How many queue pairs, in turn.
    pub const QPS: Register = Register { name: "QPS", offset: 0x24, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "How many queue pairs, in turn." };
    /// Requests outstanding on each, 1 to 255.
    pub const DEPTH: Register = Register { name: "DEPTH", offset: 0x28, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Requests outstanding on each, 1 to 255." };
    /// Requests in all.
    pub const COUNT: Register = Register { name: "COUNT", offset: 0x2c, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Requests in all." };
    /// Local address, lower half.
    pub const LOCAL_LO: Register = Register { name: "LOCAL_LO", offset: 0x30, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Local address, lower half." };
    /// Likewise, upper half.
    pub const LOCAL_HI: Register = Register { name: "LOCAL_HI", offset: 0x34, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, upper half." };
    /// Remote address, lower half.
    pub const REMOTE_LO: Register = Register { name: "REMOTE_LO", offset: 0x38, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Remote address, lower half." };
    /// Likewise, upper half.
    pub const REMOTE_HI: Register = Register { name: "REMOTE_HI", offset: 0x3c, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise, upper half." };
    /// Key of the remote memory.
    pub const RKEY: Register = Register { name: "RKEY", offset: 0x40, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Key of the remote memory." };
    /// Request i is for the addresses + (i mod WRAP) * STRIDE.
    pub const STRIDE: Register = Register { name: "STRIDE", offset: 0x44, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Request i is for the addresses + (i mod WRAP) * STRIDE." };
    /// See STRIDE.
    pub const WRAP: Register = Register { name: "WRAP", offset: 0x48, count: None, mode: Mode::Write, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "See STRIDE." };
    /// Requests posted.
    pub const POSTED: Register = Register { name: "POSTED", offset: 0x50, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Requests posted." };
    /// Requests completed.
    pub const COMPLETED: Register = Register { name: "COMPLETED", offset: 0x54, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Requests completed." };
    /// Of these, failed.
    pub const FAILED: Register = Register { name: "FAILED", offset: 0x58, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of these, failed." };
    /// Status of the first that failed; 0: none.
    pub const FAILURE: Register = Register { name: "FAILURE", offset: 0x5c, count: None, mode: Mode::Read, mask: 0x1f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Status of the first that failed; 0: none." };
    /// Cycles from the start to the last completion.
    pub const CYCLES: Register = Register { name: "CYCLES", offset: 0x60, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Cycles from the start to the last completion." };
    /// Cycles from the start to the first completion.
    pub const FIRST: Register = Register { name: "FIRST", offset: 0x64, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Cycles from the start to the first completion." };
}

/// Stream kernel `nat`.
pub mod nat {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0xb100;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "nat",
        kind: *b"NAPT",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            CONTROL,
            OUTSIDE,
            HOST,
            ENTRIES,
            ENTRY,
            INSIDE,
            PORTS,
            PROTOCOL,
            TRANSLATED_TX,
            TRANSLATED_RX,
            UNKNOWN_TX,
            UNKNOWN_RX,
        ],
    };
    /// 0x4e415054, "NAPT": the stream kernel `nat`.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x4e415054, \"NAPT\": the stream kernel `nat`." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: a socket's.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: a socket's." };
    /// `CONTROL.enable`: Frames are translated; else all pass as they are.
    pub const CONTROL_ENABLE: Field = Field { name: "enable", low: 0, width: 1, doc: "Frames are translated; else all pass as they are." };
    /// `CONTROL.drop_rx`: Received frames that are neither translated nor ARP are dropped.
    pub const CONTROL_DROP_RX: Field = Field { name: "drop_rx", low: 1, width: 1, doc: "Received frames that are neither translated nor ARP are dropped." };
    /// `CONTROL.drop_tx`: So are those that are sent.
    pub const CONTROL_DROP_TX: Field = Field { name: "drop_tx", low: 2, width: 1, doc: "So are those that are sent." };
    /// What becomes of frames. In use from the next frame on.
    pub const CONTROL: Register = Register { name: "CONTROL", offset: 0x10, count: None, mode: Mode::ReadWrite, mask: 0x7, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[CONTROL_ENABLE, CONTROL_DROP_RX, CONTROL_DROP_TX], doc: "What becomes of frames. In use from the next frame on." };
    /// The address that the network sees.
    pub const OUTSIDE: Register = Register { name: "OUTSIDE", offset: 0x14, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The address that the network sees." };
    /// The host whose ARP is translated: it answers for OUTSIDE, and asks with that address.
    pub const HOST: Register = Register { name: "HOST", offset: 0x18, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The host whose ARP is translated: it answers for OUTSIDE, and asks with that address." };
    /// Entries of the table.
    pub const ENTRIES: Register = Register { name: "ENTRIES", offset: 0x1c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Entries of the table." };
    /// The entry of PROTOCOL. A write sets INSIDE and PORTS to what it has.
    pub const ENTRY: Register = Register { name: "ENTRY", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0x1f, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The entry of PROTOCOL. A write sets INSIDE and PORTS to what it has." };
    /// Its address inside, in use with the next write of PROTOCOL.
    pub const INSIDE: Register = Register { name: "INSIDE", offset: 0x24, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Its address inside, in use with the next write of PROTOCOL." };
    /// `PORTS.outside_port`: Outside.
    pub const PORTS_OUTSIDE_PORT: Field = Field { name: "outside_port", low: 0, width: 16, doc: "Outside." };
    /// `PORTS.inside_port`: Inside.
    pub const PORTS_INSIDE_PORT: Field = Field { name: "inside_port", low: 16, width: 16, doc: "Inside." };
    /// Its ports; of ICMP identifiers of echo. In use with the next write of PROTOCOL.
    pub const PORTS: Register = Register { name: "PORTS", offset: 0x28, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PORTS_OUTSIDE_PORT, PORTS_INSIDE_PORT], doc: "Its ports; of ICMP identifiers of echo. In use with the next write of PROTOCOL." };
    /// Writes the entry, with INSIDE and PORTS: one change for frames. What the entry has is read.
    pub const PROTOCOL: Register = Register { name: "PROTOCOL", offset: 0x2c, count: None, mode: Mode::ReadWrite, mask: 0xff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Writes the entry, with INSIDE and PORTS: one change for frames. What the entry has is read." };
    /// Frames from inside that were translated, ARP included.
    pub const TRANSLATED_TX: Register = Register { name: "TRANSLATED_TX", offset: 0x30, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames from inside that were translated, ARP included." };
    /// Frames from outside that were.
    pub const TRANSLATED_RX: Register = Register { name: "TRANSLATED_RX", offset: 0x34, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Frames from outside that were." };
    /// Other frames from inside, dropped or not. Frames that pass while CONTROL.enable is 0 are not counted.
    pub const UNKNOWN_TX: Register = Register { name: "UNKNOWN_TX", offset: 0x38, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Other frames from inside, dropped or not. Frames that pass while CONTROL.enable is 0 are not counted." };
    /// Other frames from outside.
    pub const UNKNOWN_RX: Register = Register { name: "UNKNOWN_RX", offset: 0x3c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Other frames from outside." };
}

/// Stream kernel `pass`.
pub mod pass {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0xb100;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "pass",
        kind: *b"PASS",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            HOLD,
        ],
    };
    /// 0x50415353, "PASS": the stream kernel `pass`.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x50415353, \"PASS\": the stream kernel `pass`." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: a socket's.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: a socket's." };
    /// `HOLD.rx`: Received frames stay inside.
    pub const HOLD_RX: Field = Field { name: "rx", low: 0, width: 1, doc: "Received frames stay inside." };
    /// `HOLD.tx`: Frames that are sent do.
    pub const HOLD_TX: Field = Field { name: "tx", low: 1, width: 1, doc: "Frames that are sent do." };
    /// The kernel stops, to see what becomes of one that does.
    pub const HOLD: Register = Register { name: "HOLD", offset: 0x10, count: None, mode: Mode::ReadWrite, mask: 0x3, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[HOLD_RX, HOLD_TX], doc: "The kernel stops, to see what becomes of one that does." };
}

/// Stream kernel `telemetry`.
pub mod telemetry {
    use super::*;

    /// Byte address of the block.
    pub const BASE: u32 = 0xb100;
    /// The block.
    pub const BLOCK: Block = Block {
        name: "telemetry",
        kind: *b"FLOW",
        version: 0x00010000,
        registers: &[
            TYPE,
            VERSION,
            NEXT,
            COMMAND,
            SEED,
            THRESHOLD,
            PLACES,
            ENTRY,
            FLOW,
            PORTS,
            LAST,
            SRC,
            DST,
            FRAMES,
            BYTES_LO,
            BYTES_HI,
            BEFORE_LO,
            BEFORE_HI,
            OTHER_RX,
            REPLACED_RX,
            OTHER_TX,
            REPLACED_TX,
            GAPS_RX,
            GAPS_TX,
            HEAVY_RX,
            HEAVY_TX,
        ],
    };
    /// 0x464c4f57, "FLOW": the stream kernel `telemetry`.
    pub const TYPE: Register = Register { name: "TYPE", offset: 0x0, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "0x464c4f57, \"FLOW\": the stream kernel `telemetry`." };
    /// Version of this block: major in the upper 16 bits, minor in the lower.
    pub const VERSION: Register = Register { name: "VERSION", offset: 0x4, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Version of this block: major in the upper 16 bits, minor in the lower." };
    /// Byte address of the next block: a socket's.
    pub const NEXT: Register = Register { name: "NEXT", offset: 0x8, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Anybody, writer: Who::Authorised, fields: &[], doc: "Byte address of the next block: a socket's." };
    /// `COMMAND.clear`: Tables, histograms and counters are empty.
    pub const COMMAND_CLEAR: Field = Field { name: "clear", low: 0, width: 1, doc: "Tables, histograms and counters are empty." };
    /// A bit that is written as 1 acts once.
    pub const COMMAND: Register = Register { name: "COMMAND", offset: 0x10, count: None, mode: Mode::Write, mask: 0x1, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[COMMAND_CLEAR], doc: "A bit that is written as 1 acts once." };
    /// Of the hash.
    pub const SEED: Register = Register { name: "SEED", offset: 0x14, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Of the hash." };
    /// From how many bytes on a flow is heavy. Looked at with each frame.
    pub const THRESHOLD: Register = Register { name: "THRESHOLD", offset: 0x18, count: None, mode: Mode::ReadWrite, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "From how many bytes on a flow is heavy. Looked at with each frame." };
    /// Places of flows, of each direction.
    pub const PLACES: Register = Register { name: "PLACES", offset: 0x1c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Places of flows, of each direction." };
    /// `ENTRY.place`: A place.
    pub const ENTRY_PLACE: Field = Field { name: "place", low: 0, width: 9, doc: "A place." };
    /// `ENTRY.tx`: Of sent frames, else of received ones.
    pub const ENTRY_TX: Field = Field { name: "tx", low: 16, width: 1, doc: "Of sent frames, else of received ones." };
    /// The place that the registers up to LAST show, as it is when this is written.
    pub const ENTRY: Register = Register { name: "ENTRY", offset: 0x20, count: None, mode: Mode::ReadWrite, mask: 0x101ff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[ENTRY_PLACE, ENTRY_TX], doc: "The place that the registers up to LAST show, as it is when this is written." };
    /// `FLOW.used`: There is a flow.
    pub const FLOW_USED: Field = Field { name: "used", low: 0, width: 1, doc: "There is a flow." };
    /// `FLOW.v6`: IPv6.
    pub const FLOW_V6: Field = Field { name: "v6", low: 1, width: 1, doc: "IPv6." };
    /// `FLOW.protocol`: Protocol of IPv4, next header of IPv6.
    pub const FLOW_PROTOCOL: Field = Field { name: "protocol", low: 8, width: 8, doc: "Protocol of IPv4, next header of IPv6." };
    /// What kind of flow it is.
    pub const FLOW: Register = Register { name: "FLOW", offset: 0x24, count: None, mode: Mode::Read, mask: 0xff03, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[FLOW_USED, FLOW_V6, FLOW_PROTOCOL], doc: "What kind of flow it is." };
    /// `PORTS.dst_port`: 0 if it has none.
    pub const PORTS_DST_PORT: Field = Field { name: "dst_port", low: 0, width: 16, doc: "0 if it has none." };
    /// `PORTS.src_port`: Likewise.
    pub const PORTS_SRC_PORT: Field = Field { name: "src_port", low: 16, width: 16, doc: "Likewise." };
    /// Its ports.
    pub const PORTS: Register = Register { name: "PORTS", offset: 0x28, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[PORTS_DST_PORT, PORTS_SRC_PORT], doc: "Its ports." };
    /// Time of its last frame, the lower bits, in device cycles.
    pub const LAST: Register = Register { name: "LAST", offset: 0x2c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Time of its last frame, the lower bits, in device cycles." };
    /// Its source, the highest word first; IPv4 in mapped form.
    pub const SRC: Register = Register { name: "SRC", offset: 0x30, count: Some(4), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Its source, the highest word first; IPv4 in mapped form." };
    /// Its destination.
    pub const DST: Register = Register { name: "DST", offset: 0x40, count: Some(4), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Its destination." };
    /// Its frames, since it has the place.
    pub const FRAMES: Register = Register { name: "FRAMES", offset: 0x50, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Its frames, since it has the place." };
    /// Bytes of these frames, without FCS, the lower 32 bits.
    pub const BYTES_LO: Register = Register { name: "BYTES_LO", offset: 0x54, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes of these frames, without FCS, the lower 32 bits." };
    /// The upper 16 bits.
    pub const BYTES_HI: Register = Register { name: "BYTES_HI", offset: 0x58, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The upper 16 bits." };
    /// Bytes of all flows of the place before it had it: so many of its own can be missing.
    pub const BEFORE_LO: Register = Register { name: "BEFORE_LO", offset: 0x5c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Bytes of all flows of the place before it had it: so many of its own can be missing." };
    /// The upper 16 bits.
    pub const BEFORE_HI: Register = Register { name: "BEFORE_HI", offset: 0x60, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The upper 16 bits." };
    /// Received frames that carry no IP, and are in no flow.
    pub const OTHER_RX: Register = Register { name: "OTHER_RX", offset: 0x70, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Received frames that carry no IP, and are in no flow." };
    /// Flows of received frames that have lost their place to another one.
    pub const REPLACED_RX: Register = Register { name: "REPLACED_RX", offset: 0x74, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Flows of received frames that have lost their place to another one." };
    /// Likewise of sent frames.
    pub const OTHER_TX: Register = Register { name: "OTHER_TX", offset: 0x78, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise of sent frames." };
    /// Likewise.
    pub const REPLACED_TX: Register = Register { name: "REPLACED_TX", offset: 0x7c, count: None, mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Likewise." };
    /// Word n: frames that came 2^n to 2^(n+1) - 1 cycles behind the frame before of their flow; word 0 also 0 cycles.
    pub const GAPS_RX: Register = Register { name: "GAPS_RX", offset: 0x100, count: Some(32), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Word n: frames that came 2^n to 2^(n+1) - 1 cycles behind the frame before of their flow; word 0 also 0 cycles." };
    /// The same of sent frames.
    pub const GAPS_TX: Register = Register { name: "GAPS_TX", offset: 0x180, count: Some(32), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The same of sent frames." };
    /// Places with a heavy flow.
    pub const HEAVY_RX: Register = Register { name: "HEAVY_RX", offset: 0x200, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "Places with a heavy flow." };
    /// The same of sent frames.
    pub const HEAVY_TX: Register = Register { name: "HEAVY_TX", offset: 0x240, count: Some(16), mode: Mode::Read, mask: 0xffffffff, counter: false, reader: Who::Authorised, writer: Who::Authorised, fields: &[], doc: "The same of sent frames." };
}
