// SPDX-License-Identifier: Apache-2.0
//! Captures are read back by an independent pcapng reader; impairments keep their promises.

mod common;

use std::fs::File;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::Pipe;
use nacelle_link::{Captured, Impaired, Impairments, Link, MAX_FRAME, PcapngWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::section_header::SectionHeaderOption;
use pcap_file::pcapng::{Block, PcapNgReader};

fn frame(number: u32, length: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; length.max(18)];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

fn drain(link: &mut impl Link, within: Duration) -> Vec<Vec<u8>> {
    let deadline = Instant::now() + within;
    let mut buffer = vec![0; MAX_FRAME];
    let mut frames = Vec::new();
    while let Some(length) = link.recv(&mut buffer, deadline).unwrap() {
        frames.push(buffer[..length].to_vec());
    }
    frames
}

#[test]
fn an_independent_reader_finds_every_frame() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("capture.pcapng");
    let (near, mut far) = Pipe::pair();
    let mut link = Captured::new(near);
    link.send(&frame(0, 60)).unwrap(); // before the capture
    let before = SystemTime::now();
    link.recorder().start(PcapngWriter::create(&path, &["test0"], "a comment, of 27 characters").unwrap());
    let mut expected = Vec::new();
    for number in 1..40 {
        let sent = frame(number, 14 + 37 * number as usize);
        if number % 2 == 0 {
            link.send(&sent).unwrap();
        } else {
            link.send_more(&sent).unwrap();
        }
        expected.push((2u32, sent));
        let answer = frame(1000 + number, 61);
        far.send(&answer).unwrap();
        assert_eq!(drain(&mut link, Duration::ZERO), std::slice::from_ref(&answer));
        expected.push((1u32, answer));
    }
    assert!(link.recorder().stop().unwrap());
    link.send(&frame(0, 60)).unwrap(); // after it

    let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
    let comment = SectionHeaderOption::Comment("a comment, of 27 characters".into());
    assert!(reader.section().options.contains(&comment));
    let (mut packets, mut interfaces) = (Vec::new(), 0);
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                interfaces += 1;
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(9)));
                assert!(interface.options.contains(&InterfaceDescriptionOption::IfName("test0".into())));
            }
            Block::EnhancedPacket(packet) => {
                let flags = packet.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Flags(flags) => Some(*flags),
                    _ => None,
                });
                let since = before.duration_since(UNIX_EPOCH).unwrap();
                assert!(packet.timestamp >= since && packet.timestamp < since + Duration::from_secs(60));
                assert_eq!(packet.original_len as usize, packet.data.len());
                packets.push((flags.unwrap(), packet.data.into_owned()));
            }
            other => panic!("unexpected block {other:?}"),
        }
    }
    assert_eq!(interfaces, 1);
    assert_eq!(packets, expected);
}

#[test]
fn a_capture_that_cannot_be_written_ends_itself_and_says_so() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    assert!(PcapngWriter::new(full(), &["x"], "y").is_err());
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("nowhere/capture.pcapng");
    assert!(PcapngWriter::create(&path, &["x"], "y").is_err());
    let (near, _far) = Pipe::pair();
    let mut link = Captured::new(near);
    assert!(!link.recorder().stop().unwrap(), "none ran");
    link.send(&frame(1, 60)).unwrap();
}

/// Links around another let it keep frames.
#[test]
fn frames_are_kept_until_the_flush_behind_a_capture() {
    let (near, mut far) = Pipe::pair();
    let near: Box<dyn Link> = Box::new(near);
    let mut link = Captured::new(near);
    let sent = [frame(1, 60), frame(2, 60)];
    sent.iter().for_each(|frame| link.send_more(frame).unwrap());
    assert!(drain(&mut far, Duration::ZERO).is_empty());
    link.flush().unwrap();
    assert_eq!(drain(&mut far, Duration::ZERO), sent);
}

#[test]
fn without_impairments_every_frame_passes_in_order() {
    let (near, far) = Pipe::pair();
    let (mut near, mut far) = (Impaired::new(near, Impairments::default()), far);
    let sent: Vec<_> = (0..100).map(|n| frame(n, 60)).collect();
    sent.iter().for_each(|f| near.send(f).unwrap());
    assert_eq!(drain(&mut far, Duration::ZERO), sent);
}

#[test]
fn impairments_come_as_often_as_asked_and_again_with_the_same_seed() {
    let rules = Impairments { loss: 0.1, duplicate: 0.05, corrupt: 0.05, reorder: 0.05, seed: 7, ..Default::default() };
    let run = |rules| {
        let (near, mut far) = Pipe::pair();
        let mut near = Impaired::new(near, rules);
        for number in 0..4000 {
            near.send(&frame(number, 60)).unwrap();
        }
        assert!(drain(&mut near, Duration::from_millis(60)).is_empty());
        drain(&mut far, Duration::ZERO)
    };
    let got = run(rules);
    assert_eq!(got, run(rules), "same seed, same fate");
    assert_ne!(got, run(Impairments { seed: 8, ..rules }));

    let number = |f: &Vec<u8>| u32::from_be_bytes(f[14..18].try_into().unwrap());
    let intact: Vec<u32> = got.iter().filter(|f| **f == frame(number(f), 60)).map(number).collect();
    let distinct: std::collections::BTreeSet<u32> = intact.iter().copied().collect();
    let damaged = got.len() - intact.len();
    let swapped = intact.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((3250..3600).contains(&distinct.len()), "{} distinct", distinct.len());
    assert!((120..280).contains(&damaged), "{damaged} damaged");
    assert!((80..300).contains(&(intact.len() - distinct.len())), "{} doubled", intact.len() - distinct.len());
    assert!((80..300).contains(&swapped), "{swapped} swapped");
    assert!(got.iter().all(|f| f[..14] == frame(0, 60)[..14]), "the Ethernet header stays");
}

#[test]
fn a_frame_held_back_comes_at_last_without_a_later_one() {
    let (near, mut far) = Pipe::pair();
    let mut near = Impaired::new(near, Impairments { reorder: 1.0, ..Default::default() });
    near.send(&frame(1, 60)).unwrap();
    assert!(drain(&mut far, Duration::ZERO).is_empty());
    assert!(near.next_event().is_some());
    assert!(drain(&mut near, Duration::from_millis(80)).is_empty());
    assert_eq!(drain(&mut far, Duration::ZERO), [frame(1, 60)]);
}

#[test]
fn delay_delays_both_ways() {
    let (near, mut far) = Pipe::pair();
    let delay = Duration::from_millis(30);
    let mut near = Impaired::new(near, Impairments { delay, ..Default::default() });
    let started = Instant::now();
    far.send(&frame(1, 60)).unwrap();
    let mut buffer = vec![0; MAX_FRAME];
    assert_eq!(near.recv(&mut buffer, started + Duration::from_secs(5)).unwrap(), Some(60));
    assert!(started.elapsed() >= delay);
    near.send(&frame(2, 60)).unwrap();
    assert!(drain(&mut far, Duration::ZERO).is_empty());
    assert!(drain(&mut near, 2 * delay).is_empty());
    assert_eq!(drain(&mut far, Duration::ZERO), [frame(2, 60)]);
}
