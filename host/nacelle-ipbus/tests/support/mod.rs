// SPDX-License-Identifier: Apache-2.0
//! Registers, and settings of a server, for the tests.

use std::time::Duration;

use nacelle_ipbus::{Budget, Bus, BusError, Permission, ServerConfig, SourceFilter};

/// Where the token is written.
pub(crate) const LOGIN: u32 = 0x70;
/// Where a client logs out.
pub(crate) const LOGOUT: u32 = 0x80;
/// The token.
pub(crate) const TOKEN: [u8; 16] = *b"only for friends";
/// From here on a login is needed; below, reading is free.
pub(crate) const AUTHORISED: u32 = 0x1000;
/// From here on nobody may do anything.
pub(crate) const LOCAL: u32 = 0x2000;

/// Registers in three areas.
pub(crate) struct Registers(pub(crate) Vec<u32>);

impl Registers {
    pub(crate) fn new() -> Self {
        Self((0..0x3000 / 4).collect())
    }
}

impl Bus for Registers {
    fn permission(&self, address: u32, write: bool) -> Permission {
        match address {
            ..AUTHORISED if !write => Permission::Public,
            ..LOCAL => Permission::Authorised,
            _ => Permission::Local,
        }
    }

    fn read(&mut self, address: u32) -> Result<u32, BusError> {
        self.0.get(address as usize / 4).copied().ok_or(BusError)
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), BusError> {
        *self.0.get_mut(address as usize / 4).ok_or(BusError)? = value;
        Ok(())
    }
}

/// Four clients, two buffers each, everybody is answered, however much they send.
pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        clients: 4,
        buffers: 2,
        mtu: 1472,
        in_use: Duration::from_secs(2),
        session: Duration::from_secs(60),
        token: Some(TOKEN),
        login: LOGIN,
        logout: LOGOUT,
        sources: SourceFilter { prefix: [0, 0, 0, 0].into(), bits: 0 },
        strangers: Budget { burst: 8, pause: Duration::ZERO },
    }
}
