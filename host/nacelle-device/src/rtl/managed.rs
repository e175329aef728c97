// SPDX-License-Identifier: Apache-2.0
//! Management of the simulated RTL, through its management port: what the port says in words is made into what people ask for.
//!
//! The connections that it opens are those of client 1. Each uses the memory that the device has for messages of its queue pair, and
//! that the RPC engine uses for its own queue pairs only: a message to receive at the start, what is sent or read behind it.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;

use nacelle_manage::map::{Register, device};
use nacelle_manage::{
    Access, Bytes, Command, CommandError, Completion, CompletionWords, ConnectionState, Digest, EventWords,
    KernelSocket, MAX_MESSAGE, MAX_PRIVATE, Mailbox, Manage, MemoryRegion, Opened, Owner, Progress, QpState,
    QueryWords, QueuePair, QueuePairCounters, Refusal, RegionWords, Registers, Reset, Work, access, access_names,
    peer_args, private_args,
};
use nacelle_roce::WcStatus;
use nacelle_wire::cm::{PathMtu, RejReason};

use super::RtlEngine;
use crate::{DeviceError, Sim};

/// Number of the first queue pair.
const FIRST_QPN: u32 = 2;
/// Connections that management has at a time.
const MAX_MANAGED: usize = 16;
/// How they are opened: an ACK is waited for 4.096 µs * 2^16 = 0.27 s; up to 7 and 6 tries again.
const TIMEOUT: u32 = 16;
const RETRY_COUNT: u32 = 7;
const RNR_RETRY: u32 = 6;
/// Their protection domain: that of client 1, not the service's.
const DOMAIN: u32 = 1;
/// Access of the peer: remote write, so that the zero-length WRITE of its keep-alive is acknowledged.
const REMOTE_WRITE: u32 = 1;
/// READs at once: there is one work request at a time.
const INITIATOR_DEPTH: u32 = 1;
/// Verbs (`ibv_wr_opcode`; 15 is a receive), and the bit that asks for a completion.
const WRITE: u32 = 0;
const SEND: u32 = 2;
const READ: u32 = 4;
const RECEIVE: u32 = 15;
const SIGNALED: u32 = 1 << 4;
const SOLICITED: u32 = 1 << 5;
/// The L_Key that stands for all device memory; the management port may use it.
const LOCAL_DMA_LKEY: u32 = 0;

/// One connection that management opened.
struct Managed {
    state: ConnectionState,
    opened: Option<Opened>,
    receiving: bool,
    sending: bool,
    /// Length of the outstanding READ in bytes; 0 if the work request is another.
    reads: usize,
    completions: Vec<Completion>,
}

impl Managed {
    /// Its queue pair, while it is established.
    fn qpn(&self) -> Option<u32> {
        let live = self.state == ConnectionState::Established;
        self.opened.as_ref().filter(|_| live).map(|opened| opened.qpn)
    }
}

/// Device memory for the messages of the queue pairs, each with as many bytes.
#[derive(Clone, Copy)]
struct MessageMemory {
    first: u64,
    bytes: u64,
}

impl MessageMemory {
    fn of(sim: &mut Sim) -> Result<Self, DeviceError> {
        let mut read = |register: Register| sim.reg_read(register.at(device::BASE));
        let first = u64::from(read(device::MESSAGES_HI)?) << 32 | u64::from(read(device::MESSAGES_LO)?);
        let bytes = read(device::MESSAGES_BYTES)?;
        if u64::from(bytes) < 2 * MAX_MESSAGE as u64 {
            return Err(DeviceError::Identity { address: device::MESSAGES_BYTES.at(device::BASE), value: bytes });
        }
        Ok(Self { first, bytes: bytes.into() })
    }

    /// Where a queue pair receives a message.
    fn received(&self, qpn: u32) -> u64 {
        self.first + u64::from(qpn - FIRST_QPN) * self.bytes
    }

    /// Where what it sends or reads is.
    fn sent(&self, qpn: u32) -> u64 {
        self.received(qpn) + MAX_MESSAGE as u64
    }
}

/// The connections that management opened, by their tags.
pub(super) struct ManagedTable {
    connections: HashMap<u16, Managed>,
    next: u16,
    memory: MessageMemory,
}

impl ManagedTable {
    /// None yet.
    pub(super) fn new(sim: &mut Sim) -> Result<Self, DeviceError> {
        Ok(Self { connections: HashMap::new(), next: 0, memory: MessageMemory::of(sim)? })
    }

    fn get(&mut self, number: u16) -> Result<&mut Managed, Refusal> {
        self.connections.get_mut(&number).ok_or_else(|| Refusal::no_connection(number))
    }

