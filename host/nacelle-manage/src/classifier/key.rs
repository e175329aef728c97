// SPDX-License-Identifier: Apache-2.0
//! The words that a rule is in the registers, and back (docs/reference/classifier.md#the-key).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nacelle_wire::MacAddr;

use super::rule::{Action, Edit, Family, Match, Prefix, Rule, Stream, Target, WINDOW, Window};

/// Positions that a wide entry takes.
pub(super) const QUARTERS: usize = 4;
/// Words of an entry that are used.
pub(super) const WORDS: usize = 38;
const CHUNK_BITS: u32 = 6;
const CHUNK: u32 = (1 << CHUNK_BITS) - 1;
/// Chunks of the quarter; those of what all positions see are behind them.
const QUARTER_CHUNKS: usize = 16;
const CHUNKS: usize = 34;
/// Words of the action, the lower half first, and of the priority.
const ACTION: [usize; 2] = [34, 35];
const PRIORITY: [usize; 2] = [36, 37];
const WORD_BITS: u32 = 12;
const ADDRESS_LOW: u32 = 32;

/// A field of a key: its lowest bit and its width.
#[derive(Clone, Copy)]
struct Field(u32, u32);

// Of what all positions see.
const QPN: Field = Field(0, 24);
const OPCODE: Field = Field(24, 8);
const DST_PORT: Field = Field(32, 16);
const SRC_PORT: Field = Field(48, 16);
const PROTOCOL: Field = Field(64, 8);
const INNER_VLAN: Field = Field(72, 12);
const OUTER_VLAN: Field = Field(84, 12);
const HAS_WINDOW: Field = Field(96, 1);
const FRAGMENT: Field = Field(97, 1);
const ROCE: Field = Field(98, 1);
const PORTS: Field = Field(99, 1);
const V6: Field = Field(100, 1);
const V4: Field = Field(101, 1);
const TWO_TAGS: Field = Field(102, 1);
const ONE_TAG: Field = Field(103, 1);

// Of an action.
const KEEP_AWAY: u32 = 1;
const CARD_ALWAYS: u32 = 1 << 1;
const CARD_NEVER: u32 = 2 << 1;
const QUEUE_LOW: u32 = 3;
const QUEUE_SET: u32 = 1 << 5;
const STREAM_THROUGH: u32 = 1 << 6;
const STREAM_AROUND: u32 = 2 << 6;
const METERED: u32 = 1 << 8;
const METER_LOW: u32 = 9;
const VLAN_PRIORITY_SET: u32 = 1 << 13;
const VLAN_PRIORITY_LOW: u32 = 14;
const DSCP_SET: u32 = 1 << 17;
const DSCP_LOW: u32 = 18;

/// Bits, and which of them are compared.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Terms {
    value: u128,
    mask: u128,
}

impl Terms {
    fn want(&mut self, Field(low, width): Field, value: u32) {
        self.mask |= ((1 << width) - 1) << low;
        self.value |= u128::from(value) << low;
    }

    /// What is wanted of a field, all bits of which are compared.
    fn wanted(&self, Field(low, width): Field) -> Option<u32> {
        let all = (1 << width) - 1;
        (self.mask >> low & all == all).then(|| (self.value >> low & all) as u32)
    }

    fn flag(&self, field: Field) -> Option<bool> {
        self.wanted(field).map(|value| value != 0)
    }

    fn chunk(&self, number: usize) -> u32 {
        let shift = number as u32 * CHUNK_BITS;
        let (mask, value) = ((self.mask >> shift) as u32 & CHUNK, (self.value >> shift) as u32 & CHUNK);
        mask << CHUNK_BITS | value
    }

    fn take_chunk(&mut self, number: usize, word: u32) {
        let shift = number as u32 * CHUNK_BITS;
        self.mask |= u128::from(word >> CHUNK_BITS & CHUNK) << shift;
        self.value |= u128::from(word & CHUNK) << shift;
    }
}

/// Source and destination, 128 bits each: of IPv4 the lower 32 bits of each.
struct Addresses {
    source: Terms,
    destination: Terms,
}

