// SPDX-License-Identifier: Apache-2.0
//! The client's side of the reliability mechanism, as a pure state machine.

use std::collections::VecDeque;
use std::time::Duration;

use nacelle_wire::ipbus::{ByteOrder, PacketHeader, PacketKind, STATUS_WORDS, Status, next_id};

/// Bounds of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// How long a response may take before its packet counts as lost.
    pub timeout: Duration,
    /// Losses in a row after which the device counts as gone.
    pub attempts: u32,
}

impl Default for SessionConfig {
    /// 50 ms, eight times.
    fn default() -> Self {
        Self { timeout: Duration::from_millis(50), attempts: 8 }
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The device answers nothing.
    #[error("no answer: is it on, does it listen on this port, does its filter take this host?")]
    NoAnswer,
    /// The device lost its state, by a reset or because it was needed for other clients: what was under way may or may not have been done.
    #[error("the device has forgotten this client: what was under way may or may not have been done")]
    Forgotten,
    /// A status packet that cannot be.
    #[error("the device's status packet makes no sense")]
    Malformed,
}

/// One client of one device: each packet that it is given is executed exactly once, in order, or the session ends with an error.
///
/// It has neither a socket nor a clock: datagrams of the device go to [`Session::receive`], those of [`Session::poll_transmit`] to
/// the device; `now` is the time since any fixed moment.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    state: State,
    window: usize,
    mtu: usize,
    next: u16,
    /// Not sent yet: the words behind the header.
    waiting: VecDeque<Vec<u32>>,
    /// Sent, in order.
    in_flight: VecDeque<Sent>,
    /// Responses in the order of their packets.
    answers: VecDeque<Vec<u32>>,
    transmit: VecDeque<Vec<u8>>,
    /// When the loss of something is assumed.
    deadline: Option<Duration>,
    /// Losses since the last response.
    losses: u32,
}

#[derive(Debug)]
struct Sent {
    id: u16,
    words: Vec<u32>,
    answer: Option<Vec<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The first status packet is under way: which id does the device expect?
    Opening,
    Open,
    /// Something is lost: a status packet is under way to find out what.
    Asking,
    Ended(SessionError),
}

impl Session {
    /// A session; its first datagram asks for the device's status.
    #[must_use]
    pub fn new(config: SessionConfig, now: Duration) -> Self {
        let mut session = Self {
            config,
            state: State::Opening,
            window: 1,
            mtu: 0,
            next: 1,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            answers: VecDeque::new(),
            transmit: VecDeque::new(),
            deadline: None,
            losses: 0,
        };
        session.ask(now);
        session
    }

    /// Longest packet that the device takes and sends, in words with the header; known when the session is open.
    #[must_use]
    pub fn max_words(&self) -> Option<usize> {
        (self.mtu != 0).then_some(self.mtu / 4)
    }

    /// Queues a control packet: its words behind the header. Neither it nor its response may be longer than
    /// [`Session::max_words`].
    pub fn send(&mut self, words: Vec<u32>, now: Duration) {
        self.waiting.push_back(words);
        self.fill(now);
    }

