// SPDX-License-Identifier: Apache-2.0
//! Vector operations and reductions. Everything is checked before anything is written.

use nacelle_wire::kernel::vector::{Args, Binary, Dtype, Reduction, Unary, Vector};

use super::number::Number;
use super::{Call, Cancellation, Failure};

#[cfg(test)]
mod tests;

/// Elements between two looks at the cancellation; a multiple of `LANES`.
const BLOCK: usize = 1 << 16;
/// Partial sums: element i belongs to that of number i mod 16.
const LANES: usize = 16;

/// Runs a function.
pub(super) fn run(function: Vector, call: &mut Call<'_>) -> Result<(), Failure> {
    let Some((arguments, vectors)) = call.parameters.split_first_mut() else { return Err(Failure::BAD_ARGUMENTS) };
    let expected = match function {
        Vector::Fill => 1,
        Vector::Unary | Vector::Reduce => 2,
        Vector::Binary | Vector::Dot => 3,
    };
    if vectors.len() != expected {
        return Err(Failure::BAD_ARGUMENTS);
    }
    let arguments = arguments.first_chunk().ok_or(Failure::REGION_TOO_SMALL)?;
    let arguments = Args::parse(arguments).map_err(|_| Failure::BAD_ARGUMENTS)?;
    let task = Task { function, arguments, vectors, cancellation: &call.cancellation };
    match arguments.dtype {
        Dtype::Int32 => task.run::<i32>(),
        Dtype::Int64 => task.run::<i64>(),
        Dtype::Float32 => task.run::<f32>(),
        Dtype::Float64 => task.run::<f64>(),
    }
}

/// What is to be done.
struct Task<'a, 'b> {
    function: Vector,
    arguments: Args,
    /// The regions behind the arguments, as many as the function has.
    vectors: &'a mut [&'b mut [u8]],
    cancellation: &'a Cancellation,
}

impl Task<'_, '_> {
    fn run<T: Number>(self) -> Result<(), Failure> {
        match self.function {
            Vector::Binary => self.binary::<T>(),
            Vector::Unary => self.unary::<T>(),
            Vector::Fill => self.fill::<T>(),
            Vector::Reduce => self.reduce::<T>(),
            Vector::Dot => self.dot::<T>(),
        }
    }

    /// Bytes of a vector.
    fn length<T: Number>(&self) -> Result<usize, Failure> {
        let count = usize::try_from(self.arguments.count).ok();
        count.and_then(|count| count.checked_mul(T::SIZE)).ok_or(Failure::REGION_TOO_SMALL)
    }

    fn scalar<T: Number>(&self) -> T {
        T::load(&self.arguments.scalar[..T::SIZE])
    }

    fn without_scalar(&self) -> Result<(), Failure> {
        if self.arguments.scalar == [0; 8] { Ok(()) } else { Err(Failure::BAD_ARGUMENTS) }
    }

    fn without_operation(&self) -> Result<(), Failure> {
        if self.arguments.operation == 0 { Ok(()) } else { Err(Failure::BAD_ARGUMENTS) }
    }

    fn binary<T: Number>(self) -> Result<(), Failure> {
        let operation = Binary::from_number(self.arguments.operation).map_err(|_| Failure::BAD_ARGUMENTS)?;
        if operation != Binary::Axpy {
            self.without_scalar()?;
        }
        let (length, scalar) = (self.length::<T>()?, self.scalar::<T>());
        let [x, y, z] = sized(self.vectors, [length; 3])?;
        let apply = Apply { x, y, z, cancellation: self.cancellation };
        match operation {
            Binary::Add => apply.all(T::plus),
            Binary::Sub => apply.all(T::minus),
            Binary::Mul => apply.all(T::times),
            Binary::Min => apply.all(T::smaller),
            Binary::Max => apply.all(T::larger),
            Binary::Axpy => apply.all(|x: T, y| scalar.times(x).plus(y)),
        }
    }

    fn unary<T: Number>(self) -> Result<(), Failure> {
        let operation = Unary::from_number(self.arguments.operation).map_err(|_| Failure::BAD_ARGUMENTS)?;
        if operation != Unary::Scale {
            self.without_scalar()?;
        }
        let (length, scalar) = (self.length::<T>()?, self.scalar::<T>());
        let [x, z] = sized(self.vectors, [length; 2])?;
        let mut sum = T::default();
        for (x, z) in x.chunks(BLOCK * T::SIZE).zip(z.chunks_mut(BLOCK * T::SIZE)) {
            self.cancellation.check()?;
            let elements = x.chunks_exact(T::SIZE).map(T::load).zip(z.chunks_exact_mut(T::SIZE));
            match operation {
                Unary::Scale => elements.for_each(|(x, z)| scalar.times(x).canonical().store(z)),
                Unary::PrefixSum => elements.for_each(|(x, z)| {
                    sum = sum.plus(x);
                    sum.canonical().store(z);
                }),
            }
        }
        Ok(())
    }

    fn fill<T: Number>(self) -> Result<(), Failure> {
        self.without_operation()?;
        let length = self.length::<T>()?;
        let scalar = &self.arguments.scalar[..T::SIZE];
        let [z] = sized(self.vectors, [length])?;
        for z in z.chunks_mut(BLOCK * T::SIZE) {
            self.cancellation.check()?;
            z.chunks_exact_mut(T::SIZE).for_each(|element| element.copy_from_slice(scalar));
        }
        Ok(())
    }

