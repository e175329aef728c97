// SPDX-License-Identifier: Apache-2.0
//! `ucmatose`: the server sends messages, the client sends as many back, the server disconnects.

use crate::{
    failure::{Outcome, check},
    station::{Inbox, Station},
};
use core::net::Ipv4Addr;
use nacelle_roce::{ConnId, ConnectOptions, Endpoint, SendWr};

/// Port that ucmatose takes by itself.
pub(crate) const PORT: u16 = 7471;
/// Work requests have numbers of their own: receives have those of their slots.
const SENDS: u64 = 1 << 32;

/// What is the same for both roles.
pub(crate) struct Plan {
    pub(crate) port: u16,
    /// Messages each way.
    pub(crate) count: u32,
    /// Bytes of a message.
    pub(crate) size: usize,
}

fn options() -> ConnectOptions {
    ConnectOptions { responder_resources: 1, initiator_depth: 1, retry_count: 5, ..ConnectOptions::default() }
}

fn post_all(s: &mut Station, conn: ConnId, plan: &Plan) -> Outcome {
    for i in 0..u64::from(plan.count) {
        s.ep().transport.post_send(conn, SendWr::send(SENDS + i, vec![i as u8; plan.size]))?;
    }
    Ok(())
}

fn send_all(s: &mut Station, conn: ConnId, plan: &Plan) -> Outcome {
    post_all(s, conn, plan)?;
    for i in 0..u64::from(plan.count) {
        s.done("sending the messages", conn, SENDS + i)?;
    }
    println!("ok: {} messages of {} bytes sent", plan.count, plan.size);
    Ok(())
}

fn recv_all(s: &mut Station, inbox: &Inbox, plan: &Plan) -> Outcome {
    for _ in 0..plan.count {
        let message = inbox.recv(s, "receiving the messages")?;
        check(message.len() == plan.size, || format!("a message has {} bytes", message.len()))?;
    }
    println!("ok: {} messages of {} bytes received", plan.count, plan.size);
    Ok(())
}

/// `ucmatose` without `-s`.
pub(crate) fn server(s: &mut Station, plan: &Plan) -> Outcome {
    s.ep().transport.listen(plan.port);
    let (conn, _) = s.request()?;
    let inbox = Inbox::post(s.ep(), conn, plan.count as usize, plan.size)?;
    s.accept(conn, options())?;
    send_all(s, conn, plan)?;
    recv_all(s, &inbox, plan)?;
    s.disconnect(conn)?;
    println!("ok: disconnected");
    Ok(())
}

/// `ucmatose -s ADDRESS`. The server disconnects as soon as it has all messages: if an acknowledgement is lost, the work requests
/// behind it are flushed. So the end of the connection, not the completions, shows that the messages have arrived.
pub(crate) fn client(s: &mut Station, peer: Ipv4Addr, plan: &Plan) -> Outcome {
    let post = |ep: &mut Endpoint, conn| Inbox::post(ep, conn, plan.count as usize, plan.size);
    let (conn, inbox) = s.connect(peer, plan.port, &options(), post)?;
    recv_all(s, &inbox, plan)?;
    post_all(s, conn, plan)?;
    s.ended_by_peer(conn)?;
    println!("ok: disconnected by the server");
    Ok(())
}
