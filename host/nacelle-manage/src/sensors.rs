// SPDX-License-Identifier: Apache-2.0
//! What a board measures of itself, by the registers of its sensors (docs/reference/sensors.md).

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::Registers;
use crate::map::{Chain, sensors as map};

/// Sensors that there can be.
pub const MAX_SENSORS: u32 = map::VALUE.count.unwrap();
/// Cycles of a unit of times.
const TICK: u64 = 1 << 16;
const NAME_WORDS: u32 = map::NAME.count.unwrap() / MAX_SENSORS;

/// What a sensor measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SensorKind {
    /// In degrees Celsius.
    Temperature,
    /// In volts.
    Voltage,
    /// In amperes.
    Current,
    /// In watts.
    Power,
    /// In turns a minute.
    Fan,
    /// Of a version that is not known here: its number.
    Other(u32),
}

impl SensorKind {
    /// By its number in registers.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        match code {
            1 => Self::Temperature,
            2 => Self::Voltage,
            3 => Self::Current,
            4 => Self::Power,
            5 => Self::Fan,
            other => Self::Other(other),
        }
    }

    /// The unit of its values.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Temperature => "°C",
            Self::Voltage => "V",
            Self::Current => "A",
            Self::Power => "W",
            Self::Fan => "rpm",
            Self::Other(_) => "",
        }
    }
}

impl fmt::Display for SensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Temperature => "temperature",
            Self::Voltage => "voltage",
            Self::Current => "current",
            Self::Power => "power",
            Self::Fan => "fan",
            Self::Other(code) => return write!(f, "kind {code}"),
        })
    }
}

impl Serialize for SensorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A value that came from a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SensorValue {
    /// In thousandths of the unit.
    pub thousandths: i32,
    /// It is that of a model, not measured.
    pub simulated: bool,
    /// How long ago it came, in the device's time.
    pub age: Duration,
}

impl SensorValue {
    /// In the unit.
    #[must_use]
    pub fn value(&self) -> f64 {
        f64::from(self.thousandths) / 1000.0
    }
}

/// A sensor at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensor {
    /// Its name. Several may have one name, if they measure different things of it.
    pub name: String,
    /// What it measures.
    pub kind: SensorKind,
    /// Its value, if it has one.
    pub value: Option<SensorValue>,
}

/// The sensors of a device's board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sensors {
    base: u32,
    clock_hz: u32,
    /// By the number of the sensor.
    known: Vec<(String, SensorKind)>,
}

impl Sensors {
    /// Those of this device, if it has some.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn find<R: Registers>(registers: &mut R) -> Result<Option<Self>, R::Error> {
        let found = Chain::new(registers).first(&map::BLOCK)?;
        found.map(|found| Self::at(registers, found.address)).transpose()
    }

    /// Those whose block is at this address.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn at<R: Registers>(registers: &mut R, base: u32) -> Result<Self, R::Error> {
        let words = registers.read_all(&[map::CLOCK_HZ.at(base), map::SENSORS.at(base)])?;
        let count = words[1].min(MAX_SENSORS);
        let kinds: Vec<u32> = (0..count).map(|sensor| map::KIND.word(base, sensor)).collect();
        let names: Vec<u32> = (0..count * NAME_WORDS).map(|word| map::NAME.word(base, word)).collect();
        let kinds = registers.read_all(&kinds)?.into_iter().map(SensorKind::from_code);
        let names = registers.read_all(&names)?;
        let names = names.chunks(NAME_WORDS as usize).map(name);
        Ok(Self { base, clock_hz: words[0].max(1), known: names.zip(kinds).collect() })
    }

    /// What each has at this moment.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn read<R: Registers>(&self, registers: &mut R) -> Result<Vec<Sensor>, R::Error> {
        let numbers = 0..self.known.len() as u32;
        let mut addresses: Vec<u32> =
            numbers.flat_map(|sensor| [&map::STATE, &map::VALUE].map(|array| array.word(self.base, sensor))).collect();
        addresses.push(map::NOW.at(self.base));
        let words = registers.read_all(&addresses)?;
        let now = words.last().copied().unwrap_or_default();
        let value = |state: u32, value: u32| SensorValue {
            thousandths: value.cast_signed(),
            simulated: map::STATE_SIMULATED.of(state) == 1,
            age: self.age(now, map::STATE_CAME.of(state)),
        };
        let sensors = self.known.iter().zip(words.as_chunks().0).map(|((name, kind), [state, word])| Sensor {
            name: name.clone(),
            kind: *kind,
            value: (map::STATE_KNOWN.of(*state) == 1).then(|| value(*state, *word)),
        });
        Ok(sensors.collect())
    }

    fn age(&self, now: u32, came: u32) -> Duration {
        let ticks = u64::from(now.wrapping_sub(came) & map::NOW.mask);
        Duration::from_secs_f64((ticks * TICK) as f64 / f64::from(self.clock_hz))
    }
}

