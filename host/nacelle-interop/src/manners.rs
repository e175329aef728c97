// SPDX-License-Identifier: Apache-2.0
//! Refusals and good-byes, against any program that connects or listens by the RDMA connection manager.

use crate::{
    failure::{Failure, Outcome, check},
    station::Station,
};
use core::{net::Ipv4Addr, time::Duration};
use nacelle_roce::{ConnectFailure, ConnectOptions, wire::cm::RejReason};

/// Refuses every request on a port until `count` have come.
pub(crate) fn reject(s: &mut Station, port: u16, count: u32, reason: u16, late: Duration) -> Outcome {
    s.ep().transport.listen(port);
    for _ in 0..count {
        let (conn, peer) = s.request()?;
        s.pause(late)?;
        s.ep().transport.reject_with(conn, RejReason(reason), b"no, thank you")?;
        println!("ok: refused {peer} with reason {reason}: {}", RejReason(reason).text());
    }
    Ok(())
}

/// Accepts requests on a port, after a while, and ends each connection at once, or lets the peer do so.
pub(crate) fn hang_up(s: &mut Station, port: u16, count: u32, late: Duration, wait: bool) -> Outcome {
    s.ep().transport.listen(port);
    for _ in 0..count {
        let (conn, peer) = s.request()?;
        s.pause(late)?;
        s.accept(conn, ConnectOptions::default())?;
        if wait {
            s.ended_by_peer(conn)?;
            println!("ok: {peer} connected and disconnected");
        } else {
            s.disconnect(conn)?;
            println!("ok: {peer} connected and was disconnected");
        }
    }
    Ok(())
}

/// Connects to a port without a service, and checks the reason of the REJ.
pub(crate) fn refused(s: &mut Station, peer: Ipv4Addr, port: u16, expected: u16) -> Outcome {
    let now = s.now();
    let conn = s.ep().connect(now, peer, port, ConnectOptions::default())?;
    match s.connected(conn)? {
        Ok(_) => Err(Failure::Wrong("the peer has accepted".into())),
        Err(ConnectFailure::Rejected { reason, .. }) => {
            check(reason.0 == expected, || format!("refused with reason {} ({})", reason.0, reason.text()))?;
            println!("ok: refused with reason {expected}: {}", reason.text());
            Ok(())
        }
        Err(other) => Err(Failure::Connect(other)),
    }
}

/// Connects and disconnects, again and again.
pub(crate) fn connect(s: &mut Station, peer: Ipv4Addr, port: u16, count: u32) -> Outcome {
    for _ in 0..count {
        let (conn, ()) = s.connect(peer, port, &ConnectOptions::default(), |_, _| Ok(()))?;
        s.disconnect(conn)?;
    }
    println!("ok: connected and disconnected {count} times");
    Ok(())
}
