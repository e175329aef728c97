// SPDX-License-Identifier: Apache-2.0
//! Times calls and WRITEs over loopback UDP beside a raw UDP ping-pong, each between two processes that poll, and prints every
//! sample as JSON. `bench/host_udp.py` runs this and makes figures of it; every wait in it has a deadline.
//!
//! As `bench_udp device ADDRESS` and `bench_udp echo ADDRESS` it is the other process, until its standard input ends.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nacelle::{Call, Device, DeviceKind, FunctionCode, Options, Region};
use nacelle_device::{Host, Place, SoftConfig, SoftEngine};
use nacelle_driver::DatagramMedium;
use nacelle_link::{UdpLink, WireDir};
use serde_json::{Value, json};

/// How long any one step may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Blocks of each side in a comparison.
const REPETITIONS: usize = 31;
/// Calls of a block, and WRITEs.
const CALLS: usize = 400;
const WRITES: usize = 4;
/// A long RDMA WRITE, in bytes.
const WRITE: usize = 32 << 20;
/// Bytes of the UDP datagram of a call of 8 bytes: RDMA WRITE Only with immediate, BTH, RETH, ImmDt, payload, ICRC.
const CALL_DATAGRAM: usize = 12 + 16 + 4 + 8 + 4;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Another process of this program.
struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    fn start(role: &str) -> Outcome<Self> {
        let mut child =
            Command::new(std::env::current_exe()?).arg(role).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no pipe")?).read_line(&mut line)?;
        Ok(Self { child, address: line.trim().parse()? })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Ends with its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Sets a flag when the program that started this one has ended, or wants this one to.
fn until_stdin_ends() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    thread::spawn(move || {
        let _ = io::stdin().read(&mut [0]);
        seen.store(true, Ordering::Relaxed);
    });
    stop
}

fn say(address: SocketAddr) -> io::Result<()> {
    println!("{address}");
    io::stdout().flush()
}

/// A software device on a loopback address.
fn device() -> Outcome {
    let stop = until_stdin_ends();
    let temp = tempfile::tempdir()?;
    let link = UdpLink::for_peer(Ipv4Addr::LOCALHOST.into())?;
    let wire = WireDir::open(temp.path().join("wire"))?;
    let medium = DatagramMedium::new(Box::new(link));
    let address = medium.local();
    let place = Place::by_udp(&wire, DeviceKind::Soft, None, address.ip())?;
    let mut host = Host::by_udp(SoftEngine::new(SoftConfig::default()), &place, medium, 1)?;
    say(address)?;
    Ok(host.run(&stop)?)
}

/// Sends each datagram back, and polls for the next.
fn echo() -> Outcome {
    let stop = until_stdin_ends();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    say(socket.local_addr()?)?;
    let mut buffer = [0; 2048];
    let mut last = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, from)) => {
                socket.send_to(&buffer[..length], from)?;
                last = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // The processor is the other side's while that is measured.
                if last.elapsed() > Duration::from_millis(1) {
                    thread::sleep(Duration::from_micros(50));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The times of `samples` of `work`.
fn block(samples: usize, mut work: impl FnMut() -> Outcome) -> Outcome<Vec<f64>> {
    let timed = |_| {
        let begin = Instant::now();
        work()?;
        Ok(begin.elapsed().as_secs_f64())
    };
    (0..samples).map(timed).collect()
}

/// One whole call.
fn run(call: &mut Call) -> Outcome {
    call.invoke()?;
    Ok(call.wait()?)
}

fn measure() -> Outcome {
    let (device, echo) = (Peer::start("device")?, Peer::start("echo")?);
    let options = Options { timeout: PATIENCE, ..Options::default() };
    let ip: IpAddr = device.address.ip();
    let reached = Device::connect(ip, &options)?;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    let mut buffer = [0; 2048];
    let mut ping = || -> Outcome {
        socket.send_to(&[0; CALL_DATAGRAM], echo.address)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match socket.recv_from(&mut buffer) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error.into()),
                Err(_) if Instant::now() > deadline => return Err("no answer to a datagram".into()),
                Err(_) => {}
            }
        }
    };
    let mut small = reached.create(FunctionCode::EMPTY, vec![Region::inout(vec![0; 8])])?;
    let mut rpc = Vec::new();
    for _ in 0..REPETITIONS {
        let ours = block(CALLS, || run(&mut small))?;
        rpc.push(json!({"ours": ours, "peer": block(CALLS, &mut ping)?}));
    }
    let mut large = reached.create(FunctionCode::EMPTY, vec![Region::input(vec![0; WRITE])])?;
    run(&mut large)?;
    let write: Vec<Value> = (0..REPETITIONS / 3)
        .map(|_| Ok(json!({"ours": block(WRITES, || run(&mut large))?})))
        .collect::<Outcome<_>>()?;
    println!("{}", json!({"rpc": rpc, "write": write, "bytes": WRITE}));
    Ok(())
}

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        Some("device") => device(),
        Some("echo") => echo(),
        _ => measure(),
    }
}
