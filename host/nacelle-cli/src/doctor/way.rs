// SPDX-License-Identifier: Apache-2.0
//! The way to the device: its address, the link, and what the link needs.

use std::net::IpAddr;
use std::time::Duration;

use nacelle::{Chosen, Device, Error, LinkChoice, LinkKind};
use nacelle_link::{DatagramLink, LinkError, PortProbe, ROCE_PORT, Route, UdpLink, VirtualWire, WireDir};
use nacelle_manage::discover;
use nacelle_verbs::{Place, VerbsError};
use nacelle_wire::cm::PathMtu;

use super::endpoint::options;
use super::{Examination, Fault, StepEnd};

/// How long a host is given to say that its port is closed: on this machine it does so at once.
const LOCAL_PATIENCE: Duration = Duration::from_millis(50);
const REMOTE_PATIENCE: Duration = Duration::from_secs(1);

/// Goes as far as to the device's host, and returns a device that can be asked for connections.
pub(super) fn examine(examination: &mut Examination<'_>) -> Result<Device, StepEnd> {
    let (cli, args) = (examination.cli, examination.args);
    let (wire, ip) = examination.step("address", || address(cli.wire()?, &args.device))?;
    let link = examination.step("link", || link(args.way.link.to(ip, &wire), ip))?;
    examination.link = Some(link);
    match link {
        LinkKind::Udp => by_udp(examination, &wire, ip),
        LinkKind::Wire => by_wire(examination, &wire, ip),
        LinkKind::Shm | LinkKind::Packet | LinkKind::Xdp => directly(examination, &wire, ip),
        LinkKind::Verbs => by_nic(examination, &wire, ip),
    }
}

fn address(wire: WireDir, device: &str) -> Result<((WireDir, IpAddr), String), Fault> {
    if let Ok(ip) = device.parse::<IpAddr>() {
        return Ok(((wire, ip), format!("{ip} is an address")));
    }
    let all = discover::list(&wire);
    let Some(found) = all.iter().find(|found| found.device.name == device) else {
        let names: Vec<_> = all.iter().map(|found| found.device.name.as_str()).collect();
        let there =
            if names.is_empty() { "no device runs there".into() } else { format!("there are {}", names.join(", ")) };
        return Err(Fault::new(
            format!(
                "'{device}' is no address, and no device on the wire {} has this name: {there}",
                wire.path().display()
            ),
            "give the device's address, a name that 'nacelle ls' shows, or another wire with --wire",
        ));
    };
    let ip = found.device.ip;
    if !found.alive {
        let pid = found.device.pid;
        return Err(Fault::new(
            format!("{device} is published at {ip}, but does not answer: its process {pid} has ended or hangs"),
            "start the device again",
        ));
    }
    Ok(((wire, ip), format!("{device} is at {ip}")))
}

fn link(chosen: Chosen, ip: IpAddr) -> Result<(LinkKind, String), Fault> {
    if ip.is_unspecified() || ip.is_multicast() {
        return Err(Fault::new(format!("{ip} is no address of a device"), "give the address of one host"));
    }
    match chosen.link {
        LinkKind::Wire | LinkKind::Packet | LinkKind::Xdp if ip.is_ipv6() => {
            Err(Fault::new(format!("{ip} cannot be reached by frames, which carry IPv4 only"), "leave --link out"))
        }
        LinkKind::Wire => Ok((LinkKind::Wire, format!("the wire: {}", chosen.why))),
        LinkKind::Udp => Ok((LinkKind::Udp, format!("UDP: {}", chosen.why))),
        LinkKind::Shm => Ok((LinkKind::Shm, format!("shared memory: {}", chosen.why))),
        LinkKind::Packet => Ok((LinkKind::Packet, format!("a packet socket: {}", chosen.why))),
        LinkKind::Xdp => Ok((LinkKind::Xdp, format!("an AF_XDP socket: {}", chosen.why))),
        LinkKind::Verbs => Ok((LinkKind::Verbs, format!("an RDMA NIC: {}", chosen.why))),
    }
}

