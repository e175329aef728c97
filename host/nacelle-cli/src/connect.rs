// SPDX-License-Identifier: Apache-2.0
//! `nacelle connect`: a device opens a connection itself, sends and waits for what comes back, writes or reads memory of the peer, and closes.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use nacelle::{Error, Step};
use nacelle_manage::{Bytes, ConnectionState, Control, Done, MAX_MESSAGE, Opened, Progress, Request, Work};
use serde::Serialize;

use crate::args::{Cli, ConnectArgs};
use crate::failure::Failure;
use crate::manage;
use crate::output::{print, print_json};

/// How often the device is asked what has happened.
const ASK_EVERY: Duration = Duration::from_millis(10);

/// What a connection was good for.
#[derive(Serialize)]
struct Outcome {
    peer: IpAddr,
    port: u16,
    qpn: u32,
    /// What the peer's application said with its answer.
    private: Message,
    received: Vec<Message>,
    written: usize,
    /// What was read of the peer's memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    read: Option<Message>,
    /// Who ended it: `device` or `peer`.
    closed_by: &'static str,
}

/// Bytes, as hexadecimal digits and, if they are one, as text.
#[derive(Serialize)]
struct Message {
    bytes: Bytes,
    text: Option<String>,
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Self {
        let text = std::str::from_utf8(&bytes.0).ok();
        let text = text.filter(|text| !text.chars().any(|c| c.is_control() && c != '\n')).map(str::to_owned);
        Self { bytes, text }
    }
}

