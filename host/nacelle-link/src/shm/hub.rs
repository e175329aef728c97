// SPDX-License-Identifier: Apache-2.0
//! A device's link: shared memory with callers of this machine, beside a link to all others.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use super::channel::{Channel, End, Shared};
use super::{greeting, readable, socket_path, withdraw_shm};
use crate::wire::MAX_SOCKET_PATH;
use crate::{DatagramLink, Delivery, Icrc, Incoming, LinkError, LinkStats, Outgoing, ROCE_PORT, WireDir, own_user};

/// Callers at a time.
const MAX_PEERS: usize = 64;
/// Callers that have connected and not said yet what they want; each may take this long.
const MAX_PENDING: usize = 16;
const GREETING: Duration = Duration::from_secs(1);
/// How long a caller's full ring is waited for: it must not delay the others.
const PATIENCE: Duration = Duration::from_micros(50);
/// Looks at the rings between two looks at the descriptors, which cost more; and between two at the other link while it is in use: for
/// so many looks after something came by it.
const LOOKS: u32 = 512;
const LOOKS_BESIDE: u32 = 16;
const IN_USE: u32 = 4096;
/// Descriptors served in one look.
const EVENTS: usize = 32;

/// Tokens of the descriptors: these, and for each caller two from here on.
const BESIDE: u64 = 0;
const LISTENER: u64 = 1;
const FIRST: u64 = 2;

/// A caller.
#[derive(Debug)]
struct Peer {
    ip: IpAddr,
    /// Its tokens are this and the next.
    token: u64,
    channel: Channel,
    /// Its ring was full: until there is room again, it is not waited for.
    stuck: bool,
}

/// One that has connected.
#[derive(Debug)]
struct Pending {
    socket: OwnedFd,
    token: u64,
    until: Instant,
}

/// Shared memory with callers of this machine, and `beside` it another link for all others.
#[derive(Debug)]
pub struct ShmHub<L> {
    beside: L,
    /// Whether the other link had something when it was looked at last.
    beside_is_busy: bool,
    /// Looks until it counts as unused.
    beside_in_use: u32,
    listener: OwnedFd,
    path: PathBuf,
    peers: Vec<Peer>,
    /// Whose turn it is.
    turn: usize,
    pending: Vec<Pending>,
    gone: VecDeque<IpAddr>,
    set: OwnedFd,
    next_token: u64,
    next_address: u32,
    /// Whether this end wants ICRCs.
    icrc: Icrc,
    looks: u32,
    armed: bool,
    stats: LinkStats,
}

