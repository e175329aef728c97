// SPDX-License-Identifier: Apache-2.0
//! Exact flows, how they are written, and the words that they are in the registers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::rule::{Action, Family, Match, Prefix, Rule, RuleError, TCP, UDP, Words, wrong};

/// Words of a key.
pub(super) const KEY_WORDS: usize = 10;
const ADDRESS_WORDS: usize = 4;
/// In the last word of a key.
pub(super) const V6: u32 = 1 << 8;

/// What makes a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Where its packets are from.
    pub source: IpAddr,
    /// Where they go; of the same family.
    pub destination: IpAddr,
    /// Protocol of IPv4, next header of IPv6.
    pub protocol: u8,
    /// Of TCP and UDP; else 0.
    pub source_port: u16,
    /// Likewise.
    pub destination_port: u16,
}

/// A flow, and what is done with its frames. It goes before all rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Which frames are of it.
    pub key: FlowKey,
    /// What is done with them.
    pub action: Action,
}

impl FlowKey {
    pub(super) fn is_v6(&self) -> bool {
        self.source.is_ipv6()
    }

    /// As the registers have it.
    pub(super) fn words(&self) -> [u32; KEY_WORDS] {
        let mut words = [0; KEY_WORDS];
        for (place, address) in [self.destination, self.source].into_iter().enumerate() {
            let bits = match address {
                IpAddr::V4(address) => address.to_bits().into(),
                IpAddr::V6(address) => address.to_bits(),
            };
            for word in 0..ADDRESS_WORDS {
                words[place * ADDRESS_WORDS + word] = (bits >> (32 * word)) as u32;
            }
        }
        words[8] = u32::from(self.source_port) << 16 | u32::from(self.destination_port);
        words[9] = u32::from(self.protocol) | if self.is_v6() { V6 } else { 0 };
        words
    }

    /// The key that these words are.
    pub(super) fn from_words(words: &[u32; KEY_WORDS]) -> Self {
        let address = |place: usize| {
            let bits = (0..ADDRESS_WORDS)
                .fold(0, |bits, word| bits | u128::from(words[place * ADDRESS_WORDS + word]) << (32 * word));
            if words[9] & V6 == 0 {
                IpAddr::V4(Ipv4Addr::from_bits(bits as u32))
            } else {
                IpAddr::V6(Ipv6Addr::from_bits(bits))
            }
        };
        Self {
            source: address(1),
            destination: address(0),
            protocol: words[9] as u8,
            source_port: (words[8] >> 16) as u16,
            destination_port: words[8] as u16,
        }
    }

    /// The flow that these conditions are.
    fn of(matches: &Match) -> Result<Self, RuleError> {
        let whole = |prefix: Option<Prefix>, name: &str| match prefix {
            Some(Prefix { address, length }) if length == if address.is_ipv4() { 32 } else { 128 } => Ok(address),
            _ => wrong(format!("a flow has one address behind {name}")),
        };
        let (source, destination) = (whole(matches.source, "src")?, whole(matches.destination, "dst")?);
        let Some(protocol) = matches.protocol else {
            return wrong("a flow has a protocol: tcp, udp or protocol N");
        };
        let has_ports = matches.source_port.is_some() && matches.destination_port.is_some();
        if (protocol == TCP || protocol == UDP) && !has_ports {
            return wrong("a flow of TCP or UDP has src-port and dst-port");
        }
        let key = Self {
            source,
            destination,
            protocol,
            source_port: matches.source_port.unwrap_or(0),
            destination_port: matches.destination_port.unwrap_or(0),
        };
        // Any other condition is one that a flow cannot have.
        let plain = Match {
            family: if key.is_v6() { Family::Ip6 } else { Family::Ip },
            source: matches.source,
            destination: matches.destination,
            protocol: matches.protocol,
            source_port: matches.source_port,
            destination_port: matches.destination_port,
            ..Match::default()
        };
        if *matches == plain {
            Ok(key)
        } else {
            wrong("a flow has src, dst, a protocol and ports, and no other conditions")
        }
    }
}

impl FromStr for FlowKey {
    type Err = RuleError;

    /// Of `src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 dst-port 5000`.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = Words::new(text);
        let mut matches = Match::default();
        while let Some(word) = words.next() {
            if !matches.take(word, &mut words)? {
                return wrong(format!("{word:?} is no condition"));
            }
        }
        matches.check()?;
        Self::of(&matches)
    }
}

impl FromStr for Flow {
    type Err = RuleError;

    /// As a key, with an action at the end.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        if Words::new(text).any(|word| word == "priority") {
            return wrong("a flow has no priority: it goes before all rules");
        }
        let Rule { matches, action, .. } = text.parse()?;
        Ok(Self { key: FlowKey::of(&matches)?, action })
    }
}

impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "src {} dst {} ", self.source, self.destination)?;
        match self.protocol {
            TCP => write!(f, "tcp src-port {} dst-port {}", self.source_port, self.destination_port),
            UDP => write!(f, "udp src-port {} dst-port {}", self.source_port, self.destination_port),
            protocol => write!(f, "protocol {protocol}"),
        }
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_written_as_they_are_read() {
        for text in [
            "src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 dst-port 5000 drop",
            "src 2001:db8::1 dst fe80::1 udp src-port 0 dst-port 65535 host queue 3",
            "src 10.0.0.1 dst 10.0.0.2 protocol 1 mirror",
        ] {
            let flow: Flow = text.parse().unwrap();
            assert_eq!(flow.to_string(), text);
            assert_eq!(FlowKey::from_words(&flow.key.words()), flow.key);
        }
    }

    #[test]
    fn a_wrong_flow_says_what_is_wrong() {
        for (text, says) in [
            ("src 10.0.0.1 dst 10.0.0.2 tcp src-port 80 drop", "src-port and dst-port"),
            ("src 10.0.0.1 dst 10.0.0.2 udp drop", "src-port and dst-port"),
            ("src 10.0.0.0/24 dst 10.0.0.2 protocol 1 drop", "one address behind src"),
            ("src 10.0.0.1 protocol 1 drop", "one address behind dst"),
            ("src 10.0.0.1 dst 10.0.0.2 drop", "a flow has a protocol"),
            ("src 10.0.0.1 dst 10.0.0.2 protocol 1 vlan 5 drop", "no other conditions"),
            ("src 10.0.0.1 dst 10.0.0.2 protocol 1 no-fragment drop", "no other conditions"),
            ("src 10.0.0.1 dst fe80::1 protocol 1 drop", "contradicts"),
            ("priority 5 src 10.0.0.1 dst 10.0.0.2 protocol 1 drop", "no priority"),
            ("src 10.0.0.1 dst 10.0.0.2 protocol 1", "there is no action"),
        ] {
            let error = text.parse::<Flow>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!("src 10.0.0.1 dst 10.0.0.2 protocol 1 drop".parse::<FlowKey>().is_err());
    }
}
