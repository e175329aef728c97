// SPDX-License-Identifier: Apache-2.0
//! From when on a window is there for peers, and what its end waits for.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::accepting::{Host, free_address};
use common::datagrams::quick;
use nacelle::{ConnectionOptions, Device, Error, Options};
use nacelle_device::{Acceptor, AcceptorOptions, Failure, IncomingWrite, Window, Windows};

const NUMBER: u32 = 5;

/// Peers that try all the time, from before the host is there: none finds the host without its windows.
#[test]
fn the_first_peer_finds_windows_that_were_opened_before() {
    let temp = tempfile::tempdir().unwrap();
    let options = Options { wire: Some(temp.path().join("wire")), connect: quick(), ..Options::default() };
    for _ in 0..5 {
        let (address, windows) = (free_address(), Windows::new());
        let _window = windows.accept_incoming_write(NUMBER, 8, |_| Ok(())).unwrap();
        let (tried, failed) = channel();
        let peer = options.clone();
        let peer = thread::spawn(move || {
            loop {
                let connected = Device::connect(address, &peer).and_then(|it| it.open(&ConnectionOptions::default()));
                match connected.and_then(|connection| connection.write(NUMBER, vec![1; 8], 0)) {
                    Err(Error::RegionsRefused { code, .. }) => panic!("no window, code {code}"),
                    Err(error) => drop(tried.send(error)),
                    Ok(_) => return,
                }
            }
        });
        failed.recv_timeout(Duration::from_secs(5)).expect("nobody is there yet");
        let start = AcceptorOptions { wire: options.wire.clone(), ..AcceptorOptions::by_udp(address) };
        let host = Acceptor::start(&start.with_windows(&windows)).unwrap();
        peer.join().unwrap();
        // Those of the host are the same.
        assert!(host.windows().accept_incoming_write(NUMBER, 1, |_| Ok(())).is_err());
        let _another = host.windows().accept_incoming_write(NUMBER + 1, 1, |_| Ok(())).unwrap();
        assert!(windows.accept_incoming_write(NUMBER + 1, 1, |_| Ok(())).is_err());
    }
}

/// A window whose callback says that it has begun, and ends when it is told to.
fn slow(host: &Host) -> (Window, Receiver<()>, Sender<()>, Arc<AtomicBool>) {
    let ((begun, begins), (go_on, goes_on)) = (channel(), channel());
    let (both, ended) = (Mutex::new((begun, goes_on)), Arc::new(AtomicBool::new(false)));
    let ends = Arc::clone(&ended);
    let callback = move |_: IncomingWrite<'_>| {
        let (begun, goes_on): &(Sender<()>, Receiver<()>) = &both.lock().unwrap();
        begun.send(()).unwrap();
        let told = goes_on.recv_timeout(Duration::from_secs(20)).map_err(|_| Failure::BAD_ARGUMENTS);
        ends.store(true, Ordering::SeqCst);
        told
    };
    (host.acceptor.windows().accept_incoming_write(NUMBER, 8, callback).unwrap(), begins, go_on, ended)
}

/// A peer that writes once, and what comes of it.
fn write(host: &Host) -> thread::JoinHandle<Result<(), Error>> {
    let connection = host.connect();
    thread::spawn(move || connection.write(NUMBER, vec![1; 8], 0).map(drop))
}

#[test]
fn a_window_that_is_dropped_waits_for_its_callback() {
    let host = Host::new();
    let (window, begins, go_on, ended) = slow(&host);
    let writer = write(&host);
    begins.recv().unwrap();
    let seen = Arc::clone(&ended);
    let dropping = thread::spawn(move || {
        drop(window);
        seen.load(Ordering::SeqCst)
    });
    thread::sleep(Duration::from_millis(50));
    assert!(!dropping.is_finished() && !ended.load(Ordering::SeqCst));
    // Meanwhile it is closed for others.
    assert!(matches!(write(&host).join().unwrap(), Err(Error::RegionsRefused { .. })));
    go_on.send(()).unwrap();
    assert!(dropping.join().unwrap(), "the callback has ended");
    writer.join().unwrap().unwrap();
}

#[test]
fn a_window_waits_for_its_callback_as_long_as_it_is_told() {
    let host = Host::new();
    let (window, begins, go_on, ended) = slow(&host);
    let writer = write(&host);
    begins.recv().unwrap();
    assert!(!window.close(Duration::from_millis(20)));
    let began = Instant::now();
    drop(window);
    assert!(began.elapsed() < Duration::from_secs(1) && !ended.load(Ordering::SeqCst), "it was closed before");
    go_on.send(()).unwrap();
    writer.join().unwrap().unwrap();
}

#[test]
fn a_callback_may_drop_its_own_window() {
    let host = Host::new();
    let own: Arc<Mutex<Option<Window>>> = Arc::default();
    let taken = Arc::clone(&own);
    let callback = move |_: IncomingWrite<'_>| {
        drop(taken.lock().unwrap().take());
        Ok(())
    };
    *own.lock().unwrap() = Some(host.acceptor.windows().accept_incoming_write(NUMBER, 8, callback).unwrap());
    let began = Instant::now();
    write(&host).join().unwrap().unwrap();
    assert!(own.lock().unwrap().is_none() && began.elapsed() < Duration::from_secs(2));
    assert!(matches!(write(&host).join().unwrap(), Err(Error::RegionsRefused { .. })));
}

#[test]
fn a_window_that_was_closed_leaves_the_next_of_its_number_alone() {
    let host = Host::new();
    let open = || host.acceptor.windows().accept_incoming_write(NUMBER, 8, |_| Ok(())).unwrap();
    let first = open();
    assert!(first.close(Duration::ZERO));
    let _second = open();
    assert!(first.close(Duration::ZERO));
    drop(first);
    write(&host).join().unwrap().unwrap();
}
