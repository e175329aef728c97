// SPDX-License-Identifier: Apache-2.0
//! Values on the command line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

use nacelle::FunctionCode;
use nacelle_manage::Ipv6Mode;
use nacelle_wire::MacAddr;
use nacelle_wire::admission::Token;

pub(super) fn parse_cidr(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let wrong = || format!("{text:?} is not an address and a prefix length, as in 10.77.0.2/16");
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let (address, bits) = (address.parse().map_err(|_| wrong())?, bits.parse().map_err(|_| wrong())?);
    if !(1..=30).contains(&bits) { Err(wrong()) } else { Ok((address, bits)) }
}

/// Which IPv6 addresses a device is to have.
pub(super) fn parse_ipv6(text: &str) -> Result<Ipv6Mode, String> {
    let wrong = || format!("{text:?} is not \"link-local\", \"router\" or a global unicast address, as 2001:db8::2");
    match text {
        "link-local" => Ok(Ipv6Mode::LinkLocal),
        "router" => Ok(Ipv6Mode::Router),
        _ => {
            let address: Ipv6Addr = text.parse().map_err(|_| wrong())?;
            let unusable = address.is_multicast() || address.is_unicast_link_local() || address.to_bits() >> 64 == 0;
            if unusable { Err(wrong()) } else { Ok(Ipv6Mode::Static(address)) }
        }
    }
}

/// A network, or one host.
pub(super) fn parse_network(text: &str) -> Result<(IpAddr, u8), String> {
    let wrong =
        || format!("{text:?} is not an address and a prefix length, at least 1, as in 10.77.0.0/16 or 2001:db8:1::/48");
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let all = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.map_or(Ok(all), str::parse).map_err(|_| wrong())?;
    if (1..=all).contains(&bits) { Ok((address, bits)) } else { Err(wrong()) }
}

/// The token in a file. The text of an error shows nothing of it.
pub(super) fn parse_token_file(path: &str) -> Result<Token, String> {
    nacelle::token_of_file(path.as_ref()).map_err(|error| error.to_string())
}

/// The digest of a build.
pub(super) fn parse_build(text: &str) -> Result<u64, String> {
    let digits = text.rsplit('-').next().unwrap_or_default();
    let number = (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    number.ok_or_else(|| {
        format!("{text:?} is no build: 16 hexadecimal digits, perhaps with a revision and '-' before them")
    })
}

/// Type and version of a block of registers; nothing: there is none.
pub(super) fn parse_block(text: &str) -> Result<(u32, u32), String> {
    if text.is_empty() {
        return Ok((0, 0));
    }
    let block = || {
        let (kind, version) = text.split_once(':')?;
        let (major, minor) = version.split_once('.')?;
        let kind: [u8; 4] = kind.as_bytes().try_into().ok().filter(|kind: &[u8; 4]| kind.is_ascii())?;
        let part = |text: &str| text.parse::<u16>().ok().map(u32::from);
        Some((u32::from_be_bytes(kind), part(major)? << 16 | part(minor)?))
    };
    block().ok_or_else(|| format!("{text:?} is no block of registers, as in HOST:1.0"))
}

/// An address of either family; without a prefix length it is one for UDP.
pub(super) fn parse_source(text: &str) -> Result<(IpAddr, u8), String> {
    match text.parse() {
        Ok(address) => Ok((address, if IpAddr::is_ipv4(&address) { 32 } else { 128 })),
        Err(_) => parse_cidr(text).map(|(address, bits)| (address.into(), bits)),
    }
}

pub(super) fn parse_mac(text: &str) -> Result<MacAddr, String> {
    let mac = nacelle_manage::parse_mac(text).filter(|mac| !mac.is_multicast());
    mac.ok_or_else(|| format!("{text:?} is no MAC address of one station, as in 02:4e:41:00:00:01"))
}

pub(super) fn parse_function(text: &str) -> Result<FunctionCode, String> {
    let code = text.parse().ok().and_then(FunctionCode::new);
    code.ok_or_else(|| "a function's code is 1 to 127".into())
}

pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let percent: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("{text:?} is no number"))?;
    if (0.0..=100.0).contains(&percent) { Ok(percent / 100.0) } else { Err("not between 0 and 100".into()) }
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A time that passes.
pub(super) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_seconds(text)?;
    if interval < Duration::from_millis(10) { Err("an interval has at least 0.01 s".into()) } else { Ok(interval) }
}

pub(super) fn parse_number(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16));
    number.map_err(|_| format!("{text:?} is no number of 64 bits, as in 4096 or 0x1000"))
}

pub(super) fn parse_word(text: &str) -> Result<u32, String> {
    let word = parse_number(text).ok().and_then(|word| word.try_into().ok());
    word.ok_or_else(|| format!("{text:?} is no number of 32 bits, as in 4096 or 0x1000"))
}

pub(super) fn parse_qpn(text: &str) -> Result<u32, String> {
    let qpn = parse_word(text).ok().filter(|qpn| *qpn < 1 << 24);
    qpn.ok_or_else(|| format!("{text:?} is no queue pair number, of 24 bits"))
}

pub(super) fn parse_opcode(text: &str) -> Result<u8, String> {
    let opcode = parse_word(text).ok().and_then(|opcode| opcode.try_into().ok());
    opcode.ok_or_else(|| format!("{text:?} is no opcode of 8 bits, as in 4 or 0x11"))
}

pub(super) fn parse_ethertype(text: &str) -> Result<u16, String> {
    match text {
        "arp" => Ok(0x0806),
        "ipv4" => Ok(0x0800),
        _ => {
            let number = parse_word(text).ok().and_then(|number| number.try_into().ok());
            number.ok_or_else(|| format!("{text:?} is no EtherType: arp, ipv4, or a number of 16 bits as in 0x88cc"))
        }
    }
}

pub(super) fn parse_key(text: &str) -> Result<u32, String> {
    let key = parse_number(text).ok().and_then(|key| key.try_into().ok());
    key.ok_or_else(|| format!("{text:?} is no key of 32 bits, as in 0x1234abcd"))
}

pub(super) fn parse_line_rate(text: &str) -> Result<u32, String> {
    if text == "none" {
        return Ok(u32::MAX);
    }
    let rate: u32 = text.parse().map_err(|_| format!("{text:?} is neither \"none\" nor a rate in Mbit/s"))?;
    if rate == 0 { Err("a rate of 0 moves nothing".into()) } else { Ok(rate) }
}

/// A kernel's name and a file, with '=' between.
pub(super) fn parse_image(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((kernel, file)) if !kernel.is_empty() && !file.is_empty() => Ok((kernel.to_owned(), file.into())),
        _ => Err("it must be the name of a kernel, '=' and a file".into()),
    }
}
