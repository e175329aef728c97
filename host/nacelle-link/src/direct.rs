// SPDX-License-Identifier: Apache-2.0
//! The direct way between two parties of a virtual wire: from socket to socket, past the switch.
//!
//! A party publishes each Ethernet address that it sends from by an empty file in the wire's directory,
//! `NAME@02-00-00-00-00-01.address`. A frame to an address that exactly one live party has published goes to that party's socket;
//! all others go to the switch: those to groups, to addresses that nobody or more than one has published (the switch learns who spoke
//! last), and all frames while a mirror listens.
//!
//! The directory's time of change says when to read it again. Frames for a party that is slow to take them go to the switch, too, which
//! has a bounded queue for each, so it delays nobody else; a party whose socket is gone is removed from the directory.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags};
use smallvec::SmallVec;

use crate::switch::MIRROR_PREFIX;
use crate::wire::{CLOCK_GRAIN, enlarge, is_alive, remove_stale};
use crate::{LinkError, WireDir, is_full, wait};

/// How the file of an address ends.
const SUFFIX: &str = ".address";
/// Addresses that one party publishes. Frames from others go to the switch, which has bounds of its own.
const MAX_OWN: usize = 8;
/// Addresses of others that are kept.
const MAX_STATIONS: usize = 4096;
/// Parties that have a socket here.
const MAX_PEERS: usize = 256;
/// How long a party may take to make room for a frame, before it counts as slow.
const PATIENCE: Duration = Duration::from_millis(1);
/// A party that was slow gets frames directly again when none was sent to it for so long: so none of them overtakes one that is
/// still with the switch.
const QUIET: Duration = Duration::from_millis(200);

/// An Ethernet address.
pub(crate) type Address = [u8; 6];

/// Why a party's socket has not taken a frame.
enum Refused {
    Full,
    Gone,
    /// The system gives no socket.
    NoSocket,
}

/// Another party.
#[derive(Debug)]
struct Peer {
    name: String,
    path: PathBuf,
    /// Since the first frame for it.
    socket: Option<UnixDatagram>,
    /// When a frame for it was last given to the switch because it is slow.
    slow: Option<Instant>,
}

impl Peer {
    fn new(name: String, path: PathBuf) -> Self {
        Self { name, path, socket: None, slow: None }
    }

    /// Whether its frames have to go to the switch, as it has not taken them before.
    fn is_slow(&mut self) -> bool {
        let now = self.slow.map(|_| Instant::now());
        self.slow = now.filter(|now| self.slow.is_some_and(|before| now.duration_since(before) < QUIET));
        self.slow.is_some()
    }

    fn send(&mut self, frame: &[u8]) -> Result<(), Refused> {
        let mut patience = true;
        // One that left and came back has a new socket at the same path.
        for _ in 0..2 {
            let socket = match &self.socket {
                Some(socket) => socket,
                None => self.socket.insert(connect(&self.path)?),
            };
            loop {
                match socket.send(frame) {
                    Ok(_) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) if is_full(&error) && std::mem::take(&mut patience) => {
                        let mut room = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
                        // The next attempt says what is the matter.
                        let _tried_again = wait(&mut room, Some(Instant::now() + PATIENCE));
                    }
                    Err(error) if is_full(&error) => return Err(Refused::Full),
                    Err(_) => break,
                }
            }
            self.socket = None;
        }
        Err(Refused::Gone)
    }
}

fn connect(path: &Path) -> Result<UnixDatagram, Refused> {
    let socket = UnixDatagram::unbound().map_err(|_| Refused::NoSocket)?;
    socket.set_nonblocking(true).map_err(|_| Refused::NoSocket)?;
    socket.connect(path).map_err(|_| Refused::Gone)?;
    enlarge(&socket);
    Ok(socket)
}

/// The direct ways of one party to the others.
#[derive(Debug)]
pub(crate) struct Direct {
    wire: WireDir,
    dir: File,
    /// This party.
    name: String,
    /// Those that it has published.
    own: SmallVec<[Address; MAX_OWN]>,
    /// When the directory was changed last, as of the last look: seconds and nanoseconds.
    seen: Option<(i64, u32)>,
    /// When to read it again though its time is the same: another change may have come within the same tick of the clock.
    again: Option<Instant>,
    mirrored: bool,
    /// Who has an address, by the place among the peers.
    stations: HashMap<Address, usize>,
    peers: Vec<Peer>,
}