/// A name in words of registers: its first byte lowest, zeros behind it. What cannot be shown is replaced.
fn name(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0);
    bytes.map(|byte| if (b' '..=b'~').contains(&byte) { char::from(byte) } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Words(BTreeMap<u32, u32>);

    impl Registers for Words {
        type Error = u32;

        fn read(&mut self, address: u32) -> Result<u32, u32> {
            self.0.get(&address).copied().ok_or(address)
        }

        fn write(&mut self, address: u32, _: u32) -> Result<(), u32> {
            Err(address)
        }
    }

    /// A board with so many sensors.
    fn board(count: u32) -> Words {
        let base = map::BASE;
        let mut words = Words::default();
        words.0.extend([(map::CLOCK_HZ.at(base), 65_536_000), (map::SENSORS.at(base), count), (map::NOW.at(base), 5)]);
        for sensor in 0..MAX_SENSORS {
            words.0.extend([&map::KIND, &map::VALUE, &map::STATE].map(|array| (array.word(base, sensor), 0)));
            words.0.extend((0..NAME_WORDS).map(|word| (map::NAME.word(base, NAME_WORDS * sensor + word), 0)));
        }
        words
    }

    #[test]
    fn values_have_a_sign_an_age_and_a_source() {
        let base = map::BASE;
        let mut words = board(2);
        words.0.extend([
            (map::KIND.word(base, 0), 1),
            (map::KIND.word(base, 1), 9),
            (map::NAME.word(base, 0), u32::from_le_bytes(*b"fpga")),
            (map::NAME.word(base, 4), u32::from_le_bytes([b'a', 0x1b, b'[', 0])),
            (map::VALUE.word(base, 0), (-12_500_i32).cast_unsigned()),
            (map::VALUE.word(base, 1), 7),
            // Before the time wrapped.
            (map::STATE.word(base, 0), 1 << 24 | 1 << 25 | 0xff_ffff),
            (map::STATE.word(base, 1), 0xff_ffff),
        ]);
        let sensors = Sensors::at(&mut words, base).unwrap().read(&mut words).unwrap();
        let [cold, other] = &sensors[..] else { panic!() };
        assert_eq!((&cold.name[..], cold.kind, cold.kind.unit()), ("fpga", SensorKind::Temperature, "°C"));
        let value = cold.value.unwrap();
        assert_eq!((value.value(), value.simulated, value.age), (-12.5, true, Duration::from_millis(6)));
        assert_eq!((&other.name[..], other.kind, other.value), ("a?[", SensorKind::Other(9), None));
        assert_eq!(other.kind.to_string(), "kind 9");
    }

    #[test]
    fn no_device_has_more_than_there_can_be() {
        let mut words = board(u32::MAX);
        let sensors = Sensors::at(&mut words, map::BASE).unwrap();
        assert_eq!(sensors.read(&mut words).unwrap().len(), MAX_SENSORS as usize);
    }

    #[test]
    fn a_device_without_the_block_has_none() {
        let mut words = Words::default();
        words.0.extend([(0, u32::from_be_bytes(*b"NACL")), (4, 1), (8, 0)]);
        assert_eq!(Sensors::find(&mut words), Ok(None));
        assert_eq!(Sensors::find(&mut Words::default()), Err(0));
    }
}
