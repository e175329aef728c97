// SPDX-License-Identifier: Apache-2.0
//! `nacelle export`: what devices count, for Prometheus.

mod exposition;
mod fleet;
mod http;
mod metrics;

use std::net::TcpListener;

use crate::args::{Cli, ExportArgs};
use crate::failure::Failure;
use crate::output::print;
use fleet::Fleet;

pub(crate) fn export(cli: &Cli, args: &ExportArgs) -> Result<(), Failure> {
    let fleet = Fleet::new(cli.wire()?, args.device.clone(), args.timeout);
    if args.once {
        return print(&fleet.scrape().map_err(|error| Failure::check(error.to_string()))?);
    }
    let hint = "is another exporter there already? Choose an address and port with --listen";
    let failed = |error| Failure::usage(format!("cannot listen at {}: {error}", args.listen), hint);
    let listener = TcpListener::bind(args.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    eprintln!("metrics are at http://{address}/metrics");
    http::serve(&listener, &|| fleet.scrape().map_err(|error| error.to_string())).map_err(failed)
}
