// SPDX-License-Identifier: Apache-2.0
//! Devices: opened, asked, closed.

use std::ffi::{c_char, c_int};
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nacelle::{Device, LinkChoice, Options, Target};
use nacelle_link::WireDir;
use nacelle_manage::discover;

use crate::edge::{Failure, guard};
use crate::handle::{DeviceHandle, registry};
use crate::sized::{self, Growing};
use crate::text;

/// How long the device may take to confirm the end of its connections.
pub(crate) const CLOSE_WITHIN: Duration = Duration::from_secs(1);
/// The prefix of a source address without one, if the device does not publish its own.
const ASSUMED_PREFIX_LEN: u8 = 24;

/// `nacelle_device_options`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct DeviceOptions {
    size: usize,
    wire: *const c_char,
    source: *const c_char,
    capture: *const c_char,
    port: u16,
    mtu: u16,
    resolve_timeout_ms: u32,
    timeout_ms: u32,
    ack_timeout_ms: u32,
    trace: u32,
    progress_thread: u32,
    reconnect: u32,
    spin_us: u32,
    link: u32,
    answer_gap_us: u32,
    link_name: *const c_char,
}
// SAFETY: numbers and pointers, without padding.
unsafe impl Growing for DeviceOptions {}

impl DeviceOptions {
    /// # Safety
    /// Its strings are null or end with a zero byte.
    unsafe fn read(&self) -> Result<Wanted, Failure> {
        let choice = |value: u32, name: &str| match value {
            0 | 1 => Ok(value == 1),
            other => Err(Failure::invalid(format!("'{name}' of nacelle_device_options is {other}, not 0 or 1"))),
        };
        // SAFETY: as this function.
        let (wire, source, capture, link_name) = unsafe {
            (
                text::read(self.wire, "wire")?,
                text::read(self.source, "source")?,
                text::read(self.capture, "capture")?,
                text::read(self.link_name, "link_name")?,
            )
        };
        let mut options = Options::default();
        let time = |ms: u32, default: Duration| if ms == 0 { default } else { Duration::from_millis(ms.into()) };
        options.wire = wire.map(Into::into);
        options.capture = capture.map(Into::into);
        options.port = (self.port != 0).then_some(self.port);
        options.mtu = (self.mtu != 0).then_some(self.mtu.into());
        options.resolve_timeout = time(self.resolve_timeout_ms, options.resolve_timeout);
        options.timeout = time(self.timeout_ms, options.timeout);
        options.trace = choice(self.trace, "trace")?;
        options.progress_thread = choice(self.progress_thread, "progress_thread")?;
        options.reconnect = choice(self.reconnect, "reconnect")?;
        options.spin = (self.spin_us != 0).then(|| Duration::from_micros(self.spin_us.into()));
        options.link = match (self.link, link_name) {
            (0, None) => LinkChoice::Auto,
            (0, Some(name)) => name.parse()?,
            (1..=4, Some(_)) => {
                return Err(Failure::invalid("'link' and 'link_name' of nacelle_device_options are both set"));
            }
            (1, None) => LinkChoice::Wire,
            (2, None) => LinkChoice::Udp,
            (3, None) => LinkChoice::Shm,
            (4, None) => LinkChoice::Verbs(None),
            _ => return Err(Failure::invalid("'link' of nacelle_device_options is 0 to 4")),
        };
        options.answer_gap = (self.answer_gap_us != 0).then(|| Duration::from_micros(self.answer_gap_us.into()));
        options.connect.ack_timeout = time(self.ack_timeout_ms, options.connect.ack_timeout);
        options.connect.max_ack_timeout = options.connect.max_ack_timeout.max(options.connect.ack_timeout);
        Ok(Wanted { options, source: source.map(str::to_owned) })
    }
}

/// How a device is to be reached.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) options: Options,
    /// The caller's own address: "ADDRESS" or "ADDRESS/PREFIX".
    pub(crate) source: Option<String>,
}

/// Reaches the device that has this address or name, or the first that can be reached of several.
pub(crate) fn reach(address: &str, wanted: Wanted) -> Result<Device, Failure> {
    let Wanted { mut options, source } = wanted;
    options.source = source.map(|source| own_address(&options, &source)).transpose()?;
    Ok(Device::connect(target(address)?, &options)?)
}

/// What a text names. An IPv6 address may be in brackets, and may stand for an IPv4 address.
fn target(text: &str) -> Result<Target, Failure> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(ip) => Ok(Target::Address(ip.to_canonical())),
        Err(_) => Ok(text.parse()?),
    }
}

/// The caller's own address, and the length of its prefix: that of a device on the wire in whose subnet it is, if none is given.
fn own_address(options: &Options, source: &str) -> Result<(IpAddr, u8), Failure> {
    let bad = || Failure::invalid(format!("{source} is not an address, alone or with /PREFIX"));
    let (ip, prefix_len) = source.split_once('/').map_or((source, None), |(ip, length)| (ip, Some(length)));
    let ip: IpAddr = ip.parse().map_err(|_| bad())?;
    let longest = if ip.is_ipv4() { 32 } else { 128 };
    let prefix_len = match prefix_len {
        Some(length) => length.parse().ok().filter(|length| *length <= longest).ok_or_else(bad)?,
        None => published_prefix(options, ip).unwrap_or(ASSUMED_PREFIX_LEN),
    };
    Ok((ip, prefix_len))
}

