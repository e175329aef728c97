// SPDX-License-Identifier: Apache-2.0
//! Kernels of the software device that take each other's place while calls run.

mod common;

use std::net::IpAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::caller::{Bench, Caller, Session};
use common::gate::Gate;
use nacelle::{Device, Options};
use nacelle_device::Kernel;
use nacelle_manage::{ChangeError, Control, Digest, KernelSocket};
use nacelle_roce::{Access, Event, WcStatus};
use nacelle_wire::mrsp::{ARegion, FunctionCode, ReturnCode};
use nacelle_wire::{DescriptionLocation, LoadRecord, RemoteAddr};

/// Both kernels have it; the first one waits at a gate.
const MARK: FunctionCode = FunctionCode::new(100).unwrap();
/// The socket of the two, behind `increment`, `matmul` and `vector`.
const SOCKET: u16 = 3;
const WAIT: Duration = Duration::from_secs(10);

struct Scene {
    bench: Bench,
    gate: Gate,
    begun: Receiver<()>,
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.gate.open(1000); // so that no thread outlives its test
    }
}

fn described(name: &str, own: u8) -> Kernel {
    let functions =
        [MARK.get(), own].map(|code| format!("[[functions]]\ncode = {code}\nname = \"f{code}\"\ndoc = \"\"\n"));
    Kernel::from_toml(&format!("name = \"{name}\"\nversion = \"1.0\"\n{}", functions.concat())).unwrap()
}

fn scene() -> Scene {
    let gate = Gate::default();
    let (begin, begun) = channel();
    let there = gate.clone();
    let bench = Bench::new(move |soft| {
        soft.workers = 2;
        let own = |code| FunctionCode::new(code).unwrap();
        let waits = described("waits", 101)
            .with(MARK, move |call| {
                let _ = begin.send(());
                while !call.cancellation.is_cancelled() && !there.passes() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                call.cancellation.check()?;
                call.parameters[0].fill(1);
                Ok(())
            })
            .and_then(|kernel| kernel.with(own(101), |_| Ok(())));
        let quick = described("quick", 102)
            .with(MARK, |call| {
                call.parameters[0].fill(2);
                Ok(())
            })
            .and_then(|kernel| kernel.with(own(102), |_| Ok(())));
        soft.kernels.add(waits.unwrap()).unwrap();
        soft.kernels.add_image("waits", quick.unwrap()).unwrap();
    });
    Scene { bench, gate, begun }
}

impl Scene {
    fn control(&self) -> Control {
        Control::open(&self.bench.place.wire, &self.bench.place.name).unwrap()
    }

    fn socket(&self) -> KernelSocket {
        self.control().kernels().unwrap().swap_remove(usize::from(SOCKET))
    }

    fn activate(&self, image: u8) {
        let digest = self.socket().images[usize::from(image)].digest.unwrap();
        self.control().activate_kernel(SOCKET, image, digest).unwrap();
    }

