// SPDX-License-Identifier: Apache-2.0
//! The configuration space as software walks it, and what it may and may not write.

use nacelle_slot::config_space::{
    Bar, CONFIG_BYTES, ConfigError, ConfigEvent, ConfigSpace, Description, Identity, Link, Msix, Place, Power,
    VendorCapability, WINDOW_BYTES,
};
use proptest::prelude::*;

fn description() -> Description {
    let fixed = |index, size, wide| Bar { index, size, wide, prefetchable: false, sizes: 0 };
    Description {
        identity: Identity { revision: 3, class: 0x02_0001, serial: 0x0011_2233_4455_6677, ..Identity::default() },
        bars: vec![
            fixed(0, 1 << 16, true),
            fixed(2, 1 << 12, false),
            // 1 MiB, 4 MiB or 8 GiB.
            Bar { index: 4, size: 1 << 20, wide: true, prefetchable: true, sizes: 1 | 1 << 2 | 1 << 13 },
        ],
        msix: Msix { vectors: 70, table: Place { bar: 0, offset: 0x8000 }, pending: Place { bar: 0, offset: 0xc000 } },
        vendor: Vec::new(),
        link: Link { generation: 3, lanes: 16 },
        max_payload: 256,
    }
}

fn space() -> ConfigSpace {
    ConfigSpace::new(description()).unwrap()
}

fn word(space: &ConfigSpace, offset: u64) -> u16 {
    let mut bytes = [0; 2];
    space.read(offset, &mut bytes).unwrap();
    u16::from_le_bytes(bytes)
}