    /// Packets that have not been answered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.in_flight.len()
    }

    /// The response to the oldest packet, once it is there: its words behind the header.
    ///
    /// # Errors
    /// How the session ended; responses that came before are returned first.
    pub fn poll_answer(&mut self) -> Result<Option<Vec<u32>>, SessionError> {
        match (self.answers.pop_front(), self.state) {
            (Some(answer), _) => Ok(Some(answer)),
            (None, State::Ended(error)) => Err(error),
            (None, _) => Ok(None),
        }
    }

    /// The next datagram for the device.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmit.pop_front()
    }

    /// When [`Session::timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Tells the time: what has not come by its deadline counts as lost.
    pub fn timeout(&mut self, now: Duration) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.losses += 1;
        if self.losses >= self.config.attempts {
            return self.end(SessionError::NoAnswer);
        }
        if self.state == State::Open {
            self.state = State::Asking;
        }
        self.ask(now);
    }

    /// A datagram from the device. One that does not fit is ignored: it may be a late duplicate.
    pub fn receive(&mut self, datagram: &[u8], now: Duration) {
        let (chunks, rest) = datagram.as_chunks::<4>();
        if chunks.is_empty() || !rest.is_empty() || matches!(self.state, State::Ended(_)) {
            return;
        }
        let words: Vec<u32> = chunks.iter().map(|bytes| ByteOrder::Big.word(*bytes)).collect();
        match PacketHeader::from_word(words[0]) {
            Some(PacketHeader { kind: PacketKind::Control, id }) => self.answered(id, &words[1..], now),
            Some(PacketHeader { kind: PacketKind::Status, .. }) => self.status(&words, now),
            _ => {}
        }
    }

    fn answered(&mut self, id: u16, words: &[u32], now: Duration) {
        let Some(sent) = self.in_flight.iter_mut().find(|sent| sent.id == id && sent.answer.is_none()) else { return };
        sent.answer = Some(words.to_vec());
        self.losses = 0;
        while let Some(sent) = self.in_flight.pop_front_if(|sent| sent.answer.is_some()) {
            self.answers.extend(sent.answer);
        }
        if self.state == State::Open {
            self.deadline = (!self.in_flight.is_empty()).then(|| now + self.config.timeout);
        }
        self.fill(now);
    }

    fn status(&mut self, words: &[u32], now: Duration) {
        match (self.state, Status::from_words(words)) {
            (State::Opening | State::Asking, None) => self.end(SessionError::Malformed),
            (State::Opening, Some(status)) => {
                if status.mtu < 4 * STATUS_WORDS as u32 || status.buffers == 0 || status.next == 0 {
                    return self.end(SessionError::Malformed);
                }
                self.mtu = status.mtu as usize;
                self.window = status.buffers as usize;
                self.next = status.next;
                self.opened(now);
            }
            (State::Asking, Some(status)) => self.recover(status.next, now),
            _ => {}
        }
    }

    /// Sends again what the device has not executed, and asks for the responses to what it has.
    fn recover(&mut self, expected: u16, now: Duration) {
        let oldest = self.in_flight.front().map_or(self.next, |sent| sent.id);
        let executed = distance(oldest, expected);
        if executed > distance(oldest, self.next) {
            // An old status packet that took long, unless it stays so.
            self.losses += 1;
            if self.losses >= self.config.attempts {
                self.end(SessionError::Forgotten);
            }
            return;
        }
        let mut datagrams = Vec::new();
        for sent in self.in_flight.iter().filter(|sent| sent.answer.is_none()) {
            if distance(oldest, sent.id) < executed {
                datagrams.push(packet(PacketKind::Resend, sent.id, &[]));
            } else {
                datagrams.push(packet(PacketKind::Control, sent.id, &sent.words));
            }
        }
        self.transmit.extend(datagrams);
        self.opened(now);
    }

    fn opened(&mut self, now: Duration) {
        self.state = State::Open;
        self.deadline = (!self.in_flight.is_empty()).then(|| now + self.config.timeout);
        self.fill(now);
    }

    /// Sends what the window takes.
    fn fill(&mut self, now: Duration) {
        if self.state != State::Open {
            return;
        }
        while self.in_flight.len() < self.window
            && let Some(words) = self.waiting.pop_front()
        {
            self.transmit.push_back(packet(PacketKind::Control, self.next, &words));
            self.in_flight.push_back(Sent { id: self.next, words, answer: None });
            self.next = next_id(self.next);
            self.deadline.get_or_insert(now + self.config.timeout);
        }
    }

    fn ask(&mut self, now: Duration) {
        self.transmit.push_back(packet(PacketKind::Status, 0, &[0; STATUS_WORDS - 1]));
        self.deadline = Some(now + self.config.timeout);
    }

    fn end(&mut self, error: SessionError) {
        self.state = State::Ended(error);
        self.deadline = None;
        self.transmit.clear();
        self.waiting.clear();
        self.in_flight.clear();
    }
}

/// Packet ids from `from` up to `to`.
fn distance(from: u16, to: u16) -> u16 {
    if to >= from { to - from } else { u16::MAX - from + to }
}

fn packet(kind: PacketKind, id: u16, words: &[u32]) -> Vec<u8> {
    let header = PacketHeader { kind, id }.to_word();
    std::iter::once(&header).chain(words).flat_map(|word| ByteOrder::Big.bytes(*word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_go_round_without_zero() {
        assert_eq!(distance(65535, 1), 1);
        assert_eq!(distance(65534, 2), 3);
        assert_eq!(distance(1, 65535), 65534);
        assert_eq!(distance(7, 7), 0);
    }
}