fn bits(prefix: Option<Prefix>) -> Terms {
    match prefix.map(|Prefix { address, length }| (address, length)) {
        None => Terms::default(),
        Some((IpAddr::V4(address), length)) => {
            Terms { value: address.to_bits().into(), mask: (u32::MAX << (32 - length)).into() }
        }
        Some((IpAddr::V6(address), length)) => Terms { value: address.to_bits(), mask: u128::MAX << (128 - length) },
    }
}

fn prefix(terms: Terms, v6: bool) -> Option<Option<Prefix>> {
    let most = if v6 { 128 } else { 32 };
    let length = terms.mask.count_ones();
    if length == 0 {
        return Some(None);
    }
    let whole = u128::MAX >> (128 - most);
    let address = if v6 {
        IpAddr::V6(Ipv6Addr::from_bits(terms.value))
    } else {
        IpAddr::V4(Ipv4Addr::from_bits(terms.value as u32))
    };
    (terms.mask == whole << (most - length) & whole).then_some(Some(Prefix { address, length: length as u8 }))
}

/// The address bits of one quarter.
fn address(matches: &Match, quarter: usize) -> Terms {
    let addresses = Addresses { source: bits(matches.source), destination: bits(matches.destination) };
    let half = |terms: Terms, upper: bool| {
        let shift = if upper { 64 } else { 0 };
        Terms { value: terms.value >> shift & u128::from(u64::MAX), mask: terms.mask >> shift & u128::from(u64::MAX) }
    };
    match matches.family {
        Family::Ip => Terms {
            value: addresses.source.value << 32 | addresses.destination.value,
            mask: addresses.source.mask << 32 | addresses.destination.mask,
        },
        Family::Ip6 => {
            half(if quarter < 2 { addresses.source } else { addresses.destination }, quarter.is_multiple_of(2))
        }
        Family::Any | Family::Other => {
            let mut terms = Terms::default();
            if let Some(ethertype) = matches.ethertype {
                terms.want(Field(48, 16), ethertype.into());
            }
            if let Some(MacAddr(bytes)) = matches.station {
                terms.mask |= (1 << 48) - 1;
                terms.value |= bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
            }
            terms
        }
    }
}

/// What all positions see of a rule.
fn common(matches: &Match) -> Terms {
    let mut terms = Terms::default();
    let families = match matches.family {
        Family::Any => None,
        Family::Ip => Some((1, 0)),
        Family::Ip6 => Some((0, 1)),
        Family::Other => Some((0, 0)),
    };
    if let Some((v4, v6)) = families {
        terms.want(V4, v4);
        terms.want(V6, v6);
    }
    let mut flag = |field, wanted: Option<bool>| {
        if let Some(wanted) = wanted {
            terms.want(field, wanted.into());
        }
    };
    let some = |there: bool| there.then_some(true);
    flag(ONE_TAG, matches.tagged.or(some(matches.vlan.is_some())));
    flag(TWO_TAGS, some(matches.inner_vlan.is_some()));
    flag(PORTS, some(matches.source_port.is_some() || matches.destination_port.is_some()));
    flag(ROCE, some(matches.is_roce()));
    flag(FRAGMENT, matches.fragment);
    flag(HAS_WINDOW, some(matches.window.is_some()));
    let mut field = |field, wanted: Option<u32>| {
        if let Some(wanted) = wanted {
            terms.want(field, wanted);
        }
    };
    field(OUTER_VLAN, matches.vlan.map(u32::from));
    field(INNER_VLAN, matches.inner_vlan.map(u32::from));
    field(PROTOCOL, matches.protocol.map(u32::from));
    field(SRC_PORT, matches.source_port.map(u32::from));
    field(DST_PORT, matches.destination_port.map(u32::from));
    field(OPCODE, matches.opcode.map(u32::from));
    field(QPN, matches.qpn);
    terms
}

pub(super) fn action_word(action: Action) -> u32 {
    let target = match action.target {
        Target::Default => 0,
        Target::Drop => KEEP_AWAY | CARD_NEVER,
        Target::Host => KEEP_AWAY | CARD_ALWAYS,
        Target::Mirror => CARD_ALWAYS,
        Target::Device => CARD_NEVER,
    };
    let part = |value: Option<u8>, set: u32, low: u32| value.map_or(0, |value| set | u32::from(value) << low);
    let stream = match action.stream {
        Stream::AsSet => 0,
        Stream::Through => STREAM_THROUGH,
        Stream::Around => STREAM_AROUND,
    };
    target
        | stream
        | part(action.queue, QUEUE_SET, QUEUE_LOW)
        | part(action.meter, METERED, METER_LOW)
        | part(action.edit.vlan_priority, VLAN_PRIORITY_SET, VLAN_PRIORITY_LOW)
        | part(action.edit.dscp, DSCP_SET, DSCP_LOW)
}

