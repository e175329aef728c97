// SPDX-License-Identifier: Apache-2.0
//! The driver of the command mailbox of the RTL's management port: arguments, a command, its results.

use std::net::{IpAddr, Ipv6Addr};

use crate::map::management;
use crate::registers::PATIENCE;
use crate::{MAX_PRIVATE, QP_COUNTERS, Registers};

/// Addresses of the port's registers.
const COMMAND: u32 = management::COMMAND.at(management::BASE);
const STATUS: u32 = management::STATUS.at(management::BASE);
/// First word of private data.
const PRIVATE_AT: usize = 8;
/// First of the three words with the rest of an IPv6 address, whose last 32 bits have a word by the command.
const ADDRESS_AT: usize = 20;
/// In CONNECT's word with the port: the address is one of IPv6.
const CONNECT_IPV6: u32 = 1 << 16;

/// A command of the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)] // docs/reference/management.md has what each does
pub enum Command {
    QpReset = 3,
    QpResetAll = 4,
    QpQuery = 5,
    MrQuery = 12,
    Connect = 16,
    ConnAnswer = 17,
    Close = 18,
    Post = 24,
    PollCq = 25,
    PollEvent = 26,
    QpCounters = 27,
}

/// Why a command was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The port does not support it.
    #[error("the management port does not support the command")]
    Unknown,
    /// No such queue pair, or not one that this may be done to.
    #[error("there is no such queue pair")]
    BadQpn,
    /// The unit refused it.
    #[error("it was refused")]
    Refused,
    /// Nothing to poll.
    #[error("there is nothing to take")]
    Empty,
    /// No room now.
    #[error("there is no room now")]
    Full,
    /// It did not end.
    #[error("the management port does not answer")]
    Lost,
}

/// Arguments of a command: word and value.
pub type Args<'a> = &'a [(usize, u32)];

/// What can be polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attention {
    /// A completion.
    pub completion: bool,
    /// An event.
    pub event: bool,
}

/// Results of QP_QUERY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryWords {
    /// The first words.
    pub words: [u32; 9],
    /// The peer's address.
    pub peer: IpAddr,
}

/// Results of MR_QUERY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionWords(pub [u32; 7]);

/// Results of POLL_CQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletionWords {
    /// The queue pair.
    pub qpn: u32,
    /// `ibv_wc_status`.
    pub status: u32,
    /// `ibv_wc_opcode`; bit 3 is set for a receive.
    pub opcode: u32,
    /// Number of the work request.
    pub id: u32,
    /// Bytes received.
    pub length: u32,
    /// Immediate data received.
    pub immediate: Option<u32>,
}

/// Results of POLL_EVENT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventWords {
    /// Of a queue pair without connection management.
    pub asynchronous: bool,
    /// What happened.
    pub kind: u32,
    /// The queue pair.
    pub qpn: u32,
    /// Tag of the request to connect.
    pub tag: u32,
    /// Why it was refused or ended.
    pub reason: u32,
    /// The peer.
    pub peer: IpAddr,
    /// Its private data.
    pub private: Vec<u8>,
}

impl EventWords {
    /// Kind: a peer's REQ.
    pub const OPENED: u32 = 0;
    /// Kind: the peer has accepted.
    pub const ESTABLISHED: u32 = 1;
    /// Kind: the peer has rejected it, or does not answer.
    pub const REFUSED: u32 = 2;
    /// Kind: the connection is over.
    pub const CLOSED: u32 = 3;
    /// `reason` of [`Self::REFUSED`] and [`Self::CLOSED`]: the device no longer has the address that the connection used.
    pub const ADDRESS_LOST: u32 = 0xfffe;
    /// Reason: no answer.
    pub const UNREACHABLE: u32 = 0xffff;
}

/// The mailbox of the management port behind a device's registers.
#[derive(Debug)]
pub struct Mailbox<'a, R>(&'a mut R);

/// What a command gave: an error of the way to the registers, else of the command.
type Outcome<T, R> = Result<Result<T, CommandError>, <R as Registers>::Error>;

impl<'a, R: Registers> Mailbox<'a, R> {
    /// The mailbox of a device.
    pub fn new(registers: &'a mut R) -> Self {
        Self(registers)
    }

    /// Executes a command and waits for its end.
    ///
    /// # Errors
    /// Those of the registers; inside, those of the command.
    pub fn command(&mut self, command: Command, args: Args<'_>) -> Outcome<(), R> {
        for (word, value) in args {
            self.0.write(management::ARGUMENT.word(management::BASE, *word as u32), *value)?;
        }
        self.0.write(COMMAND, command as u32)?;
        for _ in 0..PATIENCE {
            let status = self.0.read(STATUS)?;
            if management::STATUS_BUSY.of(status) == 0 {
                return Ok(match management::STATUS_ERROR.of(status) {
                    0 => Ok(()),
                    2 => Err(CommandError::BadQpn),
                    3 => Err(CommandError::Refused),
                    4 => Err(CommandError::Empty),
                    5 => Err(CommandError::Full),
                    _ => Err(CommandError::Unknown),
                });
            }
        }
        Ok(Err(CommandError::Lost))
    }

