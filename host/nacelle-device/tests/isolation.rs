// SPDX-License-Identifier: Apache-2.0
//! Callers of the software device against each other: none reaches what is another's, none keeps another waiting.

mod common;

use std::time::{Duration, Instant};

use common::caller::{Bench, Caller, message, request};
use nacelle_link::{Link, MAX_FRAME, VirtualWire};
use nacelle_roce::wire::bth::{Bth, Deth, Opcode};
use nacelle_roce::wire::cm::{self, IpCm, Message as CmMessage, Req};
use nacelle_roce::wire::{MacAddr, Psn, Qpn, RoceHeaders, RocePacket};
use nacelle_roce::wire::{roce::Flow, transport::Ext};
use nacelle_roce::{SendWr, WcOpcode, WcStatus};
use nacelle_wire::kernel::matmul::{Args, Dtype};
use nacelle_wire::mrsp::{AarRegion, FunctionCode};

/// REQs from forged addresses, by a party that answers nothing.
struct Flood {
    link: VirtualWire,
    device: (MacAddr, std::net::Ipv4Addr),
    next: u32,
}

impl Flood {
    fn new(bench: &Bench) -> Self {
        let identity = bench.place.identity;
        let link = VirtualWire::join(&bench.place.wire, "flood").unwrap();
        Self { link, device: (identity.mac, identity.ip), next: 1 }
    }

    fn flow(&self, host: u8) -> Flow {
        let (mac, ip) = self.device;
        Flow::new([2, 0, 0, 0, 66, host].into(), mac, [10, 77, 66, host].into(), ip, 0xc000)
    }

    fn send(&mut self, host: u8, transaction: u64, message: CmMessage<'_>) {
        let ext = Ext::Deth(Deth::new(cm::GSI_Q_KEY, Qpn::GSI));
        let headers = RoceHeaders::new(&self.flow(host), Bth::new(Opcode::UdSendOnly, Qpn::GSI, Psn::new(0)), ext);
        let mut frame = vec![0; MAX_FRAME];
        let length = headers.write(&message.to_mad(transaction), &mut frame).unwrap();
        self.link.send(&frame[..length]).unwrap();
    }

    /// Sends a request from 10.77.66.`host`; its identifier.
    fn request(&mut self, host: u8) -> u32 {
        let id = self.next;
        self.next += 1;
        let ip_cm = IpCm::new(5, [10, 77, 66, host], self.device.1);
        let mut req = Req::new(id, 12345, Qpn::new(0x1000 + id), Psn::new(0), ip_cm);
        req.set_path_mtu(3);
        req.set_local_cm_timeout(17); // 0.5 s
        req.set_max_cm_retries(3);
        self.send(host, id.into(), CmMessage::Req(&req));
        id
    }

    /// The next REP or REJ: its identifier here and there and, if it is a REJ, the reason.
    fn answer(&mut self) -> Option<(u32, u32, Option<u16>)> {
        let mut frame = vec![0; MAX_FRAME];
        let until = Instant::now() + Duration::from_millis(500);
        loop {
            let length = self.link.recv(&mut frame, until).unwrap()?;
            let Ok(packet) = RocePacket::parse(&frame[..length]) else { continue };
            match CmMessage::parse(packet.payload) {
                Ok((_, CmMessage::Rep(rep))) => {
                    return Some((rep.remote_comm_id.get(), rep.local_comm_id.get(), None));
                }
                Ok((_, CmMessage::Rej(rej))) => {
                    return Some((rej.remote_comm_id.get(), rej.local_comm_id.get(), Some(rej.reason().0)));
                }
                _ => {}
            }
        }
    }

    /// Sends `count` requests from each of `hosts` and returns how many were taken, and the reasons of the others.
    fn requests(&mut self, hosts: std::ops::Range<u8>, count: usize) -> (usize, Vec<u16>) {
        let (mut taken, mut refused) = (0, Vec::new());
        for host in hosts {
            for _ in 0..count {
                let id = self.request(host);
                loop {
                    let (to, _, reason) = self.answer().expect("each request is answered");
                    if to != id {
                        continue; // a REP that was sent again
                    }
                    match reason {
                        None => taken += 1,
                        Some(reason) => refused.push(reason),
                    }
                    break;
                }
            }
        }
        (taken, refused)
    }
}

