// SPDX-License-Identifier: Apache-2.0
//! Peers that the network says are gone: their connections end at once, in every phase, and others go on.

use crate::sim::{Net, PORT, ip};
use nacelle_roce::{ConnectFailure, ConnectOptions, DisconnectReason, Event, RecvWr, SendWr, WcStatus};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(100);

#[test]
fn established_connections_end_with_their_peer() {
    let mut net = Net::new(1, 3);
    let options = ConnectOptions::default();
    let (lost, _) = net.connect(0, 1, &options);
    let (kept, there) = net.connect(0, 2, &options);
    net.nodes[1].alive = false;
    net.ep(0).transport.post_send(lost, SendWr::send(7, b"nobody".to_vec())).unwrap();
    net.run(Duration::from_millis(1));
    net.ep(0).transport.peer_gone(ip(1).into());
    let Some(Event::Completion(flushed)) = net.event(0, SHORT) else { panic!() };
    assert_eq!((flushed.conn, flushed.id, flushed.status), (lost, 7, WcStatus::WrFlushErr));
    let Some(Event::Disconnected { conn, reason, .. }) = net.event(0, SHORT) else { panic!() };
    assert_eq!((conn, reason), (lost, DisconnectReason::PeerGone));
    assert_eq!(net.ep(0).transport.connections().map(|(id, _)| id).collect::<Vec<_>>(), [kept]);
    // Nothing is left of it, not even a timer.
    net.ep(0).transport.peer_gone(ip(1).into());
    net.run(SHORT);
    assert!(net.nodes[0].events.is_empty());
    // The other one works.
    net.ep(2).transport.post_recv(there, RecvWr { id: 1, slice: None }).unwrap();
    net.ep(0).transport.post_send(kept, SendWr::send(8, Vec::new())).unwrap();
    assert_eq!(net.success(0).id, 8);
}

#[test]
fn attempts_to_connect_and_to_disconnect_end_too() {
    let mut net = Net::new(1, 2);
    net.nodes[1].alive = false;
    for waited in [Duration::ZERO, Duration::from_millis(1)] {
        let now = net.now;
        let conn = net.ep(0).connect(now, ip(1), PORT, ConnectOptions::default()).unwrap();
        net.run(waited);
        net.ep(0).transport.peer_gone(ip(1).into());
        let ended = net.event(0, SHORT);
        assert_eq!(ended, Some(Event::ConnectFailed { conn, reason: ConnectFailure::Unreachable }));
    }
    net.nodes[1].alive = true;
    let (conn, _) = net.connect(0, 1, &ConnectOptions::default());
    net.nodes[1].alive = false;
    let now = net.now;
    net.ep(0).transport.disconnect(now, conn);
    net.run(Duration::from_millis(1));
    net.ep(0).transport.peer_gone(ip(1).into());
    let Some(Event::Disconnected { reason, .. }) = net.event(0, SHORT) else { panic!() };
    assert_eq!(reason, DisconnectReason::Local);
    assert_eq!(net.ep(0).transport.connections().count(), 0);
}