    /// The live one with this queue pair.
    fn with_qpn(&mut self, qpn: u32) -> Option<&mut Managed> {
        self.connections.values_mut().find(|managed| managed.qpn() == Some(qpn))
    }
}

impl Registers for Sim {
    type Error = DeviceError;

    fn read(&mut self, address: u32) -> Result<u32, DeviceError> {
        self.reg_read(address)
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), DeviceError> {
        self.reg_write(address, value)
    }
}

impl From<DeviceError> for Refusal {
    fn from(error: DeviceError) -> Self {
        Self(error.to_string())
    }
}

fn refused(error: CommandError) -> Refusal {
    Refusal(error.to_string())
}

impl RtlEngine {
    fn port(&mut self) -> Mailbox<'_, Sim> {
        Mailbox::new(&mut self.sim)
    }

    /// Takes every completion and event that waits, and gives it to its connection.
    fn catch_up(&mut self) -> Result<(), Refusal> {
        loop {
            let waits = self.port().attention()?;
            if waits.event {
                let event = self.port().event()?.map_err(refused)?;
                // A connection's end comes behind its completions, which are in another queue.
                self.take_completions()?;
                self.note(event)?;
            } else if waits.completion {
                self.take_completions()?;
            } else {
                return Ok(());
            }
        }
    }

    fn take_completions(&mut self) -> Result<(), Refusal> {
        while self.port().attention()?.completion {
            let completion = self.port().completion()?.map_err(refused)?;
            self.complete(completion)?;
        }
        Ok(())
    }

    fn note(&mut self, event: EventWords) -> Result<(), Refusal> {
        if event.asynchronous {
            return Ok(()); // of a queue pair without connection management, which shows its state
        }
        let text = |reason: u32| RejReason(reason as u16).text().to_owned();
        let private = Bytes::trimmed(&event.private);
        match event.kind {
            // Management does not accept connections.
            EventWords::OPENED => {
                self.port().command(Command::ConnAnswer, &[(0, event.qpn), (1, 0)])?.map_err(refused)?;
            }
            EventWords::ESTABLISHED => match self.managed.connections.get_mut(&(event.tag as u16)) {
                Some(managed) if !managed.state.is_over() => {
                    managed.state = ConnectionState::Established;
                    managed.opened = Some(Opened { qpn: event.qpn, private });
                }
                // The client that requested it has gone, or has aborted it.
                _ => self.port().command(Command::Close, &[(0, event.qpn)])?.map_err(refused)?,
            },
            EventWords::REFUSED => {
                if let Some(managed) = self.managed.connections.get_mut(&(event.tag as u16)) {
                    managed.state = match event.reason {
                        EventWords::UNREACHABLE => ConnectionState::Unreachable,
                        EventWords::ADDRESS_LOST => ConnectionState::AddressLost,
                        reason => ConnectionState::Refused { reason: reason as u16, text: text(reason), private },
                    };
                }
            }
            _ => {
                if let Some(managed) = self.managed.with_qpn(event.qpn) {
                    managed.state = match event.reason {
                        EventWords::ADDRESS_LOST => ConnectionState::AddressLost,
                        _ => ConnectionState::Closed,
                    };
                }
            }
        }
        Ok(())
    }

    fn complete(&mut self, completion: CompletionWords) -> Result<(), Refusal> {
        let receive = completion.opcode & 8 != 0;
        let ok = completion.status == 0;
        let qpn = completion.qpn;
        let (received, sent) = (self.managed.memory.received(qpn), self.managed.memory.sent(qpn));
        let Some(managed) = self.managed.with_qpn(qpn) else { return Ok(()) };
        let (place, length) = match completion.opcode {
            8 => (received, (completion.length as usize).min(MAX_MESSAGE)),
            opcode if opcode < 8 => (sent, managed.reads),
            _ => (received, 0), // a WRITE with immediate
        };
        let mut data = vec![0; if ok { length } else { 0 }];
        self.sim.dram_read(place, &mut data)?;
        let busy = if receive { &mut managed.receiving } else { &mut managed.sending };
        *busy = false;
        managed.completions.push(Completion {
            receive,
            ok,
            status: status_text(completion.status),
            data: Bytes(data),
            immediate: completion.immediate,
        });
        Ok(())
    }
}

