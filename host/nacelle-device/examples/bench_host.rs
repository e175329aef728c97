// SPDX-License-Identifier: Apache-2.0
//! Times the host software beside the least that the same work can cost here, and prints every sample as JSON.
//!
//! Each comparison alternates between blocks of ours and blocks of the peer, so that what else this machine does falls on
//! both alike. Times are in seconds. `bench/host.py` runs this and makes figures of it; every wait in it has a deadline.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nacelle::{Call, Device, DeviceKind, FunctionCode, Options, Region};
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_link::{MAX_FRAME, SwitchHost, VirtualWire, WireDir};
use nacelle_roce::{Access, ConnectOptions, Endpoint, EndpointConfig, Event, RecvWr, SendWr};
use nacelle_wire::bth::{Bth, ImmDt, Opcode, Reth};
use nacelle_wire::ethernet::EthernetHeader;
use nacelle_wire::roce::{BASE_LEN, Flow};
use nacelle_wire::transport::Ext;
use nacelle_wire::{Psn, Qpn, RoceHeaders, icrc};
use serde_json::{Value, json};

/// How long any one step may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Blocks of each side in a comparison.
const REPETITIONS: usize = 31;
/// Payload of a frame at the path MTU of the virtual wire, in bytes.
const MTU: usize = 4096;
/// The frame that carries a call of 8 bytes, and the one that brings its result: RDMA WRITE Only with immediate.
const CALL_FRAME: usize = BASE_LEN + size_of::<Reth>() + size_of::<ImmDt>() + 8 + icrc::LEN;
/// The frames in the middle of a long RDMA WRITE.
const WRITE_FRAME: usize = BASE_LEN + MTU + icrc::LEN;
/// A long RDMA WRITE, in bytes.
const WRITE: usize = 8 << 20;
/// Frames in flight at most, as on a connection by default; it is acknowledged twice a window.
const WINDOW: usize = 128;
/// Calls over which allocations are counted.
const CALLS_COUNTED: u64 = 1000;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The system's allocator, counting what each thread asks for.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator; counting touches no memory of it and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of this thread for each of many `work`, once all queues have grown to their size.
fn allocations(mut work: impl FnMut() -> Outcome) -> Outcome<f64> {
    (0..CALLS_COUNTED).try_for_each(|_| work())?;
    let before = ALLOCATIONS.get();
    (0..CALLS_COUNTED).try_for_each(|_| work())?;
    Ok((ALLOCATIONS.get() - before) as f64 / CALLS_COUNTED as f64)
}

/// The times of `samples` ours and as many of the peer's, block after block.
fn compare(samples: usize, mut ours: impl FnMut() -> Outcome, mut peer: impl FnMut() -> Outcome) -> Outcome<Value> {
    fn block(samples: usize, work: &mut dyn FnMut() -> Outcome) -> Outcome<Vec<f64>> {
        let timed = |_| {
            let begin = Instant::now();
            work()?;
            Ok(begin.elapsed().as_secs_f64())
        };
        (0..samples).map(timed).collect()
    }
    ours()?;
    peer()?; // now every address is known
    let repetition = |_| Ok(json!({"ours": block(samples, &mut ours)?, "peer": block(samples, &mut peer)?}));
    (0..REPETITIONS).map(repetition).collect()
}

/// A party of the wire that exchanges raw frames.
struct Raw {
    socket: UnixDatagram,
    /// Where frames go: past the switch, as those of the wire's parties.
    to: PathBuf,
    header: [u8; EthernetHeader::LEN],
}

/// Where a raw frame says whether it asks for an answer.
const ASKS: usize = EthernetHeader::LEN;

impl Raw {
    /// The station `here`, which sends to the station `there`. The EtherType is one for local experiments (IEEE 802).
    fn join(wire: &WireDir, here: u8, there: u8) -> io::Result<Self> {
        let socket = UnixDatagram::bind(wire.file(&format!("raw{here}.sock")))?;
        let header = [2, 0, 0, 0, 0, there, 2, 0, 0, 0, 0, here, 0x88, 0xb5];
        Ok(Self { socket, to: wire.file(&format!("raw{there}.sock")), header })
    }

    /// Sends `count` frames of `length` bytes; the last one asks for an answer.
    fn send(&self, buffer: &mut [u8], length: usize, count: usize) -> io::Result<()> {
        buffer[..ASKS].copy_from_slice(&self.header);
        for left in (0..count).rev() {
            buffer[ASKS] = u8::from(left == 0);
            self.socket.send_to(&buffer[..length], &self.to)?;
        }
        Ok(())
    }

    /// Receives frames until one of the other station asks for an answer, or is one.
    fn receive(&self, buffer: &mut [u8]) -> io::Result<()> {
        loop {
            let length = self.socket.recv(buffer)?;
            if length > ASKS && buffer[..6] == self.header[6..12] && buffer[ASKS] == 1 {
                return Ok(());
            }
        }
    }
}

/// Starts a software device; it ends with this program.
fn start_device(place: Place) -> Outcome {
    let (ready, started) = mpsc::channel();
    thread::spawn(move || {
        let link = Box::new(VirtualWire::join(&place.wire, &place.name).expect("the wire can be joined"));
        let engine = SoftEngine::new(SoftConfig::default());
        let mut host = Host::new(engine, &place, link, 1).expect("the device can be made");
        ready.send(()).expect("the main thread waits for the device");
        host.run(&AtomicBool::new(false)).expect("the wire stays");
    });
    Ok(started.recv_timeout(PATIENCE)?)
}