impl<L: DatagramLink> ShmHub<L> {
    /// Listens for callers of the device of this name on a wire; the name must be its own, since a socket that was left there is
    /// replaced.
    ///
    /// # Errors
    /// [`LinkError::BadPath`] if the name is too long; [`LinkError::Io`] if the wire's directory cannot be written, or the system has no
    /// descriptors left.
    pub fn new(beside: L, wire: &WireDir, name: &str) -> Result<Self, LinkError> {
        let path = socket_path(wire, name);
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(LinkError::BadPath { path, why: "the name is too long for a Unix socket" });
        }
        let what = || LinkError::io(format!("listen at {}", path.display()));
        withdraw_shm(wire, name)?;
        let listen = || -> rustix::io::Result<(OwnedFd, OwnedFd)> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            rustix::net::bind(&listener, &SocketAddrUnix::new(&path)?)?;
            rustix::net::listen(&listener, MAX_PENDING as i32)?;
            let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            for (token, fd) in [(BESIDE, beside.poll_fd()), (LISTENER, listener.as_fd())] {
                epoll::add(&set, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?;
            }
            Ok((listener, set))
        };
        let (listener, set) = listen().map_err(|errno| what()(errno.into()))?;
        Ok(Self {
            beside,
            beside_is_busy: false,
            beside_in_use: 0,
            listener,
            path,
            peers: Vec::new(),
            turn: 0,
            pending: Vec::new(),
            gone: VecDeque::new(),
            set,
            next_token: FIRST,
            next_address: 0,
            icrc: Icrc::LeftOut,
            looks: 0,
            armed: false,
            stats: LinkStats::default(),
        })
    }

    /// Has all packets keep their ICRCs, of callers that come from now on. Without this they are kept for those that ask for it.
    #[must_use]
    pub const fn keeping_icrc(mut self) -> Self {
        self.icrc = Icrc::Kept;
        self
    }

    /// Callers that share memory now.
    #[must_use]
    pub fn callers(&self) -> usize {
        self.peers.len()
    }

    fn watch(&self, token: u64, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::add(&self.set, fd, epoll::EventData::new_u64(token), epoll::EventFlags::IN)?)
    }

    fn token(&mut self) -> u64 {
        self.next_token += 2;
        self.next_token
    }

    /// Looks at the descriptors: new callers, those that say what they want, those that are gone.
    fn look(&mut self) -> Result<(), LinkError> {
        let mut events = [MaybeUninit::uninit(); EVENTS];
        for token in readable(&self.set, &mut events)? {
            match token {
                BESIDE => self.beside_is_busy = true,
                LISTENER => self.accept(),
                token => self.serve(token),
            }
        }
        let now = Instant::now();
        self.pending.retain(|pending| now < pending.until);
        Ok(())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Those for whom there is no room see their socket close.
        let Ok(socket) = rustix::net::accept_with(&self.listener, flags) else { return };
        let is_own = sockopt::socket_peercred(&socket).is_ok_and(|peer| peer.uid.as_raw() == own_user());
        if !is_own || self.pending.len() >= MAX_PENDING || self.peers.len() >= MAX_PEERS {
            return;
        }
        let token = self.token();
        if self.watch(token, &socket).is_ok() {
            self.pending.push(Pending { socket, token, until: Instant::now() + GREETING });
        }
    }

    /// A caller's descriptor is readable.
    fn serve(&mut self, token: u64) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.token == token & !1) {
            if token & 1 == 0 {
                // Nothing is said by the socket but the end.
                peer.channel.close();
            } else {
                peer.channel.clear_wake();
            }
            return;
        }
        let Some(place) = self.pending.iter().position(|pending| pending.token == token) else { return };
        let Pending { socket, token, .. } = self.pending.swap_remove(place);
        let Ok((wanted, icrc)) = greeting::asked(&socket) else { return };
        if self.peers.len() >= MAX_PEERS {
            return;
        }
        let ip = self.address(wanted);
        let icrc = if self.icrc == Icrc::Kept { Icrc::Kept } else { icrc };
        // What the system has no room for, the caller sees: its socket closes.
        let open = || -> io::Result<Channel> {
            let shared = Shared::new()?;
            greeting::offer(&socket, ip, self.beside.local().ip(), icrc, &shared)?;
            let channel = Channel::new(End::Device, shared, socket, icrc)?;
            self.watch(token | 1, channel.wake_fd())?;
            Ok(channel)
        };
        if let Ok(channel) = open() {
            self.peers.push(Peer { ip, token, channel, stuck: false });
        }
    }

    /// The address that a caller had, if no other has it now, or a new one.
    fn address(&mut self, wanted: Option<IpAddr>) -> IpAddr {
        let device = self.beside.local().ip();
        // What a lost one leaves is cleared up before another has its address.
        let is_free = |ip: &IpAddr| self.peers.iter().all(|peer| peer.ip != *ip) && !self.gone.contains(ip);
        if let Some(ip) = wanted
            && greeting::is_given(ip)
            && ip.is_ipv4() == device.is_ipv4()
            && is_free(&ip)
        {
            return ip;
        }
        // There are more than callers.
        let mut number = self.next_address;
        loop {
            number = number % 0xff_fffe + 1;
            let ip = greeting::given(number, device);
            if is_free(&ip) {
                self.next_address = number;
                return ip;
            }
        }
    }

    /// Receives from the next caller that has sent something.
    fn recv_shared(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> bool {
        for _ in 0..self.peers.len() {
            if self.turn >= self.peers.len() {
                self.turn = 0;
            }
            let Peer { ip, channel, .. } = &mut self.peers[self.turn];
            let from = SocketAddr::new(*ip, ROCE_PORT);
            let stats = &mut self.stats;
            match channel.recv(|header, bytes| take(stats.shared(from, header, bytes))) {
                Ok(found) => {
                    self.turn += 1;
                    if found {
                        return true;
                    }
                }
                Err(_) => self.lose(self.turn),
            }
        }
        false
    }

    /// A caller is gone, or has broken its ring.
    fn lose(&mut self, place: usize) {
        self.gone.push_back(self.peers.swap_remove(place).ip);
    }
}

