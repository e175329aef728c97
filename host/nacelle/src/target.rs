// SPDX-License-Identifier: Apache-2.0
//! Which device is meant: by address, by name, or the first that answers of several.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use nacelle_link::WireDir;
use nacelle_manage::{Error as ManageError, discover};

use crate::Error;

/// Names a device to [`Device::connect`](crate::Device::connect).
///
/// From text: an address, a name, or several of them separated by commas.
///
/// ```
/// use nacelle::Target;
/// use std::net::Ipv4Addr;
///
/// assert_eq!("10.77.0.2".parse::<Target>()?, Target::from(Ipv4Addr::new(10, 77, 0, 2)));
/// assert_eq!("soft0".parse::<Target>()?, Target::Name("soft0".into()));
/// assert_eq!("soft0, 10.77.0.2".parse::<Target>()?, Target::from(vec![
///     Target::Name("soft0".into()),
///     "10.77.0.2".parse()?,
/// ]));
/// # Ok::<(), nacelle::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The device at this address.
    Address(IpAddr),
    /// The device that publishes itself under this name on the wire.
    Name(String),
    /// The first that can be reached, in this order.
    First(Vec<Target>),
}

impl Target {
    /// The address of a single target on a wire.
    ///
    /// # Errors
    /// [`ManageError::NoSuchDevice`] if no device has the name.
    pub(crate) fn address(&self, wire: &WireDir) -> Result<IpAddr, Error> {
        match self {
            Self::Address(ip) => Ok(*ip),
            Self::Name(name) => {
                let found = discover::published(wire).into_iter().find(|device| device.name == *name);
                let missing = || ManageError::NoSuchDevice { name: name.clone(), wire: wire.path().to_owned() };
                Ok(found.ok_or_else(missing)?.ip)
            }
            Self::First(_) => Err(Error::invalid("a list of targets has no address of its own")),
        }
    }

    /// Tries each single target in order, until one does.
    ///
    /// # Errors
    /// That of the target if it is a single one, else [`Error::NoTarget`].
    pub(crate) fn try_each<T>(&self, mut attempt: impl FnMut(&Self) -> Result<T, Error>) -> Result<T, Error> {
        if !matches!(self, Self::First(_)) {
            return attempt(self);
        }
        let mut tried = Vec::new();
        self.find(&mut attempt, &mut tried).ok_or(Error::NoTarget { tried })
    }

    fn find<T>(
        &self,
        attempt: &mut impl FnMut(&Self) -> Result<T, Error>,
        tried: &mut Vec<(String, Error)>,
    ) -> Option<T> {
        match self {
            Self::First(targets) => targets.iter().find_map(|target| target.find(attempt, tried)),
            single => attempt(single).map_err(|error| tried.push((single.to_string(), error))).ok(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(ip) => ip.fmt(f),
            Self::Name(name) => name.fmt(f),
            Self::First(targets) => targets.iter().enumerate().try_for_each(|(index, target)| {
                let comma = if index == 0 { "" } else { "," };
                write!(f, "{comma}{target}")
            }),
        }
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.contains(',') {
            return Ok(Self::First(text.split(',').map(Self::from_str).collect::<Result<_, _>>()?));
        }
        let text = text.trim();
        if let Ok(ip) = text.parse() {
            return Ok(Self::Address(ip));
        }
        if text.is_empty() || text.contains(char::is_whitespace) || text.contains('/') {
            return Err(Error::invalid(format!("'{text}' is neither an address nor a name of a device")));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl TryFrom<&str> for Target {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        text.parse()
    }
}

impl TryFrom<String> for Target {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<IpAddr> for Target {
    fn from(ip: IpAddr) -> Self {
        Self::Address(ip)
    }
}

impl From<Ipv4Addr> for Target {
    fn from(ip: Ipv4Addr) -> Self {
        Self::Address(ip.into())
    }
}

impl From<Ipv6Addr> for Target {
    fn from(ip: Ipv6Addr) -> Self {
        Self::Address(ip.into())
    }
}

impl<T: Into<Self>> From<Vec<T>> for Target {
    fn from(targets: Vec<T>) -> Self {
        Self::First(targets.into_iter().map(Into::into).collect())
    }
}
