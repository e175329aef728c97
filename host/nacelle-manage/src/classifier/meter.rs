// SPDX-License-Identifier: Apache-2.0
//! Meters: token buckets that limit the rate of the frames of rules and flows.

use std::fmt;
use std::str::FromStr;

use super::rule::{MAX_METER, RuleError, Words, set, wrong};
use super::table::{Classifier, ClassifierError};
use crate::Registers;
use crate::map::{classifier as map, device};

/// Cycles after which a bucket is filled again, and parts of a token in which the rate is told.
const VISIT_CYCLES: u64 = 16;
const PARTS: u64 = 1 << 20;
/// Most tokens of a bucket.
const MAX_BURST: u32 = (1 << 24) - 1;

/// A meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meter {
    /// Which one, as actions name it.
    pub number: u8,
    /// Bytes without FCS, or frames, per second.
    pub rate: u64,
    /// How many the bucket holds: what may come at once.
    pub burst: u32,
    /// Frames are counted, else bytes.
    pub frames: bool,
    /// Frames above the rate are for the host, else for nobody.
    pub to_host: bool,
}

/// A meter of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metered {
    /// Its settings; the rate is the one nearest to what was set that the device can have.
    pub meter: Meter,
    /// Frames above its rate, modulo 2<sup>32</sup>.
    pub over: u32,
}

impl FromStr for Meter {
    type Err = RuleError;

    /// Of `3 rate 125000000 burst 65536`, with `frames` and `host` behind it.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let mut words = Words::new(text);
        let number = words.number("meter", MAX_METER)? as u8;
        let (mut rate, mut burst, mut frames, mut to_host) = (None, None, None, None);
        while let Some(word) = words.next() {
            match word {
                "rate" => match words.value(word)?.parse() {
                    Ok(number) => set(&mut rate, number, word)?,
                    Err(_) => return wrong("rate: it must be a number, of bytes or frames per second"),
                },
                "burst" => set(&mut burst, words.number(word, MAX_BURST)?, word)?,
                "frames" => set(&mut frames, true, word)?,
                "host" => set(&mut to_host, true, word)?,
                other => return wrong(format!("{other:?}: a meter has rate N, burst N, frames and host")),
            }
        }
        let (Some(rate), Some(burst)) = (rate, burst) else { return wrong("a meter has a rate and a burst") };
        Ok(Self { number, rate, burst, frames: frames.is_some(), to_host: to_host.is_some() })
    }
}

impl fmt::Display for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "meter {} rate {} burst {}", self.number, self.rate, self.burst)?;
        f.write_str(if self.frames { " frames" } else { "" })?;
        f.write_str(if self.to_host { " host" } else { "" })
    }
}

/// What is filled in by a visit. None: more than that can be, or nothing though the rate is not 0.
fn step(rate: u64, clock_hz: u32) -> Option<u32> {
    let parts = u128::from(rate) * u128::from(VISIT_CYCLES * PARTS);
    let step = (parts + u128::from(clock_hz) / 2) / u128::from(clock_hz.max(1));
    u32::try_from(step).ok().filter(|step| *step > 0 || rate == 0)
}

fn rate(step: u32, clock_hz: u32) -> u64 {
    let part = VISIT_CYCLES * PARTS;
    (u64::from(step) * u64::from(clock_hz) + part / 2) / part
}

