// SPDX-License-Identifier: Apache-2.0
//! The RDMA devices of this machine, as the kernel shows them: no library and no privilege is needed to look.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;
use std::fs;
use std::path::Path;

use crate::VerbsError;

/// Where the kernel shows the devices.
const DEVICES: &str = "/sys/class/infiniband";
/// Room for a name, with one byte to spare (`IBV_SYSFS_NAME_MAX`).
const NAME_SIZE: usize = 64;

/// The name of an RDMA device, as `rdma link` shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DeviceName([u8; NAME_SIZE]);

/// A text that names no RDMA device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("names of RDMA devices have 1 to 63 characters, without spaces and slashes")]
pub struct NameError;

impl FromStr for DeviceName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let fits = (1..NAME_SIZE).contains(&text.len());
        if !fits || text.starts_with('.') || text.bytes().any(|byte| byte == b'/' || !byte.is_ascii_graphic()) {
            return Err(NameError);
        }
        let mut name = [0; NAME_SIZE];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self(name))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.0.split(|byte| *byte == 0).next().unwrap_or_default()))
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A port of an RDMA device that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The device.
    pub device: DeviceName,
    /// The port's number.
    pub port: u8,
    /// The address.
    pub address: IpAddr,
}

impl Place {
    /// The active port that has `address`, of `device` or of any.
    ///
    /// # Errors
    /// [`VerbsError::NoDevice`], [`VerbsError::UnknownDevice`], [`VerbsError::OtherDevice`] or [`VerbsError::PortDown`].
    pub fn of(address: IpAddr, device: Option<DeviceName>) -> Result<Self, VerbsError> {
        Self::under(Path::new(DEVICES), address, device)
    }

    fn under(devices: &Path, address: IpAddr, wanted: Option<DeviceName>) -> Result<Self, VerbsError> {
        let all = names(devices);
        if let Some(device) = wanted
            && !all.contains(&device)
        {
            return Err(VerbsError::UnknownDevice { device, others: all });
        }
        let mut down = None;
        for device in all.iter().copied().filter(|device| wanted.is_none_or(|wanted| wanted == *device)) {
            let ports = devices.join(device.to_string()).join("ports");
            let mut numbers: Vec<u8> = entries(&ports).iter().filter_map(|name| name.parse().ok()).collect();
            numbers.sort_unstable();
            for port in numbers {
                let folder = ports.join(port.to_string());
                if !has_gid(&folder.join("gids"), address) {
                    continue;
                }
                // As "4: ACTIVE".
                let state = fs::read_to_string(folder.join("state")).unwrap_or_default();
                let state = state.trim().rsplit(' ').next().unwrap_or_default().to_owned();
                if state == "ACTIVE" {
                    return Ok(Self { device, port, address });
                }
                down.get_or_insert(VerbsError::PortDown { device, port, state });
            }
        }
        Err(match (down, wanted) {
            (Some(down), _) => down,
            (None, Some(device)) => VerbsError::OtherDevice { device, address },
            (None, None) => VerbsError::NoDevice { address, others: all },
        })
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn names(devices: &Path) -> Vec<DeviceName> {
    let mut names = entries(devices);
    names.sort();
    names.iter().filter_map(|name| name.parse().ok()).collect()
}

/// Whether one of the GIDs in a folder is an address: IPv4 addresses are mapped (annex A17.4.3).
fn has_gid(gids: &Path, address: IpAddr) -> bool {
    let wanted = match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    entries(gids).iter().any(|name| {
        // Reading an empty place of the table fails.
        let gid = fs::read_to_string(gids.join(name)).ok();
        gid.and_then(|text| text.trim().parse::<Ipv6Addr>().ok()) == Some(wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(devices: &Path, device: &str, port: u8, state: &str, gids: &[&str]) {
        let folder = devices.join(device).join("ports").join(port.to_string());
        fs::create_dir_all(folder.join("gids")).unwrap();
        fs::write(folder.join("state"), format!("{state}\n")).unwrap();
        for (index, gid) in gids.iter().enumerate() {
            fs::write(folder.join("gids").join(index.to_string()), format!("{gid}\n")).unwrap();
        }
    }

    #[test]
    fn the_device_is_the_one_whose_gid_is_the_address_and_whose_port_is_active() {
        let sys = tempfile::tempdir().unwrap();
        let name = |text: &str| text.parse::<DeviceName>().unwrap();
        let find = |address: &str, device: Option<&str>| {
            Place::under(sys.path(), address.parse().unwrap(), device.map(|device| device.parse().unwrap()))
        };
        let none = find("192.0.2.1", None).unwrap_err();
        assert!(none.to_string().ends_with("192.0.2.1: there are none"), "{none}");
        port(
            sys.path(),
            "mlx5_0",
            1,
            "1: DOWN",
            &["fe80:0000:0000:0000:0000:0000:0000:0001", "0000:0000:0000:0000:0000:ffff:c000:0201"],
        );
        port(
            sys.path(),
            "rxe0",
            1,
            "4: ACTIVE",
            &["0000:0000:0000:0000:0000:0000:0000:0000", "0000:0000:0000:0000:0000:ffff:c000:0202"],
        );
        port(sys.path(), "rxe0", 2, "4: ACTIVE", &["2001:0db8:0000:0000:0000:0000:0000:0007"]);
        let found =
            |device: &str, port, address: &str| Place { device: name(device), port, address: address.parse().unwrap() };
        assert_eq!(find("192.0.2.2", None).unwrap(), found("rxe0", 1, "192.0.2.2"));
        assert_eq!(find("192.0.2.2", Some("rxe0")).unwrap(), found("rxe0", 1, "192.0.2.2"));
        assert_eq!(find("2001:db8::7", None).unwrap(), found("rxe0", 2, "2001:db8::7"));
        assert!(
            matches!(find("192.0.2.1", None), Err(VerbsError::PortDown { port: 1, ref state, .. }) if state == "DOWN")
        );
        assert!(matches!(find("192.0.2.2", Some("mlx5_0")), Err(VerbsError::OtherDevice { .. })));
        let unknown = find("192.0.2.2", Some("rxe9")).unwrap_err().to_string();
        assert!(unknown.ends_with("rxe9: there are mlx5_0, rxe0"), "{unknown}");
        assert!(matches!(find("192.0.2.9", None), Err(VerbsError::NoDevice { .. })));
    }

    #[test]
    fn names_are_names_of_files() {
        for bad in ["", "a/b", "..", "a b", &"x".repeat(64)] {
            assert_eq!(bad.parse::<DeviceName>(), Err(NameError), "{bad:?}");
        }
        assert_eq!("rxe0".parse::<DeviceName>().unwrap().to_string(), "rxe0");
    }
}
