// SPDX-License-Identifier: Apache-2.0
//! By which link a device is reached.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;
use std::time::Duration;

use nacelle_driver::{AnyMedium, DatagramMedium, Frames};
use nacelle_link::{
    Captured, DatagramLink, Icrc, Impaired, ImpairedDatagrams, InterfaceName, Link, LinkError, PcapngWriter, PortProbe,
    Route, ShmLink, UdpLink, WireDir,
};
use nacelle_manage::{Descriptor, LinkKind, discover};
use nacelle_roce::{NetworkLayer, TransportConfig, UdpInterface};
use nacelle_verbs::{DeviceName, Nic, Place, VerbsError};
use serde::Serialize;

use crate::engine::{Endpoint, Engine};
use crate::transport::{Medium, link_error};
use crate::{Error, Options, address, mtu};

/// The link to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LinkChoice {
    /// By its address: shared memory with a device of this user on this machine that offers it; the wire for what a device there can
    /// have; for other addresses an RDMA NIC, if there is one on the way, else UDP.
    #[default]
    Auto,
    /// The virtual wire: Ethernet frames among the processes of one machine.
    Wire,
    /// A UDP socket: the kernel's network, on this machine or to another. Needs no privilege.
    Udp,
    /// Memory that this process shares with the device, of the same user on the same machine.
    Shm,
    /// Ethernet frames of this network interface, as a host of its network with the address [`Options::source`]. Needs CAP_NET_RAW.
    Packet(InterfaceName),
    /// The same by an AF_XDP socket, which takes the caller's frames before the kernel's network looks at them. Needs CAP_NET_RAW,
    /// CAP_NET_ADMIN and CAP_BPF.
    Xdp(InterfaceName),
    /// An RDMA NIC, or Linux' soft-RoCE, by libibverbs and librdmacm: this one, or the one whose port has the address from which
    /// packets to the device leave.
    Verbs(Option<DeviceName>),
}

impl FromStr for LinkChoice {
    type Err = Error;

    /// `auto`, `wire`, `udp`, `shm`, `packet:INTERFACE`, `xdp:INTERFACE`, `verbs` or `verbs:DEVICE`.
    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(match text {
            "auto" => Self::Auto,
            "wire" => Self::Wire,
            "udp" => Self::Udp,
            "shm" => Self::Shm,
            "verbs" => Self::Verbs(None),
            _ => match text.split_once(':') {
                Some(("packet", interface)) => Self::Packet(interface.parse()?),
                Some(("xdp", interface)) => Self::Xdp(interface.parse()?),
                Some(("verbs", device)) => {
                    let name = device.parse::<DeviceName>();
                    Self::Verbs(Some(name.map_err(|error| Error::invalid(format!("'{device}': {error}")))?))
                }
                _ => {
                    return Err(Error::invalid(format!(
                        "there is no link '{text}': it is auto, wire, udp, shm, packet:INTERFACE, xdp:INTERFACE, verbs or \
                         verbs:DEVICE"
                    )));
                }
            },
        })
    }
}

/// How long a blocking wait polls by UDP: longer than a device on this machine takes for a small call, shorter than another program
/// notices.
const SPIN: Duration = Duration::from_micros(200);
/// The subnet that devices on a wire have unless others are named.
const WIRE_SUBNET: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 77, 0, 0), 16);

/// Whether `ip` is in the subnet of `other`.
fn shares_subnet(ip: Ipv4Addr, other: Ipv4Addr, prefix_len: u8) -> bool {
    let mask = u32::MAX.checked_shl(32 - u32::from(prefix_len.min(32))).unwrap_or(0);
    (ip.to_bits() ^ other.to_bits()) & mask == 0
}

/// The link by which a device is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Chosen {
    /// The link.
    pub link: LinkKind,
    /// Why it is this one.
    pub why: String,
}

