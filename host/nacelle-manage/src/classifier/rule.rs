// SPDX-License-Identifier: Apache-2.0
//! Rules, and how they are written.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use nacelle_wire::MacAddr;

/// Bytes of the window.
pub(super) const WINDOW: usize = 16;
/// Highest VLAN.
const MAX_VLAN: u32 = 4094;
/// Highest number of a pair of queues that an action can name.
const MAX_QUEUE: u32 = 3;
const MAX_PRIORITY: u32 = 7;
const MAX_DSCP: u32 = 63;
/// Highest number of a meter.
pub(super) const MAX_METER: u32 = 15;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TAGS: [u16; 2] = [0x8100, 0x88a8];

/// Why a rule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(String);

impl RuleError {
    /// What is wrong.
    #[must_use]
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }

    pub(super) fn in_line(number: usize, error: &Self) -> Self {
        Self(format!("line {number}: {error}"))
    }
}

pub(super) fn wrong<T>(what: impl Into<String>) -> Result<T, RuleError> {
    Err(RuleError::new(what))
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// Anything.
    #[default]
    Any,
    /// IPv4.
    Ip,
    /// IPv6.
    Ip6,
    /// Neither.
    Other,
}

/// The addresses with the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// One of them, whose other bits are 0.
    pub address: IpAddr,
    /// How many bits they have in common.
    pub length: u8,
}

impl FromStr for Prefix {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let Ok(address) = address.parse::<IpAddr>() else {
            return wrong(format!("{text:?} is no IP address or prefix such as 10.0.0.0/8"));
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), str::parse::<u8>);
        let Some(length) = length.ok().filter(|length| (1..=most).contains(length)) else {
            return wrong(format!("{text:?}: the length of a prefix is from 1 to {most}"));
        };
        let own = match address {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & u32::MAX << (32 - length))),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & u128::MAX << (128 - length))),
        };
        if own != address {
            return wrong(format!("{text:?} has bits behind its prefix; it is {own}/{length}"));
        }
        Ok(Self { address, length })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = if self.address.is_ipv4() { 32 } else { 128 };
        if self.length == most { write!(f, "{}", self.address) } else { write!(f, "{}/{}", self.address, self.length) }
    }
}

/// 16 bytes of the frame at the offset that the table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// What they are, where `mask` is set.
    pub value: [u8; WINDOW],
    /// The bits that are looked at.
    pub mask: [u8; WINDOW],
}

/// What a frame must have: all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Match {
    /// What it carries.
    pub family: Family,
    /// Its source; of the same family.
    pub source: Option<Prefix>,
    /// Its destination.
    pub destination: Option<Prefix>,
    /// Its `EtherType` behind the tags, if that is not IP.
    pub ethertype: Option<u16>,
    /// Its destination MAC address, if it is not IP.
    pub station: Option<MacAddr>,
    /// It has a VLAN tag, or none.
    pub tagged: Option<bool>,
    /// VLAN of the outer tag.
    pub vlan: Option<u16>,
    /// VLAN of the tag behind it.
    pub inner_vlan: Option<u16>,
    /// Protocol of IPv4, next header of IPv6.
    pub protocol: Option<u8>,
    /// Source port of TCP or UDP.
    pub source_port: Option<u16>,
    /// Destination port.
    pub destination_port: Option<u16>,
    /// It is `RoCEv2`.
    pub roce: bool,
    /// Opcode of its BTH.
    pub opcode: Option<u8>,
    /// Its destination queue pair.
    pub qpn: Option<u32>,
    /// It is a fragment, or none.
    pub fragment: Option<bool>,
    /// Bytes at the table's offset.
    pub window: Option<Window>,
}

/// Who gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Those who get it without a rule.
    Default,
    /// Nobody.
    Drop,
    /// The host, and no unit of the device.
    Host,
    /// The host, and the device if it would get it without a rule.
    Mirror,
    /// The device if it would get it without a rule, and not the host.
    Device,
}

impl Target {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Default, "default"),
        (Self::Drop, "drop"),
        (Self::Host, "host"),
        (Self::Mirror, "mirror"),
        (Self::Device, "device"),
    ];
}

