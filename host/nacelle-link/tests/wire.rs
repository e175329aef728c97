// SPDX-License-Identifier: Apache-2.0
//! The virtual wire and its switch: which party gets which frame, and what happens to parties that vanish.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use nacelle_link::{Link, LinkError, MAX_FRAME, Switch, SwitchHost, VirtualWire, WireDir};

mod frames;

use frames::{BROADCAST, frame, mac, receive, receive_within, silent, wire};

#[test]
fn a_broadcast_reaches_everybody_and_a_known_address_only_its_owner() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let mut parties: Vec<VirtualWire> =
        (0..20).map(|n| VirtualWire::join(&dir, &format!("party{n}")).unwrap()).collect();

    let call = frame(BROADCAST, mac(0), b"who is there");
    parties[0].send(&call).unwrap();
    for party in &mut parties[1..] {
        assert_eq!(receive(party).as_deref(), Some(&call[..]));
    }
    assert!(silent(&mut parties[0]), "no party receives its own frames");

    let answer = frame(mac(0), mac(7), b"me");
    parties[7].send(&answer).unwrap();
    assert_eq!(receive(&mut parties[0]).as_deref(), Some(&answer[..]));
    for n in [1, 2, 19] {
        assert!(silent(&mut parties[n]), "party {n} received a frame for another");
    }
}

#[test]
fn an_unknown_address_is_flooded_also_to_those_who_never_spoke() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let mut speaker = VirtualWire::join(&dir, "speaker").unwrap();
    // As QEMU does it: a bound datagram socket that sends to the switch, and nothing else.
    let guest = UnixDatagram::bind(dir.path().join("guest.sock")).unwrap();
    guest.set_read_timeout(Some(Duration::from_secs(5))).unwrap();

    let call = frame(mac(99), mac(1), b"hello");
    speaker.send(&call).unwrap();
    let mut buffer = [0; 2000];
    let length = guest.recv(&mut buffer).unwrap();
    assert_eq!(buffer[..length], call);

    let answer = frame(mac(1), mac(99), b"hello yourself");
    guest.send_to(&answer, dir.switch_socket()).unwrap();
    assert_eq!(receive(&mut speaker), Some(answer));
}

#[test]
fn a_mirror_hears_what_is_for_others() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let mut mirror = VirtualWire::join_mirror(&dir).unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    let mut b = VirtualWire::join(&dir, "b").unwrap();
    let (first, second) = (frame(mac(2), mac(1), b"1"), frame(mac(1), mac(2), b"2"));
    a.send(&first).unwrap();
    assert_eq!(receive(&mut b).as_ref(), Some(&first));
    b.send(&second).unwrap();
    assert_eq!(receive(&mut a).as_ref(), Some(&second));
    assert_eq!(receive(&mut mirror), Some(first));
    assert_eq!(receive(&mut mirror), Some(second));
}

#[test]
fn a_party_that_vanishes_is_forgotten_and_its_socket_removed() {
    let (_temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    let mut alive = VirtualWire::join(&dir, "alive").unwrap();
    let dead_path = dir.path().join("dead.sock");
    let dead = UnixDatagram::bind(&dead_path).unwrap();
    dead.send_to(&frame(BROADCAST, mac(9), b"I was here"), dir.switch_socket()).unwrap();
    switch.step(Instant::now() + Duration::from_secs(1)).unwrap();
    assert_eq!(switch.parties(), 2);
    assert!(receive(&mut alive).is_some());

    drop(dead); // the file remains, as after a crash
    alive.send(&frame(mac(9), mac(1), b"are you there?")).unwrap();
    switch.step(Instant::now() + Duration::from_secs(1)).unwrap();
    assert_eq!(switch.stats().vanished, 1);
    assert_eq!(switch.parties(), 1);
    assert!(!dead_path.exists());
}

#[test]
fn a_party_that_comes_back_under_its_name_is_heard_again() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    for life in 0..3u8 {
        let mut b = VirtualWire::join(&dir, "b").unwrap();
        b.send(&frame(BROADCAST, mac(2), &[life])).unwrap();
        assert_eq!(receive(&mut a), Some(frame(BROADCAST, mac(2), &[life])));
        a.send(&frame(mac(2), mac(1), &[life, life])).unwrap();
        assert_eq!(receive(&mut b), Some(frame(mac(2), mac(1), &[life, life])));
    }
}

