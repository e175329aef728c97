// SPDX-License-Identifier: Apache-2.0
//! `nacelle device`, `nacelle nic` and `nacelle wire`: what stays until it is stopped.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nacelle::{Descriptor, DeviceKind};
use nacelle_device::{
    Bounds, DeviceError, FrameEngine, Host, Kernel, Place, Port, RtlEngine, SimConfig, SimLibrary, SoftConfig,
    SoftEngine, find_library,
};
use nacelle_driver::DatagramMedium;
use nacelle_link::{
    DatagramLink, Impaired, ImpairedDatagrams, Link, PacketLink, ROCE_PORT, ShmHub, SwitchHost, UdpLink, VirtualWire,
    XdpLink, withdraw_shm,
};
use nacelle_manage::AddressMode;

use crate::args::{Cli, DeviceArgs, NicArgs, WireArgs};
use crate::dns_sd::Announced;
use crate::failure::Failure;
use crate::guest::Guest;
use crate::image::image_key;
use crate::output::print;
use crate::tap::Joined;

/// How long a stop request may go unnoticed.
const TICK: Duration = Duration::from_millis(100);
/// Last numbers of the loopback addresses that a device takes by itself: those of callers begin behind them.
const FIRST_LOOPBACK: u8 = 2;
const LAST_LOOPBACK: u8 = 254;

/// A flag that an interrupt or a request to terminate sets.
pub(crate) fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| {
            Failure::usage(format!("cannot listen to signals: {error}"), "run it in an ordinary shell")
        })?;
    }
    Ok(stop)
}

pub(crate) fn wire(cli: &Cli, args: &WireArgs) -> Result<(), Failure> {
    let wire = cli.wire()?;
    let stop = stop_on_signal()?;
    let _switch = SwitchHost::start(&wire)?;
    let _tap = args.tap.as_deref().map(|name| Joined::to_wire(&wire, name)).transpose()?;
    eprintln!("the wire is at {}", wire.path().display());
    if cli.json {
        print(&format!("{}\n", serde_json::json!({ "wire": wire.path() })))?;
    }
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(TICK);
    }
    Ok(())
}

/// What there is to say of a device that is ready, beside its address.
type Ready<'a> = &'a dyn Fn(&Descriptor) -> Result<(), Failure>;

pub(crate) fn device(cli: &Cli, args: &DeviceArgs) -> Result<(), Failure> {
    let ready = |device: &Descriptor| {
        if let Some(socket) = &args.slot {
            eprintln!("{} is in the slot {}", device.name, socket.display());
        }
        if let Some(socket) = &args.slot_net {
            eprintln!("the network card of {} is in the slot {}", device.name, socket.display());
        }
        if let Some(socket) = &args.vhost_user {
            eprintln!("the network card of {} is at {}, for a guest", device.name, socket.display());
        }
        if cli.json {
            // One line, so that a program can wait for it and go on.
            let line = serde_json::to_string(device).map_err(|error| Failure::check(error.to_string()))?;
            print(&format!("{line}\n"))?;
        }
        Ok(())
    };
    if let Some(address) = args.udp {
        return by_udp(cli, args, address, &ready);
    }
    let kind = if args.soft { DeviceKind::Soft } else { DeviceKind::Rtl };
    let place = find_place(cli, args, kind)?;
    if args.soft {
        return serve(args, &place, SoftEngine::new(soft_config(args)?), args.tap.as_deref(), &ready);
    }
    without_software(args)?;
    let library = find_library(args.library.as_deref(), "", args.wave.is_some())?;
    let engine = rtl(args, &place, &library, args.vhost_user.as_deref())?;
    serve(args, &place, engine, args.tap.as_deref(), &ready)
}

pub(crate) fn nic(cli: &Cli, args: &NicArgs) -> Result<(), Failure> {
    let device = &args.device;
    if device.soft {
        return Err(Failure::usage("the software device has no network card", "leave --soft out"));
    }
    if device.slot_net.is_some() {
        return Err(Failure::usage("the network card is the guest's", "leave --slot-net out, or use: nacelle device"));
    }
    without_software(device)?;
    let library = find_library(device.library.as_deref(), "nic", device.wave.is_some())
        .map_err(|error| Failure::usage(error.to_string(), "build it with: make sim SIM_ARGS='--device nic'"))?;
    let place = find_place(cli, device, DeviceKind::Rtl)?;
    if let Some(name) = &device.tap {
        return own_nic(cli, device, &place, &library, name);
    }
    let socket = device.vhost_user.clone().unwrap_or_else(|| place.wire.file(&format!("{}.vhost", place.name)));
    let guest = Guest::new(args, &place, &socket)?;
    let engine = rtl(device, &place, &library, Some(&socket))?;
    serve(device, &place, engine, None, &|device| guest.introduce(cli, device))
}

