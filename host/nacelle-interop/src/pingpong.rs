// SPDX-License-Identifier: Apache-2.0
//! `ibv_rc_pingpong`: the parameters of queue pairs are exchanged over TCP, then messages go to and fro; the client begins.

use crate::{
    failure::{Failure, Outcome, check},
    station::{Inbox, Station},
    tcp::Tcp,
};
use core::net::{Ipv4Addr, Ipv6Addr};
use nacelle_roce::{
    ConnId, ConnectOptions, QpModify, Rtr, Rts, SendWr, WcOpcode,
    wire::{Psn, Qpn, cm::PathMtu},
};

/// TCP port that ibv_rc_pingpong takes by itself.
pub(crate) const PORT: u16 = 18515;
/// Bytes of an introduction, its final zero included.
const INTRODUCTION: usize = 52;
/// Receives posted, as ibv_rc_pingpong does.
const RECEIVES: usize = 64;
const SEND: u64 = 1 << 32;

/// What is the same for both roles.
pub(crate) struct Plan {
    pub(crate) port: u16,
    /// Messages each way (`-n`).
    pub(crate) iterations: u32,
    /// Bytes of a message (`-s`).
    pub(crate) size: usize,
}

/// The parameters of one side.
struct Introduction {
    qpn: Qpn,
    psn: Psn,
    ip: Ipv4Addr,
}

impl Introduction {
    /// LID, queue pair, PSN and GID in hexadecimal.
    fn text(&self) -> Vec<u8> {
        let gid: String = self.ip.to_ipv6_mapped().octets().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut bytes = format!("{:04x}:{:06x}:{:06x}:{gid}", 0, self.qpn.get(), self.psn.get()).into_bytes();
        bytes.push(0);
        bytes
    }

    fn parse(bytes: &[u8]) -> Outcome<Self> {
        let wrong = || Failure::Wrong(format!("an introduction of {:?}", String::from_utf8_lossy(bytes)));
        let text = std::str::from_utf8(bytes).map_err(|_| wrong())?.trim_end_matches('\0');
        let fields: Vec<&str> = text.split(':').collect();
        let [_, qpn, psn, gid] = fields[..] else { return Err(wrong()) };
        let number = |field| u32::from_str_radix(field, 16).map_err(|_| wrong());
        let gid = Ipv6Addr::from(u128::from_str_radix(gid, 16).map_err(|_| wrong())?);
        let ip = gid.to_ipv4_mapped().ok_or_else(|| {
            Failure::Wrong(format!("the GID {gid} holds no IPv4 address; try another -g on the other side"))
        })?;
        Ok(Self { qpn: Qpn::new(number(qpn)?), psn: Psn::new(number(psn)?), ip })
    }
}

/// A queue pair without a peer yet, and its parameters for the peer.
fn create(s: &mut Station, plan: &Plan) -> Outcome<(ConnId, Inbox, Introduction)> {
    let now = s.now();
    let conn =
        s.ep().transport.create_qp(now, ConnectOptions { selective_repeat: false, ..ConnectOptions::default() })?;
    s.ep().transport.modify_qp(now, conn, QpModify::Init)?;
    let inbox = Inbox::post(s.ep(), conn, RECEIVES, plan.size)?;
    let qpn = s.ep().transport.connection(conn).map_or(Qpn::default(), |info| info.local_qpn);
    Ok((conn, inbox, Introduction { qpn, psn: Psn::new(now.as_nanos() as u32), ip: s.ep().interface.ip() }))
}

/// Brings a queue pair to RTS.
fn connect(s: &mut Station, conn: ConnId, own: &Introduction, theirs: &Introduction) -> Outcome {
    s.resolve(theirs.ip)?;
    let now = s.now();
    let path = s.ep().interface.path(now, theirs.ip.into())?;
    let rtr = Rtr::new(path, theirs.qpn, theirs.psn, PathMtu::Mtu1024);
    s.ep().transport.modify_qp(now, conn, QpModify::Rtr(rtr))?;
    Ok(s.ep().transport.modify_qp(now, conn, QpModify::Rts(Rts { rnr_retry: 7, ..Rts::new(own.psn) }))?)
}

/// `ibv_rc_pingpong` without an address.
pub(crate) fn server(s: &mut Station, plan: &Plan) -> Outcome {
    let (conn, inbox, own) = create(s, plan)?;
    let mut tcp = Tcp::accept(s, plan.port)?;
    let theirs = Introduction::parse(&tcp.read(s, INTRODUCTION)?)?;
    connect(s, conn, &own, &theirs)?;
    tcp.write(s, &own.text())?;
    check(tcp.read(s, 5)? == b"done\0", || "the client does not say that it is done".into())?;
    println!("ok: introduced by TCP");
    for _ in 0..plan.iterations {
        expect(s, conn, &inbox, plan)?;
        send(s, conn, plan, 0x7c)?;
    }
    finish(s, conn, plan, tcp)
}

/// `ibv_rc_pingpong ADDRESS`.
pub(crate) fn client(s: &mut Station, peer: Ipv4Addr, plan: &Plan) -> Outcome {
    let (conn, inbox, own) = create(s, plan)?;
    let mut tcp = Tcp::connect(s, peer, plan.port)?;
    tcp.write(s, &own.text())?;
    let theirs = Introduction::parse(&tcp.read(s, INTRODUCTION)?)?;
    connect(s, conn, &own, &theirs)?;
    tcp.write(s, b"done\0")?;
    println!("ok: introduced by TCP");
    for _ in 0..plan.iterations {
        send(s, conn, plan, 0x7b)?;
        expect(s, conn, &inbox, plan)?;
    }
    finish(s, conn, plan, tcp)
}

fn send(s: &mut Station, conn: ConnId, plan: &Plan, fill: u8) -> Outcome {
    s.ep().transport.post_send(conn, SendWr::send(SEND, vec![fill; plan.size]))?;
    s.done("sending a message", conn, SEND)
}

/// A message of equal bytes has come.
fn expect(s: &mut Station, conn: ConnId, inbox: &Inbox, plan: &Plan) -> Outcome {
    let c = s.completion("waiting for a message", conn, |c| c.opcode == WcOpcode::Recv)?;
    let message = inbox.take(s, &c)?;
    check(message.len() == plan.size, || format!("a message of {} bytes", message.len()))?;
    // The programs fill their buffer with 7b or 7c.
    let filled = message.iter().all(|byte| (0x7b..=0x7c).contains(byte) && *byte == message[0]);
    check(filled, || format!("a message that begins with {:02x?}", &message[..message.len().min(16)]))
}

fn finish(s: &mut Station, conn: ConnId, plan: &Plan, tcp: Tcp) -> Outcome {
    println!("ok: {} messages of {} bytes each way", plan.iterations, plan.size);
    // The peer may not have the last acknowledgement yet.
    tcp.close(s)?;
    s.ep().transport.destroy_qp(conn)?;
    println!("ok: introduction's TCP connection closed");
    Ok(())
}
