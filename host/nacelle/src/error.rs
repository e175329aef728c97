// SPDX-License-Identifier: Apache-2.0
//! What can go wrong: one error type, one stable number for each kind, and a hint for each.

use std::net::IpAddr;
use std::time::Duration;

use nacelle_link::{LinkError, ROCE_PORT};
use nacelle_manage::Error as ManageError;
use nacelle_wire::MacAddr;
use nacelle_wire::admission::Why;
use nacelle_wire::cm::RejReason;

use crate::explain;

/// A step of a call, as errors and reports name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Step {
    /// Finding the device's MAC address by ARP.
    AddressResolution,
    /// Opening the connection (IBTA 12: REQ, REP, RTU).
    Connect,
    /// Telling each other of the regions (MRSP).
    RegionSetup,
    /// Writing the inputs into device memory.
    Inputs,
    /// Waiting for the kernel.
    Compute,
    /// Receiving the outputs.
    Outputs,
    /// Closing the connection.
    Close,
    /// Reading the device's description of itself.
    Description,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::AddressResolution => "address resolution",
            Self::Connect => "connect",
            Self::RegionSetup => "region set-up",
            Self::Inputs => "inputs",
            Self::Compute => "compute",
            Self::Outputs => "outputs",
            Self::Close => "close",
            Self::Description => "description",
        })
    }
}

/// Why a call, or what it needs, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for something that cannot be.
    #[error("{what}")]
    InvalidArgument {
        /// What is wrong with it.
        what: String,
    },
    /// The wire cannot be used.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The address that was asked for belongs to another.
    #[error("the address {ip} is used by {owner}")]
    AddressTaken {
        /// The address.
        ip: IpAddr,
        /// The MAC address that uses it.
        owner: MacAddr,
    },
    /// All addresses tried in the device's subnet are used.
    #[error("found no free address beside {ip}")]
    NoFreeAddress {
        /// The device.
        ip: IpAddr,
    },
    /// No host has the device's address.
    #[error("no host at {ip} answered within {} ms", waited.as_millis())]
    Unreachable {
        /// The device.
        ip: IpAddr,
        /// How long it was asked for.
        waited: Duration,
    },
    /// The host of the address is there, and has no socket on the port of RoCEv2 (ICMP port unreachable).
    #[error("port unreachable: {ip} is up, but nothing listens on its UDP port {ROCE_PORT}")]
    PortClosed {
        /// The device.
        ip: IpAddr,
    },
    /// The device refused the connection (IBTA 12.6.7, REJ).
    #[error("the device at {ip} refused the connection: {text} (reason {reason})")]
    Refused {
        /// The device.
        ip: IpAddr,
        /// The reason's number in the REJ.
        reason: u16,
        /// The reason in words.
        text: String,
    },
    /// The device admits callers by entries (docs/reference/admission.md), and none is for this one.
    #[error("the device at {ip} does not admit this caller: {}", why.text())]
    NotAdmitted {
        /// The device.
        ip: IpAddr,
        /// Why not.
        why: Why,
    },
    /// The device has closed the connection because it admits this caller no longer.
    #[error("the device at {ip} ended the connection in the step '{step}': {}", why.text())]
    AdmissionEnded {
        /// The device.
        ip: IpAddr,
        /// The step that it ended.
        step: Step,
        /// Why.
        why: Why,
    },
    /// The device refused the regions (MRSP ERR).
    #[error("the device at {ip} refused the regions, {bytes} bytes in all (code {code}{})", refusal(*code))]
    RegionsRefused {
        /// The device.
        ip: IpAddr,
        /// The code in its answer.
        code: u8,
        /// How much device memory was asked for.
        bytes: u64,
    },
    /// Nothing moved for as long as the deadline allows.
    #[error("the device at {ip} made no progress in the step '{step}' for {:.1} s{}", waited.as_secs_f64(), doubt(*mtu))]
    Timeout {
        /// The device.
        ip: IpAddr,
        /// The step that did not end.
        step: Step,
        /// How long nothing moved.
        waited: Duration,
        /// The path MTU, if nothing has shown that the network carries packets of that size: they may have been lost.
        mtu: Option<usize>,
    },
    /// The device stopped acknowledging (IBTA 9.9.2.1.1, retry exceeded) or closed the connection.
    #[error("lost the device at {ip} in the step '{step}': {detail}{}", doubt(*mtu))]
    Lost {
        /// The device.
        ip: IpAddr,
        /// The step it was lost in.
        step: Step,
        /// What was seen of it.
        detail: String,
        /// As that of a timeout.
        mtu: Option<usize>,
    },
    /// The device refused a request of the transport (a NAK that ends the connection).
    #[error("the device at {ip} refused a request in the step '{step}': {detail}")]
    Transport {
        /// The device.
        ip: IpAddr,
        /// The step.
        step: Step,
        /// What it said.
        detail: String,
    },
    /// The device answered what no device may answer.
    #[error("the device at {ip} broke the protocol in the step '{step}': {what}")]
    Protocol {
        /// The device.
        ip: IpAddr,
        /// The step.
        step: Step,
        /// What it did.
        what: String,
    },
    /// The device has no kernel for this function, or none is free.
    #[error("the device at {ip} has no kernel for function {function}, or none is free")]
    SocketUnavailable {
        /// The device.
        ip: IpAddr,
        /// The function called.
        function: u8,
    },
    /// The kernel did not end within the time that the device gives it.
    #[error("the kernel of function {function} at {ip} ran into the device's time limit")]
    KernelTimeout {
        /// The device.
        ip: IpAddr,
        /// The function called.
        function: u8,
    },
    /// The device does not have this function.
    #[error("the device at {ip} does not have function {function}")]
    UnknownFunction {
        /// The device.
        ip: IpAddr,
        /// The function called.
        function: u8,
    },
    /// The kernel itself says that it failed.
    #[error("function {function} at {ip} failed: {text} (code {code:#04x})")]
    Kernel {
        /// The device.
        ip: IpAddr,
        /// The function called.
        function: u8,
        /// The code that it returned.
        code: u32,
        /// What that means, as the device describes it.
        text: String,
    },
    /// The caller has cancelled the call.
    #[error("function {function} at {ip} was cancelled")]
    Cancelled {
        /// The device.
        ip: IpAddr,
        /// The function called; 0 for a chain.
        function: u8,
    },
    /// The call did not end by its deadline, and was ended.
    #[error("function {function} at {ip} did not end within its deadline of {} ms", deadline.as_millis())]
    DeadlineExceeded {
        /// The device.
        ip: IpAddr,
        /// The function called; 0 for a chain.
        function: u8,
        /// How long it was given.
        deadline: Duration,
    },
    /// All contexts of the connection are in use by calls.
    #[error("all {contexts} contexts of the connection to {ip} are in use")]
    NoFreeContext {
        /// The device.
        ip: IpAddr,
        /// How many the connection has.
        contexts: u8,
    },
    /// The device has not agreed to what the caller asks for.
    #[error("the connection to {ip} has no {what}")]
    Unsupported {
        /// The device.
        ip: IpAddr,
        /// What is missing.
        what: &'static str,
    },
    /// This side has ended the connection.
    #[error("the connection to {ip} has ended: {why}")]
    Closed {
        /// The device.
        ip: IpAddr,
        /// Why.
        why: &'static str,
    },
    /// None of the targets that were tried can be reached.
    #[error("none of {} targets can be reached{}", tried.len(), list(tried))]
    NoTarget {
        /// Each target, and why it failed.
        tried: Vec<(String, Error)>,
    },
    /// A device could not be managed.
    #[error(transparent)]
    Manage(#[from] nacelle_manage::Error),
}

