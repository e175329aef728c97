// SPDX-License-Identifier: Apache-2.0
//! What a front end has asked for, and what becomes of it: the state machine of vhost-user.
//!
//! The card runs when all that it needs is there: features, memory, and both rings of the first pair set up, started and enabled. As soon as
//! one of them is not, it is halted. Further rings are used from when they are ready on. It begins rings at index 0 only, so one that was in
//! use goes on from its start or not at all, and as it cannot stop a ring alone, one that is taken back halts it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nacelle_pci::PciDevice;
use nacelle_slot::channel::{Channel, Descriptors, Message, Received};
use nacelle_slot::protocol::split;
use nacelle_virtio::card::{Card, Queues, feature as net};
use zerocopy::{FromBytes, IntoBytes};

use crate::memory::Memory;
use crate::protocol::{
    Config, Header, MAX_CONFIG, MAX_PAYLOAD, RING_LOG, RingAddress, RingState, backend_request, descriptor, feature,
    flag, protocol_feature as offer, request,
};
use crate::ring::{Ring, is_unix_socket};
use crate::{MAX_RINGS, Refusal, Trouble};

/// The protocol features that are offered.
const OFFERED: u64 = offer::MQ
    | offer::REPLY_ACK
    | offer::BACKEND_REQ
    | offer::CONFIG
    | offer::RESET_DEVICE
    | offer::INBAND_NOTIFICATIONS;

/// A request was not of the form that it has.
const LENGTH: Refusal = Refusal("a message has another length than its request has");

/// The answer to a request that has one of its own.
type Reply = Option<Vec<u8>>;

/// What a front end has set.
#[derive(Debug, Default)]
pub(crate) struct Session {
    features: Option<u64>,
    protocol: u64,
    memory: Memory,
    pub(crate) rings: [Ring; MAX_RINGS],
    /// Where requests to the front end go.
    requests: Option<Channel<Header>>,
    /// These are to be answered.
    answered: bool,
    /// So many are not yet.
    unanswered: u32,
}

impl Session {
    /// One without anything. `answered`: what the front end is asked for it is to answer.
    pub(crate) fn new(answered: bool) -> Self {
        Self { answered, ..Self::default() }
    }

    /// Whether the front end has not answered all that it is to answer.
    pub(crate) fn is_called(&self) -> bool {
        self.requests.is_some() && self.unanswered > 0
    }

    /// Does what a message asks for. Its reply, or 0 if it has none of its own.
    pub(crate) fn handle<D: PciDevice>(
        &mut self,
        card: &mut Card<D>,
        message: &mut Message<Header>,
    ) -> Result<Reply, Trouble> {
        let mut descriptors = std::mem::take(&mut message.descriptors);
        let payload = message.payload();
        let number = || <u64>::read_from_bytes(payload).map_err(|_| LENGTH);
        let mut reply = None;
        match message.header.request {
            request::GET_FEATURES => {
                reply = Some((card.offered() | feature::PROTOCOL_FEATURES).as_bytes().to_vec());
            }
            request::SET_FEATURES => self.set_features(card, number()?)?,
            request::GET_PROTOCOL_FEATURES => reply = Some(OFFERED.as_bytes().to_vec()),
            request::SET_PROTOCOL_FEATURES => self.set_protocol(number()?)?,
            request::SET_OWNER => {}
            request::RESET_OWNER | request::RESET_DEVICE => {
                self.rings.iter_mut().for_each(|ring| ring.enabled = false);
                self.settle(card)?;
            }
            request::SET_MEM_TABLE => {
                let memory = Memory::parse(payload, std::mem::take(&mut descriptors))?;
                self.set_memory(card, memory)?;
            }
            request::SET_VRING_NUM => {
                let (ring, size) = self.at_rest(card, payload)?;
                ring.resize(size)?;
            }
            request::SET_VRING_BASE => {
                let (ring, base) = self.at_rest(card, payload)?;
                ring.begin_at(base)?;
            }
            request::SET_VRING_ADDR => self.set_address(card, payload)?,
            request::GET_VRING_BASE => reply = Some(self.get_base(card, payload)?),
            request::SET_VRING_KICK => {
                let (ring, eventfd) = self.with_descriptor(card, number()?, &mut descriptors)?;
                match eventfd {
                    Some(eventfd) => ring.kick_by(eventfd)?,
                    None => return Err(Refusal("a ring without an eventfd would have to be polled").into()),
                }
                self.settle(card)?;
            }
            request::SET_VRING_CALL => {
                let (ring, by) = self.with_descriptor(card, number()?, &mut descriptors)?;
                ring.call_by(by)?;
            }
            request::SET_VRING_ERR => {
                let (ring, by) = self.with_descriptor(card, number()?, &mut descriptors)?;
                ring.complain_by(by)?;
            }
            request::SET_VRING_ENABLE => {
                let (index, on) = ring_state(card, payload)?;
                let inband = self.protocol & offer::INBAND_NOTIFICATIONS != 0;
                let ring = &mut self.rings[index];
                ring.enabled = on != 0;
                // No eventfd comes then that would start it.
                ring.started |= inband && ring.enabled;
                ring.kicked |= ring.enabled;
                self.settle(card)?;
            }
            request::VRING_KICK => self.rings[ring_state(card, payload)?.0].kicked = true,
            request::GET_QUEUE_NUM => reply = Some((card.rings() as u64 / 2).as_bytes().to_vec()),
            request::SET_BACKEND_REQ_FD => self.requests_by(descriptors.pop())?,
            request::GET_CONFIG => reply = Some(config(card, payload)?),
            request::SET_CONFIG => return Err(Refusal("the card's configuration cannot be written").into()),
            request::SET_LOG_BASE | request::SET_LOG_FD => {
                return Err(Refusal("what the card writes cannot be logged: no migration").into());
            }
            _ => return Err(Refusal("a request is not known").into()),
        }
        if descriptors.is_empty() {
            Ok(reply)
        } else {
            Err(Refusal("a message has descriptors that its request has not").into())
        }
    }

