// SPDX-License-Identifier: Apache-2.0
//! AF_XDP sockets on one end of a veth pair, in a network namespace of each test's own. They need root.

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use nacelle_link::{Link, LinkError, PacketLink, XdpFault, XdpLink, wait_readable};

const MAC: [u8; 6] = [2, 0x4e, 0x41, 0, 0x80, 0xff];
const PEER: [u8; 6] = [2, 0x4e, 0x41, 0, 0, 1];
const IP: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 2);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 3);

/// Runs ip(8), which must succeed.
fn ip(command: &str) {
    let status = Command::new("ip").args(command.split(' ')).status().unwrap();
    assert!(status.success(), "ip {command}");
}

/// Moves this thread into a network namespace of its own, in which xa and xb are joined; false if this user may not.
fn enter() -> bool {
    // SAFETY: it changes what this thread sees of the network, and nothing in memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        eprintln!("not tested: it needs root");
        return false;
    }
    ip("link add xa type veth peer name xb");
    ip("link set xa up");
    ip("link set xb up");
    true
}

fn open(interface: &str) -> Result<XdpLink, LinkError> {
    XdpLink::open(interface.parse().unwrap(), IP)
}

#[track_caller]
fn fault(interface: &str) -> XdpFault {
    match open(interface) {
        Err(LinkError::Xdp { fault, .. }) => fault,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{interface} can be used"),
    }
}

fn frame(to: [u8; 6], from: [u8; 6], kind: u16, body: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &from, &kind.to_be_bytes(), body].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// An ARP request, as far as the link looks at it.
fn asks_for(target: Ipv4Addr) -> Vec<u8> {
    frame([0xff; 6], PEER, 0x0806, &[&[0; 24], &target.octets()[..]].concat())
}

/// The next frame, within a second.
fn next(link: &mut dyn Link) -> Option<Vec<u8>> {
    let mut buffer = [0; 9234];
    let length = link.recv(&mut buffer, Instant::now() + Duration::from_secs(1)).unwrap()?;
    Some(buffer[..length].to_vec())
}

#[test]
fn frames_of_the_host_come_and_go() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    assert_eq!(link.ip_mtu(), 1500);
    // What it is asked comes before it has sent anything.
    peer.send(&asks_for(NEAR)).unwrap();
    peer.send(&asks_for(IP)).unwrap();
    assert_eq!(next(&mut link), Some(asks_for(IP)));
    // Each length there and back, more often than there are places.
    let mut sent = 0;
    for round in 0..3000u32 {
        let body: Vec<u8> = (0..50 + round as usize % 1451).map(|byte| (byte as u32 + round) as u8).collect();
        let (out, back) = (frame(PEER, MAC, 0x0800, &body), frame(MAC, PEER, 0x0800, &body));
        link.send(&out).unwrap();
        assert_eq!(next(&mut peer), Some(out), "{round}");
        peer.send(&back).unwrap();
        assert_eq!(next(&mut link), Some(back), "{round}");
        sent += 1;
    }
    let stats = link.stats();
    assert_eq!((stats.tx_frames, stats.rx_frames), (sent, sent + 1));
    assert_eq!((stats.tx_dropped, stats.tx_no_carrier), (0, 0));
    // Longer than the interface sends.
    link.send(&frame(PEER, MAC, 0x0800, &[0; 1501])).unwrap();
    assert_eq!(link.stats().tx_dropped, 1);
}

/// Sends datagrams of 200 bytes from the kernel's host at xb to the link's host, as one piece whose segmentation and checksums are
/// left to the interface. Returns the payload.
fn send_segmented(count: usize) -> Vec<u8> {
    ip("address replace 10.99.0.1/24 dev xb");
    ip("neighbour replace 10.99.0.2 lladdr 02:4e:41:00:80:ff dev xb");
    let socket = UdpSocket::bind("10.99.0.1:4791").unwrap();
    let bytes: Vec<u8> = (0..200 * count).map(|byte| (byte % 251) as u8).collect();
    let size = 200i32;
    // SAFETY: the descriptor is open, and the kernel reads 4 bytes of `size`.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), 4) };
    assert_eq!(result, 0);
    socket.send_to(&bytes, (IP, 4791)).unwrap();
    bytes
}

