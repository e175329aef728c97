// SPDX-License-Identifier: Apache-2.0
//! The management socket of a device: JSON lines over `<wire>/<name>.ctl`.
//!
//! Each line from the client is a [`Request`]; the device answers each with one line, a [`Reply`]. Nothing here touches the
//! device's traffic: it is for people and tools on the same machine.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nacelle_link::WireDir;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::management::{Access, Bytes, MemoryRegion, QueuePair, QueuePairCounters, Reset, Work};
use crate::{Descriptor, Error, FrameKind};

/// Longest request, in bytes, its newline included.
pub const MAX_REQUEST: usize = 64 << 10;
/// How long a device may take to answer, in all.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to accept a connection.
const ACCEPT_WITHIN: Duration = Duration::from_secs(1);
/// Longest answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// Bytes of an answer that are read at a time.
const READ_SIZE: usize = 64 << 10;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// What the device is: answered by a [`Descriptor`].
    Info {},
    /// What it counted: answered by [`Stats`].
    Stats {},
    /// Which frames passed: answered by [`Trace`].
    Trace {
        /// Number of the first frame wanted.
        #[serde(default)]
        since: u64,
    },
    /// Begin to write what passes to a pcapng file, instead of to an earlier one: answered by [`Done`].
    CaptureStart {
        /// The file, as an absolute path.
        path: PathBuf,
    },
    /// End the capture: answered by [`Done`].
    CaptureStop {},
    /// End the device: answered by [`Done`] before it ends.
    Shutdown {},
    /// Its queue pairs: answered by a list of [`QueuePair`].
    QueuePairs {},
    /// What a queue pair counted, or without a number each that is not in RESET: answered by a list of [`QueuePairCounters`].
    QueuePairCounters {
        /// Its number.
        #[serde(default)]
        qpn: Option<u32>,
    },
    /// Reset a queue pair, or all without a number: answered by [`Reset`].
    ResetQueuePairs {
        /// Its number.
        #[serde(default)]
        qpn: Option<u32>,
    },
    /// Its memory regions: answered by a list of [`MemoryRegion`].
    Regions {},
    /// The numbers of its protection domains: answered by a list of `u32`.
    Domains {},
    /// Read and write registers, with nothing of other clients between: answered by a list of what the reads gave.
    Registers {
        /// In this order.
        accesses: Vec<Access>,
    },
    /// Open a connection from the device: answered by its number, a `u16`.
    Connect {
        /// The peer.
        peer: Ipv4Addr,
        /// Its port, in the TCP port space of the RDMA connection manager.
        port: u16,
        /// For the peer's application, up to [`MAX_PRIVATE`](crate::management::MAX_PRIVATE) bytes.
        #[serde(default)]
        private: Bytes,
        /// Payload of its full packets, in bytes: 256, 512, 1024, 2048 or 4096; without, that of
        /// [`DEFAULT_MTU`](crate::management::DEFAULT_MTU).
        #[serde(default)]
        mtu: Option<u16>,
    },
    /// Give such a connection something to do: answered by [`Done`].
    Post {
        /// Its number.
        connection: u16,
        /// What to do.
        work: Work,
    },
    /// What has happened to it: answered by [`Progress`](crate::management::Progress).
    Poll {
        /// Its number.
        connection: u16,
    },
    /// Close it: answered by [`Done`].
    Close {
        /// Its number.
        connection: u16,
    },
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply<T> {
    /// It was done.
    Ok(T),
    /// It was not, and why.
    Error(String),
}

/// Nothing more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {}

/// What a device counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Device time, in cycles.
    pub cycles: u64,
    /// All counters by name.
    pub counters: BTreeMap<String, u64>,
}

/// Frames that passed the device's MAC interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Number of the next frame: what to ask for next time.
    pub next: u64,
    /// Frames wanted but no longer remembered.
    pub lost: u64,
    /// The frames, oldest first.
    pub frames: Vec<TraceFrame>,
}

/// One frame that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFrame {
    /// Its number, counted from the device's start.
    pub number: u64,
    /// Whether it went into the device, not out of it.
    pub rx: bool,
    /// Device cycle of its first beat.
    pub first_beat: u64,
    /// Device cycle of its last beat.
    pub last_beat: u64,
    /// Its length, in bytes.
    pub length: u32,
    /// What it is.
    #[serde(flatten)]
    pub kind: FrameKind,
}

/// A connection to a device's management socket.
#[derive(Debug)]
pub struct Control {
    name: String,
    stream: UnixStream,
    /// What was read behind the last answer.
    input: Vec<u8>,
    patience: Duration,
}

impl Control {
    /// Connects to the device `name` on `wire`. What it is asked, it must answer within 10 s.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`] if nobody listens there, or does not accept the connection within a second.
    pub fn open(wire: &WireDir, name: &str) -> Result<Self, Error> {
        let stream = connect(&wire.file(&format!("{name}.ctl")), ACCEPT_WITHIN)
            .map_err(|_| Error::NoSuchDevice { name: name.to_owned(), wire: wire.path().to_owned() })?;
        Ok(Self { name: name.to_owned(), stream, input: Vec::new(), patience: ANSWER_WITHIN })
    }

    /// Whether the device `name` on `wire` accepts a connection, and says within `patience` that it runs.
    pub(crate) fn is_alive(wire: &WireDir, name: &str, patience: Duration) -> bool {
        let Ok(mut control) = Self::open(wire, name) else { return false };
        control.patience = patience;
        control.info().is_ok()
    }