/// A device whose network card is this machine's own, by a driver in this process: an interface of the kernel.
fn own_nic(cli: &Cli, args: &DeviceArgs, place: &Place, library: &Path, name: &str) -> Result<(), Failure> {
    if args.vhost_user.is_some() {
        return Err(Failure::usage("the network card has one driver", "leave --tap or --vhost-user out"));
    }
    let slot = place.wire.file(&format!("{}.card", place.name));
    let engine = rtl(args, place, library, None)?.with_network_slot(&slot, place.identity.mac)?;
    let mac = place.identity.network_card_mac();
    let _interface = Joined::to_card(name, slot, mac)?;
    let ready = |device: &Descriptor| {
        eprintln!(
            "its network card is this machine's interface {name}; to use it: ip address add 10.77.0.1/16 dev {name}"
        );
        if cli.json {
            let line = serde_json::json!({ "device": device, "interface": name, "mac": mac.to_string() });
            print(&format!("{line}\n"))?;
        }
        Ok(())
    };
    serve(args, place, engine, None, &ready)
}

/// The name and the addresses of a device.
fn find_place(cli: &Cli, args: &DeviceArgs, kind: DeviceKind) -> Result<Place, Failure> {
    let mut place = Place::find(&cli.wire()?, kind, args.name.as_deref(), args.ip)?;
    place.identity.mac = args.mac.unwrap_or(place.identity.mac);
    place.identity.gateway = args.gateway;
    Ok(place)
}

/// Refuses what only the software device has.
fn without_software(args: &DeviceArgs) -> Result<(), Failure> {
    let of_software = [
        ("--memory", args.memory.is_some()),
        ("--connections", args.connections.is_some()),
        ("--workers", args.workers.is_some()),
        ("--kernel", !args.kernel.is_empty()),
        ("--kernel-image", !args.kernel_image.is_empty()),
    ];
    for (option, given) in of_software {
        if given {
            let said = format!("{option} is an option of the software device; the simulated RTL is as it was built");
            return Err(Failure::usage(said, "add --soft, or leave the option out"));
        }
    }
    Ok(())
}

/// The simulated RTL of a library, with its network card at `card`.
fn rtl(args: &DeviceArgs, place: &Place, library: &Path, card: Option<&Path>) -> Result<RtlEngine, Failure> {
    let library = SimLibrary::load(library)?;
    let config = SimConfig {
        line_rate_mbps: args.line_rate.unwrap_or_default(),
        wave: args.wave.clone(),
        random_seed: args.impairments.seed(),
        faults: args.memory_faults.faults(),
        ..SimConfig::default()
    };
    let mut engine = RtlEngine::new(&library, &config)?
        .with_bounds(bounds(args))
        .with_address_mode(args.address.map(AddressMode::from).unwrap_or_default())
        .with_ipv6(args.ipv6.unwrap_or_default())
        .with_idle_speed(args.idle_speed.unwrap_or(1))
        .with_image_key(args.image_key.as_deref().map(image_key).transpose()?);
    if let Some(socket) = &args.slot {
        engine = engine.with_slot(socket, place.identity.mac)?;
    }
    if let Some(socket) = &args.slot_net {
        engine = engine.with_network_slot(socket, place.identity.mac)?;
    }
    if let Some(socket) = card {
        engine = engine.with_vhost_user(socket, place.identity.mac, |what| eprintln!("{what}"))?;
    }
    Ok(engine)
}

fn mebibytes(count: u32) -> u64 {
    u64::from(count) << 20
}

fn bounds(args: &DeviceArgs) -> Bounds {
    Bounds {
        connections_per_caller: args.caller_connections.map(usize::from),
        memory_per_caller: args.caller_memory.map(mebibytes),
        kernel_time: args.kernel_time.map(|ms| Duration::from_millis(ms.into())),
    }
}

fn soft_config(args: &DeviceArgs) -> Result<SoftConfig, Failure> {
    let (bounds, default) = (bounds(args), SoftConfig::default());
    let mut kernels = default.kernels;
    for file in &args.kernel {
        Kernel::load(file).and_then(|kernel| kernels.add(kernel)).map_err(DeviceError::from)?;
    }
    for (beside, file) in &args.kernel_image {
        Kernel::load(file).and_then(|kernel| kernels.add_image(beside, kernel)).map_err(DeviceError::from)?;
    }
    Ok(SoftConfig {
        memory_bytes: args.memory.map_or(default.memory_bytes, mebibytes),
        memory_per_caller: bounds.memory_per_caller.unwrap_or(default.memory_per_caller),
        connections: args.connections.map_or(default.connections, usize::from),
        connections_per_caller: bounds.connections_per_caller.unwrap_or(default.connections_per_caller),
        workers: args.workers.map_or(default.workers, |workers| workers as usize),
        kernel_time: bounds.kernel_time.map_or(default.kernel_time, |time| Some(time).filter(|t| !t.is_zero())),
        kernels,
        ..default
    })
}

