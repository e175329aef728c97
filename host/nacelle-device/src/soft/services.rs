// SPDX-License-Identifier: Apache-2.0
//! Registers over the network: UDP datagrams to CCI_PORT, which are answered by IPbus as the RTL's services plane does it.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use nacelle_ipbus::{Budget, Bus, BusError, Permission, Server, ServerConfig, SourceFilter};
use nacelle_manage::map::{Register, Who, device};
use nacelle_wire::ethernet::{ETHERTYPE_IPV4, EthernetHeader, MIN_FRAME};
use nacelle_wire::ipbus;
use nacelle_wire::ipv4::{Ipv4Header, PROTOCOL_UDP};
use nacelle_wire::udp::UdpHeader;
use zerocopy::IntoBytes;

use super::SoftEngine;
use super::registers::register_at;

/// Where the destination port of a UDP datagram without IP options is in a frame.
const PORT_AT: usize = EthernetHeader::LEN + Ipv4Header::LEN + 2;
/// Frames to be sent at a time; while there are as many, no packet is taken.
const MAX_FRAMES: usize = 64;
/// Of a client, in both directions.
const MESSAGE_BYTES: usize = 1472;
/// Seconds after which a client has to log in again.
const SESSION: u64 = 60;

/// The server of IPbus, its settings, and what it has to send.
pub(super) struct Services {
    server: Server,
    /// 0: off.
    port: u16,
    token: [u32; 4],
    frames: VecDeque<Vec<u8>>,
    /// Packets that were not taken because too many answers waited.
    drop_room: u64,
}

/// What is counted, by the names of the RTL's counters without their prefix.
type Counters = [(&'static str, u64); 17];

impl Default for Services {
    fn default() -> Self {
        let config = ServerConfig {
            clients: 4,
            buffers: 2,
            mtu: MESSAGE_BYTES,
            in_use: Duration::from_secs(2),
            session: Duration::from_secs(SESSION),
            token: None,
            login: device::CCI_LOGIN_0.at(device::BASE),
            logout: device::CCI_LOGOUT.at(device::BASE),
            sources: SourceFilter { prefix: Ipv4Addr::UNSPECIFIED.into(), bits: 0 },
            // 16384 cycles.
            strangers: Budget { burst: 8, pause: Duration::from_nanos(16384) },
        };
        Self { server: Server::new(config), port: ipbus::PORT, token: [0; 4], frames: VecDeque::new(), drop_room: 0 }
    }
}

impl Services {
    /// What it has counted.
    pub(super) fn counters(&self) -> Counters {
        let counters = self.server.counters();
        [
            ("rx_message", counters.rx_message),
            ("tx_message", counters.tx_message),
            ("drop_source", counters.drop_source),
            ("drop_rate", counters.drop_rate),
            ("drop_room", self.drop_room),
            ("drop_length", counters.drop_length),
            ("drop_malformed", counters.drop_malformed),
            ("drop_id", counters.drop_id),
            ("drop_context", counters.drop_context),
            ("refused", counters.refused),
            ("bus_error", counters.bus_error),
            ("login", counters.login),
            ("login_wrong", counters.login_wrong),
            ("login_refused", counters.login_refused),
            ("session_expired", counters.session_expired),
            ("resent", counters.resent),
            ("resend_unknown", counters.resend_unknown),
        ]
    }

    pub(super) fn read_register(&self, register: &Register) -> Option<u32> {
        let config = self.server.config();
        Some(match *register {
            device::CCI_PORT => self.port.into(),
            device::CCI_SOURCE => match config.sources.prefix {
                IpAddr::V4(ip) => ip.into(),
                IpAddr::V6(_) => 0,
            },
            device::CCI_SOURCE_PREFIX => config.sources.bits.into(),
            device::CCI_SESSION => config.session.as_secs() as u32,
            _ => return counter(&self.counters(), register),
        })
    }

    pub(super) fn write_register(&mut self, register: &Register, value: u32) -> Option<()> {
        let config = self.server.config_mut();
        match *register {
            device::CCI_PORT => self.port = value as u16,
            device::CCI_SOURCE => config.sources.prefix = Ipv4Addr::from(value).into(),
            device::CCI_SOURCE_PREFIX => config.sources.bits = value.min(32) as u8,
            device::CCI_SESSION => config.session = Duration::from_secs(value.into()),
            // They act by way of the network only.
            device::CCI_LOGIN_0
            | device::CCI_LOGIN_1
            | device::CCI_LOGIN_2
            | device::CCI_LOGIN_3
            | device::CCI_LOGOUT => {}
            _ => {
                let words = [device::CCI_TOKEN_0, device::CCI_TOKEN_1, device::CCI_TOKEN_2, device::CCI_TOKEN_3];
                let index = words.iter().position(|word| word == register)?;
                self.token[index] = value;
                let mut token = [0; 16];
                let (places, _) = token.as_chunks_mut::<4>();
                places.iter_mut().zip(self.token).for_each(|(place, word)| *place = word.to_be_bytes());
                config.token = (token != [0; 16]).then_some(token);
            }
        }
        Some(())
    }

    /// Takes the next frame to be sent.
    pub(super) fn pull(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let frame = self.frames.pop_front()?;
        buffer.get_mut(..frame.len())?.copy_from_slice(&frame);
        Some(frame.len())
    }
}

/// The value of a counter's register.
fn counter(counters: &Counters, register: &Register) -> Option<u32> {
    let name = register.name.strip_prefix("service_").filter(|_| register.counter)?;
    counters.iter().find(|(counter, _)| *counter == name).map(|(_, value)| *value as u32)
}

/// The registers as the server has them, which counts while it works.
struct NetworkBus<'a> {
    engine: &'a mut SoftEngine,
    counters: Counters,
}

impl Bus for NetworkBus<'_> {
    fn permission(&self, address: u32, write: bool) -> Permission {
        let who = register_at(address).and_then(|register| {
            let has_it = if write { register.writable() } else { register.readable() };
            has_it.then_some(if write { register.writer } else { register.reader })
        });
        match who {
            Some(Who::Anybody) => Permission::Public,
            Some(Who::Nobody) => Permission::Local,
            Some(Who::Authorised) | None => Permission::Authorised,
        }
    }

    fn read(&mut self, address: u32) -> Result<u32, BusError> {
        let register = register_at(address).filter(|register| register.readable()).ok_or(BusError)?;
        let value = counter(&self.counters, register).or_else(|| self.engine.read_at(address, register));
        value.ok_or(BusError)
    }

    fn write(&mut self, address: u32, value: u32) -> Result<(), BusError> {
        let register = register_at(address).filter(|register| register.writable()).ok_or(BusError)?;
        self.engine.write_at(address, register, value).ok_or(BusError)
    }
}

