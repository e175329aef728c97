// SPDX-License-Identifier: Apache-2.0
//! A guest whose network card is the device's: the lines that start one, for User-mode Linux and for QEMU.
//!
//! User-mode Linux needs no image: its root is the root of this machine, read-only, and its first process a script that is written
//! beside the wire.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nacelle::Descriptor;
use nacelle_device::Place;
use nacelle_wire::MacAddr;
use serde::Serialize;

use crate::args::{Cli, NicArgs};
use crate::failure::Failure;
use crate::output::{print, quoted};

/// The first process of a guest of User-mode Linux.
pub(crate) const INIT: &str = include_str!("guest.init");
/// Debian's name of the kernel, and where its package has the modules, seen from the folder above the kernel's.
const UML: &str = "linux.uml";
const MODULES: &str = "lib/uml/modules";
const QEMU: &str = "qemu-system-x86_64";
/// What is added to the device's address.
const BESIDE: u32 = 1 << 8;

/// What starts a guest.
#[derive(Debug)]
pub(crate) struct Guest {
    socket: PathBuf,
    ip: (Ipv4Addr, u8),
    mac: MacAddr,
    /// The kernel of User-mode Linux and its modules.
    uml: Option<(PathBuf, PathBuf)>,
    has_qemu: bool,
    init: Init,
}

/// The script, which is removed with the device.
#[derive(Debug)]
struct Init(PathBuf);

impl Drop for Init {
    fn drop(&mut self) {
        let _gone_already_is_fine = fs::remove_file(&self.0);
    }
}

/// What is printed with `--json`.
#[derive(Serialize)]
struct Lines<'a> {
    device: &'a Descriptor,
    socket: &'a Path,
    guest_ip: String,
    user_mode_linux: Option<String>,
    qemu: Option<String>,
}

impl Guest {
    /// Looks for what can run a guest, and writes its first script.
    pub(crate) fn new(args: &NicArgs, place: &Place, socket: &Path) -> Result<Self, Failure> {
        let ip = match args.guest_ip {
            Some(ip) => ip,
            None => beside(place.identity.ip, place.identity.prefix_len)?,
        };
        let uml = match &args.linux {
            Some(kernel) if !kernel.is_file() => {
                let said = format!("{} is no kernel of User-mode Linux", kernel.display());
                return Err(Failure::usage(said, INSTALL_UML));
            }
            Some(kernel) => Some(kernel.clone()),
            None => found(UML),
        };
        let init = Init(place.wire.file(&format!("{}.init", place.name)));
        write_script(&init.0, INIT)?;
        let uml = uml.map(|kernel| {
            let above = kernel.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
            let modules = above.join(MODULES);
            let modules = if modules.is_dir() { modules } else { Path::new("/usr").join(MODULES) };
            (kernel, modules)
        });
        let mac = place.identity.network_card_mac();
        Ok(Self { socket: socket.to_owned(), ip, mac, uml, has_qemu: found(QEMU).is_some(), init })
    }

    /// Says how a guest is started.
    pub(crate) fn introduce(&self, cli: &Cli, device: &Descriptor) -> Result<(), Failure> {
        let (uml, qemu) = (self.user_mode_linux(), self.has_qemu.then(|| self.qemu()));
        let guest_ip = format!("{}/{}", self.ip.0, self.ip.1);
        if cli.json {
            let lines = Lines { device, socket: &self.socket, guest_ip, user_mode_linux: uml, qemu };
            let line = serde_json::to_string(&lines).map_err(|error| Failure::check(error.to_string()))?;
            return print(&format!("{line}\n"));
        }
        eprintln!("its network card is at {}, for a guest with the address {guest_ip}", self.socket.display());
        match &uml {
            Some(line) => print(&format!("{line}\n"))?,
            None => eprintln!("User-mode Linux is not installed; try: {INSTALL_UML}"),
        }
        match &qemu {
            Some(line) => print(&format!("{line}\n"))?,
            None => eprintln!("QEMU is not installed; try: apt-get install qemu-system-x86"),
        }
        Ok(())
    }

    /// The line for User-mode Linux.
    fn user_mode_linux(&self) -> Option<String> {
        let (kernel, modules) = self.uml.as_ref()?;
        Some(format!(
            "{} mem=128M root=/dev/root rootfstype=hostfs rootflags=/ ro init={} virtio_uml.device={}:1 NIC_IP={}/{} NIC_MODULES={} \
             con=null con0=fd:0,fd:1 con1=null ssl=null quiet",
            quoted(kernel),
            quoted(&self.init.0),
            quoted(&self.socket),
            self.ip.0,
            self.ip.1,
            quoted(modules),
        ))
    }

    /// What a line for QEMU needs besides a guest: its memory shared; the card's MAC address, as it may send from no other; no MSI-X, with
    /// which QEMU 7.2 fails.
    fn qemu(&self) -> String {
        format!(
            "{QEMU} -m 512 -object memory-backend-memfd,id=memory,size=512M,share=on -machine memory-backend=memory \
             -chardev socket,id=card,path={} -netdev vhost-user,id=net,chardev=card -device virtio-net-pci,netdev=net,vectors=0,mac={}",
            quoted(&self.socket),
            self.mac,
        )
    }
}

/// Writes a script that can be run.
pub(crate) fn write_script(path: &Path, text: &str) -> Result<(), Failure> {
    let written = fs::write(path, text).and_then(|()| fs::set_permissions(path, PermissionsExt::from_mode(0o700)));
    written.map_err(|error| {
        Failure::usage(format!("cannot write {}: {error}", path.display()), "name another wire with --wire")
    })
}

/// What to try without User-mode Linux.
const INSTALL_UML: &str = "apt-get install user-mode-linux, or name its kernel with --linux";

/// The address of a device's guest.
pub(crate) fn beside(ip: Ipv4Addr, prefix_len: u8) -> Result<(Ipv4Addr, u8), Failure> {
    let hosts = u32::MAX.checked_shr(prefix_len.into()).unwrap_or(0);
    let guest = ip.to_bits().wrapping_add(BESIDE);
    let fits = guest & !hosts == ip.to_bits() & !hosts && guest & hosts != hosts;
    if fits {
        return Ok((guest.into(), prefix_len));
    }
    let said = format!("the subnet of {ip}/{prefix_len} has no address {}", Ipv4Addr::from_bits(guest));
    Err(Failure::usage(said, "name the guest's with --guest-ip"))
}

/// Where the shell finds a program.
fn found(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_beside_its_device() {
        let beside = |ip: [u8; 4], len| beside(ip.into(), len).map(|(ip, _)| ip.octets()).ok();
        assert_eq!(beside([10, 77, 0, 2], 16), Some([10, 77, 1, 2]));
        assert_eq!(beside([10, 0, 255, 9], 8), Some([10, 1, 0, 9]));
        for (ip, len) in
            [([192, 168, 1, 2], 24), ([10, 77, 255, 2], 16), ([10, 77, 254, 255], 16), ([10, 77, 0, 2], 32)]
        {
            assert_eq!(beside(ip, len), None, "{ip:?}/{len}");
        }
    }
}