/// Which way a frame takes by the kernel of the streaming socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stream {
    /// As the socket is set.
    #[default]
    AsSet,
    /// Through it.
    Through,
    /// Round it.
    Around,
}

/// What is done with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action {
    /// Who gets it.
    pub target: Target,
    /// The pair of queues of the network card that it is put into; without, the card deals it out by its flow.
    pub queue: Option<u8>,
    /// The meter above whose rate nobody gets it, or only the host.
    pub meter: Option<u8>,
    /// What is changed in the copy that the host gets.
    pub edit: Edit,
    /// Its way by the streaming socket.
    pub stream: Stream,
}

/// What is changed in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Edit {
    /// Priority of its outer VLAN tag, if it has one.
    pub vlan_priority: Option<u8>,
    /// DSCP of its IPv4 or IPv6 header.
    pub dscp: Option<u8>,
}

/// A rule. Of those that a frame matches, that with the lowest priority decides; of several with the same, the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Its place among the others.
    pub priority: u16,
    /// What a frame must have.
    pub matches: Match,
    /// What is done with it.
    pub action: Action,
}

impl Rule {
    /// Whether it needs four positions of the table.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        let addresses = self.matches.source.is_some() || self.matches.destination.is_some();
        self.matches.window.is_some() || (self.matches.family == Family::Ip6 && addresses)
    }
}

/// The words of a rule as it is read.
#[derive(Clone)]
pub(super) struct Words<'a>(std::str::SplitWhitespace<'a>);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0.next()
    }
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self(text.split_whitespace())
    }

    pub(super) fn value(&mut self, of: &str) -> Result<&'a str, RuleError> {
        self.0.next().ok_or_else(|| RuleError(format!("there must be something behind {of}")))
    }

    /// What is left of them.
    pub(super) fn rest(self) -> String {
        self.0.collect::<Vec<_>>().join(" ")
    }

    pub(super) fn number(&mut self, of: &str, most: u32) -> Result<u32, RuleError> {
        let text = self.value(of)?;
        let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16));
        match number {
            Ok(number) if number <= most => Ok(number),
            _ => wrong(format!("{of} {text}: it must be a number up to {most}")),
        }
    }
}

pub(super) fn set<T>(place: &mut Option<T>, value: T, of: &str) -> Result<(), RuleError> {
    if place.replace(value).is_some() { wrong(format!("{of} contradicts what is before it")) } else { Ok(()) }
}

impl Match {
    fn be(&mut self, family: Family, of: &str) -> Result<(), RuleError> {
        if self.family != Family::Any && self.family != family {
            return wrong(format!("{of} contradicts what is before it"));
        }
        self.family = family;
        Ok(())
    }

    fn be_prefix(&mut self, text: &str, of: &str) -> Result<Prefix, RuleError> {
        let prefix: Prefix = text.parse()?;
        self.be(if prefix.address.is_ipv4() { Family::Ip } else { Family::Ip6 }, &format!("{of} {text}"))?;
        Ok(prefix)
    }

