// SPDX-License-Identifier: Apache-2.0
//! The driver against a card of software, whose network gives each frame back: frames as they are, rings that are full, a card that
//! lies, and one that goes.

#[path = "../../nacelle-vhost/tests/support/card.rs"]
#[allow(dead_code, unreachable_pub, reason = "the back end of vhost-user uses the rest")]
mod card;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use card::{Lie, MAC, MTU, Slot};
use nacelle_link::{Link, LinkError, MAX_FRAME, MIN_FRAME};
use nacelle_pci::UserDevice;
use nacelle_virtio::{LinkConfig, VirtioLink};

const LONGEST: usize = MTU as usize + 18;
const PATIENCE: Duration = Duration::from_secs(20);

fn start(config: LinkConfig) -> (Slot, VirtioLink<UserDevice>) {
    let (slot, device) = Slot::new();
    let link = VirtioLink::new(device, config).unwrap();
    (slot, link)
}

fn frame(length: usize) -> Vec<u8> {
    (0..length).map(|_| fastrand::u8(..)).collect()
}

fn received(link: &mut VirtioLink<UserDevice>) -> Option<Vec<u8>> {
    let mut buffer = vec![0; MAX_FRAME];
    let length = link.recv(&mut buffer, Instant::now() + PATIENCE).unwrap()?;
    buffer.truncate(length);
    Some(buffer)
}

#[test]
fn the_card_says_who_it_is() {
    let (slot, link) = start(LinkConfig::default());
    assert_eq!((link.mac(), link.mtu(), link.link_up()), (MAC, MTU, true));
    assert!(slot.seen.running.load(Ordering::Relaxed));
    drop(link);
    assert!(!slot.seen.running.load(Ordering::Relaxed), "the card is halted");
}

#[test]
fn frames_pass_as_they_are() {
    let (_slot, mut link) = start(LinkConfig::default());
    let lengths = [MIN_FRAME, 60, 61, 64, 1514, LONGEST]
        .into_iter()
        .chain((0..100).map(|_| fastrand::usize(MIN_FRAME..=LONGEST)));
    let mut bytes = 0;
    for (count, length) in (1..).zip(lengths) {
        let sent = frame(length);
        link.send(&sent).unwrap();
        assert_eq!(received(&mut link), Some(sent));
        bytes += length as u64;
        let stats = link.stats();
        assert_eq!((stats.tx_frames, stats.tx_bytes, stats.rx_frames, stats.rx_bytes), (count, bytes, count, bytes));
    }
}

#[test]
fn more_frames_than_a_ring_has_entries_keep_their_order() {
    let (_slot, mut link) = start(LinkConfig { ring_size: 4, patience: PATIENCE, ..LinkConfig::default() });
    for round in 0..50 {
        let sent: Vec<_> = (0..fastrand::usize(1..20)).map(|_| frame(fastrand::usize(MIN_FRAME..200))).collect();
        for frame in &sent {
            link.send_more(frame).unwrap();
        }
        link.flush().unwrap();
        for frame in sent {
            assert_eq!(received(&mut link), Some(frame), "round {round}");
        }
    }
    assert_eq!(link.stats().tx_dropped, 0);
}

#[test]
fn a_frame_that_does_not_fit_is_refused_or_dropped() {
    let (_slot, mut link) = start(LinkConfig::default());
    for length in [MIN_FRAME - 1, MAX_FRAME + 1] {
        assert!(matches!(link.send(&frame(length)), Err(LinkError::FrameLength { .. })));
    }
    link.send(&frame(LONGEST + 1)).unwrap();
    assert_eq!(link.stats().tx_dropped, 1);
    let sent = frame(100);
    link.send(&sent).unwrap();
    assert_eq!(received(&mut link), Some(sent));
}

#[test]
fn a_card_that_sends_nothing_holds_nobody_up() {
    let (slot, mut link) = start(LinkConfig { ring_size: 8, ..LinkConfig::default() });
    slot.seen.deaf.store(true, Ordering::Relaxed);
    for _ in 0..8 {
        link.send(&frame(100)).unwrap();
    }
    let begin = Instant::now();
    link.send(&frame(100)).unwrap();
    assert!(begin.elapsed() < PATIENCE);
    assert_eq!((link.stats().tx_frames, link.stats().tx_dropped), (8, 1));
    slot.seen.deaf.store(false, Ordering::Relaxed);
    for _ in 0..8 {
        assert!(received(&mut link).is_some());
    }
    link.send(&frame(100)).unwrap();
    assert_eq!(link.stats().tx_dropped, 1);
}

#[test]
fn frames_that_wait_are_told_without_another_interrupt() {
    let (_slot, mut link) = start(LinkConfig::default());
    for _ in 0..5 {
        link.send(&frame(100)).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    for left in (0..5).rev() {
        assert!(received(&mut link).is_some());
        assert_eq!(link.next_event().is_some(), left > 0);
    }
}

#[test]
fn nothing_comes_by_itself() {
    let (_slot, mut link) = start(LinkConfig::default());
    let mut buffer = [0; MAX_FRAME];
    let begin = Instant::now();
    assert_eq!(link.recv(&mut buffer, begin + Duration::from_millis(30)).unwrap(), None);
    assert!((Duration::from_millis(30)..PATIENCE).contains(&begin.elapsed()));
}

#[test]
fn a_card_that_breaks_the_rules_ends_the_link() {
    for (lie, why) in [
        (Lie::NoBuffer, "gives back buffer 256"),
        (Lie::Twice, "gives back buffer 0"),
        (Lie::TooMuch, "1048576 bytes"),
        (Lie::TooMany, "more buffers than it has"),
    ] {
        let (slot, mut link) = start(LinkConfig::default());
        // Buffer 0 is free again.
        link.send(&frame(100)).unwrap();
        assert!(received(&mut link).is_some());
        *slot.seen.lie.lock().unwrap() = Some(lie);
        let mut buffer = [0; MAX_FRAME];
        let mut step = || -> Result<(), LinkError> {
            link.send_more(&frame(100))?;
            link.send(&frame(100))?;
            link.recv(&mut buffer, Instant::now() + Duration::from_millis(100))?;
            Ok(())
        };
        let error = (0..50).find_map(|_| step().err()).expect("the link ends");
        assert!(error_text(&error).contains(why), "{lie:?}: {}", error_text(&error));
    }
}

fn error_text(error: &LinkError) -> String {
    let LinkError::Io { source, .. } = error else { panic!("{error}") };
    source.to_string()
}

#[test]
fn a_card_that_goes_ends_the_link_at_once() {
    let (slot, mut link) = start(LinkConfig::default());
    let waiting = std::thread::spawn(move || {
        let mut buffer = [0; MAX_FRAME];
        let begin = Instant::now();
        let error = link.recv(&mut buffer, begin + PATIENCE).unwrap_err();
        assert!(link.send(&frame(100)).is_err() || link.send(&frame(100)).is_err());
        (error_text(&error), begin.elapsed())
    });
    std::thread::sleep(Duration::from_millis(100));
    drop(slot);
    let (error, time) = waiting.join().unwrap();
    assert!(error.contains("gone") && time < PATIENCE / 2, "{error} after {time:?}");
}
