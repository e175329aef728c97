// SPDX-License-Identifier: Apache-2.0
//! The kernels of one device.

use std::collections::BTreeMap;
use std::sync::Arc;

use nacelle::description::Function;
use nacelle_manage::{ChangeError, Digest, KernelImage, KernelSocket};
use nacelle_wire::mrsp::FunctionCode;

use super::{Kernel, KernelError, Run};

/// Longest JSON of all functions, in bytes: callers read descriptions of up to 64 KiB.
const MAX_DESCRIPTION: usize = 60 << 10;

/// Most kernels that one socket can hold: as many as on the RTL.
const MAX_IMAGES: usize = 8;

/// Where a function is from: the socket, and the how-manieth kernel that was put into any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    pub(crate) socket: u16,
    pub(crate) load: u32,
}

/// A function that a device offers.
#[derive(Clone)]
pub(crate) struct Offered {
    pub(crate) function: Function,
    pub(crate) run: Arc<Run>,
    /// A call may run in the network's thread if all its regions together are not larger.
    pub(crate) quick: usize,
    pub(crate) origin: Origin,
}

/// A place for one kernel at a time.
#[derive(Clone)]
struct Socket {
    images: Vec<Kernel>,
    active: u8,
    former: Option<u8>,
    load: u32,
    error: Option<ChangeError>,
}

/// The kernels of a software device. No two have the same name. Each has a socket of its own, or several share one: then one of them is
/// offered, at first the one that was added first. Kernels of different sockets have no function with the same code.
#[derive(Clone, Default)]
pub struct KernelSet {
    sockets: Vec<Socket>,
    /// Those that are offered, by code.
    functions: BTreeMap<u8, Offered>,
    /// Kernels that were put into a socket in place of another.
    changes: u32,
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

    /// Adds a kernel, in a socket of its own. If it cannot be added, nothing is.
    ///
    /// # Errors
    /// [`KernelError::NoCode`], [`KernelError::SameCode`], [`KernelError::SameName`], [`KernelError::TooLong`].
    pub fn add(&mut self, kernel: Kernel) -> Result<(), KernelError> {
        self.check(&kernel, None)?;
        self.sockets.push(Socket { images: vec![kernel], active: 0, former: None, load: 0, error: None });
        self.offer();
        Ok(())
    }

    /// Adds a kernel that can take the place of the one of this name, and is not offered before.
    ///
    /// # Errors
    /// As [`KernelSet::add`]; [`KernelError::NoSocket`], [`KernelError::TooMany`].
    pub fn add_image(&mut self, beside: &str, kernel: Kernel) -> Result<(), KernelError> {
        let name = || beside.to_owned();
        let holds = |socket: &Socket| socket.images.iter().any(|image| image.name == beside);
        let Some(number) = self.sockets.iter().position(holds) else {
            return Err(KernelError::NoSocket { name: name() });
        };
        self.check(&kernel, Some(number))?;
        let images = &mut self.sockets[number].images;
        if images.len() >= MAX_IMAGES {
            return Err(KernelError::TooMany { name: name(), limit: MAX_IMAGES });
        }
        images.push(kernel);
        Ok(())
    }

    /// Whether a kernel can be added to this socket, or in a new one.
    fn check(&self, kernel: &Kernel, socket: Option<usize>) -> Result<(), KernelError> {
        let Kernel { name, functions, code, .. } = kernel;
        if self.images().any(|other| other.name == *name) {
            return Err(KernelError::SameName { name: name.clone() });
        }
        if let Some(number) = functions.keys().find(|number| !code.contains_key(number)) {
            return Err(KernelError::NoCode { kernel: name.clone(), code: *number });
        }
        let others = self.sockets.iter().enumerate().filter(|(number, _)| Some(*number) != socket);
        for other in others.flat_map(|(_, other)| &other.images) {
            if let Some(&code) = functions.keys().find(|code| other.functions.contains_key(code)) {
                return Err(KernelError::SameCode { first: other.name.clone(), second: name.clone(), code });
            }
        }
        let described: Vec<&Function> = self.images().chain([kernel]).flat_map(Kernel::functions).collect();
        let length = serde_json::to_vec(&described).map_or(usize::MAX, |json| json.len());
        if length > MAX_DESCRIPTION {
            return Err(KernelError::TooLong { kernel: name.clone(), length, limit: MAX_DESCRIPTION });
        }
        Ok(())
    }

    fn images(&self) -> impl Iterator<Item = &Kernel> {
        self.sockets.iter().flat_map(|socket| &socket.images)
    }

    /// Offers the functions of the kernels that are there now.
    fn offer(&mut self) {
        self.functions.clear();
        for (number, socket) in self.sockets.iter().enumerate() {
            let kernel = &socket.images[usize::from(socket.active)];
            let origin = Origin { socket: number as u16, load: socket.load };
            for (code, function) in &kernel.functions {
                let (function, run) = (function.clone(), Arc::clone(&kernel.code[code]));
                self.functions.insert(*code, Offered { function, run, quick: kernel.quick, origin });
            }
        }
    }

