// SPDX-License-Identifier: Apache-2.0
//! The kernels of one device.

use std::collections::BTreeMap;
use std::sync::Arc;

use nacelle::description::Function;
use nacelle_wire::mrsp::FunctionCode;

use super::{Kernel, KernelError, Run};

/// Longest JSON of all functions, in bytes: callers read descriptions of up to 64 KiB.
const MAX_DESCRIPTION: usize = 60 << 10;

/// A function that a device offers.
#[derive(Clone)]
pub(crate) struct Offered {
    pub(crate) function: Function,
    pub(crate) run: Arc<Run>,
    /// A call may run in the network's thread if all its regions together are not larger.
    pub(crate) quick: usize,
}

/// The kernels of a software device. No two have the same name, or a function with the same code.
#[derive(Clone, Default)]
pub struct KernelSet {
    /// By code.
    functions: BTreeMap<u8, Offered>,
}

impl std::fmt::Debug for KernelSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.functions()).finish()
    }
}

impl KernelSet {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kernel. If it cannot be added, nothing is.
    ///
    /// # Errors
    /// [`KernelError::NoCode`], [`KernelError::SameCode`], [`KernelError::SameName`], [`KernelError::TooLong`].
    pub fn add(&mut self, kernel: Kernel) -> Result<(), KernelError> {
        let Kernel { name, functions, mut code, quick } = kernel;
        if self.functions().any(|function| function.kernel == name) {
            return Err(KernelError::SameName { name });
        }
        let mut all = self.functions.clone();
        for (number, function) in functions {
            let Some(run) = code.remove(&number) else {
                return Err(KernelError::NoCode { kernel: name, code: number });
            };
            if let Some(other) = all.insert(number, Offered { function, run, quick }) {
                return Err(KernelError::SameCode { first: other.function.kernel, second: name, code: number });
            }
        }
        let described: Vec<&Function> = all.values().map(|offered| &offered.function).collect();
        let length = serde_json::to_vec(&described).map_or(usize::MAX, |json| json.len());
        if length > MAX_DESCRIPTION {
            return Err(KernelError::TooLong { kernel: name, length, limit: MAX_DESCRIPTION });
        }
        self.functions = all;
        Ok(())
    }

    /// What all functions say of themselves, by code.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values().map(|offered| &offered.function)
    }

    pub(crate) fn get(&self, function: FunctionCode) -> Option<&Offered> {
        self.functions.get(&function.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, codes: &[u8], doc: &str) -> Kernel {
        let functions =
            codes.iter().map(|code| format!("[[functions]]\ncode = {code}\nname = \"f{code}\"\ndoc = \"{doc}\"\n"));
        let text = format!("name = \"{name}\"\nversion = \"1.0\"\n{}", functions.collect::<String>());
        let mut kernel = Kernel::from_toml(&text).unwrap();
        for code in codes {
            kernel = kernel.with(FunctionCode::new(*code).unwrap(), |_| Ok(())).unwrap();
        }
        kernel
    }

    #[test]
    fn kernels_that_do_not_go_together_are_refused_and_change_nothing() {
        let mut set = KernelSet::new();
        set.add(kernel("first", &[5, 3], "")).unwrap();
        assert_eq!(set.add(kernel("first", &[9], "")), Err(KernelError::SameName { name: "first".into() }));
        let same = KernelError::SameCode { first: "first".into(), second: "second".into(), code: 5 };
        assert_eq!(set.add(kernel("second", &[4, 5], "")), Err(same));
        let codes = |set: &KernelSet| set.functions().map(|function| function.code).collect::<Vec<_>>();
        assert_eq!(codes(&set), [3, 5]);
        set.add(kernel("second", &[4], "")).unwrap();
        assert_eq!(codes(&set), [3, 4, 5]);
        assert!(set.get(FunctionCode::new(6).unwrap()).is_none());
    }

    #[test]
    fn every_function_needs_its_code_once() {
        let text = "name = \"bare\"\nversion = \"1.0\"\n[[functions]]\ncode = 8\nname = \"f\"\ndoc = \"\"\n";
        let [eight, nine] = [8, 9].map(|code| FunctionCode::new(code).unwrap());
        let bare = Kernel::from_toml(text).unwrap();
        assert_eq!(KernelSet::new().add(bare.clone()), Err(KernelError::NoCode { kernel: "bare".into(), code: 8 }));
        let not = |code| KernelError::NotDescribed { kernel: "bare".into(), code };
        assert_eq!(bare.clone().with(nine, |_| Ok(())).unwrap_err(), not(9));
        assert_eq!(bare.with(eight, |_| Ok(())).unwrap().with(eight, |_| Ok(())).unwrap_err(), not(8));
    }

    #[test]
    fn a_description_that_callers_would_not_read_is_refused() {
        let codes: Vec<u8> = (1..=127).collect();
        let error = KernelSet::new().add(kernel("much", &codes, &"x".repeat(512))).unwrap_err();
        assert!(matches!(error, KernelError::TooLong { limit: MAX_DESCRIPTION, .. }), "{error}");
        KernelSet::new().add(kernel("much", &codes, "")).unwrap();
    }
}
