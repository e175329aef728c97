// SPDX-License-Identifier: Apache-2.0
//! The client library's contexts, cancels, deadlines, chains and targets against the software device.

mod common;

use std::time::{Duration, Instant};

use common::Running;
use nacelle::{
    Call, CallOptions, ChainStep, Connection, ConnectionOptions, Device, DeviceKind, Error, ErrorCode, FunctionCode,
    Options, Region, Target,
};
use nacelle_device::{Kernel, Place, SoftConfig, SoftEngine};
use nacelle_link::WireDir;

const MS: fn(u64) -> Duration = Duration::from_millis;
const LONG: Duration = Duration::from_secs(20);
/// A kernel that works until it is stopped.
const ENDLESS: u8 = 100;

/// A device on a wire of its own.
struct Bench {
    place: Place,
    _device: Running,
    _temp: tempfile::TempDir,
}

fn endless_kernel() -> Kernel {
    let description = format!(
        "name = \"endless\"\nversion = \"1.0\"\n[[functions]]\ncode = {ENDLESS}\nname = \"endless\"\ndoc = \"\"\n"
    );
    let run = |call: &mut nacelle_device::Call<'_>| {
        loop {
            call.cancellation.check()?;
            std::thread::sleep(MS(1));
        }
    };
    Kernel::from_toml(&description).unwrap().with(FunctionCode::new(ENDLESS).unwrap(), run).unwrap()
}

fn bench() -> Bench {
    let temp = tempfile::tempdir().unwrap();
    let wire = WireDir::open(temp.path().join("wire")).unwrap();
    let place = Place::find(&wire, DeviceKind::Soft, None, None).unwrap();
    let device = Running::start(&place, || {
        let mut config = SoftConfig { workers: 4, ..SoftConfig::default() };
        config.kernels.add(endless_kernel()).unwrap();
        SoftEngine::new(config)
    });
    Bench { place, _device: device, _temp: temp }
}

impl Bench {
    fn options(&self) -> Options {
        let wire = Some(self.place.wire.path().to_owned());
        Options { wire, timeout: LONG, resolve_timeout: MS(500), ..Options::default() }
    }

    fn open(&self) -> Connection {
        let device = Device::connect(self.place.identity.ip, &self.options()).unwrap();
        device.open(&ConnectionOptions { contexts: 4 }).unwrap()
    }
}

fn endless(connection: &Connection, options: &CallOptions) -> Call {
    let function = FunctionCode::new(ENDLESS).unwrap();
    connection.create_with(function, vec![Region::inout(vec![1; 8])], options).unwrap()
}

fn increments(connection: &Connection, bytes: Vec<u8>) -> Call {
    connection.create(FunctionCode::INCREMENT, vec![Region::inout(bytes)]).unwrap()
}

fn run(call: &mut Call) {
    call.invoke().unwrap();
    call.wait().unwrap();
}

fn close(call: Call) -> Vec<Vec<u8>> {
    call.close().unwrap().into_iter().map(|memory| memory.into_vec().unwrap()).collect()
}

#[test]
fn calls_run_side_by_side_and_are_cancelled_one_by_one() {
    let bench = bench();
    let connection = bench.open();
    assert_eq!((connection.contexts(), connection.can_cancel(), connection.has_long_set_up()), (4, true, true));
    let mut stuck = endless(&connection, &CallOptions::default());
    stuck.invoke().unwrap();
    let mut call = increments(&connection, vec![1; 300_000]);
    (0..20).for_each(|_| run(&mut call));
    assert_eq!(close(call), [vec![21; 300_000]]);
    assert!(!stuck.wait_timeout(MS(20)).unwrap());
    stuck.cancel().unwrap();
    let error = stuck.wait().unwrap_err();
    assert!(matches!(error, Error::Cancelled { function: ENDLESS, .. }), "{error}");
    // Its context and regions serve the next function.
    stuck.set_function(FunctionCode::INCREMENT).unwrap();
    run(&mut stuck);
    assert_eq!(close(stuck), [[2; 8]]);
    drop(endless(&connection, &CallOptions::default()));
    assert_eq!(connection.free_contexts(), 4);
}

