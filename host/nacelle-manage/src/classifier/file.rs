// SPDX-License-Identifier: Apache-2.0
//! Files of rules and flows.

use std::collections::HashSet;
use std::str::FromStr;

use super::flow::Flow;
use super::meter::Meter;
use super::rule::{Rule, RuleError, Words, set, wrong};

/// The last place at which the window can begin.
const MAX_OFFSET: u8 = 112;

/// What a file says: one rule, flow or meter a line, `#` begins a comment, and a line `offset N` says where the window is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleFile {
    /// In order of their priority.
    pub rules: Vec<Rule>,
    /// No two with the same key.
    pub flows: Vec<Flow>,
    /// No two with the same number.
    pub meters: Vec<Meter>,
    /// Where the window is, in bytes from the begin of a frame.
    pub offset: u8,
}

impl FromStr for RuleFile {
    type Err = RuleError;

    /// An error begins with the number of the line that is wrong.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut file = Self::default();
        let mut offset = None;
        let mut keys = HashSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = Words::new(line);
            let outcome = match words.next() {
                None => Ok(()),
                Some("offset") => {
                    words.number("offset", MAX_OFFSET.into()).and_then(|value| set(&mut offset, value as u8, "offset"))
                }
                Some("flow") => words.rest().parse().and_then(|flow: Flow| {
                    file.flows.push(flow);
                    if keys.insert(flow.key) { Ok(()) } else { wrong("there is the same flow before it") }
                }),
                Some("meter") => words.rest().parse().and_then(|meter: Meter| {
                    let again = file.meters.iter().any(|other| other.number == meter.number);
                    file.meters.push(meter);
                    if again { wrong("there is the same meter before it") } else { Ok(()) }
                }),
                Some(_) => line.parse().map(|rule| file.rules.push(rule)),
            };
            outcome.map_err(|error| RuleError::in_line(number, &error))?;
        }
        file.rules.sort_by_key(|rule| rule.priority);
        file.offset = offset.unwrap_or(0);
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_in_order_of_priority() {
        let file: RuleFile = "offset 14\npriority 5 udp drop\nflow src 10.0.0.1 dst 10.0.0.2 protocol 1 host\n\
            priority 1 tcp drop # first\npriority 5 arp host\n"
            .parse()
            .unwrap();
        let text: Vec<String> = file.rules.iter().map(Rule::to_string).collect();
        assert_eq!(text, ["priority 1 tcp drop", "priority 5 udp drop", "priority 5 arp host"]);
        assert_eq!(
            file.flows.iter().map(Flow::to_string).collect::<Vec<_>>(),
            ["src 10.0.0.1 dst 10.0.0.2 protocol 1 host"]
        );
        assert_eq!(file.offset, 14);
    }

    #[test]
    fn an_error_names_the_line() {
        for (text, says) in [
            ("# nothing\nudp drop\n\ntcp drp # x\n", "line 4: \"drp\""),
            ("offset 113\n", "line 1: offset 113"),
            ("offset 1\noffset 2\n", "line 2: offset"),
            (
                "flow src 10.0.0.1 dst 10.0.0.2 protocol 1 host\nflow dst 10.0.0.2 src 10.0.0.1 protocol 1 drop",
                "line 2: there is the same",
            ),
            ("meter 1 rate 5 burst 5\nmeter 1 rate 6 burst 5", "line 2: there is the same meter"),
            ("flow src 10.0.0.1 protocol 1 host", "line 1: a flow has one address behind dst"),
        ] {
            let error = text.parse::<RuleFile>().unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
