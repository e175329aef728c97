// SPDX-License-Identifier: Apache-2.0
//! perftest's server: answers whatever the client says in the exchange by the same of its own.

use super::{
    EXCHANGE_SLOTS, Plan, Remote, Test, Tool,
    exchange::{Dest, LONGEST, VERSION},
};
use crate::{
    failure::{Failure, Outcome, check},
    station::{Inbox, Station},
};
use nacelle_roce::{
    Completion, ConnId, ConnectOptions, DisconnectReason, Event, RecvWr, SendWr, WcOpcode, WcStatus,
    wire::{RemoteAddr, Rkey},
};

/// Receives posted for the test.
const RECEIVES: u32 = 512;

/// How far the session is.
struct Session<'a> {
    plan: &'a Plan,
    control: ConnId,
    inbox: Inbox,
    test: Option<Test>,
    remote: Option<Remote>,
    /// Destinations taken.
    met: u32,
    /// Messages of the test received, and sent.
    received: u32,
    sent: u32,
    /// Connections ended by the client.
    ended: u32,
}

/// The server's side of a whole session.
pub(crate) fn server(s: &mut Station, plan: &Plan) -> Outcome {
    s.ep().transport.listen(plan.port);
    let (control, peer) = s.request()?;
    let inbox = Inbox::post(s.ep(), control, EXCHANGE_SLOTS, LONGEST)?;
    s.accept(control, ConnectOptions { rnr_retry: 7, ..ConnectOptions::default() })?;
    println!("ok: {peer} has connected");
    let (test, remote) = (None, None);
    let mut session = Session { plan, control, inbox, test, remote, met: 0, received: 0, sent: 0, ended: 0 };
    s.until("serving the client", |s| {
        while let Some(event) = s.poll_event() {
            session.handle(s, event)?;
        }
        session.look_at_memory(s)?;
        Ok((session.ended == 2).then_some(()))
    })?;
    session.judge(s)
}