fn by_udp(examination: &mut Examination<'_>, wire: &WireDir, ip: IpAddr) -> Result<Device, StepEnd> {
    let args = examination.args;
    let (route, source) = route(examination, ip)?;
    examination.step("interface", || interface(source))?;
    examination.step("path MTU", || path_mtu(args.way.mtu.map_or(LONGEST, usize::from), Some(route.ip_mtu)))?;
    let local = examination.step("local port", || {
        let link = match args.way.link.source {
            Some((source, _)) => UdpLink::bind(source)?,
            None => UdpLink::for_peer(ip)?,
        };
        let local = link.local();
        if local.is_ipv4() != ip.is_ipv4() {
            return Err(Fault::new(format!("{} and {ip} are of different families", local.ip()), "correct --source"));
        }
        Ok((local.ip(), format!("UDP port {ROCE_PORT} of {} is free", local.ip())))
    })?;
    examination.step("device's host", || {
        let found = host(ip, local, route.local == ip || ip.is_loopback())?;
        Ok((Device::connect(ip, &options(args, wire))?, found))
    })
}

/// The route to the device, and the caller's own address.
fn route(examination: &mut Examination<'_>, ip: IpAddr) -> Result<(Route, IpAddr), StepEnd> {
    let args = examination.args;
    examination.step("route", || {
        let route = Route::to(ip).map_err(|error| {
            Fault::new(error.to_string(), "see 'ip route': connect this machine to the device's network")
        })?;
        let source = args.way.link.source.map_or(route.local, |(source, _)| source);
        Ok(((route, source), format!("packets to {ip} leave from {source}")))
    })
}

/// By an RDMA NIC: whether there is one on the way, and whether it can be used. The device's host is asked for with the connection.
fn by_nic(examination: &mut Examination<'_>, wire: &WireDir, ip: IpAddr) -> Result<Device, StepEnd> {
    let args = examination.args;
    let (_, source) = route(examination, ip)?;
    let fault = |error: VerbsError| Fault::new(error.to_string(), error.hint());
    examination.step("RDMA device", || {
        let wanted = match args.way.link.link {
            LinkChoice::Verbs(device) => device,
            _ => None,
        };
        let Place { device, port, address } = Place::of(source, wanted).map_err(fault)?;
        Ok(((), format!("port {port} of {device} is active and has {address}")))
    })?;
    examination.step("libraries", || {
        nacelle_verbs::available().map_err(fault)?;
        Ok((Device::connect(ip, &options(args, wire))?, "librdmacm and libibverbs have opened the device".into()))
    })
}

fn by_wire(examination: &mut Examination<'_>, wire: &WireDir, ip: IpAddr) -> Result<Device, StepEnd> {
    let args = examination.args;
    examination.step("wire", || {
        VirtualWire::join_anonymous(wire)?;
        Ok(((), format!("a switch runs on {}", wire.path().display())))
    })?;
    examination.step("path MTU", || path_mtu(args.way.mtu.map_or(LONGEST, usize::from), None))?;
    examination.step("device's host", || match Device::connect(ip, &options(args, wire)) {
        Ok(device) => Ok((device, format!("{ip} answers ARP"))),
        Err(Error::Unreachable { .. }) => Err(Fault::new(
            format!("no host on the wire answers ARP for {ip}"),
            "list the devices that run with 'nacelle ls', or choose --link udp if it is elsewhere",
        )),
        Err(error) => Err(error.into()),
    })
}

/// By shared memory, or by a socket on an interface: there is nothing between this machine and the device that could be asked.
fn directly(examination: &mut Examination<'_>, wire: &WireDir, ip: IpAddr) -> Result<Device, StepEnd> {
    let args = examination.args;
    examination.step("path MTU", || path_mtu(args.way.mtu.map_or(LONGEST, usize::from), None))?;
    examination.step("device's host", || {
        let device = Device::connect(ip, &options(args, wire))?;
        let found = match device.link() {
            LinkKind::Packet | LinkKind::Xdp => format!("{ip} answers ARP"),
            LinkKind::Shm => "its process has shared its memory".into(),
            LinkKind::Udp | LinkKind::Wire | LinkKind::Verbs => "it shares no memory now: UDP is used".into(),
        };
        Ok((device, found))
    })
}

/// The interface that has an address: its state and MTU, as far as the system says.
fn interface(source: IpAddr) -> Result<((), String), Fault> {
    let unknown = |what: String| Fault::new(what, "name an address that 'ip address' shows with --source");
    let all = if_addrs::get_if_addrs().map_err(|error| unknown(format!("cannot list the interfaces: {error}")))?;
    let has = |one: &&if_addrs::Interface| one.ip() == source || source.is_loopback() && one.is_loopback();
    let Some(found) = all.iter().find(has) else {
        return Err(unknown(format!("no interface of this machine has {source}")));
    };
    let name = &found.name;
    let read = |what: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/{what}")).unwrap_or_default();
    let (state, mtu) = (read("operstate"), read("mtu"));
    // The loopback interface, and some tunnels, do not know.
    if !matches!(state.trim(), "up" | "unknown" | "") {
        return Err(Fault::new(
            format!("the interface {name}, which has {source}, is {}", state.trim()),
            format!("plug it in, or set it up: ip link set {name} up"),
        ));
    }
    Ok(((), format!("{name} is up, MTU {} bytes", mtu.trim())))
}

