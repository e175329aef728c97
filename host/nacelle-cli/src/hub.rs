// SPDX-License-Identifier: Apache-2.0
//! `nacelle hub`: reliable access to registers for clients of the IPbus project.

use nacelle_ipbus::{Hub, SessionConfig};

use crate::args::HubArgs;
use crate::failure::Failure;

pub(crate) fn hub(args: &HubArgs) -> Result<(), Failure> {
    let hint = "is another hub there already? Choose an address and port with --listen";
    let failed = |error| Failure::usage(format!("cannot listen at {}: {error}", args.listen), hint);
    let hub =
        Hub::bind(args.listen, SessionConfig { timeout: args.timeout, ..SessionConfig::default() }).map_err(failed)?;
    let address = hub.address().map_err(failed)?;
    eprintln!("the hub listens at {address}: chtcp-2.0://{address}?target=DEVICE:50001");
    hub.serve().map_err(failed)
}
