// SPDX-License-Identifier: Apache-2.0
//! Peers that the network knows to be gone.

use super::Transport;
use crate::{ConnId, ConnectFailure, DisconnectReason, Phase, WcStatus};
use core::net::IpAddr;

impl Transport {
    /// The network says that a peer is gone for good: its connections end at once, not when their retries have run out, and nothing is
    /// sent to it.
    pub fn peer_gone(&mut self, peer: IpAddr) {
        let lost: Vec<(ConnId, Phase)> =
            self.conns.iter().filter(|c| c.peer == peer).map(|c| (c.id, c.phase)).collect();
        for (id, phase) in lost {
            match phase {
                Phase::Resolving | Phase::ReqSent => self.abandon(id, ConnectFailure::Unreachable),
                Phase::ReqReceived | Phase::RepSent => self.abandon(id, ConnectFailure::Aborted),
                Phase::Established | Phase::Lingering => self.finish(id, DisconnectReason::PeerGone, &[]),
                Phase::DreqSent => self.finish(id, DisconnectReason::Local, &[]),
                Phase::Unmanaged(_) => {
                    self.flush(id);
                    self.fail_unmanaged(id, WcStatus::RetryExceeded);
                }
            }
        }
    }
}
