// SPDX-License-Identifier: Apache-2.0
//! Contexts of a connection with kernels whose time the test decides: turns, cancel, deadlines, sizes. What holds on every device, the
//! conformance suite judges (docs/reference/calls.md).

mod common;

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::caller::{Bench, Caller};
use common::gate::Gate;
use nacelle_device::{Call, Failure, Kernel, SoftConfig};
use nacelle_roce::{Access, ConnId, ConnectOptions, Event, RecvWr, Region, SendWr, WcOpcode, WcStatus};
use nacelle_wire::calls::{self, Context, LongRegion, Request, SetUp, SetUpAnswer, Step};
use nacelle_wire::extensions::{Agreement, Extensions};
use nacelle_wire::mrsp::{FunctionCode, RegionFlags, ReturnCode};

const LONG: FunctionCode = FunctionCode::new(100).unwrap();
/// Returns when it is cancelled, and not before.
const PATIENT: FunctionCode = FunctionCode::new(102).unwrap();
const SPARSE: FunctionCode = FunctionCode::new(101).unwrap();
const WAIT: Duration = Duration::from_secs(10);
const BOTH: RegionFlags = RegionFlags::from_bits(0x0c);

/// Functions that wait at a gate, whether they are cancelled or not, and reach memory behind it. Each says at its begin what the
/// first byte of its region is.
struct Long {
    gate: Gate,
    begun: Receiver<u8>,
}

impl Drop for Long {
    fn drop(&mut self) {
        self.gate.open(1000); // so that no thread outlives its test
    }
}

fn long(config: impl FnOnce(&mut SoftConfig) + Send + 'static) -> (Bench, Long) {
    let (gate, (begin, begun)) = (Gate::default(), channel());
    let there = gate.clone();
    let run = move |call: &mut Call<'_>| {
        let _ = begin.send(call.parameters[0][0]);
        there.pass();
        call.parameters[0][0] = 0xee;
        Ok(())
    };
    let bench = Bench::new(move |soft| {
        soft.workers = 1;
        let kernel = described("strange", &[(LONG, "long"), (PATIENT, "patient")]);
        soft.kernels.add(kernel.with(LONG, run).unwrap().with(PATIENT, patient).unwrap()).unwrap();
        config(soft);
    });
    (bench, Long { gate, begun })
}

fn described(name: &str, functions: &[(FunctionCode, &str)]) -> Kernel {
    let function = |(code, name): &(FunctionCode, &str)| {
        let code = code.get();
        format!("[[functions]]\ncode = {code}\nname = \"{name}\"\ndoc = \"\"\nregions = []\n")
    };
    let functions: String = functions.iter().map(function).collect();
    Kernel::from_toml(&format!("name = \"{name}\"\nversion = \"1.0\"\n{functions}")).unwrap()
}