impl Direct {
    /// Those of the party that joins by this name.
    ///
    /// # Errors
    /// [`LinkError::Io`] if the directory cannot be opened.
    pub(crate) fn new(wire: &WireDir, name: &str) -> Result<Self, LinkError> {
        let dir = File::open(wire.path()).map_err(LinkError::io(format!("open {}", wire.path().display())))?;
        Ok(Self {
            wire: wire.clone(),
            dir,
            name: name.to_owned(),
            own: SmallVec::new(),
            seen: None,
            again: None,
            mirrored: false,
            stations: HashMap::new(),
            peers: Vec::new(),
        })
    }

    /// Sends a frame on the direct way. Returns whether that was done; if not, it has to go to the switch.
    pub(crate) fn send(&mut self, frame: &[u8]) -> bool {
        let (Some(&to), Some((_, rest))) = (frame.first_chunk::<6>(), frame.split_first_chunk::<6>()) else {
            return false;
        };
        let published = rest.first_chunk().is_some_and(|from| self.publish(*from));
        self.look();
        if !published || self.mirrored {
            return false;
        }
        self.stations.get(&to).copied().is_some_and(|place| self.pass(place, frame))
    }

    /// Makes every party read the directory again before its next frame.
    ///
    /// # Errors
    /// The error of the system.
    pub(crate) fn announce(&self) -> io::Result<()> {
        let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
        Ok(rustix::fs::futimens(&self.dir, &times)?)
    }

    /// Publishes an address. Returns whether that was done, now or before.
    fn publish(&mut self, address: Address) -> bool {
        if self.own.contains(&address) {
            return true;
        }
        if address[0] & 1 != 0 || self.own.len() >= MAX_OWN || self.create(address).is_err() {
            return false;
        }
        self.own.push(address);
        true
    }

    fn create(&self, address: Address) -> io::Result<()> {
        let path = self.wire.file(&file_name(&self.name, address));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads the directory, if it has changed.
    fn look(&mut self) {
        // Nanoseconds have another type on each system.
        let changed = rustix::fs::fstat(&self.dir).ok().map(|stat| (stat.st_mtime, stat.st_mtime_nsec as u32));
        let settles = self.again.is_some_and(|at| Instant::now() >= at);
        if changed.is_none() || changed != self.seen || settles {
            self.scan(changed);
        }
    }

    fn scan(&mut self, changed: Option<(i64, u32)>) {
        let settled = changed.and_then(age).is_some_and(|age| age > CLOCK_GRAIN);
        self.again = (!settled).then(|| Instant::now() + CLOCK_GRAIN);
        self.seen = changed;
        let Entries { parties, addresses } = Entries::read(&self.wire);
        let mut mirrors = parties.iter().filter(|name| name.starts_with(MIRROR_PREFIX));
        self.mirrored = mirrors.any(|name| is_alive(&self.wire.party_socket(name)));
        self.check_own(&addresses);

        let mut before: HashMap<String, Peer> = self.peers.drain(..).map(|peer| (peer.name.clone(), peer)).collect();
        let mut places = HashMap::new();
        self.stations.clear();
        for (address, name) in self.stations(&parties, addresses) {
            let place = *places.entry(name).or_insert_with_key(|name| {
                let new = || Peer::new(name.clone(), self.wire.party_socket(name));
                self.peers.push(before.remove(name).unwrap_or_else(new));
                self.peers.len() - 1
            });
            if place < MAX_PEERS {
                self.stations.insert(address, place);
            }
        }
    }

    /// Publishes again what another party has removed, which took this one for dead, and removes what a party of the same name has left.
    fn check_own(&mut self, addresses: &[(String, Address)]) {
        let there: Vec<Address> =
            addresses.iter().filter(|(name, _)| *name == self.name).map(|(_, address)| *address).collect();
        for missing in self.own.iter().filter(|address| !there.contains(address)) {
            let _tried_again_after_the_next_change = self.create(*missing);
        }
        for left in there.iter().filter(|address| !self.own.contains(address)) {
            self.withdraw(&self.name, *left);
        }
    }

    /// The addresses of other parties that one live party alone has published.
    fn stations(&self, parties: &HashSet<String>, addresses: Vec<(String, Address)>) -> Vec<(Address, String)> {
        let mut claims: HashMap<Address, SmallVec<[String; 1]>> = HashMap::new();
        for (name, address) in addresses.into_iter().filter(|(name, _)| *name != self.name).take(MAX_STATIONS) {
            if parties.contains(&name) {
                claims.entry(address).or_default().push(name);
            } else {
                self.withdraw(&name, address);
            }
        }
        let sole = claims.into_iter().filter_map(|(address, mut names)| {
            if names.len() > 1 {
                names.retain(|name| {
                    let alive = is_alive(&self.wire.party_socket(name));
                    if !alive {
                        self.withdraw(name, address);
                    }
                    alive
                });
            }
            let name = names.pop()?;
            names.is_empty().then_some((address, name))
        });
        sole.collect()
    }

    fn withdraw(&self, name: &str, address: Address) {
        let _gone_already_is_fine = fs::remove_file(self.wire.file(&file_name(name, address)));
    }

    /// Gives a frame to a party. Returns whether it has taken it.
    fn pass(&mut self, place: usize, frame: &[u8]) -> bool {
        let peer = &mut self.peers[place];
        if peer.is_slow() {
            return false;
        }
        match peer.send(frame) {
            Ok(()) => return true,
            Err(Refused::Full) => peer.slow = Some(Instant::now()),
            Err(Refused::NoSocket) => {}
            Err(Refused::Gone) => {
                self.stations.retain(|_, station| *station != place);
                remove_party(&self.wire, &peer.name);
            }
        }
        false
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        for address in &self.own {
            self.withdraw(&self.name, *address);
        }
    }
}

/// The parties of a wire, and the addresses that they have published.
#[derive(Debug, Default)]
struct Entries {
    parties: HashSet<String>,
    addresses: Vec<(String, Address)>,
}

impl Entries {
    fn read(wire: &WireDir) -> Self {
        let mut found = Self::default();
        for entry in fs::read_dir(wire.path()).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Some(address) = parse_file_name(name) {
                found.addresses.push(address);
            } else if let Some(party) = name.strip_suffix(".sock")
                && entry.file_type().is_ok_and(|kind| kind.is_socket())
            {
                found.parties.insert(party.to_owned());
            }
        }
        found
    }
}

