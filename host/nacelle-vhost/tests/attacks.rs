// SPDX-License-Identifier: Apache-2.0
//! Front ends that die, lie, stall or flood: each costs its own connection, and nobody else anything.

mod support;

use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use nacelle_vhost::feature;
use nacelle_vhost::protocol::{Header, protocol_feature, request};
use support::front::{self, By, Front, MEMORY};
use support::{World, was_told};
use zerocopy::IntoBytes;

const ACK: u64 = protocol_feature::REPLY_ACK;
const INBAND: u64 = protocol_feature::INBAND_NOTIFICATIONS | protocol_feature::BACKEND_REQ;
const V1: u64 = feature::VERSION_1;
/// Longer than a test of what must not happen needs, shorter than a tester's patience.
const A_MOMENT: Duration = Duration::from_millis(300);

fn hasty() -> World {
    World::with(|config| config.front_end_timeout = A_MOMENT)
}

/// At any message of its set-up, and while frames are under way.
#[test]
fn a_front_end_can_die_at_any_time() {
    let world = World::new();
    for step in 0..9 {
        let mut front = world.front(By::Eventfd);
        let steps: [&dyn Fn(&mut Front); 8] = [
            &|front| front.agree(V1 | 1 << 30, ACK),
            &|front| front.give_memory(),
            &|front| front.prepare(),
            &|front| front.start_ring(0),
            &|front| front.start_ring(1),
            &|front| front.enable(1),
            &|front| (0..10).for_each(|_| front.send(&[1; 600])),
            &|front| front.spill(&[5, 0, 0, 0, 1, 0, 0, 0, 40]),
        ];
        for go in &steps[..step.min(8)] {
            go(&mut front);
        }
        drop(front);
        world.must_be_free();
    }
    world.must_serve();
}

#[test]
fn nonsense_ends_the_connection() {
    let world = World::new();
    let header = |request: u32, flags: u32, size: u32| Header { request, flags, size }.as_bytes().to_vec();
    for bytes in [header(1, 0, 0), header(1, 2, 0), header(1, 1, 4097), header(1, 1, u32::MAX), vec![0xff; 64]] {
        let mut front = world.front(By::Eventfd);
        front.set_up(V1, ACK);
        front.spill(&bytes);
        assert!(front.is_closed() && was_told("another version, or is too long"));
    }
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let mut front = world.front(By::Eventfd);
        let bytes: Vec<u8> = (0..random.usize(1..300)).map(|_| random.u8(..)).collect();
        front.spill(&bytes);
    }
    world.must_serve();
}

/// A file that gets shorter takes its pages away: that is no SIGBUS here, but the end of the ring.
#[test]
fn memory_can_vanish_at_any_time() {
    let world = World::new();
    for length in [0, 0x1000, 0x1_0000] {
        let mut front = Front::connect(&world.path, By::Eventfd, false);
        front.set_up(V1, ACK);
        front.must_work();
        rustix::fs::ftruncate(&front.memory, length).unwrap();
        front.kick(1);
        // A ring that is still there is used further.
        assert!(length > 0x1000 || front::wait_for(&front.error, Duration::from_secs(20)), "it is told");
        assert!(length > 0x1000 || was_told("up, code 11"));
        front.must(request::SET_VRING_ENABLE, &Front::state(0, 0), &[]);
        let base = front.ask(request::GET_VRING_BASE, &Front::state(1, 0));
        assert_eq!(base.len(), 8);
        drop(front);
        world.must_serve();
    }
}

/// All that the guest writes is nonsense, too: addresses beside its memory cost it its rings.
#[test]
fn rings_can_be_nonsense() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    front.write(0, &[0xff; 16 * 16]);
    // It comes back, and there is no place for it.
    front.send(&[1; 100]);
    assert!(front::wait_for(&front.error, Duration::from_secs(20)) && was_told("ring 0 up"));
    drop(front);
    world.must_serve();
}

/// It never reads its calls: neither the card nor the back end waits for that.
#[test]
fn calls_can_be_left_unread() {
    let world = World::new();
    for (by, protocol) in [(By::Eventfd, ACK), (By::Socket, ACK), (By::Message, ACK | INBAND)] {
        let mut front = Front::connect(&world.path, by, true);
        front.set_up(V1, protocol);
        let before = world.seen.frames.load(Ordering::Relaxed);
        for sent in 1..=1500 {
            front.send(&[1; 60]);
            world.eventually("frames are sent", || world.seen.frames.load(Ordering::Relaxed) >= before + sent);
        }
        drop(front);
        world.must_serve();
    }
}

