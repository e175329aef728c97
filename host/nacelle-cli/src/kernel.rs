// SPDX-License-Identifier: Apache-2.0
//! `nacelle kernel`: which kernels a device has, and how one takes the place of another.

use std::time::{Duration, Instant};

use nacelle_manage::{Control, Digest, Error, KernelImage, KernelSocket};

use crate::args::{ChangeArgs, Cli, KernelCommand};
use crate::failure::Failure;
use crate::image::{load, pack};
use crate::manage::control;
use crate::output::{print, print_json, table};

/// How often the device is asked whether the kernel is there.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Digits of a digest that are shown to people.
const SHORT: usize = 12;

pub(crate) fn kernel(cli: &Cli, command: &KernelCommand) -> Result<(), Failure> {
    match command {
        KernelCommand::List { device } => {
            let sockets = control(cli, device)?.kernels()?;
            if cli.json {
                return print_json(&sockets);
            }
            let heads = ["SOCKET", "IMAGE", "KERNEL", "VERSION", "FUNCTIONS", "DIGEST", "STATE"];
            let mut rows = vec![heads.map(str::to_owned).to_vec()];
            rows.extend((0..).zip(&sockets).flat_map(|(number, socket)| image_rows(number, socket)));
            print(&table(&rows, 2))
        }
        KernelCommand::Pack(args) => pack(cli, args),
        KernelCommand::Load { device, file, slot, token_file, timeout } => {
            load(cli, device, file, *slot, token_file.as_deref(), *timeout)
        }
        KernelCommand::Activate { device, socket, image, digest, change } => {
            let mut control = control(cli, device)?;
            let sockets = control.kernels()?;
            let listed = format!("list them with 'nacelle kernel list {device}'");
            let Some(found) = sockets.get(usize::from(*socket)) else {
                return Err(Failure::usage(format!("{device} has no socket {socket}"), listed));
            };
            let Some((number, known)) = find(found, image, *digest) else {
                return Err(Failure::usage(format!("socket {socket} of {device} has no image {image}"), listed));
            };
            if known.uploaded && known.digest.is_none() {
                let said = format!("place {image} of {device} holds no image that was verified");
                return Err(Failure::usage(said, "bring one there with 'nacelle kernel load'"));
            }
            let Some(digest) = digest.or(known.digest) else {
                return Err(Failure::usage(format!("socket {socket} of {device} can hold one kernel only"), listed));
            };
            control.activate_kernel(*socket, number, digest)?;
            finish(cli, &mut control, device, *socket, change)
        }
        KernelCommand::Rollback { device, socket, change } => {
            let mut control = control(cli, device)?;
            control.roll_back_kernel(*socket).map_err(|error| match error {
                Error::Management { .. } => {
                    Failure::usage(error.to_string(), format!("list what it has with 'nacelle kernel list {device}'"))
                }
                error => error.into(),
            })?;
            finish(cli, &mut control, device, *socket, change)
        }
    }
}

/// The image that has this number or name; of several with this name the one with this digest.
fn find<'a>(socket: &'a KernelSocket, image: &str, digest: Option<Digest>) -> Option<(u8, &'a KernelImage)> {
    let number: Option<u8> = image.parse().ok();
    let mut all = (0..).zip(&socket.images).filter(|(index, known)| Some(*index) == number || known.name == image);
    let first = all.clone().next();
    all.find(|(_, known)| digest.is_some() && known.digest == digest).or(first)
}

/// Waits for the end of a change, and says what is there.
fn finish(cli: &Cli, control: &mut Control, device: &str, number: u16, change: &ChangeArgs) -> Result<(), Failure> {
    let until = Instant::now() + change.timeout;
    if change.cut {
        control.cut_kernel(number)?;
    }
    let socket = loop {
        let mut sockets = control.kernels()?;
        let index = usize::from(number);
        if index >= sockets.len() {
            return Err(Failure::check(format!("{device} has lost its socket {number}")));
        }
        let socket = sockets.swap_remove(index);
        if !socket.changing {
            break socket;
        }
        if Instant::now() >= until {
            let said =
                format!("the kernel of socket {number} was not replaced within {} s", change.timeout.as_secs_f64());
            return Err(Failure::timeout(said, "calls are under way in it: wait for their end, or add --cut"));
        }
        std::thread::sleep(LOOK_EVERY);
    };
    if let Some(error) = socket.error {
        let now = active(&socket).map_or("no kernel".into(), |image| image.name.clone());
        let said = format!("the kernel of socket {number} of {device} was not replaced: {error}; it holds {now}");
        return Err(Failure::refused(said, format!("see what it has with 'nacelle kernel list {device}'")));
    }
    if cli.json {
        return print_json(&socket);
    }
    match active(&socket) {
        Some(KernelImage { name, version: (major, minor), .. }) => {
            eprintln!("socket {number} of {device} holds {name} {major}.{minor}");
        }
        None => eprintln!("socket {number} of {device} holds no kernel"),
    }
    Ok(())
}

fn active(socket: &KernelSocket) -> Option<&KernelImage> {
    socket.images.get(usize::from(socket.active?))
}

fn image_rows(number: usize, socket: &KernelSocket) -> impl Iterator<Item = Vec<String>> {
    (0..).zip(&socket.images).map(move |(index, image)| {
        let codes: Vec<String> = image.functions.iter().map(u8::to_string).collect();
        let state = match (socket.active, socket.former) {
            _ if socket.changing => "changing",
            (Some(active), _) if active == index => "active",
            (_, Some(former)) if former == index => "former",
            _ if image.uploaded && image.digest.is_none() => "empty",
            _ if image.uploaded => "verified",
            _ => "",
        };
        vec![
            number.to_string(),
            index.to_string(),
            if image.name.is_empty() { "-".into() } else { image.name.clone() },
            format!("{}.{}", image.version.0, image.version.1),
            codes.join(","),
            image.digest.map_or("-".into(), |digest| digest.to_string()[..SHORT].to_owned()),
            state.into(),
        ]
    })
}
