// SPDX-License-Identifier: Apache-2.0
//! Kernels of the software device: functions that work on the regions of one call.
//!
//! A kernel reaches memory as one in the RTL does: by reads and writes through the window of its call. When the call is over,
//! in time or not, the window is closed, and whatever the kernel tries then ends it. So a kernel never holds memory of a
//! caller that has gone, and needs no copy of what it does not keep.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nacelle::description::{Function, RegionInfo};
use nacelle_wire::kernel::matmul::{Args, Dtype};
use nacelle_wire::mrsp::{FunctionCode, ReturnCode};
use serde::Deserialize;
use smallvec::SmallVec;

/// What the kernels of the RTL say of themselves; those here do the same.
const INCREMENT: &str = include_str!("../../../rtl/compute/kernels/kernel_increment.toml");
const MATMUL: &str = include_str!("../../../rtl/compute/kernels/kernel_matmul.toml");

/// Bytes that a kernel here takes in one access, and in one access to regions that are small.
const BLOCK: usize = 256 << 10;
const SMALL_BLOCK: usize = 4 << 10;
/// A call with more regions than any set-up may have allocates.
pub(crate) const MOST_REGIONS: usize = 32;
/// A call of a kernel of this crate whose regions are not larger is over sooner than a thread can be woken for it.
const QUICK: usize = 16 << 10;

/// Kernel codes of matrix multiply (docs/reference/kernels.md).
const BAD_ARGUMENTS: Stop = Stop::Failed(ReturnCode::new(0x10));
const BAD_SIZE: Stop = Stop::Failed(ReturnCode::new(0x11));

/// Why a kernel ends without success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The kernel's own reason: 0x10 to 0x7f.
    Failed(ReturnCode),
    /// The call is over: its time has passed, or its caller has gone. A result is not needed.
    Ended,
}

/// What regions a call has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The length of each region in bytes, in index order: parameters, then internal regions.
    pub sizes: SmallVec<[usize; MOST_REGIONS]>,
    /// How many are parameters. The others are scratch memory, which the caller never sees.
    pub parameters: usize,
}

impl Layout {
    /// Checks that `length` bytes from `at` on are in `region`.
    pub(crate) fn check(&self, region: usize, at: usize, length: usize) -> Result<(), Stop> {
        let end = at.checked_add(length).ok_or(BAD_SIZE)?;
        if self.sizes.get(region).is_some_and(|size| end <= *size) { Ok(()) } else { Err(BAD_SIZE) }
    }
}

/// The regions of a call.
pub trait Memory {
    /// Which there are.
    fn layout(&self) -> &Layout;

    /// Fills `into` with what `region` has from byte `at` on.
    ///
    /// # Errors
    /// [`Stop::Failed`] with code 0x11 if it has less; [`Stop::Ended`].
    fn read(&mut self, region: usize, at: usize, into: &mut [u8]) -> Result<(), Stop>;

    /// Puts `bytes` into `region` from byte `at` on.
    ///
    /// # Errors
    /// As [`Memory::read`].
    fn write(&mut self, region: usize, at: usize, bytes: &[u8]) -> Result<(), Stop>;
}

/// What a kernel does.
pub type Run = dyn Fn(&mut dyn Memory) -> Result<(), Stop> + Send + Sync;

/// A function that the software device offers.
#[derive(Clone)]
pub struct Kernel {
    /// The code that selects it.
    pub code: FunctionCode,
    /// Its part of the description for callers.
    pub description: Function,
    pub(crate) run: Arc<Run>,
    /// It may run in the network's thread if all its regions together are not larger.
    pub(crate) quick: usize,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("description", &self.description).finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel. It always runs in a thread of its own.
    pub fn new(
        code: FunctionCode,
        name: &str,
        run: impl Fn(&mut dyn Memory) -> Result<(), Stop> + Send + Sync + 'static,
    ) -> Self {
        Self { code, description: Function::new(code.get(), name), run: Arc::new(run), quick: 0 }
    }

    /// Those that every software device has.
    #[must_use]
    pub fn standard() -> Vec<Self> {
        let kernel = |code: FunctionCode, file: &[Function], run: fn(&mut dyn Memory) -> Result<(), Stop>| {
            let described = file.iter().find(|function| function.code == code.get());
            let description = described.expect("the kernel file has its functions").clone();
            Self { code, description, run: Arc::new(run), quick: QUICK }
        };
        let (increment_file, matmul_file) = (kernel_file(INCREMENT), kernel_file(MATMUL));
        vec![
            kernel(FunctionCode::INCREMENT, &increment_file, increment),
            kernel(FunctionCode::EMPTY, &increment_file, |_| Ok(())),
            kernel(FunctionCode::MATMUL, &matmul_file, matmul),
        ]
    }
}