#[test]
fn half_open_connections_lock_nobody_out() {
    let bench = Bench::new(|_| {});
    let mut flood = Flood::new(&bench);
    // One address: as many as it may have at all.
    assert_eq!(flood.requests(0..1, 70), (64, vec![3; 6]));
    // Any number of addresses: half of all.
    let (taken, refused) = flood.requests(1..40, 4);
    assert_eq!(taken, 64);
    assert!(refused.iter().all(|reason| *reason == 3), "{refused:?}");
    // Whoever had a connection before, or finishes one now, is served.
    drop(flood);
    std::thread::sleep(Duration::from_secs(3));
    let mut caller = bench.caller(1);
    let session = caller.connect(0);
    assert!(caller.regions(session, &[100]).is_ok());
}

#[test]
fn an_address_gets_a_quarter_of_the_connections() {
    let bench = Bench::new(|_| {});
    let mut greedy = bench.caller(1);
    let sessions: Vec<_> = (0..64).map(|_| greedy.connect(0)).collect();
    let one_more = greedy.begin();
    assert_eq!(greedy.outcome(one_more), Err(3), "no resources available");
    let mut other = bench.caller(2);
    let session = other.connect(0);
    assert!(other.regions(session, &[10]).is_ok());
    greedy.disconnect(sessions[0]);
    greedy.connect(0);
}

#[test]
fn a_full_device_says_that_it_has_no_queue_pair() {
    let bench = Bench::new(|_| {});
    let mut callers: Vec<Caller> = (1..=4).map(|number| bench.caller(number)).collect();
    for caller in &mut callers {
        (0..64).for_each(|_| assert_ne!(caller.connect(0).here.len, 0));
    }
    let mut late = bench.caller(5);
    let conn = late.begin();
    assert_eq!(late.outcome(conn), Err(1), "no QP available");
}

#[test]
fn region_requests_fail_by_their_codes() {
    let bench = Bench::new(|config| config.memory_bytes = 1 << 20);
    let mut caller = bench.caller(1);
    let session = caller.connect(0);
    assert_eq!(caller.regions(session, &[1 << 20 | 1]), Err(2), "no memory");
    assert_eq!(caller.regions(session, &[u32::MAX; 3]), Err(2), "no memory");
    assert_eq!(caller.regions(session, &[16; 33]), Err(3), "too many regions");
    assert_eq!(caller.regions(session, &[16; 35]), Err(3), "too many regions");
    assert_eq!(caller.regions(session, &[16; 42]), Err(3), "too many regions");
    assert_eq!(caller.regions(session, &[]), Err(1), "malformed");
    assert_eq!(caller.ask(session, &[1, 2, 0, 0, 9]), [0, 1, 0, 0]);
    assert_eq!(caller.ask(session, &[9; 1024]), [0, 1, 0, 0]);
    let internal = message(&[AarRegion::internal(0, 8)]);
    assert_eq!(caller.ask(session, &internal), [0, 1, 0, 0], "none that is not internal");
    let regions = request(session, &[8]);
    let behind = [&[1, 2, 0, 0], &internal[4..], &regions[4..]].concat();
    assert_eq!(caller.ask(session, &behind), [0, 1, 0, 0], "a parameter behind an internal region");
    // After each the connection can be used as before.
    let given = caller.regions(session, &[16; 32]).unwrap();
    assert_eq!(given.len(), 32);
    caller.ep.transport.post_send(session.conn, SendWr::send(1, vec![1; 1025])).unwrap();
    assert_eq!(caller.received(session, WcOpcode::Send), Err(WcStatus::RemInvReqErr));
}

#[test]
fn memory_is_zero_before_anybody_reaches_it() {
    let bench = Bench::new(|config| config.memory_bytes = 1 << 20);
    let mut caller = bench.caller(1);
    for _ in 0..5 {
        let session = caller.connect(1 << 20);
        let given = caller.regions(session, &[100_000, 5, 300_000]).unwrap();
        for region in &given {
            let found = caller.read(session, region).unwrap();
            assert!(found.iter().all(|byte| *byte == 0));
            assert_eq!(caller.write(session, region, &vec![0xa5; region.size() as usize]), WcStatus::Success);
        }
        caller.disconnect(session);
    }
}

