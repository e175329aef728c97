// SPDX-License-Identifier: Apache-2.0
//! The client library against the software device, over the virtual wire: what works, and how each kind of failure ends.

mod common;

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use common::Running;
use nacelle::{Device, DeviceKind, Error, ErrorCode, FunctionCode, Options, Region, Step, matmul};
use nacelle_device::{Place, SoftConfig, SoftEngine};
use nacelle_link::{Impairments, WireDir};
use nacelle_manage::Control;
use nacelle_roce::ConnectOptions;
use nacelle_wire::kernel::matmul::{Args, Dtype};
use ndarray::{Array2, ArrayView2, ShapeBuilder};

/// A device on a wire of its own.
struct Bench {
    device: Option<Running>,
    place: Place,
    _temp: tempfile::TempDir,
}

/// Times short enough for tests on a machine that is not slow.
fn quick() -> ConnectOptions {
    ConnectOptions {
        ack_timeout: Duration::from_millis(50),
        max_ack_timeout: Duration::from_millis(400),
        cm_timeout: Duration::from_millis(200),
        cm_retries: 5,
        keepalive: Some(Duration::from_millis(300)),
        ..ConnectOptions::default()
    }
}

impl Bench {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let place = Place::find(&wire, DeviceKind::Soft, None, None).unwrap();
        let device = Running::start(&place, || {
            SoftEngine::new(SoftConfig { connect: quick(), connections_per_caller: 0, ..SoftConfig::default() })
        });
        Self { device: Some(device), place, _temp: temp }
    }

    fn options(&self) -> Options {
        Options {
            wire: Some(self.place.wire.path().to_owned()),
            connect: quick(),
            resolve_timeout: Duration::from_millis(500),
            timeout: Duration::from_secs(10),
            ..Options::default()
        }
    }

    fn ip(&self) -> Ipv4Addr {
        self.place.identity.ip
    }

    fn connect(&self) -> Device {
        Device::connect(self.ip(), &self.options()).unwrap()
    }

    fn counter(&self, name: &str) -> u64 {
        Control::open(&self.place.wire, &self.place.name).unwrap().stats().unwrap().counters[name]
    }

    fn wait_for_counter(&self, name: &str, value: u64) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.counter(name) != value {
            assert!(Instant::now() < deadline, "{name} is {}, not {value}", self.counter(name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn pattern(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

fn integers(rows: usize, columns: usize, seed: u64) -> Array2<i32> {
    let mut random = fastrand::Rng::with_seed(seed);
    Array2::from_shape_fn((rows, columns), |_| random.i32(..))
}

fn product(a: ArrayView2<'_, i32>, b: ArrayView2<'_, i32>) -> Array2<i32> {
    Array2::from_shape_fn((a.nrows(), b.ncols()), |(row, column)| {
        (0..a.ncols()).fold(0i32, |sum, i| sum.wrapping_add(a[(row, i)].wrapping_mul(b[(i, column)])))
    })
}

#[test]
fn every_byte_is_incremented_again_and_again() {
    let bench = Bench::new();
    let device = bench.connect();
    for length in [1, 3, 4, 1023, 1024, 1025, 100_000, 1_000_000] {
        let sent = pattern(length, length as u64);
        let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(sent.clone())]).unwrap();
        let mut got = vec![0; length];
        for round in 1..=3u8 {
            call.invoke().unwrap();
            call.wait().unwrap();
            assert_eq!(call.read(0, &mut got).unwrap(), length);
            let expected: Vec<u8> = sent.iter().map(|byte| byte.wrapping_add(round)).collect();
            assert!(got == expected, "{length} bytes, round {round}");
        }
        assert_eq!(close(call), [got]);
    }
    bench.wait_for_counter("rpc.callers", 0);
    assert_eq!(bench.counter("memory.bytes_held"), 0);
}

#[test]
fn matrices_of_any_shape_and_order_are_multiplied() {
    let bench = Bench::new();
    let device = bench.connect();
    for (m, k, n) in [(1, 1, 1), (3, 5, 7), (16, 16, 16), (1, 300, 1), (65, 33, 70)] {
        let (a, b) = (integers(m, k, 1), integers(k, n, 2));
        let (c, report) = matmul(&device, a.view(), b.view()).unwrap();
        assert_eq!(c, product(a.view(), b.view()), "{m}x{k} by {k}x{n}");
        let steps: Vec<Step> = report.steps.iter().map(|step| step.step).collect();
        use Step::{AddressResolution, Compute, Connect, Inputs, Outputs, RegionSetup};
        assert_eq!(steps, [AddressResolution, Connect, RegionSetup, Inputs, Compute, Outputs]);
        assert!(report.steps[3].tx_bytes as usize > 4 * (m * k + k * n));
        assert!(report.steps.iter().map(|step| step.rx_bytes).sum::<u64>() as usize > 4 * m * n);
    }
    let a = Array2::from_shape_vec((2, 3).f(), vec![1.5f32, 4.0, 2.0, 5.0, 3.0, 6.0]).unwrap();
    let b = Array2::from_shape_vec((3, 1), vec![1.0f32, 10.0, 100.0]).unwrap();
    let (c, _) = matmul(&device, a.view(), b.view()).unwrap();
    assert_eq!(c, Array2::from_shape_vec((2, 1), vec![321.5, 654.0]).unwrap());
    let (c, _) = matmul(&device, b.t(), a.t()).unwrap();
    assert_eq!(c, Array2::from_shape_vec((1, 2), vec![321.5, 654.0]).unwrap());
}

#[test]
fn roles_decide_what_travels() {
    let bench = Bench::new();
    let device = bench.connect();
    let regions = vec![
        Region::internal(5000),
        Region::input_once(vec![1; 4000]),
        Region::input(vec![2; 10]),
        Region::output(10),
        Region::inout(vec![3; 20]),
    ];
    let mut call = device.create(FunctionCode::INCREMENT, regions).unwrap();
    call.invoke().unwrap();
    while !call.test().unwrap() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let first = call.report().clone();
    call.write(2, &[9; 10]).unwrap();
    assert_eq!(call.write(2, &[9; 11]).unwrap_err().code(), ErrorCode::InvalidArgument);
    assert_eq!(call.read(0, &mut []).unwrap_err().code(), ErrorCode::InvalidArgument, "internal");
    call.invoke().unwrap();
    assert_eq!(call.invoke().unwrap_err().code(), ErrorCode::InvalidArgument, "it runs");
    call.wait().unwrap();
    let inputs = |report: &nacelle::Report| report.steps.iter().find(|s| s.step == Step::Inputs).unwrap().tx_bytes;
    assert!(inputs(&first) > 4000 && inputs(call.report()) < 1000, "single-send regions go once");
    let got = close(call);
    assert_eq!(got, [vec![], vec![1; 4000], vec![9; 10], vec![2; 10], vec![5; 20]]);
}

#[test]
fn calls_run_side_by_side_on_one_address_and_on_many() {
    let bench = Bench::new();
    let device = bench.connect();
    let worker = |device: Device, seed: u64| {
        std::thread::spawn(move || {
            for round in 0..5 {
                let sent = pattern(20_000, seed + round);
                let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(sent.clone())]).unwrap();
                call.invoke().unwrap();
                call.wait().unwrap();
                let got = close(call).remove(0);
                assert!(got.iter().zip(&sent).all(|(got, sent)| *got == sent.wrapping_add(1)));
            }
        })
    };
    let mut workers: Vec<_> = (0..4).map(|n| worker(device.clone(), 100 * n)).collect();
    workers.extend((4..8).map(|n| worker(bench.connect(), 100 * n)));
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    bench.wait_for_counter("rpc.callers", 0);
}

