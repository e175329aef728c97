// SPDX-License-Identifier: Apache-2.0
//! `nacelle copy`: between files and the memory of a device in a slot.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use nacelle_copy::{Copy, DeviceBuffer, Error, HostBuffer, Options, Slot};
use serde::Serialize;

use crate::args::{Cli, CopyArgs, Place};
use crate::failure::Failure;
use crate::output::print_json;
use crate::remote::unreadable;

/// Bytes that are copied at a time. The next ones are read or written meanwhile.
const CHUNK: u64 = 256 << 10;
/// A time that is as good as none: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What was copied, as JSON.
#[derive(Serialize)]
struct Copied {
    bytes: u64,
    /// The device address of the first byte in the device; of the destination if both are there.
    device_address: u64,
    verified: bool,
}

pub(crate) fn copy(cli: &Cli, args: &CopyArgs) -> Result<(), Failure> {
    // What is wrong with the arguments is said before the device is touched.
    let length = match (&args.from, &args.to) {
        (Place::Device(_), _) => args.length,
        (from, Place::Device(_)) => length(from, args)?,
        _ => return Err(Failure::usage("neither place is in the device", "name one of them device:OFFSET")),
    };
    if args.skip != 0 && matches!(args.from, Place::Device(_)) {
        return Err(Failure::usage("--skip is for a file", "add the bytes to the offset of the device"));
    }
    let timeout = args.timeout.min(LONGEST);
    let slot = Slot::open(&args.slot, &Options { timeout, ..Options::default() })?;
    let mover = Mover { slot, timeout, verify: args.verify };
    let (bytes, device_address) = match (&args.from, &args.to) {
        (Place::Device(from), to) => {
            let needs = || Failure::usage("the number of bytes is missing", "name it with --length BYTES");
            let length = length.ok_or_else(needs)?;
            let source = mover.part(*from, length)?;
            match to {
                Place::Device(to) => mover.within(source.as_ref(), *from, *to, length)?,
                to => mover.save(source.as_ref(), length, to)?,
            }
        }
        (from, Place::Device(to)) => mover.load(from, args, length, *to)?,
        _ => unreachable!("one place is in the device"),
    };
    if cli.json {
        return print_json_beside(&args.to, &Copied { bytes, device_address, verified: args.verify });
    }
    let compared = if args.verify { ", compared" } else { "" };
    eprintln!("{bytes} bytes from {} to {}, device address {device_address:#x}{compared}", args.from, args.to);
    Ok(())
}

/// Standard output has the bytes if they go there.
fn print_json_beside(to: &Place, copied: &Copied) -> Result<(), Failure> {
    match to {
        Place::Standard => Ok(()),
        _ => print_json(copied),
    }
}

/// Bytes of the input, if they are known: a file must have as many as are asked for.
fn length(from: &Place, args: &CopyArgs) -> Result<Option<u64>, Failure> {
    let Place::File(path) = from else { return Ok(args.length) };
    let found = std::fs::metadata(path).map_err(unreadable(path))?;
    // Pipes and devices have no length.
    if !found.is_file() {
        return Ok(args.length);
    }
    let there = found.len().saturating_sub(args.skip);
    let length = args.length.unwrap_or(there);
    if length > there || args.skip > found.len() {
        let what = format!("{} has {} bytes, of which {} are skipped", path.display(), found.len(), args.skip);
        return Err(Failure::usage(format!("{what}: there are no {length}"), "say fewer by --length or --skip"));
    }
    Ok(Some(length))
}

/// Opens the input, behind what is skipped.
fn open(from: &Place, skip: u64) -> Result<Box<dyn Read>, Failure> {
    let Place::File(path) = from else {
        let mut input = io::stdin().lock();
        let skipped = io::copy(&mut input.by_ref().take(skip), &mut io::sink());
        return match skipped {
            Ok(count) if count == skip => Ok(Box::new(input)),
            Ok(count) => Err(Failure::usage(format!("standard input ended after {count} bytes"), "skip fewer")),
            Err(error) => Err(input_failed(&error)),
        };
    };
    let mut file = File::open(path).map_err(unreadable(path))?;
    file.seek(SeekFrom::Start(skip)).map_err(unreadable(path))?;
    Ok(Box::new(file))
}

fn input_failed(error: &io::Error) -> Failure {
    Failure::usage(format!("the input cannot be read: {error}"), "check that it exists and that you may read it")
}

fn output_failed(error: &io::Error) -> Failure {
    Failure::usage(format!("the output cannot be written: {error}"), "check the free space where it goes")
}

/// Fills as much of the buffer as the input has.
fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> Result<usize, Failure> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(input_failed(&error)),
        }
    }
    Ok(filled)
}

/// A copy that is under way, with its place in the device and the bytes that are there or come from there.
struct Chunk {
    copy: Copy,
    begin: u64,
    bytes: Vec<u8>,
    stage: HostBuffer,
}

struct Mover {
    slot: Slot,
    timeout: Duration,
    verify: bool,
}

impl Mover {
    /// Where the host's part of the device's memory begins.
    fn base(&self) -> u64 {
        self.slot.memory().start
    }

    /// This part of the device's memory; `None`: no bytes of it.
    fn part(&self, offset: u64, length: u64) -> Result<Option<DeviceBuffer>, Failure> {
        if length == 0 {
            return Ok(None);
        }
        Ok(Some(self.slot.alloc_device_at(offset, length)?))
    }

    fn wait(&self, copy: &Copy) -> Result<(), Failure> {
        let late = || {
            let what = format!("a copy did not end within {:.1} s", self.timeout.as_secs_f64());
            Failure::timeout(what, "give it more time with --timeout")
        };
        let ended = copy.wait_until(Instant::now() + self.timeout).ok_or_else(late)?;
        Ok(ended.map_err(Error::Copy)?)
    }