/// One whole call.
fn run(call: &mut Call) -> Outcome {
    call.invoke()?;
    Ok(call.wait()?)
}

/// One call's worth of transport, there and back, between two endpoints without a wire.
fn transport() -> Outcome<impl FnMut() -> Outcome> {
    const NOW: nacelle_roce::Instant = nacelle_roce::Instant::ZERO;
    fn exchange(ends: &mut [Endpoint; 2], frame: &mut [u8]) {
        while let Some((from, length)) = (0..2).find_map(|end| Some((end, ends[end].poll_transmit(NOW, frame)?))) {
            ends[1 - from].handle(NOW, &frame[..length]).expect("what one end sends is right for the other");
        }
    }
    let ip = |end: u8| [10, 0, 0, end].into();
    let end = |end| Endpoint::new(EndpointConfig::new([2, 0, 0, 0, 0, end].into(), ip(end), [end; 32]));
    let mut ends = [end(0), end(1)];
    let mut frame = vec![0; ends[0].frame_len()];
    ends[1].transport.listen(1);
    let caller = ends[0].connect(NOW, ip(1), 1, ConnectOptions::default())?;
    exchange(&mut ends, &mut frame);
    let Some(Event::ConnectRequest { conn: device, .. }) = ends[1].transport.poll_event() else {
        return Err("no request".into());
    };
    ends[1].transport.accept(NOW, device, ConnectOptions::default())?;
    exchange(&mut ends, &mut frame);
    let conns = [caller, device];
    let mut regions = Vec::new();
    for (end, conn) in ends.iter_mut().zip(conns) {
        regions.push(end.transport.register(vec![0; 8], Access::REMOTE_WRITE, Some(conn))?);
        while end.transport.poll_event().is_some() {}
    }
    Ok(move || {
        for (from, to) in [(0, 1), (1, 0)] {
            let target = regions[to];
            ends[to].transport.post_recv(conns[to], RecvWr { id: 0, slice: None })?;
            let request = SendWr::write_imm(0, regions[from].all(), target.addr, target.rkey, 3);
            ends[from].transport.post_send(conns[from], request)?;
            exchange(&mut ends, &mut frame);
            for end in &mut ends {
                let Some(Event::Completion(_)) = end.transport.poll_event() else {
                    return Err("a WRITE did not end".into());
                };
            }
        }
        Ok(())
    })
}

fn main() -> Outcome {
    let temp = tempfile::tempdir()?;
    let wire = WireDir::open(temp.path().join("wire"))?;
    let _switch = SwitchHost::start(&wire)?;
    let place = Place::find(&wire, DeviceKind::Soft, None, None)?;
    let ip = place.identity.ip;
    start_device(place)?;

    let options = Options { wire: Some(wire.path().to_owned()), timeout: PATIENCE, ..Options::default() };
    let device = Device::connect(ip, &options)?;
    let (near, far) = (Raw::join(&wire, 1, 2)?, Raw::join(&wire, 2, 1)?);
    near.socket.set_read_timeout(Some(PATIENCE))?;
    near.socket.set_write_timeout(Some(PATIENCE))?;
    thread::spawn(move || {
        let (mut received, mut answer) = ([0; MAX_FRAME], [0; CALL_FRAME]);
        // Ends when the wire does.
        while far.receive(&mut received).and_then(|()| far.send(&mut answer, CALL_FRAME, 1)).is_ok() {}
    });
    let (mut sent, mut answer) = ([0; WRITE_FRAME], [0; MAX_FRAME]);

    let mut call = device.create(FunctionCode::EMPTY, vec![Region::inout(vec![0; 8])])?;
    let ping = || {
        near.send(&mut sent, CALL_FRAME, 1)?;
        Ok(near.receive(&mut answer)?)
    };
    let rpc = compare(200, || run(&mut call), ping)?;
    let rpc_allocations = allocations(|| run(&mut call))?;
    call.close()?;

    let mut call = device.create(FunctionCode::EMPTY, vec![Region::input(vec![0; WRITE])])?;
    let stream = || {
        // A part is in flight while the one before it is answered.
        const BLOCK: usize = WINDOW / 2;
        near.send(&mut sent, WRITE_FRAME, BLOCK)?;
        for _ in 1..WRITE / MTU / BLOCK {
            near.send(&mut sent, WRITE_FRAME, BLOCK)?;
            near.receive(&mut answer)?;
        }
        Ok(near.receive(&mut answer)?)
    };
    let write = compare(3, || run(&mut call), stream)?;
    call.close()?;

    let flow = Flow::new([2; 6].into(), [4; 6].into(), ip, ip, 0xc000);
    let headers = RoceHeaders::new(&flow, Bth::new(Opcode::WriteMiddle, Qpn::new(2), Psn::new(0)), Ext::None);
    let payload = vec![0x5a; MTU];
    let frames = |crc: &dyn Fn(&[u8]) -> u32| {
        for _ in 0..WRITE / MTU {
            black_box(crc(black_box(&payload)));
        }
        Ok(())
    };
    let icrc = |packet: &[u8]| u32::from_le_bytes(icrc::over_ipv4(&headers.ip, &headers.udp, packet));
    let icrc = compare(10, || frames(&icrc), || frames(&crc32fast::hash))?;
    let transport_allocations = allocations(transport()?)?;

    println!(
        "{}",
        json!({
            "rpc": rpc,
            "write": write,
            "icrc": icrc,
            "bytes": WRITE,
            "rpc_allocations": rpc_allocations,
            "transport_allocations": transport_allocations,
        })
    );
    Ok(())
}