    /// The first `N` results of the last command.
    ///
    /// # Errors
    /// Those of the registers.
    pub fn results<const N: usize>(&mut self) -> Result<[u32; N], R::Error> {
        let mut words = [0; N];
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.0.read(management::RESULT.word(management::BASE, index as u32))?;
        }
        Ok(words)
    }

    /// What waits.
    ///
    /// # Errors
    /// Those of the registers.
    pub fn attention(&mut self) -> Result<Attention, R::Error> {
        let status = self.0.read(STATUS)?;
        Ok(Attention {
            completion: management::STATUS_COMPLETION_WAITS.of(status) != 0,
            event: management::STATUS_EVENT_WAITS.of(status) != 0,
        })
    }

    /// Queries a queue pair; of one in RESET only the state.
    ///
    /// # Errors
    /// As [`Mailbox::command`].
    pub fn query(&mut self, qpn: u32) -> Outcome<QueryWords, R> {
        if let Err(error) = self.command(Command::QpQuery, &[(0, qpn)])? {
            return Ok(Err(error));
        }
        let [state] = self.results()?;
        if state == 0 {
            return Ok(Ok(QueryWords { words: [0; 9], peer: Ipv6Addr::UNSPECIFIED.into() }));
        }
        let words: [u32; 9] = self.results()?;
        Ok(Ok(QueryWords { words, peer: self.address(words[2])? }))
    }

    /// The address in the last results, of which these are the last 32 bits.
    fn address(&mut self, last: u32) -> Result<IpAddr, R::Error> {
        let mut bits = u128::from(last);
        for word in 0..3 {
            let value = self.0.read(management::RESULT.word(management::BASE, (ADDRESS_AT + word) as u32))?;
            bits |= u128::from(value) << (32 * (word + 1));
        }
        Ok(Ipv6Addr::from_bits(bits).to_canonical())
    }

    /// What a queue pair has counted, in the order of [`QP_COUNTERS`].
    ///
    /// # Errors
    /// As [`Mailbox::command`].
    pub fn counters(&mut self, qpn: u32) -> Outcome<[u32; QP_COUNTERS.len()], R> {
        match self.command(Command::QpCounters, &[(0, qpn)])? {
            Ok(()) => Ok(Ok(self.results()?)),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Looks at a place for a region: [`CommandError::Refused`] if none is there.
    ///
    /// # Errors
    /// As [`Mailbox::command`].
    pub fn region(&mut self, slot: u32) -> Outcome<RegionWords, R> {
        match self.command(Command::MrQuery, &[(0, slot)])? {
            Ok(()) => Ok(Ok(RegionWords(self.results()?))),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Takes a completion.
    ///
    /// # Errors
    /// As [`Mailbox::command`].
    pub fn completion(&mut self) -> Outcome<CompletionWords, R> {
        if let Err(error) = self.command(Command::PollCq, &[])? {
            return Ok(Err(error));
        }
        let [qpn, what, id, length, immediate] = self.results()?;
        Ok(Ok(CompletionWords {
            qpn,
            status: what & 0x1f,
            opcode: what >> 8 & 0xf,
            id,
            length,
            immediate: (what >> 12 & 1 == 1).then_some(immediate),
        }))
    }

    /// Takes an event.
    ///
    /// # Errors
    /// As [`Mailbox::command`].
    pub fn event(&mut self) -> Outcome<EventWords, R> {
        if let Err(error) = self.command(Command::PollEvent, &[])? {
            return Ok(Err(error));
        }
        let words: [u32; PRIVATE_AT + MAX_PRIVATE / 4] = self.results()?;
        Ok(Ok(EventWords {
            asynchronous: words[0] >> 4 & 1 == 1,
            kind: words[0] & 7,
            qpn: words[1],
            tag: words[2],
            reason: words[3],
            peer: self.address(words[4])?,
            private: words[PRIVATE_AT..].iter().flat_map(|word| word.to_be_bytes()).collect(),
        }))
    }
}

/// The arguments of CONNECT that say to whom.
#[must_use]
pub fn peer_args(peer: IpAddr, port: u16) -> Vec<(usize, u32)> {
    match peer.to_canonical() {
        IpAddr::V4(peer) => vec![(1, peer.to_bits()), (2, port.into())],
        IpAddr::V6(peer) => {
            let word = |index: usize| (peer.to_bits() >> (32 * index)) as u32;
            let rest = (0..3).map(|index| (ADDRESS_AT + index, word(index + 1)));
            [(1, word(0)), (2, u32::from(port) | CONNECT_IPV6)].into_iter().chain(rest).collect()
        }
    }
}

/// Private data as arguments; what is too long is cut off.
#[must_use]
pub fn private_args(private: &[u8]) -> Vec<(usize, u32)> {
    let mut bytes = [0; MAX_PRIVATE];
    let length = private.len().min(MAX_PRIVATE);
    bytes[..length].copy_from_slice(&private[..length]);
    let words = bytes.chunks_exact(4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    words.enumerate().map(|(index, word)| (PRIVATE_AT + index, word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const ARGUMENT: u32 = management::ARGUMENT.at(management::BASE);
    const RESULT: u32 = management::RESULT.at(management::BASE);
    const RESULT_END: u32 = RESULT + 4 * 23;

    /// Registers of a mailbox that is busy for a while, answers with a fixed error, and echoes its arguments as results.
    #[derive(Default)]
    struct Model {
        words: HashMap<u32, u32>,
        busy_for: u32,
        busy: u32,
        error: u32,
    }

    impl Registers for Model {
        type Error = ();

        fn read(&mut self, address: u32) -> Result<u32, ()> {
            match address {
                STATUS if self.busy > 0 => {
                    self.busy -= 1;
                    Ok(1)
                }
                STATUS => Ok(self.error << 8 | 0b1010),
                RESULT..RESULT_END => Ok(self.words.get(&(address - RESULT + ARGUMENT)).copied().unwrap_or_default()),
                _ => Err(()),
            }
        }

        fn write(&mut self, address: u32, value: u32) -> Result<(), ()> {
            assert_eq!(self.busy, 0, "nothing is written while a command is under way");
            if address == COMMAND {
                self.busy = self.busy_for;
            }
            self.words.insert(address, value);
            Ok(())
        }
    }

    #[test]
    fn a_command_is_waited_for_and_its_error_returned() {
        for busy_for in [0, 1, PATIENCE - 1] {
            let mut mailbox = Model { busy_for, ..Model::default() };
            let mut port = Mailbox::new(&mut mailbox);
            assert_eq!(port.command(Command::QpQuery, &[(0, 3), (1, 77)]), Ok(Ok(())));
            assert_eq!(port.results(), Ok([3, 77]));
            assert_eq!(port.attention(), Ok(Attention { completion: false, event: true }));
        }
        let mut dead = Model { busy_for: PATIENCE, ..Model::default() };
        assert_eq!(Mailbox::new(&mut dead).command(Command::QpQuery, &[]), Ok(Err(CommandError::Lost)));
        for (code, error) in [(2, CommandError::BadQpn), (3, CommandError::Refused), (5, CommandError::Full)] {
            let mut mailbox = Model { error: code, ..Model::default() };
            assert_eq!(Mailbox::new(&mut mailbox).query(2), Ok(Err(error)));
            assert_eq!(Mailbox::new(&mut mailbox).counters(2), Ok(Err(error)));
        }
    }

    #[test]
    fn addresses_of_both_versions_survive_the_words() {
        for text in ["10.0.0.1", "fe80::1:2:3:4", "2001:db8:1:2:3:4:5:6"] {
            let peer: IpAddr = text.parse().unwrap();
            let mut mailbox = Model::default();
            let args = peer_args(peer, 0x1234);
            let v6 = u32::from(peer.is_ipv6());
            assert_eq!(args[1], (2, v6 << 16 | 0x1234));
            // As results have it: all four words, those of IPv4 in mapped form.
            let mut echoed: Vec<_> = args[2..].to_vec();
            if v6 == 0 {
                echoed.extend([(ADDRESS_AT, 0xffff), (ADDRESS_AT + 1, 0), (ADDRESS_AT + 2, 0)]);
            }
            echoed.extend([(0, 1), (2, args[0].1), (4, args[0].1)]);
            let mut port = Mailbox::new(&mut mailbox);
            assert_eq!(port.command(Command::QpQuery, &echoed), Ok(Ok(())));
            assert_eq!(port.event().unwrap().unwrap().peer, peer);
            assert_eq!(port.address(args[0].1).unwrap(), peer);
        }
    }

    #[test]
    fn private_data_survive_the_words() {
        let mut mailbox = Model::default();
        let mut args = private_args(b"hello, world");
        args.extend([(0, 1), (1, 9), (2, 4), (3, 8), (4, 0x0a00_0001)]);
        let mut port = Mailbox::new(&mut mailbox);
        assert_eq!(port.command(Command::Connect, &args), Ok(Ok(())));
        let event = port.event().unwrap().unwrap();
        assert_eq!(&event.private[..13], b"hello, world\0");
        assert_eq!((event.kind, event.qpn, event.tag, event.reason), (EventWords::ESTABLISHED, 9, 4, 8));
        assert_eq!(event.peer, Ipv6Addr::from_bits(0x0a00_0001));
        assert_eq!(private_args(&[1; 60]).len(), 12);
    }
}