    /// Whether requests without a reply are to be answered.
    pub(crate) fn acknowledges(&self) -> bool {
        self.protocol & offer::REPLY_ACK != 0
    }

    fn set_features<D: PciDevice>(&mut self, card: &mut Card<D>, features: u64) -> Result<(), Trouble> {
        if features & feature::LOG_ALL != 0 {
            return Err(Refusal("what the card writes cannot be logged: no migration").into());
        }
        if features & !(card.offered() | feature::PROTOCOL_FEATURES) != 0 {
            return Err(Refusal("features are to be used that are not offered").into());
        }
        let net = features & !feature::PROTOCOL_FEATURES;
        if card.running().is_some() && self.features != Some(net) {
            return Err(Refusal("features are to change while rings are used").into());
        }
        self.features = Some(net);
        if features & feature::PROTOCOL_FEATURES == 0 {
            // Rings are not enabled by messages then.
            self.rings.iter_mut().for_each(|ring| ring.enabled = true);
        }
        self.settle(card)
    }

    fn set_protocol(&mut self, features: u64) -> Result<(), Refusal> {
        if features & !OFFERED != 0 {
            return Err(Refusal("protocol features are to be used that are not offered"));
        }
        if features & offer::INBAND_NOTIFICATIONS != 0 && features & offer::BACKEND_REQ == 0 {
            return Err(Refusal("notifications by messages need requests of the back end"));
        }
        self.protocol = features;
        Ok(())
    }

    /// Gives the card memory, and takes away what it does not have any more. Rings that are used stay where they are.
    fn set_memory<D: PciDevice>(&mut self, card: &mut Card<D>, memory: Memory) -> Result<(), Trouble> {
        if let Some(queues) = card.running()
            && self.queues(&memory, |index| queues[index].is_some()).ok() != Some(*queues)
        {
            return Err(Refusal("memory with a ring that is used is to be taken away").into());
        }
        let before = std::mem::take(&mut self.memory).regions;
        let (mut kept, gone): (Vec<_>, Vec<_>) =
            before.into_iter().partition(|region| memory.regions.iter().any(|other| other.is(region)));
        for region in gone {
            region.take_from(card)?;
        }
        for region in memory.regions {
            if kept.iter().any(|other| other.is(&region)) {
                continue;
            }
            let mapped = region.give_to(card);
            if mapped.is_err() {
                // Nothing is left in between: the front end is to begin anew.
                self.memory.regions = kept;
                self.clear_memory(card)?;
                return mapped;
            }
            kept.push(region);
        }
        self.memory.regions = kept;
        self.settle(card)
    }

    /// Takes all memory away from the card, which is halted before.
    pub(crate) fn clear_memory<D: PciDevice>(&mut self, card: &mut Card<D>) -> Result<(), Trouble> {
        self.halt(card)?;
        for region in std::mem::take(&mut self.memory).regions {
            region.take_from(card)?;
        }
        Ok(())
    }

