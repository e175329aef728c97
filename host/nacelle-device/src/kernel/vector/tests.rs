// SPDX-License-Identifier: Apache-2.0
//! Each operation against its definition, one element after the other.

use super::*;
use proptest::prelude::*;

/// What the definitions need of a type of elements.
trait Element: Number + std::fmt::Debug {
    const DTYPE: Dtype;
    /// Every bit of it, with one NaN.
    fn bits(self) -> u64;
    /// An element of these random bits, often a special one.
    fn from_random(random: u64) -> Self;
    /// The smaller and the larger one, by the definition.
    fn ordered(self, other: Self) -> (Self, Self);
}

macro_rules! elements {
    ($($float:ty, $bits:ty, $float_dtype:ident, $integer:ty, $integer_dtype:ident;)*) => {$(
        impl Element for $integer {
            const DTYPE: Dtype = Dtype::$integer_dtype;
            fn bits(self) -> u64 {
                self as u64
            }
            fn from_random(random: u64) -> Self {
                [random as Self, Self::MIN, Self::MAX, 0, -1, (random % 8) as Self][(random >> 32) as usize % 6]
            }
            fn ordered(self, other: Self) -> (Self, Self) {
                if self <= other { (self, other) } else { (other, self) }
            }
        }
        impl Element for $float {
            const DTYPE: Dtype = Dtype::$float_dtype;
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn from_random(random: u64) -> Self {
                let number = (random as i32 as Self) / 1024.0;
                let quiet = Self::from_bits(<$bits>::MAX - 1);
                let specials = [0.0, -0.0, Self::INFINITY, Self::NEG_INFINITY, quiet, Self::MIN_POSITIVE / 2.0, Self::MAX];
                *specials.get((random >> 32) as usize % 60).unwrap_or(&number)
            }
            fn ordered(self, other: Self) -> (Self, Self) {
                if self.is_nan() || other.is_nan() {
                    (Self::NAN, Self::NAN)
                } else if self.total_cmp(&other).is_le() {
                    (self, other)
                } else {
                    (other, self)
                }
            }
        }
    )*};
}

elements! {
    f32, u32, Float32, i32, Int32;
    f64, u64, Float64, i64, Int64;
}

/// Bytes behind the elements of a region, which no function may touch.
const REST: [u8; 5] = [0xa1, 0xa2, 0xa3, 0xa4, 0xa5];

fn arguments<T: Element>(operation: u32, count: u64, scalar: Option<T>) -> Args {
    let mut bytes = [0; 8];
    if let Some(scalar) = scalar {
        scalar.store(&mut bytes[..T::SIZE]);
    }
    Args { dtype: T::DTYPE, operation, count, scalar: bytes }
}

/// Calls a function on inputs and a result of so many bytes, each region `shift` bytes behind an aligned address. Returns the
/// result's bytes.
fn call<T: Element>(
    function: Vector,
    arguments: Args,
    inputs: &[&[T]],
    result: usize,
    shift: usize,
) -> Result<Vec<u8>, Failure> {
    let mut regions = vec![arguments.to_bytes().to_vec()];
    regions.extend(inputs.iter().map(|input| {
        let mut bytes = vec![0; input.len() * T::SIZE];
        input.iter().zip(bytes.chunks_exact_mut(T::SIZE)).for_each(|(element, bytes)| element.store(bytes));
        bytes
    }));
    regions.push(vec![0xcc; result]);
    let before: Vec<Vec<u8>> = regions.iter().map(|region| [&vec![0xee; shift], &region[..], &REST].concat()).collect();
    let mut after = before.clone();
    let parameters = after.iter_mut().map(|region| &mut region[shift..]).collect();
    let outcome = run(function, &mut Call::new(parameters, Vec::new(), 0));
    let (output, inputs) = after.split_last().unwrap();
    assert_eq!(*inputs, before[..inputs.len()], "inputs are as they were");
    let (output, rest) = output[shift..].split_at(result);
    assert_eq!(rest, REST);
    if outcome.is_err() {
        assert_eq!(output, vec![0xcc; result], "a call that fails has written nothing");
    }
    outcome.map(|()| output.to_vec())
}

