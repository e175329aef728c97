// SPDX-License-Identifier: Apache-2.0
//! A vfio-user server that a clocked device drives: [`Server::poll`] does what there is to do and never waits longer than it is told.
//!
//! One client at a time; another that connects meanwhile finds the connection closed. When the client goes, by whatever way, its
//! memory and its interrupts are gone at once, the function may not send requests any more, and the next client is welcome.
//!
//! Commands are worked on in their order, one at a time; those behind one that the function answers [later](crate::Answer::Later) wait,
//! and answers of the client to requests of the function are taken all the same. All that waits has a bound and a time limit.

mod commands;
mod host;
mod link;
mod regions;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::io::Errno;
use smallvec::SmallVec;

use crate::channel::{self, Received};
use crate::config_space::ConfigSpace;
use crate::dma::DmaTable;
use crate::function::{Function, Token};
use crate::interrupts::Interrupts;
use crate::listener::Listener;
use crate::pages::Pages;
use crate::protocol::{Header, MapArea, flag, region};

pub use host::Host;
use link::Link;

/// Doorbells with an eventfd at most: as many descriptors as a message has.
pub const MAX_DOORBELLS: usize = channel::MAX_DESCRIPTORS;

/// Why there is no server, or no longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Another server is there.
    #[error("another device listens at {}", path.display())]
    Taken {
        /// The socket.
        path: PathBuf,
    },
    /// The socket cannot be made.
    #[error("no socket can be made at {}: {source}", path.display())]
    Listen {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is mapped, or a doorbell, does not lie in a BAR.
    #[error("BAR {bar} has no such part to be {what}")]
    Part {
        /// The BAR.
        bar: u8,
        /// What was asked for.
        what: &'static str,
    },
    /// The system.
    #[error("the slot cannot go on: {0}")]
    System(#[from] io::Error),
}

/// A BAR of which the client maps parts. Accesses to them by messages reach the same memory.
#[derive(Debug, Clone)]
pub struct MappedBar {
    /// The BAR.
    pub bar: u8,
    /// Its memory, from [`Pages::create`], as long as the BAR. The function looks there for what the client writes.
    pub pages: Arc<Pages>,
    /// The parts, at multiples of the page size.
    pub areas: Vec<MapArea>,
}

/// A place in a BAR where a write can also be signalled by an eventfd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doorbell {
    /// The BAR.
    pub bar: u8,
    /// Where in it.
    pub offset: u64,
    /// Bytes of a write; 0 for any.
    pub size: u64,
    /// Only this value is signalled. What was written is not known otherwise.
    pub value: Option<u64>,
}

/// Bounds of a server, and what it offers beyond accesses by messages.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Bytes of a read or write.
    pub max_transfer: usize,
    /// Ranges of the client's memory.
    pub max_mappings: usize,
    /// Whether the client is asked for what lies in memory that it has not shared. If not, the function cannot reach that.
    pub dma_messages: bool,
    /// Requests of the function that wait for the client.
    pub max_in_flight: usize,
    /// Commands that wait behind one that the function has not answered.
    pub max_backlog: usize,
    /// Messages in one [`Server::poll`].
    pub max_messages: usize,
    /// How long a client may take to say its version, to send the rest of a message, to take what is sent, and to answer a request of
    /// the function.
    pub client_timeout: Duration,
    /// How long the function may take to answer.
    pub device_timeout: Duration,
    /// BARs that can be mapped.
    pub mapped: Vec<MappedBar>,
    /// Doorbells with an eventfd.
    pub doorbells: Vec<Doorbell>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            max_transfer: crate::protocol::DEFAULT_TRANSFER,
            max_mappings: 4096,
            dma_messages: true,
            max_in_flight: 64,
            max_backlog: 32,
            max_messages: 64,
            client_timeout: Duration::from_secs(5),
            device_timeout: Duration::from_secs(60),
            mapped: Vec::new(),
            doorbells: Vec::new(),
        }
    }
}