/// A number for each kind of error that never changes its meaning: of [`Error`], and of what runs devices and hosts that accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[repr(u32)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
#[allow(missing_docs)] // each is documented at the error of the same name, and in docs/reference/errors.md
pub enum ErrorCode {
    InvalidArgument = 1,
    Link = 2,
    AddressTaken = 3,
    NoFreeAddress = 4,
    Unreachable = 5,
    Refused = 6,
    RegionsRefused = 7,
    Timeout = 8,
    Lost = 9,
    Transport = 10,
    Protocol = 11,
    SocketUnavailable = 12,
    KernelTimeout = 13,
    UnknownFunction = 14,
    Kernel = 15,
    NoSuchDevice = 16,
    Management = 17,
    Cancelled = 18,
    DeadlineExceeded = 19,
    NoFreeContext = 20,
    Unsupported = 21,
    Closed = 22,
    NoTarget = 23,
    WindowOpen = 24,
    KernelRefused = 25,
    SimulatedDevice = 26,
    NotAdmitted = 27,
    AdmissionEnded = 28,
    Slot = 29,
    DeviceMemory = 30,
    CopyFailed = 31,
    CopiesFull = 32,
}

impl ErrorCode {
    /// All there are, in the order of their numbers: docs/reference/errors.md describes each.
    pub const ALL: [Self; 32] = [
        Self::InvalidArgument,
        Self::Link,
        Self::AddressTaken,
        Self::NoFreeAddress,
        Self::Unreachable,
        Self::Refused,
        Self::RegionsRefused,
        Self::Timeout,
        Self::Lost,
        Self::Transport,
        Self::Protocol,
        Self::SocketUnavailable,
        Self::KernelTimeout,
        Self::UnknownFunction,
        Self::Kernel,
        Self::NoSuchDevice,
        Self::Management,
        Self::Cancelled,
        Self::DeadlineExceeded,
        Self::NoFreeContext,
        Self::Unsupported,
        Self::Closed,
        Self::NoTarget,
        Self::WindowOpen,
        Self::KernelRefused,
        Self::SimulatedDevice,
        Self::NotAdmitted,
        Self::AdmissionEnded,
        Self::Slot,
        Self::DeviceMemory,
        Self::CopyFailed,
        Self::CopiesFull,
    ];

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The exit code of a program that ends because of it: 2 usage, 3 unreachable, 4 refused, 5 timeout, 6 remote error.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::InvalidArgument | Self::WindowOpen | Self::KernelRefused | Self::SimulatedDevice => 2,
            Self::Link
            | Self::AddressTaken
            | Self::NoFreeAddress
            | Self::Unreachable
            | Self::Lost
            | Self::Closed
            | Self::NoTarget
            | Self::NoSuchDevice
            | Self::Slot => 3,
            Self::Refused
            | Self::RegionsRefused
            | Self::NoFreeContext
            | Self::Unsupported
            | Self::NotAdmitted
            | Self::AdmissionEnded
            | Self::DeviceMemory
            | Self::CopiesFull => 4,
            Self::Timeout | Self::DeadlineExceeded => 5,
            Self::Transport
            | Self::Protocol
            | Self::SocketUnavailable
            | Self::KernelTimeout
            | Self::UnknownFunction
            | Self::Kernel
            | Self::Cancelled
            | Self::Management
            | Self::CopyFailed => 6,
        }
    }
}