impl<L: DatagramLink> DatagramLink for ShmHub<L> {
    fn local(&self) -> SocketAddr {
        self.beside.local()
    }

    fn max_segments(&self) -> usize {
        self.beside.max_segments()
    }

    fn icrc(&self, to: IpAddr) -> Icrc {
        self.peers.iter().find(|peer| peer.ip == to).map_or(Icrc::Kept, |peer| peer.channel.icrc())
    }

    fn send(&mut self, outgoing: Outgoing<'_>) -> Result<Delivery, LinkError> {
        if !greeting::is_given(outgoing.to) {
            return self.beside.send(outgoing);
        }
        let count = outgoing.count();
        let Some(place) = self.peers.iter().position(|peer| peer.ip == outgoing.to) else {
            self.stats.tx_no_carrier += count;
            return Ok(Delivery::Done);
        };
        let peer = &mut self.peers[place];
        let patience = if peer.stuck { Duration::ZERO } else { PATIENCE };
        match peer.channel.send(&outgoing, patience) {
            Ok(sent) => {
                peer.stuck = !sent;
                if sent {
                    self.stats.tx_frames += count;
                    self.stats.tx_bytes += outgoing.bytes.len() as u64;
                } else {
                    self.stats.tx_dropped += count;
                }
            }
            Err(_) => self.lose(place),
        }
        Ok(Delivery::Done)
    }

    fn recv(&mut self, take: &mut dyn FnMut(Incoming<'_>)) -> Result<bool, LinkError> {
        self.looks = self.looks.wrapping_add(1);
        let woken = std::mem::take(&mut self.armed);
        if woken {
            self.peers.iter_mut().for_each(|peer| peer.channel.disarm());
        }
        if woken || self.looks.is_multiple_of(LOOKS) {
            self.look()?;
        }
        self.beside_in_use = self.beside_in_use.saturating_sub(1);
        // Where nothing has come for long, the look at the descriptors says when something does.
        let beside_is_due = self.beside_is_busy || self.beside_in_use > 0;
        let beside_first = beside_is_due && self.looks.is_multiple_of(LOOKS_BESIDE);
        if !beside_first && self.recv_shared(take) {
            return Ok(true);
        }
        if beside_first || self.beside_is_busy || self.peers.is_empty() {
            // Nobody else has an address that is given here.
            self.beside_is_busy = self.beside.recv(&mut |incoming| {
                if !greeting::is_given(incoming.from.ip()) {
                    take(incoming);
                }
            })?;
            if self.beside_is_busy {
                self.beside_in_use = IN_USE;
                return Ok(true);
            }
        }
        Ok(beside_first && self.recv_shared(take))
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }

    fn next_event(&self) -> Option<Instant> {
        let pending = self.pending.iter().map(|pending| pending.until).min();
        [pending, self.beside.next_event()].into_iter().flatten().min()
    }

    fn arm(&mut self) {
        self.armed = true;
        self.beside.arm();
        self.peers.iter_mut().for_each(|peer| peer.channel.arm());
    }

    fn poll_gone(&mut self) -> Option<IpAddr> {
        self.gone.pop_front().or_else(|| self.beside.poll_gone())
    }

    fn stats(&self) -> LinkStats {
        self.stats + self.beside.stats()
    }
}

impl<L> Drop for ShmHub<L> {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.path);
    }
}