/// `ibv_wc_status` in words.
fn status_text(code: u32) -> String {
    let status = match code {
        0 => WcStatus::Success,
        1 => WcStatus::LocLenErr,
        4 => WcStatus::LocProtErr,
        5 => WcStatus::WrFlushErr,
        7 => WcStatus::BadRespErr,
        9 => WcStatus::RemInvReqErr,
        10 => WcStatus::RemAccessErr,
        11 => WcStatus::RemOpErr,
        12 => WcStatus::RetryExceeded,
        13 => WcStatus::RnrRetryExceeded,
        2 => return "local QP operation error".into(),
        _ => return "general error".into(),
    };
    status.to_string()
}

fn queue_pair(qpn: u32, QueryWords { words, peer }: QueryWords) -> Option<QueuePair> {
    let state = QpState::from_code(words[0]).filter(|state| *state != QpState::Reset)?;
    let owner = match words[1] >> 8 & 3 {
        0 => Owner::Service,
        1 => Owner::Management,
        _ => Owner::Kernel,
    };
    Some(QueuePair {
        qpn,
        state,
        peer: (!peer.is_unspecified()).then_some(peer),
        peer_qpn: (words[3] != 0).then_some(words[3]),
        owner,
        unmanaged: words[1] >> 16 & 1 == 1,
        domain: words[1] & 0xff,
        next_psn: words[4],
        oldest_psn: words[5],
        rate_limit: (words[6] >> 31 == 1).then(|| f64::from(words[7]) / 16.0),
    })
}

fn region(RegionWords(words): RegionWords) -> MemoryRegion {
    MemoryRegion {
        address: u64::from(words[4]) << 32 | u64::from(words[3]),
        length: u64::from(words[6]) << 32 | u64::from(words[5]),
        access: access_names(words[1] >> 8 & 0xf),
        qpn: (words[2] != 0).then_some(words[2]),
        domain: Some(words[1] & 0xff),
    }
}

impl Manage for RtlEngine {
    fn queue_pairs(&mut self) -> Result<Vec<QueuePair>, Refusal> {
        let count = self.sim.reg_read(device::QPS.at(device::BASE))?;
        let mut pairs = Vec::new();
        for qpn in FIRST_QPN..FIRST_QPN + count {
            pairs.extend(queue_pair(qpn, self.port().query(qpn)?.map_err(refused)?));
        }
        Ok(pairs)
    }

