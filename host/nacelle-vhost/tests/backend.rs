// SPDX-License-Identifier: Apache-2.0
//! The back end, with a card of software: every front end's order of messages, and what is refused.

mod support;

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nacelle_vhost::feature;
use nacelle_vhost::protocol::{self, Config, MemoryRegion, RingAddress, protocol_feature, request};
use support::card::{MAC, MTU};
use support::front::{self, By, Front, GUEST, MEMORY, SIZE, USER};
use support::{World, was_told};
use zerocopy::IntoBytes;

const ACK: u64 = protocol_feature::REPLY_ACK;
const INBAND: u64 = protocol_feature::INBAND_NOTIFICATIONS | protocol_feature::BACKEND_REQ;
const V1: u64 = feature::VERSION_1;

#[test]
fn frames_go_by_every_way_to_kick_and_call() {
    let world = World::new();
    // QEMU agrees to messages, and gives eventfds all the same.
    let ways = [(By::Eventfd, ACK), (By::Eventfd, ACK | INBAND), (By::Socket, ACK), (By::Message, ACK | INBAND)];
    for (by, protocol) in ways {
        for sealed in [true, false] {
            let mut front = Front::connect(&world.path, by, sealed);
            front.set_up(V1, protocol);
            front.must_work();
            drop(front);
            world.must_be_free();
        }
    }
    let counters = world.end();
    assert_eq!((counters.front_ends, counters.starts, counters.refused, counters.thrown_out), (8, 8, 0, 0));
}

#[test]
fn the_card_is_told_guest_addresses() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    let ring = |base| [SIZE.into(), GUEST + base, GUEST + base + 0x400, GUEST + base + 0x800];
    assert_eq!(*world.seen.rings.lock().unwrap(), [ring(0), ring(0x1000)]);
}

#[test]
fn what_is_offered_is_what_works() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    let segmentation = feature::CSUM | feature::HOST_TSO4 | feature::HOST_TSO6 | feature::HOST_ECN;
    let features = V1 | feature::STATUS | feature::MAC | feature::MTU | feature::CTRL_VQ | feature::MQ | segmentation;
    assert_eq!(
        front.number(request::GET_FEATURES),
        features | 1 << 30,
        "the card has one more, which is not handed on"
    );
    let offered = front.number(request::GET_PROTOCOL_FEATURES);
    assert_eq!(
        offered,
        protocol_feature::MQ | ACK | INBAND | protocol_feature::CONFIG | protocol_feature::RESET_DEVICE
    );
    assert_eq!(front.number(request::GET_QUEUE_NUM), 2);
    let mut config = |offset, size: usize| {
        let asked = Config { offset, size: size as u32, flags: 0 };
        front.ask(request::GET_CONFIG, &[asked.as_bytes(), &vec![0xff; size]].concat()).split_off(12)
    };
    let all = [&MAC[..], &[1, 0, 2, 0], &MTU.to_le_bytes(), &[0; 4]].concat();
    assert_eq!(config(0, 16), all);
    assert_eq!(config(2, 4), all[2..6]);
    assert_eq!(config(200, 56), [0; 56]);
    // An error is a reply without a payload.
    for (offset, size, sent) in [(0, 257, 257), (256, 1, 1), (u32::MAX, 2, 2), (0, 12, 11)] {
        let asked = Config { offset, size, flags: 0 };
        assert!(front.ask(request::GET_CONFIG, &[asked.as_bytes(), &vec![0; sent]].concat()).is_empty());
    }
}

/// QEMU enables rings before it says which features it takes, and asks for the bases when the guest's driver goes.
#[test]
fn rings_can_be_enabled_first_and_stopped_by_their_bases() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.acknowledge = false;
    front.must(request::SET_OWNER, &[], &[]);
    front.must(request::SET_PROTOCOL_FEATURES, &ACK.to_ne_bytes(), &[]);
    front.enable(1);
    for _ in 0..3 {
        front.must(request::SET_FEATURES, &(V1 | 1 << 30).to_ne_bytes(), &[]);
        front.give_memory();
        front.prepare();
        front.start_ring(0);
        front.start_ring(1);
        front.must_work();
        for (ring, base) in [(0, 3), (1, 3)] {
            assert_eq!(front.ask(request::GET_VRING_BASE, &Front::state(ring, 0)), Front::state(ring, base));
            assert!(!world.seen.running.load(Ordering::Relaxed));
        }
    }
}