/// Bits of elements, with one NaN.
fn bits<T: Element>(elements: impl IntoIterator<Item = T>) -> Vec<u64> {
    elements.into_iter().map(|element| element.canonical().bits()).collect()
}

/// Bits of a result, exactly as they are.
fn read<T: Element>(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(T::SIZE).map(|bytes| T::load(bytes).bits()).collect()
}

/// The sum as it is defined: sixteen partial sums in turn, then joined by halves.
fn sum<T: Element>(terms: impl IntoIterator<Item = T>) -> T {
    let mut partial = [T::default(); 16];
    terms.into_iter().enumerate().for_each(|(index, term)| partial[index % 16] = partial[index % 16].plus(term));
    let mut partial = partial.to_vec();
    while partial.len() > 1 {
        let (low, high) = partial.split_at(partial.len() / 2);
        partial = low.iter().zip(high).map(|(low, high)| low.plus(*high)).collect();
    }
    partial[0]
}

/// Index of the first NaN, else of the first element that no other one is before.
fn first<T: Element>(x: &[T], before: impl Fn(T, T) -> bool) -> usize {
    let nan = x.iter().position(|element| element.is_no_number());
    nan.unwrap_or_else(|| x.iter().position(|a| !x.iter().any(|b| before(*b, *a))).unwrap())
}

fn agrees<T: Element>(random: &[(u64, u64)], scalar: u64, shift: usize) {
    let x: Vec<T> = random.iter().map(|(x, _)| T::from_random(*x)).collect();
    let y: Vec<T> = random.iter().map(|(_, y)| T::from_random(*y)).collect();
    let (count, length, scalar) = (x.len() as u64, x.len() * T::SIZE, T::from_random(scalar));
    let pairs = || x.iter().copied().zip(y.iter().copied());

    for operation in Binary::ALL {
        let with = (*operation == Binary::Axpy).then_some(scalar);
        let z = call(Vector::Binary, arguments(operation.number(), count, with), &[&x, &y], length, shift);
        let wanted = bits(pairs().map(|(x, y)| match operation {
            Binary::Add => x.plus(y),
            Binary::Sub => x.minus(y),
            Binary::Mul => x.times(y),
            Binary::Min => x.ordered(y).0,
            Binary::Max => x.ordered(y).1,
            Binary::Axpy => scalar.times(x).plus(y),
        }));
        assert_eq!(read::<T>(&z.unwrap()), wanted, "{operation:?} of {x:?} and {y:?}");
    }

    let z = call(Vector::Unary, arguments(Unary::Scale.number(), count, Some(scalar)), &[&x], length, shift);
    assert_eq!(read::<T>(&z.unwrap()), bits(x.iter().map(|x| scalar.times(*x))));
    let z = call(Vector::Unary, arguments::<T>(Unary::PrefixSum.number(), count, None), &[&x], length, shift);
    let mut running = T::default();
    let sums = x.iter().map(|x| {
        running = running.plus(*x);
        running
    });
    assert_eq!(read::<T>(&z.unwrap()), bits(sums));
    let z = call::<T>(Vector::Fill, arguments(0, count, Some(scalar)), &[], length, shift);
    assert_eq!(read::<T>(&z.unwrap()), vec![scalar.bits(); x.len()], "filled with every bit as it is");

    let z = call(Vector::Dot, arguments::<T>(0, count, None), &[&x, &y], T::SIZE, shift);
    assert_eq!(read::<T>(&z.unwrap()), bits([sum(pairs().map(|(x, y)| x.times(y)))]));
    for operation in Reduction::ALL {
        let of_index = matches!(operation, Reduction::ArgMin | Reduction::ArgMax);
        let length = if of_index { 8 } else { T::SIZE };
        let z = call(Vector::Reduce, arguments::<T>(operation.number(), count, None), &[&x], length, shift);
        if x.is_empty() && *operation != Reduction::Sum {
            assert_eq!(z, Err(Failure::BAD_ARGUMENTS));
            continue;
        }
        let z = z.unwrap();
        let index = |index: usize| vec![index as u64];
        let (found, wanted) = match operation {
            Reduction::Sum => (read::<T>(&z), bits([sum(x.iter().copied())])),
            Reduction::Min => (read::<T>(&z), bits(x.iter().copied().reduce(|x, y| x.ordered(y).0))),
            Reduction::Max => (read::<T>(&z), bits(x.iter().copied().reduce(|x, y| x.ordered(y).1))),
            Reduction::ArgMin => (read::<i64>(&z), index(first(&x, |x, y| x < y))),
            Reduction::ArgMax => (read::<i64>(&z), index(first(&x, |x, y| x > y))),
        };
        assert_eq!(found, wanted, "{operation:?} of {x:?}");
    }
}

