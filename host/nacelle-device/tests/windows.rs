// SPDX-License-Identifier: Apache-2.0
//! Hosts that accept what others write and give what others read; memory of devices without a call.

mod common;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use common::accepting::Host;
use common::caller::{Caller, Session, message};
use common::datagrams::Bench;
use nacelle::memory::Shared;
use nacelle::{ConnectionOptions, Device, Error, LinkChoice, Options};
use nacelle_device::{DeviceError, Failure, SoftPlace};
use nacelle_roce::wire::mrsp::{AarRegion, FunctionCode, Message, RegionFlags, WindowNumber, reason};
use nacelle_roce::wire::{RemoteAddr, Rkey};
use nacelle_roce::{SendWr, WcOpcode, WcStatus};

/// What a window was told: label and bytes.
type Told = Receiver<(u32, Vec<u8>)>;

fn log(host: &Host, number: u32, longest: usize) -> (nacelle_device::Window, Told) {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let window = host.acceptor.windows().accept_incoming_write(number, longest, move |write| {
        tell.lock().unwrap().send((write.label, write.bytes.to_vec())).unwrap();
        Ok(())
    });
    (window.unwrap(), told)
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| ((at * 31 + seed) % 251) as u8).collect()
}

#[test]
fn what_is_written_arrives_and_what_is_read_is_what_was_there() {
    let host = Host::new();
    let (_window, told) = log(&host, 7, 4 << 20);
    let bytes = pattern(3 << 20, 3);
    let shared = Arc::new(Shared::new(bytes.clone()));
    let (read, reads) = channel();
    let read = Mutex::new(read);
    let note = move |incoming: nacelle_device::IncomingRead| {
        read.lock().unwrap().send((incoming.peer, incoming.window, incoming.label)).unwrap();
        Ok(())
    };
    let _table = host.acceptor.windows().accept_incoming_read(7, &shared, note).unwrap();
    let connection = host.connect();
    for (label, length) in (0..).zip([1, 2, 4095, 4096, 4097, 100_000, 3_000_001]) {
        let sent = pattern(length, length);
        let back = connection.write(7, sent.clone(), label).unwrap();
        assert!(back.into_vec().unwrap() == sent);
        let (seen, arrived) = told.recv().unwrap();
        assert!((seen, arrived) == (label.into(), sent), "{length}");
        let got = connection.read(7, vec![0; length]).unwrap();
        assert!(got.into_vec().unwrap() == bytes[..length], "{length}");
    }
    // Only who says that it has read is noticed; the rest needs nothing of this program.
    assert!(reads.try_recv().is_err());
    let table = connection.window_to_read(7, 100).unwrap();
    shared.write(50, &[1, 2, 3]).unwrap();
    let got = table.read(48, vec![0; 6]).unwrap().finish().unwrap().into_vec().unwrap();
    assert_eq!(got, [bytes[48], bytes[49], 1, 2, 3, bytes[53]]);
    table.notify(0x1234).unwrap().finish().unwrap();
    let (peer, window, label) = reads.recv().unwrap();
    assert!(peer != host.acceptor.address() && (window, label) == (7, 0x1234));
    assert_eq!(connection.free_contexts(), 3, "one is the table's");
}

/// What a writer gets is what the owner says, and what the owner leaves in the memory can be read back.
#[test]
fn the_owner_answers_each_write() {
    let host = Host::new();
    let answer = |write: nacelle_device::IncomingWrite<'_>| match write.label {
        0 => {
            write.bytes.reverse();
            Ok(())
        }
        1 => Err(Failure::BAD_ARGUMENTS),
        _ => panic!("the callback is broken"),
    };
    let _window = host.acceptor.windows().accept_incoming_write(1, 100, answer).unwrap();
    let connection = host.connect();
    let remote = connection.window_to_write(1, 4).unwrap();
    remote.write_and_notify(0, vec![1, 2, 3, 4], 0).unwrap().finish().unwrap();
    assert_eq!(remote.read(0, vec![0; 4]).unwrap().finish().unwrap().into_vec().unwrap(), [4, 3, 2, 1]);
    let error = remote.notify(1).unwrap().finish().unwrap_err();
    assert!(matches!(error, Error::Kernel { code: 0x10, .. }), "{error}");
    let error = remote.notify(2).unwrap().finish().unwrap_err();
    assert!(matches!(error, Error::SocketUnavailable { .. }), "{error}");
    // It goes on.
    remote.write_and_notify(3, vec![9], 0).unwrap().finish().unwrap();
    assert_eq!(remote.read(0, vec![0; 2]).unwrap().finish().unwrap().into_vec().unwrap()[0], 9);
}

