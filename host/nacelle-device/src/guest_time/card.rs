// SPDX-License-Identifier: Apache-2.0
//! A network card of a [`World`], as its driver reaches it: with nothing in between, so that an access takes device time and no other.

use std::cell::RefCell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use nacelle_pci::{Access, DmaBuffer, Interrupt, Pages, PciDevice, PciError};
use nacelle_slot::Errno;

use super::world::World;
use crate::rtl::NETWORK_CARD;
use crate::sim::{SlotFacts, SlotSpace, Unmapped};

/// The function's number, the sizes and the read completion boundary that configuration space has by default.
const ID: u32 = 0x101;
const MPS: u32 = 256;
const MRRS: u32 = 512;
const RCB: u32 = 64;
/// Where the card sends its interrupts: the vector's number is the data.
const INTERRUPTS: u64 = 0xfee0_0000;
/// The BAR with the registers and the table of interrupts.
const REGISTERS: u8 = 0;
/// The command register of configuration space, and its bit that lets the function send requests.
const COMMAND: u64 = 4;
const BUS_MASTER: u8 = 1 << 2;

/// The card of one of the devices. Of configuration space it has the command register.
pub(super) struct GuestCard {
    world: Rc<RefCell<World>>,
    number: usize,
    facts: SlotFacts,
    command: u8,
}

impl GuestCard {
    /// That of device `number`, with its registers in reach; `None` if it was built without one.
    pub(super) fn new(world: &Rc<RefCell<World>>, number: usize) -> Result<Option<Self>, PciError> {
        let facts = world.borrow_mut().device(number).slot_facts(NETWORK_CARD);
        let Some(facts) = facts else { return Ok(None) };
        let mut card = Self { world: Rc::clone(world), number, facts, command: 0 };
        card.settle()?;
        Ok(Some(card))
    }

    /// Tells the model what configuration space says, once all that was written before has arrived.
    fn settle(&mut self) -> Result<(), PciError> {
        let mut world = self.world.borrow_mut();
        world.arrive(self.number)?;
        let space = SlotSpace {
            id: ID,
            mps: MPS,
            mrrs: MRRS,
            rcb: RCB,
            extended_tags: 0,
            memory_space: 1,
            bus_master: u32::from(self.command & BUS_MASTER != 0),
            msix_enable: 1,
            msix_mask: 0,
        };
        if world.device(self.number).set_slot_space(NETWORK_CARD, &space) {
            Ok(())
        } else {
            Err(PciError::Unusable("its slot does not take its configuration"))
        }
    }

    /// Writes the table of interrupts.
    fn write_table(&mut self) -> Result<(), PciError> {
        let entry = |vector: u32| [INTERRUPTS as u32, (INTERRUPTS >> 32) as u32, vector, 0].map(u32::to_le_bytes);
        let table: Vec<u8> = (0..self.facts.vectors).flat_map(entry).flatten().collect();
        self.world.borrow_mut().write(self.number, REGISTERS, self.facts.msix_table.into(), &table)
    }
}

/// What a driver of this card does not need.
fn unused<T>(what: &'static str) -> Result<T, PciError> {
    Err(PciError::Refused { what, errno: Errno::OPNOTSUPP })
}

impl PciDevice for GuestCard {
    fn config_read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        match into {
            [byte] if offset == COMMAND => *byte = self.command,
            _ => return unused("configuration space"),
        }
        Ok(())
    }

    fn config_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        match bytes {
            [byte] if offset == COMMAND => self.command = *byte,
            _ => return unused("configuration space"),
        }
        self.settle()
    }

    fn bar_size(&self, bar: u8) -> u64 {
        self.facts.bar_bytes.get(usize::from(bar)).copied().unwrap_or(0)
    }

    fn bar_read(&mut self, bar: u8, offset: u64, into: &mut [u8]) -> Result<(), PciError> {
        self.world.borrow_mut().read(self.number, bar, offset, into)
    }

    fn bar_write(&mut self, bar: u8, offset: u64, bytes: &[u8]) -> Result<(), PciError> {
        self.world.borrow_mut().write(self.number, bar, offset, bytes)
    }

    fn map_bar(&mut self, bar: u8, offset: u64, _len: usize) -> Result<Pages, PciError> {
        Err(PciError::NotMappable { bar, offset })
    }

    fn alloc_dma(&mut self, _len: usize, _access: Access) -> Result<DmaBuffer, PciError> {
        unused("memory of the driver's own")
    }

    fn free_dma(&mut self, _buffer: DmaBuffer) -> Result<(), PciError> {
        unused("memory of the driver's own")
    }

    fn share_dma(
        &mut self,
        iova: u64,
        len: u64,
        file: BorrowedFd<'_>,
        offset: u64,
        access: Access,
    ) -> Result<(), PciError> {
        let refused = |errno| PciError::Refused { what: "memory", errno };
        let mut world = self.world.borrow_mut();
        let file = file.try_clone_to_owned()?;
        let range = world.cards[self.number]
            .memory
            .map(iova, len, access, Some((file, offset)))
            .map_err(|error| refused(error.errno()))?;
        if world.device(self.number).slot_map(NETWORK_CARD, iova, len, access.read, access.write) {
            return Ok(());
        }
        world.cards[self.number].memory.unmap(&range);
        Err(refused(Errno::INVAL))
    }

    fn unshare_dma(&mut self, iova: u64, len: u64) -> Result<(), PciError> {
        let mut world = self.world.borrow_mut();
        let number = self.number;
        world.run_until(|world| world.device(number).slot_unmap(NETWORK_CARD, iova, len) != Unmapped::Busy)?;
        if let Some(range) = world.cards[number].memory.whole(iova, len) {
            world.cards[number].memory.unmap(&range);
        }
        Ok(())
    }

    fn vectors(&self) -> u16 {
        self.facts.vectors as u16
    }

    fn set_interrupts(&mut self, first: u16, eventfds: &[BorrowedFd<'_>]) -> Result<(), PciError> {
        let has = self.vectors();
        if first != 0 || eventfds.len() > usize::from(has) {
            return Err(PciError::NoVector { has });
        }
        let eventfds: Vec<OwnedFd> = eventfds.iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<_, _>>()?;
        self.world.borrow_mut().cards[self.number].eventfds = eventfds;
        self.settle()?;
        self.write_table()
    }

    fn clear_interrupts(&mut self) -> Result<(), PciError> {
        self.world.borrow_mut().cards[self.number].eventfds.clear();
        Ok(())
    }

    fn wait(&mut self, interrupt: &Interrupt, _wait: Duration) -> Result<u64, PciError> {
        Ok(interrupt.take()?)
    }

    fn alarm(&self) -> Result<Option<OwnedFd>, PciError> {
        Ok(None)
    }

    fn reset(&mut self) -> Result<(), PciError> {
        {
            let mut world = self.world.borrow_mut();
            let number = self.number;
            world.arrive(number)?;
            world.device(number).begin_slot_reset(NETWORK_CARD);
            world.run_until(|world| world.device(number).slot_reset_done(NETWORK_CARD))?;
            world.forget_interrupts(number);
        }
        self.command = 0;
        self.settle()?;
        self.write_table()
    }
}
