// SPDX-License-Identifier: Apache-2.0
//! Goodput over a lossy line, with go-back-N and with selective repeat: 100 Gb/s, 10 us round trip, MTU 4096.

use crate::sim::{Rng, config, path, region_bytes};
use nacelle_roce::{
    Access, ConnId, ConnectOptions, Endpoint, Event, Instant, QpModify, Region, Rtr, Rts, SendWr, WcStatus,
    wire::{Psn, cm::PathMtu},
};
use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

const ONE_WAY: Duration = Duration::from_micros(5);
const MESSAGE: usize = 1 << 20;
const MESSAGES: usize = 16;
/// Preamble, FCS and gap, in bytes.
const OVERHEAD: u64 = 24;

/// What happens at a moment: a frame arrives, or a line is free.
type Happening = Reverse<(Instant, u64, usize, Option<Vec<u8>>)>;

struct Line {
    now: Instant,
    ends: [Endpoint; 2],
    conns: [ConnId; 2],
    busy: [bool; 2],
    queue: BinaryHeap<Happening>,
    sequence: u64,
    rng: Rng,
    loss: f64,
    buf: Vec<u8>,
}

impl Line {
    fn new(seed: u64, loss: f64, selective_repeat: bool) -> Self {
        let now = Instant::from_nanos(1);
        let mut ends = [0, 1].map(|i| {
            let mut c = config(i, seed);
            c.interface.ip_mtu = 4200;
            Endpoint::new(c)
        });
        let options = ConnectOptions { ack_timeout: Duration::from_micros(100), ..ConnectOptions::default() };
        let conns = [0, 1].map(|i: usize| ends[i].transport.create_qp(now, options.clone()).unwrap());
        let qpns = [0, 1].map(|i: usize| ends[i].transport.connection(conns[i]).unwrap().local_qpn);
        for i in [0, 1] {
            let peer = 1 - i;
            let to = Rtr::new(path(i, peer), qpns[peer], Psn::new(0), PathMtu::Mtu4096);
            let to = Rtr { selective_repeat, ..to };
            let from = Rts { ack_timeout: options.ack_timeout, ..Rts::new(Psn::new(0)) };
            for step in [QpModify::Init, QpModify::Rtr(to), QpModify::Rts(from)] {
                ends[i].transport.modify_qp(now, conns[i], step).unwrap();
            }
        }
        let (busy, queue, sequence, buf) = ([false; 2], BinaryHeap::new(), 0, vec![0; 5000]);
        Self { now, ends, conns, busy, queue, sequence, rng: Rng(seed), loss, buf }
    }

    fn push(&mut self, at: Instant, end: usize, frame: Option<Vec<u8>>) {
        self.queue.push(Reverse((at, self.sequence, end, frame)));
        self.sequence += 1;
    }

    fn transmit(&mut self, end: usize) {
        if self.busy[end] {
            return;
        }
        if let Some(len) = self.ends[end].poll_transmit(self.now, &mut self.buf) {
            let sent = self.now + Duration::from_nanos((len as u64 + OVERHEAD) * 8 / 100);
            self.busy[end] = true;
            self.push(sent, end, None);
            if !self.rng.percent(self.loss) {
                let frame = self.buf[..len].to_vec();
                self.push(sent + ONE_WAY, 1 - end, Some(frame));
            }
        }
    }

    /// Until the next thing has happened.
    fn step(&mut self) {
        (0..2).for_each(|end| self.transmit(end));
        // An end whose line is busy looks at its timers when the line is free.
        let idle = (0..2).filter(|&end| !self.busy[end]);
        let timer = idle.filter_map(|end| self.ends[end].next_deadline()).min();
        let next = self.queue.peek().map(|Reverse(h)| h.0);
        match (next, timer) {
            (Some(at), timer) if timer.is_none_or(|t| at <= t) => {
                self.now = self.now.max(at);
                let Some(Reverse((_, _, end, frame))) = self.queue.pop() else { return };
                match frame {
                    Some(frame) => drop(self.ends[end].handle(self.now, &frame)),
                    None => self.busy[end] = false,
                }
            }
            (_, Some(at)) => self.now = self.now.max(at),
            (_, None) => panic!("nothing will ever happen"),
        }
    }
}

/// Gb/s of payload that arrives, and retransmitted packets.
fn goodput(seed: u64, loss: f64, selective: bool) -> (f64, u64) {
    let mut line = Line::new(seed, loss, selective);
    let [here, there] = line.conns;
    let data: Vec<u8> = Rng(seed).bytes(MESSAGE * MESSAGES);
    let source = line.ends[0].transport.register(data.clone(), Access::LOCAL, None).unwrap();
    let target: Region = line.ends[1].transport.register(vec![0; data.len()], Access::REMOTE_WRITE, there).unwrap();
    for i in 0..MESSAGES {
        let at = target.addr.checked_add((i * MESSAGE) as u64).unwrap();
        let wr = SendWr::write(i as u64, source.slice(i * MESSAGE, MESSAGE), at, target.rkey);
        line.ends[0].transport.post_send(here, wr).unwrap();
    }
    let begin = line.now;
    let mut done = 0;
    while done < MESSAGES {
        line.step();
        while let Some(event) = line.ends[0].transport.poll_event() {
            let Event::Completion(c) = event else { panic!("{event:?}") };
            assert_eq!(c.status, WcStatus::Success);
            done += 1;
        }
    }
    assert!(region_bytes(&line.ends[1], target.id) == data, "other bytes arrived");
    let nanos = (line.now - begin).as_nanos() as f64;
    (data.len() as f64 * 8.0 / nanos, line.ends[0].counters().retransmitted)
}

#[test]
fn selective_repeat_against_go_back_n() {
    println!("| loss | go-back-N Gb/s (sent again) | selective repeat Gb/s (sent again) |");
    println!("| --- | --- | --- |");
    for (loss, factor) in [(0.0, 0.99), (0.1, 1.0), (1.0, 1.2), (5.0, 1.2)] {
        let (plain, plain_again) = goodput(1, loss, false);
        let (selective, again) = goodput(1, loss, true);
        println!("| {loss} % | {plain:.1} ({plain_again}) | {selective:.1} ({again}) |");
        assert!(selective >= plain * factor, "{loss} %: {selective} against {plain}");
        if loss == 0.0 {
            assert!(plain > 90.0 && again == 0);
        }
    }
}
