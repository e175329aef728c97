// SPDX-License-Identifier: Apache-2.0
//! Errors of the library, and the codes in messages of the application that they come from.

use nacelle_wire::mrsp::{ReturnCode, reason};

use super::{Explanation, Kind, Text};
use crate::ErrorCode;

/// Where the functions of a device are shown.
const SEE_FUNCTIONS: &str = "see the functions that the device offers with 'nacelle describe'";
/// Where the devices that run are shown.
const SEE_DEVICES: &str = "list the devices that run with 'nacelle ls', or find the cause with 'nacelle doctor'";
/// What to do about an endpoint that does not keep to the protocol.
const CAPTURE: &str = "capture the packets with --capture and look at the last ones";

impl ErrorCode {
    /// What it means, why it happens, and what to do.
    #[must_use]
    pub const fn text(self) -> Text {
        let (meaning, cause, advice) = match self {
            Self::InvalidArgument => (
                "The caller asked for something that cannot be.",
                "A wrong argument, or a function in the wrong state.",
                "correct the argument: the message names it",
            ),
            Self::Link => (
                "The wire, TAP device or socket cannot be used.",
                "No device runs on the wire, its directory belongs to another user, or port 4791 is taken.",
                "start a device, or name another wire or address: the message says which",
            ),
            Self::AddressTaken => (
                "The address that was asked for belongs to another host, or the name to another device.",
                "A host answered the probe for it (RFC 5227), or a device on this machine has published it.",
                "leave the address and the name out to get free ones",
            ),
            Self::NoFreeAddress => (
                "All source addresses that were tried are used.",
                "The device's subnet is small or full.",
                "name a free address with --source",
            ),
            Self::Unreachable => (
                "No host has the address, or none answers there.",
                "The device does not run, has another address, or is on another link; its port is closed.",
                SEE_DEVICES,
            ),
            Self::Refused => (
                "The device refused the connection (REJ); the reason is in the error.",
                "See the reason.",
                "see what the reason means with 'nacelle explain reject REASON'",
            ),
            Self::RegionsRefused => (
                "The device refused the regions (ERR of region set-up).",
                "Not enough device memory in one piece, the caller's bound, or too many regions: see the code.",
                "use smaller regions, or see the memory that 'nacelle describe' shows",
            ),
            Self::Timeout => (
                "Nothing moved in a step for `Options::timeout`. A call still runs.",
                "The kernel computes for longer, the device is slow or waits for other callers, or packets are lost.",
                "give it more time with --timeout, or see what it does with 'nacelle ls'",
            ),
            Self::Lost => (
                "The device no longer acknowledges, or has closed the connection.",
                "It ended or was restarted, the network is broken, or it took the caller for dead.",
                "see with 'nacelle ls' whether the device still runs, then try again",
            ),
            Self::Transport => (
                "The device refused a request of the transport (NAK).",
                "A key, bounds or rights that do not fit, or a request that the device does not know.",
                CAPTURE,
            ),
            Self::Protocol => (
                "The device answered what no device may answer.",
                "It is no device of this protocol, or has another version of it.",
                CAPTURE,
            ),
            Self::SocketUnavailable => (
                "No kernel for the function is free or present (result 1).",
                "The socket that had the kernel is empty or in use, or its kernel was replaced while the call waited: call again.",
                SEE_FUNCTIONS,
            ),
            Self::KernelTimeout => (
                "The kernel ran into the device's own time limit (result 2).",
                "The work takes longer than the device allows a kernel, or the kernel hangs.",
                "give the kernel less work at a time, or the device a longer --kernel-time",
            ),
            Self::UnknownFunction => (
                "The device does not have the function (result 3).",
                "A wrong function code, or another device than was meant.",
                SEE_FUNCTIONS,
            ),
            Self::Kernel => (
                "The kernel itself failed; its code, and what that means, are in the error.",
                "The arguments do not fit the kernel, or it could not reach its memory.",
                "check the arguments against the kernel's description in 'nacelle describe'",
            ),
            Self::NoSuchDevice => (
                "No device has this name on the wire.",
                "It does not run, runs on another wire, or has another name.",
                SEE_DEVICES,
            ),
            Self::Management => (
                "A device could not be managed.",
                "It does not answer on its management socket, or refused the request.",
                "see with 'nacelle ls' whether the device still runs",
            ),
            Self::Cancelled => (
                "The caller has cancelled the call.",
                "`Call::cancel`, or a cancel by a handle.",
                "invoke it again if it was cancelled by mistake",
            ),
            Self::DeadlineExceeded => (
                "The call did not end by its deadline, and was ended (result 4, or by this side).",
                "The work takes longer, or the call waited for others.",
                "give the call a later deadline, or the kernel less work at a time",
            ),
            Self::NoFreeContext => (
                "All contexts of the connection have calls.",
                "More calls at a time than the device gives a connection.",
                "close a call, open another connection, or ask for more contexts",
            ),
            Self::Unsupported => (
                "The connection has not agreed to what is asked for: chains, long regions, a third user byte.",
                "The device does not offer the extension.",
                "do without it, or use a device whose description offers it",
            ),
            Self::Closed => (
                "This side has ended the connection.",
                "It was closed, or a call was cancelled or late that could not be ended alone.",
                "create the call again, or set Options::reconnect",
            ),
            Self::NoTarget => (
                "None of several targets can be reached; the error has one for each.",
                "See the error of each target.",
                SEE_DEVICES,
            ),
            Self::WindowOpen => (
                "A window of this number and direction is open already.",
                "The program has opened it before, and has not closed it.",
                "close the other window, or choose another number",
            ),
            Self::KernelRefused => (
                "The software device does not take the kernel.",
                "Its description or library is wrong, or another kernel has its name or a code of a function.",
                "build the kernel again with the nacelle_kernel.h of this version, or leave it out",
            ),
            Self::SimulatedDevice => (
                "The simulated device cannot be made.",
                "Its library was not built, cannot be loaded, or does not fit the options.",
                "build it with 'make sim' (for waveforms 'make sim-waves'), name it with --library, or use --soft",
            ),
            Self::NotAdmitted => (
                "The device admits callers by entries, and none is for this one; the reason is in the error.",
                "No token or a wrong one, another address than that of the entry, or all its connections are in use.",
                "name the file of a valid token with --token-file or NACELLE_TOKEN_FILE, or ask the device's administrator for one",
            ),
            Self::AdmissionEnded => (
                "The device has closed the connection because it admits this caller no longer.",
                "The entry of its token or address was revoked, or its time is over.",
                "ask the device's administrator for a new token",
            ),
            Self::Slot => (
                "The device in a slot cannot be used, or has gone.",
                "None is there, another program has it, it is not enabled, it has no copy engine, or it ended.",
                "start one with 'nacelle device --slot SOCKET' and a library with [pcie], or end the program that has it",
            ),
            Self::DeviceMemory => (
                "So much of the device's memory is not free, or not there.",
                "Buffers of this program have it, or [pcie] host_bytes of the device's description is small.",
                "close buffers, or build a device with more host_bytes",
            ),
            Self::CopyFailed => (
                "A copy between host and device memory failed.",
                "An address that no memory has, memory that failed, or the function was reset.",
                "see in the message which copy it was, and with 'nacelle log' what the device says",
            ),
            Self::CopiesFull => (
                "So many copies are under way that there is no room for more.",
                "The ring of the copy engine is full.",
                "wait for a copy, or make the ring longer when the slot is opened",
            ),
        };
        Text { meaning, cause, advice }
    }
}

