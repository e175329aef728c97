// SPDX-License-Identifier: Apache-2.0
//! The IPv4 address of a device that gets one by itself (docs/reference/addresses.md).

use std::fmt;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::Registers;
use crate::map::device;

/// Where the address is to come from: `ADDRESS_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum AddressMode {
    /// It is the one that the device is given.
    #[default]
    Static,
    /// From a DHCP server.
    Dhcp,
    /// The same; while no server answers, the one that the device is given.
    DhcpOrStatic,
    /// The same; while no server answers, one of 169.254/16.
    DhcpOrLinkLocal,
}

impl AddressMode {
    const ALL: [Self; 4] = [Self::Static, Self::Dhcp, Self::DhcpOrStatic, Self::DhcpOrLinkLocal];
}

impl From<AddressMode> for u32 {
    fn from(mode: AddressMode) -> Self {
        mode as Self
    }
}

/// Where an address has come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressOrigin {
    /// There is none.
    None,
    /// It was given to the device.
    Static,
    /// From a DHCP server.
    Dhcp,
    /// The device has chosen it.
    LinkLocal,
}

/// The state of a DHCP client (RFC 2131, 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DhcpState {
    /// Not used.
    Off,
    /// About to ask.
    Init,
    /// Looks for servers.
    Selecting,
    /// Has asked one for its offer.
    Requesting,
    /// Finds out whether another host has the address.
    Checking,
    /// Has a lease.
    Bound,
    /// Asks its server to prolong it.
    Renewing,
    /// Asks all servers.
    Rebinding,
}

/// The address of a device, and how it has come to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressState {
    /// What was asked for.
    pub mode: AddressMode,
    /// Where it has come from.
    pub origin: AddressOrigin,
    /// The address; `None` while there is none.
    pub ip: Option<Ipv4Addr>,
    /// Length of its subnet's prefix, in bits.
    pub prefix_len: u8,
    /// Where packets for other subnets go.
    pub gateway: Option<Ipv4Addr>,
    /// What the DHCP client does.
    pub dhcp: DhcpState,
    /// The DHCP server of the lease.
    pub server: Option<Ipv4Addr>,
    /// Seconds until the lease ends; `None` if there is none, or if it does not end.
    pub lease_left: Option<u32>,
}

impl AddressState {
    /// Reads it from a device's registers.
    ///
    /// # Errors
    /// If the device has no registers, or does not answer.
    pub fn read<R: Registers>(registers: &mut R) -> Result<Self, R::Error> {
        let wanted = [
            device::ADDRESS_MODE,
            device::ADDRESS_STATE,
            device::ADDRESS_IP,
            device::ADDRESS_PREFIX,
            device::ADDRESS_GATEWAY,
            device::LEASE_LEFT,
            device::DHCP_SERVER,
        ];
        let values = registers.read_all(&wanted.map(|register| register.at(device::BASE)))?;
        let value = |index: usize| values.get(index).copied().unwrap_or_default();
        let some = |index: usize| Some(Ipv4Addr::from_bits(value(index))).filter(|ip| !ip.is_unspecified());
        let dhcp = match device::ADDRESS_STATE_DHCP.of(value(1)) {
            0 => DhcpState::Off,
            1 => DhcpState::Init,
            2 => DhcpState::Selecting,
            3 => DhcpState::Requesting,
            4 => DhcpState::Checking,
            5 => DhcpState::Bound,
            6 => DhcpState::Renewing,
            _ => DhcpState::Rebinding,
        };
        let leased =
            matches!(dhcp, DhcpState::Checking | DhcpState::Bound | DhcpState::Renewing | DhcpState::Rebinding);
        Ok(Self {
            mode: AddressMode::ALL.get(value(0) as usize).copied().unwrap_or_default(),
            origin: match device::ADDRESS_STATE_ORIGIN.of(value(1)) {
                0 => AddressOrigin::None,
                1 => AddressOrigin::Static,
                2 => AddressOrigin::Dhcp,
                _ => AddressOrigin::LinkLocal,
            },
            ip: some(2),
            prefix_len: value(3) as u8,
            gateway: some(4),
            dhcp,
            server: some(6).filter(|_| leased),
            lease_left: Some(value(5)).filter(|left| leased && *left != device::LEASE_LEFT.mask),
        })
    }
}