/// The addresses that one party alone has published, and the names of those parties.
pub(crate) fn published(wire: &WireDir) -> HashMap<Address, String> {
    let mut claims: HashMap<Address, Option<String>> = HashMap::new();
    for (name, address) in Entries::read(wire).addresses.into_iter().take(MAX_STATIONS) {
        claims.entry(address).and_modify(|claim| *claim = None).or_insert(Some(name));
    }
    claims.into_iter().filter_map(|(address, name)| Some((address, name?))).collect()
}

/// Removes the socket file that a dead party left behind, and the files of its addresses.
pub(crate) fn remove_party(wire: &WireDir, name: &str) {
    let socket = wire.party_socket(name);
    remove_stale(&socket);
    if is_alive(&socket) {
        return;
    }
    for (party, address) in Entries::read(wire).addresses {
        if party == name {
            let _gone_already_is_fine = fs::remove_file(wire.file(&file_name(name, address)));
        }
    }
}

/// How long ago that was.
fn age((seconds, nanos): (i64, u32)) -> Option<Duration> {
    let since = Duration::new(u64::try_from(seconds).ok()?, nanos);
    SystemTime::now().duration_since(UNIX_EPOCH + since).ok()
}

fn file_name(party: &str, [a, b, c, d, e, f]: Address) -> String {
    format!("{party}@{a:02x}-{b:02x}-{c:02x}-{d:02x}-{e:02x}-{f:02x}{SUFFIX}")
}

fn parse_file_name(name: &str) -> Option<(String, Address)> {
    let (party, text) = name.strip_suffix(SUFFIX)?.rsplit_once('@')?;
    let mut address = [0; 6];
    let mut bytes = text.split('-');
    for byte in &mut address {
        *byte = bytes.next().filter(|text| text.len() == 2).and_then(|text| u8::from_str_radix(text, 16).ok())?;
    }
    (bytes.next().is_none() && address[0] & 1 == 0 && !party.is_empty()).then(|| (party.to_owned(), address))
}
