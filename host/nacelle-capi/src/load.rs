// SPDX-License-Identifier: Apache-2.0
//! How busy a device is.

use nacelle::Error;

use crate::edge::guard;
use crate::handle::{DeviceHandle, registry};
use crate::sized::{self, Growing};

/// `nacelle_load`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CLoad {
    size: usize,
    connections: u64,
    memory_bytes: u64,
    memory_held: u64,
    calls: u64,
    running: u64,
    waiting: u64,
}
// SAFETY: numbers only, without padding.
unsafe impl Growing for CLoad {}

impl From<nacelle::Load> for CLoad {
    fn from(load: nacelle::Load) -> Self {
        Self {
            size: 0,
            connections: load.connections,
            memory_bytes: load.memory_bytes,
            memory_held: load.memory_held,
            calls: load.calls,
            running: load.running,
            waiting: load.waiting,
        }
    }
}

/// See `nacelle.h`.
///
/// # Safety
/// `load` begins with its size and may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_device_load(device: DeviceHandle, load: *mut CLoad) -> u32 {
    guard(|| {
        let device = registry().devices.get(device.id)?;
        let silent = || Error::Unsupported { ip: device.ip(), what: "record of the device's load" };
        let now = device.load()?.ok_or_else(silent)?;
        // SAFETY: as this function.
        unsafe { sized::write(load, now.into(), "nacelle_load") }
    })
}
