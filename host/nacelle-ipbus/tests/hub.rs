// SPDX-License-Identifier: Apache-2.0
//! The hub, over real sockets, with a device that loses packets: as uHAL speaks to it.

mod support;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use nacelle_ipbus::{Hub, HubConfig, Remote, Server, SessionConfig, Transaction};
use nacelle_wire::ipbus::{InfoCode, PacketHeader, PacketKind, TransactionHeader, TransactionKind};
use support::{AUTHORISED, LOGIN, Registers, TOKEN, config};

const SESSION: SessionConfig = SessionConfig { timeout: Duration::from_millis(20), attempts: 20 };

/// A device on a UDP socket that loses a part of the packets in each direction.
fn device(loss: f64) -> SocketAddrV4 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(address) = socket.local_addr().unwrap() else { unreachable!() };
    thread::spawn(move || {
        let (mut server, mut registers, begin) = (Server::new(config()), Registers::new(), Instant::now());
        let mut random = fastrand::Rng::with_seed(1);
        let mut buffer = [0; 2048];
        loop {
            let (length, from) = socket.recv_from(&mut buffer).unwrap();
            if random.f64() < loss {
                continue;
            }
            let answer = server.receive(from, &buffer[..length], begin.elapsed(), &mut registers);
            if let Some(answer) = answer.filter(|_| random.f64() >= loss) {
                socket.send_to(&answer, from).unwrap();
            }
        }
    });
    address
}

fn hub() -> SocketAddr {
    hub_with(HubConfig { session: SESSION, ..HubConfig::default() })
}

fn hub_with(config: HubConfig) -> SocketAddr {
    let hub = Hub::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = hub.address().unwrap();
    thread::spawn(move || hub.serve());
    address
}

/// A client of the hub, with words in little-endian order as uHAL has them on a PC.
struct Client(TcpStream);

impl Client {
    fn new(hub: SocketAddr) -> Self {
        let stream = TcpStream::connect(hub).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    /// Sends packets in one message; gives each answer's code and words.
    fn message(&mut self, device: SocketAddrV4, packets: &[Vec<u32>]) -> Vec<(u16, Vec<u32>)> {
        self.try_message(device, packets).unwrap()
    }

    /// As [`Self::message`]; fails if the hub ends the connection.
    fn try_message(&mut self, device: SocketAddrV4, packets: &[Vec<u32>]) -> io::Result<Vec<(u16, Vec<u32>)>> {
        let mut message = Vec::new();
        for packet in packets {
            message.extend(device.ip().octets());
            message.extend(device.port().to_be_bytes());
            message.extend((packet.len() as u16).to_be_bytes());
            message.extend(packet.iter().flat_map(|word| word.to_le_bytes()));
        }
        self.0.write_all(&(message.len() as u32).to_be_bytes())?;
        self.0.write_all(&message)?;
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer)?;
        let mut rest = &answer[..];
        let mut answers = Vec::new();
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (chunk, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
            assert_eq!((&chunk[..4], &chunk[4..6]), (&device.ip().octets()[..], &device.port().to_be_bytes()[..]));
            let words = chunk[8..].as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
            answers.push((u16::from_be_bytes([chunk[6], chunk[7]]), words));
            rest = behind;
        }
        Ok(answers)
    }
}

fn control(kind: TransactionKind, words: u8, rest: &[u32]) -> Vec<u32> {
    let transaction = TransactionHeader { id: 0, words, kind, info: InfoCode::Request };
    [&[PacketHeader { kind: PacketKind::Control, id: 0 }.to_word(), transaction.to_word()], rest].concat()
}

fn login() -> Vec<u32> {
    let token: Vec<u32> = TOKEN.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    control(TransactionKind::Write, 4, &[&[LOGIN / 4], &token[..]].concat())
}

