// SPDX-License-Identifier: Apache-2.0
//! The back end's loop: one front end after another at a socket, and what passes between it and the card.
//!
//! A register of the card takes as long as the card needs, and a front end waits for what it has asked for. Nobody else does: the
//! back end has a thread of its own, and the card's slot bounds each access.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nacelle_pci::{PciDevice, PciError};
use nacelle_slot::channel::{self, Channel, Descriptors, Received};
use nacelle_slot::listener::Listener;
use nacelle_virtio::card::Card;
use rustix::event::{PollFd, PollFlags};
use smallvec::SmallVec;

use crate::protocol::{Header, MAX_PAYLOAD, flag, request};
use crate::session::Session;
use crate::{BackendError, MAX_RINGS, Refusal, Trouble};

/// How long a request to end may go unnoticed.
const TICK: Duration = Duration::from_millis(100);
/// How soon to try again to call a driver that does not take its calls.
const CALL_AGAIN: Duration = Duration::from_millis(10);
/// Descriptors that are waited for at most: the listener, the front end, requests to it, and two for each vector.
const DESCRIPTORS: usize = 4 + 2 * MAX_RINGS;

/// Bounds of a back end.
#[derive(Debug, Clone, Copy)]
pub struct BackendConfig {
    /// How long a front end may take to say something first, to send the rest of a message, and to take its replies.
    pub front_end_timeout: Duration,
    /// How long the card may take to end all that it does in memory; then its function is reset. The simulation is slow.
    pub reset_timeout: Duration,
    /// Messages in one turn; kicks and interrupts come in between.
    pub max_messages: usize,
    /// Requests that are refused before the connection is ended.
    pub max_refusals: u32,
    /// Calls by message are to be answered ([`Backend::is_called`]): for a front end that does them in an order with other messages.
    pub answered_calls: bool,
    /// Where what a front end is refused goes, and what its card gives up.
    pub tell: fn(&str),
}

impl Default for BackendConfig {
    fn default() -> Self {
        Self {
            front_end_timeout: Duration::from_secs(5),
            reset_timeout: Duration::from_secs(10),
            max_messages: 64,
            max_refusals: 16,
            answered_calls: false,
            tell: |_| {},
        }
    }
}

/// What a back end counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Front ends that were served.
    pub front_ends: u64,
    /// Front ends that came while another was served.
    pub turned_away: u64,
    /// Connections that were ended here: out of step, too slow, or refused.
    pub thrown_out: u64,
    /// Requests.
    pub requests: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// How often the card began to use rings.
    pub starts: u64,
    /// Notifications of the card.
    pub kicks: u64,
    /// Interrupts that were handed on.
    pub calls: u64,
    /// Rings that the card has given up.
    pub rings_lost: u64,
}

/// A connection.
#[derive(Debug)]
struct Link {
    channel: Channel<Header>,
    session: Session,
    since: Instant,
    /// It has said something.
    greeted: bool,
    partial_since: Option<Instant>,
    unsent_since: Option<Instant>,
    refusals: u32,
}

impl Link {
    /// When the front end has been too slow.
    fn deadline(&self, timeout: Duration) -> Option<Instant> {
        let greeting = (!self.greeted).then_some(self.since);
        [greeting, self.partial_since, self.unsent_since].into_iter().flatten().min().map(|since| since + timeout)
    }
}

/// What has something.
struct Ready {
    /// Somebody wants to connect.
    newcomer: bool,
    /// The front end has closed its side.
    hung_up: bool,
}

/// Why a connection ends.
enum End {
    /// The front end has gone.
    Gone,
    /// It is no longer served, for a reason that was told.
    ThrownOut,
}

/// A card behind a socket.
#[derive(Debug)]
pub struct Backend<D> {
    listener: Listener,
    card: Card<D>,
    config: BackendConfig,
    link: Option<Link>,
    counters: Counters,
}

impl<D: PciDevice> Backend<D> {
    /// Takes a card and resets it. Front ends may have connected already.
    ///
    /// # Errors
    /// If it is no virtio network card or does not answer.
    pub fn new(listener: Listener, device: D, config: BackendConfig) -> Result<Self, BackendError> {
        let card = Card::new(device, config.reset_timeout)?;
        Ok(Self { listener, card, config, link: None, counters: Counters::default() })
    }

    /// Serves front ends until `stop` is set, and tells now and then what it has counted.
    ///
    /// # Errors
    /// If the card or the system fails; never because of a front end.
    pub fn run(&mut self, stop: &AtomicBool, mut counted: impl FnMut(Counters)) -> Result<(), BackendError> {
        while !stop.load(Ordering::Relaxed) {
            self.turn(TICK)?;
            counted(self.counters);
        }
        Ok(self.part(&End::Gone)?)
    }

