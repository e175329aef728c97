// SPDX-License-Identifier: Apache-2.0
//! The virtual wire: an Ethernet made of AF_UNIX datagram sockets, one frame a datagram.
//!
//! The framing is that of QEMU's `-netdev dgram`, so a guest plugs into the same wire. All sockets lie in one directory;
//! every socket in it, save the switch's own, is a party.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::direct::Direct;
use crate::{Claim, Link, LinkError, LinkStats, check_length, own_user, recv_until, send_patiently};

/// Socket buffers, in bytes: room for a burst of long frames. The kernel may give less.
const SOCKET_BUFFER: usize = 4 << 20;
/// A directory changed so recently may change again within the same time stamp.
pub(crate) const CLOCK_GRAIN: Duration = Duration::from_millis(50);
/// The longest path of a Unix socket, in bytes (`sun_path` less its final zero, unix(7)).
pub(crate) const MAX_SOCKET_PATH: usize = 107;

/// The directory of one virtual wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireDir(PathBuf);

impl WireDir {
    /// The wire that is used if none is named: `$NACELLE_WIRE`, else `$XDG_RUNTIME_DIR/nacelle`, else `/run/nacelle` for
    /// root and `/tmp/nacelle-<uid>` for others.
    #[must_use]
    pub fn default_path() -> PathBuf {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        named("NACELLE_WIRE").or_else(|| named("XDG_RUNTIME_DIR").map(|dir| dir.join("nacelle"))).unwrap_or_else(|| {
            match own_user() {
                0 => PathBuf::from("/run/nacelle"),
                uid => PathBuf::from(format!("/tmp/nacelle-{uid}")),
            }
        })
    }

    /// Opens a wire and makes its directory, for this user only, if there is none.
    ///
    /// A user who can change the directory controls where frames go, and what is written where: so it must belong to this user,
    /// with no access for others, must be no symbolic link, and no other user may be able to replace it. That holds for root too.
    ///
    /// # Errors
    /// [`LinkError::BadPath`] if one of that is not so, it is no directory, or its name is too long for sockets;
    /// [`LinkError::Io`] if it cannot be made.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, LinkError> {
        Self::open_checked(&path.into(), false)
    }

    /// Opens a wire that may be another user's, who is trusted with what this process does on it. For root, to join the
    /// kernel's network to a user's wire.
    ///
    /// # Errors
    /// As [`WireDir::open`], save for the owner.
    pub fn open_trusting_owner(path: impl Into<PathBuf>) -> Result<Self, LinkError> {
        Self::open_checked(&path.into(), true)
    }

    fn open_checked(path: &Path, trust_owner: bool) -> Result<Self, LinkError> {
        // Without a slash at the end, which would follow a symbolic link.
        let named: PathBuf = path.components().collect();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&named)
            .map_err(LinkError::io(format!("make the directory {}", named.display())))?;
        let look =
            |path: &Path| fs::symlink_metadata(path).map_err(LinkError::io(format!("look at {}", path.display())));
        let path = named.canonicalize().map_err(LinkError::io(format!("open {}", named.display())))?;
        let bad = |why| Err(LinkError::BadPath { path: path.clone(), why });
        let (entry, meta) = (look(&named)?, look(&path)?);
        if (entry.dev(), entry.ino()) != (meta.dev(), meta.ino()) {
            return Err(LinkError::BadPath { path: named, why: "it is a symbolic link" });
        }
        let own = own_user();
        if meta.uid() != own && !trust_owner {
            return bad("it belongs to another user");
        }
        if meta.mode() & 0o077 != 0 {
            return bad("other users can enter it: chmod 700");
        }
        for above in path.ancestors().skip(1) {
            let above = look(above)?;
            if !is_safe(&above, &[own, meta.uid()]) {
                return bad("other users can change a directory above it");
            }
        }
        let dir = Self(path.clone());
        if dir.switch_socket().as_os_str().len() > MAX_SOCKET_PATH {
            return bad("the path is too long for a Unix socket");
        }
        Ok(dir)
    }

    /// The directory itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file of the wire.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where every party sends its frames to.
    #[must_use]
    pub fn switch_socket(&self) -> PathBuf {
        self.file("switch.sock")
    }

    /// Where the party of this name receives its frames.
    pub(crate) fn party_socket(&self, name: &str) -> PathBuf {
        self.file(&format!("{name}.sock"))
    }

    /// True if a switch answers on this wire.
    #[must_use]
    pub fn has_switch(&self) -> bool {
        is_alive(&self.switch_socket())
    }

    /// The sockets of all parties, live or stale.
    pub(crate) fn parties(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()))
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "sock") && *path != self.switch_socket())
            .collect()
    }

    /// Takes a name that one process at a time can have, or returns `None` if another has it.
    ///
    /// # Errors
    /// [`LinkError::BadPath`] if it is no plain file name; [`LinkError::Io`] if the directory cannot be written.
    pub fn claim(&self, name: &str) -> Result<Option<Claim>, LinkError> {
        let path = self.file(&format!(".{name}.lock"));
        if name.contains('/') || name.starts_with('.') {
            return Err(LinkError::BadPath { path, why: "the name is no plain file name" });
        }
        let what = format!("lock {}", path.display());
        Claim::take(path).map_err(LinkError::io(what))
    }

    /// Puts a file of these contents in the directory, for this user only and in one step, so that no reader sees half of it.
    /// What has its name already is replaced, and not written to.
    ///
    /// # Errors
    /// The error of the system.
    pub fn publish(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let draft = self.file(&format!(".{name}.draft"));
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(contents)?;
        fs::rename(&draft, self.file(name))
    }

    /// Binds a datagram socket in the directory; one that a dead party left behind is replaced.
    pub(crate) fn bind(&self, name: &str) -> Result<(UnixDatagram, Claim), LinkError> {
        let path = self.file(name);
        if path.as_os_str().len() > MAX_SOCKET_PATH {
            return Err(LinkError::BadPath { path, why: "the name is too long for a Unix socket" });
        }
        // Without the claim, two would take away each other's socket.
        let claim = self.claim(name)?.filter(|_| !is_alive(&path));
        let claim = claim.ok_or_else(|| LinkError::NameTaken { name: name.to_owned(), dir: self.0.clone() })?;
        remove_stale(&path);
        let what = format!("bind {}", path.display());
        let socket = UnixDatagram::bind(&path).map_err(LinkError::io(what.clone()))?;
        socket.set_nonblocking(true).map_err(LinkError::io(what))?;
        enlarge(&socket);
        Ok((socket, claim))
    }
}