    fn set_address<D: PciDevice>(&mut self, card: &mut Card<D>, payload: &[u8]) -> Result<(), Trouble> {
        let address = RingAddress::read_from_bytes(payload).map_err(|_| LENGTH)?;
        if address.flags & RING_LOG != 0 {
            return Err(Refusal("what the card writes cannot be logged: no migration").into());
        }
        let (ring, _) = self.at_rest(card, &payload[..size_of::<RingState>()])?;
        ring.place(address);
        Ok(())
    }

    /// Stops a ring, and says where it would go on.
    fn get_base<D: PciDevice>(&mut self, card: &mut Card<D>, payload: &[u8]) -> Result<Vec<u8>, Trouble> {
        let (index, _) = ring_state(card, payload)?;
        self.rings[index].started = false;
        self.settle(card)?;
        let number = self.rings[index].stop().into();
        Ok(RingState { index: index as u32, number }.as_bytes().to_vec())
    }

    /// Lets the card run if all that it needs is there, and halts it if not.
    fn settle<D: PciDevice>(&mut self, card: &mut Card<D>) -> Result<(), Trouble> {
        let ready = self.rings[..2].iter().all(Ring::is_ready) && !self.memory.regions.is_empty();
        let taken_back = (0..MAX_RINGS).any(|ring| card.uses(ring) && !self.rings[ring].started);
        match (self.features.filter(|_| ready && !taken_back), card.running()) {
            (Some(features), None) => {
                let queues = self.queues(&self.memory, |index| self.rings[index].is_ready())?;
                card.start(features, queues)?;
                // What was put into the rings before was not told.
                self.rings.iter_mut().for_each(|ring| ring.kicked = true);
            }
            (Some(_), Some(_)) => {
                for index in 0..MAX_RINGS {
                    if self.rings[index].is_ready() && !card.uses(index) {
                        card.add(index, self.rings[index].queue(&self.memory)?)?;
                        self.rings[index].kicked = true;
                    }
                }
            }
            (None, Some(_)) => self.halt(card)?,
            (None, None) => {}
        }
        self.share(card)
    }

    /// Tells the card how many pairs are enabled, where the front end has the driver's commands for itself.
    fn share<D: PciDevice>(&self, card: &mut Card<D>) -> Result<(), Trouble> {
        let by_front_end = self.features.is_some_and(|features| features & (net::MQ | net::CTRL_VQ) == net::MQ);
        if by_front_end && card.running().is_some() {
            let usable = |pair: &[Ring]| pair.len() == 2 && pair.iter().all(Ring::is_ready);
            let pairs = self.rings[..card.rings()].chunks(2).take_while(|pair| usable(pair)).count();
            card.use_pairs(pairs as u16)?;
        }
        Ok(())
    }

    fn halt<D: PciDevice>(&mut self, card: &mut Card<D>) -> Result<(), Trouble> {
        let Some(queues) = card.running().copied() else { return Ok(()) };
        card.halt()?;
        for (ring, queue) in self.rings.iter_mut().zip(queues) {
            if let Some(queue) = queue {
                ring.halted(self.memory.read_u16(queue.used + 2));
            }
        }
        Ok(())
    }

    /// Those of the rings that are wanted, as the card finds them.
    fn queues(&self, memory: &Memory, wanted: impl Fn(usize) -> bool) -> Result<Queues, Refusal> {
        let mut queues = Queues::default();
        for (index, ring) in self.rings.iter().enumerate().filter(|(index, _)| wanted(*index)) {
            queues[index] = Some(ring.queue(memory)?);
        }
        Ok(queues)
    }

    /// A ring that the card does not use, and the number that a message has for it.
    fn at_rest<D: PciDevice>(&mut self, card: &Card<D>, payload: &[u8]) -> Result<(&mut Ring, u32), Refusal> {
        let (index, number) = ring_state(card, payload)?;
        if card.uses(index) {
            return Err(Refusal("a ring is to change while it is used"));
        }
        Ok((&mut self.rings[index], number))
    }