/// DPDK enables rings last; without protocol features nobody enables them.
#[test]
fn rings_can_be_enabled_last_or_never() {
    let world = World::new();
    for protocol in [true, false] {
        let mut front = world.front(By::Eventfd);
        front.acknowledge = false;
        let features = V1 | if protocol { 1 << 30 } else { 0 };
        front.must(request::SET_FEATURES, &features.to_ne_bytes(), &[]);
        front.give_memory();
        front.prepare();
        front.start_ring(0);
        front.start_ring(1);
        assert_eq!(world.seen.running.load(Ordering::Relaxed), !protocol);
        if protocol {
            front.enable(1);
        }
        front.must_work();
        drop(front);
        world.must_be_free();
    }
}

/// User-mode Linux says no more than that when its driver is unloaded, and begins anew.
#[test]
fn a_driver_that_disables_its_rings_can_come_again() {
    let world = World::new();
    for (by, protocol) in [(By::Socket, ACK), (By::Message, ACK | INBAND)] {
        let mut front = world.front(by);
        front.set_up(V1, protocol);
        front.must_work();
        for _ in 0..2 {
            front.enable(0);
            assert!(!world.seen.running.load(Ordering::Relaxed));
            // Where it was used, it cannot go on.
            front.must(request::SET_VRING_ENABLE, &Front::state(0, 1), &[]);
            assert!(!front.tell(request::SET_VRING_ENABLE, &Front::state(1, 1), &[]));
            assert!(was_told("begins at 0"));
            front.enable(0);
            front.prepare();
            front.start_ring(0);
            front.start_ring(1);
            front.enable(1);
            front.must_work();
        }
        front.must(request::RESET_DEVICE, &[], &[]);
        assert!(!world.seen.running.load(Ordering::Relaxed));
        drop(front);
    }
}

#[test]
fn memory_can_change_where_no_ring_is() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    let more = front::memory(false);
    let other = MemoryRegion { guest: 1 << 32, size: MEMORY, user: 0x1000, offset: 0 };
    let first = front.memory.try_clone().unwrap();
    front.must(request::SET_MEM_TABLE, &Front::table(&[Front::region(), other]), &[&first, &more]);
    assert_eq!(world.seen.memory.load(Ordering::Relaxed), 2);
    front.must_work();
    assert!(!front.tell(request::SET_MEM_TABLE, &Front::table(&[other]), &[&more]), "rings are there");
    let moved = MemoryRegion { guest: 0, ..Front::region() };
    assert!(!front.tell(request::SET_MEM_TABLE, &Front::table(&[moved]), &[&first]), "rings are there");
    front.must_work();
    front.must(request::SET_MEM_TABLE, &Front::table(&[Front::region()]), &[&first]);
    assert_eq!(world.seen.memory.load(Ordering::Relaxed), 1);
    front.must_work();
    // The same place in another file is other memory.
    front.must(request::SET_MEM_TABLE, &Front::table(&[Front::region()]), &[&more]);
    assert_eq!(world.seen.memory.load(Ordering::Relaxed), 1);
}

/// QEMU gives another descriptor when the guest unmasks a vector, and does not hear of a call by the one before any more.
#[test]
fn a_new_way_to_call_is_used_at_once() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    front.must_work();
    let (first, second) = (front::eventfd(), front::eventfd());
    for call in [&first, &second] {
        front.must(request::SET_VRING_CALL, &1u64.to_ne_bytes(), &[call]);
        assert!(front::wait_for(call, Duration::from_secs(20)));
        rustix::io::read(call, &mut [0; 8]).unwrap();
    }
    front.send(&[1; 60]);
    assert!(front::wait_for(&second, Duration::from_secs(20)) && !front::wait_for(&first, Duration::ZERO));
}

