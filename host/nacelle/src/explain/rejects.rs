// SPDX-License-Identifier: Apache-2.0
//! Reasons for which a connection is refused.

use nacelle_wire::cm::RejReason;

use super::{Explanation, Kind, Text};

/// The names of the reasons (IBTA table 114), from 1 on.
const NAMES: [&str; 33] = [
    "NO_QP",
    "NO_EEC",
    "NO_RESOURCES",
    "TIMEOUT",
    "UNSUPPORTED_REQUEST",
    "INVALID_COMM_ID",
    "INVALID_COMM_INSTANCE",
    "INVALID_SERVICE_ID",
    "INVALID_TRANSPORT_TYPE",
    "STALE_CONNECTION",
    "NO_RDC",
    "INVALID_GID",
    "INVALID_LID",
    "INVALID_SL",
    "INVALID_TRAFFIC_CLASS",
    "INVALID_HOP_LIMIT",
    "INVALID_PACKET_RATE",
    "INVALID_ALT_GID",
    "INVALID_ALT_LID",
    "INVALID_ALT_SL",
    "INVALID_ALT_TRAFFIC_CLASS",
    "INVALID_ALT_HOP_LIMIT",
    "INVALID_ALT_PACKET_RATE",
    "PORT_CM_REDIRECT",
    "PORT_REDIRECT",
    "INVALID_PATH_MTU",
    "INSUFFICIENT_RESPONDER_RESOURCES",
    "CONSUMER",
    "RNR_RETRY_COUNT",
    "DUPLICATE_COMM_ID",
    "INVALID_CLASS_VERSION",
    "INVALID_FLOW_LABEL",
    "INVALID_ALT_FLOW_LABEL",
];

/// All reasons of the standard.
pub(super) fn all() -> impl Iterator<Item = Explanation> {
    (1u16..)
        .zip(NAMES)
        .map(|(code, name)| Explanation::new(Kind::Reject, code.into()..=code.into(), name, text(RejReason(code))))
}

/// What a reason means, why a peer gives it, and what to do.
pub(crate) const fn text(reason: RejReason) -> Text {
    let (cause, advice) = match reason {
        RejReason::NO_QP => (
            "As many connections as the device has queue pairs.",
            "wait until another caller has ended, then try again",
        ),
        RejReason::NO_RESOURCES => (
            "The device's limit for one caller, on its connections or on those that are being opened.",
            "the limit for one caller is reached: end calls from this address, or wait a few seconds, then try again",
        ),
        RejReason::TIMEOUT => (
            "The RTU did not arrive in time, or the peer's application did not answer.",
            "try again, with less beside it on a busy machine",
        ),
        RejReason::UNSUPPORTED_REQUEST | RejReason::INVALID_TRANSPORT_TYPE | RejReason::INVALID_CLASS_VERSION => (
            "The peer does not support this kind of request.",
            "the peer does not support it: check with 'nacelle ls' whether it is the intended device",
        ),
        RejReason::INVALID_SERVICE_ID => (
            "A wrong --port, or another service than a device at this address.",
            "leave --port out, or name the port that the device publishes: 'nacelle ls --json' shows it",
        ),
        RejReason::INVALID_COMM_ID
        | RejReason::INVALID_COMM_INSTANCE
        | RejReason::STALE_CONNECTION
        | RejReason::DUPLICATE_COMM_ID => ("An older connection was in the way and has been ended.", "try again"),
        RejReason::INVALID_PATH_MTU => {
            ("The peer's link is smaller than the path MTU in the REQ.", "use a smaller --mtu")
        }
        RejReason::CONSUMER => (
            "The application at the peer does not take this caller, as its private data may say.",
            "see what the application at the peer says: it may be another service than a device",
        ),
        RejReason::PORT_CM_REDIRECT | RejReason::PORT_REDIRECT => (
            "The peer wants to be called at another port or by another connection manager.",
            "capture the packets with --capture: the REJ names the other one",
        ),
        RejReason::INSUFFICIENT_RESPONDER_RESOURCES | RejReason::RNR_RETRY_COUNT => (
            "The peer cannot keep what the REQ asks for.",
            "capture the packets with --capture and look at the REQ and the REJ",
        ),
        RejReason::NO_EEC | RejReason::NO_RDC => (
            "Of reliable datagrams, which RoCEv2 endpoints do not have.",
            "check with 'nacelle ls' whether it is the intended device",
        ),
        _ => (
            "The peer does not take the path in the REQ: it sees other addresses than the caller, as behind a translation.",
            "capture the packets with --capture and look at the REQ and the REJ",
        ),
    };
    Text { meaning: reason.text(), cause, advice }
}