pub(super) fn action(word: u32) -> Option<Action> {
    let target = match word & (KEEP_AWAY | CARD_ALWAYS | CARD_NEVER) {
        0 => Target::Default,
        1 => return None,
        2 => Target::Mirror,
        3 => Target::Host,
        4 => Target::Device,
        5 => Target::Drop,
        _ => return None,
    };
    let part = |set: u32, low: u32, most: u32| (word & set != 0).then_some((word >> low & most) as u8);
    let edit =
        Edit { vlan_priority: part(VLAN_PRIORITY_SET, VLAN_PRIORITY_LOW, 7), dscp: part(DSCP_SET, DSCP_LOW, 63) };
    let stream = match word & (STREAM_THROUGH | STREAM_AROUND) {
        0 => Stream::AsSet,
        STREAM_THROUGH => Stream::Through,
        STREAM_AROUND => Stream::Around,
        _ => return None,
    };
    let (queue, meter) = (part(QUEUE_SET, QUEUE_LOW, 3), part(METERED, METER_LOW, 15));
    Some(Action { target, queue, meter, edit, stream })
}

/// The words of a rule at one of the positions that it takes: the `quarter`th of a wide one; of another it makes no difference.
pub(super) fn words(rule: &Rule, quarter: usize) -> [u32; WORDS] {
    let common = common(&rule.matches);
    let of_window = |bytes: [u8; WINDOW]| {
        bytes[4 * quarter..4 * quarter + 4].iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
    };
    let address = address(&rule.matches, quarter);
    let (value, mask) = rule.matches.window.map_or((0, 0), |window| (of_window(window.value), of_window(window.mask)));
    let own = Terms { value: address.value << ADDRESS_LOW | value, mask: address.mask << ADDRESS_LOW | mask };
    let mut words = [0; WORDS];
    for (number, word) in words.iter_mut().enumerate().take(CHUNKS) {
        *word = if number < QUARTER_CHUNKS { own.chunk(number) } else { common.chunk(number - QUARTER_CHUNKS) };
    }
    for (places, value) in [(ACTION, action_word(rule.action)), (PRIORITY, rule.priority.into())] {
        words[places[0]] = value & ((1 << WORD_BITS) - 1);
        words[places[1]] = value >> WORD_BITS;
    }
    words
}

