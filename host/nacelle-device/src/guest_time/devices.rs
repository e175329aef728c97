// SPDX-License-Identifier: Apache-2.0
//! What the calendar's loop needs of devices, and the simulated RTL as that: two devices on a line, each with a network card behind vhost-user.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use nacelle_vhost::{Backend, BackendConfig, BackendError, Counters, Listener};

use super::card::GuestCard;
use super::world::World;
use crate::sim::Pair;
use crate::{DeviceError, LineConfig, LineStats, RtlEngine, SimStats};

/// Devices whose time passes only when they are told. Times are in nanoseconds.
pub(super) trait Devices {
    /// Readable, any of them, when a guest has sent something to its device.
    fn fds(&self) -> Vec<BorrowedFd<'_>>;

    /// Does what guests have asked their devices for. What a guest is told is told when this returns.
    fn turn(&mut self) -> Result<(), BackendError>;

    /// Lets time pass until `time`, or until an interrupt before. When the oldest interrupt came that is due and was not handed on.
    fn advance(&mut self, time: u64) -> Option<u64>;

    /// Hands the interrupts on that came first.
    fn interrupt(&mut self) -> Result<(), BackendError>;

    /// Whether a guest has not answered its interrupt yet.
    fn is_called(&self) -> bool;

    /// Whether a guest uses a device.
    fn has_guest(&self, number: usize) -> bool;
}

/// What has been counted of a device and the guest's use of it.
#[derive(Debug, Clone, Copy)]
pub struct DeviceCounters {
    /// By the model of the device.
    pub sim: SimStats,
    /// By the back end of its card.
    pub card: Counters,
    /// Of the frames that it has sent.
    pub line: LineStats,
    /// Interrupts of the card.
    pub interrupts: u64,
    /// Accesses of the card to memory that was not there.
    pub refused: u64,
    /// Rules of PCI Express that the device has broken.
    pub violations: u64,
}

/// Two simulated devices with network cards, on a line.
pub struct CardPair {
    world: Rc<RefCell<World>>,
    backends: [Backend<GuestCard>; 2],
}

impl CardPair {
    /// Of two devices that are configured, each with the socket where its card's guest connects. `patience` is how long a guest may take to say
    /// what it has begun to say; what one is refused is told to `tell`.
    ///
    /// # Errors
    /// If the devices were built without a network card or cannot be joined, or a socket cannot be made.
    pub fn new(
        engines: [RtlEngine; 2],
        line: &LineConfig,
        sockets: [&Path; 2],
        patience: Duration,
        tell: fn(&str),
    ) -> Result<Self, DeviceError> {
        let [first, second] = engines.map(RtlEngine::into_sim);
        let clock_hz = first.1;
        if first.0.slot_facts(crate::rtl::NETWORK_CARD).is_none() {
            return Err(DeviceError::Without { what: "network_card in [pcie]" });
        }
        let pair = Pair::join([first.0, second.0], line)?;
        let world = Rc::new(RefCell::new(World::new(pair, clock_hz)));
        let config =
            BackendConfig { front_end_timeout: patience, answered_calls: true, tell, ..BackendConfig::default() };
        let backend = |number: usize| {
            let listener = Listener::bind(sockets[number])?;
            let card = GuestCard::new(&world, number)
                .map_err(|error| DeviceError::Create { why: error.to_string() })?
                .ok_or(DeviceError::Without { what: "network_card in [pcie]" })?;
            Backend::new(listener, card, config).map_err(|error| DeviceError::Create { why: error.to_string() })
        };
        let backends = [backend(0)?, backend(1)?];
        Ok(Self { world, backends })
    }

    /// Device time, in nanoseconds.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.world.borrow().now()
    }

    /// What was counted of a device.
    #[must_use]
    pub fn counters(&self, number: usize) -> DeviceCounters {
        let mut world = self.world.borrow_mut();
        let slot = world.device(number).slot_stats();
        DeviceCounters {
            sim: world.device(number).stats(),
            card: self.backends[number].counters(),
            line: world.line_stats(number),
            interrupts: slot.interrupts,
            refused: world.refused(number),
            violations: slot.violations,
        }
    }
}

impl Devices for CardPair {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        self.backends.iter().flat_map(Backend::fds).collect()
    }

    fn turn(&mut self) -> Result<(), BackendError> {
        self.backends.iter_mut().try_for_each(|backend| backend.turn(Duration::ZERO))
    }

    fn advance(&mut self, time: u64) -> Option<u64> {
        self.world.borrow_mut().advance(time)
    }

    fn interrupt(&mut self) -> Result<(), BackendError> {
        let whose = self.world.borrow_mut().interrupt();
        for (backend, interrupted) in self.backends.iter_mut().zip(whose) {
            if interrupted {
                backend.turn(Duration::ZERO)?;
            }
        }
        Ok(())
    }

    fn is_called(&self) -> bool {
        self.backends.iter().any(Backend::is_called)
    }

    fn has_guest(&self, number: usize) -> bool {
        self.backends.get(number).is_some_and(Backend::has_front_end)
    }
}