/// The longest IP packet that is tried unless --mtu says so, in bytes.
const LONGEST: usize = 4200;

/// The largest payload of a packet.
fn path_mtu(wanted: usize, route: Option<usize>) -> Result<((), String), Fault> {
    let ip_mtu = route.map_or(wanted, |route| route.min(wanted));
    let from = match route {
        Some(route) if route < wanted => {
            format!("the route takes IP packets of {route} bytes; --mtu {wanted} is bounded by that")
        }
        Some(route) => format!("--mtu {wanted} fits the route's {route} bytes"),
        None => format!("--mtu {wanted}; the link takes as much"),
    };
    match PathMtu::for_ip_mtu(ip_mtu) {
        Some(mtu) => Ok(((), format!("{} bytes at most: {from}", mtu.bytes()))),
        None => Err(Fault::new(
            format!("packets of {ip_mtu} bytes are too short for RoCEv2: {from}"),
            "raise the MTU of the interface, or use another one",
        )),
    }
}

/// Whether the device's host is there, and has its port open, as far as the network says.
fn host(ip: IpAddr, local: IpAddr, is_here: bool) -> Result<String, Fault> {
    let patience = if is_here { LOCAL_PATIENCE } else { REMOTE_PATIENCE };
    let sent = PortProbe::send(ip, local, patience);
    let probe = sent.map_err(|source| LinkError::Io { what: format!("send a datagram to {ip}"), source })?;
    let neighbour = if is_here { None } else { neighbour(ip) };
    match (probe, neighbour) {
        (PortProbe::Closed, _) => Err(Error::PortClosed { ip }.into()),
        (PortProbe::NoHost, _) | (_, Some(None)) => Err(Fault::new(
            format!("no host answers ARP for {ip}, or a router knows no way to it"),
            "correct the address, or connect the device to this network",
        )),
        (_, Some(Some(mac))) => Ok(format!("{ip} answers ARP from {mac}, and does not say that its port is closed")),
        _ if is_here => Ok(format!("this machine has a socket on UDP port {ROCE_PORT} of {ip}")),
        _ => Ok("it does not say that its port is closed; a firewall may be silent".into()),
    }
}

/// What the kernel knows of a neighbour: `None` if it is none, or its MAC address, if it has answered.
fn neighbour(ip: IpAddr) -> Option<Option<String>> {
    let table = std::fs::read_to_string("/proc/net/arp").ok()?;
    neighbour_in(&table, ip)
}

fn neighbour_in(table: &str, ip: IpAddr) -> Option<Option<String>> {
    let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.into_iter().find_map(|fields| match fields[..] {
        [address, _, flags, mac, ..] if address.parse() == Ok(ip) => Some((flags != "0x0").then(|| mac.to_owned())),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_known_by_their_answer() {
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
                     192.0.2.1        0x1         0x2         02:fc:00:00:00:05     *        eth0\n\
                     192.0.2.9        0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        let known = |ip: &str| neighbour_in(table, ip.parse().unwrap());
        assert_eq!(known("192.0.2.1"), Some(Some("02:fc:00:00:00:05".into())));
        assert_eq!(known("192.0.2.9"), Some(None), "it was asked for, and has not answered");
        assert_eq!(known("192.0.2.10"), None);
    }

    #[test]
    fn a_path_mtu_is_bounded_by_route_and_wish() {
        let found = |wanted, route| path_mtu(wanted, route).map(|(_, found)| found).map_err(|fault| fault.what);
        assert!(found(4200, Some(1500)).unwrap().starts_with("1024 bytes at most: the route takes IP packets of 1500"));
        assert!(found(1500, Some(65536)).unwrap().starts_with("1024 bytes at most: --mtu 1500 fits"));
        assert!(found(4200, None).unwrap().starts_with("4096"));
        assert!(found(4200, Some(300)).unwrap_err().contains("too short"));
    }
}
