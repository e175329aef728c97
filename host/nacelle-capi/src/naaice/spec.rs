// SPDX-License-Identifier: Apache-2.0
//! `NAA_SPEC`: which devices a job may use, `<address>:<port>:<function>:<inputs>[,...]`.

use crate::edge::Failure;

/// One device for one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// As it is written: an address, or a name.
    pub(super) address: String,
    /// None if it is empty: the device's own, or 12345.
    pub(super) port: Option<u16>,
    pub(super) function: u32,
    /// Parameters that are inputs.
    pub(super) inputs: u32,
}

/// Reads the value of the variable.
pub(super) fn parse(value: &str) -> Result<Vec<Entry>, Failure> {
    let entries = value.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let entries = entries.map(|text| entry(text).map_err(|what| bad(&format!("'{text}' in NAA_SPEC: {what}"))));
    let entries = entries.collect::<Result<Vec<_>, _>>()?;
    if entries.is_empty() {
        return Err(bad("NAA_SPEC is empty"));
    }
    Ok(entries)
}

/// The variable cannot be used.
pub(super) fn bad(text: &str) -> Failure {
    let hint = "set NAA_SPEC=<address>:<port>:<function>:<inputs>[,...]; the port may be empty, and an IPv6 address is in brackets";
    Failure { hint: hint.into(), ..Failure::invalid(text) }
}

fn entry(text: &str) -> Result<Entry, String> {
    // The colons of an IPv6 address are those between its brackets.
    let (address, rest) = match text.strip_prefix('[') {
        Some(inside) => inside.split_once(']').ok_or("the bracket is not closed")?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let fields: Vec<&str> = rest.split(':').collect();
    let ["", port, function, inputs] = fields[..] else {
        return Err("it does not have four fields".into());
    };
    if address.is_empty() {
        return Err("it has no address".into());
    }
    let port = match port {
        "" => None,
        port => Some(port.parse().ok().filter(|port| *port != 0).ok_or("the port is not 1 to 65535")?),
    };
    let function = function.parse().ok().filter(|code| (1..=127).contains(code));
    let function = function.ok_or("the function is not 1 to 127")?;
    let inputs = inputs.parse().map_err(|_| "the number of inputs is none")?;
    Ok(Entry { address: address.into(), port, function, inputs })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Entry {
        parse(text).unwrap().remove(0)
    }

    #[test]
    fn entries_are_read() {
        let entry = |address: &str, port, function, inputs| Entry { address: address.into(), port, function, inputs };
        let all = parse("10.77.0.2::1:2, 10.0.0.3:4000:16:3,").unwrap();
        assert_eq!(all, [entry("10.77.0.2", None, 1, 2), entry("10.0.0.3", Some(4000), 16, 3)]);
        assert_eq!(one("[fd00::2]:12345:127:0"), entry("fd00::2", Some(12345), 127, 0));
        assert_eq!(one("[::ffff:10.77.0.2]::1:1").address, "::ffff:10.77.0.2");
        assert_eq!(one("rtl0::3:1").address, "rtl0");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, said) in [
            ("", "empty"),
            (" , ", "empty"),
            ("10.0.0.1:12345:1", "four fields"),
            ("10.0.0.1:12345:1:2:3", "four fields"),
            ("10.0.0.1", "four fields"),
            ("fd00::2::1:1", "four fields"),
            ("[fd00::2:12345:1:1", "bracket"),
            ("[fd00::2]x:1:1:1", "four fields"),
            (":1:1:1", "no address"),
            ("a:0:1:1", "port"),
            ("a:65536:1:1", "port"),
            ("a:x:1:1", "port"),
            ("a::0:1", "function"),
            ("a::128:1", "function"),
            ("a::1:-1", "inputs"),
            ("10.0.0.1::1:1,a::x:1", "'a::x:1'"),
        ] {
            let failure = parse(text).unwrap_err();
            assert!(failure.text.contains(said), "{text}: {}", failure.text);
            assert!(failure.hint.contains("NAA_SPEC="));
        }
    }
}