impl LinkChoice {
    /// By which link a device at `ip` is reached, and why. `source` is the caller's own address, if it names one
    /// ([`Options::source`]): it is not given shared memory then, unless it asks for it. `wire` is that on which devices publish
    /// themselves, if there is one.
    #[must_use]
    pub fn resolve(self, ip: IpAddr, source: Option<IpAddr>, wire: Option<&WireDir>) -> Chosen {
        let chosen = |link, why: String| Chosen { link, why };
        let asked = match self {
            Self::Wire => Some(LinkKind::Wire),
            Self::Udp => Some(LinkKind::Udp),
            Self::Shm => Some(LinkKind::Shm),
            Self::Packet(_) => Some(LinkKind::Packet),
            Self::Xdp(_) => Some(LinkKind::Xdp),
            Self::Verbs(_) => Some(LinkKind::Verbs),
            Self::Auto => None,
        };
        if let Some(link) = asked {
            return chosen(link, "it is asked for".into());
        }
        let published = wire.map(discover::published).unwrap_or_default();
        let here = published.iter().find(|device| device.ip == ip);
        if let Some((device, wire)) = here.zip(wire)
            && device.link == LinkKind::Udp
            && source.is_none()
            && nacelle_link::offers_shm(wire, &device.name)
        {
            return chosen(LinkKind::Shm, format!("{} runs on this machine and shares memory", device.name));
        }
        let v4 = match ip {
            IpAddr::V4(v4) if v4.is_loopback() => {
                return chosen(LinkKind::Udp, "it is a loopback address".into());
            }
            IpAddr::V4(v4) => v4,
            IpAddr::V6(v6) if v6.is_loopback() => {
                return chosen(LinkKind::Udp, "it is a loopback address".into());
            }
            IpAddr::V6(_) => return by_network(ip, source, "the wire carries IPv4 only"),
        };
        if let Some(device) = here {
            if device.link == LinkKind::Packet {
                return by_network(ip, source, &format!("{} is a host of a network of the kernel", device.name));
            }
            return chosen(device.link, format!("{} publishes it", device.name));
        }
        let (subnet, prefix_len) = WIRE_SUBNET;
        let is_own = |local| matches!(local, IpAddr::V4(local) if shares_subnet(local, subnet, prefix_len));
        if shares_subnet(v4, subnet, prefix_len) {
            // The network of a NIC may have this subnet.
            if let Ok(place) = nic_to(ip, source)
                && is_own(place.address)
            {
                return by_nic(place, &format!("{} is in {subnet}/{prefix_len}, as this address", place.device));
            }
            return chosen(LinkKind::Wire, format!("{subnet}/{prefix_len} is the subnet of devices on a wire"));
        }
        let near = |device: &&Descriptor| {
            device.link == LinkKind::Wire
                && matches!(device.ip, IpAddr::V4(other) if shares_subnet(v4, other, device.prefix_len))
        };
        match published.iter().find(near) {
            Some(device) => chosen(LinkKind::Wire, format!("it is in the subnet of {}", device.name)),
            None => by_network(ip, source, "no device on the wire can have this address"),
        }
    }
}

/// The link to a host of the kernel's network, because of `why`: by an RDMA NIC if one is on the way there, and can be used; else by
/// UDP.
fn by_network(ip: IpAddr, source: Option<IpAddr>, why: &str) -> Chosen {
    match nic_to(ip, source) {
        Ok(place) => by_nic(place, why),
        Err(None) => Chosen { link: LinkKind::Udp, why: why.into() },
        Err(Some(but)) => Chosen { link: LinkKind::Udp, why: format!("{why}, and {but}") },
    }
}

fn by_nic(Place { device, address, .. }: Place, why: &str) -> Chosen {
    Chosen { link: LinkKind::Verbs, why: format!("{why}, and {device} has {address}, from which packets leave") }
}

/// The RDMA NIC by which packets to `ip` leave, from `source` if that is named; or why there is one that is not used.
fn nic_to(ip: IpAddr, source: Option<IpAddr>) -> Result<Place, Option<String>> {
    let local = match source {
        Some(source) => source,
        None => Route::to(ip).map_err(|_| None)?.local,
    };
    // A packet to this machine itself leaves by no NIC.
    if local == ip {
        return Err(None);
    }
    let place = Place::of(local, None).map_err(|error| match error {
        VerbsError::PortDown { .. } => Some(error.to_string()),
        _ => None,
    })?;
    nacelle_verbs::available().map_err(|error| Some(format!("{} is not used: {error}", place.device)))?;
    Ok(place)
}