/// By waiting, by looking, by callbacks and as futures, many at a time, in order.
#[test]
fn transfers_side_by_side() {
    let host = Host::new();
    let (_window, told) = log(&host, 0, 1 << 20);
    let options = Options { progress_thread: true, ..host.options() };
    let device = Device::connect(host.acceptor.address(), &options).unwrap();
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    let remote = connection.window_to_write(0, 64 * 1000).unwrap();
    let transfers: Vec<_> =
        (0..64).map(|piece| remote.write(piece * 1000, pattern(1000, piece as usize)).unwrap()).collect();
    let (done, ended) = channel();
    for (number, mut transfer) in transfers.into_iter().enumerate() {
        match number % 4 {
            0 => drop(transfer),
            1 => while !transfer.test().unwrap() {},
            2 => transfer.wait().unwrap(),
            _ => {
                let done = done.clone();
                transfer.on_finish(move |memory| done.send((number, memory.unwrap().into_vec().unwrap())).unwrap());
            }
        }
    }
    drop(done);
    let ended: Vec<_> = ended.iter().collect();
    assert!(ended == (0..64).filter(|n| n % 4 == 3).map(|n| (n, pattern(1000, n))).collect::<Vec<_>>());
    remote.notify(3).unwrap().finish().unwrap();
    let (_, bytes) = told.recv().unwrap();
    assert!(bytes == (0..64).flat_map(|piece| pattern(1000, piece)).collect::<Vec<_>>());
    // As futures.
    let mut transfer = Box::pin(remote.write_and_notify(5, vec![7; 10], 4).unwrap());
    let began = Instant::now();
    let outcome = loop {
        match transfer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => assert!(began.elapsed() < Duration::from_secs(5)),
        }
    };
    assert_eq!(outcome.unwrap().into_vec().unwrap(), [7; 10]);
    assert_eq!(told.recv().unwrap().0, 4);
    drop((remote, transfer));
    assert_eq!(connection.free_contexts(), connection.contexts());
}

/// Callbacks of transfers that have been seen to end, and of those that are kept.
#[test]
fn callbacks_run_whenever_they_come() {
    let host = Host::new();
    let (_window, _told) = log(&host, 0, 10);
    let device = Device::connect(host.acceptor.address(), &host.options()).unwrap();
    let remote = device.open(&ConnectionOptions::default()).unwrap().window_to_write(0, 10).unwrap();
    let (done, ended) = channel();
    let mut transfer = remote.write_and_notify(0, vec![1; 10], 0).unwrap();
    let ends = done.clone();
    transfer.on_end(move || ends.send(Vec::new()).unwrap());
    assert!(!transfer.has_ended() && ended.try_recv().is_err());
    transfer.wait().unwrap();
    assert!(transfer.has_ended() && ended.try_recv().unwrap().is_empty());
    let ends = done.clone();
    transfer.on_end(move || ends.send(vec![2]).unwrap());
    assert_eq!(ended.try_recv().unwrap(), [2]);
    transfer.on_finish(move |memory| done.send(memory.unwrap().into_vec().unwrap()).unwrap());
    assert_eq!(ended.try_recv().unwrap(), [1; 10]);
}

