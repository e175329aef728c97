// SPDX-License-Identifier: Apache-2.0
//! Programs and maps of the kernel, by bpf(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::xdp::program::Instruction;

/// Commands, kinds of programs and maps, and ways to attach (`linux/bpf.h`).
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE_ELEM: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
#[cfg(test)]
const PROG_TEST_RUN: libc::c_long = 10;
const LINK_CREATE: libc::c_long = 28;
const LINK_UPDATE: libc::c_long = 29;
const LINK_DETACH: libc::c_long = 34;
const PROGRAM_XDP: u32 = 6;
const MAP_OF_SOCKETS: u32 = 17;
const ATTACH_XDP: u32 = 37;
/// Programs say what they are licensed under: the functions that this one calls are open to all.
const LICENSE: &std::ffi::CStr = c"Apache-2.0";

/// The arguments of [`MAP_CREATE`], up to what is used.
#[repr(C)]
struct MapCreate {
    kind: u32,
    key_size: u32,
    value_size: u32,
    entries: u32,
}

/// Of [`MAP_UPDATE_ELEM`].
#[repr(C)]
struct MapUpdate {
    map: i32,
    unused: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Of [`PROG_LOAD`].
#[repr(C)]
struct ProgramLoad {
    kind: u32,
    instructions: u32,
    program: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

/// Of [`LINK_CREATE`].
#[repr(C)]
struct LinkCreate {
    program: i32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

/// Of [`LINK_UPDATE`].
#[repr(C)]
struct LinkUpdate {
    link: i32,
    program: i32,
    flags: u32,
    old_program: u32,
}

/// Of [`LINK_DETACH`].
#[repr(C)]
struct LinkDetach {
    link: i32,
}

/// Calls bpf(2).
///
/// # Safety
/// `arguments` must begin as `union bpf_attr` does for the command, and what its pointers point at must be as long as the command
/// reads and writes.
unsafe fn bpf<T>(command: libc::c_long, arguments: &mut T) -> io::Result<i32> {
    let size = size_of::<T>() as libc::c_long;
    // SAFETY: the kernel reads and writes `size` bytes of `arguments`; the rest is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(arguments), size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// The same for a command that makes a descriptor.
///
/// # Safety
/// As [`bpf`], and the command must be one that does.
unsafe fn make<T>(command: libc::c_long, mut arguments: T) -> io::Result<OwnedFd> {
    // SAFETY: as the caller promises; and the descriptor is new, so nobody else has it.
    unsafe { bpf(command, &mut arguments).map(|fd| OwnedFd::from_raw_fd(fd)) }
}

/// The sockets that a program can redirect to, by the number of the queue.
#[derive(Debug)]
pub(crate) struct Sockets(OwnedFd);

impl Sockets {
    /// For so many queues.
    pub(crate) fn new(queues: u32) -> io::Result<Self> {
        let arguments = MapCreate { kind: MAP_OF_SOCKETS, key_size: 4, value_size: 4, entries: queues };
        // SAFETY: these are the arguments of this command, which has no pointers and makes a descriptor.
        unsafe { make(MAP_CREATE, arguments) }.map(Self)
    }

    /// Sets the socket of a queue.
    pub(crate) fn set(&self, queue: u32, socket: impl AsFd) -> io::Result<()> {
        let (key, value) = (queue, socket.as_fd().as_raw_fd());
        let mut arguments = MapUpdate {
            map: self.0.as_raw_fd(),
            unused: 0,
            key: &raw const key as u64,
            value: &raw const value as u64,
            flags: 0,
        };
        // SAFETY: these are the arguments of this command, which reads a key and a value of 4 bytes each, as the map was made.
        unsafe { bpf(MAP_UPDATE_ELEM, &mut arguments) }.map(drop)
    }

    /// The number by which a program names the map.
    pub(crate) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }
}

/// A program that the kernel has checked and taken.
#[derive(Debug)]
pub(crate) struct Program(OwnedFd);

impl Program {
    pub(crate) fn load(instructions: &[Instruction]) -> io::Result<Self> {
        let mut name = [0; 16];
        name[..7].copy_from_slice(b"nacelle");
        let arguments = ProgramLoad {
            kind: PROGRAM_XDP,
            instructions: instructions.len() as u32,
            program: instructions.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: 0,
            log_size: 0,
            log: 0,
            kernel_version: 0,
            flags: 0,
            name,
            interface: 0,
            attach_type: ATTACH_XDP,
        };
        // SAFETY: these are the arguments of this command, which makes a descriptor; it reads so many instructions, which are laid
        // out as `struct bpf_insn`, and a string that ends with a zero.
        unsafe { make(PROG_LOAD, arguments) }.map(Self)
    }
}

/// A program at an interface. It is there as long as this value, or the process.
#[derive(Debug)]
pub(crate) struct Attachment(OwnedFd);

impl Attachment {
    /// By the interface's driver if that can run XDP programs, else by the kernel before its network stack.
    pub(crate) fn new(program: &Program, interface: u32) -> io::Result<Self> {
        let arguments = LinkCreate { program: program.0.as_raw_fd(), interface, attach_type: ATTACH_XDP, flags: 0 };
        // SAFETY: these are the arguments of this command, which has no pointers and makes a descriptor.
        unsafe { make(LINK_CREATE, arguments) }.map(Self)
    }

    /// Puts another program in the place of the one that is there; no frame meets none.
    pub(crate) fn replace(&self, program: &Program) -> io::Result<()> {
        let (link, program) = (self.0.as_raw_fd(), program.0.as_raw_fd());
        let mut arguments = LinkUpdate { link, program, flags: 0, old_program: 0 };
        // SAFETY: these are the arguments of this command, which has no pointers.
        unsafe { bpf(LINK_UPDATE, &mut arguments) }.map(drop)
    }
}

impl Drop for Attachment {
    /// To close the descriptor is not enough: a process that is just starting another has it twice for a moment.
    fn drop(&mut self) {
        let mut arguments = LinkDetach { link: self.0.as_raw_fd() };
        // SAFETY: these are the arguments of this command, which has no pointers.
        let _closing_does_it_too = unsafe { bpf(LINK_DETACH, &mut arguments) };
    }
}

/// Of [`PROG_TEST_RUN`].
#[cfg(test)]
#[repr(C)]
#[derive(Default)]
struct TestRun {
    program: i32,
    result: u32,
    input_size: u32,
    output_size: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration: u32,
}

/// What the program says of a frame, as the kernel runs it.
#[cfg(test)]
pub(crate) fn try_program(program: &Program, frame: &[u8]) -> io::Result<u32> {
    let mut arguments = TestRun {
        program: program.0.as_raw_fd(),
        input_size: frame.len() as u32,
        input: frame.as_ptr() as u64,
        repeat: 1,
        ..TestRun::default()
    };
    // SAFETY: these are the arguments of this command, which reads as many bytes of the frame as it has, and writes none.
    unsafe { bpf(PROG_TEST_RUN, &mut arguments) }?;
    Ok(arguments.result)
}
