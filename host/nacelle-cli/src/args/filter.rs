// SPDX-License-Identifier: Apache-2.0
//! Arguments of `nacelle filter`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nacelle_manage::classifier::{Flow, FlowKey, Meter, Rule, RuleError};

use super::RegistersArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum FilterCommand {
    /// Show the rules in the order in which they decide, with their positions and what they have counted
    List(RegistersArgs),
    /// Add a rule: nacelle filter add DEVICE priority 10 src 10.0.0.0/8 udp dst-port 4791 drop
    ///
    /// Conditions: ip, ip6, src PREFIX, dst PREFIX, arp, ethertype N, mac ADDRESS, tagged, untagged, vlan N, inner-vlan N, tcp, udp,
    /// protocol N, src-port N, dst-port N, roce, opcode N, qpn N, fragment, no-fragment, bytes HEX[/MASK]. Then one action: drop, host,
    /// mirror, device or default; behind host, mirror and default also queue N, vlan-priority N, dscp N (of the host's
    /// copy), stream or around (through the kernel of the streaming socket, or round it); behind all but drop meter N. The rule with the lowest priority decides.
    ///
    /// With the word flow in front, one of 4096 and more exact flows, which go before all rules: nacelle filter add DEVICE flow
    /// src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 dst-port 5000 host queue 1
    ///
    /// With the word meter in front, one of 16 limits of a rate, in bytes or frames per second: nacelle filter add DEVICE meter 3
    /// rate 125000000 burst 65536, with frames and host behind it. Rules and flows that end with meter 3 share it.
    Add(RuleArgs),
    /// Delete the rules at these positions, all in one change; or a flow: flow src 10.0.0.1 dst 10.0.0.2
    /// protocol 1; or the settings of a meter: meter 3
    Delete(DeleteArgs),
    /// Make the rules of a file those of the device, all in one change, and then its meters and flows, each in one: a rule, meter
    /// or flow a line; an empty file deletes all
    Set {
        #[command(flatten)]
        device: RegistersArgs,
        /// The file; - for standard input
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RuleArgs {
    #[command(flatten)]
    pub(crate) device: RegistersArgs,
    /// The rule: conditions, then what is done with a frame that meets all of them (docs/reference/classifier.md)
    #[arg(required = true, num_args = 1.., value_name = "WORD")]
    words: Vec<String>,
}

/// The words that a flow and a meter begin with.
const FLOW: &str = "flow";
const METER: &str = "meter";

/// What is added.
pub(crate) enum Added {
    Rule(Rule),
    Flow(Flow),
    Meter(Meter),
}

impl RuleArgs {
    /// The rule or flow.
    pub(crate) fn what(&self) -> Result<Added, RuleError> {
        let text = self.words.join(" ");
        match text.split_once(' ') {
            Some((FLOW, flow)) => flow.parse().map(Added::Flow),
            Some((METER, meter)) => meter.parse().map(Added::Meter),
            _ => text.parse().map(Added::Rule),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) device: RegistersArgs,
    /// Positions, as 'nacelle filter list' shows them; or the word flow, and the flow without its action; or the word meter, and a
    /// number
    #[arg(required = true, num_args = 1.., value_name = "POSITION")]
    words: Vec<String>,
}

/// What is deleted.
pub(crate) enum Deleted {
    Positions(Vec<usize>),
    Flow(FlowKey),
    Meter(u8),
}

impl DeleteArgs {
    /// The rules or the flow.
    pub(crate) fn what(&self) -> Result<Deleted, RuleError> {
        let not = |word: &str, what: &str| RuleError::new(format!("{word:?} is no {what}"));
        match self.words.join(" ").split_once(' ') {
            Some((FLOW, flow)) => flow.parse().map(Deleted::Flow),
            Some((METER, meter)) => meter.parse().map(Deleted::Meter).map_err(|_| not(meter, "meter")),
            _ => {
                let position = |word: &String| word.parse().map_err(|_| not(word, "position"));
                self.words.iter().map(position).collect::<Result<_, _>>().map(Deleted::Positions)
            }
        }
    }
}