    /// What the device is.
    ///
    /// # Errors
    /// [`Error::Management`] if the device answers with an error or not at all.
    pub fn info(&mut self) -> Result<Descriptor, Error> {
        self.ask(&Request::Info {})
    }

    /// What the device counted.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn stats(&mut self) -> Result<Stats, Error> {
        self.ask(&Request::Stats {})
    }

    /// The frames that passed since number `since`.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn trace(&mut self, since: u64) -> Result<Trace, Error> {
        self.ask(&Request::Trace { since })
    }

    /// The device's queue pairs.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn queue_pairs(&mut self) -> Result<Vec<QueuePair>, Error> {
        self.ask(&Request::QueuePairs {})
    }

    /// What queue pair `qpn` counted, or each in use.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn queue_pair_counters(&mut self, qpn: Option<u32>) -> Result<Vec<QueuePairCounters>, Error> {
        self.ask(&Request::QueuePairCounters { qpn })
    }

    /// Resets queue pair `qpn`, or all.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn reset(&mut self, qpn: Option<u32>) -> Result<Reset, Error> {
        self.ask(&Request::ResetQueuePairs { qpn })
    }

    /// The device's memory regions.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn regions(&mut self) -> Result<Vec<MemoryRegion>, Error> {
        self.ask(&Request::Regions {})
    }

    /// Does `accesses` to the device's registers in one go, and returns what the reads gave.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn registers(&mut self, accesses: Vec<Access>) -> Result<Vec<u32>, Error> {
        self.ask(&Request::Registers { accesses })
    }

    /// Sends `request` and reads its answer.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Error> {
        let deadline = Instant::now() + self.patience;
        let answer = self.send(request, deadline).and_then(|()| self.receive(deadline)).map_err(|error| {
            let late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            if late { format!("no answer within {} s", self.patience.as_secs()) } else { error.to_string() }
        });
        let reply = answer.and_then(|line| serde_json::from_slice(&line).map_err(|error| error.to_string()));
        match reply {
            Ok(Reply::Ok(answer)) => Ok(answer),
            Ok(Reply::Error(why)) | Err(why) => Err(Error::Management { name: self.name.clone(), why }),
        }
    }

    fn send(&mut self, request: &Request, deadline: Instant) -> io::Result<()> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let mut rest = &line[..];
        while !rest.is_empty() {
            self.stream.set_write_timeout(Some(left(deadline)?))?;
            rest = &rest[self.stream.write(rest)?..];
        }
        Ok(())
    }

    /// The next line.
    fn receive(&mut self, deadline: Instant) -> io::Result<Vec<u8>> {
        let mut seen = 0;
        loop {
            if let Some(end) = self.input[seen..].iter().position(|byte| *byte == b'\n') {
                let rest = self.input.split_off(seen + end + 1);
                return Ok(std::mem::replace(&mut self.input, rest));
            }
            seen = self.input.len();
            if seen > MAX_ANSWER {
                return Err(io::Error::other("its answer has no end"));
            }
            self.stream.set_read_timeout(Some(left(deadline)?))?;
            self.input.resize(seen + READ_SIZE, 0);
            let read = self.stream.read(&mut self.input[seen..]);
            self.input.truncate(seen + read.as_ref().copied().unwrap_or(0));
            if read? == 0 {
                return Err(io::Error::other("it closed the connection"));
            }
        }
    }
}

/// The time until `deadline`.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Connects to a listening socket. One that takes no connections holds up its callers for `patience` only.
fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // It bounds connect too (socket(7)).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn wire() -> (tempfile::TempDir, WireDir) {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        (temp, wire)
    }

    #[test]
    fn a_device_that_takes_no_connections_holds_nobody_up() {
        let (_temp, wire) = wire();
        let path = wire.file("full.ctl");
        let _listener = UnixListener::bind(&path).unwrap();
        // Its queue fills up: from then on connecting waits.
        let mut waiting = Vec::new();
        while let Ok(stream) = connect(&path, Duration::from_millis(20)) {
            waiting.push(stream);
        }
        let started = Instant::now();
        assert!(matches!(Control::open(&wire, "full"), Err(Error::NoSuchDevice { .. })));
        assert!(!Control::is_alive(&wire, "full", ACCEPT_WITHIN));
        assert!(started.elapsed() < 3 * ACCEPT_WITHIN, "{:?}", started.elapsed());
    }

    #[test]
    fn an_answer_that_never_ends_is_given_up() {
        let (_temp, wire) = wire();
        let listener = UnixListener::bind(wire.file("slow.ctl")).unwrap();
        let device = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // A byte now and then, until the caller has had enough.
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let started = Instant::now();
        assert!(!Control::is_alive(&wire, "slow", Duration::from_millis(500)));
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
        device.join().unwrap();
    }

    #[test]
    fn answers_are_lines_however_they_come() {
        let (_temp, wire) = wire();
        let listener = UnixListener::bind(wire.file("cut.ctl")).unwrap();
        let device = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for piece in [&b"{\"ok\":"[..], b"7}\n{\"ok\":8}\n{\"err", b"or\":\"no\"}\n"] {
                stream.write_all(piece).unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
            let _until_the_caller_leaves = stream.read_to_end(&mut Vec::new());
        });
        let mut control = Control::open(&wire, "cut").unwrap();
        let mut ask = || control.ask::<u32>(&Request::Info {});
        assert_eq!((ask().unwrap(), ask().unwrap()), (7, 8));
        assert!(matches!(ask(), Err(Error::Management { why, .. }) if why == "no"));
        drop(control);
        device.join().unwrap();
    }
}
