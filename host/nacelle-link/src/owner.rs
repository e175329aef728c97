// SPDX-License-Identifier: Apache-2.0
//! Who has a UDP port, as far as this user may know.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Who has bound a socket that keeps others from `wanted`: a process, or what else is known.
pub(crate) fn of_udp_port(wanted: SocketAddr) -> Option<String> {
    let tables = [("/proc/net/udp", 4), ("/proc/net/udp6", 16)];
    let (inode, user) = tables.iter().find_map(|(path, len)| {
        let table = fs::read_to_string(path).ok()?;
        table.lines().skip(1).find_map(|line| socket(line, *len, wanted))
    })?;
    if inode == 0 {
        return Some("the kernel".into());
    }
    let name = process(inode);
    Some(name.unwrap_or_else(|| format!("a process of user {user}")))
}

/// Inode and user of a line of the table, if its socket has the wanted port on the wanted address or on all.
fn socket(line: &str, len: usize, wanted: SocketAddr) -> Option<(u64, u32)> {
    let mut fields = line.split_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    if u16::from_str_radix(port, 16).ok()? != wanted.port() {
        return None;
    }
    let address = ip(address, len)?;
    let address = if let IpAddr::V6(v6) = address { v6.to_canonical() } else { address };
    if !(address == wanted.ip() || address.is_unspecified()) {
        return None;
    }
    let user = fields.nth(5)?.parse().ok()?;
    let inode = fields.nth(1)?.parse().ok()?;
    Some((inode, user))
}

/// An address in words of this machine's byte order.
fn ip(hex: &str, len: usize) -> Option<IpAddr> {
    let mut bytes = [0; 16];
    for (word, chunk) in hex.as_bytes().chunks(8).zip(bytes.chunks_exact_mut(4)) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
    match len {
        4 => Some(Ipv4Addr::from([bytes[0], bytes[1], bytes[2], bytes[3]]).into()),
        _ => Some(Ipv6Addr::from(bytes).into()),
    }
}

/// Name and number of the process that has the socket, among those that this user may look at.
fn process(inode: u64) -> Option<String> {
    let link = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let of = processes.filter(|entry| entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()));
    for entry in of {
        let Ok(fds) = fs::read_dir(entry.path().join("fd")) else { continue };
        if fds.flatten().any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to.as_os_str() == link.as_str())) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {})", name.trim(), entry.file_name().to_string_lossy()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_owner_of_a_port_is_named() {
        for local in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(socket) = UdpSocket::bind(local) else { continue };
            let mut taken = socket.local_addr().unwrap();
            if taken.ip().is_unspecified() {
                taken.set_ip(Ipv4Addr::LOCALHOST.into());
            }
            let owner = of_udp_port(taken).unwrap();
            assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
            drop(socket);
            assert_eq!(of_udp_port(taken), None);
        }
    }

    #[test]
    fn the_kernels_own_socket_has_no_inode() {
        let line = "  42: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 0 2 0 0";
        let wanted = "127.0.0.2:4791".parse().unwrap();
        assert_eq!(socket(line, 4, wanted), Some((0, 0)));
        assert_eq!(socket(line, 4, "127.0.0.2:4792".parse().unwrap()), None);
    }
}
