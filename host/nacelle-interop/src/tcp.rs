// SPDX-License-Identifier: Apache-2.0
//! One TCP connection beside the endpoint, on the same addresses.

use crate::{
    failure::{Failure, Outcome},
    station::Station,
};
use core::net::Ipv4Addr;
use nacelle_roce::wire::MacAddr;
use smoltcp::{
    iface::{Config, Interface, SocketHandle, SocketSet},
    phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken},
    socket::tcp::{Socket, SocketBuffer, State},
    time::Instant,
    wire::{HardwareAddress, IpAddress, IpCidr},
};
use std::collections::VecDeque;

/// Length of the Ethernet header, which is this module's business: the stack sees IP alone.
const ETHERNET: usize = 14;
/// Bytes that wait in each direction.
const BUFFER: usize = 4096;

/// IP packets in and out.
struct Packets {
    rx: VecDeque<Vec<u8>>,
    tx: VecDeque<Vec<u8>>,
    mtu: usize,
}

struct Rx(Vec<u8>);
struct Tx<'a>(&'a mut VecDeque<Vec<u8>>);

impl RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

impl TxToken for Tx<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Packets {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Rx, Tx<'_>)> {
        let packet = self.rx.pop_front()?;
        Some((Rx(packet), Tx(&mut self.tx)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Tx<'_>> {
        Some(Tx(&mut self.tx))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu;
        capabilities
    }
}

/// A TCP connection to one peer, or the wait for it.
pub(crate) struct Tcp {
    packets: Packets,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// Known from the peer's first segment on, or before.
    peer_mac: Option<MacAddr>,
}

impl Tcp {
    fn new(s: &mut Station, peer_mac: Option<MacAddr>) -> Self {
        let mut packets = Packets { rx: VecDeque::new(), tx: VecDeque::new(), mtu: 1500 };
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = s.now().as_nanos();
        let mut interface = Interface::new(config, &mut packets, now(s));
        interface.update_ip_addrs(|addrs| {
            // Prefix 0: every peer is a neighbour, and the only one.
            let _room_for_one = addrs.push(IpCidr::new(IpAddress::Ipv4(s.ep().interface.ip()), 0));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let buffer = || SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = Socket::new(buffer(), buffer());
        // What was read is acknowledged at once: this connection is not polled between two calls.
        socket.set_ack_delay(None);
        let socket = sockets.add(socket);
        Self { packets, interface, sockets, socket, peer_mac }
    }

    /// Waits for a connection to a port.
    pub(crate) fn accept(s: &mut Station, port: u16) -> Outcome<Self> {
        let mut tcp = Self::new(s, None);
        tcp.socket().listen(port).map_err(|e| Failure::Wrong(format!("cannot listen: {e:?}")))?;
        s.until("waiting for a TCP connection", |s| {
            tcp.step(s)?;
            Ok(tcp.socket().may_send().then_some(()))
        })?;
        Ok(tcp)
    }

    /// Connects to a port, repeatedly while no server listens there.
    pub(crate) fn connect(s: &mut Station, ip: Ipv4Addr, port: u16) -> Outcome<Self> {
        let mac = s.resolve(ip)?;
        let mut own_port = 49152 + (s.now().as_nanos() % 8192) as u16;
        loop {
            let mut tcp = Self::new(s, Some(mac));
            own_port += 1;
            let socket = tcp.sockets.get_mut::<Socket<'_>>(tcp.socket);
            socket
                .connect(tcp.interface.context(), (IpAddress::Ipv4(ip), port), own_port)
                .map_err(|e| Failure::Wrong(format!("cannot connect: {e:?}")))?;
            let up = s.until("connecting by TCP", |s| {
                tcp.step(s)?;
                Ok(match tcp.socket().state() {
                    State::SynSent | State::SynReceived => None,
                    State::Closed => Some(false),
                    _ => Some(true),
                })
            })?;
            if up {
                return Ok(tcp);
            }
            s.pause(core::time::Duration::from_millis(200))?;
        }
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// Moves segments between station and stack.
    fn step(&mut self, s: &mut Station) -> Outcome {
        while let Some(frame) = s.segments.pop_front() {
            let mac: [u8; 6] = std::array::from_fn(|i| frame[6 + i]);
            self.peer_mac.get_or_insert(MacAddr(mac));
            self.packets.rx.push_back(frame[ETHERNET..].to_vec());
        }
        self.interface.poll(now(s), &mut self.packets, &mut self.sockets);
        while let Some(packet) = self.packets.tx.pop_front() {
            let Some(to) = self.peer_mac else { continue };
            let mut frame = Vec::with_capacity(ETHERNET + packet.len());
            frame.extend(to.0);
            frame.extend(s.ep().interface.mac().0);
            frame.extend([8, 0]);
            frame.extend(packet);
            s.send(&frame)?;
        }
        Ok(())
    }

    /// Sends bytes and waits until they are acknowledged.
    pub(crate) fn write(&mut self, s: &mut Station, bytes: &[u8]) -> Outcome {
        self.socket().send_slice(bytes).map_err(|e| Failure::Wrong(format!("cannot send by TCP: {e:?}")))?;
        s.until("sending by TCP", |s| {
            self.step(s)?;
            Ok((self.socket().send_queue() == 0).then_some(()))
        })
    }

    /// Waits for exactly `len` bytes.
    pub(crate) fn read(&mut self, s: &mut Station, len: usize) -> Outcome<Vec<u8>> {
        let mut bytes = Vec::new();
        s.until("receiving by TCP", |s| {
            self.step(s)?;
            let socket = self.socket();
            while bytes.len() < len && socket.can_recv() {
                let mut part = vec![0; len - bytes.len()];
                let got = socket.recv_slice(&mut part).unwrap_or(0);
                bytes.extend(&part[..got]);
            }
            if bytes.len() == len {
                return Ok(Some(()));
            }
            if !socket.may_recv() {
                return Err(Failure::Wrong(format!("the TCP connection ended after {} of {len} bytes", bytes.len())));
            }
            Ok(None)
        })?;
        Ok(bytes)
    }

    /// Ends the connection and waits until the peer has ended it too.
    pub(crate) fn close(mut self, s: &mut Station) -> Outcome {
        self.socket().close();
        s.until("closing the TCP connection", |s| {
            self.step(s)?;
            Ok(matches!(self.socket().state(), State::Closed | State::TimeWait).then_some(()))
        })
    }
}

fn now(s: &mut Station) -> Instant {
    Instant::from_micros((s.now().as_nanos() / 1000) as i64)
}