    /// What all functions that are offered say of themselves, by code.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values().map(|offered| &offered.function)
    }

    pub(crate) fn get(&self, function: FunctionCode) -> Option<&Offered> {
        self.functions.get(&function.get())
    }

    // ---- changes ----

    /// The functions of all kernels, if they can change.
    pub(crate) fn all_functions(&self) -> Option<impl Iterator<Item = &Function>> {
        let change = self.sockets.iter().any(|socket| socket.images.len() > 1);
        change.then(|| self.images().flat_map(Kernel::functions))
    }

    /// How often the functions have begun to change, and have changed.
    pub(crate) const fn changes(&self) -> u32 {
        self.changes.wrapping_mul(2)
    }

    /// Whether a function that came from there is no more offered.
    pub(crate) fn is_gone(&self, origin: Origin) -> bool {
        self.sockets.get(usize::from(origin.socket)).is_none_or(|socket| socket.load != origin.load)
    }

    /// All sockets; `changing` says whether the kernel before has calls that have not ended.
    pub(crate) fn sockets(&self, changing: impl Fn(u16) -> bool) -> Vec<KernelSocket> {
        let one = |(number, socket): (usize, &Socket)| {
            let several = socket.images.len() > 1;
            let images = socket.images.iter().map(|kernel| KernelImage {
                name: kernel.name.clone(),
                version: kernel.functions.values().next().map_or((0, 0), |function| function.kernel_version),
                functions: kernel.functions.keys().copied().collect(),
                digest: several.then_some(kernel.digest),
                uploaded: false,
            });
            KernelSocket {
                images: images.collect(),
                active: Some(socket.active),
                former: socket.former,
                changing: changing(number as u16),
                error: socket.error,
            }
        };
        self.sockets.iter().enumerate().map(one).collect()
    }

    /// How many sockets there are.
    pub(crate) fn socket_count(&self) -> u32 {
        self.sockets.len() as u32
    }

    /// How many kernels a socket can hold, if there is such a socket.
    pub(crate) fn image_count(&self, socket: u16) -> Option<usize> {
        self.sockets.get(usize::from(socket)).map(|socket| socket.images.len())
    }

    /// Puts an image into a socket, the former one without a number. What comes of it is kept; nothing happens without such a socket.
    pub(crate) fn activate(&mut self, socket: u16, image: Option<(u8, Digest)>) {
        let load = self.changes + 1;
        let Some(socket) = self.sockets.get_mut(usize::from(socket)) else { return };
        let target = match image {
            None => socket.former.ok_or(ChangeError::NoFormer),
            Some((number, digest)) => match socket.images.get(usize::from(number)) {
                None => Err(ChangeError::BadImage),
                Some(kernel) if kernel.digest != digest => Err(ChangeError::BadDigest),
                Some(_) => Ok(number),
            },
        };
        socket.error = target.err();
        let Ok(target) = target else { return };
        if target != socket.active {
            socket.former = Some(socket.active);
        }
        (socket.active, socket.load, self.changes) = (target, load, load);
        self.offer();
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

    /// Kernels of one socket may have the same functions, and one of them is offered.
    #[test]
    fn one_kernel_takes_the_place_of_another() {
        let mut set = KernelSet::new();
        set.add(kernel("first", &[5, 3], "")).unwrap();
        set.add(kernel("other", &[9], "")).unwrap();
        set.add_image("first", kernel("second", &[5, 4], "")).unwrap();
        assert_eq!(set.add_image("none", kernel("x", &[1], "")), Err(KernelError::NoSocket { name: "none".into() }));
        let same = KernelError::SameCode { first: "other".into(), second: "x".into(), code: 9 };
        assert_eq!(set.add_image("second", kernel("x", &[9], "")), Err(same));
        let same = KernelError::SameCode { first: "second".into(), second: "x".into(), code: 4 };
        assert_eq!(set.add(kernel("x", &[4], "")), Err(same));
        let codes = |set: &KernelSet| set.functions().map(|function| function.code).collect::<Vec<_>>();
        let error = |set: &KernelSet| set.sockets(|_| false)[0].error;
        let digest = |image: usize| set.sockets(|_| false)[0].images[image].digest.unwrap();
        let digests = [digest(0), digest(1)];
        assert_ne!(digests[0], digests[1]);
        let before = set.get(FunctionCode::new(5).unwrap()).unwrap().origin;
        for (image, expected) in [
            (None, ChangeError::NoFormer),
            (Some((2, digests[0])), ChangeError::BadImage),
            (Some((1, digests[0])), ChangeError::BadDigest),
        ] {
            set.activate(0, image);
            assert_eq!((error(&set), codes(&set), set.changes()), (Some(expected), vec![3, 5, 9], 0));
        }
        assert!(!set.is_gone(before));
        set.activate(0, Some((1, digests[1])));
        assert_eq!((error(&set), codes(&set), set.changes()), (None, vec![4, 5, 9], 2));
        assert!(set.is_gone(before));
        set.activate(0, None);
        assert_eq!((codes(&set), set.changes()), (vec![3, 5, 9], 4));
        assert!(set.is_gone(before), "it was loaded again");
        set.activate(0, None);
        assert_eq!(codes(&set), [4, 5, 9]);
        set.activate(7, None);
        for number in 2..MAX_IMAGES as u8 {
            set.add_image("first", kernel(&format!("k{number}"), &[5], "")).unwrap();
        }
        let many = KernelError::TooMany { name: "second".into(), limit: MAX_IMAGES };
        assert_eq!(set.add_image("second", kernel("x", &[5], "")), Err(many));
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