/// An engine on an RDMA NIC.
pub(crate) fn on_nic(ip: IpAddr, device: Option<DeviceName>, options: &Options) -> Result<Engine, Error> {
    if options.capture.is_some() || !options.impairments.is_none() {
        return Err(Error::invalid(
            "the packets are the RDMA NIC's: they can be neither captured nor impaired here; use --link udp for that",
        ));
    }
    let local = match options.source {
        Some((source, _)) => source,
        None => Route::to(ip)?.local,
    };
    if ip.is_ipv4() != local.is_ipv4() {
        return Err(Error::invalid(format!("{ip} cannot be reached from {local}: they are of different families")));
    }
    let opened = Place::of(local, device).and_then(Nic::open);
    let (nic, inlet) = opened.map_err(|error| Error::Link(link_error(&error)))?;
    let spin = options.spin.unwrap_or(SPIN);
    Ok(Engine::new(Medium::Nic { inlet: Box::new(inlet), spin }, nic.into(), spin)?)
}

/// An engine on a link of frames, without an address.
pub(crate) fn on_frames(link: Box<dyn Link>, ip: Ipv4Addr, options: &Options) -> Result<Engine, Error> {
    let link: Box<dyn Link> =
        if options.impairments.is_none() { link } else { Box::new(Impaired::new(link, options.impairments)) };
    let mut link = Captured::new(link);
    if let Some(writer) = capture(ip.into(), options)? {
        link.recorder().start(writer);
    }
    let endpoint =
        nacelle_roce::Endpoint::new(address::config(options.mtu.unwrap_or(mtu::LONGEST), options.resolve_timeout));
    let link: Box<dyn Link> = Box::new(link);
    let medium = Medium::Packets(Box::new(AnyMedium::Frames(Frames::new(link))));
    Ok(Engine::new(medium, endpoint.into(), options.spin.unwrap_or_default())?)
}

/// An engine on a UDP socket of its own.
pub(crate) fn on_udp(ip: IpAddr, options: &Options) -> Result<Engine, Error> {
    let link = match options.source {
        Some((source, _)) => UdpLink::bind(source)?,
        None => UdpLink::for_peer(ip)?,
    };
    check(ip, link.local().ip())?;
    let ip_mtu = options.mtu.unwrap_or(mtu::LONGEST).min(Route::to(ip)?.ip_mtu);
    on_datagrams(link, ip, ip_mtu, options)
}

/// An engine that shares memory with the device at `ip`, which publishes itself on the wire.
pub(crate) fn on_shm(ip: IpAddr, wire: &WireDir, options: &Options) -> Result<Engine, Error> {
    let missing =
        || Error::invalid(format!("no device at {ip} publishes itself on the wire {}", wire.path().display()));
    let device = discover::published(wire).into_iter().find(|device| device.ip == ip).ok_or_else(missing)?;
    // Damage that is added here is to be noticed.
    let icrc = if options.impairments.is_none() { Icrc::LeftOut } else { Icrc::Kept };
    let link = ShmLink::open(wire, &device.name, icrc)?;
    if link.device() != ip {
        return Err(missing());
    }
    on_datagrams(link, ip, options.mtu.unwrap_or(mtu::LONGEST), options)
}

fn on_datagrams(
    link: impl DatagramLink + 'static,
    ip: IpAddr,
    ip_mtu: usize,
    options: &Options,
) -> Result<Engine, Error> {
    let link: Box<dyn DatagramLink> = if options.impairments.is_none() {
        Box::new(link)
    } else {
        Box::new(ImpairedDatagrams::new(link, options.impairments))
    };
    let spin = options.spin.unwrap_or(SPIN);
    let mut medium = DatagramMedium::new(link).with_spin(spin);
    if let Some(writer) = capture(ip, options)? {
        medium.recorder().start(writer);
    }
    let interface = UdpInterface::new(medium.local(), ip_mtu);
    let config = TransportConfig::new(interface.network(), address::guid(), address::seed());
    let endpoint: Endpoint = nacelle_roce::Endpoint::over_udp(interface, config).into();
    Ok(Engine::new(Medium::Packets(Box::new(AnyMedium::Datagrams(medium))), endpoint, spin)?)
}

