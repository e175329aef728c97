// SPDX-License-Identifier: Apache-2.0
//! Whether the RoCEv2 port of a peer is closed, as far as the peer's host says.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use crate::ROCE_PORT;

/// What is known of port 4791 of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortProbe {
    /// The peer's host says that no socket has the port (ICMP port unreachable).
    Closed,
    /// A host on the way says that there is no way to the peer (ICMP host or network unreachable), or no neighbour answers.
    NoHost,
    /// Nothing came back: the port is open, or the peer's host is silent.
    Silent,
}

impl PortProbe {
    /// Sends an empty datagram, which every RoCE peer drops, from a free port of `local`. A peer on this machine answers at once,
    /// another one within `patience`.
    ///
    /// # Errors
    /// The error of the system, if `local` cannot be used or there is no route.
    pub fn send(peer: IpAddr, local: IpAddr, patience: Duration) -> io::Result<Self> {
        let socket = UdpSocket::bind((local, 0))?;
        socket.connect((peer, ROCE_PORT))?;
        socket.send(&[])?;
        let answer = if patience.is_zero() {
            socket.take_error()?
        } else {
            socket.set_read_timeout(Some(patience))?;
            socket.recv(&mut [0]).err()
        };
        Ok(match answer.map(|error| error.kind()) {
            Some(ErrorKind::ConnectionRefused) => Self::Closed,
            Some(ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable) => Self::NoHost,
            _ => Self::Silent,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::UdpLink;

    #[test]
    fn a_closed_port_is_told_from_an_open_one() {
        let open = UdpLink::for_peer(Ipv4Addr::LOCALHOST.into()).unwrap();
        let peer = crate::DatagramLink::local(&open).ip();
        let local = Ipv4Addr::LOCALHOST.into();
        for patience in [Duration::ZERO, Duration::from_millis(20)] {
            assert_eq!(PortProbe::send(peer, local, patience).unwrap(), PortProbe::Silent);
        }
        drop(open);
        for patience in [Duration::ZERO, Duration::from_secs(5)] {
            assert_eq!(PortProbe::send(peer, local, patience).unwrap(), PortProbe::Closed);
        }
    }
}
