// SPDX-License-Identifier: Apache-2.0
//! The direct way between two parties of a wire: which frames take it, and what happens to it when parties vanish, lie, or are slow.

use std::fs::File;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use nacelle_link::{Link, Switch, SwitchHost, VirtualWire, WireDir};

mod frames;

use frames::{BROADCAST, frame, mac, receive, receive_within, silent, wire};

/// Joins and publishes its address.
fn join(dir: &WireDir, number: u8) -> VirtualWire {
    let mut party = VirtualWire::join(dir, &format!("party{number}")).unwrap();
    party.send(&frame(BROADCAST, mac(number), b"here")).unwrap();
    party
}

/// Lets the switch forward what has come.
fn step(switch: &mut Switch) {
    switch.step(Instant::now() + Duration::from_millis(20)).unwrap();
}

/// Two parties that know each other, and a switch that acts when it is told to.
fn two() -> (tempfile::TempDir, WireDir, Switch, VirtualWire, VirtualWire) {
    let (temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    let (mut a, mut b) = (join(&dir, 1), join(&dir, 2));
    step(&mut switch);
    assert!(receive(&mut a).is_some() && receive(&mut b).is_some());
    (temp, dir, switch, a, b)
}

#[test]
fn frames_for_a_party_pass_the_switch_by_and_others_do_not() {
    let (_temp, _dir, mut switch, mut a, mut b) = two();
    let before = switch.stats().frames;
    for number in 0..100u8 {
        let (there, back) = (frame(mac(2), mac(1), &[number]), frame(mac(1), mac(2), &[number]));
        a.send(&there).unwrap();
        assert_eq!(receive(&mut b), Some(there));
        b.send(&back).unwrap();
        assert_eq!(receive(&mut a), Some(back));
    }
    step(&mut switch);
    assert_eq!(switch.stats().frames, before);
    for to in [BROADCAST, [3, 0, 0, 0, 0, 1], mac(9)] {
        a.send(&frame(to, mac(1), b"for the switch")).unwrap();
        step(&mut switch);
        assert_eq!(receive(&mut b), Some(frame(to, mac(1), b"for the switch")));
    }
    assert_eq!(switch.stats().frames, before + 3);
}

#[test]
fn a_guest_that_knows_the_switch_alone_is_reached_by_it() {
    let (_temp, dir, mut switch, mut a, mut b) = two();
    let guest = UnixDatagram::bind(dir.path().join("guest.sock")).unwrap();
    guest.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    guest.send_to(&frame(mac(1), mac(7), b"from the guest"), dir.switch_socket()).unwrap();
    step(&mut switch);
    assert_eq!(receive(&mut a), Some(frame(mac(1), mac(7), b"from the guest")));
    a.send(&frame(mac(7), mac(1), b"to the guest")).unwrap();
    step(&mut switch);
    let mut buffer = [0; 100];
    let length = guest.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..length], frame(mac(7), mac(1), b"to the guest"));
    assert!(silent(&mut b));
}

#[test]
fn a_mirror_hears_every_frame_of_a_stream_from_its_join_on_and_no_party_notices() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let (mut a, mut b) = (join(&dir, 1), join(&dir, 2));
    let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (stopped, begins) = (Arc::clone(&stop), Arc::clone(&begun));
    // Each frame is answered before the next, so none can be lost.
    let stream = std::thread::spawn(move || {
        let mut number = 0u32;
        while !stopped.load(Ordering::Relaxed) {
            begins.store(number, Ordering::SeqCst);
            a.send(&frame(mac(2), mac(1), &number.to_be_bytes())).unwrap();
            let got = std::iter::from_fn(|| receive(&mut b)).find(|frame| frame[..6] == mac(2)).unwrap();
            assert_eq!(got[14..], number.to_be_bytes());
            number += 1;
        }
        number
    });
    for _ in 0..3 {
        let mut mirror = VirtualWire::join_mirror(&dir).unwrap();
        let begun = begun.load(Ordering::SeqCst);
        let heard = std::iter::from_fn(|| receive(&mut mirror)).filter(|frame| frame[..6] == mac(2)).take(50);
        let heard: Vec<u32> = heard.map(|frame| u32::from_be_bytes(*frame[14..].first_chunk().unwrap())).collect();
        assert_eq!(heard.len(), 50);
        assert!(heard[0] <= begun + 1, "it has joined before frame {}, and hears {heard:?}", begun + 1);
        assert!(heard.windows(2).all(|two| two[1] == two[0] + 1), "{heard:?}");
        drop(mirror);
        std::thread::sleep(Duration::from_millis(20));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(stream.join().unwrap() > 150);
}

