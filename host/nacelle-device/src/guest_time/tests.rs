// SPDX-License-Identifier: Apache-2.0
//! The calendar's loop with guests that are threads, and devices that interrupt them at given times.

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

use nacelle_vhost::{BackendError, Listener};

use super::calendar::Violation;
use super::devices::Devices;
use super::protocol::{BYTES, Message, Op};
use super::{GuestTime, GuestTimeConfig, GuestTimeError};

/// When a test is given up.
const PATIENCE: Duration = Duration::from_millis(500);

/// Devices that interrupt guests at given times. A guest is called, and answers, by a byte at its socket.
struct Alarm {
    /// Times and guests, in order.
    due: Vec<(u64, usize)>,
    calls: Vec<UnixStream>,
    closed: Vec<usize>,
    called: Vec<usize>,
    /// Guests that have found their card.
    found: Vec<usize>,
}

impl Devices for Alarm {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let open = self.calls.iter().enumerate().filter(|(guest, _)| !self.closed.contains(guest));
        open.map(|(_, call)| call.as_fd()).collect()
    }

    fn turn(&mut self) -> Result<(), BackendError> {
        for (guest, mut call) in self.calls.iter().enumerate() {
            match call.read(&mut [0]) {
                Ok(1) => self.called.retain(|called| *called != guest),
                Ok(_) => self.closed.push(guest),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn advance(&mut self, time: u64) -> Option<u64> {
        self.due.first().map(|(due, _)| *due).filter(|due| *due <= time)
    }

    fn interrupt(&mut self) -> Result<(), BackendError> {
        let (_, guest) = self.due.remove(0);
        self.called.push(guest);
        Ok((&self.calls[guest]).write_all(&[1])?)
    }

    fn is_called(&self) -> bool {
        !self.called.is_empty()
    }

    fn has_guest(&self, number: usize) -> bool {
        self.found.contains(&number)
    }
}

/// A guest, as the kernel does it.
struct Guest {
    clock: UnixStream,
    card: UnixStream,
    number: u32,
}

impl Guest {
    fn begin(clock: &Path, card: UnixStream, id: u64) -> Self {
        let mut guest = Self { clock: UnixStream::connect(clock).unwrap(), card, number: 0 };
        guest.ask(Op::Start, id);
        guest
    }

    fn say(&mut self, op: Op, time: u64) {
        self.number += 1;
        self.clock.write_all(&Message { op, number: self.number, time }.bytes()).unwrap();
    }

    fn hear(&mut self) -> Option<Message> {
        let mut bytes = [0; BYTES];
        self.clock.read_exact(&mut bytes).ok()?;
        Message::of(&bytes)
    }

    fn ask(&mut self, op: Op, time: u64) -> u64 {
        self.say(op, time);
        let answer = self.hear().unwrap();
        assert_eq!((answer.op, answer.number), (Op::Ack, self.number));
        answer.time
    }

    /// Waits until it is to run. Interrupts meanwhile are taken, and have it run at once.
    fn wait(&mut self) -> u64 {
        self.ask(Op::Wait, u64::MAX);
        self.clock.set_nonblocking(true).unwrap();
        self.card.set_nonblocking(true).unwrap();
        loop {
            if self.card.read(&mut [0]).is_ok_and(|count| count == 1) {
                self.clock.set_nonblocking(false).unwrap();
                let now = self.ask(Op::Get, u64::MAX);
                self.ask(Op::Request, now);
                self.card.write_all(&[1]).unwrap();
                self.clock.set_nonblocking(true).unwrap();
            }
            let mut bytes = [0; BYTES];
            if self.clock.peek_one() && self.clock.read(&mut bytes).is_ok_and(|count| count == BYTES) {
                self.clock.set_nonblocking(false).unwrap();
                let run = Message::of(&bytes).unwrap();
                assert_eq!(run.op, Op::Run);
                self.clock.write_all(&run.answered(0).bytes()).unwrap();
                return run.time;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    fn sleep_until(&mut self, time: u64) -> u64 {
        self.ask(Op::Request, time);
        self.wait()
    }
}

/// Whether a whole message can be read.
trait Peek {
    fn peek_one(&self) -> bool;
}

impl Peek for UnixStream {
    fn peek_one(&self) -> bool {
        let mut bytes = [0; BYTES];
        let flags = rustix::net::RecvFlags::PEEK | rustix::net::RecvFlags::DONTWAIT;
        rustix::net::recv(self, &mut bytes, flags).is_ok_and(|(_, count)| count == BYTES)
    }
}

/// A run of so many guests, with interrupts. Each guest is a thread with its number, the clock's path and its card.
struct Run {
    time: GuestTime<Alarm>,
    guests: Vec<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Run {
    fn new(
        guests: usize,
        due: &[(u64, usize)],
        guest: impl Fn(usize, &Path, UnixStream) + Clone + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = folder.path().join("clock");
        let listener = Listener::bind(&clock).unwrap();
        let (calls, cards): (Vec<_>, Vec<_>) = (0..guests).map(|_| UnixStream::pair().unwrap()).unzip();
        calls.iter().for_each(|call| call.set_nonblocking(true).unwrap());
        let devices = Alarm { due: due.to_vec(), calls, closed: Vec::new(), called: Vec::new(), found: Vec::new() };
        let config = GuestTimeConfig { guests, patience: PATIENCE, limit: 1 << 40, sleep: 1000, time_of_day: 77 };
        let guests = cards.into_iter().enumerate().map(|(number, card)| {
            let (clock, guest) = (clock.clone(), guest.clone());
            spawn(move || guest(number, &clock, card))
        });
        let guests = guests.collect();
        Self { time: GuestTime::with(config, listener, devices), guests, _folder: folder }
    }

    fn run(&mut self) -> Result<(), GuestTimeError> {
        self.time.run(&AtomicBool::new(false), || Ok(Vec::new()))
    }

    /// The same, and the guests have ended well.
    fn ends(mut self) -> u64 {
        self.run().unwrap();
        self.guests.into_iter().for_each(|guest| guest.join().unwrap());
        self.time.summary().now
    }

    /// Its error. The guests are left to find their sockets closed.
    fn fails(mut self) -> GuestTimeError {
        let begin = Instant::now();
        let error = self.run().unwrap_err();
        assert!(begin.elapsed() < 20 * PATIENCE, "{error}");
        error
    }
}

#[test]
fn ten_guests_do_the_same_in_each_run() {
    let one_run = || {
        let log = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&log);
        let run = Run::new(10, &[], move |number, clock, card| {
            // They come in any order.
            std::thread::sleep(Duration::from_millis((number as u64 * 7) % 10));
            let mut guest = Guest::begin(clock, card, number as u64);
            assert_eq!(guest.ask(Op::GetTimeOfDay, 0), 77);
            for turn in 1..20 {
                let time = turn * (1 + number as u64 % 3) * 100;
                assert_eq!(guest.sleep_until(time), time);
                assert_eq!(guest.ask(Op::Update, time), time);
                seen.lock().unwrap().push((time, number));
            }
        });
        assert_eq!(run.ends(), 19 * 300);
        Arc::into_inner(log).unwrap().into_inner().unwrap()
    };
    let first = one_run();
    assert!(first.is_sorted(), "{first:?}");
    assert_eq!((first.len(), &first), (190, &one_run()));
}

#[test]
fn an_interrupt_wakes_a_guest_at_its_time() {
    let run = Run::new(2, &[(150, 0), (150, 0), (420, 1)], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        if number == 0 {
            assert_eq!([guest.sleep_until(100), guest.sleep_until(1000), guest.sleep_until(1000)], [100, 150, 1000]);
        } else {
            // It has asked for no time at all.
            assert_eq!((guest.wait(), guest.sleep_until(500)), (420, 500));
        }
    });
    assert_eq!(run.ends(), 1000);
}

#[test]
fn a_guest_that_vanishes_holds_nobody_up() {
    let run = Run::new(3, &[], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        match number {
            // While it runs, and in the middle of a message.
            0 => assert_eq!(guest.sleep_until(10), 10),
            1 => guest.clock.write_all(&[2; 7]).unwrap(),
            _ => assert_eq!(guest.sleep_until(5000), 5000),
        }
    });
    assert_eq!(run.ends(), 5000);
}

#[test]
fn nonsense_ends_the_run_with_its_reason() {
    let says = |op: Op, time: u64| {
        move |number: usize, clock: &Path, card: UnixStream| {
            let mut guest = Guest::begin(clock, card, number as u64);
            guest.sleep_until(100);
            guest.say(op, time);
            let _the_run_has_ended = guest.hear();
        }
    };
    let cases = [
        (Op::Request, 99, Violation::Time),
        (Op::Update, 99, Violation::Time),
        (Op::Update, 1 << 60, Violation::Time),
        (Op::Run, 200, Violation::Direction),
        (Op::Start, 0, Violation::Start),
    ];
    for (op, time, expected) in cases {
        match Run::new(1, &[], says(op, time)).fails() {
            GuestTimeError::Protocol { guest: 0, violation } => assert_eq!(violation, expected),
            error => panic!("{op:?} {time}: {error}"),
        }
    }
    let garbage = Run::new(1, &[], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        guest.clock.write_all(&[0xee; BYTES]).unwrap();
        let _the_run_has_ended = guest.hear();
    });
    let error = garbage.fails();
    assert!(matches!(error, GuestTimeError::Protocol { violation: Violation::Operation, .. }), "{error}");
}

#[test]
fn strangers_are_turned_away() {
    let run = Run::new(2, &[], |number, clock, card| {
        if number == 1 {
            // Whoever does not say at once which guest it is, or says it is one that is not expected.
            for message in [Message { op: Op::Get, number: 1, time: 0 }, Message { op: Op::Start, number: 1, time: 2 }]
            {
                let mut stranger = UnixStream::connect(clock).unwrap();
                stranger.write_all(&message.bytes()).unwrap();
                assert_eq!(stranger.read(&mut [0]).unwrap(), 0);
            }
        }
        let mut guest = Guest::begin(clock, card, number as u64);
        assert_eq!(guest.sleep_until(10), 10);
    });
    assert_eq!(run.ends(), 10);
}

#[test]
fn nothing_waits_for_ever() {
    let silent = Run::new(2, &[], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        if number == 1 {
            guest.sleep_until(10);
            std::thread::sleep(10 * PATIENCE);
        } else {
            guest.ask(Op::Request, 1000);
            guest.say(Op::Wait, 0);
            while guest.hear().is_some() {}
        }
    });
    assert!(matches!(silent.fails(), GuestTimeError::Silent { guest: 1, .. }));

    // It talks all the time, and never lets time pass.
    let talks = Run::new(1, &[], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        loop {
            guest.say(Op::Get, 0);
            if guest.hear().is_none() {
                break;
            }
        }
    });
    assert!(matches!(talks.fails(), GuestTimeError::Silent { guest: 0, .. }));

    let absent = Run::new(1, &[], |_, _, _| {});
    assert!(matches!(absent.fails(), GuestTimeError::Silent { guest: 0, .. }));

    let deaf = Run::new(1, &[(5, 0)], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        guest.ask(Op::Wait, 0);
        let _the_run_has_ended = guest.hear();
    });
    assert!(matches!(deaf.fails(), GuestTimeError::Unanswered { .. }));

    let asleep = Run::new(1, &[], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        guest.ask(Op::Wait, 0);
        let _the_run_has_ended = guest.hear();
    });
    assert!(matches!(asleep.fails(), GuestTimeError::Asleep));

    let late = Run::new(1, &[], |number, clock, card| {
        let mut guest = Guest::begin(clock, card, number as u64);
        guest.ask(Op::Request, u64::MAX);
        guest.ask(Op::Wait, 0);
        let _the_run_has_ended = guest.hear();
    });
    assert!(matches!(late.fails(), GuestTimeError::Limit(_)));
}

#[test]
fn a_guest_with_a_card_and_without_a_clock_is_told_from_others() {
    let mut run = Run::new(1, &[], |_, _, mut card| {
        card.write_all(&[1]).unwrap();
        std::thread::sleep(2 * PATIENCE);
    });
    run.time.devices.found.push(0);
    assert!(matches!(run.fails(), GuestTimeError::Untimed { guest: 0 }));
}