/// QEMU serves the ring for commands itself: it sets all pairs up, and enables those that the guest uses.
#[test]
fn a_front_end_enables_pairs_itself() {
    let world = World::new();
    let pairs = || world.seen.pairs.load(Ordering::Relaxed);
    let mut front = world.front(By::Eventfd);
    for _ in 0..2 {
        front.agree(V1 | feature::MQ | 1 << 30, ACK | protocol_feature::MQ);
        front.give_memory();
        front.prepare();
        front.fill(2);
        front.enable_pair(0, 1);
        for ring in 0..4 {
            front.start_ring(ring);
        }
        front.must_work();
        assert_eq!(pairs(), 1);
        for on in [1, 0, 1] {
            front.enable_pair(1, on);
            assert_eq!(pairs(), 1 + on as usize);
            front.send_by(3, &[7; 100]);
            let came = front.receive_by(2 * on as usize, Duration::from_secs(20));
            assert_eq!(came.as_deref(), Some(&[7; 100][..]), "by the second pair, or else by the first");
            front.must_work();
        }
        // One ring that is taken back stops the card, which cannot do without.
        assert_eq!(front.ask(request::GET_VRING_BASE, &Front::state(3, 0)), Front::state(3, 3));
        assert!(!world.seen.running.load(Ordering::Relaxed));
        for ring in 0..3 {
            front.ask(request::GET_VRING_BASE, &Front::state(ring, 0));
        }
        front.enable_pair(1, 0);
    }
    assert_eq!(world.seen.commands.load(Ordering::Relaxed), 0);
}

/// User-mode Linux has the ring for commands like the others: behind all pairs, or the first one. Its driver may come again.
#[test]
fn commands_are_a_ring() {
    let world = World::new();
    for (by, protocol) in [(By::Socket, ACK), (By::Message, ACK | INBAND)] {
        for (more, control) in [(feature::MQ, 4), (0, 2)] {
            let mut front = world.front(by);
            let before = world.seen.commands.load(Ordering::Relaxed);
            front.set_up(V1 | feature::CTRL_VQ | more, protocol);
            for turn in 1..=2 {
                for ring in 2..=control {
                    front.start_ring(ring);
                    front.must(request::SET_VRING_ENABLE, &Front::state(ring, 1), &[]);
                }
                for _ in 0..2 {
                    assert_eq!(front.command(control as usize, &[0, 0, 1]), 0);
                }
                front.must_work();
                assert_eq!(world.seen.commands.load(Ordering::Relaxed) - before, 2 * turn);
                assert_eq!(world.seen.pairs.load(Ordering::Relaxed), 1, "commands say how many pairs are used");
                for ring in 0..=control {
                    front.must(request::SET_VRING_ENABLE, &Front::state(ring, 0), &[]);
                }
                assert!(!world.seen.running.load(Ordering::Relaxed));
                front.prepare();
                front.start_ring(0);
                front.start_ring(1);
                front.enable(1);
            }
            drop(front);
            world.must_be_free();
        }
    }
}

/// A ring that the features have not is refused, and the others go on.
#[test]
fn a_ring_that_the_features_have_not_is_refused() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    front.start_ring(3);
    assert!(!front.tell(request::SET_VRING_ENABLE, &Front::state(3, 1), &[]));
    assert!(was_told("its features have not"));
    front.must(request::SET_VRING_ENABLE, &Front::state(3, 0), &[]);
    front.must_work();
}