    /// Takes the condition that begins with `word`. False if none does.
    pub(super) fn take(&mut self, word: &str, words: &mut Words<'_>) -> Result<bool, RuleError> {
        match word {
            "ip" => self.be(Family::Ip, word)?,
            "ip6" => self.be(Family::Ip6, word)?,
            "src" | "dst" => {
                let prefix = self.be_prefix(words.value(word)?, word)?;
                set(if word == "src" { &mut self.source } else { &mut self.destination }, prefix, word)?;
            }
            "arp" => {
                self.be(Family::Other, word)?;
                set(&mut self.ethertype, ARP, word)?;
            }
            "ethertype" => {
                let number = words.number(word, 0xffff)? as u16;
                match number {
                    IPV4 => return wrong("ethertype 0x0800: write ip"),
                    IPV6 => return wrong("ethertype 0x86dd: write ip6"),
                    _ if TAGS.contains(&number) => {
                        return wrong(format!("ethertype {number:#06x}: write tagged, or vlan"));
                    }
                    _ => {}
                }
                self.be(Family::Other, word)?;
                set(&mut self.ethertype, number, word)?;
            }
            "mac" => {
                let text = words.value(word)?;
                let Some(address) = crate::parse_mac(text) else { return wrong(format!("{text:?} is no MAC address")) };
                self.be(Family::Other, "mac (of what is not IP)")?;
                set(&mut self.station, address, word)?;
            }
            "tagged" => set(&mut self.tagged, true, word)?,
            "untagged" => set(&mut self.tagged, false, word)?,
            "vlan" => set(&mut self.vlan, words.number(word, MAX_VLAN)? as u16, word)?,
            "inner-vlan" => set(&mut self.inner_vlan, words.number(word, MAX_VLAN)? as u16, word)?,
            "tcp" => set(&mut self.protocol, TCP, word)?,
            "udp" => set(&mut self.protocol, UDP, word)?,
            "protocol" => set(&mut self.protocol, words.number(word, 0xff)? as u8, word)?,
            "src-port" => set(&mut self.source_port, words.number(word, 0xffff)? as u16, word)?,
            "dst-port" => set(&mut self.destination_port, words.number(word, 0xffff)? as u16, word)?,
            "roce" => self.roce = true,
            "opcode" => set(&mut self.opcode, words.number(word, 0xff)? as u8, word)?,
            "qpn" => set(&mut self.qpn, words.number(word, 0xff_ffff)?, word)?,
            "fragment" => set(&mut self.fragment, true, word)?,
            "no-fragment" => set(&mut self.fragment, false, word)?,
            "bytes" => set(&mut self.window, words.value(word)?.parse()?, word)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn check(&self) -> Result<(), RuleError> {
        if self.tagged == Some(false) && (self.vlan.is_some() || self.inner_vlan.is_some()) {
            return wrong("a frame without a tag is in no VLAN");
        }
        if self.tagged == Some(true) && self.vlan.is_some() {
            return wrong("vlan says that there is a tag: leave out tagged");
        }
        let of_ip = self.protocol.is_some() || self.source_port.is_some() || self.destination_port.is_some();
        if self.family == Family::Other && (of_ip || self.is_roce() || self.fragment == Some(true)) {
            return wrong("what is not IP has no protocol, ports, BTH or fragments");
        }
        if self.is_roce() && self.protocol.is_some_and(|protocol| protocol != UDP) {
            return wrong("RoCE is UDP");
        }
        let ports = self.source_port.is_some() || self.destination_port.is_some();
        if ports && self.protocol.is_some_and(|protocol| protocol != UDP && protocol != TCP) {
            return wrong("only TCP and UDP have ports");
        }
        Ok(())
    }

    /// Whether it asks for a BTH.
    pub(super) fn is_roce(&self) -> bool {
        self.roce || self.opcode.is_some() || self.qpn.is_some()
    }
}

impl FromStr for Window {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let hexadecimal = |digits: &str| -> Option<Vec<u8>> {
            let pairs = digits.is_ascii() && digits.len().is_multiple_of(2) && (2..=2 * WINDOW).contains(&digits.len());
            if !pairs {
                return None;
            }
            (0..digits.len() / 2).map(|byte| u8::from_str_radix(&digits[2 * byte..2 * byte + 2], 16).ok()).collect()
        };
        let (value, mask) = text.split_once('/').map_or((text, None), |(value, mask)| (value, Some(mask)));
        let value = hexadecimal(value);
        let mask = mask.map_or_else(|| value.as_ref().map(|value| vec![0xff; value.len()]), hexadecimal);
        match (value, mask) {
            (Some(value), Some(mask)) if value.len() == mask.len() => {
                let mut window = Self { value: [0; WINDOW], mask: [0; WINDOW] };
                for (place, (value, mask)) in value.iter().zip(&mask).enumerate() {
                    window.value[place] = value & mask;
                    window.mask[place] = *mask;
                }
                Ok(window)
            }
            _ => wrong(format!(
                "bytes {text}: it must be 1 to 16 bytes in hexadecimal digits, and as many for a mask behind '/'"
            )),
        }
    }
}

impl FromStr for Action {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = Words::new(text);
        let name = words.value("the conditions")?;
        let Some((target, _)) = Target::ALL.into_iter().find(|(_, known)| *known == name) else {
            let known = Target::ALL.map(|(_, name)| name).join(", ");
            return wrong(format!("{name:?} is neither a condition nor an action; actions are {known}"));
        };
        let (mut queue, mut meter, mut edit, mut stream) = (None, None, Edit::default(), None);
        let may_be_for_host = matches!(target, Target::Default | Target::Host | Target::Mirror);
        while let Some(word) = words.next() {
            match word {
                "queue" if may_be_for_host => {
                    set(&mut queue, words.number(word, MAX_QUEUE)? as u8, word)?;
                }
                "meter" if target != Target::Drop => {
                    set(&mut meter, words.number(word, MAX_METER)? as u8, word)?;
                }
                "vlan-priority" if may_be_for_host => {
                    set(&mut edit.vlan_priority, words.number(word, MAX_PRIORITY)? as u8, word)?;
                }
                "dscp" if may_be_for_host => set(&mut edit.dscp, words.number(word, MAX_DSCP)? as u8, word)?,
                "stream" if may_be_for_host => set(&mut stream, Stream::Through, word)?,
                "around" if may_be_for_host => set(&mut stream, Stream::Around, word)?,
                more => return wrong(format!("{more:?} behind the action {name}")),
            }
        }
        Ok(Self { target, queue, meter, edit, stream: stream.unwrap_or_default() })
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = Words::new(text);
        let mut priority = None;
        let mut matches = Match::default();
        loop {
            let rest = words.clone();
            let Some(word) = words.0.next() else { return wrong("there is no action, such as drop, at the end") };
            if word == "priority" {
                set(&mut priority, words.number(word, 0xffff)? as u16, word)?;
            } else if !matches.take(word, &mut words)? {
                let action = rest.rest().parse()?;
                matches.check()?;
                return Ok(Self { priority: priority.unwrap_or(u16::MAX / 2), matches, action });
            }
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Target::ALL.into_iter().find(|(target, _)| *target == self.target).map_or("", |(_, name)| name);
        f.write_str(name)?;
        self.queue.map_or(Ok(()), |queue| write!(f, " queue {queue}"))?;
        self.edit.vlan_priority.map_or(Ok(()), |priority| write!(f, " vlan-priority {priority}"))?;
        self.edit.dscp.map_or(Ok(()), |dscp| write!(f, " dscp {dscp}"))?;
        match self.stream {
            Stream::AsSet => {}
            Stream::Through => f.write_str(" stream")?,
            Stream::Around => f.write_str(" around")?,
        }
        self.meter.map_or(Ok(()), |meter| write!(f, " meter {meter}"))
    }
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let mut parts = Vec::new();
        match self.family {
            Family::Ip if self.source.is_none() && self.destination.is_none() => parts.push("ip".to_owned()),
            Family::Ip6 if self.source.is_none() && self.destination.is_none() => parts.push("ip6".to_owned()),
            _ => {}
        }
        let flag = |parts: &mut Vec<String>, set: bool, name: &str| parts.extend(set.then(|| name.to_owned()));
        flag(&mut parts, self.tagged == Some(true), "tagged");
        flag(&mut parts, self.tagged == Some(false), "untagged");
        parts.extend(self.vlan.map(|vlan| format!("vlan {vlan}")));
        parts.extend(self.inner_vlan.map(|vlan| format!("inner-vlan {vlan}")));
        parts.extend(
            self.ethertype
                .map(|number| if number == ARP { "arp".to_owned() } else { format!("ethertype {number:#06x}") }),
        );
        parts.extend(self.station.map(|address| format!("mac {address}")));
        parts.extend(self.source.map(|prefix| format!("src {prefix}")));
        parts.extend(self.destination.map(|prefix| format!("dst {prefix}")));
        parts.extend(self.protocol.map(|protocol| match protocol {
            TCP => "tcp".to_owned(),
            UDP => "udp".to_owned(),
            other => format!("protocol {other}"),
        }));
        parts.extend(self.source_port.map(|port| format!("src-port {port}")));
        parts.extend(self.destination_port.map(|port| format!("dst-port {port}")));
        flag(&mut parts, self.roce && self.opcode.is_none() && self.qpn.is_none(), "roce");
        parts.extend(self.opcode.map(|opcode| format!("opcode {opcode:#04x}")));
        parts.extend(self.qpn.map(|qpn| format!("qpn {qpn:#x}")));
        flag(&mut parts, self.fragment == Some(true), "fragment");
        flag(&mut parts, self.fragment == Some(false), "no-fragment");
        parts.extend(
            self.window.map(|window| format!("bytes {}/{}", hexadecimal(&window.value), hexadecimal(&window.mask))),
        );
        f.write_str(&parts.join(" "))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let matches = self.matches.to_string();
        let space = if matches.is_empty() { "" } else { " " };
        write!(f, "priority {}{space}{matches} {}", self.priority, self.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_written_as_they_are_read() {
        for text in [
            "priority 10 src 10.0.0.0/8 udp dst-port 4791 drop",
            "priority 0 host queue 3",
            "priority 0 udp device meter 7",
            "priority 0 udp mirror queue 1 vlan-priority 0 dscp 63 stream meter 7",
            "priority 0 tcp default around",
            "priority 7 ip6 tcp dst-port 22 mirror",
            "priority 7 src 2001:db8::/32 dst fe80::1 opcode 0x04 qpn 0x12 device",
            "priority 65535 vlan 5 inner-vlan 6 arp mac 02:00:00:00:00:01 drop",
            "priority 1 untagged ethertype 0x88b5 default queue 0",
            "priority 1 roce no-fragment drop",
            "priority 1 bytes 0a0b0000000000000000000000000000/ff0f0000000000000000000000000000 drop",
        ] {
            let rule: Rule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
        assert_eq!("udp drop".parse::<Rule>().unwrap().priority, 32767);
    }

    #[test]
    fn a_wrong_rule_says_what_is_wrong() {
        for (text, says) in [
            ("", "there is no action"),
            ("udp", "there is no action"),
            ("udp dropp", "\"dropp\" is neither a condition nor an action"),
            ("udp drop now", "\"now\" behind the action drop"),
            ("drop queue 1", "\"queue\" behind the action drop"),
            ("host queue 4", "queue 4: it must be a number up to 3"),
            ("host queue 1 2", "\"2\" behind the action"),
            ("host queue 1 queue 2", "queue contradicts"),
            ("host meter 16", "meter 16: it must be a number up to 15"),
            ("host dscp 64", "dscp 64: it must be a number up to 63"),
            ("host vlan-priority 8", "up to 7"),
            ("device dscp 1", "\"dscp\" behind the action device"),
            ("drop meter 1", "\"meter\" behind the action drop"),
            ("src 10.0.0.1/8 drop", "it is 10.0.0.0/8"),
            ("src 10.0.0.0/33 drop", "from 1 to 32"),
            ("src 10.0.0.0/0 drop", "from 1 to 32"),
            ("src ten drop", "no IP address or prefix"),
            ("src 10.0.0.1 dst fe80::1 drop", "contradicts"),
            ("ip arp drop", "contradicts"),
            ("udp tcp drop", "contradicts"),
            ("ethertype 0x0800 drop", "write ip"),
            ("ethertype 0x86dd drop", "write ip6"),
            ("ethertype 0x8100 drop", "write tagged"),
            ("untagged vlan 4 drop", "in no VLAN"),
            ("tagged vlan 4 drop", "leave out tagged"),
            ("vlan 4095 drop", "up to 4094"),
            ("arp dst-port 5 drop", "what is not IP"),
            ("tcp qpn 5 drop", "RoCE is UDP"),
            ("protocol 1 dst-port 5 drop", "only TCP and UDP"),
            ("dst-port 65536 drop", "up to 65535"),
            ("dst-port", "something behind dst-port"),
            ("qpn 0x1000000 drop", "up to 16777215"),
            ("bytes 0 drop", "1 to 16 bytes"),
            ("bytes 00/0000 drop", "1 to 16 bytes"),
            ("bytes äb drop", "1 to 16 bytes"),
            ("mac 1 drop", "no MAC address"),
            ("udp stream", "\"stream\" is neither a condition nor an action"),
            ("udp device stream", "\"stream\" behind the action device"),
            ("udp host stream around", "around contradicts"),
        ] {
            let error = text.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
