// SPDX-License-Identifier: Apache-2.0
//! The one owner of the endpoint: carries its frames, and sorts what happens by connection.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Instant;

use nacelle_link::LinkError;
use nacelle_roce::{Completion, ConnId, ConnInfo, ConnectFailure, ConnectOptions, DisconnectReason, Event, WcStatus};

use crate::port::Port;
use crate::report::StepReport;
use crate::{Error, Step};

/// Why a connection is no more.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Failed(ConnectFailure),
    Disconnected(DisconnectReason),
    Completion(WcStatus),
}

/// What has happened on a connection.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub(crate) connected: bool,
    pub(crate) end: Option<End>,
    /// Whether the endpoint has forgotten the connection.
    pub(crate) gone: bool,
    /// Work requests of the send queue that have not completed.
    pub(crate) sends: usize,
    /// The receive that was filled last.
    pub(crate) received: Option<Completion>,
}

/// The endpoint and its connections to one device.
pub(crate) struct Engine {
    port: Port,
    ip: Ipv4Addr,
    service: u16,
    options: ConnectOptions,
    sessions: HashMap<ConnId, Session>,
    /// How the device's address was found.
    pub(crate) resolution: Option<StepReport>,
}

impl Engine {
    pub(crate) fn new(port: Port, ip: Ipv4Addr, service: u16, options: ConnectOptions) -> Self {
        Self { port, ip, service, options, sessions: HashMap::new(), resolution: None }
    }

    pub(crate) fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    /// Begins a connection to the device.
    pub(crate) fn connect(&mut self) -> Result<ConnId, Error> {
        let now = self.port.now();
        let conn = self
            .port
            .endpoint()
            .connect(now, self.ip, self.service, self.options.clone())
            .map_err(|error| Error::invalid(error.to_string()))?;
        self.sessions.insert(conn, Session::default());
        Ok(conn)
    }

    pub(crate) fn session(&mut self, conn: ConnId) -> &mut Session {
        self.sessions.entry(conn).or_default()
    }

    pub(crate) fn info(&mut self, conn: ConnId) -> Option<ConnInfo> {
        self.port.endpoint().connection(conn)
    }

    /// Begins to end a connection.
    pub(crate) fn disconnect(&mut self, conn: ConnId) -> Result<(), LinkError> {
        let now = self.port.now();
        self.port.endpoint().disconnect(now, conn);
        self.port.flush()
    }

    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.sessions.remove(&conn);
    }

    /// Carries at most one frame in, waiting for it until `deadline`, and notes what has happened.
    pub(crate) fn turn(&mut self, deadline: Instant) -> Result<(), LinkError> {
        self.port.turn(deadline)?;
        while let Some(event) = self.port.event() {
            self.note(event);
        }
        Ok(())
    }

    fn note(&mut self, event: Event) {
        let session = |sessions: &mut HashMap<ConnId, Session>, conn, change: &mut dyn FnMut(&mut Session)| {
            if let Some(session) = sessions.get_mut(&conn) {
                change(session);
            }
        };
        match event {
            Event::Connected { conn, .. } => session(&mut self.sessions, conn, &mut |s| s.connected = true),
            Event::ConnectFailed { conn, reason } => session(&mut self.sessions, conn, &mut |s| {
                s.gone = true;
                s.end.get_or_insert(End::Failed(reason.clone()));
            }),
            Event::Disconnected { conn, reason, .. } => session(&mut self.sessions, conn, &mut |s| {
                s.gone = true;
                s.end.get_or_insert(End::Disconnected(reason));
            }),
            Event::Completion(completion) => session(&mut self.sessions, completion.conn, &mut |s| {
                match (completion.status, completion.opcode) {
                    (WcStatus::Success, opcode) if opcode.is_recv() => s.received = Some(completion),
                    (WcStatus::Success, _) => s.sends = s.sends.saturating_sub(1),
                    // What the end of the connection flushed says nothing that the end itself does not say better.
                    (WcStatus::WrFlushErr, _) => {}
                    (status, _) => drop(s.end.get_or_insert(End::Completion(status))),
                }
            }),
            // A caller listens to nobody and has no queue pairs by hand; questions about addresses and pings are asked and
            // answered before calls.
            Event::ConnectRequest { .. }
            | Event::QpFatal { .. }
            | Event::SendQueueDrained { .. }
            | Event::EchoReply { .. }
            | Event::EchoTimeout { .. }
            | Event::Resolved { .. }
            | Event::Unreachable { .. }
            | Event::AddressProbed { .. } => {}
        }
    }

    /// What the end of a connection means to the caller.
    pub(crate) fn error(&self, end: &End, step: Step, waited: std::time::Duration) -> Error {
        let ip = self.ip;
        let status = match end {
            End::Failed(ConnectFailure::Unreachable) => return Error::Unreachable { ip, waited },
            End::Failed(ConnectFailure::Timeout) => return Error::Timeout { ip, step, waited },
            End::Failed(ConnectFailure::Rejected { reason, .. }) => {
                return Error::Refused { ip, reason: reason.0, text: reason.text().to_owned() };
            }
            End::Failed(ConnectFailure::BadReply) => {
                return Error::Protocol {
                    ip,
                    step,
                    what: "its answer to the connection request makes no sense".into(),
                };
            }
            End::Failed(ConnectFailure::Aborted) | End::Disconnected(DisconnectReason::Local) => {
                return Error::Lost { ip, step, detail: "the connection was closed from this side".into() };
            }
            End::Disconnected(DisconnectReason::Remote) => {
                return Error::Lost { ip, step, detail: "it closed the connection".into() };
            }
            End::Disconnected(DisconnectReason::Error(status)) | End::Completion(status) => *status,
        };
        match status {
            WcStatus::RetryExceeded => {
                Error::Lost { ip, step, detail: "it no longer acknowledges (transport retry count exceeded)".into() }
            }
            WcStatus::RnrRetryExceeded => {
                Error::Lost { ip, step, detail: "it was never ready to receive (RNR retry count exceeded)".into() }
            }
            WcStatus::LocQpOpErr | WcStatus::LocAccessErr | WcStatus::LocLenErr => {
                Error::Protocol { ip, step, what: status.to_string() }
            }
            _ => Error::Transport { ip, step, detail: status.to_string() },
        }
    }
}