#[test]
fn a_bad_wire_costs_time_but_no_byte() {
    let bench = Bench::new();
    for seed in 0..3 {
        let impairments =
            Impairments { loss: 0.03, duplicate: 0.02, reorder: 0.02, corrupt: 0.02, seed, ..Impairments::default() };
        let mut options = Options { impairments, ..bench.options() };
        options.connect.ack_timeout = Duration::from_millis(20);
        let device = Device::connect(bench.ip(), &options).unwrap();
        let sent = pattern(200_000, seed);
        let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(sent.clone())]).unwrap();
        call.invoke().unwrap();
        call.wait().unwrap();
        let got = close(call).remove(0);
        assert!(got.iter().zip(&sent).all(|(got, sent)| *got == sent.wrapping_add(1)), "seed {seed}");
    }
    assert!(bench.counter("roce.discard_icrc") + bench.counter("roce.discard_malformed") > 0);
}

#[test]
fn an_address_where_nobody_answers_is_unreachable() {
    let bench = Bench::new();
    let started = Instant::now();
    let error = Device::connect(Ipv4Addr::new(10, 77, 3, 3), &bench.options()).err().unwrap();
    assert_eq!((error.code(), error.code().exit_code()), (ErrorCode::Unreachable, 3), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3));
    for nonsense in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 1)] {
        let error = Device::connect(nonsense, &bench.options()).err().unwrap();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
    }
}