/// The functions that a kernel file describes (docs/reference/device-description.md).
fn kernel_file(text: &str) -> Vec<Function> {
    #[derive(Deserialize)]
    struct File {
        name: String,
        functions: Vec<Described>,
        errors: BTreeMap<String, String>,
    }
    #[derive(Deserialize)]
    struct Described {
        code: u8,
        name: String,
        doc: String,
        regions: Vec<RegionInfo>,
    }
    let file: File = toml::from_str(text).expect("the files of the kernels here are tested");
    let number = |code: &str| u8::from_str_radix(code.trim_start_matches("0x"), 16).expect("a code in hexadecimal");
    let errors: BTreeMap<u8, String> = file.errors.iter().map(|(code, text)| (number(code), text.clone())).collect();
    let functions = file.functions.into_iter().map(|Described { code, name, doc, regions }| {
        let mut function = Function::new(code, &name);
        function.kernel.clone_from(&file.name);
        (function.doc, function.regions) = (doc, regions);
        function.errors.clone_from(&errors);
        function
    });
    functions.collect()
}

fn increment(memory: &mut dyn Memory) -> Result<(), Stop> {
    let sizes = memory.layout().sizes.clone();
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let (mut small, mut large) = ([0; SMALL_BLOCK], Vec::new());
    let block = if largest <= QUICK {
        &mut small[..]
    } else {
        large.resize(largest.min(BLOCK), 0);
        &mut large[..]
    };
    let step = block.len();
    for (region, size) in sizes.into_iter().enumerate() {
        for at in (0..size).step_by(step) {
            let bytes = &mut block[..step.min(size - at)];
            memory.read(region, at, bytes)?;
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
            memory.write(region, at, bytes)?;
        }
    }
    Ok(())
}

/// C = A x B. The regions may be larger than the matrices.
fn matmul(memory: &mut dyn Memory) -> Result<(), Stop> {
    let Layout { sizes, parameters } = memory.layout();
    let &[block, a, b, c] = &sizes[..*parameters] else { return Err(BAD_ARGUMENTS) };
    let mut bytes = [0; Args::LEN];
    if block < bytes.len() {
        return Err(BAD_SIZE);
    }
    memory.read(0, 0, &mut bytes)?;
    let Args { dtype, m, n, k } = Args::parse(&bytes).map_err(|_| BAD_ARGUMENTS)?;
    let sides = [m, n, k].map(|side| side as usize);
    let [m, n, k] = sides;
    if sides.contains(&0) {
        return Err(BAD_ARGUMENTS);
    }
    let size = |rows: usize, columns: usize| rows.checked_mul(columns)?.checked_mul(dtype.size());
    let needed = [(a, size(m, k)), (b, size(k, n)), (c, size(m, n))];
    if needed.iter().any(|(there, needed)| needed.is_none_or(|needed| needed > *there)) {
        return Err(BAD_SIZE);
    }
    match dtype {
        Dtype::Int32 => multiply(memory, sides, i32::from_le_bytes, i32::to_le_bytes, |sum: i32, x, y| {
            sum.wrapping_add(x.wrapping_mul(y))
        }),
        Dtype::Float32 => multiply(memory, sides, f32::from_le_bytes, f32::to_le_bytes, |sum: f32, x, y| sum + x * y),
    }
}

/// Keeps B, and takes A and C a block of rows at a time. Each element is summed up in the order of k.
fn multiply<T: Copy + Default>(
    memory: &mut dyn Memory,
    [m, n, k]: [usize; 3],
    decode: impl Fn([u8; 4]) -> T,
    encode: impl Fn(T) -> [u8; 4],
    add: impl Fn(T, T, T) -> T,
) -> Result<(), Stop> {
    let words = |bytes: &[u8], into: &mut Vec<T>| {
        into.extend(bytes.chunks_exact(4).map(|word| decode([word[0], word[1], word[2], word[3]])));
    };
    let rows = (BLOCK / (4 * n.max(k))).clamp(1, m);
    let mut bytes = vec![0; (4 * rows * n.max(k)).max(BLOCK.min(4 * k * n))];
    let mut b = Vec::with_capacity(k * n);
    for at in (0..4 * k * n).step_by(BLOCK) {
        let bytes = &mut bytes[..BLOCK.min(4 * k * n - at)];
        memory.read(2, at, bytes)?;
        words(bytes, &mut b);
    }
    let (mut a, mut c) = (Vec::new(), Vec::new());
    for first in (0..m).step_by(rows) {
        let rows = rows.min(m - first);
        memory.read(1, 4 * first * k, &mut bytes[..4 * rows * k])?;
        a.clear();
        words(&bytes[..4 * rows * k], &mut a);
        c.clear();
        c.resize(rows * n, T::default());
        for (a, c) in a.chunks_exact(k).zip(c.chunks_exact_mut(n)) {
            for (x, b) in a.iter().zip(b.chunks_exact(n)) {
                c.iter_mut().zip(b).for_each(|(sum, y)| *sum = add(*sum, *x, *y));
            }
        }
        let bytes = &mut bytes[..4 * rows * n];
        bytes.chunks_exact_mut(4).zip(&c).for_each(|(word, sum)| word.copy_from_slice(&encode(*sum)));
        memory.write(3, 4 * first * n, bytes)?;
    }
    Ok(())
}