#[test]
fn when_a_mirror_has_left_frames_take_the_direct_way_again() {
    let (_temp, dir, mut switch, mut a, mut b) = two();
    let mirror = VirtualWire::join_mirror(&dir).unwrap();
    a.send(&frame(mac(2), mac(1), b"1")).unwrap();
    assert!(silent(&mut b), "it is with the switch");
    step(&mut switch);
    assert_eq!(receive(&mut b), Some(frame(mac(2), mac(1), b"1")));
    drop(mirror);
    a.send(&frame(mac(2), mac(1), b"2")).unwrap();
    assert_eq!(receive(&mut b), Some(frame(mac(2), mac(1), b"2")));
}

/// As after a crash: the files are there, and no process.
fn dead_party(dir: &WireDir, name: &str, address: &str) {
    drop(UnixDatagram::bind(dir.file(&format!("{name}.sock"))).unwrap());
    File::create(dir.file(&format!("{name}@{address}.address"))).unwrap();
}

#[test]
fn a_frame_for_a_party_that_has_died_goes_to_the_switch_and_its_files_are_removed() {
    let (_temp, dir, mut switch, mut a, mut b) = two();
    dead_party(&dir, "dead", "02-00-00-00-00-07");
    a.send(&frame(mac(7), mac(1), b"are you there?")).unwrap();
    step(&mut switch);
    assert_eq!(receive(&mut b), Some(frame(mac(7), mac(1), b"are you there?")), "it is flooded");
    assert!(!dir.file("dead.sock").exists());
    assert!(!dir.file("dead@02-00-00-00-00-07.address").exists());
    // An address without a party is removed, too.
    File::create(dir.file("nobody@02-00-00-00-00-08.address")).unwrap();
    a.send(&frame(mac(8), mac(1), b"")).unwrap();
    assert!(!dir.file("nobody@02-00-00-00-00-08.address").exists());
}

#[test]
fn an_address_that_two_claim_belongs_to_who_spoke_last_as_the_switch_knows_it() {
    let (_temp, dir, mut switch, mut a, mut b) = two();
    let mut liar = VirtualWire::join(&dir, "liar").unwrap();
    liar.send(&frame(BROADCAST, mac(2), b"it is me")).unwrap();
    step(&mut switch);
    assert!(receive(&mut a).is_some() && receive(&mut b).is_some());
    a.send(&frame(mac(2), mac(1), b"1")).unwrap();
    assert!(silent(&mut liar) && silent(&mut b), "it is with the switch");
    step(&mut switch);
    assert_eq!(receive(&mut liar), Some(frame(mac(2), mac(1), b"1")));
    b.send(&frame(BROADCAST, mac(2), b"no, me")).unwrap();
    step(&mut switch);
    a.send(&frame(mac(2), mac(1), b"2")).unwrap();
    step(&mut switch);
    let got = std::iter::from_fn(|| receive(&mut b)).find(|frame| frame[..6] == mac(2));
    assert_eq!(got, Some(frame(mac(2), mac(1), b"2")));
    // When the liar has gone, however it went, the direct way is clear again.
    drop(liar);
    dead_party(&dir, "liar", "02-00-00-00-00-02");
    a.send(&frame(mac(2), mac(1), b"3")).unwrap();
    assert_eq!(receive(&mut b), Some(frame(mac(2), mac(1), b"3")));
}