#[test]
fn an_address_that_is_taken_is_not_taken_again() {
    let bench = Bench::new();
    let options = Options { source: Some((bench.ip().into(), 16)), ..bench.options() };
    let error = Device::connect(bench.ip(), &options).err().unwrap();
    assert!(matches!(error, Error::AddressTaken { owner, .. } if owner == bench.place.identity.mac), "{error}");
    let own = Options { source: Some((Ipv4Addr::new(10, 77, 9, 9).into(), 16)), ..bench.options() };
    Device::connect(bench.ip(), &own).unwrap().ping(1, 100, Duration::from_secs(2)).unwrap();
}

#[test]
fn a_port_where_nobody_listens_refuses() {
    let bench = Bench::new();
    let options = Options { port: Some(7), ..bench.options() };
    let device = Device::connect(bench.ip(), &options).unwrap();
    let error = device.create(FunctionCode::EMPTY, vec![Region::input(vec![1])]).err().unwrap();
    assert!(matches!(error, Error::Refused { reason: 8, .. }), "{error}");
    assert_eq!(error.code().exit_code(), 4);
}

#[test]
fn an_unknown_function_and_bad_arguments_are_remote_errors() {
    let bench = Bench::new();
    let device = bench.connect();
    let run = |function, regions| {
        let mut call = device.create(function, regions).unwrap();
        call.invoke().unwrap();
        let error = call.wait().unwrap_err();
        assert_eq!(error.code().exit_code(), 6);
        close(call);
        error
    };
    let unknown = run(FunctionCode::new(99).unwrap(), vec![Region::inout(vec![1])]);
    assert!(matches!(unknown, Error::UnknownFunction { function: 99, .. }), "{unknown}");
    let args = Args { dtype: Dtype::Int32, m: 4, n: 4, k: 4 }.to_bytes().to_vec();
    let matrices = |args: Vec<u8>, size| {
        vec![Region::input(args), Region::input(vec![0; 64]), Region::input(vec![0; size]), Region::output(64)]
    };
    let small = run(FunctionCode::MATMUL, matrices(args, 63));
    assert!(matches!(small, Error::Kernel { code: 0x11, .. }), "{small}");
    let junk = run(FunctionCode::MATMUL, matrices(vec![0; 64], 64));
    assert!(matches!(junk, Error::Kernel { code: 0x10, .. }), "{junk}");
    let few = run(FunctionCode::MATMUL, vec![Region::input(vec![0; 64]), Region::output(64)]);
    assert!(matches!(few, Error::Kernel { code: 0x10, .. }), "{few}");
    let short = run(FunctionCode::MATMUL, matrices(vec![0; 63], 64));
    assert!(matches!(short, Error::Kernel { code: 0x11, .. }), "{short}");
    // The device goes on.
    let mut call = device.create(FunctionCode::EMPTY, vec![Region::input(vec![1])]).unwrap();
    call.invoke().unwrap();
    call.wait().unwrap();
}

#[test]
fn the_device_describes_itself() {
    let bench = Bench::new();
    let device = bench.connect();
    let description = device.describe().unwrap().unwrap();
    let functions: Vec<_> =
        description.functions.iter().map(|f| (f.code, f.name.as_str(), f.kernel.as_str())).collect();
    assert_eq!(functions[..3], [(1, "increment", "increment"), (3, "empty", "increment"), (16, "matmul", "matmul")]);
    let vector = [(64, "binary"), (65, "unary"), (66, "fill"), (67, "reduce"), (68, "dot")];
    assert_eq!(functions[3..], vector.map(|(code, name)| (code, name, "vector")));
    let matmul = description.function(16).unwrap();
    assert_eq!(matmul.regions.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["arguments", "A", "B", "C"]);
    assert_eq!((description.max_regions, description.kind), (32, nacelle::description::Kind::Soft));
    // What a result code means is read when it is wanted, by a caller that has not asked before.
    let other = bench.connect();
    let mut call = other.create(FunctionCode::MATMUL, vec![Region::input(vec![0; 64]), Region::output(64)]).unwrap();
    call.invoke().unwrap();
    let error = call.wait().unwrap_err().to_string();
    assert!(error.contains("the argument block is wrong"), "{error}");
}