/// What a server counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ServerCounters {
    /// Clients that were served.
    pub clients: u64,
    /// Clients that came while another was served.
    pub turned_away: u64,
    /// Connections that were ended here: out of step, too slow, or of another version.
    pub thrown_out: u64,
    /// Commands.
    pub commands: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Requests of the function that were sent to the client.
    pub dma_messages: u64,
    /// Those that it did not answer in time.
    pub dma_timeouts: u64,
    /// Answers to no request.
    pub stray_replies: u64,
}

/// All but the sockets that wait for clients: what a function reaches by its [`Host`].
#[derive(Debug)]
struct State {
    config: ServerConfig,
    space: ConfigSpace,
    dma: DmaTable,
    interrupts: Interrupts,
    doorbells: Vec<OwnedFd>,
    link: Option<Link>,
    now: Duration,
    next_token: u64,
    counters: ServerCounters,
    /// What is read of a BAR, while it is read.
    scratch: Vec<u8>,
}

/// A slot with a function in it.
#[derive(Debug)]
pub struct Server {
    listener: Option<Listener>,
    state: State,
}

impl Server {
    /// A slot at `path`, where a client may connect.
    ///
    /// # Errors
    /// If another server is there, the socket cannot be made, or what is to be mapped does not lie in a BAR.
    pub fn bind(path: &Path, space: ConfigSpace, config: ServerConfig) -> Result<Self, ServerError> {
        let state = State::new(space, config)?;
        Ok(Self { listener: Some(Listener::bind(path)?), state })
    }

    /// A slot with the client at the other end of `socket`, and no other.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn connected(socket: UnixStream, space: ConfigSpace, config: ServerConfig) -> Result<Self, ServerError> {
        let mut state = State::new(space, config)?;
        state.link = Some(Link::new(socket, &state.config, Duration::ZERO)?);
        Ok(Self { listener: None, state })
    }

    /// Does what there is to do: the function's [step](Function::step), then what the client has sent, at most so much as is
    /// configured. If there is nothing, waits for something, `wait` at most. `now` is any clock that does not go back; time limits are
    /// counted by it. Says whether anything was done.
    ///
    /// # Errors
    /// Only if the system fails; never because of the client.
    pub fn poll<F: Function + ?Sized>(
        &mut self,
        now: Duration,
        wait: Duration,
        function: &mut F,
    ) -> Result<bool, ServerError> {
        self.state.now = now;
        function.step(&mut Host(&mut self.state), now);
        let mut did = self.state.expire(function);
        did |= self.state.flush(function);
        let wait = if did || self.state.has_work() { Duration::ZERO } else { self.state.bounded(wait) };
        let ready = self.wait(wait)?;
        did |= self.state.ring(&ready.doorbells, function);
        did |= self.state.messages(function);
        if ready.hung_up {
            did |= self.state.hung_up(function);
        }
        // A newcomer waits while what the last client has sent is worked on.
        if ready.listener && !(ready.hung_up && self.has_client()) {
            did |= self.accept(function)?;
        }
        Ok(did)
    }

    /// Whether a client is there.
    #[must_use]
    pub fn has_client(&self) -> bool {
        self.state.link.is_some()
    }

    /// What to wait for: readable when [`poll`](Self::poll) has something to do.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let link = self.state.link.as_ref().filter(|link| link.takes_more(&self.state.config));
        let doorbells = self.state.doorbells.iter().map(AsFd::as_fd);
        let listener = self.listener.as_ref().map(Listener::socket);
        listener.into_iter().chain(link.map(|link| link.channel.socket())).chain(doorbells)
    }

    /// Whether the client has not taken all that it was sent: then [`poll`](Self::poll) again soon.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        self.state.link.as_ref().is_some_and(|link| link.channel.unsent() > 0)
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> ServerCounters {
        self.state.counters
    }

    /// The configuration space.
    #[must_use]
    pub fn config_space(&self) -> &ConfigSpace {
        &self.state.space
    }

    /// What the function does at times of its own, outside of [`poll`](Self::poll).
    pub fn host(&mut self) -> Host<'_> {
        Host(&mut self.state)
    }

    fn wait(&self, wait: Duration) -> Result<Ready, ServerError> {
        let mut fds: SmallVec<[PollFd<'_>; MAX_DOORBELLS + 2]> =
            self.state.doorbells.iter().map(|doorbell| PollFd::new(doorbell, PollFlags::IN)).collect();
        let doorbells = fds.len();
        let listener = self.listener.as_ref();
        fds.extend(listener.map(|listener| PollFd::from_borrowed_fd(listener.socket(), PollFlags::IN)));
        let link = self.state.link.as_ref();
        fds.extend(link.map(|link| {
            let interest = channel::interest(&link.channel, link.takes_more(&self.state.config));
            PollFd::from_borrowed_fd(link.channel.socket(), interest)
        }));
        channel::wait(&mut fds, Some(wait))?;
        Ok(Ready {
            doorbells: fds[..doorbells].iter().map(channel::is_ready).collect(),
            listener: listener.is_some() && channel::is_ready(&fds[doorbells]),
            hung_up: link.is_some() && fds.last().is_some_and(|last| last.revents().contains(PollFlags::HUP)),
        })
    }

    fn accept<F: Function + ?Sized>(&mut self, function: &mut F) -> Result<bool, ServerError> {
        let Some(stream) = self.listener.as_ref().and_then(Listener::accept) else { return Ok(false) };
        if self.state.link.is_some() {
            self.state.counters.turned_away += 1;
            return Ok(true);
        }
        self.state.link = Some(Link::new(stream, &self.state.config, self.state.now)?);
        self.state.messages(function);
        Ok(true)
    }
}

