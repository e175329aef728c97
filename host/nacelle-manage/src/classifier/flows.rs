// SPDX-License-Identifier: Apache-2.0
//! The flows of a device: read and changed, one after the other.

use std::collections::{HashMap, HashSet};

use super::flow::{Flow, FlowKey, KEY_WORDS, V6};
use super::key;
use super::places::{Hash, Place, Places, Slot, Step};
use super::table::{Classifier, ClassifierError, Counts};
use crate::map::classifier as map;
use crate::{Access, MAX_ACCESSES, Registers};

/// Words of FLOW_USED.
const USED_WORDS: u32 = 192;
const FLOWS_BUSY: &str = "its flows stay busy";
/// Seeds that are tried for a table that is empty.
const SEEDS: usize = 16;

/// A flow of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedFlow {
    /// What it is; `None`: other software has written what no [`Flow`] says.
    pub flow: Option<Flow>,
    /// Its frames since it is in its place: 32 bits, and 40 of bytes.
    pub counts: Counts,
}

/// What a place has, as it is read.
struct Found {
    flow: Option<Flow>,
    counts: Counts,
}

impl<R: Registers> Classifier<'_, R> {
    /// All flows, in order of their addresses, protocols and ports.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn flows(&mut self) -> Result<Vec<PlacedFlow>, ClassifierError<R::Error>> {
        let used = self.used()?;
        if is_empty(&used) {
            return Ok(Vec::new());
        }
        let hash = self.hash(&used)?;
        let read = self.read(&hash, &used, Place::all(), true)?;
        let mut flows: Vec<_> =
            read.into_iter().map(|(_, Found { flow, counts })| PlacedFlow { flow, counts }).collect();
        flows.sort_by_key(|flow| flow.flow.map(|flow| flow.key));
        Ok(flows)
    }

    /// Adds a flow, or gives one that there is another action, and counters of 0. How many others have moved to make room; their counters begin
    /// at 0.
    ///
    /// # Errors
    /// If the device cannot do what it says, or there is no room. Nothing has changed then.
    pub fn add_flow(&mut self, flow: &Flow) -> Result<usize, ClassifierError<R::Error>> {
        self.check(flow.action, flow)?;
        let used = self.used()?;
        let mut places = Places::new(self.hash(&used)?);
        // What is at its own places is mostly enough to know.
        let own = places.candidates(&flow.key);
        self.read_into(&mut places, &used, own.into_iter())?;
        if !change_or_insert(&mut places, flow, false) {
            self.read_into(&mut places, &used, Place::all())?;
            if !change_or_insert(&mut places, flow, true) {
                return Err(ClassifierError::NoPlace(*flow));
            }
        }
        self.apply(&places.steps)?;
        Ok(places.moved)
    }

    /// Deletes a flow.
    ///
    /// # Errors
    /// If there is none.
    pub fn delete_flow(&mut self, key: &FlowKey) -> Result<(), ClassifierError<R::Error>> {
        let used = self.used()?;
        if is_empty(&used) {
            return Err(ClassifierError::NoFlow(*key));
        }
        let mut places = Places::new(self.hash(&used)?);
        let own = places.candidates(key);
        self.read_into(&mut places, &used, own.into_iter())?;
        let Some((place, _)) = places.find(key) else { return Err(ClassifierError::NoFlow(*key)) };
        places.delete(place);
        self.apply(&places.steps)
    }

    /// Makes these, no two of which have the same key, the flows of the device, one change after the other: those that are not wanted go, then
    /// the others come. Flows that stay as they are keep their counters if they need not move. How many have moved.
    ///
    /// # Errors
    /// If the device cannot do what one says, or there is no room. Nothing has changed then.
    pub fn replace_flows(&mut self, flows: &[Flow]) -> Result<usize, ClassifierError<R::Error>> {
        for flow in flows {
            self.check(flow.action, flow)?;
        }
        let used = self.used()?;
        let empty = is_empty(&used);
        if flows.is_empty() {
            return if empty { Ok(0) } else { self.renew().map(|()| 0) };
        }
        let wanted: HashMap<FlowKey, Flow> = flows.iter().map(|flow| (flow.key, *flow)).collect();
        for attempt in 0.. {
            let mut places = Places::new(self.hash(&used)?);
            // Those that stay are where they can be. What is elsewhere goes, whatever it is.
            let near: HashSet<Place> = flows.iter().flat_map(|flow| places.candidates(&flow.key)).collect();
            for place in Place::all().filter(|place| is_used(&used, *place) && !near.contains(place)) {
                places.set(place, Slot::Foreign);
            }
            self.read_into(&mut places, &used, Place::all().filter(|place| near.contains(place)))?;
            let gone: Vec<Place> = places
                .iter()
                .filter(|(_, slot)| !matches!(slot, Slot::Flow(flow) if wanted.contains_key(&flow.key)))
                .map(|(place, _)| place)
                .collect();
            for place in gone {
                places.delete(place);
            }
            // Those that need a whole row first.
            let (wide, narrow): (Vec<&Flow>, Vec<&Flow>) = flows.iter().partition(|flow| flow.key.is_v6());
            match wide.into_iter().chain(narrow).find(|flow| !change_or_insert(&mut places, flow, true)) {
                None => {
                    self.apply(&places.steps)?;
                    return Ok(places.moved);
                }
                // Of a table that is empty the hash can be another one.
                Some(_) if empty && attempt < SEEDS => self.renew()?,
                Some(flow) => return Err(ClassifierError::NoPlace(*flow)),
            }
        }
        unreachable!("the last attempt ends it")
    }

    /// The words of what is in use.
    fn used(&mut self) -> Result<Vec<u32>, ClassifierError<R::Error>> {
        let addresses: Vec<u32> = (0..USED_WORDS).map(|word| map::FLOW_USED.word(self.base, word)).collect();
        self.read_all(&addresses)
    }

    /// The hash in use. A table that is empty and has none yet is given one.
    fn hash(&mut self, used: &[u32]) -> Result<Hash, ClassifierError<R::Error>> {
        let addresses = [map::FLOW_SEED_LO.at(self.base), map::FLOW_SEED_HI.at(self.base)];
        let seed = |words: Vec<u32>| u64::from(words[1]) << 32 | u64::from(words[0]);
        let mut found = seed(self.read_all(&addresses)?);
        if found == 0 && is_empty(used) {
            self.renew()?;
            found = seed(self.read_all(&addresses)?);
        }
        Ok(Hash::new(found))
    }

    /// A new seed, which deletes all flows.
    fn renew(&mut self) -> Result<(), ClassifierError<R::Error>> {
        let mut seed = [0; 8];
        getrandom::fill(&mut seed).map_err(|_| ClassifierError::NoRandom)?;
        let seed = u64::from_le_bytes(seed).max(1);
        self.flows_ready()?;
        self.write(map::FLOW_SEED_LO.at(self.base), seed as u32)?;
        self.write(map::FLOW_SEED_HI.at(self.base), (seed >> 32) as u32)?;
        self.flows_ready()
    }

    fn flows_ready(&mut self) -> Result<(), ClassifierError<R::Error>> {
        self.wait_while(map::STATUS_FLOW_BUSY, FLOWS_BUSY)
    }

    /// What is in those of these places that are in use, row by row, with its counters if asked for; a flow of IPv6 is in slot 0.
    fn read(
        &mut self,
        hash: &Hash,
        used: &[u32],
        places: impl Iterator<Item = Place>,
        counted: bool,
    ) -> Result<Vec<(Place, Found)>, ClassifierError<R::Error>> {
        let places: Vec<Place> = places.filter(|place| is_used(used, *place)).collect();
        // Of IPv4 a flow has one word of each address.
        let words = [9, 0, 4, 8].map(|word| map::FLOW_KEY.word(self.base, word));
        let mut registers = words.to_vec();
        registers.push(map::FLOW_ACTION.at(self.base));
        if counted {
            let counters = [&map::FLOW_FRAMES, &map::FLOW_BYTES_LO, &map::FLOW_BYTES_HI];
            registers.extend(counters.map(|register| register.at(self.base)));
        }
        let found = self.get(&places, &registers)?;
        let is_v6 = |words: &[u32]| words[0] & V6 != 0;
        let wide: Vec<Place> =
            places.iter().zip(&found).filter(|(_, words)| is_v6(words)).map(|(place, _)| *place).collect();
        let addresses: Vec<u32> = (0..8).map(|word| map::FLOW_KEY.word(self.base, word)).collect();
        let mut addresses = self.get(&wide, &addresses)?.into_iter();

        let mut read = Vec::new();
        let mut behind = None;
        for (place, words) in places.into_iter().zip(found) {
            let [upper, destination, source, ports, action, ref counters @ ..] = words[..] else {
                return Err(ClassifierError::Unexpected("it has not read all"));
            };
            let mut key = [destination, 0, 0, 0, source, 0, 0, 0, ports, upper];
            let whole = is_v6(&words);
            if whole {
                let all = addresses.next().ok_or(ClassifierError::Unexpected("it has not read all"))?;
                key[..8].copy_from_slice(&all);
            }
            if behind == Some(place.row) {
                continue;
            }
            let key = FlowKey::from_words(&key);
            // Elsewhere the hardware does not find it.
            let is_there = hash.rows(&key).contains(&place.row) && !(whole && place.slot > 0);
            let flow = key::action(action).filter(|_| is_there).map(|action| Flow { key, action });
            if whole && flow.is_some() {
                behind = Some(place.row);
            }
            let counts = match *counters {
                [frames, low, high] => Counts { frames, bytes: u64::from(high) << 32 | u64::from(low) },
                _ => Counts::default(),
            };
            read.push((place, Found { flow, counts }));
        }
        Ok(read)
    }

    /// Likewise, for changes.
    fn read_into(
        &mut self,
        places: &mut Places,
        used: &[u32],
        which: impl Iterator<Item = Place>,
    ) -> Result<(), ClassifierError<R::Error>> {
        for (place, found) in self.read(&places.hash.clone(), used, which, false)? {
            places.set(place, found.flow.map_or(Slot::Foreign, Slot::Flow));
        }
        Ok(())
    }

    /// These registers of each of the places.
    fn get(&mut self, places: &[Place], registers: &[u32]) -> Result<Vec<Vec<u32>>, ClassifierError<R::Error>> {
        let base = self.base;
        let busy = map::STATUS_FLOW_BUSY.mask();
        let mut found = Vec::with_capacity(places.len());
        for places in places.chunks(MAX_ACCESSES / (registers.len() + 2)) {
            let mut accesses = Vec::new();
            for place in places {
                accesses.push(Access::Write { address: map::FLOW_GET.at(base), value: place.word(false) });
                accesses.push(Access::Until { address: map::STATUS.at(base), mask: busy, value: 0 });
                accesses.extend(registers.iter().map(|address| Access::Read { address: *address }));
            }
            let values = self.registers.access_all(&accesses).map_err(ClassifierError::Access)?;
            for values in values.chunks(registers.len() + 1) {
                if values[0] & busy != 0 {
                    return Err(ClassifierError::Unexpected(FLOWS_BUSY));
                }
                found.push(values[1..].to_vec());
            }
        }
        Ok(found)
    }

    /// Does the steps, one after the other.
    fn apply(&mut self, steps: &[Step]) -> Result<(), ClassifierError<R::Error>> {
        let base = self.base;
        let mut writes = Vec::new();
        // Words that are staged already need not be written.
        let mut staged = [None; KEY_WORDS + 1];
        for step in steps {
            match step {
                Step::Put(place, flow) => {
                    let words = flow.key.words().into_iter().chain([key::action_word(flow.action)]);
                    for (number, (word, staged)) in (0..).zip(words.zip(&mut staged)) {
                        if staged.replace(word) != Some(word) {
                            writes.push((map::FLOW_KEY.word(base, number), word));
                        }
                    }
                    writes.push((map::FLOW_PUT.at(base), place.word(flow.key.is_v6())));
                }
                Step::Delete(place, whole) => writes.push((map::FLOW_DELETE.at(base), place.word(*whole))),
            }
        }
        self.flows_ready()?;
        self.registers.write_all(&writes).map_err(ClassifierError::Access)
    }
}

