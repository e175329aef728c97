// SPDX-License-Identifier: Apache-2.0
//! Counters: one for each kind of packet and each kind of error. Interface, transport and connections each have their own;
//! the transport's include those of its connections, past ones too.
//!
//! Names are those of Linux's `hw_counters` (rxe, mlx5) where it has one for the same thing.

use crate::Discard;
use nacelle_wire::ParseError;

macro_rules! counters {
    (
        interface { $($(#[$idoc:meta])* $iname:ident,)* }
        transport { $($(#[$tdoc:meta])* $tname:ident,)* }
        connection { $($(#[$cdoc:meta])* $cname:ident,)* }
    ) => {
        /// Counters of an interface.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct InterfaceCounters {
            $($(#[$idoc])* pub $iname: u64,)*
        }

        /// Counters of a transport.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct TransportCounters {
            $($(#[$tdoc])* pub $tname: u64,)*
            $($(#[$cdoc])* pub $cname: u64,)*
        }

        impl TransportCounters {
            /// Adds the counters of a connection.
            pub(crate) fn add(&mut self, qp: &QpCounters) {
                $(self.$cname += qp.$cname;)*
            }
        }

        /// Counters of one connection's queue pair.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct QpCounters {
            $($(#[$cdoc])* pub $cname: u64,)*
        }

        impl QpCounters {
            /// Adds other counters.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$cname += other.$cname;)*
            }

            /// Name and value of each.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($cname), self.$cname),)*].into_iter()
            }
        }

        /// Counters of an endpoint: those of its interface and of its transport.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$idoc])* pub $iname: u64,)*
            $($(#[$tdoc])* pub $tname: u64,)*
            $($(#[$cdoc])* pub $cname: u64,)*
        }

        impl Counters {
            pub(crate) fn new(interface: &InterfaceCounters, transport: &TransportCounters) -> Self {
                Self {
                    $($iname: interface.$iname,)*
                    $($tname: transport.$tname,)*
                    $($cname: transport.$cname,)*
                }
            }

            /// Name and value of each.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [
                    $((stringify!($iname), self.$iname),)*
                    $((stringify!($tname), self.$tname),)*
                    $((stringify!($cname), self.$cname),)*
                ]
                .into_iter()
            }
        }
    };
}

counters! {
    interface {
        /// Frames received.
        rx_frames,
        /// Bytes of frames received.
        rx_bytes,
        /// Frames sent.
        tx_frames,
        /// Bytes of frames sent.
        tx_bytes,
        /// ARP packets accepted.
        rx_arp,
        /// ARP packets sent.
        tx_arp,
        /// Echo requests answered.
        rx_echo_request,
        /// Echo replies received.
        rx_echo_reply,
        /// ARP and ICMP frames that found the queue full and were not sent.
        tx_queue_full,
        /// Discarded: malformed below the transport (Ethernet, ARP, IPv4, ICMP, UDP).
        discard_malformed,
        /// Discarded: wrong ICRC (mlx5: `rx_icrc_encapsulated`).
        discard_icrc,
        /// Discarded: for another host.
        discard_not_ours,
        /// Discarded: ARP packets that concern no address of this cache.
        discard_arp,
        /// Discarded: unexpected echo replies.
        discard_echo,
    }
    transport {
        /// CM messages accepted.
        rx_cm,
        /// CM messages sent.
        tx_cm,
        /// CM messages that found the queue full and were not sent.
        tx_cm_queue_full,
        /// Discarded: malformed transport headers.
        discard_bth,
        /// Discarded: malformed CM message.
        discard_mad,
        /// Discarded: wrong P_Key.
        discard_p_key,
        /// Discarded: wrong Q_Key.
        discard_q_key,
        /// Discarded: no such queue pair.
        discard_unknown_qp,
        /// Discarded: not from the connection's peer.
        discard_wrong_peer,
        /// Discarded: CM messages that fit no connection or phase.
        discard_cm,
        /// Discarded: queue pair in error.
        discard_qp_error,
        /// Discarded: no receive posted.
        discard_rnr,
        /// Discarded: stale acknowledgements.
        discard_stale_ack,
        /// Discarded: unexpected responses.
        discard_response,
    }
    connection {
        /// Request packets received in order and executed.
        rx_request,
        /// Request packets sent.
        tx_request,
        /// ACKs received.
        rx_ack,
        /// ACKs sent.
        tx_ack,
        /// NAKs received, sequence errors and RNR not included.
        rx_nak,
        /// NAKs sent, sequence errors and RNR not included.
        tx_nak,
        /// READ response packets received and placed.
        rx_read_responses,
        /// READ response packets sent.
        tx_read_responses,
        /// Atomic responses received and placed.
        rx_atomic_responses,
        /// Atomic responses sent.
        tx_atomic_responses,
        /// Sequence error NAKs received (rxe: `rcvd_seq_err`).
        packet_seq_err,
        /// Sequence error NAKs sent.
        send_seq_err,
        /// RNR NAKs received (rxe: `rcvd_rnr_err`).
        rnr_nak_retry_err,
        /// RNR NAKs sent (mlx5: `out_of_buffer`).
        send_rnr_err,
        /// Responses that showed that an earlier READ or atomic response is lost.
        implied_nak_seq_err,
        /// Requests received ahead of the expected PSN.
        out_of_seq_request,
        /// Requests received ahead of the expected PSN and placed at once, by selective repeat.
        placed_early,
        /// Duplicate requests received.
        duplicate_request,
        /// Request packets sent again.
        retransmitted,
        /// ACK timeouts.
        local_ack_timeout_err,
        /// Failures by too many retries.
        retry_exceeded_err,
        /// Failures by too many RNR retries.
        retry_rnr_exceeded_err,
        /// WRITEs executed for the peer.
        rx_write_requests,
        /// READs executed for the peer, repetitions included.
        rx_read_requests,
        /// Atomics executed for the peer.
        rx_atomic_requests,
        /// SENDs executed for the peer.
        rdma_recvs,
        /// SENDs posted.
        rdma_sends,
        /// WRITEs posted.
        rdma_writes,
        /// READs posted.
        rdma_reads,
        /// Atomics posted.
        rdma_atomics,
        /// Keys that the peer invalidated by SEND with invalidate.
        rx_invalidations,
        /// Send work requests that ended in error, flushed ones not included.
        req_cqe_error,
        /// Send work requests flushed.
        req_cqe_flush_error,
        /// Receives that ended in error, flushed ones not included.
        resp_cqe_error,
        /// Receives flushed.
        resp_cqe_flush_error,
        /// The peer's remote access NAKs.
        req_remote_access_errors,
        /// The peer's invalid request NAKs.
        req_remote_invalid_request,
        /// The peer's remote operational NAKs.
        req_remote_operational_errors,
        /// Malformed responses.
        req_bad_response,
        /// The peer's requests with wrong key, bounds, rights or domain.
        resp_remote_access_errors,
        /// Invalid requests of the peer: opcode sequence, length, alignment, too many READs.
        resp_remote_invalid_requests,
        /// The peer's SENDs that were longer than the receive.
        resp_local_length_error,
        /// Packets received with a congestion mark.
        np_ecn_marked_roce_packets,
        /// Congestion notifications sent.
        np_cnp_sent,
        /// Congestion notifications received that slowed this side down.
        rp_cnp_handled,
        /// Congestion notifications received and ignored.
        rp_cnp_ignored,
    }
}

impl InterfaceCounters {
    /// Counts a frame that the interface has discarded.
    pub(crate) fn discard(&mut self, why: Discard) {
        let counter = match why {
            Discard::Malformed(ParseError::Icrc) => &mut self.discard_icrc,
            Discard::NotForUs => &mut self.discard_not_ours,
            Discard::ArpIgnored => &mut self.discard_arp,
            Discard::UnexpectedEcho => &mut self.discard_echo,
            _ => &mut self.discard_malformed,
        };
        *counter += 1;
    }
}

impl TransportCounters {
    /// Counts a segment that the transport has discarded, unless a connection has counted it.
    pub(crate) fn discard(&mut self, why: Discard) {
        let counter = match why {
            Discard::Malformed(ParseError::Mad | ParseError::CmAttribute | ParseError::IpCm) => &mut self.discard_mad,
            Discard::PKey => &mut self.discard_p_key,
            Discard::QKey => &mut self.discard_q_key,
            Discard::UnknownQp => &mut self.discard_unknown_qp,
            Discard::WrongPeer => &mut self.discard_wrong_peer,
            Discard::CmUnexpected | Discard::CmSource => &mut self.discard_cm,
            Discard::QpError => &mut self.discard_qp_error,
            Discard::ReceiverNotReady => &mut self.discard_rnr,
            Discard::StaleAck => &mut self.discard_stale_ack,
            Discard::UnexpectedResponse => &mut self.discard_response,
            Discard::OutOfSequence | Discard::Duplicate => return,
            _ => &mut self.discard_bth,
        };
        *counter += 1;
    }
}