#[test]
fn many_connections_stay_open() {
    let host = Host::new();
    let total = Arc::new(AtomicU32::new(0));
    let sum = Arc::clone(&total);
    let add = move |write: nacelle_device::IncomingWrite<'_>| {
        sum.fetch_add(write.bytes.iter().map(|byte| u32::from(*byte)).sum(), Ordering::Relaxed);
        Ok(())
    };
    let _window = host.acceptor.windows().accept_incoming_write(3, 8, add).unwrap();
    let remotes: Vec<_> = (0..50).map(|_| host.connect().window_to_write(3, 8).unwrap()).collect();
    for round in 1..4 {
        for remote in &remotes {
            remote.write_and_notify(0, vec![round; 8], 0).unwrap().finish().unwrap();
        }
    }
    assert_eq!(total.load(Ordering::Relaxed), 50 * 8 * (1 + 2 + 3));
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let host = Host::new();
    let (window, _told) = log(&host, 5, 10);
    let connection = host.connect();
    let refused = |outcome: Result<nacelle::Remote, Error>| match outcome {
        Err(Error::RegionsRefused { code, .. }) => code,
        other => panic!("{:?}", other.map(|remote| remote.size())),
    };
    assert_eq!(refused(connection.window_to_write(4, 1)), reason::NO_WINDOW);
    assert_eq!(refused(connection.window_to_read(5, 1)), reason::NO_WINDOW);
    assert_eq!(refused(connection.window_to_write(5, 11)), reason::WINDOW_TOO_SMALL);
    assert_eq!(refused(connection.window_to_write(5, u64::MAX)), reason::WINDOW_TOO_SMALL);
    assert_eq!(refused(connection.remote(1 << 40)), reason::NO_MEMORY);
    let again = host.acceptor.windows().accept_incoming_write(5, 1, |_| Ok(()));
    assert!(matches!(again, Err(DeviceError::WindowOpen { number: 5 })));

    let remote = connection.window_to_write(5, 10).unwrap();
    let invalid = |outcome: Result<nacelle::Transfer, Error>, what: &str| match outcome {
        Err(Error::InvalidArgument { what: said }) if said.contains(what) => {}
        other => panic!("{what}: {:?}", other.err()),
    };
    invalid(remote.write(9, vec![0; 2]), "not within");
    invalid(remote.read(u64::MAX, vec![0; 2]), "not within");
    invalid(remote.write(0, Vec::new()), "at least one byte");
    invalid(connection.remote(1).unwrap().notify(0), "no owner");
    let shared = Arc::new(Shared::new(vec![0; 10]));
    let _table = host.acceptor.windows().accept_incoming_read(5, &shared, |_| Ok(())).unwrap();
    invalid(connection.window_to_read(5, 1).unwrap().write(0, vec![1]), "opened to be read");
    // A window that is closed gives nothing more; who has a part keeps it, and its owner has stopped listening.
    drop(window);
    assert_eq!(refused(connection.window_to_write(5, 1)), reason::NO_WINDOW);
    remote.write(0, vec![1]).unwrap().finish().unwrap();
    let error = remote.notify(0).unwrap().finish().unwrap_err();
    assert!(matches!(error, Error::SocketUnavailable { .. }), "{error}");
}

#[test]
fn a_device_without_windows_says_so_and_has_memory() {
    let bench = Bench::new();
    let connection = bench.connect().open(&ConnectionOptions::default()).unwrap();
    assert!(matches!(connection.window_to_read(1, 1), Err(Error::RegionsRefused { code: reason::NO_WINDOW, .. })));
    let remote = connection.remote(1 << 20).unwrap();
    remote.write(1000, vec![5; 3000]).unwrap().finish().unwrap();
    let bytes = remote.read(999, vec![1; 3002]).unwrap().finish().unwrap().into_vec().unwrap();
    assert!(bytes[0] == 0 && bytes[3001] == 0 && bytes[1..3001] == [5; 3000]);
}

#[test]
fn a_device_says_how_busy_it_is() {
    let bench = Bench::new();
    let device = bench.connect();
    let idle = device.load().unwrap().unwrap();
    assert_eq!((idle.connections, idle.memory_held, idle.calls, idle.running, idle.waiting), (1, 0, 0, 0, 0));
    let connection = device.open(&ConnectionOptions::default()).unwrap();
    let _memory = connection.remote(5000).unwrap();
    bench.increments(&device, 100);
    let busy = device.load().unwrap().unwrap();
    assert!((busy.memory_held, busy.calls) == (5000, 2) && busy.connections >= 2, "{busy:?}");
    assert_eq!(busy.memory_bytes, 1 << 30);
}

/// The owner's program takes its memory back: what a peer still reads of it fails, and nothing else does.
#[test]
fn memory_that_is_gone_cannot_be_read() {
    let host = Host::new();
    let shared = Arc::new(Shared::new(vec![1; 100]));
    let _table = host.acceptor.windows().accept_incoming_read(1, &shared, |_| Ok(())).unwrap();
    let (reader, other) = (host.connect(), host.connect());
    let table = reader.window_to_read(1, 100).unwrap();
    table.read(0, vec![0; 100]).unwrap().finish().unwrap();
    drop(shared);
    let error = table.read(0, vec![0; 1]).unwrap().finish().unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error}");
    assert!(matches!(other.window_to_read(1, 1), Err(Error::RegionsRefused { code: reason::NO_WINDOW, .. })));
}