/// The rule that these words are, of one position or of all of a wide one. None: of none that [`words`] makes.
pub(super) fn rule(entry: &[[u32; WORDS]]) -> Option<Rule> {
    let parts: Vec<(Terms, Terms)> = entry
        .iter()
        .map(|words| {
            let (mut own, mut common) = (Terms::default(), Terms::default());
            for (number, word) in words.iter().enumerate().take(CHUNKS) {
                if number < QUARTER_CHUNKS {
                    own.take_chunk(number, *word);
                } else {
                    common.take_chunk(number - QUARTER_CHUNKS, *word);
                }
            }
            (own, common)
        })
        .collect();
    let (own, common) = *parts.first()?;
    let family = match (common.flag(V4), common.flag(V6)) {
        (Some(true), _) => Family::Ip,
        (_, Some(true)) => Family::Ip6,
        (Some(false), Some(false)) => Family::Other,
        _ => Family::Any,
    };
    let address = |part: Terms| Terms { value: part.value >> ADDRESS_LOW, mask: part.mask >> ADDRESS_LOW };
    let (source, destination) = match family {
        Family::Ip => {
            let both = address(own);
            let low = u128::from(u32::MAX);
            let upper = Terms { value: both.value >> 32, mask: both.mask >> 32 };
            (prefix(upper, false)?, prefix(Terms { value: both.value & low, mask: both.mask & low }, false)?)
        }
        Family::Ip6 if parts.len() == QUARTERS => {
            let whole = |at: usize| {
                let (upper, lower) = (address(parts[at].0), address(parts[at + 1].0));
                Terms { value: upper.value << 64 | lower.value, mask: upper.mask << 64 | lower.mask }
            };
            (prefix(whole(0), true)?, prefix(whole(2), true)?)
        }
        _ => (None, None),
    };
    let other = address(own);
    let station = (family == Family::Other && other.mask & 0xffff_ffff_ffff != 0).then(|| {
        let bytes = (other.value as u64 & 0xffff_ffff_ffff).to_be_bytes();
        MacAddr([bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]])
    });
    let window = (common.flag(HAS_WINDOW) == Some(true) && parts.len() == QUARTERS).then(|| {
        let mut window = Window { value: [0; WINDOW], mask: [0; WINDOW] };
        for (quarter, (own, _)) in parts.iter().enumerate() {
            window.value[4 * quarter..4 * quarter + 4].copy_from_slice(&(own.value as u32).to_be_bytes());
            window.mask[4 * quarter..4 * quarter + 4].copy_from_slice(&(own.mask as u32).to_be_bytes());
        }
        window
    });
    let vlan = common.wanted(OUTER_VLAN).map(|vlan| vlan as u16);
    let matches = Match {
        family,
        source,
        destination,
        ethertype: if family == Family::Other { other.wanted(Field(48, 16)).map(|number| number as u16) } else { None },
        station,
        tagged: if vlan.is_some() { None } else { common.flag(ONE_TAG) },
        vlan,
        inner_vlan: common.wanted(INNER_VLAN).map(|vlan| vlan as u16),
        protocol: common.wanted(PROTOCOL).map(|protocol| protocol as u8),
        source_port: common.wanted(SRC_PORT).map(|port| port as u16),
        destination_port: common.wanted(DST_PORT).map(|port| port as u16),
        roce: common.flag(ROCE) == Some(true),
        opcode: common.wanted(OPCODE).map(|opcode| opcode as u8),
        qpn: common.wanted(QPN),
        fragment: common.flag(FRAGMENT),
        window,
    };
    let value = |places: [usize; 2]| entry[0][places[0]] | entry[0][places[1]] << WORD_BITS;
    let found = Rule { priority: value(PRIORITY) as u16, matches, action: action(value(ACTION))? };
    // Whatever the words say that a rule cannot: the rule would not be these words.
    let same =
        entry.iter().enumerate().all(|(quarter, entry)| words(&found, quarter)[..PRIORITY[0]] == entry[..PRIORITY[0]]);
    (same && found.is_wide() == (entry.len() == QUARTERS)).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_rule_again() {
        for text in [
            "priority 40000 src 10.0.0.0/8 dst 192.168.1.0/31 udp dst-port 4791 drop",
            "priority 0 host queue 3",
            "priority 7 ip6 tcp src-port 22 mirror",
            "priority 4096 src 2001:db8::/32 dst fe80::1 roce opcode 0x04 qpn 0x12 device",
            "priority 65535 vlan 5 inner-vlan 6 arp mac 02:00:00:00:00:01 drop",
            "priority 1 untagged ethertype 0x88b5 default queue 0",
            "priority 1 tagged roce no-fragment drop",
            "priority 4097 udp host queue 1 vlan-priority 5 dscp 46 stream meter 15",
            "priority 4097 udp mirror around",
            "priority 1 fragment bytes 0a0b/ff0f drop",
            "priority 1 dst ff02::/16 bytes 00112233445566778899aabbccddeeff drop",
        ] {
            let mut given: Rule = text.parse().unwrap();
            given.matches.roce = given.matches.is_roce();
            let entry: Vec<_> =
                (0..if given.is_wide() { QUARTERS } else { 1 }).map(|quarter| words(&given, quarter)).collect();
            assert_eq!(rule(&entry), Some(given), "{text}");
        }
    }

    #[test]
    fn words_of_others_are_no_rule() {
        let good = words(&"priority 1 src 10.0.0.0/8 drop".parse().unwrap(), 0);
        for (word, change) in
            [(0, 0x40), (ACTION[0], 4), (ACTION[0], 0xc0), (ACTION[1], 0x800), (10, 0x041), (33, 0x820)]
        {
            let mut bad = good;
            bad[word] ^= change;
            assert_eq!(rule(&[bad]), None, "word {word}");
        }
        assert_eq!(rule(&[]), None);
    }
}
