// SPDX-License-Identifier: Apache-2.0
//! The switch of a virtual wire: a learning bridge (IEEE 802.1D) that forwards frames, or floods them.
//!
//! It never blocks: each party has a bounded queue, and what does not fit is dropped and counted. A party whose process has ended
//! is removed, with its socket file, as soon as a frame for it cannot be delivered.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags};
use smallvec::SmallVec;

use crate::direct::{Address, published, remove_party};
use crate::wire::{CLOCK_GRAIN, enlarge, remove_stale};
use crate::{Claim, FEW, LinkError, MAX_FRAME, MIN_FRAME, WireDir, is_full, wait};

/// A party whose socket's name begins with this gets a copy of every frame.
pub(crate) const MIRROR_PREFIX: &str = "mirror";
/// Frames that wait for one party at most.
const QUEUE_FRAMES: usize = 1024;
/// Parties on one wire at most.
const MAX_PARTIES: usize = 256;
/// MAC addresses stored for one party; a new one replaces its oldest, so that no party uses another's room.
const MAX_ADDRESSES: usize = 256;
/// Ageing time of an address (IEEE 802.1Q): how long it is kept without a frame from it.
const AGING: Duration = Duration::from_secs(300);
/// Frames taken in one turn, so that waiting frames get theirs.
const BURST: usize = 64;
/// How long a flag or a lock may go unnoticed.
const TICK: Duration = Duration::from_millis(200);
/// How long another party that has claimed the switch may take to begin.
const START: Duration = Duration::from_secs(5);

/// A frame that waits, for one party or for several.
type Copy = Arc<Vec<u8>>;
/// Some parties.
type Ids = SmallVec<[u64; FEW]>;

/// What the switch did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SwitchStats {
    /// Frames taken in.
    pub frames: u64,
    /// Frames sent to all parties because the address was unknown.
    pub flooded: u64,
    /// Copies dropped because a party's queue was full.
    pub dropped_full: u64,
    /// Datagrams dropped because they were no frames.
    pub dropped_malformed: u64,
    /// Parties removed because their process had ended.
    pub vanished: u64,
}

struct Party {
    path: PathBuf,
    socket: UnixDatagram,
    queue: VecDeque<Copy>,
    mirror: bool,
    /// Its addresses in the order in which they were learned.
    addresses: VecDeque<[u8; 6]>,
}

/// Where an address is.
struct Station {
    party: u64,
    heard: Instant,
}

impl Party {
    fn connect(path: &Path) -> io::Result<Self> {
        // A connected socket reports by POLLOUT when the party's queue has room again; an unconnected one cannot.
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(path)?;
        enlarge(&socket);
        let mirror = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MIRROR_PREFIX));
        Ok(Self { path: path.to_owned(), socket, queue: VecDeque::new(), mirror, addresses: VecDeque::new() })
    }
}

/// A learning Ethernet switch on a virtual wire.
pub struct Switch {
    dir: WireDir,
    socket: UnixDatagram,
    parties: HashMap<u64, Party>,
    addresses: HashMap<[u8; 6], Station>,
    /// Parties by the addresses that they have published, for those that nothing is known of: what goes directly teaches nothing.
    published: HashMap<Address, u64>,
    aging: Duration,
    next_id: u64,
    scanned: Option<SystemTime>,
    stats: SwitchStats,
    buffer: Vec<u8>,
    /// Copies that no party waits for any more, for the next frames.
    spare: Vec<Copy>,
    _lock: Claim,
}

