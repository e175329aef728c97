// SPDX-License-Identifier: Apache-2.0
//! Texts of others: JSON of the management socket, of published devices, and of a device's description of itself.

use nacelle::description::Description;
use nacelle_manage::{Descriptor, Reply, Request, Stats};
use serde::{Serialize, de::DeserializeOwned};

/// Every text: no panic, and what is read is written so that it is read as the same again.
pub fn texts(data: &[u8]) {
    again::<Request>(data);
    again::<Reply<Stats>>(data);
    again::<Descriptor>(data);
    again::<Description>(data);
}

fn again<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(data: &[u8]) {
    if let Ok(value) = serde_json::from_slice::<T>(data) {
        let text = serde_json::to_vec(&value).expect("what was read can be written");
        let second = serde_json::from_slice::<T>(&text);
        assert_eq!(second.ok().as_ref(), Some(&value), "{}", String::from_utf8_lossy(&text));
    }
}

/// Texts that are right, to be changed.
#[cfg(test)]
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let requests = [
        r#"{"command":"info"}"#,
        r#"{"command":"trace","since":18446744073709551615}"#,
        r#"{"command":"capture-start","path":"/tmp/a b\u00e9.pcapng"}"#,
        r#"{"command":"queue-pair-counters","qpn":17}"#,
        r#"{"command":"reset-queue-pairs","qpn":null}"#,
        r#"{"command":"registers","accesses":[{"read":{"address":64}},{"write":{"address":64,"value":4294967295}}]}"#,
        r#"{"command":"connect","peer":"10.77.0.3","port":12345,"mtu":1024,"private":"00ff"}"#,
        r#"{"ok":{"cycles":1,"counters":{"rpc.calls":3}}}"#,
        r#"{"error":"no request"}"#,
        r#"{"name":"soft0","kind":"soft","link":"wire","ip":"10.77.0.2","prefix_len":16,"mac":"02:4e:41:4d:00:02",
            "port":12345,"data_w":0,"clock_hz":1000000000,"memory_bytes":1073741824,"pid":17}"#,
    ];
    let device = nacelle_device::SoftConfig::default();
    let functions = device.kernels.functions().cloned().collect();
    let description = Description::new("soft", nacelle::description::Kind::Soft, functions);
    requests.iter().map(|text| text.as_bytes().to_vec()).chain([description.to_json()]).collect()
}