/// What has something.
struct Ready {
    doorbells: SmallVec<[bool; MAX_DOORBELLS]>,
    listener: bool,
    /// The client has closed its side.
    hung_up: bool,
}

impl State {
    fn new(space: ConfigSpace, config: ServerConfig) -> Result<Self, ServerError> {
        regions::check(&space, &config)?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let doorbells = config.doorbells.iter().map(|_| rustix::event::eventfd(0, flags));
        Ok(Self {
            doorbells: doorbells.collect::<Result<_, Errno>>().map_err(io::Error::from)?,
            dma: DmaTable::new(config.max_mappings),
            interrupts: Interrupts::new(space.description().msix.vectors),
            config,
            space,
            link: None,
            now: Duration::ZERO,
            next_token: 0,
            counters: ServerCounters::default(),
            scratch: Vec::new(),
        })
    }

    fn token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    /// Whether there is something to do without news.
    fn has_work(&self) -> bool {
        self.link.as_ref().is_some_and(|link| link.pending.is_none() && !link.backlog.is_empty())
    }

    /// `wait`, or less if a time limit ends before.
    fn bounded(&self, wait: Duration) -> Duration {
        let deadline = self.link.as_ref().and_then(|link| link.deadline(&self.config));
        deadline.map_or(wait, |deadline| wait.min(deadline.saturating_sub(self.now)))
    }

