// SPDX-License-Identifier: Apache-2.0
//! The command on a wire of its own, with devices that do not outlive the test.

#![allow(dead_code)] // not every test uses all of it

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use pcap_file::pcapng::{Block, PcapNgReader};
use serde_json::Value;

/// Nothing that is waited for takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A wire of its own, and a directory for files.
pub(crate) struct Bench {
    pub(crate) temp: tempfile::TempDir,
}

/// A device that runs in the background and does not outlive the test.
pub(crate) struct Background {
    pub(crate) child: Child,
    pub(crate) ip: String,
    pub(crate) name: String,
}

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Background {
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { temp: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nacelle"));
        command.env("NACELLE_WIRE", self.file("wire")).current_dir(self.temp.path()).env_remove("NACELLE_SIM_LIBRARY");
        command
    }

    /// Runs a command line, cut at its spaces.
    pub(crate) fn run(&self, line: &str) -> Output {
        self.command().args(line.split_whitespace()).output().unwrap()
    }

    pub(crate) fn good(&self, line: &str) -> Output {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        output
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_slice(&self.good(&format!("{line} --json")).stdout).unwrap()
    }

    /// Fails with this exit code, says all of `words`, and ends with one line that says what to try; as JSON too.
    pub(crate) fn bad(&self, line: &str, exit_code: i32, words: &[&str]) {
        let output = self.run(line);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(exit_code), "{line}: {said}");
        assert!(output.stdout.is_empty(), "{line}: data on stdout");
        for word in words {
            assert!(said.contains(word), "{line}: no {word:?} in {said}");
        }
        assert_eq!(said.lines().filter(|line| line.starts_with("try: ")).count(), 1, "{line}: {said}");
        assert!(said.lines().last().unwrap().starts_with("try: "), "{line}: {said}");
        assert!(!said.contains('\x1b'), "{line}: colours where there is no terminal");

        let output = self.run(&format!("{line} --json"));
        assert_eq!(output.status.code(), Some(exit_code));
        let error: Value = serde_json::from_str(stderr(&output).lines().last().unwrap()).unwrap();
        assert_eq!(error["error"]["exit_code"], exit_code);
        assert!(error["error"]["try"].as_str().is_some_and(|hint| !hint.is_empty()));
    }

    pub(crate) fn device(&self, options: &str) -> Background {
        let mut command = self.command();
        command.args(["device", "--soft", "--json"]).args(options.split_whitespace());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let device: Value = serde_json::from_str(&line).unwrap();
        let text = |key: &str| device[key].as_str().unwrap().to_owned();
        Background { child, ip: text("ip"), name: text("name") }
    }

    /// A NumPy file, written byte by byte as NEP 1 says.
    pub(crate) fn npy(&self, name: &str, descr: &str, fortran: bool, shape: &str, data: &[u8]) {
        let order = if fortran { "True" } else { "False" };
        let mut header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let length = (header.len() as u16).to_le_bytes();
        let bytes = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat();
        fs::write(self.file(name), bytes).unwrap();
    }

    pub(crate) fn floats(&self, name: &str, shape: &str, values: &[f32]) {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.npy(name, "'<f4'", false, shape, &data);
    }

    /// The elements of a NumPy file of int32 or float32, as they lie in it.
    pub(crate) fn words(&self, name: &str) -> Vec<[u8; 4]> {
        let bytes = fs::read(self.file(name)).unwrap();
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        bytes[start..].chunks(4).map(|word| word.try_into().unwrap()).collect()
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn packets(path: &Path) -> usize {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut count = 0;
    while let Some(block) = reader.next_block() {
        count += usize::from(matches!(block.unwrap(), Block::EnhancedPacket(_)));
    }
    count
}

pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}
