// SPDX-License-Identifier: Apache-2.0
//! The rules of a device: read, and changed so that every frame sees a whole table.

use std::collections::BTreeMap;

use super::flow::{Flow, FlowKey};
use super::key::{self, QUARTERS, WORDS};
use super::meter::Meter;
use super::rule::{Action, Edit, Rule, Stream, Target};
use crate::Registers;
use crate::map::{Chain, Field, classifier as map, stream};
use crate::registers::PATIENCE;

/// Positions that are loaded together.
const UNIT: usize = 32;
/// Positions that this library can manage.
const POSITIONS: usize = 128;
const WORD_BITS: usize = 32;
/// Positions that are left free between two rules, if there is room.
const SPACING: usize = 3;

/// Why rules cannot be read or changed. Nothing has changed then, unless an access has failed.
#[derive(Debug, thiserror::Error)]
pub enum ClassifierError<E> {
    /// The registers cannot be accessed.
    #[error(transparent)]
    Access(E),
    /// The device has none.
    #[error("this device has no classifier")]
    None,
    /// It is of a version that this library does not know, or does not end what it does.
    #[error("the classifier does not do what this version expects of it: {0}")]
    Unexpected(&'static str),
    /// A rule for the host of a device without a network card.
    #[error("{0}: this device has no network card, so no frame can be given to its host")]
    NoCard(String),
    /// A rule for a pair of queues that the card has not.
    #[error("{rule}: the network card has {pairs} pairs of queues, from 0")]
    NoQueue {
        /// The rule.
        rule: String,
        /// How many there are.
        pairs: u32,
    },
    /// A rule about the streaming socket of a device without one.
    #[error("{0}: this device has no streaming socket")]
    NoSocket(String),
    /// No position is free where the rules should go.
    #[error("there is no room: the rules take {needed} positions, and {free} of {POSITIONS} are free")]
    Full {
        /// Positions that are needed, one, or four of a group for rules with IPv6 addresses or bytes.
        needed: usize,
        /// Those that are free.
        free: usize,
    },
    /// Both rows of a flow are full, and nothing in them can move away.
    #[error("flow {0}: there is no room for it: its places are taken, and what is there has nowhere to go")]
    NoPlace(Flow),
    /// There is no such flow.
    #[error("there is no flow {0}")]
    NoFlow(FlowKey),
    /// The rate of a meter is too low or too high for the device.
    #[error("{0}: the device cannot have this rate: it is nothing within 16 cycles, or more than 4096 within them")]
    NoRate(Meter),
    /// The meter has no settings.
    #[error("meter {0} has no settings")]
    NoMeter(u8),
    /// The system gives no random numbers, of which the hash of the flows is made.
    #[error("the system gives no random numbers")]
    NoRandom,
    /// There is none at that position.
    #[error("there is no rule at position {0}")]
    NoRule(usize),
}

/// How often an entry has decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames, modulo 2<sup>32</sup>.
    pub frames: u32,
    /// Their bytes without FCS, modulo 2<sup>48</sup>.
    pub bytes: u64,
}

/// An entry of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Its position, of a wide one the first.
    pub position: usize,
    /// It takes four positions.
    pub wide: bool,
    /// Its rule; `None`: other software has written what no [`Rule`] says.
    pub rule: Option<Rule>,
}

/// All entries in use, by position, which is the order in which they decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The entries.
    pub entries: Vec<Placed>,
    /// Where the window is, in bytes from the begin of a frame.
    pub offset: u8,
}

/// What is where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Layout(BTreeMap<usize, Rule>);