    fn queue_pair_counters(&mut self, qpn: Option<u32>) -> Result<Vec<QueuePairCounters>, Refusal> {
        let qpns = match qpn {
            Some(qpn) => vec![qpn],
            None => self.queue_pairs()?.into_iter().map(|pair| pair.qpn).collect(),
        };
        let mut all = Vec::new();
        for qpn in qpns {
            match self.port().counters(qpn)? {
                Ok(words) => all.push(QueuePairCounters::new(qpn, words.map(u64::from))),
                Err(CommandError::BadQpn) => return Err(Refusal::no_queue_pair(qpn)),
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(all)
    }

    fn reset(&mut self, qpn: Option<u32>) -> Result<Reset, Refusal> {
        let mut port = self.port();
        let outcome = match qpn {
            Some(qpn) => port.command(Command::QpReset, &[(0, qpn)])?,
            None => port.command(Command::QpResetAll, &[])?,
        };
        match (outcome, qpn) {
            (Err(CommandError::BadQpn), Some(qpn)) => return Err(Refusal::no_queue_pair(qpn)),
            (outcome, _) => outcome.map_err(refused)?,
        }
        let [closing] = port.results()?;
        Ok(Reset { closing: closing != 0 })
    }

    fn regions(&mut self) -> Result<Vec<MemoryRegion>, Refusal> {
        let mut regions = Vec::new();
        for slot in 0..self.sim.reg_read(device::MRS.at(device::BASE))? {
            match self.port().region(slot)? {
                Ok(words) => regions.push(region(words)),
                Err(CommandError::Refused) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Ok(regions)
    }

    fn domains(&mut self) -> Result<Vec<u32>, Refusal> {
        let pairs = self.queue_pairs()?.into_iter().map(|pair| pair.domain);
        let regions = self.regions()?.into_iter().filter_map(|region| region.domain);
        Ok(pairs.chain(regions).collect::<BTreeSet<_>>().into_iter().collect())
    }

    fn kernels(&mut self) -> Result<Vec<KernelSocket>, Refusal> {
        self.kernel_sockets()
    }

    fn activate_kernel(&mut self, socket: u16, image: u8, digest: Digest) -> Result<(), Refusal> {
        self.begin_change(socket, Some((image, digest)))
    }

    fn roll_back_kernel(&mut self, socket: u16) -> Result<(), Refusal> {
        self.begin_change(socket, None)
    }

    fn cut_kernel(&mut self, socket: u16) -> Result<(), Refusal> {
        self.cut_job(socket)
    }

    fn connect(&mut self, peer: IpAddr, port: u16, mtu: PathMtu, private: &[u8]) -> Result<u16, Refusal> {
        if private.len() > MAX_PRIVATE {
            return Err(Refusal(format!("private data have at most {MAX_PRIVATE} bytes")));
        }
        self.catch_up()?;
        // A client that has gone away has not asked what became of its connection.
        if self.managed.connections.len() >= MAX_MANAGED {
            self.managed.connections.retain(|_, managed| !managed.state.is_over());
        }
        if self.managed.connections.len() >= MAX_MANAGED {
            return Err(Refusal(format!("it has {MAX_MANAGED} connections of its own already")));
        }
        while self.managed.connections.contains_key(&self.managed.next) {
            self.managed.next = self.managed.next.wrapping_add(1);
        }
        let tag = self.managed.next;
        self.managed.next = tag.wrapping_add(1);
        let mut args = vec![
            (0, tag.into()),
            (3, u32::from(mtu.code()) << 12 | REMOTE_WRITE << 8 | DOMAIN),
            (4, RNR_RETRY << 12 | RETRY_COUNT << 8 | TIMEOUT),
            (5, INITIATOR_DEPTH << 8),
        ];
        args.extend(peer_args(peer, port));
        args.extend(private_args(private));
        self.port().command(Command::Connect, &args)?.map_err(refused)?;
        let managed = Managed {
            state: ConnectionState::Connecting,
            opened: None,
            receiving: false,
            sending: false,
            reads: 0,
            completions: Vec::new(),
        };
        self.managed.connections.insert(tag, managed);
        Ok(tag)
    }

    fn post(&mut self, connection: u16, work: Work) -> Result<(), Refusal> {
        work.check()?;
        self.catch_up()?;
        let memory = self.managed.memory;
        let managed = self.managed.get(connection)?;
        let Some(qpn) = managed.qpn() else { return Err(Refusal("the connection is not established".into())) };
        let busy = if matches!(work, Work::Receive {}) { &mut managed.receiving } else { &mut managed.sending };
        if *busy {
            return Err(Refusal("the last work of this kind has not completed".into()));
        }
        let (received, sent) = (memory.received(qpn), memory.sent(qpn));
        let (opcode, place, length, address, rkey) = match work {
            Work::Receive {} => (RECEIVE, received, MAX_MESSAGE, 0, 0),
            Work::Send { data } => {
                self.sim.dram_write(sent, &data.0)?;
                (SEND | SIGNALED | SOLICITED, sent, data.0.len(), 0, 0)
            }
            Work::Write { data, address, rkey } => {
                self.sim.dram_write(sent, &data.0)?;
                (WRITE | SIGNALED, sent, data.0.len(), address, rkey)
            }
            Work::Read { address, rkey, length } => (READ | SIGNALED, sent, length as usize, address, rkey),
        };
        let args = [
            (0, qpn),
            (1, opcode),
            (2, 0),
            (3, place as u32),
            (4, (place >> 32) as u32),
            (5, length as u32),
            (6, address as u32),
            (7, (address >> 32) as u32),
            (8, rkey),
            (14, LOCAL_DMA_LKEY),
        ];
        Mailbox::new(&mut self.sim).command(Command::Post, &args)?.map_err(refused)?;
        *busy = true;
        if opcode != RECEIVE {
            managed.reads = if opcode == READ | SIGNALED { length } else { 0 };
        }
        Ok(())
    }

    fn poll(&mut self, connection: u16) -> Result<Progress, Refusal> {
        self.catch_up()?;
        let managed = self.managed.get(connection)?;
        let completions = std::mem::take(&mut managed.completions);
        let progress = Progress { state: managed.state.clone(), opened: managed.opened.clone(), completions };
        if progress.state.is_over() {
            self.managed.connections.remove(&connection);
        }
        Ok(progress)
    }

    fn close(&mut self, connection: u16) -> Result<(), Refusal> {
        self.catch_up()?;
        let managed = self.managed.get(connection)?;
        if let Some(qpn) = managed.qpn() {
            self.port().command(Command::Close, &[(0, qpn)])?.map_err(refused)?;
        } else if managed.state == ConnectionState::Connecting {
            // The port can close only what has a queue pair. Its answer is closed when it comes.
            managed.state = ConnectionState::Closed;
        }
        Ok(())
    }

    fn registers(&mut self, accesses: &[Access]) -> Result<Vec<u32>, Refusal> {
        Ok(access(&mut self.sim, accesses)?)
    }
}
