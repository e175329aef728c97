// SPDX-License-Identifier: Apache-2.0
//! The device's management socket, where the suite finds one on the wire: it makes the device open connections, and shows what it holds.

use crate::Failure;
use core::{net::Ipv4Addr, time::Duration};
use nacelle_link::WireDir;
use nacelle_manage::admission::{Admission, AdmissionError, NewEntry};
use nacelle_manage::{
    Access, Bytes, Control, DeviceKind, Done, Progress, QueuePair, QueuePairCounters, Request, Work, discover, map,
};

/// Register of the RTL: milliseconds of silence after which a connection is tried.
const KEEPALIVE_MS: u32 = map::device::KEEPALIVE_MS.at(map::device::BASE);

/// Management of the device that is judged.
pub(crate) struct Manage {
    control: Control,
    kind: DeviceKind,
    clock_hz: u32,
}

/// What a device holds for callers, as far as it shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holdings {
    /// Queue pairs that are not in RESET.
    pub(crate) queue_pairs: usize,
    /// Memory regions.
    pub(crate) regions: usize,
    /// Memory in bytes.
    pub(crate) bytes: Option<u64>,
    /// Callers of the service.
    pub(crate) callers: Option<u64>,
}

impl Manage {
    /// That of the device with this address, if it has one on this wire.
    pub(crate) fn find(wire: &WireDir, device: Ipv4Addr) -> Option<Self> {
        let found = discover::list(wire).into_iter().find(|found| found.alive && found.device.ip == device)?;
        let control = Control::open(wire, &found.device.name).ok()?;
        Some(Self { control, kind: found.device.kind, clock_hz: found.device.clock_hz })
    }

    /// Shortens the device's keep-alive time, where it can be set; returns the time that was set before.
    ///
    /// # Errors
    /// Management does not answer.
    pub(crate) fn keep_alive(&mut self, milliseconds: u32) -> Result<Option<u32>, Failure> {
        if self.kind != DeviceKind::Rtl {
            return Ok(None);
        }
        let write = Access::Write { address: KEEPALIVE_MS, value: milliseconds };
        let before = self.control.registers(vec![Access::Read { address: KEEPALIVE_MS }, write]);
        Ok(before.map_err(failed)?.first().copied())
    }

    /// The device's own time, which passes more slowly than ours where it is simulated.
    ///
    /// # Errors
    /// Management does not answer.
    pub(crate) fn time(&mut self) -> Result<Duration, Failure> {
        let cycles = self.control.stats().map_err(failed)?.cycles;
        Ok(Duration::from_secs_f64(cycles as f64 / f64::from(self.clock_hz.max(1))))
    }

    /// Whether the device is simulated, and its time is not ours.
    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == DeviceKind::Rtl
    }

    /// What the device holds for callers.
    ///
    /// # Errors
    /// Management does not answer.
    pub(crate) fn holdings(&mut self) -> Result<Holdings, Failure> {
        let counters = self.control.stats().map_err(failed)?.counters;
        Ok(Holdings {
            queue_pairs: self.control.queue_pairs().map_err(failed)?.len(),
            regions: self.control.regions().map_err(failed)?.len(),
            bytes: counters.get("memory.bytes_held").copied(),
            callers: counters.get("rpc.callers").copied(),
        })
    }

    /// The queue pairs that the device has now.
    ///
    /// # Errors
    /// Management does not answer.
    pub(crate) fn queue_pairs(&mut self) -> Result<Vec<QueuePair>, Failure> {
        self.control.queue_pairs().map_err(failed)
    }

    /// Lets the device open a connection with this path MTU in bytes, or its default. Returns the connection's number.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn connect(&mut self, peer: Ipv4Addr, port: u16, mtu: Option<u16>) -> Result<u16, Failure> {
        self.control.ask(&Request::Connect { peer: peer.into(), port, private: Bytes::default(), mtu }).map_err(failed)
    }

    /// Posts a work request on such a connection.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn post(&mut self, connection: u16, work: Work) -> Result<(), Failure> {
        self.control.ask::<Done>(&Request::Post { connection, work }).map(|_| ()).map_err(failed)
    }

    /// Timeouts of a queue pair so far.
    ///
    /// # Errors
    /// There is no such queue pair.
    pub(crate) fn timeouts(&mut self, qpn: u32) -> Result<u64, Failure> {
        let all: Vec<QueuePairCounters> =
            self.control.ask(&Request::QueuePairCounters { qpn: Some(qpn) }).map_err(failed)?;
        let count = all.first().and_then(|one| one.counters.get("local_ack_timeout_err"));
        count.copied().ok_or(Failure::Missing("count of timeouts"))
    }

    /// What has become of it.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn poll(&mut self, connection: u16) -> Result<Progress, Failure> {
        self.control.ask(&Request::Poll { connection }).map_err(failed)
    }

    /// The entries by which callers are admitted.
    ///
    /// # Errors
    /// The device has none.
    fn admission(&mut self) -> Result<Admission<'_, Control>, Failure> {
        Admission::new(&mut self.control).map_err(|_| Failure::NotTried("the device has no admission of callers"))
    }

    /// Turns admission on or off.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn turn_admission(&mut self, on: bool) -> Result<(), Failure> {
        self.admission()?.turn(on).map_err(not_done)
    }

    /// Turns admission off, and removes all entries.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn admit_all(&mut self) -> Result<(), Failure> {
        let mut table = self.admission()?;
        table.turn(false).map_err(not_done)?;
        for entry in table.entries().map_err(not_done)? {
            table.remove(entry.number).map_err(not_done)?;
        }
        Ok(())
    }

    /// Makes an entry, and returns its number.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn admit(&mut self, entry: &NewEntry) -> Result<u8, Failure> {
        self.admission()?.add(entry).map_err(not_done)
    }

    /// Revokes an entry.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn revoke(&mut self, number: u8) -> Result<(), Failure> {
        self.admission()?.revoke(number).map_err(not_done)
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// Management refuses, or its connections do not end.
    pub(crate) fn remove_entry(&mut self, number: u8) -> Result<(), Failure> {
        self.admission()?.remove(number).map_err(not_done)
    }

    /// Tries to read a word of the token of an entry.
    ///
    /// # Errors
    /// It cannot be read, which is right.
    pub(crate) fn read_token(&mut self, number: u8, word: u8) -> Result<u32, Failure> {
        let first = map::admission::TOKEN_0.at(map::admission::BASE);
        let address = first + u32::from(word) * 0x40 + 4 * u32::from(number);
        Ok(self.control.registers(vec![Access::Read { address }]).map_err(failed)?[0])
    }

    /// Lets the device close it.
    ///
    /// # Errors
    /// Management refuses.
    pub(crate) fn close(&mut self, connection: u16) -> Result<(), Failure> {
        self.control.ask::<Done>(&Request::Close { connection }).map(|_| ()).map_err(failed)
    }
}

fn not_done(error: AdmissionError<nacelle_manage::Error>) -> Failure {
    Failure::Content(format!("admission: {error}"))
}

fn failed(error: nacelle_manage::Error) -> Failure {
    Failure::Content(format!("management: {error}"))
}