impl fmt::Display for AddressState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asks = match self.dhcp {
            DhcpState::Off => "",
            DhcpState::Bound => ", DHCP has a lease",
            DhcpState::Checking => ", DHCP probes its address",
            DhcpState::Renewing | DhcpState::Rebinding => ", DHCP renews its lease",
            DhcpState::Init | DhcpState::Selecting | DhcpState::Requesting => ", DHCP asks for a lease",
        };
        match (self.ip, self.origin) {
            (None, _) | (_, AddressOrigin::None) => write!(f, "none{asks}"),
            (Some(ip), AddressOrigin::Static) => write!(f, "{ip}/{}, static{asks}", self.prefix_len),
            (Some(ip), AddressOrigin::LinkLocal) => write!(f, "{ip}/{}, link-local{asks}", self.prefix_len),
            (Some(ip), AddressOrigin::Dhcp) => {
                write!(f, "{ip}/{}, by DHCP", self.prefix_len)?;
                if let Some(server) = self.server {
                    write!(f, " from {server}")?;
                }
                match self.lease_left {
                    Some(seconds) => write!(f, ", for {seconds} s more"),
                    None => Ok(()),
                }
            }
        }
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
            self.0.get(&address).copied().ok_or(())
        }

        fn write(&mut self, _address: u32, _value: u32) -> Result<(), ()> {
            Err(())
        }
    }

    fn words(values: [u32; 7]) -> Words {
        let registers = [
            device::ADDRESS_MODE,
            device::ADDRESS_STATE,
            device::ADDRESS_IP,
            device::ADDRESS_PREFIX,
            device::ADDRESS_GATEWAY,
            device::LEASE_LEFT,
            device::DHCP_SERVER,
        ];
        Words(registers.iter().map(|register| register.at(device::BASE)).zip(values).collect())
    }

    #[test]
    fn a_lease_is_read() {
        let state = AddressState::read(&mut words([1, 0x502, 0x0a00_004d, 24, 0x0a00_00fe, 77, 0x0a00_0001])).unwrap();
        assert_eq!((state.mode, state.origin, state.dhcp), (AddressMode::Dhcp, AddressOrigin::Dhcp, DhcpState::Bound));
        assert_eq!(state.ip, Some(Ipv4Addr::new(10, 0, 0, 77)));
        assert_eq!(state.gateway, Some(Ipv4Addr::new(10, 0, 0, 254)));
        assert_eq!(state.lease_left, Some(77));
        assert_eq!(state.to_string(), "10.0.0.77/24, by DHCP from 10.0.0.1, for 77 s more");
    }

    #[test]
    fn a_lease_may_have_no_end_and_a_fall_back_has_none() {
        let forever = AddressState::read(&mut words([1, 0x502, 0x0a00_004d, 24, 0, 0xff_ffff, 0x0a00_0001])).unwrap();
        assert_eq!((forever.lease_left, forever.gateway), (None, None));
        let local = AddressState::read(&mut words([3, 0x203, 0xa9fe_0102, 16, 0, 0, 0x0a00_0001])).unwrap();
        assert_eq!((local.server, local.lease_left), (None, None));
        assert_eq!(local.to_string(), "169.254.1.2/16, link-local, DHCP asks for a lease");
        let none = AddressState::read(&mut words([2, 0x100, 0, 0, 0, 0, 0])).unwrap();
        assert_eq!((none.ip, none.to_string().as_str()), (None, "none, DHCP asks for a lease"));
        assert_eq!(u32::from(none.mode), 2);
    }
}