/// What is refused changes nothing: the front end that hears of it goes on, another one loses its connection.
#[test]
fn what_cannot_be_is_refused() {
    let file: OwnedFd = tempfile::tempfile().unwrap().into();
    let (pipe, _other) = std::io::pipe().map(|(a, b)| (OwnedFd::from(a), b)).unwrap();
    let (socket, _other) = UnixStream::pair().map(|(a, b)| (OwnedFd::from(a), b)).unwrap();
    let (eventfd, memory) = (front::eventfd(), front::memory(true));
    let number = |value: u64| value.to_ne_bytes().to_vec();
    let region = Front::region();
    let table = |regions: &[MemoryRegion]| Front::table(regions);
    let address = |change: fn(&mut RingAddress)| {
        let mut address = Front::address(0);
        change(&mut address);
        address.as_bytes().to_vec()
    };
    let cases: Vec<(u32, Vec<u8>, Vec<&OwnedFd>, &str)> = vec![
        (request::SET_FEATURES, number(V1 | 1 << 26), vec![], "no migration"),
        (request::SET_FEATURES, number(V1 | 1 << 34), vec![], "not offered"),
        (request::SET_FEATURES, number(V1 | 1 << 14), vec![], "not offered"),
        (request::SET_FEATURES, vec![0; 7], vec![], "another length"),
        (request::SET_PROTOCOL_FEATURES, number(1 << 63), vec![], "not offered"),
        (request::SET_PROTOCOL_FEATURES, number(ACK | 1 << 14), vec![], "need requests"),
        (request::SET_MEM_TABLE, vec![0; 4], vec![], "short"),
        (request::SET_MEM_TABLE, table(&[]), vec![], "no regions"),
        (request::SET_MEM_TABLE, table(&[region; 9]), vec![&memory; 9], "more than 8"),
        (request::SET_MEM_TABLE, table(&[region]), vec![], "one file for each"),
        (request::SET_MEM_TABLE, table(&[region]), vec![&memory; 2], "one file for each"),
        (request::SET_MEM_TABLE, table(&[region])[..39].to_vec(), vec![&memory], "short"),
        (request::SET_MEM_TABLE, table(&[region; 2]), vec![&memory; 2], "overlap"),
        (request::SET_MEM_TABLE, table(&[region]), vec![&pipe], "cannot be used"),
        (request::SET_MEM_TABLE, table(&[MemoryRegion { offset: 4096, ..region }]), vec![&memory], "shorter"),
        (request::SET_LOG_BASE, number(0), vec![&memory], "no migration"),
        (request::SET_LOG_FD, vec![], vec![&eventfd], "no migration"),
        (request::SET_VRING_NUM, Front::state(5, 16), vec![], "no such ring"),
        (request::SET_VRING_NUM, Front::state(u32::MAX, 16), vec![], "no such ring"),
        (request::SET_VRING_NUM, Front::state(0, 0), vec![], "power of two"),
        (request::SET_VRING_NUM, Front::state(0, 100), vec![], "power of two"),
        (request::SET_VRING_NUM, Front::state(0, 65536), vec![], "power of two"),
        (request::SET_VRING_NUM, vec![0; 9], vec![], "another length"),
        (request::SET_VRING_BASE, Front::state(0, 1), vec![], "base is not 0"),
        (request::SET_VRING_BASE, Front::state(1, 0x8000), vec![], "base is not 0"),
        (request::SET_VRING_ADDR, address(|address| address.flags = 1), vec![], "no migration"),
        (request::SET_VRING_ADDR, address(|address| address.index = 7), vec![], "no such ring"),
        (request::SET_VRING_KICK, number(0x100), vec![], "polled"),
        (request::SET_VRING_KICK, number(0), vec![], "the other way round"),
        (request::SET_VRING_KICK, number(0x100), vec![&eventfd], "the other way round"),
        (request::SET_VRING_KICK, number(0), vec![&file], "no eventfd"),
        (request::SET_VRING_KICK, number(5), vec![&eventfd], "no such ring"),
        (request::SET_VRING_CALL, number(0), vec![&pipe], "neither an eventfd nor a socket"),
        (request::SET_VRING_CALL, number(0), vec![&file], "neither an eventfd nor a socket"),
        (request::SET_VRING_ERR, number(0), vec![&socket], "no eventfd"),
        (request::SET_VRING_ENABLE, Front::state(9, 1), vec![], "no such ring"),
        (request::VRING_KICK, Front::state(9, 1), vec![], "no such ring"),
        (request::SET_BACKEND_REQ_FD, vec![], vec![&file], "no socket"),
        (request::SET_BACKEND_REQ_FD, vec![], vec![], "no socket"),
        (request::SET_CONFIG, vec![0; 24], vec![], "cannot be written"),
        (request::SET_OWNER, vec![], vec![&eventfd], "descriptors"),
        (request::SET_FEATURES, number(V1 | 1 << 30), vec![&eventfd; 17], "too many descriptors"),
        (99, vec![], vec![], "not known"),
        (0, vec![], vec![], "not known"),
    ];
    let world = World::new();
    for (request, payload, descriptors, why) in cases {
        let mut front = world.front(By::Eventfd);
        front.agree(V1 | 1 << 30, ACK);
        assert!(!front.tell(request, &payload, &descriptors), "request {request}: {why}");
        assert!(was_told(why), "request {request}: {why}");
        front.set_up(V1, ACK);
        front.must_work();
        drop(front);
        world.must_be_free();
        let mut front = world.front(By::Eventfd);
        front.acknowledge = false;
        assert!(!front.tell(request, &payload, &descriptors), "request {request}: {why}");
        world.must_be_free();
    }
    world.must_serve();
}

