// SPDX-License-Identifier: Apache-2.0
//! The management socket of a device: JSON lines, served between two steps of the device and never waited for.
//!
//! Whoever is served here is master of the device, so only its own user and root are. Of each client one request is served
//! between two steps.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use nacelle_link::{own_user, peer_user};
use nacelle_manage::{MAX_REQUEST, Reply, Request};

use crate::{DeviceError, Place};

/// Clients at a time; more are closed at once.
const MAX_CLIENTS: usize = 16;
/// Bytes read from one client in one turn.
const READ_SIZE: usize = 4096;

/// One client.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    /// Requests, or what is wrong with them, that have not been served.
    waiting: VecDeque<Result<Request, String>>,
    output: Vec<u8>,
}

/// The listening socket and its clients.
#[derive(Debug)]
pub struct Management {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

impl Management {
    /// Listens as `<wire>/<name>.ctl`. A socket that a killed device left there is replaced: the name is claimed.
    ///
    /// # Errors
    /// [`DeviceError::Io`] if the wire cannot be written.
    pub fn open<I>(place: &Place<I>) -> Result<Self, DeviceError> {
        let path = place.wire.file(&format!("{}.ctl", place.name));
        let what = || format!("listen at {}", path.display());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(DeviceError::io(what())(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(DeviceError::io(what()))?;
        listener.set_nonblocking(true).map_err(DeviceError::io(what()))?;
        Ok(Self { listener, path, clients: Vec::new() })
    }

    /// What to wait for: readable when there is something to do.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().filter(|client| client.output.is_empty());
        std::iter::once(self.listener.as_fd()).chain(clients.map(|client| client.stream.as_fd()))
    }

    /// Whether an answer waits to be taken: then look again soon.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.clients.iter().any(|client| !client.output.is_empty())
    }

    /// Serves one request of each client that has one. `answer` makes the answer, as a JSON value.
    pub fn turn(&mut self, mut answer: impl FnMut(Request) -> Reply<serde_json::Value>) {
        while let Ok((stream, _)) = self.listener.accept() {
            let user = peer_user(&stream);
            let allowed = user.is_ok_and(|user| user == 0 || user == own_user());
            if allowed && self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                let (input, waiting, output) = Default::default();
                self.clients.push(Client { stream, input, waiting, output });
            }
        }
        self.clients.retain_mut(|client| client.turn(&mut answer).is_ok());
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.path);
    }
}

impl Client {
    /// An error means: close it.
    fn turn(&mut self, answer: &mut impl FnMut(Request) -> Reply<serde_json::Value>) -> io::Result<()> {
        self.write()?;
        if !self.output.is_empty() {
            return Ok(());
        }
        let mut buffer = [0; READ_SIZE];
        while self.waiting.is_empty() {
            match self.stream.read(&mut buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.input.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.waiting.extend(requests(&mut self.input)?);
        }
        if let Some(request) = self.waiting.pop_front() {
            let reply = request.map_or_else(Reply::Error, answer);
            serde_json::to_writer(&mut self.output, &reply)?;
            self.output.push(b'\n');
        }
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(length) => drop(self.output.drain(..length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Takes the whole lines out of `input`, each as a request or as what is wrong with it. Empty lines are passed over.
///
/// # Errors
/// If a line does not end within [`MAX_REQUEST`] bytes.
fn requests(input: &mut Vec<u8>) -> io::Result<Vec<Result<Request, String>>> {
    let mut requests = Vec::new();
    let mut start = 0;
    while let Some(length) = input[start..].iter().position(|byte| *byte == b'\n') {
        let line = input[start..start + length].trim_ascii();
        if !line.is_empty() {
            requests.push(serde_json::from_slice(line).map_err(|error| format!("no request: {error}")));
        }
        start += length + 1;
    }
    input.drain(..start);
    if input.len() >= MAX_REQUEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(requests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_request() -> impl Strategy<Value = Request> {
        prop_oneof![
            Just(Request::Info {}),
            Just(Request::Stats {}),
            any::<u64>().prop_map(|since| Request::Trace { since }),
            "[ -~]{0,40}".prop_map(|path| Request::CaptureStart { path: path.into() }),
            Just(Request::CaptureStop {}),
            Just(Request::Shutdown {}),
        ]
    }

    proptest! {
        /// Requests come out as they went in, however the bytes are cut up.
        #[test]
        fn requests_survive_any_cuts(all in prop::collection::vec(any_request(), 0..8), cut in 1usize..50) {
            let lines: Vec<u8> = all.iter().flat_map(|request| {
                let mut line = serde_json::to_vec(request).unwrap();
                line.push(b'\n');
                line
            }).collect();
            let (mut input, mut got) = (Vec::new(), Vec::new());
            for piece in lines.chunks(cut) {
                input.extend_from_slice(piece);
                got.extend(requests(&mut input).unwrap().into_iter().map(Result::unwrap));
            }
            prop_assert_eq!(got, all);
            prop_assert!(input.is_empty());
        }

        /// Whatever comes, there is one answer for each line that is not empty, and nothing is kept beyond the bound.
        #[test]
        fn junk_is_answered_line_by_line(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
            let mut input = bytes.clone();
            let got = requests(&mut input).unwrap();
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
            prop_assert_eq!(got.len(), lines.count());
            prop_assert_eq!(&input[..], &bytes[whole..]);
        }
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        assert!(requests(&mut vec![b'x'; MAX_REQUEST]).is_err());
        assert!(requests(&mut vec![b'x'; MAX_REQUEST - 1]).is_ok());
        let unknown = requests(&mut b"{\"command\":\"dance\"}\n".to_vec()).unwrap();
        assert!(unknown[0].as_ref().is_err_and(|why| why.contains("dance")));
        let extra = requests(&mut b"{\"command\":\"info\",\"x\":1}\n".to_vec()).unwrap();
        assert!(extra[0].is_err());
    }
}