/// Result codes of calls.
pub(super) fn results() -> impl Iterator<Item = Explanation> {
    let success = Text { meaning: "The call has ended, and its results are there.", cause: "-", advice: "-" };
    let reserved = Text {
        meaning: "Reserved: no device returns it today.",
        cause: "A device of a later version.",
        advice: "use a library of the device's version",
    };
    let of = |result: ReturnCode, error: ErrorCode| {
        let code = result.get();
        Explanation::new(Kind::Result, code..=code, format!("{error:?}"), error.text())
    };
    [
        Explanation::new(Kind::Result, 0..=0, "Success", success),
        of(ReturnCode::SOCKET_UNAVAILABLE, ErrorCode::SocketUnavailable),
        of(ReturnCode::KERNEL_TIMEOUT, ErrorCode::KernelTimeout),
        of(ReturnCode::UNKNOWN_FUNCTION, ErrorCode::UnknownFunction),
        of(ReturnCode::DEADLINE, ErrorCode::DeadlineExceeded),
        of(ReturnCode::CANCELLED, ErrorCode::Cancelled),
        Explanation::new(Kind::Result, 0x06..=0x0f, "Reserved", reserved),
        Explanation::new(Kind::Result, 0x10..=0x7f, "Kernel", ErrorCode::Kernel.text()),
    ]
    .into_iter()
}

/// Codes with which a device refuses regions.
pub(super) fn regions() -> impl Iterator<Item = Explanation> {
    let all = [
        (
            reason::MALFORMED,
            "MALFORMED",
            Text {
                meaning: "The request for regions makes no sense to the device.",
                cause: "A size of 0, a wrong count, or a message of another version.",
                advice: CAPTURE,
            },
        ),
        (
            reason::NO_MEMORY,
            "NO_MEMORY",
            Text {
                meaning: "The device has not enough memory in one piece, or the caller has reached its bound.",
                cause: "Regions that are too large, other callers, or --caller-memory of the device.",
                advice: ErrorCode::RegionsRefused.text().advice,
            },
        ),
        (
            reason::TOO_MANY_REGIONS,
            "TOO_MANY_REGIONS",
            Text {
                meaning: "There are more regions than the device takes.",
                cause: "The bound of the device, divided among the contexts of the connection.",
                advice: "use fewer regions, or fewer contexts: 'nacelle describe' shows the limits",
            },
        ),
        (
            reason::NO_KEY,
            "NO_KEY",
            Text {
                meaning: "The device has no key left for the regions.",
                cause: "Other callers have them all.",
                advice: "wait until another caller has ended, then try again",
            },
        ),
        (
            reason::NO_WINDOW,
            "NO_WINDOW",
            Text {
                meaning: "The host has no window of this number in this direction.",
                cause: "It was not opened yet, was closed, or is open to be read and not to be written, or the other way.",
                advice: "ask the host's program which numbers it accepts, and connect to it after it has opened them",
            },
        ),
        (
            reason::WINDOW_TOO_SMALL,
            "WINDOW_TOO_SMALL",
            Text {
                meaning: "The window is smaller than what was asked for.",
                cause: "More bytes than the host accepts in a write, or has to be read.",
                advice: "write or read less at a time",
            },
        ),
    ];
    all.into_iter().map(|(code, name, text)| Explanation::new(Kind::Regions, code.into()..=code.into(), name, text))
}
