// SPDX-License-Identifier: Apache-2.0
//! The management socket of a device: JSON lines over `<wire>/<name>.ctl`.
//!
//! Each line from the client is a [`Request`]; the device answers each with one line, a [`Reply`]. Nothing here touches the
//! device's traffic: it is for people and tools on the same machine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use nacelle_link::WireDir;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::management::{Access, Bytes, MemoryRegion, QueuePair, QueuePairCounters, Reset, Work};
use crate::{Descriptor, Error, FrameKind};

/// Longest request, in bytes, its newline included.
pub const MAX_REQUEST: usize = 64 << 10;
/// How long a device may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

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
    stream: BufReader<UnixStream>,
}

impl Control {
    /// Connects to the device `name` on `wire`.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`] if nobody listens there.
    pub fn open(wire: &WireDir, name: &str) -> Result<Self, Error> {
        let gone = |_| Error::NoSuchDevice { name: name.to_owned(), wire: wire.path().to_owned() };
        let stream = UnixStream::connect(wire.file(&format!("{name}.ctl"))).map_err(gone)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(gone)?;
        stream.set_write_timeout(Some(ANSWER_WITHIN)).map_err(gone)?;
        Ok(Self { name: name.to_owned(), stream: BufReader::new(stream) })
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
        let failed = |why: String| Error::Management { name: self.name.clone(), why };
        let mut line = serde_json::to_vec(request).map_err(|error| failed(error.to_string()))?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line).map_err(|error| failed(error.to_string()))?;
        let mut answer = String::new();
        let length = self.stream.read_line(&mut answer).map_err(|error| failed(error.to_string()))?;
        if length == 0 {
            return Err(failed("it closed the connection".into()));
        }
        match serde_json::from_str(&answer).map_err(|error| failed(error.to_string()))? {
            Reply::Ok(answer) => Ok(answer),
            Reply::Error(why) => Err(failed(why)),
        }
    }
}