#[test]
fn a_party_that_does_not_listen_costs_only_its_own_frames() {
    let (_temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    let mut b = VirtualWire::join(&dir, "b").unwrap();
    let deaf = VirtualWire::join(&dir, "deaf").unwrap();
    let payload = vec![0; 4096];
    let started = Instant::now();
    for number in 0..4000u32 {
        let broadcast = frame(BROADCAST, mac(1), &[&number.to_be_bytes()[..], &payload].concat());
        a.send(&broadcast).unwrap();
        switch.step(Instant::now() + Duration::from_secs(1)).unwrap();
        assert_eq!(receive(&mut b).as_ref(), Some(&broadcast), "frame {number}");
    }
    assert!(switch.stats().dropped_full > 0, "the queue of the party that does not receive is bounded");
    assert!(started.elapsed() < Duration::from_secs(20));
    drop(deaf);
}

#[test]
fn a_burst_longer_than_the_socket_queue_arrives_whole() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    let mut b = VirtualWire::join(&dir, "b").unwrap();
    let receiver = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        (0..500u32).map(|_| receive(&mut b).unwrap()).collect::<Vec<_>>()
    });
    for number in 0..500u32 {
        a.send(&frame(BROADCAST, mac(1), &[&number.to_be_bytes()[..], &[0; 1024]].concat())).unwrap();
    }
    assert_eq!(a.stats().tx_dropped, 0);
    for (number, frame) in receiver.join().unwrap().iter().enumerate() {
        assert_eq!(frame[14..18], (number as u32).to_be_bytes());
    }
}

#[test]
fn what_is_no_frame_is_counted_and_goes_nowhere() {
    let (_temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    let stranger = UnixDatagram::bind(dir.path().join("stranger.sock")).unwrap();
    for junk in [&[][..], &[1; 13], &[0; MAX_FRAME + 1]] {
        stranger.send_to(junk, dir.switch_socket()).unwrap();
        switch.step(Instant::now() + Duration::from_secs(1)).unwrap();
    }
    assert_eq!(switch.stats().dropped_malformed, 3);
    assert!(silent(&mut a));
    assert!(matches!(a.send(&[0; 13]), Err(LinkError::FrameLength { length: 13 })));
    assert!(matches!(a.send(&[0; MAX_FRAME + 1]), Err(LinkError::FrameLength { .. })));
}

#[test]
fn another_process_takes_over_when_the_switch_leaves() {
    let (_temp, dir) = wire();
    let first = SwitchHost::start(&dir).unwrap();
    let _second = SwitchHost::start(&dir).unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    let mut b = VirtualWire::join(&dir, "b").unwrap();
    drop(first);
    let deadline = Instant::now() + Duration::from_secs(5);
    let heard = loop {
        a.send(&frame(mac(2), mac(1), b"again")).unwrap();
        if let Some(frame) = receive_within(&mut b, Duration::from_millis(50)) {
            break frame;
        }
        assert!(Instant::now() < deadline, "no party took over");
    };
    assert_eq!(heard, frame(mac(2), mac(1), b"again"));
    assert!(a.stats().tx_no_carrier + a.stats().tx_frames > 0);
}

#[test]
fn joining_says_what_is_wrong() {
    let (temp, dir) = wire();
    assert!(matches!(VirtualWire::join(&dir, "a"), Err(LinkError::NoSwitch { .. })));
    let _switch = SwitchHost::start(&dir).unwrap();
    let _a = VirtualWire::join(&dir, "a").unwrap();
    assert!(matches!(VirtualWire::join(&dir, "a"), Err(LinkError::NameTaken { .. })));
    assert!(matches!(VirtualWire::join(&dir, "../a"), Err(LinkError::BadPath { .. })));
    let long = temp.path().join("x".repeat(120));
    assert!(matches!(WireDir::open(long), Err(LinkError::BadPath { .. })));
    let file = temp.path().join("file");
    std::fs::write(&file, b"").unwrap();
    assert!(WireDir::open(file).is_err());
}

#[test]
fn a_stale_switch_socket_is_replaced() {
    let (_temp, dir) = wire();
    drop(UnixDatagram::bind(dir.switch_socket()).unwrap());
    assert!(dir.switch_socket().exists());
    assert!(!dir.has_switch());
    let _switch = SwitchHost::start(&dir).unwrap();
    assert!(dir.has_switch());
}

#[test]
fn one_party_cannot_use_up_the_switchs_memory() {
    let (_temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    let mut greedy = VirtualWire::join(&dir, "greedy").unwrap();
    let mut a = VirtualWire::join(&dir, "a").unwrap();
    let mut b = VirtualWire::join(&dir, "b").unwrap();
    a.send(&frame(BROADCAST, mac(1), b"")).unwrap();
    switch.step(Instant::now()).unwrap();
    for station in 0..20_000u32 {
        let [_, x, y, z] = station.to_be_bytes();
        greedy.send(&frame(mac(1), [6, 0, 0, x, y, z], b"")).unwrap();
        switch.step(Instant::now()).unwrap();
        assert!(receive(&mut a).is_some());
    }
    // Whoever comes later is learned all the same.
    b.send(&frame(BROADCAST, mac(2), b"")).unwrap();
    switch.step(Instant::now()).unwrap();
    let flooded = switch.stats().flooded;
    a.send(&frame(mac(2), mac(1), b"")).unwrap();
    b.send(&frame(mac(1), mac(2), b"")).unwrap();
    switch.step(Instant::now()).unwrap();
    assert_eq!(switch.stats().flooded, flooded, "both are known");
    // So is the latest address of the flooding party.
    let [_, x, y, z] = 19_999u32.to_be_bytes();
    a.send(&frame([6, 0, 0, x, y, z], mac(1), b"")).unwrap();
    switch.step(Instant::now()).unwrap();
    assert_eq!(switch.stats().flooded, flooded);
}

#[test]
fn of_many_that_join_by_one_name_one_does() {
    let (_temp, dir) = wire();
    let _switch = SwitchHost::start(&dir).unwrap();
    for round in 0..20 {
        // The files of a killed party are in the way of all.
        drop(UnixDatagram::bind(dir.path().join(format!("party{round}.sock"))).unwrap());
        let start = Arc::new(Barrier::new(8));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let (dir, start) = (dir.clone(), Arc::clone(&start));
                std::thread::spawn(move || {
                    start.wait();
                    VirtualWire::join(&dir, &format!("party{round}"))
                })
            })
            .collect();
        let joined: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let refused = joined.iter().filter(|one| matches!(one, Err(LinkError::NameTaken { .. }))).count();
        assert_eq!((joined.iter().flatten().count(), refused), (1, 7), "round {round}: {joined:?}");
    }
}

