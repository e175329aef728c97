// SPDX-License-Identifier: Apache-2.0
//! `nacelle qp` and `nacelle region`: what a device holds, and its reset.

use nacelle_manage::{Control, Error, MemoryRegion, QP_COUNTERS, QueuePair, QueuePairCounters};

use crate::args::{Cli, QpCommand, RegionCommand};
use crate::failure::Failure;
use crate::list::find;
use crate::output::{print, print_json, table};

/// The management socket of the device that is called so.
pub(crate) fn control(cli: &Cli, device: &str) -> Result<Control, Failure> {
    let wire = cli.wire()?;
    Ok(Control::open(&wire, &find(&wire, device)?.name)?)
}

pub(crate) fn qp(cli: &Cli, command: &QpCommand) -> Result<(), Failure> {
    match command {
        QpCommand::List { device } => {
            let pairs = control(cli, device)?.queue_pairs()?;
            if cli.json {
                return print_json(&pairs);
            }
            if pairs.is_empty() {
                eprintln!("{device} has no queue pair in use");
                return Ok(());
            }
            print(&table(&queue_pairs(&pairs), 5))
        }
        QpCommand::Counters { device, qpn } => {
            let pairs = control(cli, device)?.queue_pair_counters(*qpn).map_err(unknown(device))?;
            if cli.json {
                return print_json(&pairs);
            }
            let mut rows = vec![["QP", "COUNTER", "VALUE"].map(str::to_owned).to_vec()];
            rows.extend(pairs.iter().flat_map(counter_rows));
            if rows.len() == 1 {
                eprintln!(
                    "{device} has counted nothing for {}",
                    qpn.map_or("its queue pairs".into(), |qpn| format!("queue pair {qpn}"))
                );
                return Ok(());
            }
            print(&table(&rows, 2))
        }
        QpCommand::Reset { device, qpn, .. } => {
            let reset = control(cli, device)?.reset(*qpn).map_err(unknown(device))?;
            if cli.json {
                return print_json(&reset);
            }
            let what = qpn.map_or("all queue pairs".into(), |qpn| format!("queue pair {qpn}"));
            let how = if reset.closing { "connections are being closed" } else { "nothing of it is in use" };
            eprintln!("{what} of {device}: {how}");
            Ok(())
        }
    }
}

/// A row for each counter that is not 0, in the order of the RTL's.
fn counter_rows(pair: &QueuePairCounters) -> impl Iterator<Item = Vec<String>> {
    let counted =
        QP_COUNTERS.iter().filter_map(|name| pair.counters.get_key_value(*name).filter(|(_, value)| **value > 0));
    counted.map(|(name, value)| vec![pair.qpn.to_string(), name.clone(), value.to_string()])
}

/// The hint for a queue pair that the device refuses: how to list those that it has.
fn unknown(device: &str) -> impl FnOnce(Error) -> Failure + '_ {
    move |error| match error {
        Error::Management { .. } => {
            Failure::usage(error.to_string(), format!("list those that are in use with 'nacelle qp list {device}'"))
        }
        error => error.into(),
    }
}

/// A row of heads, and one for each queue pair.
pub(crate) fn queue_pairs(pairs: &[QueuePair]) -> Vec<Vec<String>> {
    let heads = ["QP", "STATE", "PEER", "PEER QP", "OWNER", "DOMAIN", "NEXT PSN", "OLDEST PSN", "RATE LIMIT"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(pairs.iter().map(row));
    rows
}

fn row(pair: &QueuePair) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    vec![
        pair.qpn.to_string(),
        pair.state.to_string(),
        or_dash(pair.peer.map(|ip| ip.to_string())),
        or_dash(pair.peer_qpn.map(|qpn| qpn.to_string())),
        format!("{}{}", pair.owner, if pair.unmanaged { ", no CM" } else { "" }),
        pair.domain.to_string(),
        pair.next_psn.to_string(),
        pair.oldest_psn.to_string(),
        or_dash(pair.rate_limit.map(|rate| format!("{rate:.1} Mb/s"))),
    ]
}

pub(crate) fn region(cli: &Cli, command: &RegionCommand) -> Result<(), Failure> {
    let RegionCommand::List { device } = command;
    let regions = control(cli, device)?.regions()?;
    if cli.json {
        return print_json(&regions);
    }
    if regions.is_empty() {
        eprintln!("{device} has no region");
        return Ok(());
    }
    let mut rows = vec![["ACCESS", "FOR", "DOMAIN", "ADDRESS", "BYTES"].map(str::to_owned).to_vec()];
    rows.extend(regions.iter().map(region_row));
    print(&table(&rows, 3))
}

fn region_row(region: &MemoryRegion) -> Vec<String> {
    let whose = match (region.qpn, region.domain) {
        (Some(qpn), _) => format!("queue pair {qpn}"),
        (None, Some(_)) => "its domain".into(),
        (None, None) => "the device".into(),
    };
    vec![
        if region.access.is_empty() { "local".into() } else { region.access.join(",") },
        whose,
        region.domain.map_or_else(|| "-".into(), |domain| domain.to_string()),
        format!("{:#x}", region.address),
        region.length.to_string(),
    ]
}
