// SPDX-License-Identifier: Apache-2.0
//! Sessions with a device over a network that loses, duplicates, delays and reorders, in virtual time: every packet is executed exactly
//! once, in order.

mod support;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use nacelle_ipbus::{Server, Session, SessionConfig, SessionError};
use nacelle_wire::ipbus::{InfoCode, TransactionHeader, TransactionKind};
use support::{AUTHORISED, LOGIN, Registers, TOKEN, config};

/// Datagrams under way, by their time of arrival.
struct Network {
    random: fastrand::Rng,
    loss: f64,
    under_way: BTreeMap<(Duration, u64), (Where, Vec<u8>)>,
    count: u64,
}

#[derive(Clone, Copy)]
enum Where {
    ToDevice(usize),
    ToClient(usize),
}

impl Network {
    fn send(&mut self, to: Where, datagram: Vec<u8>, now: Duration) {
        let copies = if self.random.f64() < self.loss { 0 } else { 1 + usize::from(self.random.f64() < self.loss) };
        for _ in 0..copies {
            let slow = if self.random.f64() < self.loss { 200 } else { 2 };
            let delay = Duration::from_micros(100 + self.random.u64(0..1000 * slow));
            self.count += 1;
            self.under_way.insert((now + delay, self.count), (to, datagram.clone()));
        }
    }
}

fn write(register: u32, values: &[u32]) -> Vec<u32> {
    let header =
        TransactionHeader { id: 0, words: values.len() as u8, kind: TransactionKind::Write, info: InfoCode::Request };
    [&[header.to_word(), register / 4], values].concat()
}

/// `x = x + 1`: executed twice it would be seen.
fn count(register: u32) -> Vec<u32> {
    let header = TransactionHeader { id: 5, words: 1, kind: TransactionKind::RmwSum, info: InfoCode::Request };
    vec![header.to_word(), register / 4, 1]
}

/// Runs clients that count up, each its own register, until all is done. Returns how the first session that ended with an error did.
fn run(seed: u64, loss: f64, clients: usize, packets: u32) -> Result<Registers, SessionError> {
    let mut registers = Registers::new();
    let mut server = Server::new(config());
    let mut network = Network { random: fastrand::Rng::with_seed(seed), loss, under_way: BTreeMap::new(), count: 0 };
    let mut now = Duration::ZERO;
    let address = |client: usize| -> SocketAddr { ([10, 0, 0, 1], 1000 + client as u16).into() };
    let session_config = SessionConfig { timeout: Duration::from_millis(20), attempts: 60 };
    let mut sessions: Vec<Session> = (0..clients).map(|_| Session::new(session_config, now)).collect();
    let (token, _) = TOKEN.as_chunks::<4>();
    let token: Vec<u32> = token.iter().map(|word| u32::from_be_bytes(*word)).collect();
    for (client, session) in sessions.iter_mut().enumerate() {
        session.send(write(LOGIN, &token), now);
        session.send(write(AUTHORISED + 4 * client as u32, &[0]), now);
        for _ in 0..packets {
            session.send(count(AUTHORISED + 4 * client as u32), now);
        }
    }
    let mut answers = vec![Vec::new(); clients];
    while answers.iter().any(|answers| answers.len() < packets as usize + 2) {
        for (client, session) in sessions.iter_mut().enumerate() {
            session.timeout(now);
            while let Some(datagram) = session.poll_transmit() {
                network.send(Where::ToDevice(client), datagram, now);
            }
            while let Some(answer) = session.poll_answer()? {
                answers[client].push(answer);
            }
        }
        let arrival = network.under_way.first_key_value().map(|((time, _), _)| *time);
        let deadline = sessions.iter().filter_map(Session::deadline).min();
        // The last answer leaves no deadline.
        let Some(next) = arrival.into_iter().chain(deadline).min() else { continue };
        now = now.max(next);
        while let Some(first) = network.under_way.first_entry().filter(|first| first.key().0 <= now) {
            match first.remove() {
                (Where::ToDevice(client), datagram) => {
                    if let Some(answer) = server.receive(address(client), &datagram, now, &mut registers) {
                        network.send(Where::ToClient(client), answer, now);
                    }
                }
                (Where::ToClient(client), datagram) => sessions[client].receive(&datagram, now),
            }
        }
    }
    for answers in answers {
        // Each count gave the one before it.
        let values: Vec<u32> = answers[2..].iter().map(|answer| answer[1]).collect();
        assert_eq!(values, (0..packets).collect::<Vec<_>>(), "seed {seed}");
    }
    Ok(registers)
}

#[test]
fn every_packet_is_executed_once() {
    for seed in 0..200 {
        let loss = [0.0, 0.05, 0.3][seed as usize % 3];
        let registers = run(seed, loss, 3, 40).unwrap();
        for client in 0..3 {
            assert_eq!(registers.0[AUTHORISED as usize / 4 + client], 40, "seed {seed}");
        }
    }
}

/// More packets than there are ids: 0 is left out where they begin again.
#[test]
fn ids_begin_again() {
    let registers = run(1, 0.001, 1, 70_000).unwrap();
    assert_eq!(registers.0[AUTHORISED as usize / 4], 70_000);
}

#[test]
fn a_device_that_is_gone_ends_the_session() {
    assert_eq!(run(1, 1.0, 1, 1).err(), Some(SessionError::NoAnswer));
}

/// A device that was restarted does not execute packets of before as if they were new.
#[test]
fn a_device_that_was_restarted_ends_the_session() {
    let address: SocketAddr = ([10, 0, 0, 1], 1).into();
    let mut registers = Registers::new();
    let mut session = Session::new(SessionConfig::default(), Duration::ZERO);
    let mut now = Duration::ZERO;
    let mut server = Server::new(config());
    let read = TransactionHeader { id: 0, words: 1, kind: TransactionKind::Read, info: InfoCode::Request }.to_word();
    for packet in 0..100 {
        if packet == 50 {
            server = Server::new(config());
        }
        session.send(vec![read, 0], now);
        for _ in 0..100 {
            while let Some(datagram) = session.poll_transmit() {
                if let Some(answer) = server.receive(address, &datagram, now, &mut registers) {
                    session.receive(&answer, now);
                }
            }
            now += Duration::from_millis(10);
            session.timeout(now);
        }
        match session.poll_answer() {
            Ok(answer) => assert!(answer.is_some() && packet < 50),
            Err(error) => {
                assert_eq!((error, packet), (SessionError::Forgotten, 50));
                return;
            }
        }
    }
    panic!("it did not notice");
}