/// The prefix of a device on the wire in whose subnet an address is. Without a wire there is none.
fn published_prefix(options: &Options, ip: IpAddr) -> Option<u8> {
    let wire = WireDir::open(options.wire.clone().unwrap_or_else(WireDir::default_path)).ok()?;
    let mut published = discover::published(&wire).into_iter();
    published.find(|device| is_beside(ip, device.ip, device.prefix_len)).map(|device| device.prefix_len)
}

/// Whether two IPv4 addresses are in a subnet with a prefix of this length.
fn is_beside(one: IpAddr, other: IpAddr, prefix_len: u8) -> bool {
    let (IpAddr::V4(one), IpAddr::V4(other)) = (one, other) else { return false };
    let host_bits = 32 - u32::from(prefix_len.min(32));
    (one.to_bits() ^ other.to_bits()).checked_shr(host_bits).unwrap_or(0) == 0
}

/// See `nacelle.h`.
///
/// # Safety
/// `address` ends with a zero byte; `options` is null or begins with its size; `device` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_device_open(
    address: *const c_char,
    options: *const DeviceOptions,
    device: *mut DeviceHandle,
) -> u32 {
    guard(|| {
        text::place(device, "device")?;
        // SAFETY: as this function.
        let (address, options) = unsafe {
            device.write(DeviceHandle { id: 0 });
            (text::read(address, "address")?, sized::read(options, "nacelle_device_options")?)
        };
        let address = address.ok_or_else(|| Failure::invalid("address is NULL"))?;
        // SAFETY: as this function, for the strings in the options.
        let wanted = options.map_or(Ok(Wanted::default()), |options| unsafe { options.read() })?;
        let id = registry().devices.insert(reach(address, wanted)?)?;
        // SAFETY: as this function.
        unsafe { device.write(DeviceHandle { id }) };
        Ok(())
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_device_close(device: DeviceHandle) -> u32 {
    guard(|| {
        let device = registry().devices.remove(device.id)?;
        // A device that does not confirm detects the end of its connections by itself.
        let _confirmed = device.settle(CLOSE_WITHIN)?;
        Ok(())
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `text` is null or has `size` bytes that may be written; `length` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_device_describe(
    device: DeviceHandle,
    text: *mut c_char,
    size: usize,
    length: *mut usize,
) -> u32 {
    guard(|| {
        let device = registry().devices.get(device.id)?;
        let json = device.describe()?.map(nacelle::Description::to_json).unwrap_or_default();
        // SAFETY: as this function.
        unsafe { text::write(&String::from_utf8_lossy(&json), text, size, length) }
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `round_trip_ns` is null or may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_device_ping(
    device: DeviceHandle,
    timeout_ms: u32,
    round_trip_ns: *mut u64,
) -> u32 {
    guard(|| {
        let device = registry().devices.get(device.id)?;
        let time = device.ping(0, 0, Duration::from_millis(timeout_ms.into()))?;
        if !round_trip_ns.is_null() {
            // SAFETY: as this function.
            unsafe { round_trip_ns.write(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) };
        }
        Ok(())
    })
}

/// See `nacelle.h`.
///
/// # Safety
/// `fd` may be written.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nacelle_device_fd(device: DeviceHandle, fd: *mut c_int) -> u32 {
    guard(|| {
        text::place(fd, "fd")?;
        let device = registry().devices.get(device.id)?;
        // SAFETY: as this function.
        unsafe { fd.write(device.fd()?.as_raw_fd()) };
        Ok(())
    })
}

/// See `nacelle.h`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nacelle_device_progress(device: DeviceHandle) -> u32 {
    guard(|| Ok(registry().devices.get(device.id)?.progress()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_beside_each_other_in_their_subnet() {
        let ip = |text: &str| text.parse().unwrap();
        assert!(is_beside(ip("10.77.0.50"), ip("10.77.9.2"), 16));
        assert!(!is_beside(ip("10.78.0.50"), ip("10.77.0.2"), 16));
        assert!(is_beside(ip("1.2.3.4"), ip("200.2.3.4"), 0));
        assert!(!is_beside(ip("1.2.3.4"), ip("1.2.3.5"), 32));
        assert!(!is_beside(ip("::1"), ip("::1"), 32));
    }

    #[test]
    fn a_device_is_named_by_address_by_name_or_in_a_list() {
        let ip = IpAddr::from([10, 77, 0, 2]);
        assert_eq!(target("10.77.0.2").unwrap(), Target::Address(ip));
        assert_eq!(target("[::ffff:10.77.0.2]").unwrap(), Target::Address(ip));
        assert_eq!(target("rtl0").unwrap(), Target::Name("rtl0".into()));
        assert!(matches!(target("rtl0,soft0").unwrap(), Target::First(all) if all.len() == 2));
        let ip: IpAddr = "fd00::2".parse().unwrap();
        assert_eq!(target("fd00::2").unwrap(), Target::Address(ip));
        assert_eq!(target("[fd00::2]").unwrap(), Target::Address(ip));
        assert_eq!(target("").unwrap_err().code, 1);
    }
}
