// SPDX-License-Identifier: Apache-2.0
//! `nacelle ping`.

use nacelle::{Device, Error, Options};
use serde::Serialize;

use crate::args::{Cli, PingArgs};
use crate::failure::Failure;
use crate::list;
use crate::output::{print, print_json};

#[derive(Serialize)]
struct Outcome {
    device: std::net::IpAddr,
    sent: u16,
    received: u16,
    /// Of each request in order: `null` for one that was not answered.
    times_us: Vec<Option<f64>>,
}

pub(crate) fn ping(cli: &Cli, args: &PingArgs) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let ip = list::address(&wire, &args.device)?;
    let options = Options {
        link: args.link.link,
        source: args.link.source,
        wire: cli.wire.clone(),
        resolve_timeout: args.timeout,
        ..Options::default()
    };
    let device = Device::connect(ip, &options)?;
    let bytes = if device.is_by_udp() { 0 } else { args.size };
    let mut result = Outcome { device: ip, sent: 0, received: 0, times_us: Vec::new() };
    for sequence in 1..=args.count {
        if sequence > 1 {
            std::thread::sleep(args.interval);
        }
        result.sent += 1;
        let time = match device.ping(sequence, args.size, args.timeout) {
            Ok(time) => Some(time.as_secs_f64() * 1e6),
            Err(Error::Unreachable { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        result.received += u16::from(time.is_some());
        result.times_us.push(time);
        if !cli.json {
            print(&match time {
                Some(time) => format!("{bytes} bytes from {ip}: seq={sequence} time={:.3} ms\n", time / 1e3),
                None => format!("no answer from {ip}: seq={sequence}\n"),
            })?;
        }
    }
    if cli.json {
        print_json(&result)?;
    } else {
        eprintln!("{} sent, {} answered", result.sent, result.received);
    }
    if result.received == 0 {
        return Err(Error::Unreachable { ip, waited: args.timeout * u32::from(args.count) }.into());
    }
    Ok(())
}