/// The driver of a veth pair with a program takes segmentation from the other end; checksums stay unfinished.
#[test]
fn the_kernels_datagrams_come_one_by_one_and_without_checksums() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    link.send(&frame(PEER, MAC, 0x0800, &[0; 100])).unwrap();
    let sent = send_segmented(10);
    for payload in sent.chunks(200) {
        let frame = next(&mut link).unwrap();
        assert_eq!(&frame[40..42], [0, 0]);
        assert_eq!(&frame[42..], payload);
    }
}

/// On an interface without XDP of its own the kernel runs the program, and does not cut such sends.
#[test]
fn the_kernel_runs_the_program_where_the_driver_does_not() {
    if !enter() {
        return;
    }
    ip("link add link xa name xm type macvlan mode passthru");
    ip("link set xm up");
    let mut link = open("xm").unwrap();
    link.send(&frame(PEER, MAC, 0x0800, &[0; 100])).unwrap();
    let sent = send_segmented(1);
    assert_eq!(next(&mut link).unwrap()[42..], sent);
    // One frame, which is longer than a place.
    send_segmented(20);
    assert_eq!((next(&mut link), link.stats().rx_dropped), (None, 1));
}

/// Both kinds of links tell of frames that were lost since nobody took them.
#[test]
fn frames_that_find_no_place_are_counted() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    let (out, back) = (frame(PEER, MAC, 0x0800, &[7; 1400]), frame(MAC, PEER, 0x0800, &[8; 100]));
    link.send(&out).unwrap();
    peer.send(&back).unwrap();
    assert_eq!(next(&mut link).as_ref(), Some(&back));
    for _ in 0..2500 {
        peer.send(&back).unwrap();
    }
    for _ in 0..8000 {
        link.send(&out).unwrap();
    }
    let drain = |link: &mut dyn Link| (0..).take_while(|_| next(link).is_some()).count() as u64;
    assert_eq!((drain(&mut link), link.stats().rx_dropped), (2048, 2500 - 2048));
    let received = drain(&mut peer);
    // The kernel counts from its last answer on; the link does from the beginning.
    assert_eq!((peer.stats().rx_dropped, peer.stats().rx_dropped), (8000 - received, 8000 - received));
    assert!(received < 8000);
}

/// Its hosts answer on the interface as if there was no link.
#[test]
fn the_kernel_keeps_what_is_its_own() {
    if !enter() {
        return;
    }
    ip("address add 10.99.0.9/24 dev xa");
    let mut link = open("xa").unwrap();
    link.send(&asks_for(IP)).unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    let who_has = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &PEER, &[10, 99, 0, 1], &[0; 6], &[10, 99, 0, 9]].concat();
    peer.send(&frame([0xff; 6], PEER, 0x0806, &who_has)).unwrap();
    let answer = next(&mut peer).unwrap();
    assert_eq!((&answer[..6], &answer[20..22], &answer[28..32]), (&PEER[..], &[0, 2][..], &[10, 99, 0, 9][..]));
    assert_eq!(link.recv(&mut [0; 100], Instant::now()).unwrap(), None);
}

#[test]
fn what_keeps_from_an_interface_is_said() {
    if !enter() {
        return;
    }
    assert!(matches!(fault("xz"), XdpFault::NoSuchInterface));
    assert!(matches!(fault("lo"), XdpFault::NotEthernet));
    ip("link add xq numrxqueues 65 type veth peer name xr");
    assert!(matches!(fault("xq"), XdpFault::Queues { count: 65, .. }));
    let first = open("xa").unwrap();
    assert!(matches!(fault("xa"), XdpFault::ProgramTaken));
    drop(first);
    ip("link set xb mtu 9000");
    assert!(matches!(fault("xa"), XdpFault::Refused { .. }));
}

/// An interface may have longer frames than the link.
#[test]
fn frames_that_are_too_long_for_a_place_are_told_of() {
    if !enter() {
        return;
    }
    for command in
        ["link set xa mtu 9000", "link set xb mtu 9000", "link add link xa name xm type macvlan mode passthru"]
    {
        ip(command);
    }
    ip("link set xm up");
    let mut link = open("xm").unwrap();
    assert_eq!(link.ip_mtu(), 3826);
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    let (longest, longer) = (frame(MAC, PEER, 0x0800, &[1; 3826]), frame(MAC, PEER, 0x0800, &[2; 3827]));
    link.send(&frame(PEER, MAC, 0x0800, &[0; 3827])).unwrap();
    link.send(&frame(PEER, MAC, 0x0800, &[0; 3826])).unwrap();
    assert_eq!((link.stats().tx_dropped, link.stats().tx_frames), (1, 1));
    peer.send(&longer).unwrap();
    peer.send(&longest).unwrap();
    assert_eq!(next(&mut link), Some(longest));
    let refused = link.whole().unwrap_err();
    assert!(matches!(refused, LinkError::Xdp { fault: XdpFault::Mtu { mtu: 9000, longest: 3826 }, .. }), "{refused}");
}