impl<R: Registers> Classifier<'_, R> {
    /// All meters with settings.
    ///
    /// # Errors
    /// If the registers cannot be accessed.
    pub fn meters(&mut self) -> Result<Vec<Metered>, ClassifierError<R::Error>> {
        let clock_hz = self.clock_hz()?;
        let present = self.read_all(&[map::METER_PRESENT.at(self.base)])?[0];
        let mut meters = Vec::new();
        for number in (0..=MAX_METER as u8).filter(|number| present >> number & 1 != 0) {
            self.write(map::METER.at(self.base), number.into())?;
            let registers = [&map::METER_RATE, &map::METER_BURST, &map::METER_MODE, &map::METER_OVER];
            let words = self.read_all(&registers.map(|register| register.at(self.base)))?;
            let meter = Meter {
                number,
                rate: rate(words[0], clock_hz),
                burst: words[1],
                frames: words[2] >> map::METER_MODE_FRAMES.low & 1 != 0,
                to_host: words[2] >> map::METER_MODE_TO_HOST.low & 1 != 0,
            };
            meters.push(Metered { meter, over: words[3] });
        }
        Ok(meters)
    }

    /// Gives a meter new settings, in one change; its bucket is full, its counter 0.
    ///
    /// # Errors
    /// If the device cannot have the rate, or has no host that could get frames.
    pub fn put_meter(&mut self, meter: &Meter) -> Result<(), ClassifierError<R::Error>> {
        let clock_hz = self.clock_hz()?;
        if meter.to_host && self.pairs == 0 {
            return Err(ClassifierError::NoCard(meter.to_string()));
        }
        let step = step(meter.rate, clock_hz).ok_or(ClassifierError::NoRate(*meter))?;
        let mode = u32::from(meter.frames) << map::METER_MODE_FRAMES.low
            | u32::from(meter.to_host) << map::METER_MODE_TO_HOST.low;
        let writes = [
            (map::METER.at(self.base), meter.number.into()),
            (map::METER_RATE.at(self.base), step),
            (map::METER_BURST.at(self.base), meter.burst),
            (map::METER_MODE.at(self.base), mode),
            (map::METER_COMMAND.at(self.base), 1 << map::METER_COMMAND_PUT.low),
        ];
        self.registers.write_all(&writes).map_err(ClassifierError::Access)
    }

    /// Takes the settings of a meter away: nothing is above its rate.
    ///
    /// # Errors
    /// If it has none.
    pub fn delete_meter(&mut self, number: u8) -> Result<(), ClassifierError<R::Error>> {
        let present = self.read_all(&[map::METER_PRESENT.at(self.base)])?[0];
        if u32::from(number) > MAX_METER || present >> number & 1 == 0 {
            return Err(ClassifierError::NoMeter(number));
        }
        let writes = [
            (map::METER.at(self.base), number.into()),
            (map::METER_COMMAND.at(self.base), 1 << map::METER_COMMAND_DELETE.low),
        ];
        self.registers.write_all(&writes).map_err(ClassifierError::Access)
    }

    /// Makes these the meters of the device, one after the other. One that stays as it is keeps its bucket and counter.
    ///
    /// # Errors
    /// As [`Classifier::put_meter`].
    pub fn replace_meters(&mut self, meters: &[Meter]) -> Result<(), ClassifierError<R::Error>> {
        let now = self.meters()?;
        let clock_hz = self.clock_hz()?;
        let set = |meter: &Meter| Some(Meter { rate: rate(step(meter.rate, clock_hz)?, clock_hz), ..*meter });
        for meter in meters {
            if !now.iter().any(|found| Some(found.meter) == set(meter)) {
                self.put_meter(meter)?;
            }
        }
        for found in now {
            if !meters.iter().any(|meter| meter.number == found.meter.number) {
                self.delete_meter(found.meter.number)?;
            }
        }
        Ok(())
    }

    fn clock_hz(&mut self) -> Result<u32, ClassifierError<R::Error>> {
        Ok(self.read_all(&[device::CLOCK_HZ.at(device::BASE)])?[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meters_are_written_as_they_are_read() {
        for text in ["0 rate 125000000 burst 65536", "15 rate 1000 burst 16 frames host", "3 rate 0 burst 0 host"] {
            assert_eq!(text.parse::<Meter>().unwrap().to_string(), format!("meter {text}"));
        }
        for (text, says) in [
            ("16 rate 1 burst 1", "meter 16: it must be a number up to 15"),
            ("1 rate 1", "a rate and a burst"),
            ("1 rate 1 burst 16777216", "up to 16777215"),
            ("1 rate 1 burst 1 drop", "\"drop\": a meter has"),
            ("1 rate 1 rate 2 burst 1", "rate contradicts"),
            ("1 rate fast burst 1", "rate: it must be a number"),
        ] {
            let error = text.parse::<Meter>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn rates_come_back_as_near_as_steps_are() {
        let clock_hz = 250_000_000;
        for given in [0, 100, 1_000, 125_000_000, 12_500_000_000] {
            let found = rate(step(given, clock_hz).unwrap(), clock_hz);
            assert!(found.abs_diff(given) <= 8, "{given}: {found}");
            assert_eq!(step(found, clock_hz), step(given, clock_hz));
        }
        assert_eq!(step(1, clock_hz), None);
        assert_eq!(step(u64::MAX, clock_hz), None);
    }
}