    /// Takes and works on what the client sends.
    fn messages<F: Function + ?Sized>(&mut self, function: &mut F) -> bool {
        let mut count = 0;
        while count < self.config.max_messages {
            let Some(link) = &mut self.link else { break };
            if link.pending.is_none()
                && let Some(message) = link.backlog.pop_front()
            {
                count += 1;
                self.command(message, function);
                continue;
            }
            if !link.takes_more(&self.config) {
                break;
            }
            match link.channel.receive() {
                Ok(Received::Message) => {
                    count += 1;
                    link.partial_since = None;
                    let message = link.channel.take();
                    if message.header.is_reply() {
                        self.reply_of_client(message, function);
                    } else if link.pending.is_some() {
                        link.backlog.push_back(message);
                    } else {
                        self.command(message, function);
                    }
                }
                Ok(Received::Nothing) => {
                    if link.channel.within_message() {
                        link.partial_since.get_or_insert(self.now);
                    }
                    break;
                }
                Ok(Received::OutOfStep) => {
                    self.reply_error(Header::default(), Errno::INVAL);
                    self.throw_out(function);
                    break;
                }
                Ok(Received::Closed) | Err(_) => {
                    // It may have closed only the side by which it sends.
                    self.flush(function);
                    self.disconnect(function);
                    return true;
                }
            }
        }
        count += usize::from(self.flush(function));
        count > 0
    }

    /// The client has closed its side. If more of what it has sent can be read, that is worked on first.
    fn hung_up<F: Function + ?Sized>(&mut self, function: &mut F) -> bool {
        let stuck = self.link.as_ref().is_some_and(|link| !link.takes_more(&self.config));
        if stuck {
            self.disconnect(function);
        }
        stuck
    }

    /// Sends what waits. Whether anything was sent.
    fn flush<F: Function + ?Sized>(&mut self, function: &mut F) -> bool {
        let Some(link) = &mut self.link else { return false };
        if link.channel.unsent() == 0 {
            return false;
        }
        let Ok(any) = link.channel.flush() else {
            self.disconnect(function);
            return true;
        };
        if any || link.channel.unsent() == 0 {
            link.unsent_since = None;
        }
        if link.channel.unsent() > 0 {
            link.unsent_since.get_or_insert(self.now);
        }
        any
    }

    /// Ends what has taken too long.
    fn expire<F: Function + ?Sized>(&mut self, function: &mut F) -> bool {
        let now = self.now;
        let Some(link) = &self.link else { return false };
        if link.client_deadline(&self.config).is_some_and(|deadline| deadline <= now) {
            self.throw_out(function);
            return true;
        }
        let mut any = false;
        if let Some(pending) = link.pending.as_ref().filter(|pending| pending.deadline <= now) {
            any = true;
            self.give_up(Token(pending.token), function);
        }
        any | self.expire_requests(function)
    }

    /// Ends the connection, after a last try to send what waits.
    fn throw_out<F: Function + ?Sized>(&mut self, function: &mut F) {
        self.counters.thrown_out += 1;
        if let Some(link) = &mut self.link {
            let _the_reason_may_be_lost = link.channel.flush();
        }
        self.disconnect(function);
    }

    /// The client has gone: nothing of it stays, nor what it has sent and was not worked on.
    fn disconnect<F: Function + ?Sized>(&mut self, function: &mut F) {
        let Some(link) = self.link.take() else { return };
        if link.pending.is_some_and(|pending| pending.what.is_reset()) {
            self.space.reset();
        }
        self.dma.clear();
        self.interrupts.release();
        if !link.agreed {
            return;
        }
        self.space.enable_msix(false);
        self.write_config(COMMAND_REGISTER, &[0, 0], function);
        function.client(&mut Host(self), false);
    }

    /// Tells the function which doorbells were rung.
    fn ring<F: Function + ?Sized>(&mut self, ready: &[bool], function: &mut F) -> bool {
        let mut any = false;
        for (index, _) in ready.iter().enumerate().filter(|(_, ready)| **ready) {
            let mut times = [0; 8];
            if rustix::io::read(&self.doorbells[index], &mut times) == Ok(8) {
                any = true;
                function.doorbell(&mut Host(self), index, u64::from_ne_bytes(times));
            }
        }
        any
    }
}

/// Where the Command register is.
const COMMAND_REGISTER: u64 = 4;

/// A reply's header to that of a command.
fn reply_header(command: Header) -> Header {
    Header { flags: flag::REPLY, error: 0, ..command }
}

/// Rights of a region that is there.
const READ_WRITE: u32 = region::READ | region::WRITE;