fn all_agree(random: &[(u64, u64)], scalar: u64, shift: usize) {
    agrees::<i32>(random, scalar, shift);
    agrees::<i64>(random, scalar, shift);
    agrees::<f32>(random, scalar, shift);
    agrees::<f64>(random, scalar, shift);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_operation_is_its_definition(
        random in prop::collection::vec(any::<(u64, u64)>(), 0..70), scalar: u64, shift in 0usize..9,
    ) {
        all_agree(&random, scalar, shift);
    }

    /// No argument block, number of regions or length makes a function panic or write where it should not.
    #[test]
    fn any_arguments_have_an_answer(
        mut block in prop::collection::vec(any::<u8>(), 0..80),
        valid: bool, dtype in 0u8..5, operation in 0u8..8, count in prop_oneof![0u64..40, any::<u64>()],
        lengths in prop::collection::vec(0usize..200, 0..5),
    ) {
        if valid && block.len() >= 64 {
            block[..4].copy_from_slice(b"NAVE");
            block[4..16].copy_from_slice(&[dtype, 0, 0, 0, operation, 0, 0, 0, 0, 0, 0, 0]);
            block[16..24].copy_from_slice(&count.to_le_bytes());
            block[24..64].fill(0);
        }
        for function in Vector::ALL {
            let mut regions: Vec<Vec<u8>> = lengths.iter().map(|length| vec![7; *length]).collect();
            regions.insert(0, block.clone());
            let parameters = regions.iter_mut().map(Vec::as_mut_slice).collect();
            let outcome = run(function, &mut Call::new(parameters, Vec::new(), 0));
            prop_assert!(matches!(outcome, Ok(()) | Err(Failure::BAD_ARGUMENTS | Failure::REGION_TOO_SMALL)));
        }
    }
}

/// Around the blocks and lanes in which vectors are worked through.
#[test]
fn blocks_and_lanes_join_without_a_trace() {
    let mut random = fastrand::Rng::with_seed(3);
    for count in [1, 15, 16, 17, 33, BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 17] {
        // Few enough to compare each element with each other one.
        let numbers: Vec<(u64, u64)> = (0..count).map(|_| (random.u64(..) >> 20, random.u64(..) >> 20)).collect();
        let x: Vec<i64> = numbers.iter().map(|(x, _)| *x as i64).collect();
        let largest = (0..count).max_by_key(|index| (x[*index], std::cmp::Reverse(*index))).unwrap();
        let arguments = arguments::<i64>(Reduction::ArgMax.number(), count as u64, None);
        let z = call(Vector::Reduce, arguments, &[&x], 8, 1).unwrap();
        assert_eq!(read::<i64>(&z), [largest as u64]);
        let x: Vec<f32> = x.iter().map(|x| *x as f32).collect();
        let z = call(Vector::Dot, self::arguments::<f32>(0, count as u64, None), &[&x, &x], 4, 3).unwrap();
        assert_eq!(read::<f32>(&z), bits([sum(x.iter().map(|x| x * x))]));
        let sum_of = self::arguments::<f32>(Reduction::Sum.number(), count as u64, None);
        let z = call(Vector::Reduce, sum_of, &[&x], 4, 3).unwrap();
        assert_eq!(read::<f32>(&z), bits([sum(x.iter().copied())]));
        let prefix = self::arguments::<f32>(Unary::PrefixSum.number(), count as u64, None);
        let z = call(Vector::Unary, prefix, &[&x], 4 * count, 3).unwrap();
        let last = x.iter().fold(0f32, |sum, x| sum + x);
        assert_eq!(read::<f32>(&z).last(), bits([last]).last());
    }
}

