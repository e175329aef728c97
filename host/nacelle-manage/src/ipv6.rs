// SPDX-License-Identifier: Apache-2.0
//! The IPv6 addresses of a device (docs/reference/addresses.md).

use std::fmt;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use crate::Registers;
use crate::map::device;

/// Which IPv6 addresses a device is to have: `IPV6_MODE` and `IPV6_FIXED_0` to `IPV6_FIXED_3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ipv6Mode {
    /// None.
    #[default]
    Off,
    /// The link-local one.
    LinkLocal,
    /// That, and one of the prefix that a router offers.
    Router,
    /// The link-local one and this one; and the router of the network, if there is one.
    Static(Ipv6Addr),
}

impl Ipv6Mode {
    /// The registers to write, in this order, and their values. The address can only be set before the device is enabled.
    #[must_use]
    pub fn settings(self) -> [(crate::map::Register, u32); 5] {
        let (on, autonomous) = (device::IPV6_MODE_ON.mask(), device::IPV6_MODE_AUTONOMOUS.mask());
        let (mode, address) = match self {
            Self::Off => (0, 0),
            Self::LinkLocal => (on, 0),
            Self::Router => (on | autonomous, 0),
            Self::Static(address) => (on | autonomous, address.to_bits()),
        };
        let word = |shift: u32| (address >> shift) as u32;
        [
            (device::IPV6_FIXED_0, word(96)),
            (device::IPV6_FIXED_1, word(64)),
            (device::IPV6_FIXED_2, word(32)),
            (device::IPV6_FIXED_3, word(0)),
            (device::IPV6_MODE, mode),
        ]
    }
}

/// Where the global IPv6 address of a device has come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ipv6Origin {
    /// There is none.
    None,
    /// It was given to the device.
    Static,
    /// It is of the prefix that a router offers.
    Router,
}

/// The IPv6 addresses of a device, and how it has come to them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipv6State {
    /// The link-local address; `None` while there is none.
    pub link_local: Option<Ipv6Addr>,
    /// The global one.
    pub global: Option<Ipv6Addr>,
    /// Where that has come from.
    pub origin: Ipv6Origin,
    /// It should get no new connections.
    pub deprecated: bool,
    /// Seconds until it goes; `None` if it does not.
    pub valid_left: Option<u32>,
    /// Where packets for other networks go.
    pub router: Option<Ipv6Addr>,
}

impl Ipv6State {
    /// Reads it from a device's registers; `None` if the device was built without IPv6.
    ///
    /// # Errors
    /// If the device has no registers, or does not answer.
    pub fn read<R: Registers>(registers: &mut R) -> Result<Option<Self>, R::Error> {
        let wanted = [
            device::IPV6_STATE,
            device::IPV6_VALID_LEFT,
            device::IPV6_GLOBAL_0,
            device::IPV6_GLOBAL_1,
            device::IPV6_GLOBAL_2,
            device::IPV6_GLOBAL_3,
            device::IPV6_ROUTER_HI,
            device::IPV6_ROUTER_LO,
            device::IPV6_ROUTER_LEFT,
            device::MAC_HI,
            device::MAC_LO,
        ];
        let values = registers.read_all(&wanted.map(|register| register.at(device::BASE)))?;
        let value = |index: usize| values.get(index).copied().unwrap_or_default();
        let state = value(0);
        if device::IPV6_STATE_BUILT.of(state) == 0 {
            return Ok(None);
        }
        let wide = |high: usize| u64::from(value(high)) << 32 | u64::from(value(high + 1));
        let origin = match device::IPV6_STATE_ORIGIN.of(state) {
            0 => Ipv6Origin::None,
            1 => Ipv6Origin::Static,
            _ => Ipv6Origin::Router,
        };
        let global = Ipv6Addr::from_bits(u128::from(wide(2)) << 64 | u128::from(wide(4)));
        Ok(Some(Self {
            link_local: (device::IPV6_STATE_HAS_LOCAL.of(state) != 0).then(|| link_local(interface_id(wide(9)))),
            global: Some(global).filter(|_| origin != Ipv6Origin::None),
            origin,
            deprecated: device::IPV6_STATE_DEPRECATED.of(state) != 0,
            valid_left: Some(value(1)).filter(|left| origin == Ipv6Origin::Router && *left != u32::MAX),
            router: (value(8) != 0).then(|| link_local(wide(6))),
        }))
    }
}

/// The interface identifier that follows from a MAC address (RFC 4291, appendix A).
fn interface_id(mac: u64) -> u64 {
    (mac >> 24 ^ 0x02_0000) << 40 | 0xff_fe00_0000 | mac & 0xff_ffff
}

fn link_local(identifier: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | u128::from(identifier))
}

impl fmt::Display for Ipv6State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(global) = self.global {
            let origin = if self.origin == Ipv6Origin::Static { "static" } else { "by a router's prefix" };
            let left = self.valid_left.map(|seconds| format!(", for {seconds} s more")).unwrap_or_default();
            let deprecated = if self.deprecated { ", deprecated" } else { "" };
            parts.push(format!("{global}/64, {origin}{left}{deprecated}"));
        }
        parts.extend(self.link_local.map(|address| format!("{address}/64")));
        parts.extend(self.router.map(|address| format!("router {address}")));
        if parts.is_empty() { f.write_str("none") } else { f.write_str(&parts.join("; ")) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Words(BTreeMap<u32, u32>);

    impl Registers for Words {
        type Error = ();

        fn read(&mut self, address: u32) -> Result<u32, ()> {
            Ok(self.0.get(&address).copied().unwrap_or_default())
        }

        fn write(&mut self, _address: u32, _value: u32) -> Result<(), ()> {
            Err(())
        }
    }

    fn words(values: &[(crate::map::Register, u32)]) -> Words {
        Words(values.iter().map(|(register, value)| (register.at(device::BASE), *value)).collect())
    }

    #[test]
    fn a_device_without_ipv6_says_nothing() {
        assert_eq!(Ipv6State::read(&mut words(&[])), Ok(None));
        let state = Ipv6State::read(&mut words(&[(device::IPV6_STATE, 1 << 31)])).unwrap().unwrap();
        assert_eq!(state.to_string(), "none");
    }

    #[test]
    fn addresses_are_read() {
        let state = Ipv6State::read(&mut words(&[
            (device::IPV6_STATE, 1 << 31 | 1 << 9 | 1 << 8 | 2),
            (device::IPV6_VALID_LEFT, 77),
            (device::IPV6_GLOBAL_0, 0x2001_0db8),
            (device::IPV6_GLOBAL_3, 9),
            (device::IPV6_ROUTER_LO, 5),
            (device::IPV6_ROUTER_LEFT, 1800),
            (device::MAC_HI, 0x024e),
            (device::MAC_LO, 0x414d_0002),
        ]));
        let state = state.unwrap().unwrap();
        assert_eq!(state.link_local, Some("fe80::4e:41ff:fe4d:2".parse().unwrap()));
        assert_eq!(
            state.to_string(),
            "2001:db8::9/64, by a router's prefix, for 77 s more, deprecated; fe80::4e:41ff:fe4d:2/64; router fe80::5"
        );
    }

    #[test]
    fn an_address_is_set_before_it_is_used() {
        let settings = Ipv6Mode::Static("2001:db8::9".parse().unwrap()).settings();
        assert_eq!(settings.map(|(_, value)| value), [0x2001_0db8, 0, 0, 9, 3]);
        assert_eq!(settings[4].0.offset, device::IPV6_MODE.offset);
    }
}