    fn settled(&self) -> KernelSocket {
        let until = Instant::now() + WAIT;
        while self.socket().changing {
            assert!(Instant::now() < until, "the change does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.socket()
    }

    /// A caller with one region of 8 bytes.
    fn caller(&self, number: u8) -> (Caller, Session, ARegion) {
        let mut caller = self.bench.caller(number);
        let session = caller.connect(0);
        let region = caller.regions(session, &[8]).unwrap()[0];
        assert_eq!(caller.write(session, &region, &[7; 8]), WcStatus::Success);
        (caller, session, region)
    }

    /// The codes of the functions that a caller reads.
    fn functions(&self) -> Vec<u8> {
        let wire = Some(self.bench.place.wire.path().to_owned());
        let device =
            Device::connect(IpAddr::from(self.bench.place.identity.ip), &Options { wire, ..Options::default() })
                .unwrap();
        device.describe().unwrap().unwrap().functions.iter().map(|function| function.code).collect()
    }
}

#[test]
fn a_call_ends_with_the_kernel_that_it_began_with() {
    let scene = scene();
    assert_eq!((scene.socket().active, scene.socket().former, scene.socket().changing), (Some(0), None, false));
    assert!(scene.functions().contains(&101) && !scene.functions().contains(&102));
    let (mut slow, session, region) = scene.caller(1);
    slow.start(session, MARK);
    scene.begun.recv_timeout(WAIT).unwrap();
    scene.activate(1);
    let socket = scene.socket();
    assert_eq!((socket.active, socket.former, socket.changing, socket.error), (Some(1), Some(0), true, None));
    let (mut quick, other, its) = scene.caller(2);
    quick.start(other, MARK);
    assert_eq!(quick.result(other), 0);
    assert_eq!(quick.read(other, &its).unwrap(), [2; 8]);
    assert!(scene.functions().contains(&102) && !scene.functions().contains(&101));
    let again = scene.control().roll_back_kernel(SOCKET).unwrap_err();
    assert!(again.to_string().contains("the kernel of socket 3 is being changed"), "{again}");
    scene.gate.open(1);
    assert_eq!(slow.result(session), 0);
    assert_eq!(slow.read(session, &region).unwrap(), [1; 8]);
    assert!(!scene.settled().changing);
    scene.control().roll_back_kernel(SOCKET).unwrap();
    assert_eq!((scene.settled().active, scene.settled().former), (Some(0), Some(1)));
    assert!(scene.functions().contains(&101));
}

#[test]
fn calls_of_the_kernel_before_can_be_cut_off() {
    let scene = scene();
    let (mut slow, session, region) = scene.caller(1);
    let (mut quick, other, _) = scene.caller(2);
    slow.start(session, MARK);
    scene.begun.recv_timeout(WAIT).unwrap();
    scene.control().cut_kernel(SOCKET).unwrap();
    scene.activate(1);
    assert!(scene.socket().changing, "without a change there is nothing to cut off");
    quick.start(other, MARK);
    assert_eq!(quick.result(other), 0);
    scene.control().cut_kernel(SOCKET).unwrap();
    assert_eq!(slow.result(session), ReturnCode::SOCKET_UNAVAILABLE.to_imm() >> 8);
    assert!(!scene.settled().changing);
    assert_eq!(slow.read(session, &region).unwrap(), [7; 8], "its caller has its regions");
    slow.start(session, MARK);
    assert_eq!(slow.result(session), 0);
}

/// As for the RTL, by `tests/test_kernel_changes.py`.
#[test]
fn what_is_wrong_changes_nothing() {
    let scene = scene();
    let digest = scene.socket().images[1].digest.unwrap();
    let mut control = scene.control();
    for (image, digest, expected) in [
        (1, Digest([0; 32]), ChangeError::BadDigest),
        (0, digest, ChangeError::BadDigest),
        (2, digest, ChangeError::BadImage),
    ] {
        control.activate_kernel(SOCKET, image, digest).unwrap();
        assert_eq!((scene.socket().active, scene.socket().error), (Some(0), Some(expected)));
    }
    control.roll_back_kernel(SOCKET).unwrap();
    assert_eq!(scene.socket().error, Some(ChangeError::NoFormer));
    for (socket, said) in [(0, "socket 0 can hold one kernel only"), (4, "it has no socket 4")] {
        assert!(control.activate_kernel(socket, 0, digest).unwrap_err().to_string().contains(said));
        assert!(control.roll_back_kernel(socket).unwrap_err().to_string().contains(said));
    }
    assert!(control.cut_kernel(4).is_err());
    assert!(scene.functions().contains(&101));
    scene.activate(1);
    assert_eq!(scene.socket().error, None);
}

/// Whoever is connected reads the new functions where the old ones were, and the count of changes before them.
#[test]
fn the_description_changes_in_its_place() {
    let scene = scene();
    let text = |scene: &Scene| {
        let mut caller = scene.bench.caller(9);
        let conn = caller.begin();
        let private = caller.wait(|event| match event {
            Event::Connected { conn: which, private_data } if *which == conn => Some(private_data.clone()),
            _ => None,
        });
        let here = caller.ep.transport.register(vec![0; 60_000], Access::LOCAL, conn).unwrap();
        let session = Session { conn, here };
        let place = DescriptionLocation::find(&private).unwrap();
        let before = RemoteAddr(place.addr.0 - LoadRecord::LEN as u64);
        let all = ARegion::new(before, place.rkey, LoadRecord::LEN as u32 + place.length);
        let bytes = caller.read(session, &all).unwrap();
        caller.disconnect(session);
        (place, bytes)
    };
    let (place, first) = text(&scene);
    scene.activate(1);
    let (again, second) = text(&scene);
    assert_eq!(place, again);
    let changes = |bytes: &[u8]| LoadRecord::from_bytes(bytes[..64].try_into().unwrap()).changes;
    assert_eq!((changes(&first), changes(&second)), (0, 2));
    assert_ne!(first[64..], second[64..]);
}
