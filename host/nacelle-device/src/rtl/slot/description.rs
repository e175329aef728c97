// SPDX-License-Identifier: Apache-2.0
//! What the functions of the simulated device say in their configuration spaces.

use nacelle_slot::config_space::{Bar, Description, Identity, Link, Msix, Place, VendorCapability, WINDOW_BYTES};
use nacelle_wire::MacAddr;

use super::NETWORK_CARD;
use crate::sim::SlotFacts;

/// The link that a function says it has, as the model is by default.
const LINK: Link = Link { generation: 3, lanes: 16 };
/// The longest payload of the model, in bytes.
const MAX_PAYLOAD: u16 = 256;
/// The BAR with the registers and the MSI-X table.
pub(super) const REGISTERS: u8 = 0;

/// A network device of virtio (virtio 1.2, 4.1.2.1): device 0x1040 and the number of the kind, which is 1. A driver looks at no more.
const VIRTIO_NET: Identity = Identity {
    vendor: 0x1af4,
    device: 0x1041,
    subsystem_vendor: 0x1af4,
    subsystem: 0x0001,
    revision: 1,
    class: 0x02_0000,
    serial: 0,
};

/// Kinds of virtio's capabilities (4.1.4).
mod kind {
    pub(super) const COMMON: u8 = 1;
    pub(super) const NOTIFY: u8 = 2;
    pub(super) const ISR: u8 = 3;
    pub(super) const DEVICE: u8 = 4;
    pub(super) const PCI: u8 = 5;
}
/// Where in the registers each of these is and how many bytes it has (docs/reference/virtio-net.md), as `rtl/virtio/virtio_pkg.sv`.
const COMMON: (u32, u32) = (0x000, 64);
const ISR: (u32, u32) = (0x040, 1);
const DEVICE: (u32, u32) = (0x080, 24);
const NOTIFY: (u32, u32) = (0x100, 0x80);
/// Bytes from the notifications of one queue to the next one's.
const NOTIFY_MULTIPLIER: u32 = 4;

/// What function `number` is. Its serial number is made of the MAC address, as the standard has it for an EUI-64.
pub(super) fn description(number: u8, facts: &SlotFacts, MacAddr([a, b, c, d, e, f]): MacAddr) -> Description {
    let bar = |(index, size): (usize, &u64)| Bar {
        index: index as u8,
        size: *size,
        wide: true,
        prefetchable: index != usize::from(REGISTERS),
        sizes: 0,
    };
    let place = |offset: u32| Place { bar: REGISTERS, offset: offset.into() };
    let is_card = number == NETWORK_CARD;
    let identity = if is_card { VIRTIO_NET } else { Identity::default() };
    Description {
        identity: Identity { serial: u64::from_be_bytes([a, b, c, 0xff, 0xfe, d, e, f]), ..identity },
        bars: facts.bar_bytes.iter().enumerate().filter(|(_, size)| **size > 0).map(bar).collect(),
        msix: Msix {
            vectors: facts.vectors as u16,
            table: place(facts.msix_table),
            pending: place(facts.msix_pending),
        },
        vendor: if is_card { virtio_capabilities() } else { Vec::new() },
        link: LINK,
        max_payload: MAX_PAYLOAD,
    }
}

/// Where a driver of virtio finds the registers (4.1.4).
fn virtio_capabilities() -> Vec<VendorCapability> {
    let structure = |kind: u8, (offset, bytes): (u32, u32), more: &[u8]| {
        let mut body = vec![kind, REGISTERS, 0, 0, 0];
        body.extend(offset.to_le_bytes().into_iter().chain(bytes.to_le_bytes()).chain(more.iter().copied()));
        VendorCapability { body, window: false }
    };
    let mut window = vec![0; WINDOW_BYTES];
    window[0] = kind::PCI;
    vec![
        structure(kind::COMMON, COMMON, &[]),
        structure(kind::NOTIFY, NOTIFY, &NOTIFY_MULTIPLIER.to_le_bytes()),
        structure(kind::ISR, ISR, &[]),
        structure(kind::DEVICE, DEVICE, &[]),
        VendorCapability { body: window, window: true },
    ]
}