#[test]
fn every_wrong_argument_has_its_error() {
    let x: &[i32] = &[1, 2, 3];
    let good = arguments::<i32>(0, 3, None);
    for function in Vector::ALL {
        let inputs = match function {
            Vector::Fill => 0,
            Vector::Unary | Vector::Reduce => 1,
            Vector::Binary | Vector::Dot => 2,
        };
        let called = |arguments, inputs, result| call(function, arguments, &vec![x; inputs], result, 0).map(|_| ());
        assert_eq!(called(good, inputs, 12), Ok(()));
        assert_eq!(called(good, inputs + 1, 12), Err(Failure::BAD_ARGUMENTS), "too many regions");
        if inputs > 0 {
            assert_eq!(called(good, inputs - 1, 12), Err(Failure::BAD_ARGUMENTS), "too few regions");
        }
        // A region has REST.len() bytes more than this.
        assert_eq!(called(Args { count: 5, ..good }, inputs, 12), Err(Failure::REGION_TOO_SMALL));
        for count in [1 << 62, u64::MAX] {
            assert_eq!(called(Args { count, ..good }, inputs, 12), Err(Failure::REGION_TOO_SMALL), "no overflow");
        }
        assert_eq!(called(Args { operation: 6, ..good }, inputs, 12), Err(Failure::BAD_ARGUMENTS), "operation");
        let scalar = [1, 0, 0, 0, 0, 0, 0, 0];
        let takes_scalar = matches!(function, Vector::Fill | Vector::Unary);
        let outcome = if takes_scalar { Ok(()) } else { Err(Failure::BAD_ARGUMENTS) };
        assert_eq!(called(Args { scalar, ..good }, inputs, 12), outcome, "{function:?} with a scalar");
    }
    let mut block = good.to_bytes();
    let short = |length: usize, block: &mut [u8]| {
        let (mut x, mut z) = ([0; 12], [0; 12]);
        run(Vector::Unary, &mut Call::new(vec![&mut block[..length], &mut x, &mut z], Vec::new(), 0))
    };
    assert_eq!(short(64, &mut block), Ok(()));
    assert_eq!(short(63, &mut block), Err(Failure::REGION_TOO_SMALL));
    assert_eq!(run(Vector::Fill, &mut Call::new(Vec::new(), Vec::new(), 0)), Err(Failure::BAD_ARGUMENTS));
    for at in [0, 4, 12, 28, 32, 63] {
        let mut wrong = block;
        wrong[at] ^= 0x80;
        assert_eq!(short(64, &mut wrong), Err(Failure::BAD_ARGUMENTS), "byte {at}");
    }
    // A result that is too small: an index has 64 bits, whatever the elements have.
    let index = arguments::<i32>(Reduction::ArgMin.number(), 3, None);
    let (mut x, mut z) = ([0; 12], [0; 7]);
    let parameters: Vec<&mut [u8]> = vec![&mut block[..], &mut x, &mut z];
    parameters.into_iter().next().unwrap().copy_from_slice(&index.to_bytes());
    let outcome = run(Vector::Reduce, &mut Call::new(vec![&mut block, &mut x, &mut z], Vec::new(), 0));
    assert_eq!(outcome, Err(Failure::REGION_TOO_SMALL));
}

#[test]
fn a_vector_that_nobody_needs_is_left() {
    let (mut block, mut z) = (arguments::<i32>(0, 2, Some(5)).to_bytes(), [0; 8]);
    let mut call = Call::new(vec![&mut block, &mut z], Vec::new(), 0);
    call.cancellation.cancel();
    assert_eq!(run(Vector::Fill, &mut call), Err(Failure::CANCELLED));
    drop(call);
    assert_eq!(z, [0; 8]);
}
