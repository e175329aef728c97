// SPDX-License-Identifier: Apache-2.0
//! The registers of the software device: those of the RTL's own block that mean something here, those of admission, the event log, and the histograms. What a
//! register says or sets is what the engine works with; there is no copy of it.

use std::time::Duration;

use nacelle_manage::map::{Register, admission, device, event_log, histograms};
use nacelle_manage::{Refusal, Registers};
use nacelle_roce::Congestion;
use nacelle_wire::mrsp::DEFAULT_PORT;

use super::SoftEngine;
use crate::{Engine, Facts, Identity};

/// A parameter of congestion control: how it is read and set.
type Parameter = (Register, fn(&Congestion) -> u32, fn(&mut Congestion, u32));

const PARAMETERS: [Parameter; 19] = [
    (device::RP_ENABLE, |all| all.rp_enable.into(), |all, value| all.rp_enable = value != 0),
    (device::NP_ENABLE, |all| all.np_enable.into(), |all, value| all.np_enable = value != 0),
    (device::CLAMP_TGT_RATE, |all| all.clamp_tgt_rate.into(), |all, value| all.clamp_tgt_rate = value != 0),
    (
        device::CLAMP_TGT_RATE_AFTER_TIME_INC,
        |all| all.clamp_tgt_rate_after_time_inc.into(),
        |all, value| all.clamp_tgt_rate_after_time_inc = value != 0,
    ),
    (device::DCE_TCP_G, |all| all.dce_tcp_g.into(), |all, value| all.dce_tcp_g = value as u16),
    (device::DCE_TCP_RTT, |all| all.dce_tcp_rtt.into(), |all, value| all.dce_tcp_rtt = value as u16),
    (
        device::INITIAL_ALPHA_VALUE,
        |all| all.initial_alpha_value.into(),
        |all, value| all.initial_alpha_value = value as u16,
    ),
    (
        device::RATE_REDUCE_MONITOR_PERIOD,
        |all| all.rate_reduce_monitor_period.into(),
        |all, value| all.rate_reduce_monitor_period = value as u16,
    ),
    (
        device::RATE_TO_SET_ON_FIRST_CNP,
        |all| all.rate_to_set_on_first_cnp,
        |all, value| all.rate_to_set_on_first_cnp = value,
    ),
    (device::RPG_AI_RATE, |all| all.rpg_ai_rate.into(), |all, value| all.rpg_ai_rate = value as u16),
    (device::RPG_HAI_RATE, |all| all.rpg_hai_rate.into(), |all, value| all.rpg_hai_rate = value as u16),
    (device::RPG_BYTE_RESET, |all| all.rpg_byte_reset, |all, value| all.rpg_byte_reset = value),
    (device::RPG_TIME_RESET, |all| all.rpg_time_reset.into(), |all, value| all.rpg_time_reset = value as u16),
    (device::RPG_GD, |all| all.rpg_gd.into(), |all, value| all.rpg_gd = value as u8),
    (device::RPG_MIN_DEC_FAC, |all| all.rpg_min_dec_fac.into(), |all, value| all.rpg_min_dec_fac = value as u8),
    (device::RPG_MIN_RATE, |all| all.rpg_min_rate, |all, value| all.rpg_min_rate = value),
    (device::RPG_MAX_RATE, |all| all.rpg_max_rate, |all, value| all.rpg_max_rate = value),
    (device::RPG_THRESHOLD, |all| all.rpg_threshold.into(), |all, value| all.rpg_threshold = value as u8),
    (
        device::MIN_TIME_BETWEEN_CNPS,
        |all| all.min_time_between_cnps.into(),
        |all, value| all.min_time_between_cnps = value as u16,
    ),
];

/// Milliseconds in a register; 0 for none.
fn millis(time: Option<Duration>) -> u32 {
    time.map_or(0, |time| time.as_millis().min(device::KEEPALIVE_MS.mask.into()) as u32)
}

fn from_millis(value: u32) -> Option<Duration> {
    (value != 0).then(|| Duration::from_millis(value.into()))
}

/// The register at an address, or the array that has it.
pub(super) fn register_at(address: u32) -> Option<&'static Register> {
    let at = |block: &[Register], base| {
        let found = block.iter().position(|register| {
            let offset = address.wrapping_sub(register.at(base));
            offset % 4 == 0 && offset / 4 < register.count.unwrap_or(1)
        })?;
        Some(found)
    };
    let blocks = [
        (&device::BLOCK, device::BASE),
        (&admission::BLOCK, admission::BASE),
        (&event_log::BLOCK, event_log::BASE),
        (&histograms::BLOCK, histograms::BASE),
    ];
    blocks.into_iter().find_map(|(block, base)| at(block.registers, base).map(|found| &block.registers[found]))
}