impl Switch {
    /// Becomes the switch of the wire, or returns `None` if it has one.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the directory cannot be used.
    pub fn open(dir: &WireDir) -> Result<Option<Self>, LinkError> {
        let (socket, lock) = match dir.bind("switch.sock") {
            Ok(bound) => bound,
            Err(LinkError::NameTaken { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut switch = Self {
            dir: dir.clone(),
            socket,
            parties: HashMap::new(),
            addresses: HashMap::new(),
            published: HashMap::new(),
            aging: AGING,
            next_id: 0,
            scanned: None,
            stats: SwitchStats::default(),
            buffer: vec![0; MAX_FRAME + 1],
            spare: Vec::new(),
            _lock: lock,
        };
        switch.scan();
        Ok(Some(switch))
    }

    /// What it did so far.
    #[must_use]
    pub fn stats(&self) -> SwitchStats {
        self.stats
    }

    /// Ageing time: an address without a frame for so long is removed. Default 300 s.
    pub fn set_aging(&mut self, time: Duration) {
        self.aging = time;
    }

    /// Parties known now.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.parties.len()
    }

    /// Waits for frames until `deadline` and forwards what comes.
    ///
    /// # Errors
    /// [`LinkError::Io`] if its own socket is broken.
    pub fn step(&mut self, deadline: Instant) -> Result<(), LinkError> {
        {
            let own = PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN);
            let waiting = self.parties.values().filter(|party| !party.queue.is_empty());
            let waiting = waiting.map(|party| PollFd::from_borrowed_fd(party.socket.as_fd(), PollFlags::OUT));
            let mut fds: SmallVec<[PollFd<'_>; FEW]> = std::iter::once(own).chain(waiting).collect();
            wait(&mut fds, Some(deadline)).map_err(LinkError::io("wait for frames"))?;
        }

        // A mirror says nothing, and gets what is for parties that are known.
        self.scan();
        let behind: Ids = self.parties.iter().filter(|(_, party)| !party.queue.is_empty()).map(|(id, _)| *id).collect();
        for id in behind {
            self.drain(id);
        }
        for _ in 0..BURST {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, source)) => self.forward(length, source.as_pathname()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LinkError::io("receive on the switch")(error)),
            }
        }
        Ok(())
    }

    fn forward(&mut self, length: usize, source: Option<&Path>) {
        if !(MIN_FRAME..=MAX_FRAME).contains(&length) {
            self.stats.dropped_malformed += 1;
            return;
        }
        self.stats.frames += 1;
        let destination: [u8; 6] = self.buffer[0..6].try_into().expect("a frame has an Ethernet header");
        let station: [u8; 6] = self.buffer[6..12].try_into().expect("a frame has an Ethernet header");
        let from = source.and_then(|path| self.party_at(path));
        if let Some(id) = from
            && station[0] & 1 == 0
        {
            self.learn(station, id);
        }
        let known = self.find(destination);
        if known.is_none() {
            self.stats.flooded += 1;
            self.scan();
        }
        let takers: Ids = self
            .parties
            .iter()
            .filter(|(id, party)| Some(**id) != from && (party.mirror || known.is_none_or(|to| to == **id)))
            .map(|(id, _)| *id)
            .collect();
        // Made for the first party that does not take it at once.
        let mut copy = None;
        for id in takers {
            self.pass(id, length, &mut copy);
        }
        self.spare.extend(copy.filter(|copy| Arc::strong_count(copy) == 1));
    }

    /// Learns the party of a station from a frame.
    fn learn(&mut self, station: [u8; 6], id: u64) {
        let heard = Instant::now();
        let before = self.addresses.insert(station, Station { party: id, heard });
        if before.is_some_and(|before| before.party == id) {
            return;
        }
        let Some(party) = self.parties.get_mut(&id) else { return };
        party.addresses.push_back(station);
        if party.addresses.len() > MAX_ADDRESSES
            && let Some(oldest) = party.addresses.pop_front()
            && self.addresses.get(&oldest).is_some_and(|there| there.party == id)
        {
            self.addresses.remove(&oldest);
        }
    }

    /// The party that a station's last frame came from, if it is not too old; else the one that has published its address.
    fn find(&self, station: [u8; 6]) -> Option<u64> {
        let there = self.addresses.get(&station).filter(|there| there.heard.elapsed() < self.aging);
        there.map(|there| there.party).or_else(|| self.published.get(&station).copied())
    }

    /// Passes a frame of `length` bytes on to a party: at once, or when the party has room again.
    fn pass(&mut self, id: u64, length: usize, copy: &mut Option<Copy>) {
        let Some(party) = self.parties.get_mut(&id) else { return };
        let frame = &self.buffer[..length];
        if party.queue.is_empty() && party.socket.send(frame).is_ok() {
            return;
        }
        if party.queue.len() < QUEUE_FRAMES {
            let made = copy.get_or_insert_with(|| {
                let mut room = self.spare.pop().unwrap_or_default();
                let bytes = Arc::make_mut(&mut room);
                bytes.clear();
                bytes.extend_from_slice(frame);
                room
            });
            party.queue.push_back(Arc::clone(made));
        } else {
            self.stats.dropped_full += 1;
        }
        self.drain(id);
    }

    /// Sends what waits for a party, as far as its socket takes it. Removes the party if its socket is gone.
    fn drain(&mut self, id: u64) {
        let Some(party) = self.parties.get_mut(&id) else { return };
        while let Some(frame) = party.queue.front() {
            match party.socket.send(frame) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if is_full(&error) => return,
                // One that left and came back has a new socket at the same path.
                Err(_) => match Party::connect(&party.path) {
                    Ok(again) => {
                        party.socket = again.socket;
                        continue;
                    }
                    Err(_) => return self.forget(id),
                },
            }
            if let Some(mut sent) = party.queue.pop_front()
                && Arc::get_mut(&mut sent).is_some()
            {
                self.spare.push(sent);
            }
        }
    }

    fn forget(&mut self, id: u64) {
        if let Some(party) = self.parties.remove(&id) {
            match party.path.file_stem().and_then(OsStr::to_str) {
                Some(name) => remove_party(&self.dir, name),
                None => remove_stale(&party.path),
            }
            self.addresses.retain(|_, there| there.party != id);
            self.published.retain(|_, party| *party != id);
            self.stats.vanished += 1;
        }
    }

    fn party_at(&mut self, path: &Path) -> Option<u64> {
        if let Some((id, _)) = self.parties.iter().find(|(_, party)| party.path == path) {
            return Some(*id);
        }
        if self.parties.len() >= MAX_PARTIES {
            return None;
        }
        let party = Party::connect(path).ok()?;
        let id = self.next_id;
        self.next_id += 1;
        self.parties.insert(id, party);
        Some(id)
    }

    /// Takes in every socket of the directory, if that has changed since the last look.
    fn scan(&mut self) {
        let changed = fs::metadata(self.dir.path()).and_then(|meta| meta.modified()).ok();
        if changed.is_some() && changed == self.scanned {
            return;
        }
        for path in self.dir.parties() {
            if self.party_at(&path).is_none() {
                remove_stale(&path);
            }
        }
        self.published = published(&self.dir)
            .into_iter()
            .filter_map(|(address, name)| Some((address, self.party_at(&self.dir.party_socket(&name))?)))
            .collect();
        let settled = changed.filter(|at| at.elapsed().is_ok_and(|age| age > CLOCK_GRAIN));
        self.scanned = settled;
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(self.dir.switch_socket());
    }
}