impl SoftEngine {
    /// Takes a frame that is for the services, and queues what answers it. Whether it is.
    pub(super) fn serve_frame(&mut self, frame: &[u8]) -> bool {
        let port = self.services.port;
        if port == 0 || frame.get(PORT_AT..PORT_AT + 2) != Some(&port.to_be_bytes()) {
            return false;
        }
        let Some(request) = Request::parse(frame, port)
            .filter(|request| (request.ethernet.dst, request.ip.dst()) == (self.identity.mac, self.identity.ip))
        else {
            return false;
        };
        if self.services.frames.len() >= MAX_FRAMES {
            self.services.drop_room += 1;
            return true;
        }
        let from = SocketAddr::from((request.ip.src(), request.udp.src_port.get()));
        let now = Duration::from_nanos(self.clock.now().as_nanos());
        // The registers are the engine's; those of the services cannot be set by way of the network.
        let mut services = std::mem::take(&mut self.services);
        let counters = services.counters();
        let mut bus = NetworkBus { counters, engine: self };
        if let Some(answer) = services.server.receive(from, request.payload, now, &mut bus) {
            services.frames.push_back(request.answer(&answer));
        }
        let changed = counters.into_iter().zip(services.counters());
        for ((name, _), _) in changed.filter(|((_, before), (_, after))| before != after) {
            self.log_session(name, request.ip.src());
        }
        self.services = services;
        true
    }
}

/// A datagram in its frame.
struct Request<'a> {
    ethernet: EthernetHeader,
    ip: Ipv4Header,
    udp: UdpHeader,
    payload: &'a [u8],
}

impl<'a> Request<'a> {
    fn parse(frame: &'a [u8], port: u16) -> Option<Self> {
        let (ethernet, packet) = EthernetHeader::parse(frame).ok()?;
        if ethernet.ethertype.get() != ETHERTYPE_IPV4 {
            return None;
        }
        let (ip, datagram) = Ipv4Header::parse(packet).ok()?;
        if ip.protocol != PROTOCOL_UDP {
            return None;
        }
        let (udp, payload) = UdpHeader::parse(&ip, datagram).ok()?;
        (udp.dst_port.get() == port).then_some(Self { ethernet, ip, udp, payload })
    }

    /// The frame that goes back where this came from: nothing is resolved.
    fn answer(&self, payload: &[u8]) -> Vec<u8> {
        let ethernet = EthernetHeader::new(self.ethernet.src, self.ethernet.dst, ETHERTYPE_IPV4);
        let length = UdpHeader::LEN + payload.len();
        let mut ip = Ipv4Header::new(self.ip.dst(), self.ip.src(), PROTOCOL_UDP);
        ip.finish(length);
        let udp = UdpHeader {
            src_port: self.udp.dst_port,
            dst_port: self.udp.src_port,
            length: (length as u16).into(),
            checksum: 0.into(),
        };
        let mut frame = [ethernet.as_bytes(), ip.as_bytes(), udp.as_bytes(), payload].concat();
        frame.resize(frame.len().max(MIN_FRAME), 0);
        frame
    }
}

#[cfg(test)]
mod tests {
    use nacelle_wire::MacAddr;

    use super::*;
    use crate::{FrameEngine, Identity, SoftConfig};