/// Whether only root and `users` can replace what is in a directory.
fn is_safe(dir: &Metadata, users: &[u32]) -> bool {
    /// The owner of files without an owner in this user namespace, such as the root of a container.
    const UNMAPPED: u32 = 65_534;
    let owner = dir.uid() == 0 || dir.uid() == UNMAPPED || users.contains(&dir.uid());
    let group = dir.gid() == 0 || dir.gid() == rustix::process::getegid().as_raw();
    let writable = dir.mode() & 0o002 != 0 || dir.mode() & 0o020 != 0 && !group;
    let sticky = dir.mode() & 0o1000 != 0;
    owner && (!writable || sticky)
}

/// True if a process holds the datagram socket at `path`.
pub(crate) fn is_alive(path: &Path) -> bool {
    // EAGAIN and EPERM come from live sockets too (full, or connected to another): only these two mean that none listens.
    match UnixDatagram::unbound().and_then(|probe| probe.connect(path)) {
        Ok(()) => true,
        Err(error) => !matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound),
    }
}

/// Removes the socket file that a dead party left behind. Another process may do the same at the same time.
pub(crate) fn remove_stale(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket()) && !is_alive(path) {
        let _gone_already_is_fine = fs::remove_file(path);
    }
}

/// Requests large socket buffers; smaller ones only mean more retries.
pub(crate) fn enlarge(socket: &UnixDatagram) {
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(socket, SOCKET_BUFFER);
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, SOCKET_BUFFER);
}

/// One party's end of the virtual wire. Leaving removes its socket.
#[derive(Debug)]
pub struct VirtualWire {
    socket: UnixDatagram,
    path: PathBuf,
    switch: PathBuf,
    direct: Direct,
    stats: LinkStats,
    _name: Claim,
}

impl VirtualWire {
    /// Joins the wire under a name of its own.
    ///
    /// # Errors
    /// [`LinkError::NoSwitch`] if there is no switch to forward its frames; [`LinkError::NameTaken`] if a live party has the name.
    pub fn join(dir: &WireDir, name: &str) -> Result<Self, LinkError> {
        if !dir.has_switch() {
            return Err(LinkError::NoSwitch { dir: dir.path().to_owned() });
        }
        let direct = Direct::new(dir, name)?;
        let file = format!("{name}.sock");
        let (socket, claim) = dir.bind(&file)?;
        let (path, switch) = (dir.file(&file), dir.switch_socket());
        Ok(Self { socket, path, switch, direct, stats: LinkStats::default(), _name: claim })
    }

    /// Joins the wire as a client, under a name that no other has.
    ///
    /// # Errors
    /// As [`VirtualWire::join`].
    pub fn join_anonymous(dir: &WireDir) -> Result<Self, LinkError> {
        Self::join(dir, &unique_name("client"))
    }

    /// Joins the wire to listen to everything that passes on it from now on: no frame goes past the switch meanwhile.
    ///
    /// # Errors
    /// As [`VirtualWire::join`].
    pub fn join_mirror(dir: &WireDir) -> Result<Self, LinkError> {
        let mirror = Self::join(dir, &unique_name(crate::switch::MIRROR_PREFIX))?;
        // The time of change must not be one that a party has seen already.
        std::thread::sleep(CLOCK_GRAIN);
        mirror.direct.announce().map_err(LinkError::io(format!("change the directory {}", dir.path().display())))?;
        Ok(mirror)
    }

    /// Sends a frame to the switch. Returns whether it was sent; if not, it is counted as dropped.
    fn send_to_switch(&mut self, frame: &[u8]) -> Result<bool, LinkError> {
        match send_patiently(|| self.socket.send_to(frame, &self.switch)) {
            Ok(_) => return Ok(true),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => self.stats.tx_dropped += 1,
                // The switch left. Another party may take over: until then this is an unplugged cable.
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => self.stats.tx_no_carrier += 1,
                _ => return Err(LinkError::io("send a frame on the virtual wire")(error)),
            },
        }
        Ok(false)
    }
}

fn unique_name(kind: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{kind}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Drop for VirtualWire {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.path);
    }
}

impl Link for VirtualWire {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        check_length(frame)?;
        if self.direct.send(frame) || self.send_to_switch(frame)? {
            self.stats.sent(frame.len());
        }
        Ok(())
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        let length = recv_until(&self.socket, deadline, |socket| match socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(LinkError::io("receive a frame from the virtual wire")(error)),
        })?;
        if let Some(length) = length {
            self.stats.received(length);
        }
        Ok(length)
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }
}
