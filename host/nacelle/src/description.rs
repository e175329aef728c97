// SPDX-License-Identifier: Apache-2.0
//! What a device says of itself: its functions, their regions, what its kernels' result codes mean.
//!
//! A device publishes it as JSON in a region that every caller may READ; docs/reference/device-description.md has the format.

use std::collections::BTreeMap;

use std::sync::Arc;

use nacelle_roce::SendWr;
use nacelle_wire::extensions::Agreement;
use nacelle_wire::{DescriptionLocation, RemoteAddr};
use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::device::Shared;
use crate::{Error, Step};

/// Readings of a description that cannot be read, before it is taken for wrong: it may be read while it changes.
const READINGS: usize = 3;
/// Longest description that is read, in bytes.
const MAX_LENGTH: u32 = 64 << 10;
/// The version of the format that this crate reads.
const VERSION: u32 = 1;

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// RTL: a simulated device, or an FPGA.
    Rtl,
    /// The software device.
    Soft,
    /// Of an unknown kind.
    #[serde(other)]
    Other,
}

/// A device's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Description {
    /// The version of the format: 1.
    pub version: u32,
    /// The name of the build, not of this one device.
    pub device: String,
    /// What it is.
    pub kind: Kind,
    /// Which build it is: the revision and a digest of the parameters, or a version. Empty if it does not say.
    #[serde(default)]
    pub build: String,
    /// Width of its data path, in bits; 0 if it has none.
    pub data_w: u32,
    /// Its clock, in Hz; 0 if it has none.
    pub clock_hz: u32,
    /// Device memory, in bytes.
    pub memory_bytes: u64,
    /// Regions that a connection may have, internal ones included.
    pub max_regions: u32,
    /// Contexts that a connection may have (docs/reference/calls.md); 0 if the device has no such extension.
    #[serde(default)]
    pub max_contexts: u32,
    /// Bytes before the description at which the record of its load begins; 0 if there is none.
    #[serde(default)]
    pub load_bytes: u32,
    /// What it can be called for.
    pub functions: Vec<Function>,
}

/// A function that a device offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Function {
    /// The code that selects it, 1 to 127.
    pub code: u8,
    /// Its name.
    pub name: String,
    /// The kernel that has it.
    pub kernel: String,
    /// The kernel's version: major, minor.
    pub kernel_version: (u16, u16),
    /// How many sockets hold the kernel.
    #[serde(default = "one")]
    pub sockets: u32,
    /// What it does.
    pub doc: String,
    /// Its parameters, in order.
    #[serde(default)]
    pub regions: Vec<RegionInfo>,
    /// What the kernel's own result codes mean.
    #[serde(default)]
    pub errors: BTreeMap<u8, String>,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RegionInfo {
    /// Its name.
    pub name: String,
    /// Which side writes it.
    pub access: RegionAccess,
    /// Any number of these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
    /// What it holds.
    pub doc: String,
}

/// Which side writes a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RegionAccess {
    /// The caller.
    In,
    /// The kernel, for the caller.
    Out,
    /// Both.
    Inout,
    /// The kernel, for itself.
    Internal,
}

fn one() -> u32 {
    1
}

impl Description {
    /// That of a device with these functions; nothing else is known of it.
    #[must_use]
    pub fn new(device: &str, kind: Kind, functions: Vec<Function>) -> Self {
        let device = device.to_owned();
        Self {
            version: VERSION,
            device,
            kind,
            build: String::new(),
            data_w: 0,
            clock_hz: 0,
            memory_bytes: 0,
            max_regions: 0,
            max_contexts: 0,
            load_bytes: 0,
            functions,
        }
    }

    /// Reads a description. Says what is wrong with one that cannot be read.
    fn parse(text: &[u8]) -> Result<Self, String> {
        let description: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if description.version != VERSION {
            return Err(format!("it has version {}, and this library reads {VERSION}", description.version));
        }
        Ok(description)
    }

    /// The text that callers read: JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The function with this code.
    #[must_use]
    pub fn function(&self, code: u8) -> Option<&Function> {
        self.functions.iter().find(|function| function.code == code)
    }
}

impl Function {
    /// A function of a kernel of the same name, version 1.0, in one socket.
    #[must_use]
    pub fn new(code: u8, name: &str) -> Self {
        Self {
            code,
            name: name.to_owned(),
            kernel: name.to_owned(),
            kernel_version: (1, 0),
            sockets: 1,
            doc: String::new(),
            regions: Vec::new(),
            errors: BTreeMap::new(),
        }
    }
}

