// SPDX-License-Identifier: Apache-2.0
//! The client of a device's management socket.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nacelle_link::WireDir;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use serde::de::DeserializeOwned;

use crate::{
    Access, Descriptor, Digest, Done, Error, KernelSocket, MAX_ACCESSES, MemoryRegion, QueuePair, QueuePairCounters,
    Registers, Reply, Request, Reset, Stats, Trace,
};

/// How long a device may take to answer, in all.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take to accept a connection.
const ACCEPT_WITHIN: Duration = Duration::from_secs(1);
/// Longest answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// Bytes of an answer that are read at a time.
const READ_SIZE: usize = 64 << 10;

/// A connection to a device's management socket.
#[derive(Debug)]
pub struct Control {
    name: String,
    stream: UnixStream,
    /// What was read behind the last answer.
    input: Vec<u8>,
    patience: Duration,
    /// When all answers must be there, if that is bounded.
    deadline: Option<Instant>,
}

impl Control {
    /// Connects to the device `name` on `wire`. It must answer each request within 10 s.
    ///
    /// # Errors
    /// [`Error::NoSuchDevice`] if no device listens there, or it does not accept the connection within a second.
    pub fn open(wire: &WireDir, name: &str) -> Result<Self, Error> {
        let stream = connect(&wire.file(&format!("{name}.ctl")), ACCEPT_WITHIN)
            .map_err(|_| Error::NoSuchDevice { name: name.to_owned(), wire: wire.path().to_owned() })?;
        Ok(Self { name: name.to_owned(), stream, input: Vec::new(), patience: ANSWER_WITHIN, deadline: None })
    }

    /// From now on all answers together must be there at `deadline`, and none has its own time.
    pub fn answer_by(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// Whether the device `name` on `wire` accepts a connection, and reports within `patience` that it runs.
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

    /// The device's sockets, and the kernels that they can hold.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn kernels(&mut self) -> Result<Vec<KernelSocket>, Error> {
        self.ask(&Request::Kernels {})
    }

    /// Begins to put an image into a socket; [`Control::kernels`] says what becomes of it.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn activate_kernel(&mut self, socket: u16, image: u8, digest: Digest) -> Result<Done, Error> {
        self.ask(&Request::ActivateKernel { socket, image, digest })
    }

    /// Begins to put the former image back into a socket.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn roll_back_kernel(&mut self, socket: u16) -> Result<Done, Error> {
        self.ask(&Request::RollBackKernel { socket })
    }

    /// Cuts off the calls that such a change waits for.
    ///
    /// # Errors
    /// As [`Control::info`].
    pub fn cut_kernel(&mut self, socket: u16) -> Result<Done, Error> {
        self.ask(&Request::CutKernel { socket })
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
        let deadline = self.deadline.unwrap_or_else(|| Instant::now() + self.patience);
        let answer = self.send(request, deadline).and_then(|()| self.receive(deadline)).map_err(|error| {
            let late = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            match self.deadline {
                _ if !late => error.to_string(),
                Some(_) => "no answer in time".into(),
                None => format!("no answer within {} s", self.patience.as_secs()),
            }
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
                return Err(io::Error::other("its answer is too long"));
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

/// Reads and writes that are served one request at a time: nothing of other clients is between those of one.
impl Registers for Control {
    type Error = Error;

    fn read(&mut self, address: u32) -> Result<u32, Error> {
        Ok(self.read_all(&[address])?[0])
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), Error> {
        self.registers(vec![Access::Write { address, value }]).map(drop)
    }

    fn write_all(&mut self, writes: &[(u32, u32)]) -> Result<(), Error> {
        for writes in writes.chunks(MAX_ACCESSES) {
            self.registers(writes.iter().map(|&(address, value)| Access::Write { address, value }).collect())?;
        }
        Ok(())
    }

    fn read_all(&mut self, addresses: &[u32]) -> Result<Vec<u32>, Error> {
        let accesses: Vec<_> = addresses.iter().map(|address| Access::Read { address: *address }).collect();
        self.access_all(&accesses)
    }

    fn access_all(&mut self, accesses: &[Access]) -> Result<Vec<u32>, Error> {
        let mut values = Vec::with_capacity(accesses.len());
        for accesses in accesses.chunks(MAX_ACCESSES) {
            let wanted = accesses.iter().filter(|access| !matches!(access, Access::Write { .. })).count();
            let read = self.registers(accesses.to_vec())?;
            if read.len() != wanted {
                let why = format!("it answered {wanted} reads by {} values", read.len());
                return Err(Error::Management { name: self.name.clone(), why });
            }
            values.extend(read);
        }
        Ok(values)
    }
}

/// The time until `deadline`.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Connects to a listening socket, which must accept within `patience`.
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
    fn a_device_that_accepts_no_connections_delays_callers_by_a_bounded_time() {
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
            // A byte now and then, until the caller closes.
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