    /// A ring, and the descriptor that a message has for it.
    fn with_descriptor<D: PciDevice>(
        &mut self,
        card: &Card<D>,
        number: u64,
        descriptors: &mut Descriptors,
    ) -> Result<(&mut Ring, Option<OwnedFd>), Refusal> {
        let index = (number & descriptor::RING) as usize;
        let ring = self.rings[..card.rings()].get_mut(index).ok_or(Refusal("there is no such ring"))?;
        match (number & descriptor::NONE != 0, descriptors.pop()) {
            (true, None) => Ok((ring, None)),
            (false, Some(found)) => Ok((ring, Some(found))),
            _ => Err(Refusal("a message says it has a descriptor and has none, or the other way round")),
        }
    }

    fn requests_by(&mut self, socket: Option<OwnedFd>) -> Result<(), Refusal> {
        let refusal = Refusal("requests of the back end are to go to what is no socket");
        let socket = socket.filter(is_unix_socket).ok_or(refusal)?;
        self.requests = Some(Channel::new(UnixStream::from(socket), MAX_PAYLOAD).map_err(|_| refusal)?);
        self.unanswered = 0;
        Ok(())
    }

    /// What to wait for of the channel to the front end: replies, which nobody needs, and whether there is room for what waits.
    pub(crate) fn requests(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.requests.as_ref().map(|channel| (channel.socket(), channel.unsent() > 0))
    }

    /// Calls the driver where that is due. What the front end has no room for waits, and is one call however often it was due.
    ///
    /// A ring with a descriptor for calls is called by that also where notifications are messages: QEMU agrees to these and knows none.
    pub(crate) fn call(&mut self) {
        self.flush();
        let by_message = self.protocol & offer::INBAND_NOTIFICATIONS != 0;
        for index in 0..MAX_RINGS {
            let ring = &mut self.rings[index];
            if !ring.calling {
                continue;
            }
            if ring.has_call() {
                ring.call();
            } else if by_message && self.has_room() {
                self.ask(backend_request::VRING_CALL, RingState { index: index as u32, number: 0 }.as_bytes());
                self.rings[index].calling = false;
            }
        }
        self.flush();
    }

    /// Tells the front end that the card's configuration has changed, if there is room for that.
    pub(crate) fn config_changed(&mut self) {
        if self.has_room() {
            self.ask(backend_request::CONFIG_CHANGE, &[]);
            self.flush();
        }
    }

    fn has_room(&self) -> bool {
        self.requests.as_ref().is_some_and(|channel| channel.unsent() == 0)
    }

    fn ask(&mut self, request: u32, payload: &[u8]) {
        if let Some(channel) = &mut self.requests {
            let flags = if self.answered { flag::VERSION | flag::NEED_REPLY } else { flag::VERSION };
            channel.queue(Header { request, flags, size: 0 }, &[payload], Descriptors::new());
            self.unanswered += u32::from(self.answered);
        }
    }

    fn flush(&mut self) {
        if self.requests.as_mut().is_some_and(|channel| channel.flush().is_err()) {
            self.requests = None;
        }
    }

    /// Counts what the front end says there, so much at a time, and throws it away.
    pub(crate) fn drain_replies(&mut self, most: usize) {
        for _ in 0..most {
            let Some(channel) = &mut self.requests else { return };
            match channel.receive() {
                Ok(Received::Message) => {
                    let message = channel.take();
                    channel.give_back(message);
                    self.unanswered = self.unanswered.saturating_sub(1);
                }
                Ok(Received::Nothing) => return,
                Ok(Received::Closed | Received::OutOfStep) | Err(_) => self.requests = None,
            }
        }
    }
}

/// The ring that a message names, and the number that it has for it.
fn ring_state<D: PciDevice>(card: &Card<D>, payload: &[u8]) -> Result<(usize, u32), Refusal> {
    let state = RingState::read_from_bytes(payload).map_err(|_| LENGTH)?;
    let index = usize::try_from(state.index).ok().filter(|index| *index < card.rings());
    Ok((index.ok_or(Refusal("there is no such ring"))?, state.number))
}

/// The part of the device configuration that a message asks for.
fn config<D: PciDevice>(card: &mut Card<D>, payload: &[u8]) -> Result<Vec<u8>, Trouble> {
    let (asked, _) = split::<Config>(payload).ok_or(LENGTH)?;
    let end = asked.offset.checked_add(asked.size).filter(|end| *end as usize <= MAX_CONFIG);
    if end.is_none() || payload.len() != size_of::<Config>() + asked.size as usize {
        return Err(Refusal("the device has no such configuration").into());
    }
    let mut reply = payload.to_vec();
    card.config(asked.offset as usize, &mut reply[size_of::<Config>()..])?;
    Ok(reply)
}
