// SPDX-License-Identifier: Apache-2.0
//! Arguments of `nacelle filter`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use nacelle_manage::classifier::Rule;

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
    Add(RuleArgs),
    /// Delete the rules at these positions, all in one change
    Delete {
        #[command(flatten)]
        device: RegistersArgs,
        /// Positions, as 'nacelle filter list' shows them
        #[arg(required = true, value_name = "POSITION")]
        positions: Vec<usize>,
    },
    /// Make the rules of a file those of the device, all in one change: a rule a line; an empty file deletes all
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

impl RuleArgs {
    /// The rule.
    pub(crate) fn rule(&self) -> Result<Rule, nacelle_manage::classifier::RuleError> {
        self.words.join(" ").parse()
    }
}
