// SPDX-License-Identifier: Apache-2.0
//! Arguments of `nacelle filter`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nacelle_manage::classifier::{Flow, FlowKey, Rule, RuleError};

use super::RegistersArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum FilterCommand {
    /// Show the rules in the order in which they decide, with their positions and what they have counted
    List(RegistersArgs),
    /// Add a rule: nacelle filter add DEVICE priority 10 src 10.0.0.0/8 udp dst-port 4791 drop
    ///
    /// Conditions: ip, ip6, src PREFIX, dst PREFIX, arp, ethertype N, mac ADDRESS, tagged, untagged, vlan N, inner-vlan N, tcp, udp,
    /// protocol N, src-port N, dst-port N, roce, opcode N, qpn N, fragment, no-fragment, bytes HEX[/MASK]. Then one action: drop, host,
    /// mirror, device or default; behind host, mirror and default also queue N. The rule with the lowest priority decides.
    ///
    /// With the word flow in front, one of 4096 and more exact flows, which go before all rules: nacelle filter add DEVICE flow
    /// src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 dst-port 5000 host queue 1
    Add(RuleArgs),
    /// Delete the rules at these positions, all in one change; or a flow: flow src 10.0.0.1 dst 10.0.0.2 protocol 1
    Delete(DeleteArgs),
    /// Make the rules of a file those of the device, all in one change, and then its flows, each in one: a rule or flow a line; an
    /// empty file deletes all
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

/// The word that a flow begins with.
const FLOW: &str = "flow";

/// What is added.
pub(crate) enum Added {
    Rule(Rule),
    Flow(Flow),
}

impl RuleArgs {
    /// The rule or flow.
    pub(crate) fn what(&self) -> Result<Added, RuleError> {
        let text = self.words.join(" ");
        match text.split_once(' ') {
            Some((FLOW, flow)) => flow.parse().map(Added::Flow),
            _ => text.parse().map(Added::Rule),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) device: RegistersArgs,
    /// Positions, as 'nacelle filter list' shows them; or the word flow, and the flow without its action
    #[arg(required = true, num_args = 1.., value_name = "POSITION")]
    words: Vec<String>,
}

/// What is deleted.
pub(crate) enum Deleted {
    Positions(Vec<usize>),
    Flow(FlowKey),
}

impl DeleteArgs {
    /// The rules or the flow.
    pub(crate) fn what(&self) -> Result<Deleted, RuleError> {
        if let Some((FLOW, flow)) = self.words.join(" ").split_once(' ') {
            return flow.parse().map(Deleted::Flow);
        }
        let position = |word: &String| word.parse().map_err(|_| RuleError::new(format!("{word:?} is no position")));
        self.words.iter().map(position).collect::<Result<_, _>>().map(Deleted::Positions)
    }
}