impl Layout {
    /// Puts `rules` in order into positions that are not `taken`, `spacing` positions between them for rules to come. None if there is no room.
    fn place(rules: &[Rule], taken: &[bool; POSITIONS], from: usize, to: usize, spacing: usize) -> Option<Self> {
        let mut layout = BTreeMap::new();
        let (mut next, mut end) = (from, from);
        // No narrow entry may be in the group of a wide one: the flag is the group's.
        let is_free = |first: usize, count: usize| !taken[first..first + count].contains(&true);
        for rule in rules {
            let found = if rule.is_wide() {
                (next.div_ceil(QUARTERS)..POSITIONS / QUARTERS)
                    .map(|group| group * QUARTERS)
                    .find(|first| is_free(*first, QUARTERS))
            } else {
                (next..POSITIONS).find(|position| !taken[*position])
            };
            let position = found?;
            end = position + if rule.is_wide() { QUARTERS } else { 1 };
            next = end + spacing;
            layout.insert(position, *rule);
        }
        (end <= to).then_some(Self(layout))
    }
}

/// The classifier of a device, by any way to its registers.
///
/// Nothing guards it against another user at the same time: the last change stays.
pub struct Classifier<'a, R> {
    pub(super) registers: &'a mut R,
    pub(super) base: u32,
    pub(super) pairs: u32,
}

impl<'a, R: Registers> Classifier<'a, R> {
    /// That of this device.
    ///
    /// # Errors
    /// If it has none, or one of another size.
    pub fn new(registers: &'a mut R) -> Result<Self, ClassifierError<R::Error>> {
        let found = Chain::new(registers).first(&map::BLOCK).map_err(ClassifierError::Access)?;
        let base = found.ok_or(ClassifierError::None)?.address;
        let mut own = Self { registers, base, pairs: 0 };
        let facts = own.read_all(&[map::POSITIONS.at(base), map::PAIRS.at(base)])?;
        if facts[0] as usize != POSITIONS {
            return Err(ClassifierError::Unexpected("its table has another size"));
        }
        own.pairs = facts[1];
        Ok(own)
    }

