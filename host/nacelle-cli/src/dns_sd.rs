// SPDX-License-Identifier: Apache-2.0
//! Devices that make themselves known on a network, by DNS-SD over multicast DNS: docs/reference/discovery.md.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mdns_sd::{Error, IfKind, ServiceDaemon, ServiceEvent, ServiceInfo};
use nacelle::Descriptor;

use crate::failure::Failure;

/// The service of a device.
const SERVICE: &str = "_nacelle._udp.local.";
/// What the TXT record of a device says: the RTL's says the same (`mdns_pkg.sv`).
const PROPERTIES: [(&str, &str); 3] = [("txtvers", "1"), ("device", "nacelle"), ("contract", "0.1")];
/// How long a goodbye may take.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

fn failed(error: Error) -> Failure {
    Failure::usage(
        format!("multicast DNS does not work: {error}"),
        "does another program keep UDP port 5353 to itself? It must share it (SO_REUSEPORT)",
    )
}

/// The devices that answer a question to all hosts of the networks that this machine is in within `wait`: addresses, and names.
pub(crate) fn browse(wait: Duration) -> Result<Vec<(SocketAddr, String)>, Failure> {
    let daemon = ServiceDaemon::new().map_err(failed)?;
    let events = daemon.browse(SERVICE).map_err(failed)?;
    let deadline = Instant::now() + wait;
    let mut found = Vec::new();
    while let Ok(event) = events.recv_deadline(deadline) {
        if let ServiceEvent::ServiceResolved(device) = event {
            let name = device.fullname.strip_suffix(SERVICE).unwrap_or(&device.fullname).trim_end_matches('.');
            let port = device.port;
            found.extend(device.addresses.iter().map(|ip| (SocketAddr::new(ip.to_ip_addr(), port), name.to_owned())));
        }
    }
    // Its thread ends with the process if it does not end by itself.
    let _ = daemon.shutdown();
    Ok(found)
}

/// A device that is known on its network as long as this lives.
pub(crate) struct Announced {
    daemon: ServiceDaemon,
    name: String,
}

impl Announced {
    /// Makes the device known on the network of its address.
    pub(crate) fn start(device: &Descriptor) -> Result<Self, Failure> {
        // Devices of several machines may have one name, but not one address.
        let label = format!("nacelle-{}-{}", device.name, device.ip.to_string().replace(['.', ':'], "-"));
        let host = format!("{label}.local.");
        let info = ServiceInfo::new(SERVICE, &label, &host, device.ip, device.port, &PROPERTIES[..]).map_err(failed)?;
        let name = info.get_fullname().to_owned();
        let daemon = ServiceDaemon::new().map_err(failed)?;
        // Only the network that it can be reached by.
        daemon.disable_interface(IfKind::All).map_err(failed)?;
        daemon.enable_interface(IfKind::Addr(interface_of(device.ip))).map_err(failed)?;
        daemon.register(info).map_err(failed)?;
        Ok(Self { daemon, name })
    }
}

/// The address by which the interface is known: all of 127.0.0.0/8 is 127.0.0.1's.
fn interface_of(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_loopback() => std::net::Ipv4Addr::LOCALHOST.into(),
        ip => ip,
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Ok(gone) = self.daemon.unregister(&self.name) {
            let _ = gone.recv_timeout(GOODBYE_WITHIN);
        }
        let _ = self.daemon.shutdown();
    }
}
