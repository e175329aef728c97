// SPDX-License-Identifier: Apache-2.0
//! The device itself: a connection, its description, WRITE and READ of its memory, and the round trip.

use std::time::Duration;

use nacelle::{ConnectionOptions, Device, Error, FunctionCode, Memory, Options, Region, Step};
use nacelle_link::WireDir;

use super::{Examination, Fault, LAST, StepEnd};
use crate::args::DoctorArgs;
use crate::describe::extensions;

/// Bytes that are written and read: at least two full packets.
const BYTES: usize = 8192;
/// Bytes of payload of a ping.
const PING_BYTES: usize = 56;
/// Round trips of which the shortest counts.
const PINGS: u16 = 4;
/// Time between two connection requests, and how often one can be repeated.
const CM_TIMEOUT: Duration = Duration::from_secs(1);
const CM_RETRIES: u64 = 15;

/// How the device is reached: each step waits for it as long as is wanted.
pub(super) fn options(args: &DoctorArgs, wire: &WireDir) -> Options {
    let mut options = args.way.options(wire, args.timeout);
    options.resolve_timeout = options.resolve_timeout.min(args.timeout);
    options.connect.cm_timeout = CM_TIMEOUT.min(args.timeout);
    options.connect.cm_retries = args.timeout.as_secs().saturating_sub(1).min(CM_RETRIES) as u8;
    options
}

pub(super) fn examine(examination: &mut Examination<'_>, device: &Device) -> Result<(), StepEnd> {
    let args = examination.args;
    examination.step("connection", || connection(device))?;
    examination.step("description", || {
        Ok(match device.describe()? {
            Some(described) => {
                let (build, functions) = (&described.device, described.functions.len());
                ((), format!("READ: build {build} with {functions} functions"))
            }
            None => ((), "it gives none: it is no Nacelle device, or an early one".into()),
        })
    })?;
    examination.step("memory", || memory(device))?;
    examination.step(LAST, || {
        let times: Result<Vec<_>, _> =
            (1..=PINGS).map(|sequence| device.ping(sequence, PING_BYTES, args.timeout)).collect();
        let shortest = times?.into_iter().min().unwrap_or_default();
        Ok(((), format!("{:.3} ms, the shortest of {PINGS}", shortest.as_secs_f64() * 1e3)))
    })
}

fn connection(device: &Device) -> Result<((), String), Fault> {
    let connection = device.open(&ConnectionOptions { contexts: u8::MAX }).map_err(|error| match error {
        Error::Timeout { step: Step::Connect, waited, .. } => Fault::new(
            format!("no answer (REP or REJ) to the connection request (REQ) within {:.1} s", waited.as_secs_f64()),
            "is it a RoCEv2 endpoint? Let firewalls pass UDP port 4791 both ways; see with 'nacelle run --capture' what comes back",
        ),
        Error::Refused { reason, .. } => {
            let hint = format!("{}; 'nacelle explain reject {reason}' says more", error.hint());
            Fault::new(error.to_string(), hint)
        }
        error => error.into(),
    })?;
    let agreed =
        connection.agreed().ok_or_else(|| Fault::new("the device closed the connection at once", "try again"))?;
    connection.close()?;
    let time = agreed.opened_in.as_secs_f64() * 1e3;
    let found = format!(
        "REQ, REP, RTU in {time:.2} ms; path MTU {} bytes; extensions: {}",
        agreed.path_mtu,
        extensions(&agreed)
    );
    Ok(((), found))
}

/// What it means that the device is there, and full packets do not arrive.
fn stuck(error: Error) -> Fault {
    match error {
        Error::Lost { .. } | Error::Timeout { .. } => Fault::new(
            format!("full packets do not get through: {error}"),
            "try a smaller --mtu: a link on the way may take shorter packets than this machine's",
        ),
        error => error.into(),
    }
}

/// WRITEs and READs device memory.
fn memory(device: &Device) -> Result<((), String), Fault> {
    let pattern: Vec<u8> = (0..BYTES).map(|at| at as u8).collect();
    let mut call = device.create(FunctionCode::EMPTY, vec![Region::inout(pattern.clone())])?;
    call.write_region(0).map_err(stuck)?;
    call.write(0, &[0; BYTES])?;
    call.read_region(0).map_err(stuck)?;
    let read = call.close()?.pop().and_then(|memory| Memory::into_vec(memory).ok());
    if read.as_ref() == Some(&pattern) {
        Ok(((), format!("{BYTES} bytes written and read back")))
    } else {
        Err(Fault::new(
            format!("of {BYTES} bytes written, others came back"),
            "the device is broken: capture the packets with 'nacelle capture'",
        ))
    }
}