impl RegionInfo {
    /// A parameter.
    #[must_use]
    pub fn new(name: &str, access: RegionAccess, repeated: bool, doc: &str) -> Self {
        Self { name: name.to_owned(), access, repeated, doc: doc.to_owned() }
    }
}

/// Reads the description of a device. `None` if the device has none.
///
/// # Errors
/// As [`crate::Device::describe`].
pub(crate) fn read(shared: &Arc<Shared>) -> Result<Option<Description>, Error> {
    let mut what = String::new();
    for _ in 0..READINGS {
        let text = fetch(shared, |place| match place.length {
            ..=MAX_LENGTH => Ok((place.addr, place.length as usize)),
            length => Err(format!("its description has {length} bytes, more than {MAX_LENGTH}")),
        })?;
        match text.map(|text| Description::parse(&text)) {
            None => return Ok(None),
            Some(Ok(description)) => return Ok(Some(description)),
            Some(Err(error)) => what = format!("its description cannot be read: {error}"),
        }
    }
    Err(Error::Protocol { ip: shared.ip, step: Step::Description, what })
}

/// Reads memory of a device that lies where its description does: one RDMA READ on a connection of its own. `place` says where, or what is
/// wrong. `None` if the device has no description.
///
/// # Errors
/// As [`crate::Device::describe`].
pub(crate) fn fetch(
    shared: &Arc<Shared>,
    place: impl FnOnce(DescriptionLocation) -> Result<(RemoteAddr, usize), String>,
) -> Result<Option<Vec<u8>>, Error> {
    let connection = Channel::open(Arc::clone(shared), Agreement::default())?;
    let conn = connection.id;
    let private_data = shared.engine.lock().inbox.session(conn).private_data.clone();
    let Some(location) = DescriptionLocation::find(&private_data) else {
        return Ok(None);
    };
    let rkey = location.rkey;
    let (addr, length) = place(location).map_err(|what| connection.broken(Step::Description, what))?;
    let lost = |detail: String| Error::lost(shared.ip, Step::Description, detail);
    let local = shared.engine.act(|state| {
        let transport = &mut state.endpoint.transport;
        let local = transport.register(vec![0; length], false, conn);
        let local = local.map_err(|error| lost(error.to_string()))?;
        transport.post_send(conn, SendWr::read(0, local.all(), addr, rkey)).map_err(|error| lost(error.to_string()))?;
        state.inbox.session(conn).slot(0).sends += 1;
        Ok::<_, Error>(local)
    })??;
    let outcome = connection.wait_until(Step::Description, 0, |session| session.slot(0).sends == 0);
    let mut bytes = None;
    connection.close(|state| {
        bytes = state.endpoint.transport.deregister(local.id).and_then(|memory| memory.into_vec().ok())
    })?;
    outcome?;
    Ok(Some(bytes.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
        "version": 1, "device": "standard", "kind": "rtl", "data_w": 512, "clock_hz": 250000000,
        "memory_bytes": 1073741824, "max_regions": 32, "what comes later": [],
        "functions": [{
            "code": 1, "name": "increment", "kernel": "increment", "kernel_version": [1, 0], "doc": "Adds 1.",
            "regions": [{"name": "data", "access": "inout", "repeated": true, "doc": "any bytes"}],
            "errors": {"18": "memory answered with an error"}
        }]
    }"#;

    #[test]
    fn a_description_is_read() {
        let description = Description::parse(TEXT.as_bytes()).unwrap();
        assert_eq!((description.kind, description.data_w), (Kind::Rtl, 512));
        let increment = description.function(1).unwrap();
        assert_eq!((increment.kernel_version, increment.sockets), ((1, 0), 1));
        assert_eq!((increment.regions[0].access, increment.regions[0].repeated), (RegionAccess::Inout, true));
        assert_eq!(increment.errors[&18], "memory answered with an error");
        assert!(description.function(2).is_none());
        let again = serde_json::to_vec(&description).unwrap();
        assert_eq!(Description::parse(&again), Ok(description));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for (right, wrong, said) in [
            (r#""version": 1"#, r#""version": 2"#, "version 2"),
            (r#""code": 1"#, r#""code": 300"#, "300"),
            (r#""doc": "Adds 1.","#, "", "doc"),
            (r#""access": "inout""#, r#""access": "both""#, "both"),
            ("}]", "}", "expected"),
        ] {
            assert!(TEXT.contains(right));
            let error = Description::parse(TEXT.replacen(right, wrong, 1).as_bytes()).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let later = TEXT.replace(r#""kind": "rtl""#, r#""kind": "asic""#);
        assert_eq!(Description::parse(later.as_bytes()).unwrap().kind, Kind::Other);
    }
}
