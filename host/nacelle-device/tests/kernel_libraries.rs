// SPDX-License-Identifier: Apache-2.0
//! Kernels from shared libraries: the example is called through a device, bad ones are refused with what is wrong.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::caller::Bench;
use nacelle::{Device, Options};
use nacelle_device::{Kernel, KernelError, KernelSet};
use nacelle_roce::{RecvWr, WcStatus};
use nacelle_wire::mrsp::{CallImm, FunctionCode, ReturnCode};

/// Compiles a kernel into `dir`.
fn build(dir: &Path, name: &str, source: &Path, options: &[&str]) -> PathBuf {
    let library = dir.join(format!("lib{name}.so"));
    let status = Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O2",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
        ])
        .args(options)
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("include"))
        .arg("-o")
        .arg(&library)
        .arg(source)
        .status()
        .expect("a C compiler is installed");
    assert!(status.success());
    library
}

fn build_text(dir: &Path, name: &str, text: &str, options: &[&str]) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    std::fs::write(&source, text).unwrap();
    build(dir, name, &source, options)
}

fn example(dir: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/kernel_c/kernel_histogram.c");
    build(dir, "histogram", &source, &[])
}

fn counts(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn the_example_in_c_is_described_and_called() {
    let temp = tempfile::tempdir().unwrap();
    let library = example(temp.path());
    let bench = Bench::new(move |config| config.kernels.add(Kernel::load(library).unwrap()).unwrap());

    let options = Options { wire: Some(bench.place.wire.path().to_owned()), ..Options::default() };
    let device = Device::connect(bench.place.identity.ip, &options).unwrap();
    let description = device.describe().unwrap().unwrap();
    let codes: Vec<u8> = description.functions.iter().map(|function| function.code).collect();
    assert_eq!(codes, [1, 3, 16, 64, 65, 66, 67, 68, 81]);
    let function = description.function(81).unwrap();
    assert_eq!(
        (function.name.as_str(), function.kernel.as_str(), function.kernel_version),
        ("histogram", "histogram", (1, 0))
    );
    let regions: Vec<_> = function.regions.iter().map(|region| region.name.as_str()).collect();
    assert_eq!(
        (regions, function.errors[&0x11].as_str()),
        (vec!["data", "bins"], "the bins have less than 2048 bytes")
    );

    let histogram = FunctionCode::new(81).unwrap();
    let mut caller = bench.caller(1);
    let session = caller.connect(300_000);
    for length in [0, 1, 1000, 250_000u32] {
        let regions = caller.regions(session, &[length, 2048]).unwrap();
        let data: Vec<u8> = (0..length).map(|i| (i.wrapping_mul(i) / 7) as u8).collect();
        if length > 0 {
            assert_eq!(caller.write(session, &regions[0], &data), WcStatus::Success);
        }
        let mut wanted = vec![0; 256];
        for (user, result) in [([0; 3], 0), ([1, 0, 0], 0), ([2, 0, 0], 0x10), ([0, 0, 1], 0x10)] {
            caller.ep.transport.post_recv(session.conn, RecvWr { id: 2, slice: None }).unwrap();
            caller.immediate(session, CallImm::Start { function: histogram, user }.to_u32());
            assert_eq!(caller.result(session), result);
            if result == 0 {
                data.iter().for_each(|byte| wanted[usize::from(*byte)] += 1);
            }
        }
        // The second output went over the first in the caller's buffer; the device's own is asked for.
        assert_eq!(counts(&caller.read(session, &regions[1]).unwrap()), wanted, "{length} bytes");
    }
    for (sizes, result) in [(&[8, 2047][..], 0x11), (&[8], 0x10), (&[8, 2048, 1], 0x10)] {
        caller.regions(session, sizes).unwrap();
        caller.start(session, histogram);
        assert_eq!(caller.result(session), result);
    }
}

const STRANGE: &str = r#"
#define _POSIX_C_SOURCE 200809L
#include <time.h>
#include "nacelle_kernel.h"
static uint32_t result(const nacelle_kernel_call *call) {
    if (call->size != sizeof *call || call->count != 2 || call->parameters != 1) return 0x33;
    for (uint32_t i = 0; i < call->count; i++)
        if ((uintptr_t)call->regions[i].bytes % NACELLE_KERNEL_ALIGNMENT) return 0x34;
    call->regions[1].bytes[call->regions[1].length - 1] = 1;
    return call->user;
}
static uint32_t until_cancelled(const nacelle_kernel_call *call) {
    while (!nacelle_kernel_is_cancelled(call)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    return 0;
}
static uint32_t ignores_cancel(const nacelle_kernel_call *call) {
    (void)call;
    nanosleep(&(struct timespec){3, 0}, NULL);
    return 0;
}
static const nacelle_kernel_function functions[] = {
    {90, 0, "result", "", NULL, result},
    {91, 0, "until_cancelled", "", NULL, until_cancelled},
    {92, 0, "ignores_cancel", "", NULL, ignores_cancel},
};
static const nacelle_kernel kernel = {NACELLE_KERNEL_ABI, sizeof kernel, "strange", 0, 9, 3, 0, functions, NULL};
const nacelle_kernel *nacelle_kernel_describe(void) { return &kernel; }
"#;

#[test]
fn results_cancellation_and_time_limits_of_a_library() {
    let temp = tempfile::tempdir().unwrap();
    let library = build_text(temp.path(), "strange", STRANGE, &[]);
    let bench = Bench::new(move |config| {
        config.workers = 1;
        config.kernel_time = Some(Duration::from_millis(200));
        config.kernels.add(Kernel::load(library).unwrap()).unwrap();
    });
    let mut caller = bench.caller(1);
    let session = caller.connect(0);
    let [result, until_cancelled, ignores_cancel] = [90, 91, 92].map(|code| FunctionCode::new(code).unwrap());
    let internal = common::caller::message(&[nacelle_wire::mrsp::AarRegion::internal(0, 100)]);
    let both = [&[1, 2, 0, 0], &common::caller::request(session, &[8])[4..], &internal[4..]].concat();
    assert_eq!(caller.ask(session, &both)[0], 2);
    // What a kernel may not return is answered by 1.
    for (user, answer) in [(0, 0), (0x10, 0x10), (0x7f, 0x7f), (0x0f, 1), (3, 1), (0x80, 1), (0x100, 1), (0xff_ffff, 1)]
    {
        caller.ep.transport.post_recv(session.conn, RecvWr { id: 2, slice: None }).unwrap();
        let [a, b, c, _] = u32::to_le_bytes(user);
        caller.immediate(session, CallImm::Start { function: result, user: [a, b, c] }.to_u32());
        assert_eq!(caller.result(session), answer, "{user:#x}");
    }
    caller.start(session, until_cancelled);
    assert_eq!(caller.result(session), ReturnCode::KERNEL_TIMEOUT.get());
    assert_eq!(bench.counter("kernels.lost"), 0);
    caller.start(session, ignores_cancel);
    assert_eq!(caller.result(session), ReturnCode::KERNEL_TIMEOUT.get());
    assert_eq!(bench.counter("kernels.lost"), 1);
    caller.regions(session, &[8]).unwrap();
    caller.start(session, until_cancelled);
    assert_eq!(caller.result(session), ReturnCode::KERNEL_TIMEOUT.get(), "another thread takes its place");
    bench.wait_for_counter("kernels.lost", 0);
}

/// A library whose description has one mistake, made by a macro.
const MISTAKES: &str = r#"
#include <stddef.h>
#include "nacelle_kernel.h"
uint32_t run(const nacelle_kernel_call *call) { (void)call; return 0; }
#ifndef REGIONS
#define REGIONS {"data", NACELLE_KERNEL_IN, 0, "bytes"}
#endif
#ifndef FUNCTIONS
#define FUNCTIONS {7, 1, "seven", "Seven.", regions, run}
#endif
#ifndef ERRORS
#define ERRORS {0x10, "wrong"}
#endif
#ifndef NAME
#define NAME "mistaken"
#endif
#ifndef HEAD
#define HEAD NACELLE_KERNEL_ABI, sizeof(nacelle_kernel)
#endif
#ifndef COUNTS
#define COUNTS sizeof functions / sizeof *functions, 1
#endif
#ifndef FUNCTION_POINTER
#define FUNCTION_POINTER functions
#endif
#ifndef RESULT
#define RESULT &kernel
#endif
#ifndef DESCRIBE
#define DESCRIBE nacelle_kernel_describe
#endif
const nacelle_kernel_region regions[] = {REGIONS};
const nacelle_kernel_function functions[] = {FUNCTIONS};
const nacelle_kernel_error errors[] = {ERRORS};
const nacelle_kernel kernel = {HEAD, NAME, 1, 0, COUNTS, FUNCTION_POINTER, errors};
NACELLE_KERNEL_EXPORT const nacelle_kernel *DESCRIBE(void);
const nacelle_kernel *DESCRIBE(void) { return RESULT; }
"#;

#[test]
fn libraries_that_are_no_kernels_are_refused_with_what_is_wrong() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let good = build_text(dir, "good", MISTAKES, &[]);
    assert_eq!(Kernel::load(&good).unwrap().name(), "mistaken");
    for (number, (mistake, said)) in [
        ("DESCRIBE=other", "it has no function nacelle_kernel_describe"),
        ("RESULT=NULL", "returns nothing"),
        ("HEAD=2,sizeof(nacelle_kernel)", "version 2 of the interface, and this device has 1"),
        ("HEAD=0,sizeof(nacelle_kernel)", "version 0"),
        ("HEAD=1,8", "8 bytes, fewer than"),
        ("NAME=NULL", "its name is missing"),
        ("NAME=\"\"", "1 to 16"),
        ("NAME=\"\\x80\"", "its name is no text"),
        ("NAME=\"two words\"", "1 to 16"),
        ("COUNTS=0,1", "it has no function"),
        ("COUNTS=129,1", "129 functions, more than 128"),
        ("COUNTS=1,129", "129 errors"),
        ("FUNCTION_POINTER=NULL", "1 functions, and they are missing"),
        ("FUNCTIONS={0,1,\"f\",\"\",regions,run}", "the code 0 of a function is not between 1 and 127"),
        ("FUNCTIONS={128,1,\"f\",\"\",regions,run}", "the code 128"),
        ("FUNCTIONS={263,1,\"f\",\"\",regions,run}", "the code 263"),
        ("FUNCTIONS={7,1,\"f\",\"\",regions,run},{7,1,\"g\",\"\",regions,run}", "two functions have the code 7"),
        ("FUNCTIONS={7,1,\"f\",\"\",regions,NULL}", "function 7 has no code"),
        ("FUNCTIONS={7,1,NULL,\"\",regions,run}", "the name of function 7 is missing"),
        ("FUNCTIONS={7,1,\"f\",\"\\xff\",regions,run}", "the text of function 7 is no text"),
        ("FUNCTIONS={7,1,\"f\",\"a\\nb\",regions,run}", "ASCII"),
        ("FUNCTIONS={7,1,\"f\",\"\",NULL,run}", "1 regions of function 7, and they are missing"),
        ("REGIONS={\"data\",4,0,\"\"}", "the access 4"),
        ("REGIONS={\"\",0,0,\"\"}", "function 7"),
        ("ERRORS={0x0f,\"\"}", "0x0f"),
        ("ERRORS={0x80,\"\"}", "0x80"),
        ("ERRORS={0x10,NULL}", "the meaning of an error is missing"),
    ]
    .into_iter()
    .enumerate()
    {
        let library = build_text(dir, &format!("bad{number}"), MISTAKES, &[&format!("-D{mistake}")]);
        let error = Kernel::load(&library).unwrap_err().to_string();
        assert!(error.contains(said), "{mistake}: {error}");
    }
    // Not a library, not there, and one with an undefined symbol.
    let text = dir.join("text.so");
    std::fs::write(&text, "no library").unwrap();
    let missing =
        build_text(dir, "missing", &format!("extern int nobody(void);\n{MISTAKES}"), &["-DRESULT=(nobody(),&kernel)"]);
    for (path, said) in [(text, "text.so"), (dir.join("none.so"), "No such file"), (missing, "nobody")] {
        let error = Kernel::load(&path).unwrap_err();
        assert!(matches!(&error, KernelError::Library { why, .. } if why.contains(said)), "{error}");
    }
}

#[test]
fn two_libraries_with_the_same_functions_do_not_go_together() {
    let temp = tempfile::tempdir().unwrap();
    let first = build_text(temp.path(), "first", MISTAKES, &["-DNAME=\"first\""]);
    let second = build_text(temp.path(), "second", MISTAKES, &["-DNAME=\"second\""]);
    let third = build_text(temp.path(), "third", MISTAKES, &["-DFUNCTIONS={16,1,\"f\",\"\",regions,run}"]);
    let mut set = KernelSet::standard();
    set.add(Kernel::load(&first).unwrap()).unwrap();
    let error = set.add(Kernel::load(&second).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "the kernels first and second both have function 7");
    let error = set.add(Kernel::load(&first).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "there are two kernels first");
    let error = set.add(Kernel::load(&third).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "the kernels matmul and mistaken both have function 16");
}

/// The header is C++, too.
#[test]
fn the_header_is_read_by_a_cpp_compiler() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/nacelle_kernel.h");
    let mut command = Command::new("c++");
    command.args(["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-x", "c++"]).arg(header);
    assert!(command.status().expect("a C++ compiler is installed").success());
}