    fn reduce<T: Number>(self) -> Result<(), Failure> {
        let operation = Reduction::from_number(self.arguments.operation).map_err(|_| Failure::BAD_ARGUMENTS)?;
        self.without_scalar()?;
        if self.arguments.count == 0 && operation != Reduction::Sum {
            return Err(Failure::BAD_ARGUMENTS);
        }
        let of_index = matches!(operation, Reduction::ArgMin | Reduction::ArgMax);
        let result = if of_index { size_of::<u64>() } else { T::SIZE };
        let [x, result] = sized(self.vectors, [self.length::<T>()?, result])?;
        let x = Elements { bytes: x, cancellation: self.cancellation };
        match operation {
            Reduction::Sum => x.lanes(T::default(), T::plus)?.store(result),
            Reduction::Min => x.lanes(x.first(), T::smaller)?.store(result),
            Reduction::Max => x.lanes(x.first(), T::larger)?.store(result),
            Reduction::ArgMin => result.copy_from_slice(&x.find(|x: T, than| x < than)?.to_le_bytes()),
            Reduction::ArgMax => result.copy_from_slice(&x.find(|x: T, than| x > than)?.to_le_bytes()),
        }
        Ok(())
    }

    fn dot<T: Number>(self) -> Result<(), Failure> {
        self.without_operation()?;
        self.without_scalar()?;
        let length = self.length::<T>()?;
        let [x, y, result] = sized(self.vectors, [length, length, T::SIZE])?;
        let mut sums = [T::default(); LANES];
        for (x, y) in x.chunks(BLOCK * T::SIZE).zip(y.chunks(BLOCK * T::SIZE)) {
            self.cancellation.check()?;
            for (x, y) in x.chunks(LANES * T::SIZE).zip(y.chunks(LANES * T::SIZE)) {
                let pairs = x.chunks_exact(T::SIZE).zip(y.chunks_exact(T::SIZE));
                for (sum, (x, y)) in sums.iter_mut().zip(pairs) {
                    *sum = sum.plus(T::load(x).times(T::load(y)));
                }
            }
        }
        join(sums, T::plus).store(result);
        Ok(())
    }
}

/// As many bytes of each region as are needed.
fn sized<'a, const N: usize>(regions: &'a mut [&mut [u8]], lengths: [usize; N]) -> Result<[&'a mut [u8]; N], Failure> {
    let mut regions = regions.iter_mut().zip(lengths).map(|(region, length)| region.get_mut(..length));
    let mut sized = [const { None }; N];
    sized.iter_mut().for_each(|place| *place = regions.next().flatten());
    if sized.iter().any(Option::is_none) {
        return Err(Failure::REGION_TOO_SMALL);
    }
    Ok(sized.map(Option::unwrap_or_default))
}

/// z\[i\] from x\[i\] and y\[i\].
struct Apply<'a> {
    x: &'a [u8],
    y: &'a [u8],
    z: &'a mut [u8],
    cancellation: &'a Cancellation,
}

impl Apply<'_> {
    fn all<T: Number>(self, operation: impl Fn(T, T) -> T) -> Result<(), Failure> {
        let block = BLOCK * T::SIZE;
        for ((x, y), z) in self.x.chunks(block).zip(self.y.chunks(block)).zip(self.z.chunks_mut(block)) {
            self.cancellation.check()?;
            let pairs = x.chunks_exact(T::SIZE).zip(y.chunks_exact(T::SIZE));
            for ((x, y), z) in pairs.zip(z.chunks_exact_mut(T::SIZE)) {
                operation(T::load(x), T::load(y)).canonical().store(z);
            }
        }
        Ok(())
    }
}

/// A vector that is reduced.
struct Elements<'a> {
    bytes: &'a [u8],
    cancellation: &'a Cancellation,
}

impl Elements<'_> {
    fn first<T: Number>(&self) -> T {
        T::load(&self.bytes[..T::SIZE])
    }

    /// Joins all elements, each to the partial result of its lane, which begins as `start`, and then these.
    fn lanes<T: Number>(&self, start: T, operation: impl Fn(T, T) -> T) -> Result<T, Failure> {
        let mut lanes = [start; LANES];
        for block in self.bytes.chunks(BLOCK * T::SIZE) {
            self.cancellation.check()?;
            for elements in block.chunks(LANES * T::SIZE) {
                for (lane, element) in lanes.iter_mut().zip(elements.chunks_exact(T::SIZE)) {
                    *lane = operation(*lane, T::load(element));
                }
            }
        }
        Ok(join(lanes, operation))
    }

    /// The index of the first element that no other goes `before`, or of the first NaN.
    fn find<T: Number>(&self, before: impl Fn(T, T) -> bool) -> Result<u64, Failure> {
        let (mut best, mut index) = (self.first::<T>(), 0);
        for (number, block) in self.bytes.chunks(BLOCK * T::SIZE).enumerate() {
            self.cancellation.check()?;
            for (place, element) in block.chunks_exact(T::SIZE).map(T::load).enumerate() {
                if before(element, best) || (element.is_no_number() && !best.is_no_number()) {
                    (best, index) = (element, number * BLOCK + place);
                }
            }
        }
        Ok(index as u64)
    }
}

/// Lane j with lane j + 8, then with j + 4, j + 2, j + 1.
fn join<T: Number>(mut lanes: [T; LANES], operation: impl Fn(T, T) -> T) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = operation(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0].canonical()
}