/// An eventfd that is full for calls, one that is never empty for kicks.
#[test]
fn eventfds_can_be_full() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    let full = front::eventfd();
    rustix::io::write(&full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    front.must(request::SET_VRING_CALL, &1u64.to_ne_bytes(), &[&full]);
    for _ in 0..3 {
        front.must_work();
    }
    drop(front);
    world.must_serve();
}

/// Kicks and messages without end: other registers of the card are reached, frames go on.
#[test]
fn kicks_without_end_are_few_notifications() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    let kick = front.kicks[0].try_clone().unwrap();
    let end = Instant::now() + A_MOMENT;
    let flood = std::thread::spawn(move || {
        let mut kicks = 0u64;
        while Instant::now() < end {
            rustix::io::write(&kick, &1u64.to_ne_bytes()).unwrap();
            kicks += 1;
        }
        kicks
    });
    while !flood.is_finished() {
        front.must_work();
    }
    let kicks = flood.join().unwrap();
    let accesses = world.seen.accesses.load(Ordering::Relaxed) as u64;
    assert!(accesses < kicks / 2, "{accesses} accesses for {kicks} kicks");
    drop(front);
    world.must_serve();
}

#[test]
fn replies_can_be_left_unread() {
    let world = hasty();
    let mut front = world.front(By::Eventfd);
    front.raw.set_nonblocking(true).unwrap();
    let asks = [1u32, 1, 0].as_bytes().repeat(1000);
    let end = Instant::now() + Duration::from_secs(20);
    // It is closed by the back end, as it takes nothing.
    while std::io::Write::write(&mut front.raw, &asks).is_ok_and(|_| true)
        || std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock
    {
        assert!(Instant::now() < end, "it is thrown out");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(was_told("too slow"));
    world.must_serve();
}

#[test]
fn who_says_nothing_is_thrown_out() {
    let world = hasty();
    let begin = Instant::now();
    let mut silent = world.front(By::Eventfd);
    assert!(silent.is_closed() && begin.elapsed() >= A_MOMENT);
    let mut half = world.front(By::Eventfd);
    half.set_up(V1, ACK);
    half.must_work();
    half.spill(&[1, 0, 0]);
    assert!(half.is_closed());
    // Once it has said something, it may be quiet as long as it wants.
    let mut quiet = world.front(By::Eventfd);
    quiet.set_up(V1, ACK);
    std::thread::sleep(2 * A_MOMENT);
    quiet.must_work();
    drop(quiet);
    assert_eq!(world.end().thrown_out, 2);
}

#[test]
fn who_is_refused_too_often_is_thrown_out() {
    let world = World::new();
    let mut front = world.front(By::Eventfd);
    front.agree(V1 | 1 << 30, ACK);
    let refused = (0..100).take_while(|_| {
        front.say(99, 8, &[], &[]);
        front.hear().is_some()
    });
    assert_eq!(refused.count(), 16);
    world.must_serve();
}

/// Nothing of a front end stays: no descriptor, no memory.
#[test]
fn nothing_is_left_of_a_front_end() {
    let world = World::new();
    world.must_serve();
    world.must_be_free();
    let attack = || {
        let mut front = world.front(By::Message);
        front.set_up(V1, ACK | INBAND);
        let eventfd = front::eventfd();
        for _ in 0..15 {
            front.say(request::SET_OWNER, 8, &[], &[&eventfd; 10]);
            front.hear().unwrap();
            let (_, there) = UnixStream::pair().unwrap();
            front.must(request::SET_BACKEND_REQ_FD, &[], &[&there.into()]);
        }
        let more: Vec<_> = (0..8).map(|_| front::memory(true)).collect();
        let regions: Vec<_> = (0..8)
            .map(|number| {
                let place = (2 + number) * MEMORY;
                nacelle_vhost::protocol::MemoryRegion { guest: place, size: MEMORY, user: place, offset: 0 }
            })
            .collect();
        front.enable(0);
        front.must(request::SET_MEM_TABLE, &Front::table(&regions), &more.iter().collect::<Vec<_>>());
    };
    attack();
    world.must_be_free();
    // Tests beside this one open and close some, too.
    let before = front::open_descriptors();
    for _ in 0..20 {
        attack();
        world.must_be_free();
    }
    let after = front::open_descriptors();
    assert!(after < before + 200, "{before} descriptors before, {after} after");
}

/// A card that does not end its reset is reset as a function.
#[test]
fn a_card_that_is_stuck_is_reset() {
    let world = World::with(|config| config.reset_timeout = A_MOMENT);
    let mut front = world.front(By::Eventfd);
    front.set_up(V1, ACK);
    world.seen.stuck.store(true, Ordering::Relaxed);
    drop(front);
    world.eventually("it is reset", || world.seen.resets.load(Ordering::Relaxed) == 1);
    world.seen.stuck.store(false, Ordering::Relaxed);
    world.must_serve();
}