/// Begins the capture, if there is to be one.
fn capture(ip: IpAddr, options: &Options) -> Result<Option<PcapngWriter<std::fs::File>>, LinkError> {
    let begin = |path| PcapngWriter::create(path, &["caller"], &format!("Nacelle caller of the device at {ip}"));
    options.capture.as_deref().map(begin).transpose()
}

/// Refuses what cannot be reached: the other family, and a peer on this machine that has no socket on the port. The kernel says the
/// latter at once (ICMP port unreachable), in answer to a datagram that every RoCE peer drops. If `local`, where this caller's
/// socket is, is the peer's address, nobody else listens there.
fn check(peer: IpAddr, local: IpAddr) -> Result<(), Error> {
    if peer.is_ipv4() != local.is_ipv4() {
        return Err(Error::invalid(format!("{peer} cannot be reached from {local}: they are of different families")));
    }
    if peer == local {
        return Err(Error::PortClosed { ip: peer });
    }
    match PortProbe::send(peer, local, Duration::ZERO) {
        Ok(PortProbe::Closed) => Err(Error::PortClosed { ip: peer }),
        // What is wrong with the way, the attempt to use it will say.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_not_its_own_device() {
        let ip: IpAddr = [127, 0, 9, 95].into();
        let options = Options { source: Some((ip, 8)), ..Options::default() };
        assert!(matches!(on_udp(ip, &options).err(), Some(Error::PortClosed { ip: closed }) if closed == ip));
    }

    #[test]
    fn links_are_named_by_texts() {
        let named = |text: &str| text.parse::<LinkChoice>();
        assert_eq!(named("verbs").unwrap(), LinkChoice::Verbs(None));
        assert_eq!(named("verbs:rxe0").unwrap(), LinkChoice::Verbs(Some("rxe0".parse().unwrap())));
        assert!(matches!(named("packet:eth0"), Ok(LinkChoice::Packet(_))));
        assert!(matches!(named("xdp:eth0"), Ok(LinkChoice::Xdp(_))));
        for bad in ["verbs:", "verbs:a/b", "packet:", "xdp", "xdp:", "nic", "udp:eth0"] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_nic_shows_no_packets() {
        let options = Options { capture: Some("/dev/null".into()), ..Options::default() };
        let error = on_nic([192, 0, 2, 1].into(), None, &options).err().unwrap();
        assert!(error.to_string().contains("captured"), "{error}");
    }

    #[test]
    fn a_nic_that_is_not_there_is_an_error_with_a_hint() {
        let device = "absent0".parse().unwrap();
        let error = on_nic([127, 0, 0, 1].into(), Some(device), &Options::default()).err().unwrap();
        assert!(error.to_string().contains("there is no RDMA device absent0"), "{error}");
        assert!(error.hint().contains("rdma link"), "{}", error.hint());
    }

    #[test]
    fn the_address_chooses_the_link() {
        let choose = |ip: &str, choice: LinkChoice| choice.resolve(ip.parse().unwrap(), None, None);
        for (ip, why) in [
            ("127.0.0.2", "loopback"),
            ("127.9.9.9", "loopback"),
            ("::1", "loopback"),
            ("2001:db8::1", "IPv4 only"),
            ("192.0.2.1", "no device on the wire"),
            ("10.78.0.1", "no device on the wire"),
        ] {
            let chosen = choose(ip, LinkChoice::Auto);
            assert_eq!(chosen.link, LinkKind::Udp, "{ip}");
            assert!(chosen.why.contains(why), "{ip}: {}", chosen.why);
        }
        for ip in ["10.77.0.2", "10.77.200.1"] {
            let chosen = choose(ip, LinkChoice::Auto);
            assert_eq!(chosen.link, LinkKind::Wire, "{ip}");
            assert!(chosen.why.contains("10.77.0.0/16"), "{ip}: {}", chosen.why);
        }
        assert_eq!(choose("127.0.0.2", LinkChoice::Wire).link, LinkKind::Wire);
        assert_eq!(choose("10.77.0.2", LinkChoice::Udp).link, LinkKind::Udp);
        assert_eq!(choose("10.77.0.2", LinkChoice::Shm).link, LinkKind::Shm);
    }
}
