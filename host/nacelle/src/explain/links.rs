// SPDX-License-Identifier: Apache-2.0
//! What to try when a link cannot be used: for callers, and for devices and hosts that accept.

use std::io::ErrorKind;

use nacelle_link::LinkError;

/// What to try, in one line.
#[must_use]
pub fn advice(error: &LinkError) -> &'static str {
    match error {
        LinkError::NoSwitch { .. } => "start a device with 'nacelle device', or name its wire with --wire",
        LinkError::NameTaken { .. } => "choose another name, or end the one that runs",
        LinkError::BadPath { .. } => "name another directory with --wire",
        LinkError::Tap { source, .. } => tap(source.kind()),
        LinkError::PortTaken { .. } => {
            "end the other program, or use another address of this machine: RoCEv2 has this one port on each"
        }
        LinkError::NotLocal { .. } => "name one address that 'ip address' shows, or one in 127.0.0.0/8",
        LinkError::Io { source, .. } => place(source.kind()),
        error => error.hint().unwrap_or("start the device and the callers again"),
    }
}

/// What to try when a TAP device cannot be made.
const fn tap(error: ErrorKind) -> &'static str {
    match error {
        ErrorKind::PermissionDenied => {
            "a TAP device needs root or CAP_NET_ADMIN; without, leave --tap out: callers on this machine reach the device by \
             the virtual wire"
        }
        ErrorKind::NotFound => {
            "the kernel has no TAP devices: load the module 'tun', or leave --tap out and use the virtual wire"
        }
        ErrorKind::ResourceBusy => "another program holds this TAP device: name another one with --tap",
        _ => "name another TAP device, or leave --tap out and use the virtual wire",
    }
}

/// What to try when a file or directory cannot be used; the error itself names it.
const fn place(error: ErrorKind) -> &'static str {
    match error {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space there, or name another place",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "name a place that you may write to: a wire's directory with --wire"
        }
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            "look whether the directory is there, or name another: a wire's with --wire"
        }
        _ => "look at the directory of the wire, or name another with --wire",
    }
}
