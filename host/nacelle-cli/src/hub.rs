// SPDX-License-Identifier: Apache-2.0
//! `nacelle hub`: reliable access to registers for clients of the IPbus project.

use nacelle_ipbus::{Hub, HubConfig, SessionConfig};

use crate::args::HubArgs;
use crate::failure::Failure;

pub(crate) fn hub(args: &HubArgs) -> Result<(), Failure> {
    let hint = "is another hub there already? Choose an address and port with --listen";
    let failed = |error| Failure::usage(format!("cannot listen at {}: {error}", args.listen), hint);
    let session = SessionConfig { timeout: args.timeout, ..SessionConfig::default() };
    let config = HubConfig { session, silence: args.silence, ..HubConfig::default() };
    let hub = Hub::bind(args.listen, config).map_err(failed)?;
    let address = hub.address().map_err(failed)?;
    eprintln!("the hub listens at {address}: chtcp-2.0://{address}?target=DEVICE:50001");
    hub.serve().map_err(failed)
}
