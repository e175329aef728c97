// SPDX-License-Identifier: Apache-2.0
//! Names and addresses of devices, each held by one at a time.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use nacelle_link::{Claim, LinkError, WireDir};
use nacelle_manage::DeviceKind;

use crate::{DeviceError, Identity};

/// Where a device is on a wire. No other device gets its name and address for as long as this value, or a copy of it, lives.
#[derive(Debug, Clone)]
pub struct Place<I = Identity> {
    /// The wire.
    pub wire: WireDir,
    /// The device's name there.
    pub name: String,
    /// Its addresses: for a device that is reached by UDP the one of this machine that it uses.
    pub identity: I,
    _claims: Arc<[Claim]>,
}

impl Place {
    /// Takes a name and an address that no device on the wire has: those that are named, else the first free ones. Of several
    /// that look at the same time, each gets others.
    ///
    /// # Errors
    /// [`DeviceError::Taken`] if a named one is taken; [`DeviceError::Link`] if the wire's directory cannot be used.
    pub fn find(
        wire: &WireDir,
        kind: DeviceKind,
        name: Option<&str>,
        address: Option<(Ipv4Addr, u8)>,
    ) -> Result<Self, DeviceError> {
        let claim_ip = |ip: Ipv4Addr| wire.claim(&format!("{ip}.address"));
        let (name, name_claim) = take_name(wire, kind, name)?;
        let (first, default_len) = DEFAULT_ADDRESS;
        let (ip, ip_claim) = match address {
            Some((ip, _)) => (ip, claim_ip(ip)?),
            None => first_free((first.to_bits()..).map(Ipv4Addr::from_bits), |ip| claim_ip(*ip))?,
        };
        let Some(ip_claim) = ip_claim else { return Err(DeviceError::Taken { what: format!("the address {ip}") }) };
        let prefix_len = address.map_or(default_len, |(_, prefix_len)| prefix_len);
        let [_, b, c, d] = ip.octets();
        // Locally administered, and different for each address of a /8.
        let mac = [0x02, 0x4e, 0x41, b, c, d].into();
        let identity = Identity { mac, ip, prefix_len, gateway: None };
        Ok(Self { wire: wire.clone(), name, identity, _claims: Arc::new([name_claim, ip_claim]) })
    }
}

impl Place<IpAddr> {
    /// Takes a name for a device that is reached by UDP at this address: the one that is named, else the first free one.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn by_udp(wire: &WireDir, kind: DeviceKind, name: Option<&str>, address: IpAddr) -> Result<Self, DeviceError> {
        let (name, claim) = take_name(wire, kind, name)?;
        // The kernel keeps others from the address.
        Ok(Self { wire: wire.clone(), name, identity: address, _claims: Arc::new([claim]) })
    }
}

fn take_name(wire: &WireDir, kind: DeviceKind, name: Option<&str>) -> Result<(String, Claim), DeviceError> {
    let claim = |name: &str| wire.claim(&format!("{name}.device"));
    let (name, taken) = match name {
        Some(name) => (name.to_owned(), claim(name)?),
        None => first_free((0..).map(|number| format!("{kind}{number}")), |name| claim(name))?,
    };
    match taken {
        Some(claim) => Ok((name, claim)),
        None => Err(DeviceError::Taken { what: format!("the name {name}") }),
    }
}

/// The first that can be claimed.
fn first_free<T>(
    all: impl Iterator<Item = T>,
    claim: impl Fn(&T) -> Result<Option<Claim>, LinkError>,
) -> Result<(T, Option<Claim>), LinkError> {
    for one in all {
        let claim = claim(&one)?;
        if claim.is_some() {
            return Ok((one, claim));
        }
    }
    unreachable!("there are more names and addresses than devices")
}

/// The address of the first device on a wire, and the length of its prefix.
pub const DEFAULT_ADDRESS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 77, 0, 2), 16);
