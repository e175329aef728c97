// SPDX-License-Identifier: Apache-2.0
//! A device's registers over a UDP socket: [`Session`] with a socket and a clock.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use nacelle_wire::ipbus::{InfoCode, TransactionHeader, TransactionKind};

use crate::{Session, SessionConfig, SessionError};

/// Longest datagram that is received, in bytes.
const MAX_DATAGRAM: usize = 9216;

/// Why an access over the network failed.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// By the local system: no route, no permission.
    #[error("the network of this host: {0}")]
    Io(#[from] io::Error),
    /// By the protocol.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A register refused it.
    #[error("register {address:#07x}: {}", words(*.info))]
    Refused {
        /// Its address in bytes.
        address: u32,
        /// How.
        info: InfoCode,
    },
    /// The response is not one to the request.
    #[error("the device's response does not fit the request")]
    Malformed,
}

fn words(info: InfoCode) -> &'static str {
    match info {
        InfoCode::ReadError => "cannot be read: there is none, or it takes a login",
        InfoCode::WriteError => "cannot be written: there is none, it is read only, or it takes a login",
        InfoCode::ReadTimeout | InfoCode::WriteTimeout => "does not answer",
        InfoCode::BadHeader => "the device does not know such an access",
        InfoCode::Success | InfoCode::Request => "was answered with a code that makes no sense",
    }
}

/// One access to a register. Addresses count bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// Reads it.
    Read {
        /// Where.
        address: u32,
    },
    /// Writes it.
    Write {
        /// Where.
        address: u32,
        /// What.
        value: u32,
    },
    /// Writes `value & and | or`, as one access; gives the value before.
    Modify {
        /// Where.
        address: u32,
        /// Bits that stay.
        and: u32,
        /// Bits that are set.
        or: u32,
    },
}

impl Transaction {
    fn address(self) -> u32 {
        match self {
            Self::Read { address } | Self::Write { address, .. } | Self::Modify { address, .. } => address,
        }
    }

    fn put(self, id: u16, words: &mut Vec<u32>) {
        let header = |kind| TransactionHeader { id, words: 1, kind, info: InfoCode::Request }.to_word();
        let at = self.address() / 4;
        match self {
            Self::Read { .. } => words.extend([header(TransactionKind::Read), at]),
            Self::Write { value, .. } => words.extend([header(TransactionKind::Write), at, value]),
            Self::Modify { and, or, .. } => words.extend([header(TransactionKind::RmwBits), at, and, or]),
        }
    }
}

/// The registers of a device, over the network.
#[derive(Debug)]
pub struct Remote {
    socket: UdpSocket,
    begin: Instant,
    session: Session,
}

impl Remote {
    /// Asks the device at `address` for its status. Each access ends within `config.timeout * config.attempts` of the last response.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn connect(address: SocketAddr, config: SessionConfig) -> Result<Self, RemoteError> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        let mut remote = Self { socket, begin: Instant::now(), session: Session::new(config, Duration::ZERO) };
        while remote.session.max_words().is_none() {
            remote.session.poll_answer()?;
            remote.turn()?;
        }
        Ok(remote)
    }

    /// Does all `transactions` in order, each exactly once, as many in a packet as fit. Gives what the reads and modifications gave.
    ///
    /// # Errors
    /// The first that failed; those before it in the list are done, those behind it may be.
    pub fn transact(&mut self, transactions: &[Transaction]) -> Result<Vec<u32>, RemoteError> {
        // The longest of them has four words; the response is never longer than the request.
        let max_words = self.session.max_words().unwrap_or(0);
        let packets: Vec<&[Transaction]> = transactions.chunks(((max_words - 1) / 4).max(1)).collect();
        let requests = packets.iter().map(|packet| {
            let mut words = Vec::new();
            for (id, transaction) in packet.iter().enumerate() {
                transaction.put(id as u16, &mut words);
            }
            words
        });
        let answers = self.exchange(requests)?;
        let mut values = Vec::new();
        packets.iter().zip(answers).try_for_each(|(packet, answer)| take(packet, &answer, &mut values))?;
        Ok(values)
    }

    /// Writes the token of 16 bytes to the login register: from then on this client may access what takes a login.
    ///
    /// # Errors
    /// If it is not the device's token, or the device has none.
    pub fn log_in(&mut self, register: u32, token: [u8; 16]) -> Result<(), RemoteError> {
        let (words, _) = token.as_chunks::<4>();
        // One block: a device compares the whole token, or nothing.
        let header = TransactionHeader { id: 0, words: 4, kind: TransactionKind::Write, info: InfoCode::Request };
        let mut packet = vec![header.to_word(), register / 4];
        packet.extend(words.iter().map(|word| u32::from_be_bytes(*word)));
        let answers = self.exchange([packet])?;
        let answer = answers.first().map_or(&[][..], Vec::as_slice);
        take(&[Transaction::Write { address: register, value: 0 }], answer, &mut Vec::new())
    }

    /// Sends control packets, each as its words behind the header, and gives the responses in the same form. Neither may be longer than
    /// the device takes.
    ///
    /// # Errors
    /// If the session ends.
    pub fn exchange(&mut self, packets: impl IntoIterator<Item = Vec<u32>>) -> Result<Vec<Vec<u32>>, RemoteError> {
        for packet in packets {
            self.session.send(packet, self.begin.elapsed());
        }
        (0..self.session.outstanding()).map(|_| self.answer()).collect()
    }

    fn answer(&mut self) -> Result<Vec<u32>, RemoteError> {
        loop {
            if let Some(answer) = self.session.poll_answer()? {
                return Ok(answer);
            }
            self.turn()?;
        }
    }

    /// Sends what there is to send, and waits for a datagram or for the deadline.
    fn turn(&mut self) -> Result<(), RemoteError> {
        while let Some(datagram) = self.session.poll_transmit() {
            match self.socket.send(&datagram) {
                Ok(_) => {}
                // An ICMP message about an earlier datagram: as lost as any other.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
        let Some(deadline) = self.session.deadline() else { return Ok(()) };
        let left = deadline.saturating_sub(self.begin.elapsed()).max(Duration::from_micros(1));
        self.socket.set_read_timeout(Some(left))?;
        let mut buffer = [0; MAX_DATAGRAM];
        match self.socket.recv(&mut buffer) {
            Ok(length) => self.session.receive(&buffer[..length], self.begin.elapsed()),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::TimedOut
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => return Err(error.into()),
        }
        self.session.timeout(self.begin.elapsed());
        Ok(())
    }
}

/// Takes the values out of the response to `packet`.
fn take(packet: &[Transaction], answer: &[u32], values: &mut Vec<u32>) -> Result<(), RemoteError> {
    let mut rest = answer;
    for (id, transaction) in packet.iter().enumerate() {
        let (word, behind) = rest.split_first().ok_or(RemoteError::Malformed)?;
        let header = TransactionHeader::from_word(*word)
            .filter(|header| usize::from(header.id) == id)
            .ok_or(RemoteError::Malformed)?;
        if header.info != InfoCode::Success {
            return Err(RemoteError::Refused { address: transaction.address(), info: header.info });
        }
        rest = match transaction {
            Transaction::Write { .. } => behind,
            Transaction::Read { .. } | Transaction::Modify { .. } => {
                let (value, behind) = behind.split_first().ok_or(RemoteError::Malformed)?;
                values.push(*value);
                behind
            }
        };
    }
    Ok(())
}