/// Runs until it is cancelled.
fn patient(call: &mut Call<'_>) -> Result<(), Failure> {
    call.parameters[0][0] = 0xdd;
    loop {
        call.cancellation.check()?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A connection with contexts.
struct Many {
    caller: Caller,
    conn: ConnId,
    here: Region,
}

/// Bytes of the buffer here for the outputs of one context; behind them is one for messages.
const ROOM: usize = 64;

impl Many {
    fn connect(bench: &Bench, number: u8, contexts: u8) -> Self {
        let mut caller = bench.caller(number);
        let agreement = Agreement::new(Extensions::CONTEXTS | Extensions::LONG_SET_UP, contexts);
        let conn = caller.begin_with(ConnectOptions { agreement, ..ConnectOptions::default() });
        caller.outcome(conn).unwrap();
        let here = caller.ep.transport.register(vec![0; 64 * ROOM + 1024], Access::REMOTE_WRITE, conn).unwrap();
        Self { caller, conn, here }
    }

    fn agreed(&self) -> Agreement {
        self.caller.ep.transport.connection(self.conn).unwrap().agreement
    }

    /// One region of 8 bytes on a context, all of them `mark`.
    fn prepare(&mut self, context: u8, deadline_ms: u32, mark: u8) {
        let given = self.set_up(context, deadline_ms, &[], &[(BOTH, 8)]).unwrap();
        let write = SendWr::write(4, vec![mark; 8], given[0].address(), given[0].rkey());
        self.caller.ep.transport.post_send(self.conn, write).unwrap();
        self.completed(WcOpcode::Write);
    }

    fn set_up(
        &mut self,
        context: u8,
        deadline_ms: u32,
        steps: &[Step],
        asked: &[(RegionFlags, u64)],
    ) -> Result<Vec<calls::LongGiven>, Vec<u8>> {
        let place = nacelle_wire::RemoteAddr(self.here.addr.0 + u64::from(context) * ROOM as u64);
        let regions: Vec<LongRegion> =
            asked.iter().map(|&(flags, size)| LongRegion::parameter(flags, place, self.here.rkey, size)).collect();
        let mut message = [0; calls::MAX_MESSAGE];
        let length = SetUp { deadline_ms, steps, regions: &regions }.write(&mut message).unwrap();
        self.receive();
        let imm = Request::Message(Context(context)).to_imm();
        self.caller.ep.transport.post_send(self.conn, SendWr::send_imm(1, &message[..length], imm)).unwrap();
        let (imm, length) = self.completed(WcOpcode::Recv);
        assert_eq!(imm, Some(calls::answer_imm(Context(context))));
        let bytes = self.caller.ep.transport.region(self.here.id).unwrap().to_vec().unwrap();
        let answer = bytes[64 * ROOM..][..length].to_vec();
        SetUpAnswer::parse(&answer).map(|given| given.0.to_vec()).map_err(|_| answer.clone())
    }

    /// The next completion of this kind: its immediate and its length.
    fn completed(&mut self, wanted: WcOpcode) -> (Option<u32>, usize) {
        let conn = self.conn;
        self.caller.wait(|event| match event {
            Event::Completion(done) if done.conn == conn && done.opcode == wanted => {
                assert_eq!(done.status, WcStatus::Success);
                Some((done.imm, done.byte_len))
            }
            _ => None,
        })
    }

    /// Posts a receive, for a message or for the end of a call: they come in any order.
    fn receive(&mut self) {
        let slice = self.here.slice(64 * ROOM, 1024);
        self.caller.ep.transport.post_recv(self.conn, RecvWr { id: 0, slice: Some(slice) }).unwrap();
    }

    fn start(&mut self, context: u8, function: Option<FunctionCode>) {
        self.receive();
        let imm = Request::Start { context: Context(context), function, user: [0; 2] }.to_imm();
        self.immediate(imm);
    }

    /// A WRITE of nothing with this immediate, which is acknowledged.
    fn immediate(&mut self, imm: u32) {
        let write = SendWr::write_imm(3, Vec::new(), self.here.addr, self.here.rkey, imm);
        self.caller.ep.transport.post_send(self.conn, write).unwrap();
        self.completed(WcOpcode::Write);
    }

    fn cancel(&mut self, context: u8) {
        let imm = Request::Cancel(Context(context)).to_imm();
        self.caller.ep.transport.post_send(self.conn, SendWr::send_imm(5, Vec::new(), imm)).unwrap();
        self.completed(WcOpcode::Send);
    }

    /// The next end of a call: its context and result.
    fn end(&mut self) -> (u8, ReturnCode) {
        let (imm, _) = self.completed(WcOpcode::RecvWrite);
        let (context, code) = calls::parse_result(imm.unwrap());
        (context.0, code)
    }

    /// What was returned to a context.
    fn output(&self, context: u8) -> Vec<u8> {
        let bytes = self.caller.ep.transport.region(self.here.id).unwrap().to_vec().unwrap();
        bytes[usize::from(context) * ROOM..][..8].to_vec()
    }

    fn closed(mut self) {
        let conn = self.conn;
        self.caller.wait(|event| matches!(event, Event::Disconnected { conn: of, .. } if *of == conn).then_some(()));
    }
}

#[test]
fn a_device_gives_as_many_contexts_as_it_is_configured_for() {
    for (configured, asked, given) in [(8, 200, 8), (8, 3, 3), (0, 8, 0), (1, 8, 1), (200, 200, 32)] {
        let bench = Bench::new(move |soft| soft.contexts = configured);
        let many = Many::connect(&bench, 1, asked);
        assert_eq!(many.agreed().contexts, given, "{configured} {asked}");
        assert_eq!(many.agreed().extensions.contains(Extensions::LONG_SET_UP), given != 0);
    }
}

#[test]
fn connections_take_turns_at_a_kernel() {
    let (bench, long) = long(|_| {});
    let mut greedy = Many::connect(&bench, 1, 8);
    for context in 0..8 {
        greedy.prepare(context, 0, context);
        greedy.start(context, Some(LONG));
    }
    let mut others: Vec<Many> = (2..4).map(|number| Many::connect(&bench, number, 1)).collect();
    for (mark, other) in (100..).zip(&mut others) {
        other.prepare(0, 0, mark);
        other.start(0, Some(LONG));
    }
    bench.wait_for_counter("kernels.waiting", 9);
    long.gate.open(10);
    for other in &mut others {
        assert_eq!(other.end(), (0, ReturnCode::SUCCESS));
    }
    (0..8).for_each(|context| assert_eq!(greedy.end(), (context, ReturnCode::SUCCESS)));
    assert_eq!(long.begun.try_iter().collect::<Vec<_>>(), [0, 1, 100, 101, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_cancelled_call_ends_when_its_function_returns() {
    let (bench, _long) = long(|_| {});
    let mut many = Many::connect(&bench, 1, 2);
    for context in [0, 1] {
        many.prepare(context, 0, 7);
        many.start(context, Some(PATIENT));
    }
    // The second waits for the thread, and ends at once.
    bench.wait_for_counter("kernels.waiting", 1);
    many.cancel(1);
    assert_eq!(many.end(), (1, ReturnCode::CANCELLED));
    let began = Instant::now();
    many.cancel(0);
    many.cancel(0);
    assert_eq!(many.end(), (0, ReturnCode::CANCELLED));
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    assert_eq!((bench.counter("rpc.calls_failed"), bench.counter("kernels.timeouts")), (2, 0));
    // Nothing was returned, and the context has its regions as the function left them.
    assert_eq!(many.output(0), [0; 8]);
    many.start(0, Some(FunctionCode::INCREMENT));
    assert_eq!(many.end(), (0, ReturnCode::SUCCESS));
    assert_eq!(many.output(0), [0xde, 8, 8, 8, 8, 8, 8, 8]);
}

#[test]
fn a_cancelled_call_ends_without_a_function_that_does_not_return() {
    let (bench, long) = long(|config| config.memory_bytes = 17);
    let mut many = Many::connect(&bench, 1, 2);
    // The function gets one region of two; a chain has both.
    many.set_up(0, 0, &[Step::new(LONG, 0, 1, 0)], &[(BOTH, 8), (BOTH, 1)]).unwrap();
    many.start(0, None);
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 0);
    many.cancel(0);
    assert_eq!(many.end(), (0, ReturnCode::CANCELLED));
    // The context has lost its regions, of which the function keeps its own.
    assert_eq!(bench.counter("memory.bytes_held"), 8);
    many.start(0, Some(FunctionCode::INCREMENT));
    assert_eq!(many.end(), (0, ReturnCode::SOCKET_UNAVAILABLE));
    many.prepare(0, 0, 9);
    many.start(0, Some(FunctionCode::INCREMENT));
    assert_eq!(many.end(), (0, ReturnCode::SUCCESS));
    assert_eq!(many.output(0), [10; 8]);
    // Its thread is its own until its time has passed: another call waits for it.
    many.start(0, Some(LONG));
    bench.wait_for_counter("kernels.waiting", 1);
    assert_eq!(bench.counter("kernels.lost"), 0);
    long.gate.open(2);
    assert_eq!(many.end(), (0, ReturnCode::SUCCESS));
    assert_eq!(many.output(0), [0xee, 10, 10, 10, 10, 10, 10, 10]);
    bench.wait_for_counter("memory.bytes_held", 8);
}

#[test]
fn a_deadline_counts_from_the_start_and_also_for_a_call_that_waits() {
    let (bench, long) = long(|_| {});
    let mut other = Many::connect(&bench, 1, 1);
    other.prepare(0, 0, 1);
    other.start(0, Some(LONG));
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 1);
    let mut many = Many::connect(&bench, 2, 2);
    many.prepare(0, 200, 2);
    many.prepare(1, 60_000, 3);
    let began = Instant::now();
    many.start(1, Some(LONG));
    many.start(0, Some(LONG));
    assert_eq!(many.end(), (0, ReturnCode::DEADLINE));
    assert!((180..5000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    long.gate.open(2);
    assert_eq!(other.end(), (0, ReturnCode::SUCCESS));
    assert_eq!(many.end(), (1, ReturnCode::SUCCESS));
    assert_eq!(long.begun.try_iter().collect::<Vec<_>>(), [3], "the late call never began");
    assert_eq!(many.output(0), [0; 8]);
    // One that runs.
    many.prepare(0, 100, 4);
    many.start(0, Some(LONG));
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 4);
    assert_eq!(many.end(), (0, ReturnCode::DEADLINE));
    // A chain is late as a whole.
    let given = many.set_up(1, 300, &[Step::new(LONG, 0, 1, 0); 4], &[(BOTH, 8)]).unwrap();
    assert_eq!(given.len(), 1);
    long.gate.open(2);
    many.start(1, None);
    assert_eq!(many.end(), (1, ReturnCode::DEADLINE));
    assert_eq!(
        long.begun.try_iter().collect::<Vec<_>>(),
        [0, 0xee],
        "its second step is stopped, and the third does not begin"
    );
}

#[test]
fn a_caller_that_keeps_asking_is_expelled() {
    let (bench, long) = long(|_| {});
    let mut many = Many::connect(&bench, 1, 2);
    many.prepare(0, 0, 7);
    many.prepare(1, 0, 8);
    many.start(0, Some(LONG));
    assert_eq!(long.begun.recv_timeout(WAIT).unwrap(), 7);
    // Two messages are kept until the call has ended; a third is too many.
    for _ in 0..3 {
        let imm = Request::Message(Context(0)).to_imm();
        many.caller.ep.transport.post_send(many.conn, SendWr::send_imm(1, vec![9, 0, 0, 0], imm)).unwrap();
    }
    many.closed();
    assert_eq!(bench.counter("rpc.callers_expelled"), 1);
    bench.wait_for_counter("rpc.callers", 0);
    bench.wait_for_counter("memory.bytes_held", 8);
    long.gate.open(1);
    bench.wait_for_counter("memory.bytes_held", 0);
    let mut next = Many::connect(&bench, 2, 1);
    next.prepare(0, 0, 1);
    next.start(0, Some(FunctionCode::INCREMENT));
    assert_eq!(next.end(), (0, ReturnCode::SUCCESS));
    assert_eq!(next.output(0), [2; 8]);
}

/// The pages that a kernel does not touch cost no memory.
#[test]
fn a_kernel_gets_regions_of_more_than_32_bits() {
    const SIZE: u64 = (5 << 30) + 3;
    let bench = Bench::new(|soft| {
        soft.memory_bytes = 8 << 30;
        let kernel = described("sparse", &[(SPARSE, "sparse")]).with(SPARSE, |call: &mut Call<'_>| {
            let large = &mut call.internal[0];
            let (length, middle) = (large.len(), 4 << 30);
            (large[length - 1], large[middle]) = (5, 6);
            let [a, b] = (length as u64).to_be_bytes()[3..5] else { return Err(Failure::BAD_ARGUMENTS) };
            let read =
                [large[0], large[1], large[middle - 1], large[middle], large[length - 2], large[length - 1], a, b];
            call.parameters[0].copy_from_slice(&read);
            Ok(())
        });
        soft.kernels.add(kernel.unwrap()).unwrap();
    });
    let mut many = Many::connect(&bench, 1, 1);
    many.set_up(0, 0, &[], &[(BOTH, 8), (RegionFlags::INTERNAL, SIZE)]).unwrap();
    assert_eq!(bench.counter("memory.bytes_held"), SIZE + 8);
    many.start(0, Some(SPARSE));
    assert_eq!(many.end(), (0, ReturnCode::SUCCESS));
    assert_eq!(many.output(0), [0, 0, 0, 6, 0, 5, 1, 0x40]);
    // As a parameter it has its whole size, too, and what is not there is refused.
    let given = many.set_up(0, 0, &[], &[(RegionFlags::INPUT, SIZE)]).unwrap();
    assert_eq!(given[0].size(), SIZE);
    let refused = many.set_up(0, 0, &[], &[(BOTH, 8), (RegionFlags::INTERNAL, 8 << 30)]).unwrap_err();
    assert_eq!(refused, [0, 2, 0, 0]);
}
