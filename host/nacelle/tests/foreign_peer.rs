// SPDX-License-Identifier: Apache-2.0
//! The client against a device that is not Nacelle's: in a network of unknown MTU, and in need of time after its answers.

mod peer;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nacelle::{Device, Error, FunctionCode, Options, Region, Step};
use nacelle_link::{Link, LinkError, LinkStats};
use peer::{Cable, IP, Manners, Outgoing, Peer, cable, close, options, serve};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// A cable through a network that loses frames longer than `longest`, in both directions.
struct Narrow {
    cable: Cable,
    longest: usize,
}

impl Link for Narrow {
    fn send(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        if frame.len() <= self.longest { self.cable.send(frame) } else { Ok(()) }
    }

    fn recv(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<Option<usize>, LinkError> {
        Ok(self.cable.recv(buffer, deadline)?.filter(|length| *length <= self.longest))
    }

    fn next_event(&self) -> Option<Instant> {
        self.cable.next_event()
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.cable.poll_fd()
    }

    fn stats(&self) -> LinkStats {
        self.cable.stats()
    }
}

/// A device behind a network of this MTU.
fn behind(ip_mtu: usize, manners: Manners, options: &Options) -> (Peer, Device) {
    let (near, far) = cable();
    let peer = serve(Box::new(far), manners);
    let near = Narrow { cable: near, longest: ip_mtu + 14 };
    let device = Device::connect_over(Box::new(near), None, IP, options).unwrap();
    (peer, device)
}

/// The path MTU of a call of 10 000 bytes, which must succeed.
fn path_mtu(ip_mtu: usize, manners: Manners, options: &Options) -> usize {
    let (peer, device) = behind(ip_mtu, manners, options);
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 10_000])]).unwrap();
    call.invoke().unwrap();
    call.wait().unwrap();
    let inside = peer.inside.lock().unwrap();
    let (_, info) = inside.endpoint.transport.connections().next().unwrap();
    drop(inside);
    assert!(close(call)[0].iter().all(|byte| *byte == 2));
    info.path_mtu.bytes()
}

#[test]
fn the_path_mtu_is_one_that_passes_the_network() {
    for (ip_mtu, bytes) in [(1500, 1024), (2100, 1024), (2300, 2048), (4200, 4096), (9000, 4096)] {
        assert_eq!(path_mtu(ip_mtu, Manners::default(), &options()), bytes, "{ip_mtu}");
    }
}

#[test]
fn a_host_without_ping_gets_what_every_ethernet_carries() {
    let silent = Manners { sends: Box::new(|frame| frame != Outgoing::EchoReply), ..Manners::default() };
    assert_eq!(path_mtu(9000, silent, &options()), 1024);
}

#[test]
fn a_chosen_mtu_is_taken_and_an_error_names_it() {
    let chosen = |mtu| Options { mtu: Some(mtu), ..options() };
    assert_eq!(path_mtu(1500, Manners::default(), &chosen(600)), 512);

    let mut options = Options { timeout: MS(300), ..chosen(4200) };
    options.connect.retry_count = 1;
    options.connect.ack_timeout = MS(50);
    let (_peer, device) = behind(1500, Manners::default(), &options);
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 10_000])]).unwrap();
    call.invoke().unwrap();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::Lost { step: Step::Inputs, mtu: Some(4096), .. }), "{error:?}");
    assert!(error.to_string().contains("4096 bytes") && error.hint().contains("--mtu"), "{error}");
}

#[test]
fn an_mtu_that_passes_is_not_blamed() {
    let manners = Manners { reply: Box::new(|_, _| {}), ..Manners::default() };
    let (_peer, device) = behind(4200, manners, &Options { timeout: MS(100), ..options() });
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 10_000])]).unwrap();
    call.invoke().unwrap();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::Timeout { step: Step::Compute, mtu: None, .. }), "{error:?}");
}

/// How long three calls and their end take of a device with a gap after each answer.
fn three_calls(extends: bool, answer_gap: Option<Duration>, answers_after: Duration) -> Duration {
    let manners = Manners {
        extends,
        answer: Box::new(move |_| {
            std::thread::sleep(answers_after);
            None
        }),
        ..Manners::default()
    };
    let (peer, device) = behind(4200, manners, &Options { answer_gap, ..options() });
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 100])]).unwrap();
    let begin = Instant::now();
    for _ in 0..3 {
        call.invoke().unwrap();
        call.wait().unwrap();
    }
    // The answer of the set-up is acknowledged later, unless it is Nacelle's or needs no time.
    let acknowledged = peer.inside.lock().unwrap().acknowledged_after.unwrap();
    assert!(acknowledged >= MS(10) || extends || answer_gap == Some(Duration::ZERO), "{acknowledged:?}");
    assert_eq!(close(call), [[4; 100]]);
    begin.elapsed()
}

#[test]
fn a_device_without_extensions_gets_time_after_each_answer() {
    assert!(three_calls(false, Some(MS(50)), Duration::ZERO) >= MS(200));
    // Sixteen times as long as the answer took, which is more than 5 ms.
    assert!(three_calls(false, None, MS(5)) >= MS(320));
    assert!(three_calls(false, Some(Duration::ZERO), MS(25)) < MS(350));
}

#[test]
fn a_device_with_extensions_gets_its_calls_at_once() {
    assert!(three_calls(true, Some(MS(1000)), MS(15)) < MS(1000));
}

#[test]
fn a_call_that_leaves_later_does_not_hold_up_its_thread() {
    let manners = Manners { extends: false, ..Manners::default() };
    let (_peer, device) = behind(4200, manners, &Options { answer_gap: Some(MS(600)), ..options() });
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![1; 100])]).unwrap();
    let begin = Instant::now();
    call.invoke().unwrap();
    assert!(begin.elapsed() < MS(500), "{:?}", begin.elapsed());
    assert!(!call.test().unwrap());
    call.wait().unwrap();
    assert!(begin.elapsed() > MS(500), "{:?}", begin.elapsed());
}