#[test]
fn every_packet_through_the_hub_is_executed_once() {
    let (device, hub) = (device(0.2), hub());
    let mut client = Client::new(hub);
    assert_eq!(client.message(device, &[login()])[0].0, 0);
    let before = client.message(device, &[control(TransactionKind::Read, 1, &[AUTHORISED / 4])])[0].1[2];
    let count = control(TransactionKind::RmwSum, 1, &[AUTHORISED / 4, 1]);
    let answers: Vec<_> = (0..10).flat_map(|_| client.message(device, &vec![count.clone(); 20])).collect();
    for (index, (code, words)) in answers.iter().enumerate() {
        // The header comes back as the client sent it.
        assert_eq!((*code, words[0], words[2]), (0, count[0], before + index as u32));
    }
    assert_eq!(answers.len(), 200);
    // The login is this client's alone.
    let other = Client::new(hub).message(device, std::slice::from_ref(&count));
    assert_eq!(other[0].1[1] & 0xf, 4);
}

#[test]
fn errors_have_the_codes_of_the_control_hub() {
    let (device, hub) = (device(0.0), hub());
    let mut client = Client::new(hub);
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
    let SocketAddr::V4(silent) = gone.local_addr().unwrap() else { unreachable!() };
    let read = control(TransactionKind::Read, 1, &[0]);
    assert_eq!(client.message(silent, std::slice::from_ref(&read)), [(3, vec![])]);
    // IPbus 1.3 among packets of 2.0.
    let answers = client.message(device, &[read.clone(), vec![0x1000_0018, 0], read.clone()]);
    assert_eq!(answers.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [0, 6, 0]);
    assert_eq!(answers[0].1, answers[2].1);
    // A message that is not made of packets ends the connection.
    client.0.write_all(&[0, 0, 0, 5, 1, 2, 3, 4, 5]).unwrap();
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
    let mut client = Client::new(hub);
    client.0.write_all(&[0xff; 4]).unwrap();
    assert_eq!(client.0.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_program_without_a_hub() {
    let device = device(0.2);
    let mut remote = Remote::connect(device.into(), SESSION).unwrap();
    let reads: Vec<_> = (0..500).map(|word| Transaction::Read { address: 4 * word }).collect();
    assert_eq!(remote.transact(&reads).unwrap(), (0..500).collect::<Vec<_>>());
    let write = [Transaction::Write { address: AUTHORISED, value: 0 }];
    let error = remote.transact(&write).unwrap_err().to_string();
    assert!(
        error.contains("0x01000: cannot be written: there is none, it is read only, or it takes a login"),
        "{error}"
    );
    assert!(remote.log_in(LOGIN, [0; 16]).is_err());
    remote.log_in(LOGIN, TOKEN).unwrap();
    let count = Transaction::Modify { address: AUTHORISED, and: 0xf0, or: 3 };
    assert_eq!(remote.transact(&[write[0], count, Transaction::Read { address: AUTHORISED }]).unwrap(), [0, 3]);
}

#[test]
fn a_device_that_does_not_answer_is_named() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = SessionConfig { timeout: Duration::from_millis(5), attempts: 3 };
    let error = Remote::connect(silent.local_addr().unwrap(), config).unwrap_err().to_string();
    assert_eq!(error, "no answer: is it on, does it listen on this port, does its filter take this host?");
}

/// Whether the hub has closed the connection, which it does at some time.
fn is_closed(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    match stream.read(&mut [0]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn clients_that_are_silent_or_stall_make_room_for_others() {
    let (silence, patience) = (Duration::from_millis(800), Duration::from_millis(200));
    let hub = hub_with(HubConfig { session: SESSION, clients: 2, silence, patience });
    let device = device(0.0);
    let read = control(TransactionKind::Read, 1, &[0]);
    let begin = Instant::now();
    let silent = TcpStream::connect(hub).unwrap();
    let mut slow = TcpStream::connect(hub).unwrap();
    // Both places are taken: a third client is sent away.
    assert!(is_closed(TcpStream::connect(hub).unwrap()));
    assert!(begin.elapsed() < silence);
    // A byte now and then does not keep the place, though no pause is long.
    let stalls = slow.try_clone().unwrap();
    slow.write_all(&[0, 0, 1]).unwrap();
    let writer = thread::spawn(move || {
        while slow.write_all(&[0]).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    assert!(is_closed(stalls));
    assert!(begin.elapsed() < silence, "{:?}", begin.elapsed());
    writer.join().unwrap();
    // Its place is free.
    assert_eq!(Client::new(hub).message(device, std::slice::from_ref(&read))[0].0, 0);
    assert!(is_closed(silent));
    assert!(begin.elapsed() >= silence);
    let mut client = Client::new(hub);
    // Who sends now and then stays.
    for _ in 0..4 {
        thread::sleep(silence / 2);
        assert_eq!(client.message(device, std::slice::from_ref(&read))[0].0, 0);
    }
    thread::sleep(2 * silence);
    assert!(is_closed(client.0));
}

/// A client that does not take its answers is given up, too.
#[test]
fn answers_that_nobody_takes_end_the_connection() {
    let hub = hub_with(HubConfig {
        session: SESSION,
        clients: 1,
        patience: Duration::from_millis(300),
        ..HubConfig::default()
    });
    let device = device(0.0);
    let client = Client::new(hub);
    let reads = vec![control(TransactionKind::NonIncrementingRead, 255, &[0]); 300];
    let mut flood = Client(client.0.try_clone().unwrap());
    let mut message = Vec::new();
    for packet in &reads {
        message.extend(device.ip().octets());
        message.extend(device.port().to_be_bytes());
        message.extend((packet.len() as u16).to_be_bytes());
        message.extend(packet.iter().flat_map(|word| word.to_le_bytes()));
    }
    let begin = Instant::now();
    flood.0.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    // Each message has an answer of 300 KiB, which fills what lies between.
    while flood.0.write_all(&(message.len() as u32).to_be_bytes()).and_then(|()| flood.0.write_all(&message)).is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the hub goes on for ever");
    }
    // The place is free again, soon after the connection has ended.
    let read = control(TransactionKind::Read, 1, &[0]);
    let answers = loop {
        match Client::new(hub).try_message(device, std::slice::from_ref(&read)) {
            Ok(answers) => break answers,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(60), "the place is not free: {error}"),
        }
    };
    assert_eq!(answers[0].0, 0);
}

#[test]
fn a_message_to_many_devices_that_are_gone_ends_soon() {
    let session = SessionConfig { timeout: Duration::from_millis(20), attempts: 5 };
    let hub = hub_with(HubConfig { session, ..HubConfig::default() });
    let gone = UdpSocket::bind("127.0.0.1:0").unwrap();
    let also = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut message = Vec::new();
    for number in 0..200 {
        let SocketAddr::V4(target) = [&gone, &also][number % 2].local_addr().unwrap() else { unreachable!() };
        let packet = control(TransactionKind::Read, 1, &[0]);
        message.extend(target.ip().octets());
        message.extend(target.port().to_be_bytes());
        message.extend((packet.len() as u16).to_be_bytes());
        message.extend(packet.iter().flat_map(|word| word.to_le_bytes()));
    }
    let mut client = Client::new(hub);
    let begin = Instant::now();
    client.0.write_all(&(message.len() as u32).to_be_bytes()).unwrap();
    client.0.write_all(&message).unwrap();
    let mut answer = vec![0; 4 + 200 * 12];
    client.0.read_exact(&mut answer).unwrap();
    // 8 groups of 5 attempts of 20 ms each; all of them would take 20 s.
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    let codes: Vec<u8> = answer[4..].as_chunks::<12>().0.iter().map(|chunk| chunk[11]).collect();
    assert_eq!(codes, [vec![3; 8], vec![1; 192]].concat());
}