/// Runs the software device on a UDP socket: at `address`, or at the first free one of a few loopback addresses.
fn by_udp(cli: &Cli, args: &DeviceArgs, address: Option<IpAddr>, then: Ready<'_>) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let first = |link: Option<UdpLink>, number| match link {
        None => UdpLink::bind(Ipv4Addr::new(127, 0, 0, number).into()).ok(),
        found => found,
    };
    let link = match address {
        Some(address) => UdpLink::bind(address)?,
        None => match (FIRST_LOOPBACK..=LAST_LOOPBACK).fold(None, first) {
            Some(link) => link,
            None => UdpLink::bind(Ipv4Addr::new(127, 0, 0, FIRST_LOOPBACK).into())?,
        },
    };
    let place = Place::by_udp(&cli.wire()?, DeviceKind::Soft, args.name.as_deref(), link.local().ip())?;
    let rules = args.impairments.rules();
    let link: Box<dyn DatagramLink> = if args.no_shm {
        withdraw_shm(&place.wire, &place.name)?;
        Box::new(link)
    } else {
        let hub = ShmHub::new(link, &place.wire, &place.name)?;
        // Damage that is added here is to be noticed.
        Box::new(if rules.is_none() { hub } else { hub.keeping_icrc() })
    };
    let link: Box<dyn DatagramLink> =
        if rules.is_none() { link } else { Box::new(ImpairedDatagrams::new(link, rules)) };
    let engine = SoftEngine::new(soft_config(args)?);
    let host = Host::by_udp(engine, &place, DatagramMedium::new(link), random()?)?;
    let _announced = args.announce.then(|| Announced::start(host.descriptor())).transpose()?;
    let ready = |device: &Descriptor| eprintln!("{} is ready at {}, UDP port {ROCE_PORT}", device.name, device.ip);
    run(args, host, &stop, ready, then)
}

fn random() -> Result<u32, Failure> {
    let mut seed = [0; 4];
    getrandom::fill(&mut seed).map_err(|error| {
        Failure::usage(format!("the system gives no random numbers: {error}"), "run it where getrandom(2) works")
    })?;
    Ok(u32::from_ne_bytes(seed))
}

/// Runs a device on its wire, which a TAP device may join to the kernel's network, or on an interface.
fn serve(
    args: &DeviceArgs,
    place: &Place,
    engine: impl FrameEngine,
    tap: Option<&str>,
    then: Ready<'_>,
) -> Result<(), Failure> {
    let stop = stop_on_signal()?;
    let impaired = |link: Box<dyn Link>| -> Box<dyn Link> {
        let rules = args.impairments.rules();
        if rules.is_none() { link } else { Box::new(Impaired::new(link, rules)) }
    };
    if let Some(interface) = args.packet.or(args.xdp) {
        let link: Box<dyn Link> = if args.xdp.is_some() {
            // Callers choose how long packets are.
            Box::new(XdpLink::open(interface, place.identity.ip)?.whole()?)
        } else {
            Box::new(PacketLink::open(interface)?)
        };
        let host = Host::on_interface(engine, place, impaired(link), random()?)?;
        let ready = |device: &Descriptor| eprintln!("{} is ready at {} on {interface}", device.name, device.ip);
        return run(args, host, &stop, ready, then);
    }
    let _switch = SwitchHost::start(&place.wire)?;
    let link = VirtualWire::join(&place.wire, &place.name)?;
    let host = Host::new(engine, place, impaired(Box::new(link)), random()?)?;
    let _joined = tap.map(|name| Joined::to_wire(&place.wire, name)).transpose()?;
    let ready = |device: &Descriptor| {
        let at = if device.ip.is_unspecified() { "without an address yet".into() } else { format!("at {}", device.ip) };
        eprintln!("{} is ready {at} on the wire {}", device.name, place.wire.path().display());
    };
    run(args, host, &stop, ready, then)
}

/// Runs a device that is set up, and says when it is `ready`.
fn run<P: Port>(
    args: &DeviceArgs,
    mut host: Host<P>,
    stop: &AtomicBool,
    ready: impl FnOnce(&Descriptor),
    then: Ready<'_>,
) -> Result<(), Failure> {
    if let Some(path) = &args.capture {
        host.capture(path)?;
    }
    ready(host.descriptor());
    then(host.descriptor())?;
    Ok(host.run(stop)?)
}