/// Puts a flow where it is, with another action, or into a place, for which others may `move`. False if there is none.
fn change_or_insert(places: &mut Places, flow: &Flow, others_move: bool) -> bool {
    match places.find(&flow.key) {
        Some((_, found)) if found == *flow => true,
        Some((place, _)) => {
            places.put(place, *flow);
            true
        }
        None => places.insert(*flow, others_move),
    }
}

fn is_empty(used: &[u32]) -> bool {
    used.iter().all(|word| *word == 0)
}

fn is_used(used: &[u32], place: Place) -> bool {
    let (word, bit) = place.used();
    used[word] >> bit & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::device;

    const BASE: u32 = map::BASE;
    const SLOT_LOW: u32 = 11;
    const WHOLE: u32 = 1 << 13;

    /// The flows of a classifier, as the hardware has them.
    #[derive(Default)]
    struct Fake {
        seed: [u32; 2],
        staged: [u32; KEY_WORDS + 1],
        /// By place without `WHOLE`: words, and whether it is one of IPv6.
        rows: HashMap<u32, ([u32; KEY_WORDS + 1], bool)>,
        writes: usize,
    }

    impl Fake {
        fn of(place: u32) -> Vec<u32> {
            let row = place & ((1 << SLOT_LOW) - 1);
            if place & WHOLE == 0 { vec![place] } else { (0..3).map(|slot| row | slot << SLOT_LOW).collect() }
        }
    }

    impl Registers for Fake {
        type Error = String;

        fn read(&mut self, address: u32) -> Result<u32, String> {
            let (key, used) = (map::FLOW_KEY.at(BASE), map::FLOW_USED.at(BASE));
            Ok(match address {
                0 => u32::from_be_bytes(device::BLOCK.kind),
                4 => device::BLOCK.version,
                8 => BASE,
                _ if address == BASE => u32::from_be_bytes(map::BLOCK.kind),
                _ if address == map::VERSION.at(BASE) => map::BLOCK.version,
                _ if address == map::POSITIONS.at(BASE) => 128,
                _ if address == map::PAIRS.at(BASE) => 2,
                _ if address == map::FLOW_SEED_LO.at(BASE) => self.seed[0],
                _ if address == map::FLOW_SEED_HI.at(BASE) => self.seed[1],
                _ if address >= used => {
                    let word = (address - used) / 4;
                    (0..32).fold(0, |bits, bit| {
                        let place = (word % 64) << 5 | bit | (word / 64) << SLOT_LOW;
                        bits | u32::from(self.rows.contains_key(&place)) << bit
                    })
                }
                _ if (key..key + 44).contains(&address) => self.staged[((address - key) / 4) as usize],
                _ => 0,
            })
        }

        fn write(&mut self, address: u32, value: u32) -> Result<(), String> {
            let key = map::FLOW_KEY.at(BASE);
            self.writes += 1;
            match address {
                _ if (key..key + 44).contains(&address) => self.staged[((address - key) / 4) as usize] = value,
                _ if address == map::FLOW_PUT.at(BASE) => {
                    let whole = value & WHOLE != 0;
                    if whole != (self.staged[9] >> 8 & 1 != 0) || value >> SLOT_LOW & 3 > if whole { 0 } else { 2 } {
                        return Err("refused".into());
                    }
                    for place in Self::of(value) {
                        self.rows.insert(place, (self.staged, whole));
                    }
                }
                _ if address == map::FLOW_DELETE.at(BASE) => {
                    for place in Self::of(value) {
                        self.rows.remove(&place);
                    }
                }
                _ if address == map::FLOW_GET.at(BASE) => {
                    self.staged = self.rows.get(&value).map_or([0; KEY_WORDS + 1], |(words, _)| *words);
                }
                _ if address == map::FLOW_SEED_LO.at(BASE) => self.seed[0] = value,
                _ if address == map::FLOW_SEED_HI.at(BASE) => {
                    self.seed[1] = value;
                    self.rows.clear();
                }
                _ => return Err(format!("{address:#x} is written")),
            }
            Ok(())
        }
    }

    fn flow(n: u32, action: &str) -> Flow {
        let text = match n % 32 {
            0 => format!("src 2001:db8::1 dst 2001:db8::{n:x} udp src-port 9 dst-port {n} {action}"),
            1 => format!("src 10.0.0.1 dst 10.1.{}.{} protocol 50 {action}", n >> 8, n & 255),
            _ => format!("src 10.0.0.1 dst 10.0.{}.{} tcp src-port 80 dst-port {n} {action}", n >> 8, n & 255),
        };
        text.parse().unwrap()
    }

    fn sorted(mut flows: Vec<Flow>) -> Vec<Flow> {
        flows.sort_by_key(|flow| flow.key);
        flows
    }

    fn listed(classifier: &mut Classifier<'_, Fake>) -> Vec<Flow> {
        classifier.flows().unwrap().into_iter().map(|placed| placed.flow.unwrap()).collect()
    }

    #[test]
    fn flows_are_added_changed_and_deleted() {
        let mut fake = Fake::default();
        let mut classifier = Classifier::new(&mut fake).unwrap();
        assert_eq!(classifier.flows().unwrap(), []);
        let mut given: Vec<Flow> = (0..40).map(|n| flow(n, "drop")).collect();
        for flow in &given {
            classifier.add_flow(flow).unwrap();
        }
        assert_eq!(listed(&mut classifier), sorted(given.clone()));
        given[8] = flow(8, "host queue 1");
        given[9] = flow(9, "mirror");
        classifier.add_flow(&given[8]).unwrap();
        classifier.add_flow(&given[9]).unwrap();
        for n in [17, 16] {
            let gone = given.remove(n);
            classifier.delete_flow(&gone.key).unwrap();
            assert!(matches!(classifier.delete_flow(&gone.key), Err(ClassifierError::NoFlow(key)) if key == gone.key));
        }
        assert_eq!(listed(&mut classifier), sorted(given.clone()));
        let refused = classifier.add_flow(&flow(1, "host queue 2"));
        assert!(matches!(refused, Err(ClassifierError::NoQueue { pairs: 2, .. })));
        assert_eq!(listed(&mut classifier), sorted(given));
    }

    /// Thousands are set with few writes; what stays is not written again; too many change nothing.
    #[test]
    fn a_set_of_flows_writes_what_changes() {
        let mut fake = Fake::default();
        let given: Vec<Flow> = (0..3000).map(|n| flow(n, "drop")).collect();
        Classifier::new(&mut fake).unwrap().replace_flows(&given).unwrap();
        assert_eq!(listed(&mut Classifier::new(&mut fake).unwrap()), sorted(given.clone()));
        assert!(fake.writes < 8 * given.len(), "{}", fake.writes);
        let state = |fake: &Fake| fake.rows.clone();
        let before = state(&fake);
        let mut classifier = Classifier::new(&mut fake).unwrap();
        let most: Vec<Flow> = (0..9000).map(|n| flow(n, "drop")).collect();
        assert!(matches!(classifier.replace_flows(&most), Err(ClassifierError::NoPlace(_))));
        classifier.replace_flows(&given).unwrap();
        assert_eq!(state(&fake), before);
        let seed = fake.seed;
        let fewer: Vec<Flow> = (1500..4500).map(|n| flow(n, "device")).collect();
        let mut classifier = Classifier::new(&mut fake).unwrap();
        classifier.replace_flows(&fewer).unwrap();
        assert_eq!(listed(&mut classifier), sorted(fewer));
        classifier.replace_flows(&[]).unwrap();
        assert!(fake.rows.is_empty());
        assert_ne!(fake.seed, seed, "all go at once");
    }

    /// An entry where the hash does not look is shown as another's, is not moved, and goes with the next set.
    #[test]
    fn flows_of_other_software_stay_apart() {
        let mut fake = Fake::default();
        let mut classifier = Classifier::new(&mut fake).unwrap();
        classifier.add_flow(&flow(3, "drop")).unwrap();
        let (place, words) = fake.rows.iter().next().map(|(place, (words, _))| (*place, *words)).unwrap();
        fake.rows.insert(place ^ 1, (words, false));
        let mut classifier = Classifier::new(&mut fake).unwrap();
        let found: Vec<_> = classifier.flows().unwrap().into_iter().map(|placed| placed.flow).collect();
        assert_eq!(found, [None, Some(flow(3, "drop"))]);
        classifier.replace_flows(&[flow(3, "drop")]).unwrap();
        assert_eq!(listed(&mut classifier), [flow(3, "drop")]);
    }
}