#[test]
fn the_end_of_a_host_ends_what_is_under_way() {
    let host = Host::new();
    let (_window, _told) = log(&host, 1, 100);
    // By UDP only the DREQ tells of the end: shared memory shows it by itself.
    let options = Options { progress_thread: true, link: LinkChoice::Udp, ..host.options() };
    let device = Device::connect(host.acceptor.address(), &options).unwrap();
    let remote = device.open(&ConnectionOptions::default()).unwrap().window_to_write(1, 100).unwrap();
    host.acceptor.close().unwrap();
    let (done, ended) = channel();
    match remote.write_and_notify(0, vec![0; 100], 0) {
        Ok(transfer) => transfer.on_finish(move |outcome| done.send(outcome.err()).unwrap()),
        Err(error) => done.send(Some(error)).unwrap(),
    }
    // At once: its connections were ended in order.
    let error = ended.recv_timeout(Duration::from_millis(300)).unwrap().unwrap();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
}

/// A host on the wire, where callers can do what the library would not.
fn on_wire() -> (Host, Ipv4Addr) {
    let host = Host::at(SoftPlace::Wire(None), |options| {
        options.config.memory_bytes = 1 << 20;
        options.config.memory_per_caller = 1 << 19;
        options.config.workers = 2;
        options.config.kernel_time = Some(Duration::from_millis(300));
    });
    let IpAddr::V4(ip) = host.acceptor.address() else { panic!("the wire has IPv4") };
    (host, ip)
}

fn region(flags: RegionFlags, number: u32, size: u32) -> AarRegion {
    AarRegion::parameter(flags, WindowNumber(number).to_requested(), RemoteAddr(0), Rkey(0), size)
}

fn ask(caller: &mut Caller, session: Session, regions: &[AarRegion]) -> Result<nacelle_roce::wire::mrsp::ARegion, u8> {
    match Message::parse(&caller.ask(session, &message(regions))).unwrap() {
        Message::A(given) => Ok(given[0]),
        Message::Err(code) => Err(code),
        Message::Aar(_) => panic!("a host does not ask"),
    }
}