    /// Does what there is to do; if there is nothing, waits for something, `wait` at most.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn turn(&mut self, wait: Duration) -> Result<(), BackendError> {
        let ready = self.wait(wait)?;
        match self.serve() {
            Ok(None) => {}
            Ok(Some(end)) => self.part(&end)?,
            // The card answers that it cannot: it may if nothing is left of what it was told.
            Err(error @ PciError::Refused { .. }) => {
                (self.config.tell)(&format!("the network card is reset: {error}"));
                self.card.reset()?;
                self.part(&End::ThrownOut)?;
            }
            Err(error) => return Err(error.into()),
        }
        // A newcomer waits while what the last front end has sent is worked on.
        if ready.newcomer && !(ready.hung_up && self.link.is_some()) {
            self.accept();
        }
        Ok(())
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether a front end is there.
    #[must_use]
    pub fn has_front_end(&self) -> bool {
        self.link.is_some()
    }

    /// Whether the card uses rings.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.card.running().is_some()
    }

    /// Whether the front end has been called and has not answered yet, with [`BackendConfig::answered_calls`].
    #[must_use]
    pub fn is_called(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.session.is_called())
    }

    /// Readable, any of them, when there is something of a front end for [`turn`](Self::turn); its eventfds are not among them.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let channel = self.link.iter().map(|link| link.channel.socket());
        let requests = self.link.iter().filter_map(|link| link.session.requests()).map(|(socket, _)| socket);
        std::iter::once(self.listener.socket()).chain(channel).chain(requests)
    }

    fn wait(&self, wait: Duration) -> io::Result<Ready> {
        let mut fds: SmallVec<[PollFd<'_>; DESCRIPTORS]> = SmallVec::new();
        let mut wait = wait;
        fds.push(PollFd::from_borrowed_fd(self.listener.socket(), PollFlags::IN));
        if let Some(link) = &self.link {
            // What it is sent is not taken: no more is read of it.
            let interest = channel::interest(&link.channel, link.channel.unsent() == 0);
            fds.push(PollFd::from_borrowed_fd(link.channel.socket(), interest));
            if let Some((socket, unsent)) = link.session.requests() {
                let interest = if unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
                fds.push(PollFd::from_borrowed_fd(socket, interest));
            }
            if self.card.running().is_some() {
                let kicks = link.session.rings.iter().filter_map(|ring| ring.kick_fd());
                fds.extend(kicks.map(|kick| PollFd::from_borrowed_fd(kick, PollFlags::IN)));
                fds.extend(
                    self.card.interrupts().iter().map(|vector| PollFd::from_borrowed_fd(vector.as_fd(), PollFlags::IN)),
                );
            }
            if link.session.requests().is_some() && link.session.rings.iter().any(|ring| ring.calling) {
                wait = wait.min(CALL_AGAIN);
            }
            let deadline = link.deadline(self.config.front_end_timeout);
            wait = deadline.map_or(wait, |at| wait.min(at.saturating_duration_since(Instant::now())));
        }
        channel::wait(&mut fds, Some(wait))?;
        let hung_up = self.link.is_some() && fds[1].revents().contains(PollFlags::HUP);
        Ok(Ready { newcomer: channel::is_ready(&fds[0]), hung_up })
    }

    fn accept(&mut self) {
        let Some(stream) = self.listener.accept() else { return };
        if self.link.is_some() {
            self.counters.turned_away += 1;
            (self.config.tell)("the network card has a front end: another one is turned away");
            return;
        }
        // If the system has no descriptors, the front end finds the connection closed.
        let Ok(channel) = Channel::new(stream, MAX_PAYLOAD) else { return };
        self.counters.front_ends += 1;
        self.link = Some(Link {
            channel,
            session: Session::new(self.config.answered_calls),
            since: Instant::now(),
            greeted: false,
            partial_since: None,
            unsent_since: None,
            refusals: 0,
        });
    }

    /// Does what the front end and the card have asked each other for.
    fn serve(&mut self) -> Result<Option<End>, PciError> {
        if self.link.is_none() {
            return Ok(None);
        }
        if let Some(end) = self.messages()? {
            return Ok(Some(end));
        }
        let Some(link) = &mut self.link else { return Ok(None) };
        link.session.drain_replies(self.config.max_messages);
        if self.card.running().is_some() {
            for (ring, state) in link.session.rings.iter_mut().enumerate() {
                state.take_kick();
                if self.card.uses(ring) && std::mem::take(&mut state.kicked) {
                    self.counters.kicks += 1;
                    self.card.notify(ring)?;
                }
            }
        }
        let news = self.card.news()?;
        for (ring, came) in link.session.rings.iter_mut().zip(news.rings) {
            ring.calling |= came;
            self.counters.calls += u64::from(came);
        }
        link.session.call();
        if news.config {
            link.session.config_changed();
            for (ring, code) in self.card.faults()? {
                self.counters.rings_lost += 1;
                (self.config.tell)(&format!("the network card has given ring {ring} up, code {code}"));
                link.session.rings[ring].complain();
            }
        }
        Ok(self.too_slow())
    }

    /// Works on what the front end has sent.
    fn messages(&mut self) -> Result<Option<End>, PciError> {
        for _ in 0..self.config.max_messages {
            let Some(link) = &mut self.link else { break };
            if flush(link).is_err() {
                return Ok(Some(End::Gone));
            }
            if link.channel.unsent() > 0 {
                break;
            }
            match link.channel.receive() {
                Ok(Received::Message) => {
                    link.partial_since = None;
                    link.greeted = true;
                    if let Some(end) = self.message()? {
                        return Ok(Some(end));
                    }
                }
                Ok(Received::Nothing) => {
                    if link.channel.within_message() {
                        link.partial_since.get_or_insert_with(Instant::now);
                    }
                    break;
                }
                Ok(Received::OutOfStep) => {
                    self.tell(Refusal("a message has another version, or is too long"));
                    return Ok(Some(End::ThrownOut));
                }
                Ok(Received::Closed) | Err(_) => return Ok(Some(End::Gone)),
            }
        }
        Ok(None)
    }

    /// Works on a message.
    fn message(&mut self) -> Result<Option<End>, PciError> {
        let Self { link: Some(link), card, counters, .. } = self else { return Ok(None) };
        counters.requests += 1;
        let mut message = link.channel.take();
        let header = message.header;
        let ran = card.running().is_some();
        let handled = if message.too_many_descriptors {
            Err(Trouble::Refused(Refusal("a message has too many descriptors")))
        } else {
            link.session.handle(card, &mut message)
        };
        link.channel.give_back(message);
        counters.starts += u64::from(!ran && card.running().is_some());
        let acknowledge = header.flags & flag::NEED_REPLY != 0 && link.session.acknowledges();
        let reply = match handled {
            Ok(Some(own)) => Some(own),
            Ok(None) => acknowledge.then(|| 0u64.to_ne_bytes().to_vec()),
            Err(trouble) => {
                let refusal = refusal(trouble)?;
                link.refusals += 1;
                counters.refused += 1;
                let reply = match header.request {
                    // As the protocol has it: a reply without a payload.
                    request::GET_CONFIG => Some(Vec::new()),
                    _ => acknowledge.then(|| 1u64.to_ne_bytes().to_vec()),
                };
                let ends = reply.is_none() || link.refusals > self.config.max_refusals;
                self.tell(refusal);
                if ends {
                    return Ok(Some(End::ThrownOut));
                }
                reply
            }
        };
        if let (Some(payload), Some(link)) = (reply, &mut self.link) {
            let header = Header { request: header.request, flags: flag::VERSION | flag::REPLY, size: 0 };
            link.channel.queue(header, &[&payload], Descriptors::new());
            if flush(link).is_err() {
                return Ok(Some(End::Gone));
            }
        }
        Ok(None)
    }

    fn too_slow(&self) -> Option<End> {
        let deadline = self.link.as_ref()?.deadline(self.config.front_end_timeout)?;
        if deadline > Instant::now() {
            return None;
        }
        self.tell(Refusal("the front end is too slow: it says nothing, or does not take what it is sent"));
        Some(End::ThrownOut)
    }

    fn tell(&self, refusal: Refusal) {
        (self.config.tell)(&format!("the network card's front end: {refusal}"));
    }

    /// Ends the connection. The card has nothing of the front end's any more when this returns.
    fn part(&mut self, end: &End) -> Result<(), PciError> {
        let Some(mut link) = self.link.take() else { return Ok(()) };
        self.counters.thrown_out += u64::from(matches!(end, End::ThrownOut));
        match link.session.clear_memory(&mut self.card) {
            Ok(()) => Ok(()),
            Err(trouble) => refusal(trouble).map(drop),
        }
    }
}

/// What is refused; a card that does not answer any more is no matter of the front end's.
fn refusal(trouble: Trouble) -> Result<Refusal, PciError> {
    match trouble {
        Trouble::Refused(refusal) => Ok(refusal),
        Trouble::Card(error) => Err(error),
    }
}

/// Sends what the front end takes.
fn flush(link: &mut Link) -> io::Result<()> {
    let any = link.channel.flush()?;
    if any || link.channel.unsent() == 0 {
        link.unsent_since = None;
    }
    if link.channel.unsent() > 0 {
        link.unsent_since.get_or_insert_with(Instant::now);
    }
    Ok(())
}
