// SPDX-License-Identifier: Apache-2.0
//! Syndromes of acknowledgements, and statuses of completions.

use nacelle_roce::WcStatus;
use nacelle_wire::bth::{NakCode, RnrTimer, Syndrome};

use super::{Explanation, Kind, Text};

/// All of both kinds.
pub(super) fn all() -> impl Iterator<Item = Explanation> {
    syndromes().chain(statuses())
}

fn syndromes() -> impl Iterator<Item = Explanation> {
    let nak = |code: NakCode, name: &'static str| {
        let syndrome = Syndrome::Nak(code).to_u8().into();
        (syndrome..=syndrome, name, syndrome_text(code))
    };
    let all = [
        (
            Syndrome::Ack(0).to_u8().into()..=Syndrome::Ack(31).to_u8().into(),
            "ACK",
            Text {
                meaning: "All packets up to this PSN have arrived; the low 5 bits are a credit count, 31 for none.",
                cause: "-",
                advice: "-",
            },
        ),
        (
            Syndrome::RnrNak(RnrTimer::new(0)).to_u8().into()..=Syndrome::RnrNak(RnrTimer::new(31)).to_u8().into(),
            "RNR_NAK",
            Text {
                meaning: "The receiver is not ready: the sender repeats after the time in the low 5 bits (IBTA table 45).",
                cause: "No receive is posted, a kernel works on the regions, or a slow memory has no room.",
                advice: "nothing, unless it goes on: then see what the peer waits for",
            },
        ),
        nak(NakCode::PsnSequenceError, "NAK_PSN_SEQUENCE_ERROR"),
        nak(NakCode::InvalidRequest, "NAK_INVALID_REQUEST"),
        nak(NakCode::RemoteAccessError, "NAK_REMOTE_ACCESS_ERROR"),
        nak(NakCode::RemoteOperationalError, "NAK_REMOTE_OPERATIONAL_ERROR"),
        nak(NakCode::InvalidRdRequest, "NAK_INVALID_RD_REQUEST"),
    ];
    all.into_iter().map(|(codes, name, text)| Explanation::new(Kind::Syndrome, codes, name, text))
}

const fn syndrome_text(code: NakCode) -> Text {
    let (meaning, cause, advice) = match code {
        NakCode::PsnSequenceError => (
            "A packet is missing: the sender repeats from the PSN of this NAK.",
            "Loss or reordering in the network, or a receive buffer that is too small.",
            "nothing for few; for many look for the loss: 'nacelle stats', 'ethtool -S', a smaller --mtu",
        ),
        NakCode::InvalidRequest => (
            "The request cannot be: opcode sequence, length, or an operation that the peer does not have.",
            "A message longer than the receive, a READ or atomic without agreement, or a broken sender.",
            "capture the packets and look at the request before the NAK",
        ),
        NakCode::RemoteAccessError => (
            "The key, the bounds or the rights of the request do not fit.",
            "A key that was deregistered or belongs to another connection, an address beyond the region, or no right to write.",
            "compare address, length and R_Key of the request with 'nacelle region list'",
        ),
        NakCode::RemoteOperationalError => (
            "The peer could not complete the request.",
            "Its memory failed, or it had no resources for it.",
            "look at the peer's counters and log",
        ),
        NakCode::InvalidRdRequest => (
            "Of reliable datagrams only.",
            "A peer that is broken: RoCEv2 endpoints here have reliable connections.",
            "capture the packets and look at the request before the NAK",
        ),
    };
    Text { meaning, cause, advice }
}

fn statuses() -> impl Iterator<Item = Explanation> {
    let all = [
        (0, "SUCCESS", WcStatus::Success),
        (1, "LOC_LEN_ERR", WcStatus::LocLenErr),
        (2, "LOC_QP_OP_ERR", WcStatus::LocQpOpErr),
        (4, "LOC_PROT_ERR", WcStatus::LocProtErr),
        (5, "WR_FLUSH_ERR", WcStatus::WrFlushErr),
        (7, "BAD_RESP_ERR", WcStatus::BadRespErr),
        (8, "LOC_ACCESS_ERR", WcStatus::LocAccessErr),
        (9, "REM_INV_REQ_ERR", WcStatus::RemInvReqErr),
        (10, "REM_ACCESS_ERR", WcStatus::RemAccessErr),
        (11, "REM_OP_ERR", WcStatus::RemOpErr),
        (12, "RETRY_EXC_ERR", WcStatus::RetryExceeded),
        (13, "RNR_RETRY_EXC_ERR", WcStatus::RnrRetryExceeded),
    ];
    all.into_iter().map(|(code, name, status)| Explanation::new(Kind::Status, code..=code, name, status_text(status)))
}

const fn status_text(status: WcStatus) -> Text {
    let (meaning, cause, advice) = match status {
        WcStatus::Success => ("Success: the work request is done.", "-", "-"),
        WcStatus::LocLenErr => (
            "Local length error: the message is longer than the receive posted for it.",
            "The peer sends more than this side expects.",
            "post longer receives, or look at what the peer sends",
        ),
        WcStatus::LocQpOpErr => (
            "Local QP operation error: the peer violated the protocol, or this connection may not invalidate the key.",
            "Opcodes out of order, a wrong length, or too many READs.",
            "capture the packets and look at the last ones",
        ),
        WcStatus::LocProtErr => (
            "Local protection error: the local region no longer exists, or its memory cannot be accessed.",
            "Memory was deregistered while a work request used it, or its key does not fit.",
            "keep memory registered until its work requests have completed",
        ),
        WcStatus::WrFlushErr => (
            "Flushed: the connection ended before the work request was done.",
            "An earlier work request failed, or the connection was closed.",
            "look at the first completion that failed: it has the cause",
        ),
        WcStatus::BadRespErr => (
            "Bad response: the peer's response does not fit the request.",
            "A broken peer, or packets of an older connection.",
            "capture the packets and look at the last ones",
        ),
        WcStatus::LocAccessErr => (
            "Local access violation: the peer's request had a wrong key, bounds or rights.",
            "The peer uses a key after its end, or an address beyond the region.",
            "look at the regions that the peer was told of",
        ),
        WcStatus::RemInvReqErr => (
            "Remote invalid request: the peer answered with that NAK, or asked to invalidate a key that it may not.",
            syndrome_text(NakCode::InvalidRequest).cause,
            syndrome_text(NakCode::InvalidRequest).advice,
        ),
        WcStatus::RemAccessErr => (
            "Remote access error: the peer answered with that NAK.",
            syndrome_text(NakCode::RemoteAccessError).cause,
            syndrome_text(NakCode::RemoteAccessError).advice,
        ),
        WcStatus::RemOpErr => (
            "Remote operation error: the peer answered with that NAK.",
            syndrome_text(NakCode::RemoteOperationalError).cause,
            syndrome_text(NakCode::RemoteOperationalError).advice,
        ),
        WcStatus::RetryExceeded => (
            "Transport retry count exceeded: the peer does not acknowledge.",
            "It ended, the network lost every repetition, or packets of this length do not get through.",
            "see with 'nacelle doctor' whether the peer is there; try a smaller --mtu",
        ),
        WcStatus::RnrRetryExceeded => (
            "Receiver-not-ready retry count exceeded: the peer posted no receive in time.",
            "Its application hangs, or posts fewer receives than this side sends.",
            "look at what the peer's application waits for",
        ),
    };
    Text { meaning, cause, advice }
}