    const OWN: Identity =
        Identity { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 77, 0, 2), prefix_len: 16, gateway: None };
    const PEER: (MacAddr, Ipv4Addr) = (MacAddr([2, 0, 0, 0, 0, 9]), Ipv4Addr::new(10, 77, 0, 9));

    fn engine() -> SoftEngine {
        let mut engine = SoftEngine::new(SoftConfig { workers: 1, memory_bytes: 1 << 20, ..SoftConfig::default() });
        engine.configure(&OWN, 1).unwrap();
        engine
    }

    /// A frame with the words of a packet, to this MAC address, address and port.
    fn frame(mac: MacAddr, ip: Ipv4Addr, port: u16, words: &[u32]) -> Vec<u8> {
        let payload: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        // As an answer to a request of the other side.
        let udp = UdpHeader { src_port: port.into(), dst_port: 7777.into(), length: 0.into(), checksum: 0.into() };
        let ethernet = EthernetHeader::new(PEER.0, mac, ETHERTYPE_IPV4);
        let request = Request { ethernet, ip: Ipv4Header::new(ip, PEER.1, PROTOCOL_UDP), udp, payload: &[] };
        request.answer(&payload)
    }

    /// Words of the next frame that is sent.
    fn sent(engine: &mut SoftEngine) -> Option<Vec<u32>> {
        let mut buffer = [0; 4096];
        let (length, _) = engine.pull(&mut buffer)?;
        let request = Request::parse(&buffer[..length], 7777)?;
        assert_eq!((request.ethernet.dst, request.ip.dst(), request.ip.src()), (PEER.0, PEER.1, OWN.ip));
        Some(request.payload.as_chunks::<4>().0.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect())
    }

    /// A control packet that reads TYPE.
    const READ: [u32; 3] = [0x2000_00f0, 0x2000_010f, 0];

    #[test]
    fn datagrams_to_the_device_and_its_port_are_answered() {
        let mut engine = engine();
        engine.push(&frame(OWN.mac, OWN.ip, 50001, &READ)).unwrap();
        assert_eq!(sent(&mut engine), Some(vec![READ[0], READ[1] & !0xf, u32::from_be_bytes(*b"NACL")]));
        let other_mac = MacAddr([2, 0, 0, 0, 0, 3]);
        let mut checksum = frame(OWN.mac, OWN.ip, 50001, &READ);
        checksum[PORT_AT + 5] = 1;
        for wrong in [
            frame(other_mac, OWN.ip, 50001, &READ),
            frame(OWN.mac, Ipv4Addr::new(10, 77, 0, 3), 50001, &READ),
            frame(OWN.mac, OWN.ip, 50002, &READ),
            checksum,
        ] {
            engine.push(&wrong).unwrap();
            assert_eq!(sent(&mut engine), None);
        }
        assert_eq!(engine.services.counters()[0], ("rx_message", 1));
        engine.write_register(&device::CCI_PORT, 0).unwrap();
        engine.push(&frame(OWN.mac, OWN.ip, 50001, &READ)).unwrap();
        assert_eq!(sent(&mut engine), None);
        engine.write_register(&device::CCI_PORT, 50002).unwrap();
        engine.push(&frame(OWN.mac, OWN.ip, 50002, &READ)).unwrap();
        assert!(sent(&mut engine).is_some());
    }

    #[test]
    fn answers_that_wait_are_bounded() {
        let mut engine = engine();
        engine.services.server.config_mut().strangers.pause = Duration::ZERO;
        for _ in 0..MAX_FRAMES + 5 {
            engine.push(&frame(OWN.mac, OWN.ip, 50001, &READ)).unwrap();
        }
        assert_eq!(engine.services.drop_room, 5);
        assert_eq!((0..).map_while(|_| sent(&mut engine)).count(), MAX_FRAMES);
    }

    /// Each register of the map: the network has no more than the local bus, and nothing that it may not have.
    #[test]
    fn every_register_is_kept_as_the_map_says() {
        let mut engine = engine();
        let mut readable = 0;
        for register in device::BLOCK.registers {
            let address = register.at(device::BASE);
            let local = engine.read_register(register).is_some();
            let bus = NetworkBus { counters: engine.services.counters(), engine: &mut engine };
            let permission = bus.permission(address, false);
            assert_eq!(permission == Permission::Public, register.readable() && register.reader == Who::Anybody);
            assert_ne!(bus.permission(address, true), Permission::Public, "{}", register.name);
            readable += usize::from(local && permission != Permission::Local);
        }
        assert!(readable > 50, "{readable}");
        let words = [device::CCI_TOKEN_0, device::CCI_TOKEN_1, device::CCI_TOKEN_2, device::CCI_TOKEN_3];
        for register in words {
            engine.write_register(&register, 7).unwrap();
            assert_eq!(engine.read_register(&register), None, "{}", register.name);
            let bus = NetworkBus { counters: engine.services.counters(), engine: &mut engine };
            assert_eq!(bus.permission(register.at(device::BASE), true), Permission::Local);
        }
    }
}
