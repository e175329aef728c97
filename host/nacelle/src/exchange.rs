// SPDX-License-Identifier: Apache-2.0
//! The exchange of a region set-up: a request by SEND, and the peer's regions by SEND.

use std::time::Duration;

use nacelle_roce::{Completion, ConnId, SendOp, SendWr, WcOpcode};
use nacelle_wire::calls::{Context, Request, SetUpAnswer};
use nacelle_wire::mrsp::Message;
use nacelle_wire::{RemoteAddr, Rkey};

use crate::channel::Channel;
use crate::device::Shared;
use crate::engine::{Endpoint, State};
use crate::inbox::Session;
use crate::{Error, Step};

/// The time that a device which is not Nacelle's gets between its answer and the next call, in times of that which it took to answer
/// the region request, and at most.
const GAP_TIMES: u32 = 16;
const MAX_GAP: Duration = Duration::from_millis(100);

/// A region of the peer, as it says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given {
    pub(crate) address: RemoteAddr,
    pub(crate) rkey: Rkey,
    pub(crate) size: u64,
}

/// How a peer answers a region request.
pub(crate) enum Answer {
    Given(Vec<Given>),
    /// ERR, with this code.
    Refused(u8),
}

impl Channel {
    /// Sends a region request on a context and waits for the answer.
    pub(crate) fn exchange(&self, context: u8, message: &[u8]) -> Result<Answer, Error> {
        let (shared, conn) = (&self.shared, self.id);
        let asked = shared.engine.act(|state| {
            let now = state.now();
            self.ask(state, context, message).map(|()| now)
        })??;
        let answered = |session: &mut Session| {
            let slot = session.slot(context);
            slot.received.is_some() && slot.sends == 0
        };
        self.wait_until(Step::RegionSetup, context, answered)?;
        let answer = {
            let mut state = shared.engine.lock();
            let State { endpoint, inbox, .. } = &mut *state;
            let session = inbox.session(conn);
            let answer = session.answered_at.map_or(Duration::ZERO, |at| at - asked);
            session.gap = gap(shared, endpoint, conn, answer);
            session.take_answer(context, |place| {
                let mut text = vec![0; place.len];
                let memory = endpoint.transport.region(place.region);
                memory.and_then(|memory| memory.read(place.offset, &mut text).ok()).map(|()| text).unwrap_or_default()
            })
        };
        match answer {
            Some((Completion { opcode: WcOpcode::Recv, .. }, Some(text))) => {
                parse(&text).map_err(|what| self.broken(Step::RegionSetup, what))
            }
            _ => {
                let what = "it answered the region request by a WRITE, not by a SEND".into();
                Err(self.broken(Step::RegionSetup, what))
            }
        }
    }

    /// Posts the region request.
    fn ask(&self, state: &mut State, context: u8, message: &[u8]) -> Result<(), Error> {
        let (ip, conn) = (self.shared.ip, self.id);
        let State { endpoint, inbox, .. } = state;
        let session = inbox.session(conn);
        if let Some(end) = &session.end {
            return Err(end.error(ip, Step::RegionSetup, Duration::ZERO));
        }
        let failed = |error: &dyn std::fmt::Display| Error::lost(ip, Step::RegionSetup, error);
        session.expect_answer(&mut endpoint.transport, conn).map_err(|error| failed(&error))?;
        let imm = session.has_contexts().then(|| Request::Message(Context(context)).to_imm());
        let request = SendWr { op: SendOp::Send { imm }, ..SendWr::send(u64::from(context), message) };
        endpoint.transport.post_send(conn, request).map_err(|error| failed(&error))?;
        let slot = session.slot(context);
        (slot.awaits, slot.received, slot.mark) = (true, None, endpoint.transport.send_mark(conn));
        slot.sends += 1;
        Ok(())
    }
}

/// What an answer says, or what is wrong with it.
fn parse(message: &[u8]) -> Result<Answer, String> {
    let given: Vec<Given> = match (Message::parse(message), SetUpAnswer::parse(message)) {
        (_, Ok(SetUpAnswer(given))) => given
            .iter()
            .map(|given| Given { address: given.address(), rkey: given.rkey(), size: given.size() })
            .collect(),
        (Ok(Message::A(given)), _) => given
            .iter()
            .map(|given| Given { address: given.address(), rkey: given.rkey(), size: given.size().into() })
            .collect(),
        (Ok(Message::Err(code)), _) => return Ok(Answer::Refused(code)),
        (Ok(Message::Aar(_)), _) => return Err("it answered a region request by one of its own".into()),
        (Err(error), _) => return Err(format!("its answer to the region request is wrong: {error}")),
    };
    Ok(Answer::Given(given))
}

/// How long after its answers a device gets the next call that answered the region request after `answer`: its next message may be
/// lost before it is ready for it, unless it agrees to extensions, which shows that it is Nacelle's.
fn gap(shared: &Shared, endpoint: &Endpoint, conn: ConnId, answer: Duration) -> Duration {
    match endpoint.transport.connection(conn) {
        Some(info) if !info.has_record => shared.answer_gap.unwrap_or((answer * GAP_TIMES).min(MAX_GAP)),
        _ => Duration::ZERO,
    }
}
