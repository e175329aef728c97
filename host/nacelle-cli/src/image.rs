// SPDX-License-Identifier: Apache-2.0
//! `nacelle kernel pack` and `nacelle kernel load`: images of kernels, and their way into a device.

use std::fmt::Display;
use std::fs;
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use nacelle_device::Kernel;
use nacelle_manage::images::{Image, ImageError, ImageKey, ImageStore, KernelIdentity, UploadError};
use nacelle_manage::{Digest, Registers};
use serde::Serialize;

use crate::args::{Cli, PackArgs};
use crate::config::over_network;
use crate::failure::Failure;
use crate::manage::control;
use crate::output::print_json;
use crate::remote::{self, RemoteRegisters, Token, unreadable};

/// How often the device is asked whether it has verified an image.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const TEMPLATE: &str = "{msg:>9} [{bar:32}] {bytes} of {total_bytes}, {binary_bytes_per_sec}";

/// An image, as JSON.
#[derive(Serialize)]
struct Said {
    kernel: String,
    socket: u32,
    digest: Digest,
    bytes: usize,
    /// The place that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    slot: Option<u32>,
}

/// The key in a file that others than its owner cannot read.
pub(crate) fn image_key(file: &Path) -> Result<ImageKey, Failure> {
    let said =
        |error: String| Failure::usage(format!("{}: {error}", file.display()), "make one with 'openssl rand -hex 32'");
    remote::read(file)?.parse().map_err(said)
}

pub(crate) fn pack(cli: &Cli, args: &PackArgs) -> Result<(), Failure> {
    let key = image_key(&args.key_file)?;
    let text = fs::read_to_string(&args.description).map_err(unreadable(&args.description))?;
    let kernel = Kernel::from_toml(&text).map_err(nacelle_device::DeviceError::from)?;
    let functions: Vec<_> = kernel.functions().collect();
    let identity = KernelIdentity {
        name: kernel.name().to_owned(),
        version: functions.first().map_or((0, 0), |function| function.kernel_version),
        functions: functions.iter().map(|function| function.code).collect(),
        registers: args.registers,
    };
    if identity.name.len() > 16 || identity.functions.len() > 8 {
        let said =
            format!("{} has a name of more than 16 characters, or more than 8 functions", args.description.display());
        return Err(Failure::usage(said, "a socket of the RTL takes no more"));
    }
    let bitstream = match &args.bitstream {
        Some(path) => fs::read(path).map_err(unreadable(path))?,
        None => Image::simulated(&identity.name),
    };
    if bitstream.is_empty() {
        return Err(Failure::usage("the bitstream is empty", "name the file that the tools of the chip have made"));
    }
    let image = Image { build: args.build, socket: args.socket, kernel: identity, bitstream };
    let file = image.to_file(&key);
    fs::write(&args.output, &file).map_err(|error| {
        Failure::usage(format!("cannot write {}: {error}", args.output.display()), "name another file by --output")
    })?;
    tell(
        cli,
        Said {
            kernel: image.kernel.name.clone(),
            socket: image.socket,
            digest: image.digest(),
            bytes: file.len(),
            slot: None,
        },
    )
}

fn tell(cli: &Cli, said: Said) -> Result<(), Failure> {
    if cli.json {
        return print_json(&said);
    }
    let place = said.slot.map_or(String::new(), |slot| format!(", verified, in place {slot}"));
    eprintln!("{} for socket {}: {} bytes, SHA-256 {}{place}", said.kernel, said.socket, said.bytes, said.digest);
    Ok(())
}

pub(crate) fn load(
    cli: &Cli,
    device: &str,
    path: &Path,
    slot: Option<u32>,
    token_file: Option<&Path>,
    timeout: Duration,
) -> Result<(), Failure> {
    let file = fs::read(path).map_err(unreadable(path))?;
    // What comes to nothing in any device is found before anything is sent.
    let (image, digest) = Image::parse(&file).map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display()), "make it again with 'nacelle kernel pack'")
    })?;
    let slot = match over_network(cli, device)? {
        Some(address) => {
            let token = Token::find(token_file)?;
            upload(device, &mut RemoteRegisters::connect(address, timeout, token.as_ref())?, slot, &file, timeout)?
        }
        None => upload(device, &mut control(cli, device)?, slot, &file, timeout)?,
    };
    let said = Said { kernel: image.kernel.name, socket: image.socket, digest, bytes: file.len(), slot: Some(slot) };
    tell(cli, said)
}

fn upload<R: Registers>(
    device: &str,
    registers: &mut R,
    slot: Option<u32>,
    file: &[u8],
    timeout: Duration,
) -> Result<u32, Failure>
where
    Failure: From<R::Error>,
    R::Error: Display,
{
    let refused = |error| refusal(device, error);
    let mut store = ImageStore::find(registers).map_err(refused)?;
    let slot = slot.map_or_else(|| store.free(), Ok).map_err(refused)?;
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(file.len() as u64) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message("sending");
    let sent = store.upload(slot, file, |bytes| bar.set_position(bytes as u64));
    bar.finish_and_clear();
    sent.map_err(refused)?;
    let until = Instant::now() + timeout;
    while store.verdict().map_err(refused)?.is_none() {
        if Instant::now() >= until {
            let said = format!("{device} has not verified the image within {} s", timeout.as_secs_f64());
            return Err(Failure::timeout(
                said,
                "give it longer with --timeout: it goes on, 'nacelle kernel list' shows it",
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(slot)
}

/// Why the device has no such image now, and what to try.
fn refusal<E>(device: &str, error: UploadError<E>) -> Failure
where
    Failure: From<E>,
    E: Display,
{
    let hint = match &error {
        UploadError::Access(_) => "",
        UploadError::None => "use a device that was built with places for images: [images] in its description",
        UploadError::Full(_) => "activate another image in a socket that holds one of them",
        UploadError::TooLong { .. } => "build the device with larger places: slot_bytes in [images] of its description",
        UploadError::Refused(ImageError::NoKey) => "set its key on its own machine: nacelle device --image-key FILE",
        UploadError::Refused(ImageError::InUse) => "name another place by --slot, or none",
        UploadError::Refused(ImageError::NoUpload) => "somebody else loads an image: try again when they have finished",
        UploadError::Refused(ImageError::BadBuild | ImageError::BadSocket) => {
            "pack it for this device: its build is in 'nacelle describe --json'"
        }
        UploadError::Refused(ImageError::BadSignature) => "pack it with the key that the device has",
        UploadError::Refused(_) => "send it again; if that fails, too, pack it again",
    };
    match error {
        UploadError::Access(error) => error.into(),
        error => Failure::refused(format!("{device} has not taken the image: {error}"), hint),
    }
}
