// SPDX-License-Identifier: Apache-2.0
//! Admission as a program sees it: the software device admits by token, and the client library says why a connection is not there, or
//! no longer.

mod common;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use common::Running;
use nacelle::{
    Connection, ConnectionOptions, Device, DeviceKind, Error, ErrorCode, FunctionCode, Options, Region, Token, Why,
};
use nacelle_device::{Kernel, Place, SoftConfig, SoftEngine};
use nacelle_link::WireDir;
use nacelle_manage::Control;
use nacelle_manage::admission::{Admission, AdmissionError, ENTRIES, EntryState, NewEntry};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// A kernel that works until it is stopped.
const ENDLESS: u8 = 100;

struct Bench {
    place: Place,
    _device: Running,
    _temp: tempfile::TempDir,
}

fn bench() -> Bench {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = Place::find(&wire, DeviceKind::Soft, None, None).unwrap();
    let device = Running::start(&place, || {
        let description = format!(
            "name = \"endless\"\nversion = \"1.0\"\n[[functions]]\ncode = {ENDLESS}\nname = \"endless\"\ndoc = \"\"\n"
        );
        let run = |call: &mut nacelle_device::Call<'_>| {
            loop {
                call.cancellation.check()?;
                std::thread::sleep(MS(1));
            }
        };
        let kernel = Kernel::from_toml(&description).unwrap().with(FunctionCode::new(ENDLESS).unwrap(), run).unwrap();
        let mut config = SoftConfig { workers: 2, ..SoftConfig::default() };
        config.kernels.add(kernel).unwrap();
        SoftEngine::new(config)
    });
    Bench { place, _device: device, _temp: temp }
}

impl Bench {
    fn control(&self) -> Control {
        Control::open(&self.place.wire, &self.place.name).unwrap()
    }

    fn open(&self, token: Option<Token>) -> Result<Connection, Error> {
        let mut options =
            Options { wire: Some(self.place.wire.path().to_owned()), timeout: MS(20_000), ..Options::default() };
        options.connect.token = token;
        Device::connect(self.place.identity.ip, &options)?.open(&ConnectionOptions { contexts: 2 })
    }
}

fn token(seed: u8) -> Token {
    Token::new([seed; 16]).unwrap()
}

fn entry(seed: u8) -> NewEntry {
    NewEntry { token: Some(token(seed)), ..NewEntry::default() }
}

fn why_not(result: Result<Connection, Error>) -> Why {
    match result {
        Err(Error::NotAdmitted { why, .. }) => why,
        other => panic!("{:?}", other.map(|_| ()).map_err(|error| error.to_string())),
    }
}

#[test]
fn a_revoked_caller_learns_why_in_its_call_and_another_works_on() {
    let bench = bench();
    let mut control = bench.control();
    let mut table = Admission::new(&mut control).unwrap();
    table.turn(true).unwrap();
    assert_eq!(why_not(bench.open(None)), Why::NoToken);
    assert_eq!(why_not(bench.open(Some(token(1)))), Why::Unknown);
    let bad = table.add(&entry(1)).unwrap();
    table.add(&entry(2)).unwrap();
    let (mine, other) = (bench.open(Some(token(1))).unwrap(), bench.open(Some(token(2))).unwrap());
    let mut call = mine.create(FunctionCode::new(ENDLESS).unwrap(), vec![Region::inout(vec![1; 8])]).unwrap();
    call.invoke().unwrap();
    assert_eq!(table.entries().unwrap().iter().map(|entry| entry.used).collect::<Vec<_>>(), [1, 1]);
    let began = Instant::now();
    table.revoke(bad).unwrap();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::AdmissionEnded { why: Why::Revoked, .. }), "{error}");
    assert_eq!((error.code(), error.code().exit_code()), (ErrorCode::AdmissionEnded, 4));
    assert!(began.elapsed() < MS(2000), "{:?}", began.elapsed());
    assert_eq!(why_not(bench.open(Some(token(1)))), Why::Revoked);

    let mut works = other.create(FunctionCode::INCREMENT, vec![Region::inout(vec![4; 100])]).unwrap();
    works.invoke().unwrap();
    works.wait().unwrap();
    let bytes = works.close().unwrap().remove(0).into_vec().unwrap();
    assert_eq!(bytes, [5; 100]);
    table.remove(bad).unwrap();
    assert_eq!(why_not(bench.open(Some(token(1)))), Why::Unknown);
}

#[test]
fn a_call_ends_with_the_time_of_its_entry() {
    let bench = bench();
    let mut control = bench.control();
    let mut table = Admission::new(&mut control).unwrap();
    table.turn(true).unwrap();
    table.add(&NewEntry { time: Some(MS(1000)), ..entry(1) }).unwrap();
    let mine = bench.open(Some(token(1))).unwrap();
    let mut call = mine.create(FunctionCode::new(ENDLESS).unwrap(), vec![Region::inout(vec![1; 8])]).unwrap();
    call.invoke().unwrap();
    let error = call.wait().unwrap_err();
    assert!(matches!(error, Error::AdmissionEnded { why: Why::TimeOver, .. }), "{error}");
    assert_eq!(table.entries().unwrap()[0].state, EntryState::TimeOver);
}

/// Networks as registers have them: what one leaves in the words that another does not have is of no effect.
const NETWORKS: [(IpAddr, u8); 3] = [
    (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 3, 4, 5, 6)), 77),
    (IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)), 24),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
];

#[test]
fn entries_are_made_ended_and_used_again() {
    let bench = bench();
    let mut control = bench.control();
    let mut table = Admission::new(&mut control).unwrap();
    for number in 0..ENTRIES {
        assert_eq!(table.add(&NewEntry { handle: number.into(), ..entry(number + 1) }).unwrap(), number);
    }
    assert!(matches!(table.add(&entry(99)), Err(AdmissionError::Full)));
    assert_eq!(
        table.entries().unwrap().iter().map(|entry| entry.handle).collect::<Vec<_>>(),
        (0..16).collect::<Vec<_>>()
    );
    table.remove(7).unwrap();
    assert!(matches!(table.remove(7), Err(AdmissionError::NoEntry(7))));
    assert!(matches!(table.revoke(16), Err(AdmissionError::NoEntry(16))));
    assert_eq!(table.add(&entry(99)).unwrap(), 7);
    for nobody in [NewEntry::default(), NewEntry { network: Some(([10, 0, 0, 0].into(), 0)), ..NewEntry::default() }] {
        assert!(matches!(table.add(&nobody), Err(AdmissionError::Invalid(_))));
    }
    for network in NETWORKS {
        table.remove(7).unwrap();
        let of = NewEntry { network: Some(network), ..entry(99) };
        assert_eq!(table.add(&of).unwrap(), 7);
        let shown = &table.entries().unwrap()[7];
        assert_eq!((shown.address, shown.prefix), network);
    }
    table.remove(7).unwrap();
    assert_eq!(table.add(&entry(99)).unwrap(), 7);
    table.turn(true).unwrap();
    // What entry 7 was before is of no use.
    assert_eq!(why_not(bench.open(Some(token(8)))), Why::Unknown);
    bench.open(Some(token(99))).unwrap();
}