fn double(space: &ConfigSpace, offset: u64) -> u32 {
    let mut bytes = [0; 4];
    space.read(offset, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

fn write(space: &mut ConfigSpace, offset: u64, data: &[u8]) -> Vec<ConfigEvent> {
    let mut events = Vec::new();
    space.write(offset, data, |event| events.push(event)).unwrap();
    events
}

/// Where a capability is, as software looks for it.
fn capability(space: &ConfigSpace, id: u8) -> u64 {
    let mut at = u64::from(word(space, 0x34) as u8);
    for _ in 0..48 {
        let head = word(space, at);
        if head as u8 == id {
            return at;
        }
        at = u64::from(head >> 8);
        assert!(at >= 0x40, "there is no capability {id:#x}");
    }
    panic!("the list has no end");
}

fn extended(space: &ConfigSpace, id: u16) -> u64 {
    let mut at = 0x100;
    for _ in 0..100 {
        let head = double(space, at);
        if head as u16 == id {
            return at;
        }
        at = u64::from(head >> 20);
        assert!(at >= 0x100, "there is no extended capability {id:#x}");
    }
    panic!("the list has no end");
}

#[test]
fn software_finds_what_it_is() {
    let space = space();
    assert_eq!((word(&space, 0), word(&space, 2)), (0x4e41, 1));
    assert_eq!(double(&space, 8), 0x0200_0103);
    assert_eq!((word(&space, 0x2c), word(&space, 0x2e)), (0x4e41, 1));
    assert_eq!(word(&space, 0x0e) & 0x7f, 0, "header of type 0");
    assert_eq!(word(&space, 0x3c) >> 8, 0, "no INTx");

    let express = capability(&space, 0x10);
    assert_eq!(word(&space, express + 2), 2, "an endpoint, version 2");
    let can = double(&space, express + 4);
    assert_eq!((can & 7, can >> 5 & 1, can >> 28 & 1), (1, 1, 1), "256 bytes, extended tags, function level reset");
    assert_eq!(double(&space, express + 0xc) & 0x3ff, 0x103, "8 GT/s, 16 lanes");
    assert_eq!(word(&space, express + 0x12) & 0x3ff, 0x103);
    assert_eq!(double(&space, express + 0x2c), 0b1110);

    let msix = capability(&space, 0x11);
    assert_eq!(word(&space, msix + 2), 69);
    assert_eq!((double(&space, msix + 4), double(&space, msix + 8)), (0x8000, 0xc000));
    assert_eq!(word(&space, capability(&space, 1) + 2) & 7, 3);

    let serial = extended(&space, 3);
    assert_eq!((double(&space, serial + 4), double(&space, serial + 8)), (0x4455_6677, 0x0011_2233));
    assert_eq!(double(&space, extended(&space, 1) + 0xc), 0x0046_2030);
    let resizable = extended(&space, 0x15);
    assert_eq!(double(&space, resizable + 4), 0x2005 << 4);
    assert_eq!(double(&space, resizable + 8), 4 | 1 << 5, "one of them: BAR 4, with 1 MiB");
}

#[test]
fn capabilities_of_its_vendor_are_in_the_list() {
    let plain = |body: Vec<u8>| VendorCapability { body, window: false };
    let window = VendorCapability { body: (0..WINDOW_BYTES as u8).collect(), window: true };
    let vendor = vec![plain(vec![7; 13]), plain(vec![8; 2]), window.clone()];
    let mut space = ConfigSpace::new(Description { vendor, ..description() }).unwrap();
    let mut at = u64::from(word(&space, 0x34) as u8);
    let mut found = Vec::new();
    while at != 0 {
        let head = word(&space, at);
        if head as u8 == 9 {
            let mut bytes = vec![0; usize::from(word(&space, at + 2) as u8)];
            space.read(at, &mut bytes).unwrap();
            found.push(bytes.split_off(3));
        }
        at = u64::from(head >> 8);
    }
    assert_eq!(found, [vec![7; 13], vec![8; 2], window.body.clone()]);
    // Only BAR, offset and length of a window can be written.
    write(&mut space, 0xa0, &[0xff; 0x60]);
    let mut bytes = [0; 0x60];
    space.read(0xa0, &mut bytes).unwrap();
    assert_eq!(bytes[3..16], [7; 13]);
    assert_eq!((bytes[0x18 + 4], &bytes[0x18 + 8..0x18 + 16]), (0xff, &[0xff; 8][..]));
    assert_eq!((bytes[0x18 + 3], &bytes[0x18 + 16..0x18 + 20]), (0, &[13, 14, 15, 16][..]));
    space.reset();
    space.read(0xb8, &mut bytes[..20]).unwrap();
    assert_eq!(bytes[3..20], window.body);

    let refused = |vendor| ConfigSpace::new(Description { vendor, ..description() }).unwrap_err();
    let short = VendorCapability { body: vec![0; 16], window: true };
    for vendor in [vec![plain(vec![0; 94])], vec![plain(vec![0; 200]); 2], vec![short], vec![window.clone(), window]] {
        assert!(matches!(refused(vendor), ConfigError::Vendor(_)));
    }
    assert!(ConfigSpace::new(Description { vendor: vec![plain(vec![0; 93])], ..description() }).is_ok());
}

#[test]
fn software_finds_the_sizes_of_bars() {
    let mut space = space();
    for (register, reads) in
        [(0, 0xffff_0004), (1, 0xffff_ffff), (2, 0xffff_f000), (3, 0), (4, 0xfff0_000c), (5, 0xffff_ffff)]
    {
        assert_eq!(write(&mut space, 0x10 + 4 * register, &[0xff; 4]), []);
        assert_eq!(double(&space, 0x10 + 4 * register), reads, "BAR {register}");
    }
    write(&mut space, 0x10, &0x1234_5678u32.to_le_bytes());
    write(&mut space, 0x14, &7u32.to_le_bytes());
    assert_eq!(space.bar_address(0), Some(7 << 32 | 0x1234_0000));
    assert_eq!(space.bar_address(1), None);
    assert_eq!([0, 1, 2, 4].map(|bar| space.bar_size(bar)), [1 << 16, 0, 1 << 12, 1 << 20]);
}

#[test]
fn writes_tell_what_they_changed() {
    use ConfigEvent::{
        BusMaster, ExtendedTags, FunctionReset, MaxPayload, MaxReadRequest, MemorySpace, MsixEnable, MsixMask,
    };
    let mut space = space();
    assert_eq!(write(&mut space, 4, &[2]), [MemorySpace(true)]);
    assert_eq!(write(&mut space, 4, &[6, 4]), [BusMaster(true)]);
    assert_eq!(write(&mut space, 4, &[6, 4]), []);
    assert_eq!(write(&mut space, 4, &[0, 0]), [MemorySpace(false), BusMaster(false)]);

    let msix = capability(&space, 0x11);
    assert_eq!(write(&mut space, msix + 3, &[0xc0]), [MsixMask(true), MsixEnable(true)]);
    assert_eq!(word(&space, msix + 2), 69 | 0xc000);
    assert_eq!(write(&mut space, msix + 2, &[0xff, 0x80]), [MsixMask(false)]);

    let control = capability(&space, 0x10) + 8;
    assert_eq!(space.settings().max_read_request, 512);
    assert_eq!(write(&mut space, control, &[0x20, 0x51]), [MaxPayload(256), MaxReadRequest(4096), ExtendedTags(true)]);
    assert_eq!(write(&mut space, control, &[0xa0, 0x51]), [], "it cannot do more than 256");
    assert_eq!(space.settings().max_payload, 256);
    assert_eq!(write(&mut space, control, &[0, 0x51]), [MaxPayload(128)]);
    assert_eq!(write(&mut space, control + 1, &[0xd1]), [FunctionReset]);
    assert_eq!(word(&space, control) >> 15, 0, "the bit reads as zero");

    let power = capability(&space, 1) + 4;
    assert_eq!(write(&mut space, power, &[3]), [ConfigEvent::Power(Power::Off)]);
    assert_eq!(write(&mut space, power, &[1]), [], "it has no D1");
    assert_eq!(word(&space, power) & 3, 3);
    assert_eq!(write(&mut space, power, &[0]), [ConfigEvent::Power(Power::On)]);
}

#[test]
fn a_bar_is_resized_while_its_memory_is_off() {
    let mut space = space();
    let control = extended(&space, 0x15) + 8;
    let resized = |size| vec![ConfigEvent::BarSize { index: 4, size }];
    write(&mut space, 0x18 + 8, &[0xff; 8]);
    assert_eq!(write(&mut space, control + 1, &[13]), resized(8 << 30));
    assert_eq!((space.bar_size(4), space.bar_address(4)), (8 << 30, Some(0)));
    write(&mut space, 0x20, &[0xff; 8]);
    assert_eq!((double(&space, 0x20), double(&space, 0x24)), (0xc, 0xffff_fffe));
    for none in [1, 3, 14, 44, 63] {
        assert_eq!(write(&mut space, control + 1, &[none]), [], "{none}");
        assert_eq!(space.bar_size(4), 8 << 30);
    }
    write(&mut space, 4, &[2]);
    assert_eq!(write(&mut space, control + 1, &[0]), []);
    write(&mut space, 4, &[0]);
    assert_eq!(write(&mut space, control + 1, &[2]), resized(4 << 20));
    assert_eq!(double(&space, control), 4 | 1 << 5 | 2 << 8);
}

#[test]
fn errors_are_cleared_by_writing_one_and_outlive_a_reset() {
    let mut space = space();
    let severity = extended(&space, 1) + 0xc;
    write(&mut space, severity, &[0x10, 0, 0, 0]);
    write(&mut space, 4, &[6]);
    space.reset();
    assert_eq!(double(&space, severity), 0x30, "sticky; surprise down is of ports, and no bit of software's");
    assert_eq!(word(&space, 4), 0);
    assert_eq!(write(&mut space, 6, &[0xff, 0xff]), []);
    assert_eq!(word(&space, 6), 0x10);
}

#[test]
fn nothing_outside_the_space_is_accessed() {
    let mut space = space();
    for (offset, len) in [(4096, 1), (4093, 4), (u64::MAX, 1), (u64::MAX, 2), (0, 4097), (1 << 32, 4)] {
        assert!(space.read(offset, &mut vec![0; len]).is_err(), "{offset} {len}");
        assert!(space.write(offset, &vec![0xff; len], |event| panic!("{event:?}")).is_err());
    }
    let mut all = vec![0; CONFIG_BYTES];
    assert!(space.read(0, &mut all).is_ok() && space.read(4096, &mut []).is_ok());
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |change: fn(&mut Description)| {
        let mut wrong = description();
        change(&mut wrong);
        ConfigSpace::new(wrong).unwrap_err()
    };
    let bars: [fn(&mut Description); 9] = [
        |d| d.bars[0].size = 0,
        |d| d.bars[0].size = 3 << 12,
        |d| d.bars[0].size = 8,
        |d| d.bars[0].index = 5,
        |d| d.bars[0].index = 1,
        |d| d.bars[1].index = 6,
        |d| d.bars[1].size = 1 << 32,
        |d| d.bars[2].sizes = 2,
        |d| d.bars[2].sizes = 1 << 28 | 1,
    ];
    for change in bars {
        assert!(matches!(refused(change), ConfigError::Bar { .. }));
    }
    let msix: [fn(&mut Description); 6] = [
        |d| d.msix.vectors = 0,
        |d| d.msix.vectors = 2049,
        |d| d.msix.table.bar = 1,
        |d| d.msix.table.offset = 0x8004,
        |d| d.msix.pending.offset = 0x8458,
        |d| d.msix.pending.offset = 0xfff8,
    ];
    for change in msix {
        assert!(matches!(refused(change), ConfigError::Msix(_)));
    }
    assert!(matches!(refused(|d| d.link.lanes = 3), ConfigError::Link { .. }));
    assert!(matches!(refused(|d| d.link.generation = 0), ConfigError::Link { .. }));
    assert!(matches!(refused(|d| d.max_payload = 64), ConfigError::MaxPayload(64)));
}

proptest! {
    /// Any writes, in any order: what the function is never changes, its lists stay whole, and the events lead to its settings.
    #[test]
    fn no_write_changes_what_it_is(writes in proptest::collection::vec((0u64..0x180, proptest::collection::vec(any::<u8>(), 1..9)), 1..60)) {
        let mut space = space();
        let mut seen = space.settings();
        for (offset, data) in writes {
            space.write(offset, &data, |event| match event {
                ConfigEvent::BusMaster(on) => seen.bus_master = on,
                ConfigEvent::MemorySpace(on) => seen.memory_space = on,
                ConfigEvent::MsixEnable(on) => seen.msix_enable = on,
                ConfigEvent::MsixMask(on) => seen.msix_mask = on,
                ConfigEvent::MaxPayload(bytes) => seen.max_payload = bytes,
                ConfigEvent::MaxReadRequest(bytes) => seen.max_read_request = bytes,
                ConfigEvent::ExtendedTags(on) => seen.extended_tags = on,
                ConfigEvent::Power(power) => seen.power = power,
                _ => {}
            }).unwrap();
            prop_assert_eq!(seen, space.settings());
        }
        prop_assert_eq!((double(&space, 0), double(&space, 8)), (0x0001_4e41, 0x0200_0103));
        for id in [1, 0x10, 0x11] {
            capability(&space, id);
        }
        for id in [1, 3, 0x15] {
            extended(&space, id);
        }
        prop_assert!([1 << 20, 4 << 20, 8 << 30].contains(&space.bar_size(4)));
    }
}
