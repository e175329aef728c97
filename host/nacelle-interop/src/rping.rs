// SPDX-License-Identifier: Apache-2.0
//! `rping`: the client advertises a buffer, the server reads it, the client advertises another, the server writes the same
//! bytes there. Both announcements are SENDs of 16 bytes: address, key, length.

use crate::{
    failure::{Outcome, check},
    station::{Inbox, Station},
};
use core::net::Ipv4Addr;
use nacelle_roce::{
    Access, ConnId, ConnectOptions, SendWr,
    wire::{RemoteAddr, Rkey},
};

/// Port that rping takes by itself.
pub(crate) const PORT: u16 = 7174;
/// Bytes of an announcement.
const INFO: usize = 16;
/// Work requests have numbers of their own: receives have those of their slots.
const READ: u64 = 100;
const WRITE: u64 = 101;
const SEND: u64 = 102;

/// What is the same for both roles.
pub(crate) struct Plan {
    pub(crate) port: u16,
    /// Pings.
    pub(crate) count: u32,
    /// Bytes of a ping.
    pub(crate) size: usize,
}

/// An announced buffer.
struct Info {
    addr: RemoteAddr,
    rkey: Rkey,
    len: usize,
}

impl Info {
    fn parse(bytes: &[u8]) -> Outcome<Self> {
        let bytes: &[u8; INFO] = bytes.try_into().map_err(|_| {
            crate::failure::Failure::Wrong(format!("an announcement has {} bytes instead of 16", bytes.len()))
        })?;
        let [addr, rest] = [&bytes[..8], &bytes[8..]];
        let word = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        Ok(Self {
            addr: RemoteAddr(u64::from(word(addr)) << 32 | u64::from(word(&addr[4..]))),
            rkey: Rkey(word(rest)),
            len: word(&rest[4..]) as usize,
        })
    }

    fn bytes(&self) -> Vec<u8> {
        [&self.addr.0.to_be_bytes()[..], &self.rkey.0.to_be_bytes(), &(self.len as u32).to_be_bytes()].concat()
    }
}

/// The bytes of a ping: its number, then letters that begin one further each time, then a zero.
fn text(ping: u32, size: usize) -> Vec<u8> {
    let mut bytes = format!("rdma-ping-{ping}: ").into_bytes();
    let mut letter = 65 + ping % 58;
    while bytes.len() < size {
        bytes.push(letter as u8);
        letter = if letter == 122 { 65 } else { letter + 1 };
    }
    bytes.truncate(size);
    if let Some(last) = bytes.last_mut() {
        *last = 0;
    }
    bytes
}

/// `rping -s`.
pub(crate) fn server(s: &mut Station, plan: &Plan) -> Outcome {
    s.ep().transport.listen(plan.port);
    let (conn, _) = s.request()?;
    let inbox = Inbox::post(s.ep(), conn, 4, INFO)?;
    let buffer = s.ep().transport.register(vec![0; plan.size], Access::LOCAL, None)?;
    s.accept(conn, ConnectOptions::default())?;
    for ping in 0..plan.count {
        let source = Info::parse(&inbox.recv(s, "waiting for the client's source")?)?;
        check(source.len == plan.size, || format!("the client pings with {} bytes", source.len))?;
        s.ep().transport.post_send(conn, SendWr::read(READ, buffer.all(), source.addr, source.rkey))?;
        s.done("reading the client's buffer", conn, READ)?;
        let got = s.bytes(&buffer.all())?;
        check(got == text(ping, plan.size), || format!("ping {ping} is {:?}", String::from_utf8_lossy(&got)))?;
        go_ahead(s, conn)?;
        let sink = Info::parse(&inbox.recv(s, "waiting for the client's sink")?)?;
        check(sink.len == plan.size, || format!("the client takes {} bytes", sink.len))?;
        s.ep().transport.post_send(conn, SendWr::write(WRITE, buffer.all(), sink.addr, sink.rkey))?;
        s.done("writing to the client's buffer", conn, WRITE)?;
        go_ahead(s, conn)?;
    }
    println!("ok: {} pings of {} bytes read, with the right contents, and written back", plan.count, plan.size);
    s.ended_by_peer(conn)?;
    println!("ok: disconnected by the client");
    Ok(())
}

/// Confirms to the client that its announcement has been used.
fn go_ahead(s: &mut Station, conn: ConnId) -> Outcome {
    s.ep().transport.post_send(conn, SendWr::send(SEND, vec![0; INFO]))?;
    s.done("telling the client to go on", conn, SEND)
}

/// `rping -c`.
pub(crate) fn client(s: &mut Station, peer: Ipv4Addr, plan: &Plan) -> Outcome {
    let options = ConnectOptions { responder_resources: 1, initiator_depth: 1, ..ConnectOptions::default() };
    let (conn, inbox) = s.connect(peer, plan.port, &options, |ep, conn| Inbox::post(ep, conn, 4, INFO))?;
    let source = s.ep().transport.register(vec![0; plan.size], Access::REMOTE_READ, Some(conn))?;
    let sink = s.ep().transport.register(vec![0; plan.size], Access::REMOTE_WRITE, Some(conn))?;
    for ping in 0..plan.count {
        let expected = text(ping, plan.size);
        if let Some(bytes) = s.ep().transport.region_mut(source.id) {
            bytes.write(0, &expected)?;
        }
        for (region, what) in [(source, "read"), (sink, "write")] {
            let info = Info { addr: region.addr, rkey: region.rkey, len: plan.size };
            s.ep().transport.post_send(conn, SendWr::send(SEND, info.bytes()))?;
            s.done("announcing a buffer", conn, SEND)?;
            let told = inbox.recv(s, &format!("waiting for the server to {what}"))?;
            check(told.len() == INFO, || format!("the server's go-ahead has {} bytes", told.len()))?;
        }
        let got = s.bytes(&sink.all())?;
        check(got == expected, || format!("pong {ping} is {:?}", String::from_utf8_lossy(&got)))?;
    }
    println!("ok: {} pings of {} bytes came back as they were", plan.count, plan.size);
    s.disconnect(conn)?;
    println!("ok: disconnected");
    Ok(())
}