/// The kernel spreads datagrams of different ports over the queues.
#[test]
fn frames_come_by_every_queue() {
    if !enter() {
        return;
    }
    ip("link add xq numrxqueues 4 numtxqueues 4 type veth peer name xr numrxqueues 4 numtxqueues 4");
    for command in ["link set xq up", "link set xr up", "address add 10.99.0.1/24 dev xr"] {
        ip(command);
    }
    ip("neighbour add 10.99.0.2 lladdr 02:4e:41:00:80:ff dev xr");
    let mut link = open("xq").unwrap();
    link.send(&frame(PEER, MAC, 0x0800, &[0; 100])).unwrap();
    for port in 5000..5032u16 {
        UdpSocket::bind(("10.99.0.1", port)).unwrap().send_to(&[1; 100], (IP, 4791)).unwrap();
        let began = Instant::now();
        wait_readable([link.poll_fd()], Some(began + Duration::from_secs(5))).unwrap();
        assert!(began.elapsed() < Duration::from_secs(4), "the frame of port {port} wakes nobody");
        assert_eq!(next(&mut link).unwrap()[34..36], port.to_be_bytes());
    }
    assert_eq!(link.recv(&mut [0; 100], Instant::now()).unwrap(), None);
}

/// A program and a socket are gone when the link is.
#[test]
fn an_interface_can_be_used_again_at_once() {
    if !enter() {
        return;
    }
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    for _ in 0..5 {
        let mut link = open("xa").unwrap();
        peer.send(&asks_for(IP)).unwrap();
        assert_eq!(next(&mut link), Some(asks_for(IP)));
        link.send(&asks_for(NEAR)).unwrap();
        assert_eq!(next(&mut peer), Some(asks_for(NEAR)));
    }
}

/// A process that starts another has all descriptors twice for a moment.
#[test]
fn an_interface_can_be_used_again_while_a_child_holds_the_descriptors() {
    if !enter() {
        return;
    }
    let first = open("xa").unwrap();
    // SAFETY: the child calls async-signal-safe functions only, and ends by itself.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::poll(std::ptr::null_mut(), 0, 300);
            libc::_exit(0);
        }
        child
    };
    assert!(child > 0);
    drop(first);
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    peer.send(&asks_for(IP)).unwrap();
    assert_eq!(next(&mut link), Some(asks_for(IP)));
    // SAFETY: the kernel writes nothing, as there is no place for the status.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
}

/// Sends a frame until it is received: the kernel knows a moment after it was told that an interface is up.
fn until_it_passes(to: &mut dyn Link, from: &mut dyn Link, frame: &[u8]) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        from.send(frame).unwrap();
        let mut buffer = [0; 9234];
        match to.recv(&mut buffer, Instant::now() + Duration::from_millis(100)).unwrap() {
            Some(length) if buffer[..length] == *frame => return,
            _ => assert!(Instant::now() < deadline, "no frame comes"),
        }
    }
}

#[test]
fn a_link_may_be_there_before_its_interface_is_up() {
    if !enter() {
        return;
    }
    ip("link set xa down");
    let mut link = open("xa").unwrap();
    link.send(&asks_for(NEAR)).unwrap();
    assert_eq!(link.stats().tx_no_carrier, 1);
    ip("link set xa up");
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    until_it_passes(&mut link, &mut peer, &asks_for(IP));
}

/// Frames are lost meanwhile, and counted.
#[test]
fn an_interface_that_is_down_or_gone_is_an_unplugged_cable() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    let (out, back) = (frame(PEER, MAC, 0x0800, &[7; 100]), frame(MAC, PEER, 0x0800, &[8; 100]));
    peer.send(&back).unwrap();
    link.send(&out).unwrap();
    assert_eq!(next(&mut peer), Some(out.clone()));
    ip("link set xa down");
    link.send(&out).unwrap();
    assert_eq!(link.recv(&mut [0; 100], Instant::now()).unwrap(), None);
    assert_eq!((link.stats().tx_frames, link.stats().tx_no_carrier), (1, 1));
    ip("link set xa up");
    until_it_passes(&mut link, &mut peer, &back);
    until_it_passes(&mut peer, &mut link, &out);
    ip("link delete xa");
    let before = link.stats();
    link.send(&out).unwrap();
    assert_eq!(link.stats().tx_no_carrier, before.tx_no_carrier + 1);
    assert_eq!(next(&mut link), None);
}