    /// Reads bytes of the device once more; they must be these.
    fn compare(&self, place: &DeviceBuffer, begin: u64, bytes: &[u8]) -> Result<(), Failure> {
        if !self.verify || bytes.is_empty() {
            return Ok(());
        }
        let again = self.slot.alloc_host(bytes.len())?;
        self.wait(&self.slot.copy_async(place.part(begin..begin + bytes.len() as u64)?, &again)?)?;
        let mut found = vec![0; bytes.len()];
        again.read(0, &mut found)?;
        match found.iter().zip(bytes).position(|(found, wanted)| found != wanted) {
            None => Ok(()),
            Some(at) => Err(Failure::check(format!(
                "the byte at device address {:#x} is {:#04x}, not {:#04x}",
                place.device_address() + begin + at as u64,
                found[at],
                bytes[at]
            ))),
        }
    }

    /// Input into the device: bytes, and where they are.
    fn load(&self, from: &Place, args: &CopyArgs, length: Option<u64>, offset: u64) -> Result<(u64, u64), Failure> {
        let memory = self.slot.memory();
        // Of an input without a known length as much as there is room for.
        let room = (memory.end - memory.start).saturating_sub(offset);
        let place = self.part(offset, length.unwrap_or(room.max(1)))?;
        let mut input = open(from, args.skip)?;
        let mut done = 0;
        let mut before: Option<Chunk> = None;
        while let Some(place) = &place {
            let most = CHUNK.min(place.len() - done);
            let mut bytes = vec![0; most as usize];
            let count = fill(input.as_mut(), &mut bytes)?;
            bytes.truncate(count);
            let next = (count > 0).then(|| self.begin(place, done, bytes, true)).transpose()?;
            let ends = next.is_none();
            done += count as u64;
            if let Some(chunk) = std::mem::replace(&mut before, next) {
                self.wait(&chunk.copy)?;
                self.compare(place, chunk.begin, &chunk.bytes)?;
            }
            if ends {
                break;
            }
        }
        match length {
            Some(length) if done < length => {
                let what = format!("the input ended after {done} bytes, which are copied; {length} were asked for");
                return Err(Failure::usage(what, "say fewer by --length"));
            }
            None if done == room && fill(input.as_mut(), &mut [0])? > 0 => {
                let what = format!("the input has more than the {room} bytes that there are from {}", args.to);
                return Err(Failure::usage(what, "copy less by --length, or to a lower offset"));
            }
            _ => {}
        }
        Ok((done, self.base() + offset))
    }

    /// Begins to copy these bytes into the device, or as many out of it.
    fn begin(&self, place: &DeviceBuffer, begin: u64, bytes: Vec<u8>, into: bool) -> Result<Chunk, Failure> {
        let (stage, near) = (self.slot.alloc_host(bytes.len())?, place.part(begin..begin + bytes.len() as u64)?);
        let copy = if into {
            stage.write(0, &bytes)?;
            self.slot.copy_async(&stage, near)?
        } else {
            self.slot.copy_async(near, &stage)?
        };
        Ok(Chunk { copy, begin, bytes, stage })
    }

    /// Out of the device: bytes, and where they are.
    fn save(&self, place: Option<&DeviceBuffer>, length: u64, to: &Place) -> Result<(u64, u64), Failure> {
        let mut output: Box<dyn Write> = match to {
            Place::File(path) => Box::new(File::create(path).map_err(|error| {
                let what = format!("cannot write {}: {error}", path.display());
                Failure::usage(what, "name a file in a directory that you may write to")
            })?),
            _ => Box::new(io::stdout().lock()),
        };
        let mut before: Option<Chunk> = None;
        let mut begun = 0;
        while let Some(place) = place {
            let count = CHUNK.min(length - begun);
            let next = (count > 0).then(|| self.begin(place, begun, vec![0; count as usize], false)).transpose()?;
            let ends = next.is_none();
            begun += count;
            if let Some(mut chunk) = std::mem::replace(&mut before, next) {
                self.wait(&chunk.copy)?;
                chunk.stage.read(0, &mut chunk.bytes)?;
                self.compare(place, chunk.begin, &chunk.bytes)?;
                output.write_all(&chunk.bytes).map_err(|error| output_failed(&error))?;
            }
            if ends {
                break;
            }
        }
        output.flush().map_err(|error| output_failed(&error))?;
        Ok((length, place.map_or_else(|| self.base(), DeviceBuffer::device_address)))
    }

    /// Within the device: bytes, and where they are then.
    fn within(&self, source: Option<&DeviceBuffer>, from: u64, to: u64, length: u64) -> Result<(u64, u64), Failure> {
        let address = self.base() + to;
        let Some(source) = source else { return Ok((0, address)) };
        if from.abs_diff(to) < length {
            return Err(Failure::usage("the two places in the device overlap", "name offsets that are further apart"));
        }
        let place = self.slot.alloc_device_at(to, length)?;
        for begin in (0..length).step_by(CHUNK as usize) {
            let range = begin..length.min(begin + CHUNK);
            self.wait(&self.slot.copy_async(source.part(range.clone())?, place.part(range.clone())?)?)?;
            if self.verify {
                let stage = self.slot.alloc_host((range.end - range.start) as usize)?;
                self.wait(&self.slot.copy_async(source.part(range)?, &stage)?)?;
                let mut bytes = vec![0; stage.len()];
                stage.read(0, &mut bytes)?;
                self.compare(&place, begin, &bytes)?;
            }
        }
        Ok((length, address))
    }
}