    /// The rules in use.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn rules(&mut self) -> Result<Rules, ClassifierError<R::Error>> {
        let base = self.base;
        let mut addresses: Vec<u32> = (0..4).map(|word| map::ENABLE.word(base, word)).collect();
        addresses.extend([map::WIDE.at(base), map::OFFSET.at(base)]);
        let words = self.read_all(&addresses)?;
        let enabled = |position: usize| words[position / WORD_BITS] >> (position % WORD_BITS) & 1 != 0;
        let mut entries = Vec::new();
        for position in 0..POSITIONS {
            let wide = words[4] >> (position / QUARTERS) & 1 != 0;
            if !enabled(position) || (wide && position % QUARTERS != 0) {
                continue;
            }
            let parts = (position..position + if wide { QUARTERS } else { 1 })
                .map(|part| self.entry(part))
                .collect::<Result<Vec<_>, _>>()?;
            entries.push(Placed { position, wide, rule: key::rule(&parts) });
        }
        Ok(Rules { entries, offset: words[5] as u8 })
    }

    /// How often the entry at a position has decided since it is in use.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn counts(&mut self, position: usize) -> Result<Counts, ClassifierError<R::Error>> {
        let base = self.base;
        self.write(map::ENTRY.at(base), position as u32)?;
        let [frames, low, high, again] =
            [&map::FRAMES, &map::BYTES_LO, &map::BYTES_HI, &map::BYTES_LO].map(|register| register.at(base));
        let words = self.read_all(&[frames, high, low, high, again])?;
        // The upper half as it is with the lower one that was read beside it.
        let (high, low) = if words[1] == words[3] { (words[1], words[2]) } else { (words[3], words[4]) };
        Ok(Counts { frames: words[0], bytes: u64::from(high) << 32 | u64::from(low) })
    }

    /// Adds a rule behind those that go before it. If no position between these and the next one is free, all rules move to other positions in
    /// the same change, and their counters begin at 0. How many have moved.
    ///
    /// # Errors
    /// If the device cannot do what it says, or there is no room.
    pub fn add(&mut self, rule: &Rule) -> Result<usize, ClassifierError<R::Error>> {
        self.check(rule.action, rule)?;
        let now = self.rules()?;
        let gap = gap(&now.entries, rule);
        let taken = taken(&now.entries);
        if let Some(layout) = Layout::place(&[*rule], &taken, gap.0, gap.1, 0) {
            self.put(&layout)?;
            self.commit(
                &now.entries.iter().map(|entry| (entry.position, entry.wide)).chain(of(&layout)).collect::<Vec<_>>(),
                now.offset,
            )?;
            return Ok(0);
        }
        // All rules again, in free positions, in one change.
        let mut all = Vec::new();
        for entry in &now.entries {
            all.push(
                entry
                    .rule
                    .ok_or(ClassifierError::Unexpected("an entry that other software has written cannot be moved"))?,
            );
        }
        let moved = all.len();
        all.insert(all.partition_point(|other| other.priority <= rule.priority), *rule);
        self.replace(&all, now.offset)?;
        Ok(moved)
    }

    /// Deletes the rules at these positions, in one change.
    ///
    /// # Errors
    /// If there is none at one of them.
    pub fn delete(&mut self, positions: &[usize]) -> Result<(), ClassifierError<R::Error>> {
        let now = self.rules()?;
        for position in positions {
            if !now.entries.iter().any(|entry| entry.position == *position) {
                return Err(ClassifierError::NoRule(*position));
            }
        }
        let left: Vec<_> = now.entries.iter().filter(|entry| !positions.contains(&entry.position)).collect();
        self.commit(&left.iter().map(|entry| (entry.position, entry.wide)).collect::<Vec<_>>(), now.offset)
    }

    /// Makes these the rules, in this order, in one change.
    ///
    /// # Errors
    /// If the device cannot do what one says, or there is no room beside the rules in use.
    pub fn replace(&mut self, rules: &[Rule], offset: u8) -> Result<(), ClassifierError<R::Error>> {
        for rule in rules {
            self.check(rule.action, rule)?;
        }
        let now = self.rules()?;
        let taken = taken(&now.entries);
        let spread = (0..=SPACING).rev().find_map(|spacing| Layout::place(rules, &taken, 0, POSITIONS, spacing));
        let Some(layout) = spread else {
            let needed: usize = rules.iter().map(|rule| if rule.is_wide() { QUARTERS } else { 1 }).sum();
            return Err(ClassifierError::Full { needed, free: taken.iter().filter(|taken| !**taken).count() });
        };
        self.put(&layout)?;
        self.commit(&of(&layout).collect::<Vec<_>>(), offset)
    }

    /// Whether the device can do what `rule` says.
    pub(super) fn check(&mut self, action: Action, rule: &impl ToString) -> Result<(), ClassifierError<R::Error>> {
        let for_host = matches!(action.target, Target::Host | Target::Mirror)
            || action.queue.is_some()
            || action.edit != Edit::default();
        if action.stream != Stream::AsSet {
            let socket = Chain::new(self.registers).first(&stream::BLOCK).map_err(ClassifierError::Access)?;
            if socket.is_none() {
                return Err(ClassifierError::NoSocket(rule.to_string()));
            }
        }
        match self.pairs {
            0 if for_host => Err(ClassifierError::NoCard(rule.to_string())),
            pairs if action.queue.is_some_and(|queue| u32::from(queue) >= pairs) => {
                Err(ClassifierError::NoQueue { rule: rule.to_string(), pairs })
            }
            _ => Ok(()),
        }
    }

    /// Writes entries into positions that are free, loads them, and clears their counters.
    fn put(&mut self, layout: &Layout) -> Result<(), ClassifierError<R::Error>> {
        let base = self.base;
        let mut units = Vec::new();
        for (position, rule) in &layout.0 {
            for quarter in 0..if rule.is_wide() { QUARTERS } else { 1 } {
                let words = key::words(rule, if rule.is_wide() { quarter } else { 0 });
                let mut writes = vec![(map::ENTRY.at(base), (position + quarter) as u32)];
                writes.extend((0..).zip(words).map(|(number, word)| (map::WORDS.word(base, number), word)));
                self.registers.write_all(&writes).map_err(ClassifierError::Access)?;
            }
            self.write(map::ENTRY.at(base), *position as u32)?;
            self.write(map::COMMAND.at(base), 1 << map::COMMAND_CLEAR.low)?;
            self.ready()?;
            units.push(position / UNIT);
        }
        units.dedup();
        for unit in units {
            self.write(map::LOAD.at(base), unit as u32)?;
            self.ready()?;
        }
        Ok(())
    }

    /// Makes these entries, of a position and whether it is wide, those in use.
    fn commit(&mut self, entries: &[(usize, bool)], offset: u8) -> Result<(), ClassifierError<R::Error>> {
        let base = self.base;
        let (mut enable, mut wide) = ([0; POSITIONS / WORD_BITS], 0);
        for (position, is_wide) in entries {
            enable[position / WORD_BITS] |= 1_u32 << (position % WORD_BITS);
            wide |= u32::from(*is_wide) << (position / QUARTERS);
        }
        let mut writes: Vec<_> = (0..).zip(enable).map(|(word, bits)| (map::ENABLE.word(base, word), bits)).collect();
        writes.extend([(map::WIDE.at(base), wide), (map::OFFSET.at(base), offset.into())]);
        writes.push((map::COMMAND.at(base), 1 << map::COMMAND_COMMIT.low));
        self.registers.write_all(&writes).map_err(ClassifierError::Access)?;
        self.ready()
    }

    /// Waits until it takes writes again.
    fn ready(&mut self) -> Result<(), ClassifierError<R::Error>> {
        self.wait_while(map::STATUS_BUSY, "it stays busy")
    }

    /// Waits until a bit of the status is 0; an error with these words if it stays 1.
    pub(super) fn wait_while(&mut self, busy: Field, otherwise: &'static str) -> Result<(), ClassifierError<R::Error>> {
        let status = map::STATUS.at(self.base);
        for _ in 0..PATIENCE {
            if self.read_all(&[status])?[0] & busy.mask() == 0 {
                return Ok(());
            }
        }
        Err(ClassifierError::Unexpected(otherwise))
    }

    fn entry(&mut self, position: usize) -> Result<[u32; WORDS], ClassifierError<R::Error>> {
        let base = self.base;
        self.write(map::ENTRY.at(base), position as u32)?;
        let addresses: Vec<u32> = (0..WORDS as u32).map(|word| map::WORDS.word(base, word)).collect();
        let words = self.read_all(&addresses)?;
        words.try_into().map_err(|_| ClassifierError::Unexpected("a read gave another number of words"))
    }

    pub(super) fn read_all(&mut self, addresses: &[u32]) -> Result<Vec<u32>, ClassifierError<R::Error>> {
        self.registers.read_all(addresses).map_err(ClassifierError::Access)
    }

    pub(super) fn write(&mut self, address: u32, value: u32) -> Result<(), ClassifierError<R::Error>> {
        self.registers.write(address, value).map_err(ClassifierError::Access)
    }
}

