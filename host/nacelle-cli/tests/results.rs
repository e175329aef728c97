// SPDX-License-Identifier: Apache-2.0
//! Results, and the programs that wait for them, when something goes wrong: full disks, kills, devices that hang.

#[path = "../../nacelle/tests/peer/mod.rs"]
mod peer;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use nacelle_link::{SwitchHost, VirtualWire, WireDir};
use peer::{Manners, Outgoing};

/// A wire of its own with a device in the hands of the test, and a directory for files.
struct Bench {
    temp: tempfile::TempDir,
    _peer: peer::Peer,
    _switch: SwitchHost,
}

impl Bench {
    fn new(manners: Manners) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let wire = WireDir::open(temp.path().join("wire")).unwrap();
        let switch = SwitchHost::start(&wire).unwrap();
        let link = VirtualWire::join(&wire, "peer").unwrap();
        let bench = Self { temp, _peer: peer::serve(Box::new(link), manners), _switch: switch };
        fs::create_dir(bench.file("out")).unwrap();
        fs::write(bench.file("in"), vec![7; 100_000]).unwrap();
        bench
    }

    fn file(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// A shell command in which `nacelle` and `$RUN`, a call that adds 1 to each byte of `in`, are known.
    fn shell(&self, line: &str) -> Command {
        let nacelle = env!("CARGO_BIN_EXE_nacelle");
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(self.temp.path()).env("NACELLE_WIRE", self.file("wire"));
        command.env("RUN", format!("{nacelle} run increment --device {} in", peer::IP)).env("NACELLE", nacelle);
        command
    }

    fn run(&self, line: &str) -> Output {
        self.shell(line).output().unwrap()
    }

    /// The names in the directory for results.
    fn results(&self) -> Vec<String> {
        let entries = fs::read_dir(self.file("out")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn old(&self) -> PathBuf {
        fs::write(self.file("out/old"), OLD).unwrap();
        self.file("out/old")
    }
}

const OLD: &[u8] = b"what was here before";

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A process that does not outlive the test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_mode_and_its_name() {
    let bench = Bench::new(Manners::default());
    let old = bench.old();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&old).unwrap();
    std::os::unix::fs::symlink("out/old", bench.file("link")).unwrap();
    std::os::unix::fs::symlink("out/new", bench.file("dangling")).unwrap();
    let output = bench.run("umask 027; $RUN -o link && $RUN -o dangling");
    assert!(output.status.success(), "{}", stderr(&output));
    let after = fs::metadata(&old).unwrap();
    assert!(fs::symlink_metadata(bench.file("link")).unwrap().is_symlink(), "the link is one still");
    assert!(fs::read(&old).unwrap() == [8; 100_000]);
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert_ne!(after.ino(), before.ino(), "it was replaced");
    assert_eq!(fs::metadata(bench.file("out/new")).unwrap().mode() & 0o777, 0o640, "as the umask says");
    let mut names = bench.results();
    names.sort();
    assert_eq!(names, ["new", "old"], "nothing else is left");
}

#[test]
fn what_is_no_file_is_written_to() {
    let bench = Bench::new(Manners::default());
    let result = vec![8; 100_000];
    let output = bench.run("$RUN -o /dev/stdout | cat");
    assert!(output.stdout == result, "a pipe: {}", stderr(&output));
    let output = bench.run("printf head > out/all; $RUN -o /dev/stdout >> out/all; printf tail >> out/all");
    assert!(output.status.success(), "{}", stderr(&output));
    let all = fs::read(bench.file("out/all")).unwrap();
    assert!(all == [b"head", &result[..], b"tail"].concat(), "{} bytes", all.len());
    let output = bench.run("mkfifo pipe; cat pipe > out/through & $RUN -o pipe; wait; test -p pipe");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(fs::read(bench.file("out/through")).unwrap() == result);
    let output = bench.run("$RUN -o /dev/null");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_full_disk_costs_no_file() {
    let bench = Bench::new(Manners::default());
    let device = bench.run("$RUN -o /dev/full");
    assert_eq!(device.status.code(), Some(2), "{}", stderr(&device));
    assert!(stderr(&device).contains("No space left") && stderr(&device).contains("try: free some space"));
    if !is_root() {
        println!("not root: a disk cannot be made");
        return;
    }
    // A disk of 64 KiB that this test alone sees.
    let script = "mount -t tmpfs -o size=64k none out && printf old > out/old && $RUN -o out/old; echo $?; ls -A out; cat out/old";
    let mut command = Command::new("unshare");
    let shell = bench.shell(script);
    command.arg("-m").arg(shell.get_program()).args(shell.get_args()).current_dir(bench.temp.path());
    command.envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\nold\nold", "{}", stderr(&output));
    assert!(
        stderr(&output).contains("No space left") && stderr(&output).contains("try: free some space in"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn who_is_killed_while_writing_leaves_the_old_file() {
    let bench = Bench::new(Manners::default());
    let old = bench.old();
    // The kernel ends it (SIGXFSZ) at the first byte beyond the limit: surely in the middle.
    let output = bench.run("ulimit -c 0; ulimit -f 8; exec $RUN -o out/old");
    assert!(output.status.signal().is_some(), "{:?}: {}", output.status, stderr(&output));
    assert!(fs::read(&old).unwrap() == OLD, "a fragment");

    // And SIGKILL, as soon as anything in the directory changes.
    fs::write(bench.file("in"), vec![7; 8_000_000]).unwrap();
    let before = bench.results().len();
    let mut child = bench.shell("exec $RUN -o out/old").stderr(Stdio::null()).spawn().unwrap();
    while bench.results().len() == before && fs::metadata(&old).unwrap().len() == OLD.len() as u64 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before anything changed");
        std::thread::sleep(Duration::from_micros(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left = fs::read(&old).unwrap();
    assert!(left == OLD || left == vec![8; 8_000_000], "a fragment of {} bytes", left.len());
}

#[test]
fn several_results_are_written_all_or_none() {
    let bench = Bench::new(Manners::default());
    let old = bench.old();
    let call = format!("$NACELLE run function 1 --device {}", peer::IP);
    let output =
        bench.run(&format!("ulimit -c 0; ulimit -f 100; {call} --output 10 --output 1000000 -o out/old -o out/large"));
    assert!(!output.status.success());
    assert!(fs::read(&old).unwrap() == OLD, "the first was written, and the second was not");
    assert!(!bench.file("out/large").exists());
}

#[test]
fn the_result_is_there_before_the_end_of_the_connection() {
    // A device that never agrees to the end.
    let bench = Bench::new(Manners { sends: Box::new(|frame| frame != Outgoing::Drep), ..Manners::default() });
    let started = Instant::now();
    let mut child =
        bench.shell("exec $RUN -o out/new --json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let printed = started.elapsed();
    assert!(fs::read(bench.file("out/new")).unwrap() == [8; 100_000]);
    assert!(child.wait().unwrap().success());
    let ended = started.elapsed();
    println!("printed after {printed:?}, ended after {ended:?}");
    assert!(ended - printed < Duration::from_millis(1500), "{printed:?} {ended:?}");
    assert!(printed < Duration::from_secs(3), "{printed:?}");
}

#[test]
fn a_device_that_hangs_holds_up_nobody_else() {
    let bench = Bench::new(Manners::default());
    let device = |name: &str, ip: &str| {
        let line = format!("exec $NACELLE device --soft --name {name} --ip {ip}/16 --json");
        let mut child = bench.shell(&line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut byte = [0];
        child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        Background(child)
    };
    let hung = [device("one", "10.77.1.1"), device("two", "10.77.1.2"), device("three", "10.77.1.3")];
    let _good = device("good", "10.77.1.4");
    for device in &hung {
        let status = Command::new("kill").args(["-STOP", &device.0.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
    let timed = |line: &str| {
        let started = Instant::now();
        let output = bench.run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        (String::from_utf8(output.stdout).unwrap(), started.elapsed())
    };
    let (listed, took) = timed("$NACELLE ls");
    let states: Vec<_> = listed.lines().skip(1).map(|line| line.split_whitespace().nth(3).unwrap()).collect();
    assert_eq!(states, ["up", "dead", "dead", "dead"], "{listed}");
    assert!(took < Duration::from_secs(4), "ls: {took:?}");
    let (_, took) = timed("$NACELLE ping -c 1 10.77.1.4");
    assert!(took < Duration::from_secs(3), "ping: {took:?}");
    let (_, took) = timed("$NACELLE ping -c 1 good");
    assert!(took < Duration::from_secs(3), "ping by name: {took:?}");
}

#[test]
fn errors_of_the_system_say_what_to_try() {
    let bench = Bench::new(Manners::default());
    let tried = |line: &str| {
        let output = bench.run(line);
        assert!(!output.status.success(), "{line}");
        stderr(&output).lines().last().unwrap_or_default().to_owned()
    };
    if is_root() {
        let hint = tried("exec setpriv --bounding-set=-net_admin $NACELLE wire --tap nacelle-none");
        assert!(hint.contains("CAP_NET_ADMIN") && hint.contains("virtual wire"), "{hint}");
        let full = "exec unshare -m sh -c 'mkdir -p small && mount -t tmpfs -o size=4k,nr_inodes=2 none small && : > small/x; \
                    $NACELLE --wire small/wire ls'";
        let hint = tried(full);
        assert!(hint.contains("free some space"), "{hint}");
    }
    let hint = tried("$NACELLE --wire /proc/no/such/wire ls");
    assert!(hint.contains("--wire"), "{hint}");
    fs::write(bench.file("file"), "no directory").unwrap();
    let hint = tried("$NACELLE --wire file/wire ls");
    assert!(hint.contains("--wire"), "{hint}");
}