/// A peer that reads what it may cannot write it, nor read what lies behind it, also not by another peer's key.
#[test]
fn a_reader_changes_nothing_and_sees_nothing_else() {
    let (host, ip) = on_wire();
    let secret: Vec<u8> = (0..200).collect();
    let shared = Arc::new(Shared::new(secret.clone()));
    let _table = host.acceptor.windows().accept_incoming_read(9, &shared, |_| Ok(())).unwrap();
    let (mut first, mut second) = (Caller::join(&host.wire, ip, 1), Caller::join(&host.wire, ip, 2));
    let attacks: [fn(&mut Caller, Session, nacelle_roce::wire::mrsp::ARegion) -> WcStatus; 4] = [
        |caller, session, part| caller.write(session, &part, &[0xee]),
        |caller, session, part| {
            let add = SendWr::fetch_add(6, session.here.slice(0, 8), part.address(), part.rkey(), 1);
            caller.ep.transport.post_send(session.conn, add).unwrap();
            caller.received(session, WcOpcode::FetchAdd).map_or_else(|status| status, |done| done.status)
        },
        |caller, session, part| {
            let longer = SendWr::read(5, session.here.slice(0, 101), part.address(), part.rkey());
            caller.ep.transport.post_send(session.conn, longer).unwrap();
            caller.received(session, WcOpcode::Read).map_or_else(|status| status, |done| done.status)
        },
        |caller, session, part| {
            let before = SendWr::read(5, session.here.slice(0, 1), RemoteAddr(part.address().0 - 1), part.rkey());
            caller.ep.transport.post_send(session.conn, before).unwrap();
            caller.received(session, WcOpcode::Read).map_or_else(|status| status, |done| done.status)
        },
    ];
    for attack in attacks {
        let session = first.connect(4096);
        let part = ask(&mut first, session, &[region(RegionFlags::OUTPUT, 9, 100)]).unwrap();
        assert!(first.read(session, &part).unwrap() == secret[..100]);
        assert_eq!(attack(&mut first, session, part), WcStatus::RemAccessErr);
    }
    // A key is good for its connection alone.
    let (own, foreign) = (first.connect(4096), second.connect(4096));
    let part = ask(&mut first, own, &[region(RegionFlags::OUTPUT, 9, 100)]).unwrap();
    assert_eq!(second.read(foreign, &part), Err(WcStatus::RemAccessErr));
    assert!(first.read(own, &part).unwrap() == secret[..100]);
    let mut all = vec![0; 200];
    shared.read(0, &mut all).unwrap();
    assert!(all == secret, "nothing has changed");
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let (host, ip) = on_wire();
    let (_window, told) = log(&host, 1, 1000);
    let mut caller = Caller::join(&host.wire, ip, 1);
    let session = caller.connect(4096);
    let (input, output) = (RegionFlags::INPUT, RegionFlags::OUTPUT);
    for (what, regions, code) in [
        ("both ways", vec![region(input | output, 1, 8)], reason::MALFORMED),
        ("no way", vec![region(RegionFlags::NONE, 1, 8)], reason::MALFORMED),
        ("a window and more", vec![region(input, 1, 8), region(input, 1, 8)], reason::MALFORMED),
        ("internal", vec![region(RegionFlags::INTERNAL, 1, 8)], reason::MALFORMED),
        ("unknown", vec![region(input, 2, 8)], reason::NO_WINDOW),
        ("the other way", vec![region(output, 1, 8)], reason::NO_WINDOW),
        ("too long", vec![region(input, 1, 1001)], reason::WINDOW_TOO_SMALL),
    ] {
        assert_eq!(ask(&mut caller, session, &regions).err(), Some(code), "{what}");
    }
    // A caller without extensions, as a program with an RDMA NIC is, and the label in 24 bits.
    let part = ask(&mut caller, session, &[region(input, 1, 3)]).unwrap();
    assert_eq!(caller.write(session, &part, &[4, 5, 6]), WcStatus::Success);
    caller.start(session, FunctionCode::WINDOW);
    assert_eq!(caller.result(session), 0);
    assert_eq!(told.recv().unwrap(), (0, vec![4, 5, 6]));
    // Memory that is no part of a window has no owner to be told.
    caller.regions(session, &[8]).unwrap();
    caller.start(session, FunctionCode::WINDOW);
    assert_eq!(caller.result(session), 3);
    assert!(told.try_recv().is_err());
}

/// A callback that does not return costs its own writer a result, and the memory of one writer is bounded.
#[test]
fn a_writer_cannot_keep_others_from_writing() {
    let (host, ip) = on_wire();
    let hang = |write: nacelle_device::IncomingWrite<'_>| {
        if write.bytes[0] == 1 {
            std::thread::sleep(Duration::from_secs(3));
        }
        Ok(())
    };
    let window = host.acceptor.windows().accept_incoming_write(1, 1 << 20, hang).unwrap();
    let (mut hostile, mut other) = (Caller::join(&host.wire, ip, 1), Caller::join(&host.wire, ip, 2));
    let input = RegionFlags::INPUT;
    // One writer's memory is bounded, over all its connections.
    let sessions: Vec<_> = (0..4).map(|_| hostile.connect(4096)).collect();
    let outcomes = sessions.iter().map(|session| ask(&mut hostile, *session, &[region(input, 1, 200 << 10)]));
    let outcomes: Vec<_> = outcomes.map(|outcome| outcome.map(|_| ()).err()).collect();
    assert_eq!(outcomes, [None, None, Some(reason::NO_MEMORY), Some(reason::NO_MEMORY)]);
    // Both threads have its callbacks.
    for session in &sessions[..2] {
        let part = ask(&mut hostile, *session, &[region(input, 1, 8)]).unwrap();
        assert_eq!(hostile.write(*session, &part, &[1]), WcStatus::Success);
        hostile.start(*session, FunctionCode::WINDOW);
    }
    let began = Instant::now();
    let session = other.connect(4096);
    let part = ask(&mut other, session, &[region(input, 1, 8)]).unwrap();
    assert_eq!(other.write(session, &part, &[2]), WcStatus::Success);
    assert!(began.elapsed() < Duration::from_millis(250), "writes wait for no callback: {:?}", began.elapsed());
    other.start(session, FunctionCode::WINDOW);
    assert_eq!(other.result(session), 0);
    assert!(began.elapsed() < Duration::from_millis(2500), "{:?}", began.elapsed());
    assert_eq!(hostile.result(sessions[0]), 2, "its time has passed");
    window.close(Duration::ZERO);
}
