// SPDX-License-Identifier: Apache-2.0
//! Counters of an endpoint: one for each kind of packet and each reason of a discard.

use crate::Discard;
use nacelle_wire::ParseError;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of an endpoint. Names follow Linux's `hw_counters` where it has them.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Name and value of each.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }
    };
}

counters! {
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
    /// RC request packets received in order and executed.
    rx_request,
    /// RC request packets sent.
    tx_request,
    /// ACKs received.
    rx_ack,
    /// ACKs sent.
    tx_ack,
    /// NAKs received, sequence errors not included.
    rx_nak,
    /// NAKs sent, sequence errors and RNR not included.
    tx_nak,
    /// Sequence error NAKs received.
    rcvd_seq_err,
    /// Sequence error NAKs sent.
    send_seq_err,
    /// RNR NAKs received.
    rcvd_rnr_err,
    /// RNR NAKs sent.
    send_rnr_err,
    /// Duplicate requests received.
    duplicate_request,
    /// Requests received ahead of the expected PSN.
    out_of_seq_request,
    /// Request packets sent again.
    retransmitted,
    /// ACK timeouts.
    ack_timeouts,
    /// Connections failed by too many retries.
    retry_exceeded_err,
    /// Connections failed by too many RNR retries.
    retry_rnr_exceeded_err,
    /// SENDs executed for peers.
    rdma_recvs,
    /// WRITEs executed for peers.
    rdma_writes_rcvd,
    /// SENDs posted.
    rdma_sends,
    /// WRITEs posted.
    rdma_writes_sent,
    /// Frames that found the control queue full and were not sent.
    tx_queue_full,
    /// Discarded: malformed below the transport (Ethernet, ARP, IPv4, ICMP, UDP).
    discard_malformed,
    /// Discarded: wrong ICRC.
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
    /// Discarded: invalid requests.
    discard_invalid_request,
    /// Discarded: wrong key, bounds or rights.
    discard_remote_access,
    /// Discarded: stale acknowledgements.
    discard_stale_ack,
    /// Discarded: unexpected responses.
    discard_response,
}

impl Counters {
    /// Counts a discarded frame.
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
            Discard::CmUnexpected => &mut self.discard_cm,
            Discard::QpError => &mut self.discard_qp_error,
            Discard::OutOfSequence => &mut self.out_of_seq_request,
            Discard::Duplicate => &mut self.duplicate_request,
            Discard::ReceiverNotReady => &mut self.discard_rnr,
            Discard::InvalidRequest => &mut self.discard_invalid_request,
            Discard::RemoteAccess => &mut self.discard_remote_access,
            Discard::StaleAck => &mut self.discard_stale_ack,
            Discard::UnexpectedResponse => &mut self.discard_response,
        };
        *counter += 1;
    }
}