/// As the local bus has it. An address without a register is an error.
pub(super) struct LocalBus<'a>(pub(super) &'a mut SoftEngine);

impl Registers for LocalBus<'_> {
    type Error = Refusal;

    fn read(&mut self, address: u32) -> Result<u32, Refusal> {
        let found = register_at(address).filter(|register| register.readable());
        let value = found.and_then(|register| self.0.read_at(address, register));
        value.ok_or_else(|| Refusal(format!("a software device has no register at {address:#07x} that can be read")))
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), Refusal> {
        let found = register_at(address).filter(|register| register.writable());
        let written = found.and_then(|register| self.0.write_at(address, register, value));
        written
            .ok_or_else(|| Refusal(format!("a software device has no register at {address:#07x} that can be written")))
    }
}

impl SoftEngine {
    /// What the register at an address holds. `None` if this device has none such.
    pub(super) fn read_at(&self, address: u32, register: &Register) -> Option<u32> {
        self.read_admission(address)
            .or_else(|| self.read_event_log(address))
            .or_else(|| self.read_histograms(address))
            .or_else(|| self.read_register(register))
    }

    /// Sets the register at an address. `None` if this device has none such that can be set.
    pub(super) fn write_at(&mut self, address: u32, register: &Register, value: u32) -> Option<()> {
        self.write_admission(address, value)
            .or_else(|| self.write_histograms(address, value))
            .or_else(|| self.write_register(register, value))
    }

    /// What a register of its own block holds. `None` if this device has none such.
    pub(super) fn read_register(&self, register: &Register) -> Option<u32> {
        let Facts { clock_hz, data_w, memory_bytes, .. } = self.facts();
        let Identity { mac, ip, prefix_len, gateway } = &self.identity;
        let mac = mac.0.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        Some(match *register {
            device::TYPE => u32::from_be_bytes(device::BLOCK.kind),
            device::VERSION => device::BLOCK.version,
            device::NEXT => admission::BASE,
            device::CLOCK_HZ => clock_hz,
            device::QPS => self.config.connections as u32,
            device::SOCKETS => self.config.kernels.socket_count(),
            device::DRAM_BYTES_LO => memory_bytes as u32,
            device::DRAM_BYTES_HI => (memory_bytes >> 32) as u32,
            device::MAC_LO => mac as u32,
            device::MAC_HI => (mac >> 32) as u32,
            device::IP => u32::from(*ip),
            device::PREFIX_LEN => (*prefix_len).into(),
            device::GATEWAY => gateway.map_or(0, u32::from),
            device::RPC_PORT => DEFAULT_PORT.into(),
            device::KEEPALIVE_MS => millis(self.config.connect.keepalive),
            device::KERNEL_TIMEOUT_MS => millis(self.workers.time()),
            device::MAX_CONNECTIONS_PER_PEER => self.config.connections_per_caller as u32,
            device::MEMORY_PER_CALLER => (self.config.memory_per_caller >> 10) as u32,
            device::DATA_W => data_w,
            _ => {
                let parameter = PARAMETERS.iter().find(|(parameter, ..)| parameter == register);
                return parameter
                    .map(|(_, get, _)| get(&self.congestion))
                    .or_else(|| self.services.read_register(register));
            }
        })
    }

    /// Sets a register of its own block. `None` if this device has none such that can be set.
    pub(super) fn write_register(&mut self, register: &Register, value: u32) -> Option<()> {
        let value = value & register.mask;
        match *register {
            // Of connections from now on.
            device::KEEPALIVE_MS => self.config.connect.keepalive = from_millis(value),
            // Of calls from now on.
            device::KERNEL_TIMEOUT_MS => self.workers.set_time(from_millis(value)),
            device::MEMORY_PER_CALLER => self.config.memory_per_caller = u64::from(value) << 10,
            _ => match PARAMETERS.iter().find(|(parameter, ..)| parameter == register) {
                Some((_, _, set)) => {
                    set(&mut self.congestion, value);
                    self.endpoint.transport.set_congestion(self.congestion);
                }
                None => return self.services.write_register(register, value),
            },
        }
        Some(())
    }
}