impl Message {
    fn shown(&self) -> String {
        match &self.text {
            Some(text) => text.clone(),
            None => self.bytes.0.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// A connection of the device, with what is known of it.
struct Connection {
    control: Control,
    number: u16,
    peer: IpAddr,
    timeout: Duration,
    state: ConnectionState,
    opened: Option<Opened>,
    received: Vec<Message>,
    read: Vec<u8>,
    sends_due: u32,
    receives_due: u32,
}

impl Connection {
    /// Asks what has happened.
    fn look(&mut self) -> Result<(), Failure> {
        let Progress { state, opened, completions } = self.control.ask(&Request::Poll { connection: self.number })?;
        self.state = state;
        self.opened = opened;
        for completion in completions {
            let due = if completion.receive { &mut self.receives_due } else { &mut self.sends_due };
            *due = due.saturating_sub(1);
            if !completion.ok {
                let what = if completion.receive { "receive" } else { "request" };
                return Err(self.failed(&format!("a {what} ended with: {}", completion.status)));
            }
            if completion.receive {
                self.received.push(completion.data.into());
            } else {
                self.read.extend(completion.data.0);
            }
        }
        Ok(())
    }

    /// Waits until `done`, or the connection is over, for as long as the caller allows.
    fn wait(&mut self, step: Step, done: impl Fn(&Self) -> bool) -> Result<(), Failure> {
        let deadline = Instant::now() + self.timeout;
        loop {
            // One that has ended is removed: there is nothing more to query.
            if !self.state.is_over() {
                self.look()?;
            }
            if done(self) || self.state.is_over() {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(Error::Timeout { ip: self.peer, step, waited: self.timeout, mtu: None }.into());
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    fn failed(&self, detail: &str) -> Failure {
        Error::Transport { ip: self.peer, step: Step::Inputs, detail: detail.into() }.into()
    }

    fn post(&mut self, work: Work) -> Result<(), Failure> {
        let due = if matches!(work, Work::Receive {}) { &mut self.receives_due } else { &mut self.sends_due };
        *due += 1;
        let Done {} = self.control.ask(&Request::Post { connection: self.number, work })?;
        Ok(())
    }

    /// Does work and waits until all of it has completed.
    fn work(&mut self, work: impl IntoIterator<Item = Work>) -> Result<(), Failure> {
        if self.state.is_over() {
            return Err(self.lost());
        }
        for one in work {
            self.post(one)?;
        }
        self.wait(Step::Inputs, |own| own.sends_due == 0 && own.receives_due == 0)?;
        if self.sends_due > 0 || self.receives_due > 0 {
            return Err(self.lost());
        }
        Ok(())
    }

    fn lost(&self) -> Failure {
        let detail = "it closed the connection before everything had completed".into();
        Error::Lost { ip: self.peer, step: Step::Inputs, detail, mtu: None }.into()
    }

    fn close(&mut self) -> Result<(), Failure> {
        let Done {} = self.control.ask(&Request::Close { connection: self.number })?;
        // What is still outstanding is flushed, which is no news.
        self.receives_due = 0;
        self.wait(Step::Close, |_| false)
    }
}

pub(crate) fn connect(cli: &Cli, args: &ConnectArgs) -> Result<(), Failure> {
    let data = args.write.as_ref().map(|path| {
        std::fs::read(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display()), "name a file"))
    });
    let data = data.transpose()?.unwrap_or_default();
    if let Some(text) = args.send.iter().find(|text| text.len() > MAX_MESSAGE) {
        let message = format!("{} bytes to send; a message has at most {MAX_MESSAGE}", text.len());
        return Err(Failure::usage(message, "send it in several: --send can be given more than once"));
    }
    let mut control = manage::control(cli, &args.device)?;
    let private = Bytes(args.private.clone().unwrap_or_default().into_bytes());
    let request = Request::Connect { peer: args.address, port: args.port, private, mtu: args.mtu };
    let number = control.ask(&request)?;
    let mut connection = Connection {
        control,
        number,
        peer: args.address,
        timeout: args.timeout,
        state: ConnectionState::Connecting,
        opened: None,
        received: Vec::new(),
        read: Vec::new(),
        sends_due: 0,
        receives_due: 0,
    };
    let outcome = run(&mut connection, args, &data);
    if outcome.is_err() && !connection.state.is_over() {
        // The first error is the one to report.
        let _ = connection.close();
    }
    let outcome = outcome?;
    if cli.json {
        return print_json(&outcome);
    }
    for message in outcome.received.iter().chain(&outcome.read) {
        print(&format!("{}\n", message.shown()))?;
    }
    Ok(())
}

fn run(connection: &mut Connection, args: &ConnectArgs, data: &[u8]) -> Result<Outcome, Failure> {
    connection.wait(Step::Connect, |own| own.state != ConnectionState::Connecting)?;
    let ip = args.address;
    let Some(Opened { qpn, private }) = connection.opened.clone() else {
        return Err(match connection.state.clone() {
            ConnectionState::Refused { reason, text, private } => {
                let said = Message::from(private).shown();
                let text = if said.is_empty() { text } else { format!("{text}, saying: {said}") };
                Error::Refused { ip, reason, text }
            }
            ConnectionState::Unreachable => Error::Unreachable { ip, waited: connection.timeout },
            _ => Error::Lost { ip, step: Step::Connect, detail: "the connection was given up".into(), mtu: None },
        }
        .into());
    };
    let private = Message::from(private);
    eprintln!("{} is connected to {ip} port {} by queue pair {qpn}", args.device, args.port);
    if !private.bytes.0.is_empty() {
        eprintln!("the peer says: {}", private.shown());
    }
    for text in &args.send {
        // The receive first: the answer may follow at once.
        connection.work([Work::Receive {}, Work::Send { data: Bytes(text.clone().into_bytes()) }])?;
    }
    let (address, rkey) = (args.to.unwrap_or_default(), args.rkey.unwrap_or_default());
    for (index, piece) in data.chunks(MAX_MESSAGE).enumerate() {
        let address = address + (index * MAX_MESSAGE) as u64;
        connection.work([Work::Write { data: Bytes(piece.to_vec()), address, rkey }])?;
    }
    let (address, length) = (args.from.unwrap_or_default(), args.read.unwrap_or_default());
    for at in (0..length).step_by(MAX_MESSAGE) {
        let piece = (length - at).min(MAX_MESSAGE as u32);
        connection.work([Work::Read { address: address.wrapping_add(at.into()), rkey, length: piece }])?;
    }
    if args.stay {
        connection.wait(Step::Close, |_| false)?;
    }
    let closed_by = match connection.state {
        ConnectionState::AddressLost => "change of the device's address",
        ref state if state.is_over() => "peer",
        _ => {
            connection.close()?;
            "device"
        }
    };
    eprintln!("the connection is closed by the {closed_by}");
    let received = std::mem::take(&mut connection.received);
    let read = args.read.map(|_| Bytes(std::mem::take(&mut connection.read)).into());
    Ok(Outcome { peer: ip, port: args.port, qpn, private, received, written: data.len(), read, closed_by })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_shown_as_digits() {
        let shown = |bytes: &[u8]| Message::from(Bytes(bytes.to_vec())).shown();
        assert_eq!(shown(b"hello\nworld"), "hello\nworld");
        assert_eq!(shown(&[2, 1]), "0201");
        assert_eq!(shown(&[0xff, b'a']), "ff61");
    }
}