/// Rings that the card cannot use are found when it is to begin.
#[test]
fn rings_that_cannot_be_are_refused() {
    let world = World::new();
    type Change = fn(&mut RingAddress);
    let beside: [(Change, &str); 6] = [
        (|address| address.descriptors += 8, "aligned"),
        (|address| address.available += 1, "aligned"),
        (|address| address.used += 2, "aligned"),
        (|address| address.used = USER - 4, "not in the memory"),
        (|address| address.descriptors = USER + MEMORY - 16, "not in the memory"),
        (|address| address.available = u64::MAX - 1, "not in the memory"),
    ];
    for (change, why) in beside {
        let mut front = world.front(By::Eventfd);
        front.set_up(V1, ACK);
        front.enable(0);
        front.prepare();
        front.start_ring(0);
        front.start_ring(1);
        let mut address = Front::address(1);
        change(&mut address);
        front.must(request::SET_VRING_ADDR, address.as_bytes(), &[]);
        front.must(request::SET_VRING_ENABLE, &Front::state(0, 1), &[]);
        assert!(!front.tell(request::SET_VRING_ENABLE, &Front::state(1, 1), &[]));
        assert!(was_told(why) && !world.seen.running.load(Ordering::Relaxed));
        // The right one is taken then.
        front.must(request::SET_VRING_ADDR, Front::address(1).as_bytes(), &[]);
        front.must(request::SET_VRING_ENABLE, &Front::state(1, 1), &[]);
        front.must_work();
        drop(front);
        world.must_be_free();
    }
    let mut front = world.front(By::Eventfd);
    front.agree(V1 | 1 << 30, ACK);
    front.give_memory();
    front.start_ring(0);
    front.start_ring(1);
    front.must(request::SET_VRING_NUM, &Front::state(1, 512), &[]);
    let far =
        RingAddress { descriptors: USER + 0x4000, available: USER + 0x7000, used: USER + 0x8000, ..Front::address(1) };
    front.must(request::SET_VRING_ADDR, far.as_bytes(), &[]);
    front.must(request::SET_VRING_ENABLE, &Front::state(0, 1), &[]);
    assert!(!front.tell(request::SET_VRING_ENABLE, &Front::state(1, 1), &[]) && was_told("longer than the card's"));
    drop(front);
    world.must_be_free();
    // Without VERSION_1 the card takes no features, without CSUM no segmentation.
    for features in [feature::MAC, V1 | feature::HOST_TSO4] {
        let mut front = world.front(By::Eventfd);
        front.agree(features | 1 << 30, ACK);
        front.give_memory();
        front.start_ring(0);
        front.start_ring(1);
        front.must(request::SET_VRING_ENABLE, &Front::state(0, 1), &[]);
        assert!(!front.tell(request::SET_VRING_ENABLE, &Front::state(1, 1), &[]) && was_told("VERSION_1"));
        drop(front);
        world.must_be_free();
    }
    world.must_serve();
}

#[test]
fn what_is_used_does_not_change() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    let refused = [
        (request::SET_VRING_NUM, Front::state(0, 32)),
        (request::SET_VRING_BASE, Front::state(1, 0)),
        (request::SET_VRING_ADDR, Front::address(0).as_bytes().to_vec()),
        (request::SET_FEATURES, (V1 | feature::MAC | 1 << 30).to_ne_bytes().to_vec()),
    ];
    for (request, payload) in refused {
        assert!(!front.tell(request, &payload, &[]), "request {request}");
        front.must_work();
    }
    front.must(request::SET_FEATURES, &(V1 | 1 << 30).to_ne_bytes(), &[]);
    front.must_work();
    assert_eq!(protocol::MAX_REGIONS, 8);
}

#[test]
fn a_socket_that_is_used_is_left_alone() {
    let world = World::new();
    let error = nacelle_vhost::Listener::bind(&world.path).unwrap_err();
    assert!(error.to_string().contains("listens at"), "{error}");
    world.must_serve();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    assert!(world.front(By::Eventfd).is_closed(), "one at a time");
    assert!(was_told("another one is turned away"));
    front.must_work();
    // The next one is welcome at once.
    for _ in 0..20 {
        drop(front);
        front = world.front(By::Eventfd);
        front.set_up(V1, ACK);
    }
    front.must_work();
}