fn of(layout: &Layout) -> impl Iterator<Item = (usize, bool)> + '_ {
    layout.0.iter().map(|(position, rule)| (*position, rule.is_wide()))
}

/// Positions that cannot be written. The rest of a narrow entry's group is free for narrow ones only.
fn taken(entries: &[Placed]) -> [bool; POSITIONS] {
    let mut taken = [false; POSITIONS];
    for entry in entries {
        taken[entry.position..entry.position + if entry.wide { QUARTERS } else { 1 }].fill(true);
    }
    taken
}

/// The positions between those that go before a rule and those that go behind it.
fn gap(entries: &[Placed], rule: &Rule) -> (usize, usize) {
    let priority = |entry: &Placed| entry.rule.map_or(0, |rule| rule.priority);
    let behind = entries.partition_point(|entry| priority(entry) <= rule.priority);
    let from =
        behind.checked_sub(1).map_or(0, |last| entries[last].position + if entries[last].wide { QUARTERS } else { 1 });
    let to = entries.get(behind).map_or(POSITIONS, |next| next.position);
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::device;

    /// The registers of a classifier, which checks that no entry in use is written, and keeps what is loaded.
    struct Fake {
        staged: [u32; 6],
        current: [u32; 6],
        entry: usize,
        words: Vec<[u32; 64]>,
        loaded: Vec<[u32; 64]>,
        commits: usize,
        pairs: u32,
    }

    const BASE: u32 = map::BASE;

    impl Fake {
        fn new(pairs: u32) -> Self {
            let entries = vec![[0; 64]; POSITIONS];
            Self {
                staged: [0; 6],
                current: [0; 6],
                entry: 0,
                words: entries.clone(),
                loaded: entries,
                commits: 0,
                pairs,
            }
        }

        fn in_use(&self, position: usize) -> bool {
            let wide = self.current[4] >> (position / QUARTERS) & 1 != 0;
            let first = if wide { position / QUARTERS * QUARTERS } else { position };
            self.current[first / 32] >> (first % 32) & 1 != 0
        }
    }

    impl Registers for Fake {
        type Error = String;

        fn read(&mut self, address: u32) -> Result<u32, String> {
            let enable = map::ENABLE.at(BASE);
            let words = map::WORDS.at(BASE);
            Ok(match address {
                0 => u32::from_be_bytes(device::BLOCK.kind),
                4 => device::BLOCK.version,
                8 => BASE,
                _ if address == BASE => u32::from_be_bytes(map::BLOCK.kind),
                _ if address == map::VERSION.at(BASE) => map::BLOCK.version,
                _ if address == map::POSITIONS.at(BASE) => POSITIONS as u32,
                _ if address == map::PAIRS.at(BASE) => self.pairs,
                _ if (enable..enable + 20).contains(&address) => self.current[((address - enable) / 4) as usize],
                _ if address == map::OFFSET.at(BASE) => self.current[5],
                _ if address >= words => self.words[self.entry][((address - words) / 4) as usize],
                _ => 0,
            })
        }

        fn write(&mut self, address: u32, value: u32) -> Result<(), String> {
            let enable = map::ENABLE.at(BASE);
            let words = map::WORDS.at(BASE);
            match address {
                _ if address == map::ENTRY.at(BASE) => self.entry = value as usize,
                _ if address == map::LOAD.at(BASE) => {
                    for position in value as usize * UNIT..(value as usize + 1) * UNIT {
                        self.loaded[position] = self.words[position];
                    }
                }
                _ if address == map::OFFSET.at(BASE) => self.staged[5] = value,
                _ if address == map::COMMAND.at(BASE) && value == 1 => {
                    self.current = self.staged;
                    self.commits += 1;
                    for position in 0..POSITIONS {
                        assert!(!self.in_use(position) || self.loaded[position] == self.words[position]);
                    }
                }
                _ if (enable..enable + 20).contains(&address) => self.staged[((address - enable) / 4) as usize] = value,
                _ if address >= words => {
                    if self.in_use(self.entry) {
                        return Err(format!("position {} is in use", self.entry));
                    }
                    self.words[self.entry][((address - words) / 4) as usize] = value;
                }
                _ => {}
            }
            Ok(())
        }
    }

    fn text(rules: &Rules) -> Vec<String> {
        rules.entries.iter().map(|entry| entry.rule.unwrap().to_string()).collect()
    }

    #[test]
    fn rules_are_in_order_whatever_the_order_they_come_in() {
        let mut fake = Fake::new(1);
        let mut classifier = Classifier::new(&mut fake).unwrap();
        let mut given = Vec::new();
        for number in 0..40_u16 {
            let priority = number * 7 % 40;
            let kind = if number % 8 == 0 { "src 2001:db8::/32" } else { "udp" };
            let rule = format!("priority {priority} {kind} dst-port {number} drop");
            classifier.add(&rule.parse().unwrap()).unwrap();
            given.push((priority, rule));
            given.sort();
            assert_eq!(
                text(&classifier.rules().unwrap()),
                given.iter().map(|(_, rule)| rule.clone()).collect::<Vec<_>>()
            );
        }
        let before = classifier.rules().unwrap();
        let two = [before.entries[3].position, before.entries[5].position];
        classifier.delete(&two).unwrap();
        given.remove(5);
        given.remove(3);
        assert_eq!(text(&classifier.rules().unwrap()), given.iter().map(|(_, rule)| rule.clone()).collect::<Vec<_>>());
        assert!(matches!(classifier.delete(&two), Err(ClassifierError::NoRule(position)) if position == two[0]));
        // Every change was one.
        assert_eq!(fake.commits, 41);
    }

    #[test]
    fn a_table_is_filled_and_no_further() {
        let mut fake = Fake::new(0);
        let mut classifier = Classifier::new(&mut fake).unwrap();
        let rules: Vec<Rule> =
            (0..128).map(|port| format!("priority {port} udp dst-port {port} drop").parse().unwrap()).collect();
        classifier.replace(&rules, 30).unwrap();
        let now = classifier.rules().unwrap();
        assert_eq!((now.entries.len(), now.offset), (128, 30));
        assert!(matches!(classifier.add(&rules[0]), Err(ClassifierError::Full { needed: 129, free: 0 })));
        assert!(matches!(classifier.replace(&rules[..1], 0), Err(ClassifierError::Full { needed: 1, free: 0 })));
        assert_eq!(classifier.rules().unwrap(), now);
        classifier.replace(&[], 0).unwrap();
        assert_eq!(classifier.rules().unwrap().entries, []);
        let wide: Vec<Rule> =
            (0..32).map(|port| format!("src fe80::1 dst-port {port} drop").parse().unwrap()).collect();
        classifier.replace(&wide, 0).unwrap();
        assert_eq!(classifier.rules().unwrap().entries.len(), 32);
        assert!(matches!(classifier.replace(&wide[..1], 0), Err(ClassifierError::Full { needed: 4, free: 0 })));
    }

    #[test]
    fn what_a_device_has_not_is_refused() {
        let for_host: Rule = "udp host".parse().unwrap();
        let second: Rule = "udp mirror queue 1".parse().unwrap();
        let mut fake = Fake::new(0);
        assert!(matches!(Classifier::new(&mut fake).unwrap().add(&for_host), Err(ClassifierError::NoCard(_))));
        let mut fake = Fake::new(1);
        let mut classifier = Classifier::new(&mut fake).unwrap();
        classifier.add(&for_host).unwrap();
        let around: Rule = "udp host around".parse().unwrap();
        assert!(matches!(classifier.add(&around), Err(ClassifierError::NoSocket(_))));
        assert!(matches!(classifier.replace(&[for_host, second], 0), Err(ClassifierError::NoQueue { pairs: 1, .. })));
        assert_eq!(classifier.rules().unwrap().entries.len(), 1);
        struct Other;
        impl Registers for Other {
            type Error = String;
            fn read(&mut self, address: u32) -> Result<u32, String> {
                Ok(match address {
                    0 => u32::from_be_bytes(device::BLOCK.kind),
                    4 => device::BLOCK.version,
                    _ => 0,
                })
            }
            fn write(&mut self, _address: u32, _value: u32) -> Result<(), String> {
                Err("written".into())
            }
        }
        assert!(matches!(Classifier::new(&mut Other), Err(ClassifierError::None)));
    }
}
