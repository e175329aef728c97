// SPDX-License-Identifier: Apache-2.0
//! How far the data of a call has come.

use super::Call;

/// How far the data of a call has come, in bytes, to about a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transferred {
    /// Of the inputs, acknowledged by the device.
    pub sent: u64,
    /// The inputs of this call.
    pub to_send: u64,
    /// Of the outputs, received.
    pub received: u64,
    /// The outputs.
    pub to_receive: u64,
}

impl Call {
    /// How far the data of the call that runs has come, or of the one that ran last. On a connection that calls share, what
    /// others transfer counts, too.
    #[must_use]
    pub fn transferred(&self) -> Transferred {
        let length = |parameter: &super::Parameter| parameter.local.len as u64;
        // A call that runs was counted when it was invoked.
        let sent_with = self.calls.saturating_sub(1);
        let to_send = self.parameters.iter().filter(|one| one.role.is_sent(sent_with)).map(length).sum();
        let to_receive = self.parameters.iter().filter(|one| one.role.comes_back()).map(length).sum();
        let none = Transferred { to_send, to_receive, ..Transferred::default() };
        if self.calls == 0 {
            return none;
        }
        let mut state = self.shared().engine.lock();
        let state = &mut *state;
        let slot = state.inbox.session(self.channel.id).slot(self.context);
        let (Some(timing), Some(info)) = (slot.timing, state.endpoint.transport.connection(self.channel.id)) else {
            return none;
        };
        let waiting = u64::from(info.next_psn.since(info.oldest_psn));
        let packets = timing.packets(&info.stats).saturating_sub(waiting);
        Transferred {
            // All is acknowledged when no work request is left, whatever the length of the packets was.
            sent: if slot.sends == 0 { to_send } else { (packets * info.path_mtu.bytes() as u64).min(to_send) },
            received: timing.payload(&info.stats).min(to_receive),
            ..none
        }
    }
}
