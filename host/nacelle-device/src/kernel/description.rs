// SPDX-License-Identifier: Apache-2.0
//! What a kernel says of itself, checked.

use std::collections::BTreeMap;

use nacelle::description::{Function, RegionInfo};
use nacelle_wire::mrsp::FunctionCode;
use serde::Deserialize;

use super::{Failure, KernelError};

/// Longest name of a kernel, as in a socket's register.
const MAX_NAME: usize = 16;
/// Longest of any other text.
const MAX_TEXT: usize = 512;
/// Parameters that one function may describe: no call has more regions.
const MAX_REGIONS: usize = 32;

/// As it came, from a file or a library.
pub(super) struct Description {
    pub(super) name: String,
    pub(super) version: (u16, u16),
    pub(super) functions: Vec<Described>,
    /// By code, in the order in which they came.
    pub(super) errors: Vec<(u8, String)>,
}

/// A function as it came.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Described {
    pub(super) code: u8,
    pub(super) name: String,
    pub(super) doc: String,
    #[serde(default)]
    pub(super) regions: Vec<RegionInfo>,
}

/// A kernel file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    version: String,
    functions: Vec<Described>,
    #[serde(default)]
    errors: BTreeMap<String, String>,
}

impl Description {
    pub(super) fn from_toml(text: &str) -> Result<Self, KernelError> {
        let file: File = toml::from_str(text).map_err(|error| wrong("a kernel", error.to_string().trim_end()))?;
        let version =
            file.version.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let version = version.ok_or_else(|| wrong(&file.name, r#"version must be "major.minor""#))?;
        let code = |text: &str| match text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let mut errors = Vec::new();
        for (key, text) in file.errors {
            let code = code(&key).ok_or_else(|| wrong(&file.name, format!("{key} is no code of an error")))?;
            errors.push((code, text));
        }
        Ok(Self { name: file.name, version, functions: file.functions, errors })
    }

    /// The name, and the functions by code.
    pub(super) fn check(self) -> Result<(String, BTreeMap<u8, Function>), KernelError> {
        let Self { name, version, functions, errors } = self;
        if !is_name(&name) || name.len() > MAX_NAME {
            let why = format!("its name must be 1 to {MAX_NAME} letters, digits, '_' or '-'");
            return Err(wrong("a kernel", why));
        }
        let fail = |why: String| Err(wrong(&name, why));
        if functions.is_empty() {
            return fail("it has no function".into());
        }
        let mut meanings = BTreeMap::new();
        for (code, text) in errors {
            if Failure::new(code).is_none() {
                return fail(format!("the code {code:#04x} of an error is not between 0x10 and 0x7f"));
            }
            if !is_text(&text) {
                return fail(format!("the meaning of error {code:#04x} is no {TEXT}"));
            }
            if meanings.insert(code, text).is_some() {
                return fail(format!("two errors have the code {code:#04x}"));
            }
        }
        let mut checked = BTreeMap::new();
        for Described { code, name: function_name, doc, regions } in functions {
            if FunctionCode::new(code).is_none() {
                return fail(format!("the code {code} of a function is not between 1 and 127"));
            }
            if !is_name(&function_name) || function_name.len() > MAX_TEXT {
                return fail(format!("the name of function {code} must be letters, digits, '_' or '-'"));
            }
            if regions.len() > MAX_REGIONS {
                return fail(format!("function {code} has {} regions, more than {MAX_REGIONS}", regions.len()));
            }
            if !is_text(&doc) || regions.iter().any(|region| !is_name(&region.name) || !is_text(&region.doc)) {
                return fail(format!("a name or text of function {code} is no {TEXT}"));
            }
            let mut function = Function::new(code, &function_name);
            function.kernel.clone_from(&name);
            function.kernel_version = version;
            (function.doc, function.regions) = (doc, regions);
            function.errors.clone_from(&meanings);
            if checked.insert(code, function).is_some() {
                return fail(format!("two functions have the code {code}"));
            }
        }
        Ok((name, checked))
    }
}

fn wrong(kernel: &str, why: impl Into<String>) -> KernelError {
    let kernel = if kernel == "a kernel" { kernel.into() } else { format!("the kernel {kernel}") };
    KernelError::Description { kernel, why: why.into() }
}

/// What callers can read anywhere.
const TEXT: &str = "printable ASCII text of at most 512 characters";

fn is_text(text: &str) -> bool {
    text.len() <= MAX_TEXT && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        name = "two-things"
        version = "3.14"
        [[functions]]
        code = 9
        name = "second"
        doc = "Nine."
        [[functions]]
        code = 7
        name = "first"
        doc = "Seven."
        regions = [{ name = "in", access = "in", repeated = true, doc = "bytes" }]
        [errors]
        0x10 = "wrong"
        127 = "very wrong"
    "#;

    fn outcome(text: &str) -> Result<(String, BTreeMap<u8, Function>), KernelError> {
        Description::from_toml(text)?.check()
    }

    #[test]
    fn a_kernel_file_becomes_functions_by_code() {
        let (name, functions) = outcome(GOOD).unwrap();
        assert_eq!((name.as_str(), functions.keys().copied().collect::<Vec<_>>()), ("two-things", vec![7, 9]));
        let first = &functions[&7];
        assert_eq!((first.kernel.as_str(), first.kernel_version, first.sockets), ("two-things", (3, 14), 1));
        assert!(first.regions[0].repeated && functions[&9].regions.is_empty());
        assert_eq!(first.errors, BTreeMap::from([(16, "wrong".into()), (127, "very wrong".into())]));
    }

    #[test]
    fn every_mistake_is_named() {
        let long = format!("doc = \"{}\"", "x".repeat(513));
        for (right, mistake, said) in [
            ("\"two-things\"", "\"seventeen-letters\"", "1 to 16"),
            ("\"two-things\"", "\"\"", "1 to 16"),
            ("\"two-things\"", "\"a name\"", "1 to 16"),
            ("3.14", "3", "major.minor"),
            ("3.14", "3.65536", "major.minor"),
            ("code = 9", "code = 0", "code 0 "),
            ("code = 9", "code = 128", "code 128"),
            ("code = 9", "code = 300", "300"),
            ("code = 9", "code = 7", "two functions have the code 7"),
            ("\"second\"", "\"\"", "name of function 9"),
            ("doc = \"Nine.\"", "doc = \"N\\u00e9uf\"", "ASCII"),
            ("doc = \"Nine.\"", "doc = \"two\\nlines\"", "ASCII"),
            ("doc = \"Nine.\"", &long, "512"),
            ("doc = \"Nine.\"", "", "doc"),
            ("doc = \"Nine.\"", "doc = \"Nine.\"\nstyle = 1", "style"),
            ("\"in\", access", "\"\", access", "function 7"),
            ("access = \"in\"", "access = \"both\"", "both"),
            ("0x10", "0x0f", "0x0f"),
            ("0x10", "0x80", "0x80"),
            ("0x10", "sixteen", "sixteen"),
            ("0x10", "0x7f", "two errors have the code 0x7f"),
        ] {
            assert!(GOOD.contains(right), "{right}");
            let error = outcome(&GOOD.replacen(right, mistake, 1)).unwrap_err().to_string();
            assert!(error.contains(said), "{mistake}: {error}");
        }
        let error = outcome("name = \"none\"\nversion = \"1.0\"\nfunctions = []").unwrap_err();
        assert!(error.to_string().contains("the kernel none is wrong: it has no function"), "{error}");
    }
}