/// A thread that is the switch of a wire whenever no other party is.
///
/// Each process that stays on a wire keeps one: when the process that switched leaves, another takes over within 200 ms.
#[derive(Debug)]
pub struct SwitchHost {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SwitchHost {
    /// Starts. When it returns, the wire has a switch: this one or another.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the directory cannot be used or no thread can be started.
    pub fn start(dir: &WireDir) -> Result<Self, LinkError> {
        let mut switch = Switch::open(dir)?;
        // Another party may have claimed it and not begun yet.
        let deadline = Instant::now() + START;
        while switch.is_none() && !dir.has_switch() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
            switch = Switch::open(dir)?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, dir) = (Arc::clone(&stop), dir.clone());
        let thread = std::thread::Builder::new()
            .name("nacelle-switch".into())
            .spawn(move || {
                while !seen.load(Ordering::Relaxed) {
                    // A switch whose socket broke is replaced, here or by another party, at the next turn.
                    let healthy = match &mut switch {
                        Some(switch) => switch.step(Instant::now() + TICK).is_ok(),
                        None => false,
                    };
                    if !healthy {
                        drop(switch.take());
                        std::thread::sleep(TICK);
                        switch = Switch::open(&dir).ok().flatten();
                    }
                }
            })
            .map_err(LinkError::io("start the switch"))?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for SwitchHost {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _a_panic_there_was_reported_there = thread.join();
        }
    }
}