/// Threads that sleep are woken by frames.
#[test]
fn a_frame_wakes_who_waits() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    let sender = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        peer.send(&asks_for(IP)).unwrap();
    });
    let began = Instant::now();
    wait_readable([link.poll_fd()], Some(began + Duration::from_secs(10))).unwrap();
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!(next(&mut link), Some(asks_for(IP)));
    sender.join().unwrap();
}

/// More than the kernel sends in one call.
#[test]
fn frames_that_are_kept_leave_together() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    peer.send(&asks_for(NEAR)).unwrap();
    let frames: Vec<_> = (0..200u32).map(|i| frame(PEER, MAC, 0x0800, &i.to_be_bytes())).collect();
    let (first, last) = frames.split_at(150);
    first.iter().for_each(|frame| link.send_more(frame).unwrap());
    assert_eq!(peer.recv(&mut [0; 100], Instant::now()).unwrap(), None);
    link.flush().unwrap();
    for frame in first {
        assert_eq!(next(&mut peer).as_ref(), Some(frame));
    }
    assert_eq!((link.stats().tx_frames, link.stats().tx_bytes), (150, 150 * 60));
    // Nobody waits for a flush that is forgotten.
    last.iter().for_each(|frame| link.send_more(frame).unwrap());
    assert_eq!(link.recv(&mut [0; 100], Instant::now()).unwrap(), None);
    for frame in last {
        assert_eq!(next(&mut peer).as_ref(), Some(frame));
    }
    assert_eq!((link.stats().tx_frames, link.stats().tx_dropped), (200, 0));
}

/// The interface is slower than the link, which goes on with what has been kept whenever it has nothing to receive.
#[test]
fn what_the_kernel_has_no_room_for_leaves_later() {
    if !enter() {
        return;
    }
    ip("link add link xa name xm type macvlan mode passthru");
    ip("link set xm up");
    let shaped = "qdisc add dev xa root tbf rate 4mbit burst 2000 latency 10s";
    if !Command::new("tc").args(shaped.split(' ')).status().is_ok_and(|status| status.success()) {
        eprintln!("not tested: there is no tc(8), or no tbf in the kernel");
        return;
    }
    let mut link = open("xm").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    peer.send(&asks_for(NEAR)).unwrap();
    // The kernel has room for some of them.
    let room = 1i32;
    // SAFETY: the descriptor is open, and the kernel reads 4 bytes of `room`.
    let result = unsafe {
        let value = (&raw const room).cast();
        libc::setsockopt(link.poll_fd().as_raw_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, value, 4)
    };
    assert_eq!(result, 0);
    let frames: Vec<_> =
        (0..64u32).map(|i| frame(PEER, MAC, 0x0800, &[&i.to_be_bytes()[..], &[0; 500]].concat())).collect();
    frames.iter().for_each(|frame| link.send_more(frame).unwrap());
    link.flush().unwrap();
    let (mut received, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(5));
    while received.len() < frames.len() && Instant::now() < deadline {
        assert_eq!(link.recv(&mut [0; 100], Instant::now()).unwrap(), None);
        let mut buffer = [0; 1000];
        if let Some(length) = peer.recv(&mut buffer, Instant::now() + Duration::from_millis(5)).unwrap() {
            received.push(buffer[..length].to_vec());
        }
    }
    assert_eq!(received, frames);
}

/// More at once than the kernel sends in one call, and than there are places.
#[test]
fn a_burst_arrives_in_order() {
    if !enter() {
        return;
    }
    let mut link = open("xa").unwrap();
    let mut peer = PacketLink::open("xb".parse().unwrap()).unwrap();
    peer.send(&asks_for(NEAR)).unwrap();
    for round in 0..8u32 {
        let frames: Vec<_> = (0..500u32).map(|i| frame(PEER, MAC, 0x0800, &(round * 500 + i).to_be_bytes())).collect();
        frames.iter().for_each(|frame| link.send(frame).unwrap());
        for frame in frames {
            assert_eq!(next(&mut peer), Some(frame));
        }
    }
    assert_eq!(link.stats().tx_dropped, 0);
}