impl Error {
    /// Its kind.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::InvalidArgument { .. } => ErrorCode::InvalidArgument,
            Self::Link(_) => ErrorCode::Link,
            Self::AddressTaken { .. } => ErrorCode::AddressTaken,
            Self::NoFreeAddress { .. } => ErrorCode::NoFreeAddress,
            Self::Unreachable { .. } | Self::PortClosed { .. } => ErrorCode::Unreachable,
            Self::Refused { .. } => ErrorCode::Refused,
            Self::NotAdmitted { .. } => ErrorCode::NotAdmitted,
            Self::AdmissionEnded { .. } => ErrorCode::AdmissionEnded,
            Self::RegionsRefused { .. } => ErrorCode::RegionsRefused,
            Self::Timeout { .. } => ErrorCode::Timeout,
            Self::Lost { .. } => ErrorCode::Lost,
            Self::Transport { .. } => ErrorCode::Transport,
            Self::Protocol { .. } => ErrorCode::Protocol,
            Self::SocketUnavailable { .. } => ErrorCode::SocketUnavailable,
            Self::KernelTimeout { .. } => ErrorCode::KernelTimeout,
            Self::UnknownFunction { .. } => ErrorCode::UnknownFunction,
            Self::Kernel { .. } => ErrorCode::Kernel,
            Self::Cancelled { .. } => ErrorCode::Cancelled,
            Self::DeadlineExceeded { .. } => ErrorCode::DeadlineExceeded,
            Self::NoFreeContext { .. } => ErrorCode::NoFreeContext,
            Self::Unsupported { .. } => ErrorCode::Unsupported,
            Self::Closed { .. } => ErrorCode::Closed,
            Self::NoTarget { .. } => ErrorCode::NoTarget,
            Self::Manage(ManageError::NoSuchDevice { .. }) => ErrorCode::NoSuchDevice,
            Self::Manage(ManageError::Management { .. }) => ErrorCode::Management,
        }
    }

    /// What to try, in one line.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Link(error) => explain::links::advice(error),
            Self::PortClosed { .. } => {
                "start a device there, as with 'nacelle device --soft --udp ADDRESS', or correct the address"
            }
            Self::Refused { reason, .. } => explain::rejects::text(RejReason(*reason)).advice,
            Self::Timeout { mtu: Some(_), .. } | Self::Lost { mtu: Some(_), .. } => {
                "use a smaller --mtu, 1500 for any Ethernet, or leave it out; else see with 'nacelle ls' whether it still runs"
            }
            _ => self.code().text().advice,
        }
    }

    /// A device that is gone.
    pub(crate) fn lost(ip: IpAddr, step: Step, detail: impl ToString) -> Self {
        Self::Lost { ip, step, detail: detail.to_string(), mtu: None }
    }

    /// As it was, with this path MTU as a possible cause if it can be one: where data is transferred.
    #[must_use]
    pub(crate) fn with_mtu(mut self, doubtful: Option<usize>) -> Self {
        if let Self::Timeout { step, mtu, .. } | Self::Lost { step, mtu, .. } = &mut self
            && matches!(step, Step::Inputs | Step::Compute | Step::Outputs)
        {
            *mtu = doubtful;
        }
        self
    }

    pub(crate) fn invalid(what: impl Into<String>) -> Self {
        Self::InvalidArgument { what: what.into() }
    }
}

/// The part of a message that says why regions were refused.
fn refusal(code: u8) -> String {
    let known = explain::find(Some(explain::Kind::Regions), &code.to_string());
    known.first().map(|one| format!(", {}", one.name)).unwrap_or_default()
}

/// The part of a message that names a path MTU as a possible cause.
fn doubt(mtu: Option<usize>) -> String {
    mtu.map(|mtu| format!(" (packets of the path MTU, {mtu} bytes, may be too long for the network)"))
        .unwrap_or_default()
}

/// What failed at each target.
fn list(tried: &[(String, Error)]) -> String {
    tried.iter().map(|(target, error)| format!("; {target}: {error}")).collect()
}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