impl Session<'_> {
    fn handle(&mut self, s: &mut Station, event: Event) -> Outcome {
        match event {
            Event::ConnectRequest { conn, .. } => self.accept_test(s, conn),
            Event::Connected { .. } => Ok(()),
            Event::ConnectFailed { reason, .. } => Err(Failure::Connect(reason)),
            Event::Completion(c) if c.status == WcStatus::WrFlushErr => Ok(()),
            Event::Completion(c) if c.status != WcStatus::Success => Err(Failure::Work(c)),
            Event::Completion(c) if c.conn == self.control && c.opcode == WcOpcode::Recv => self.answer(s, &c),
            Event::Completion(c) if c.opcode == WcOpcode::Recv => self.take_message(s, &c),
            Event::Completion(_) => Ok(()),
            Event::Disconnected { conn, reason, stats, .. } => {
                if let DisconnectReason::Error(_) = reason {
                    return Err(Failure::Ended(reason));
                }
                self.ended += 1;
                if conn != self.control {
                    self.check_traffic(stats.rx_payload, stats.counters.duplicate_request)?;
                }
                Ok(())
            }
            other => Err(Failure::Wrong(format!("unexpected {other:?}"))),
        }
    }

    fn accept_test(&mut self, s: &mut Station, conn: ConnId) -> Outcome {
        check(self.test.is_none(), || "a third connection".into())?;
        let region = s.ep().transport.register(vec![0; self.plan.memory()], self.plan.tool.access(), Some(conn))?;
        if self.plan.tool.is_send() {
            for _ in 0..RECEIVES.min(self.plan.iterations) {
                s.ep().transport.post_recv(conn, RecvWr { id: 0, slice: Some(region.slice(0, self.plan.size)) })?;
            }
        }
        let now = s.now();
        s.ep().transport.accept(now, conn, self.plan.tool.options())?;
        self.test = Some(Test { conn, region });
        Ok(())
    }

    /// Answers a message of the exchange.
    fn answer(&mut self, s: &mut Station, c: &Completion) -> Outcome {
        let said = self.inbox.take(s, c)?;
        let answer = match said.len() {
            16 => {
                let version = String::from_utf8_lossy(&said).trim_end_matches('\0').to_owned();
                println!("ok: the client has version {version} of the exchange");
                VERSION.to_vec()
            }
            // Page size, cache line size, path MTU, a number of the report.
            2 | 4 | 8 => said,
            LONGEST => {
                let theirs = Dest::parse(&said)?;
                self.met += 1;
                if theirs.is_known() && self.remote.is_none() {
                    self.remote = Some(Remote { addr: RemoteAddr(theirs.vaddr), rkey: Rkey(theirs.rkey) });
                }
                self.own_dest(s, &theirs).bytes()
            }
            len => return Err(Failure::Wrong(format!("{len} bytes in the exchange: {said:02x?}"))),
        };
        s.ep().transport.post_send(self.control, SendWr::send(1 << 32, answer))?;
        // With the first real destination everything is known; in ib_write_lat the server begins.
        if self.plan.tool == Tool::WriteLat && self.sent == 0 && self.remote.is_some() {
            self.write_back(s)?;
        }
        Ok(())
    }

    fn own_dest(&self, s: &mut Station, theirs: &Dest) -> Dest {
        let Some(test) = self.test.as_ref().filter(|_| theirs.is_known()) else { return Dest::default() };
        let qpn = s.ep().transport.connection(test.conn).map_or(0, |info| info.local_qpn.get());
        let (rkey, vaddr) = (test.region.rkey.0, test.region.addr.0);
        Dest { out_reads: theirs.out_reads.min(16), qpn, psn: 0, rkey, vaddr, ip: Some(s.ep().interface.ip()) }
    }

    /// A message of the test has come by SEND.
    fn take_message(&mut self, s: &mut Station, c: &Completion) -> Outcome {
        let Some(test) = &self.test else { return Ok(()) };
        check(c.byte_len == self.plan.size, || format!("a message has {} bytes", c.byte_len))?;
        self.received += 1;
        s.ep().transport.post_recv(test.conn, RecvWr { id: 0, slice: Some(test.region.slice(0, self.plan.size)) })?;
        if self.plan.tool.is_latency() {
            s.ep().transport.post_send(test.conn, SendWr::send(1 << 32, vec![self.received as u8; self.plan.size]))?;
            self.sent += 1;
        }
        Ok(())
    }

    /// In ib_write_lat the last byte of each message is its number, by which its arrival is detected.
    fn look_at_memory(&mut self, s: &mut Station) -> Outcome {
        let Some(test) = self.test.as_ref().filter(|_| self.plan.tool == Tool::WriteLat && self.sent > 0) else {
            return Ok(());
        };
        let last = s.bytes(&test.region.slice(self.plan.size - 1, 1))?;
        if self.received < self.plan.iterations && last == [(self.received + 1) as u8] {
            self.received += 1;
            if self.sent < self.plan.iterations {
                self.write_back(s)?;
            }
        }
        Ok(())
    }

    fn write_back(&mut self, s: &mut Station) -> Outcome {
        let (Some(test), Some(remote)) = (&self.test, self.remote) else { return Ok(()) };
        self.sent += 1;
        let mut data = vec![0xa5; self.plan.size];
        data[self.plan.size - 1] = self.sent as u8;
        Ok(s.ep().transport.post_send(test.conn, SendWr::write(1 << 32, data, remote.addr, remote.rkey))?)
    }

    /// The payload that the test's connection has taken.
    fn check_traffic(&self, payload: u64, duplicates: u64) -> Outcome {
        let tool = self.plan.tool;
        let expected = u64::from(self.plan.iterations) * self.plan.size as u64;
        if !(tool.is_read() || tool.is_atomic()) {
            check(payload == expected, || format!("{payload} bytes have come instead of {expected}"))?;
            println!(
                "ok: {} messages of {} bytes taken, {duplicates} duplicates",
                self.plan.iterations, self.plan.size
            );
        }
        Ok(())
    }

    /// What can be said once all is over.
    fn judge(&self, s: &mut Station) -> Outcome {
        let (plan, counters) = (self.plan, s.ep().counters());
        let n = plan.iterations;
        if plan.tool.is_send() || plan.tool == Tool::WriteLat {
            check(self.received == n, || format!("{} messages instead of {n}", self.received))?;
        }
        if plan.tool.is_latency() && (plan.tool.is_send() || plan.tool == Tool::WriteLat) {
            check(self.sent == n, || format!("{} answers instead of {n}", self.sent))?;
            println!("ok: {n} answers sent");
        }
        if plan.tool.is_read() {
            let reads = counters.rx_read_requests;
            check(reads >= u64::from(n), || format!("{reads} READs instead of {n}"))?;
            println!("ok: {reads} READs of {} bytes served", plan.size);
        }
        if plan.tool.is_atomic() {
            let atomics = counters.rx_atomic_requests;
            check(atomics >= u64::from(n), || format!("{atomics} atomics instead of {n}"))?;
            let test = self.test.as_ref().ok_or_else(|| Failure::Wrong("there was no test".into()))?;
            let bytes = s.bytes(&test.region.all())?;
            let sum: u64 = bytes.chunks_exact(8).map(|b| u64::from_ne_bytes(std::array::from_fn(|i| b[i]))).sum();
            println!("ok: {atomics} atomics served; what they added sums up to {sum}");
            check(sum == u64::from(n), || format!("the sum is not {n}"))?;
        }
        println!("ok: {} destinations exchanged; both connections ended by the client", self.met);
        Ok(())
    }
}