/// Regions that are set up anew take the old ones' keys with them, also under a WRITE that has begun.
#[test]
fn a_write_does_not_outlive_its_regions() {
    let bench = Bench::new(|config| config.memory_bytes = 256 << 10);
    let mut attacker = bench.caller(1);
    let first = attacker.connect(64 << 10);
    let old = attacker.regions(first, &[64 << 10]).unwrap()[0];
    // A request that cannot be granted, and right behind it a WRITE under the old key.
    attacker.say(first, &request(first, &[u32::MAX; 3]));
    let status = attacker.write(first, &old, &[0xee; 64 << 10]);
    assert_eq!(status, WcStatus::RemAccessErr);
    let mut victim = bench.caller(2);
    let second = victim.connect(64 << 10);
    let new = victim.regions(second, &[64 << 10]).unwrap()[0];
    assert!(victim.read(second, &new).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn a_long_kernel_delays_nobody() {
    let bench = Bench::new(|_| {});
    let side = 1200u32;
    let bytes = 4 * side * side;
    let mut slow = bench.caller(1);
    let session = slow.connect(bytes as usize);
    let given = slow.regions(session, &[64, bytes, bytes, bytes]).unwrap();
    let args = Args { dtype: Dtype::Int32, m: side, n: side, k: side }.to_bytes();
    assert_eq!(slow.write(session, &given[0], &args), WcStatus::Success);
    let mut quick = bench.caller(2);
    let other = quick.connect(0);
    quick.regions(other, &[8]).unwrap();
    slow.start(session, FunctionCode::MATMUL);
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        let started = Instant::now();
        quick.start(other, FunctionCode::EMPTY);
        assert_eq!(quick.result(other), 0);
        longest = longest.max(started.elapsed());
    }
    assert!(longest < Duration::from_millis(500), "{longest:?}");
    assert_eq!(slow.result(session), 0);
}

/// A gibibyte of memory is as quickly had, and given back, as a byte, in one piece or in many, also when all of it was used.
#[test]
fn large_regions_stop_nobody() {
    let bench = Bench::new(|_| {});
    let mut large = bench.caller(1);
    let session = large.connect(0);
    let mut other = bench.caller(2);
    let quick = other.connect(0);
    let mut longest = Duration::ZERO;
    for sizes in [&[900 << 20][..], &[30 << 20; 30], &[900 << 20], &[30 << 20; 30], &[30 << 20; 30]] {
        let internal: Vec<_> = sizes.iter().map(|size| AarRegion::internal(0, *size)).collect();
        let request =
            [&[1, 1 + sizes.len() as u8, 0, 0], &request(session, &[8])[4..], &message(&internal)[4..]].concat();
        large.say(session, &request);
        let started = Instant::now();
        other.regions(quick, &[8]).unwrap();
        longest = longest.max(started.elapsed());
        assert_eq!(large.answer(session)[0], 2, "granted");
        large.start(session, FunctionCode::INCREMENT);
        assert_eq!(large.result(session), 0);
    }
    println!("longest delay of another caller: {longest:?}");
    assert!(longest < Duration::from_millis(100), "{longest:?}");
}

#[test]
fn an_address_gets_no_more_memory_than_its_quota() {
    let bench = Bench::new(|config| config.memory_per_caller = 100_000);
    let (mut caller, mut other) = (bench.caller(1), bench.caller(2));
    let (first, second) = (caller.connect(0), caller.connect(0));
    caller.regions(first, &[60_000]).unwrap();
    assert_eq!(caller.regions(second, &[40_001]), Err(2));
    caller.regions(second, &[20_000, 20_000]).unwrap();
    assert_eq!(caller.regions(second, &[40_001]), Err(2), "what it had is given back first");
    caller.regions(second, &[40_000]).unwrap();
    let session = other.connect(0);
    other.regions(session, &[100_000]).unwrap();
    assert_eq!(bench.counter("memory.bytes_held"), 200_000);
}