#[test]
fn a_deadline_is_kept_by_the_device() {
    let bench = bench();
    let mut call = endless(&bench.open(), &CallOptions { deadline: Some(MS(100)) });
    for _ in 0..2 {
        let began = Instant::now();
        call.invoke().unwrap();
        let error = call.wait().unwrap_err();
        assert_eq!(error.code(), ErrorCode::DeadlineExceeded, "{error}");
        assert!(began.elapsed() >= MS(100) && began.elapsed() < LONG, "{:?}", began.elapsed());
    }
}

#[test]
fn a_chain_runs_in_the_device() {
    let bench = bench();
    let connection = bench.open();
    let steps = [
        ChainStep::new(FunctionCode::INCREMENT, 0..1),
        ChainStep::new(FunctionCode::INCREMENT, 0..2),
        ChainStep::new(FunctionCode::INCREMENT, 0..2),
    ];
    let regions = vec![Region::inout(vec![0; 100_000]), Region::inout(vec![10; 50])];
    let mut call = connection.create_chain(&steps, regions, &CallOptions::default()).unwrap();
    run(&mut call);
    assert_eq!(close(call), [vec![3; 100_000], vec![12; 50]]);
    // A step that fails ends it.
    let steps = [ChainStep::new(FunctionCode::new(99).unwrap(), 0..1)];
    let mut call = connection.create_chain(&steps, vec![Region::inout(vec![0])], &CallOptions::default()).unwrap();
    call.invoke().unwrap();
    let error = call.wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownFunction, "{error}");
}

#[test]
fn regions_are_written_and_read_between_calls() {
    let bench = bench();
    let connection = bench.open();
    let mut call = connection.create(FunctionCode::EMPTY, vec![Region::inout(vec![7; 10_000])]).unwrap();
    call.write_region(0).unwrap();
    call.write(0, &[0; 10_000]).unwrap();
    call.read_region(0).unwrap();
    let mut bytes = [0; 10_000];
    call.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [7; 10_000], "what was written comes back from the device");
    assert_eq!(call.write_region(1).unwrap_err().code(), ErrorCode::InvalidArgument);
    call.invoke().unwrap();
    assert_eq!(call.read_region(0).unwrap_err().code(), ErrorCode::InvalidArgument, "the regions are the device's now");
    call.wait().unwrap();
    call.read_region(0).unwrap();
    connection.close().unwrap();
    assert_eq!(call.write_region(0).unwrap_err().code(), ErrorCode::Closed);
    assert!(connection.agreed().is_none());
}

#[test]
fn how_far_a_call_has_come_is_known() {
    let bench = bench();
    let connection = bench.open();
    let regions = vec![Region::input_once(vec![1; 100_000]), Region::inout(vec![7; 20_000]), Region::output(5)];
    let mut call = connection.create(FunctionCode::INCREMENT, regions).unwrap();
    let far = |call: &Call| {
        let now = call.transferred();
        [now.sent, now.to_send, now.received, now.to_receive]
    };
    assert_eq!(far(&call), [0, 120_000, 0, 20_005]);
    for to_send in [120_000, 20_000] {
        call.invoke().unwrap();
        let [sent, all, received, _] = far(&call);
        assert!(all == to_send && sent <= to_send && received <= 20_005, "{sent} of {all}, {received}");
        call.wait().unwrap();
        assert_eq!(far(&call), [to_send, to_send, 20_005, 20_005]);
    }
}

#[test]
fn a_device_is_named_by_address_by_name_or_in_a_list() {
    let bench = bench();
    let (ip, name) = (bench.place.identity.ip, bench.place.name.clone());
    let connect = |target: &str| Device::connect(target, &bench.options());
    for target in [ip.to_string(), name.clone(), format!("nobody, {ip}"), format!("{name},nobody")] {
        assert_eq!(connect(&target).unwrap().ip(), ip, "{target}");
    }
    assert_eq!(Device::connect(Target::Name(name), &bench.options()).unwrap().ip(), ip);
    let error = connect("nobody").err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoSuchDevice, "{error}");
    let error = connect("not a name").err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidArgument, "{error}");
    let error = connect("nobody,10.77.9.9").err().unwrap();
    let Error::NoTarget { tried } = &error else { panic!("{error}") };
    let codes: Vec<_> = tried.iter().map(|(target, error)| (target.as_str(), error.code())).collect();
    assert_eq!(codes, [("nobody", ErrorCode::NoSuchDevice), ("10.77.9.9", ErrorCode::Unreachable)]);
    assert!(error.to_string().contains("2 targets") && error.to_string().contains("nobody"), "{error}");
}
