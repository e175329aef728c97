// SPDX-License-Identifier: Apache-2.0
//! Counters: one for each kind of packet and each way something can go wrong. A connection counts for itself; the
//! endpoint adds up its connections, past ones included, and counts what belongs to none.
//!
//! Names are those of Linux's `hw_counters` (rxe, mlx5) where it has one for the same thing.

use crate::Discard;
use nacelle_wire::ParseError;

macro_rules! counters {
    (
        endpoint { $($(#[$edoc:meta])* $ename:ident,)* }
        connection { $($(#[$cdoc:meta])* $cname:ident,)* }
    ) => {
        /// Counters of an endpoint.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$edoc])* pub $ename: u64,)*
            $($(#[$cdoc])* pub $cname: u64,)*
        }

        impl Counters {
            /// Name and value of each.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($ename), self.$ename),)* $((stringify!($cname), self.$cname),)*].into_iter()
            }

            /// Adds what a connection counted.
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
            /// Adds what another one counted.
            pub(crate) fn add(&mut self, other: &Self) {
                $(self.$cname += other.$cname;)*
            }

            /// Name and value of each.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($cname), self.$cname),)*].into_iter()
            }
        }
    };
}

counters! {
    endpoint {
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
        /// CM messages accepted.
        rx_cm,
        /// CM messages sent.
        tx_cm,
        /// Frames that found the control queue full and were not sent.
        tx_queue_full,
        /// Discarded: malformed below the transport (Ethernet, ARP, IPv4, ICMP, UDP).
        discard_malformed,
        /// Discarded: wrong ICRC (mlx5: `rx_icrc_encapsulated`).
        discard_icrc,
        /// Discarded: malformed transport headers.
        discard_bth,
        /// Discarded: malformed CM message.
        discard_mad,
        /// Discarded: for another station.
        discard_not_for_us,
        /// Discarded: ARP packets of no interest.
        discard_arp,
        /// Discarded: unexpected echo replies.
        discard_echo,
        /// Discarded: wrong P_Key.
        discard_p_key,
        /// Discarded: wrong Q_Key.
        discard_q_key,
        /// Discarded: no such queue pair.
        discard_unknown_qp,
        /// Discarded: not from the connection's peer.
        discard_wrong_peer,
        /// Discarded: CM messages out of place.
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
        /// Keys that the peer took back by SEND with invalidate.
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
        /// The peer's requests that cannot be: opcode sequence, length, alignment, too many at once.
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

impl Counters {
    /// Counts a discarded frame, unless a connection has counted it.
    pub(crate) fn discard(&mut self, why: Discard) {
        let counter = match why {
            Discard::Malformed(e) => match e {
                ParseError::Icrc => &mut self.discard_icrc,
                ParseError::BthVersion | ParseError::BthOpcode | ParseError::BthPad => &mut self.discard_bth,
                ParseError::Mad | ParseError::CmAttribute | ParseError::IpCm => &mut self.discard_mad,
                _ => &mut self.discard_malformed,
            },
            Discard::NotForUs => &mut self.discard_not_for_us,
            Discard::ArpIgnored => &mut self.discard_arp,
            Discard::UnexpectedEcho => &mut self.discard_echo,
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
        };
        *counter += 1;
    }
}
