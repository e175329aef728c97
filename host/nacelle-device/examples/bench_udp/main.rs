// SPDX-License-Identifier: Apache-2.0
//! Measures the host software over loopback UDP, between processes that poll, at the command of `bench/sampler.py`: each line of
//! the standard input asks for samples, each line of the output has them, as JSON, in seconds. So blocks of ours and of another
//! program's can take turns. Every wait has a deadline.
//!
//! As `bench_udp device`, `bench_udp echo` or `bench_udp target` it is one of the other processes, until its standard input ends.

mod calls;
mod process;
mod raw;
mod verbs;

use std::io::{self, Write};
use std::str::FromStr;
use std::time::Duration;

use calls::{Caller, Pages, timed};
use process::{Peer, pin};
use raw::Ping;
use serde_json::{Value, json};
use verbs::{Verb, Verbs};

/// How long any one step may take.
const PATIENCE: Duration = Duration::from_secs(10);

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// What the measurements need, started when it is first needed.
struct Bench {
    device: Peer,
    caller: Caller,
    ping: Option<Ping>,
    verbs: Option<(Verbs, Peer)>,
}

/// The next word of a command.
fn next<T: FromStr>(words: &mut std::str::SplitWhitespace<'_>) -> Outcome<T> {
    let word = words.next().ok_or("the command ends too soon")?;
    word.parse().map_err(|_| format!("{word} is no value").into())
}

impl Bench {
    fn start() -> Outcome<Self> {
        let device = Peer::start("device")?;
        let caller = Caller::reach(device.address.ip())?;
        Ok(Self { device, caller, ping: None, verbs: None })
    }

    fn processes(&self) -> Vec<u32> {
        vec![std::process::id(), self.device.id()]
    }

    fn verbs(&mut self) -> Outcome<&mut Verbs> {
        if self.verbs.is_none() {
            let target = Peer::start("target")?;
            self.verbs = Some((Verbs::connect(&target)?, target));
        }
        Ok(&mut self.verbs.as_mut().ok_or("no endpoint")?.0)
    }

    /// Carries a command out.
    fn answer(&mut self, line: &str) -> Outcome<Value> {
        let words = &mut line.split_whitespace();
        let seconds = match words.next().unwrap_or_default() {
            "processes" => return Ok(json!({"processes": self.processes()})),
            "ping" => {
                let (length, count) = (next(words)?, next(words)?);
                if self.ping.is_none() {
                    self.ping = Some(Ping::start()?);
                }
                let ping = self.ping.as_ref().ok_or("no echo")?;
                timed(count, || ping.once(length))?
            }
            "call" => self.caller.calls(next(words)?, false, next(words)?)?,
            "echo" => self.caller.calls(next(words)?, true, next(words)?)?,
            "write" => vec![self.verbs()?.transfer(Verb::Write, next(words)?, next(words)?, next(words)?)?],
            "read" => vec![self.verbs()?.transfer(Verb::Read, next(words)?, next(words)?, next(words)?)?],
            "setup" => self.caller.set_up(next(words)?, Pages::Fresh, next(words)?)?,
            "setup-pinned" => self.caller.set_up(next(words)?, Pages::Pinned, next(words)?)?,
            "exchange" => self.caller.exchanges(next(words)?, next(words)?)?,
            "connect" => self.caller.connects(next(words)?, next(words)?)?,
            "lossy" => self.caller.lossy(next(words)?, next(words)?, next(words)?)?,
            "connections" => {
                let (seconds, memory) = self.caller.connections(next(words)?, next(words)?, &self.processes())?;
                return Ok(json!({"seconds": seconds, "memory": memory}));
            }
            "beside-idle" => self.caller.beside_idle(next(words)?, next(words)?)?,
            "forget" => {
                self.caller.forget();
                vec![]
            }
            other => return Err(format!("no such command: {other}").into()),
        };
        Ok(json!({"seconds": seconds}))
    }
}

fn main() -> Outcome {
    let role = std::env::args().nth(1);
    pin(usize::from(role.is_some()))?;
    match role.as_deref() {
        Some("device") => return calls::device(),
        Some("echo") => return raw::echo(),
        Some("target") => return verbs::target(),
        Some(other) => return Err(format!("no such role: {other}").into()),
        None => {}
    }
    let mut bench = Bench::start()?;
    for line in io::stdin().lines() {
        let answer = bench.answer(&line?).unwrap_or_else(|error| json!({"error": error.to_string()}));
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