#[test]
fn a_party_publishes_few_addresses_and_frames_from_others_take_the_way_over_the_switch() {
    let (_temp, dir, mut switch, mut a, mut b) = two();
    for number in 100..150 {
        b.send(&frame(mac(1), mac(number), b"")).unwrap();
        step(&mut switch);
        assert!(receive(&mut a).is_some());
    }
    let published = std::fs::read_dir(dir.path()).unwrap().flatten();
    let published = published.filter(|entry| entry.file_name().to_string_lossy().starts_with("party2@")).count();
    assert_eq!(published, 8);
    let flooded = switch.stats().flooded;
    a.send(&frame(mac(149), mac(1), b"the last one")).unwrap();
    step(&mut switch);
    assert_eq!(receive(&mut b), Some(frame(mac(149), mac(1), b"the last one")));
    assert_eq!(switch.stats().flooded, flooded, "the switch has learned it");
    drop(b);
    let left = std::fs::read_dir(dir.path()).unwrap().flatten();
    assert!(!left.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("party2")));
}

#[test]
fn a_party_that_is_slow_gets_all_in_order_and_delays_no_other() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let (mut a, mut slow, mut third) = (join(&dir, 1), join(&dir, 2), join(&dir, 3));
    let for_one = |link: &mut VirtualWire| std::iter::from_fn(|| receive(link)).find(|frame| frame[..6] != BROADCAST);
    let numbered = |to, number: u32| frame(to, mac(1), &[&number.to_be_bytes()[..], &[0; 4096]].concat());
    let begin = Instant::now();
    for number in 0..800 {
        a.send(&numbered(mac(2), number)).unwrap();
        a.send(&numbered(mac(3), number)).unwrap();
        assert_eq!(for_one(&mut third), Some(numbered(mac(3), number)));
    }
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
    for number in 0..800 {
        assert_eq!(for_one(&mut slow), Some(numbered(mac(2), number)));
    }
    assert_eq!(a.stats().tx_dropped, 0);
}

#[test]
fn a_party_that_was_slow_is_reached_directly_when_it_has_been_quiet() {
    let (_temp, _dir, mut switch, mut a, mut b) = two();
    let numbered = |number: u16| frame(mac(2), mac(1), &number.to_be_bytes());
    // More than a socket holds on any system, and less than that and the switch's queue hold.
    const MANY: u16 = 900;
    for number in 0..MANY {
        a.send(&numbered(number)).unwrap();
        switch.step(Instant::now()).unwrap();
    }
    let with_the_switch = switch.stats().frames;
    let mut next = 0;
    while next < MANY {
        match receive_within(&mut b, Duration::ZERO) {
            Some(got) => {
                assert_eq!(got, numbered(next));
                next += 1;
            }
            None => switch.step(Instant::now()).unwrap(),
        }
    }
    a.send(&numbered(MANY)).unwrap();
    step(&mut switch);
    assert_eq!(receive(&mut b), Some(numbered(MANY)));
    assert_eq!(switch.stats().frames, with_the_switch + 1, "it went through the switch, as those before it");
    std::thread::sleep(Duration::from_millis(250));
    a.send(&numbered(MANY + 1)).unwrap();
    assert_eq!(receive(&mut b), Some(numbered(MANY + 1)), "past the switch");
}

#[test]
fn the_switch_knows_the_parties_whose_frames_it_has_never_seen() {
    let (_temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    let (mut a, mut b) = (VirtualWire::join(&dir, "a").unwrap(), VirtualWire::join(&dir, "b").unwrap());
    let mut third = VirtualWire::join(&dir, "third").unwrap();
    // Each has published its address when it has sent once, to nobody.
    a.send(&frame(mac(1), mac(1), b"")).unwrap();
    b.send(&frame(mac(2), mac(2), b"")).unwrap();
    step(&mut switch);
    switch.set_aging(Duration::ZERO); // what it has learned from that is forgotten
    let _mirror = VirtualWire::join_mirror(&dir).unwrap();
    a.send(&frame(mac(2), mac(1), b"1")).unwrap();
    step(&mut switch);
    assert_eq!(receive(&mut b), Some(frame(mac(2), mac(1), b"1")));
    assert!(silent(&mut third), "it is not flooded");
}