/// Only what this user alone can change is a wire.
#[test]
fn a_directory_that_others_can_enter_is_no_wire() {
    let temp = tempfile::tempdir().unwrap();
    let refused = |path: &std::path::Path, word: &str| {
        let error = WireDir::open(path).unwrap_err();
        let LinkError::BadPath { why, .. } = &error else { panic!("{error}") };
        assert!(why.contains(word), "{error}");
    };
    let dir = temp.path().join("wire");
    std::fs::create_dir(&dir).unwrap();
    for mode in [0o755, 0o770, 0o701] {
        std::fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
        refused(&dir, "other users");
    }
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    WireDir::open(&dir).unwrap();
    let link = temp.path().join("link");
    symlink(&dir, &link).unwrap();
    refused(&link, "symbolic link");
    // Nor what lies where others can put something else in its place.
    let open = temp.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    refused(&open.join("wire"), "above");
    std::fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
    WireDir::open(open.join("wire")).unwrap();
}

/// Root is refused like any other user, unless it passes `--trust-owner`.
#[test]
fn a_wire_of_another_user_is_not_used_by_accident() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("wire");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    if chown(&dir, Some(65_533), Some(65_533)).is_err() {
        return; // only root can make one
    }
    assert!(matches!(WireDir::open(&dir), Err(LinkError::BadPath { .. })));
}

#[test]
fn an_address_that_says_nothing_is_forgotten() {
    let (_temp, dir) = wire();
    let mut switch = Switch::open(&dir).unwrap().unwrap();
    switch.set_aging(Duration::from_millis(200));
    // A guest: its frames and those for it go through the switch.
    let a = UnixDatagram::bind(dir.path().join("a.sock")).unwrap();
    a.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut b = VirtualWire::join(&dir, "b").unwrap();
    let mut third = VirtualWire::join(&dir, "third").unwrap();
    a.send_to(&frame(BROADCAST, mac(1), b""), dir.switch_socket()).unwrap();
    switch.step(Instant::now()).unwrap();
    let mut say = |link: &mut VirtualWire, to, from| {
        link.send(&frame(to, from, b"")).unwrap();
        switch.step(Instant::now()).unwrap();
    };
    assert!(receive(&mut third).is_some());
    say(&mut b, mac(1), mac(2));
    assert!(silent(&mut third), "the switch has its address");
    std::thread::sleep(Duration::from_millis(250));
    say(&mut b, mac(1), mac(2));
    assert!(receive(&mut third).is_some(), "it is flooded");
    for _ in 0..2 {
        assert!(a.recv(&mut [0; 100]).is_ok());
    }
}

#[test]
fn root_may_trust_the_owner_of_a_wire() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("wire");
    std::fs::create_dir(&dir).unwrap();
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    if chown(&dir, Some(65_533), Some(65_533)).is_ok() {
        WireDir::open_trusting_owner(&dir).unwrap();
    }
    std::fs::set_permissions(&dir, Permissions::from_mode(0o750)).unwrap();
    assert!(WireDir::open_trusting_owner(&dir).is_err(), "but not everybody else");
}

#[test]
fn what_is_published_replaces_and_follows_nothing() {
    let (temp, dir) = wire();
    let victim = temp.path().join("victim");
    std::fs::write(&victim, b"precious").unwrap();
    for name in ["file", ".file.draft"] {
        symlink(&victim, dir.file(name)).unwrap();
        dir.publish("file", b"new").unwrap();
        assert_eq!(std::fs::read(dir.file("file")).unwrap(), b"new");
    }
    assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    assert_eq!(std::fs::metadata(dir.file("file")).unwrap().permissions().mode() & 0o777, 0o600);
}