#[test]
fn regions_that_cannot_be_are_refused_here_or_there() {
    let bench = Bench::new();
    let device = bench.connect();
    let create = |regions| device.create(FunctionCode::EMPTY, regions).err().map(|error| error.code());
    assert_eq!(create(vec![]), Some(ErrorCode::InvalidArgument));
    assert_eq!(create(vec![Region::internal(9)]), Some(ErrorCode::InvalidArgument));
    assert_eq!(create(vec![Region::input(vec![])]), Some(ErrorCode::InvalidArgument));
    assert_eq!(create((0..32).map(|_| Region::output(1)).collect()), Some(ErrorCode::InvalidArgument));
    assert_eq!(create((0..31).map(|_| Region::output(1)).collect()), None);
    let too_large = vec![Region::output(1), Region::internal(u32::MAX as usize)];
    let error = device.create(FunctionCode::EMPTY, too_large).err().unwrap();
    assert!(matches!(error, Error::RegionsRefused { code: 2, .. }), "{error}");
    assert_eq!(error.code().exit_code(), 4);
    assert_eq!(create(vec![Region::output(1)]), None, "the device goes on");
    bench.wait_for_counter("memory.bytes_held", 0);
}

#[test]
fn shapes_that_do_not_fit_are_refused_here() {
    let bench = Bench::new();
    let device = bench.connect();
    for (a, b) in [((2, 3), (2, 3)), ((2, 0), (0, 3)), ((0, 2), (2, 2))] {
        let error = matmul(&device, Array2::<i32>::zeros(a).view(), Array2::zeros(b).view()).err().unwrap();
        assert_eq!(error.code(), ErrorCode::InvalidArgument, "{a:?} {b:?}");
    }
    assert_eq!(bench.counter("rpc.calls"), 0);
}

#[test]
fn a_device_that_vanishes_is_noticed_in_the_step_where_it_does() {
    let mut bench = Bench::new();
    let device = bench.connect();
    let mut call = device.create(FunctionCode::INCREMENT, vec![Region::inout(vec![0; 100_000])]).unwrap();
    call.invoke().unwrap();
    call.wait().unwrap();
    drop(bench.device.take());
    let started = Instant::now();
    let error = call.invoke().and_then(|()| call.wait()).unwrap_err();
    assert!(matches!(error, Error::Lost { step: Step::Inputs, .. }), "{error}");
    assert_eq!(error.code().exit_code(), 3);
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    // So is one that vanishes while no call is under way.
    let error = device.create(FunctionCode::EMPTY, vec![Region::input(vec![1])]).err().unwrap();
    assert!(matches!(error.code(), ErrorCode::Timeout | ErrorCode::Unreachable | ErrorCode::Link), "{error}");
}

#[test]
fn two_hundred_and_fifty_six_callers_are_served_and_one_more_is_refused() {
    let bench = Bench::new();
    // One caller's endpoint has as many connections as a device; one more needs an endpoint of its own.
    let (device, late) = (bench.connect(), bench.connect());
    let mut calls: Vec<_> = (0..256u64)
        .map(|seed| device.create(FunctionCode::INCREMENT, vec![Region::inout(pattern(100, seed))]).unwrap())
        .collect();
    assert_eq!(bench.counter("rpc.callers"), 256);
    let refused = late.create(FunctionCode::INCREMENT, vec![Region::inout(vec![0])]).err().unwrap();
    assert!(matches!(refused, Error::Refused { reason: 1, .. }), "{refused}");
    calls.iter_mut().for_each(|call| call.invoke().unwrap());
    for (seed, mut call) in calls.drain(1..).enumerate() {
        call.wait().unwrap();
        let expected: Vec<u8> = pattern(100, seed as u64 + 1).iter().map(|byte| byte.wrapping_add(1)).collect();
        assert_eq!(close(call), [expected]);
    }
    bench.wait_for_counter("rpc.callers", 1);
    late.create(FunctionCode::INCREMENT, vec![Region::inout(vec![0])]).unwrap();
}

#[test]
fn a_caller_that_vanishes_leaves_nothing_behind() {
    let bench = Bench::new();
    let lost = bench.connect();
    let mut call = lost.create(FunctionCode::INCREMENT, vec![Region::inout(vec![0; 100_000])]).unwrap();
    call.invoke().unwrap();
    // Neither the call nor its connection are closed, and their frames are no longer sent: as if the caller had been killed.
    std::mem::forget(call);
    bench.wait_for_counter("rpc.callers", 1);
    let device = bench.connect();
    let (c, _) = matmul(&device, integers(4, 4, 1).view(), integers(4, 4, 2).view()).unwrap();
    assert_eq!(c, product(integers(4, 4, 1).view(), integers(4, 4, 2).view()));
    bench.wait_for_counter("rpc.callers", 0);
    assert_eq!(bench.counter("memory.bytes_held"), 0);
}

/// Ends a call. Returns the bytes of its regions.
fn close(call: nacelle::Call) -> Vec<Vec<u8>> {
    let regions = call.close().unwrap();
    regions.into_iter().map(|memory| memory.into_vec().unwrap()).collect()
}
