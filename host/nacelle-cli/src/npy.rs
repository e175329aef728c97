// SPDX-License-Identifier: Apache-2.0
//! Matrices in NumPy files (NEP 1), and what they are multiplied to on the CPU.

use std::path::Path;

use nacelle::{Call, Device, Report};
use ndarray::{Array2, ArrayView2, ShapeBuilder};
use npyz::{DType, Endianness, NpyFile, Order, TypeChar, WriterBuilder};

use crate::failure::Failure;
use crate::save::save;

/// A matrix of one of the types that devices multiply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Matrix {
    Int32(Array2<i32>),
    Float32(Array2<f32>),
}

const CONVERT: &str = "save it with numpy.save as a two-dimensional array, .astype('<f4') or .astype('<i4')";

impl Matrix {
    /// Reads a file. Whatever is not a little-endian matrix of int32 or float32 is refused, with what it is instead.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::usage(format!("{}: {what}", path.display()), CONVERT);
        let bytes = std::fs::read(path).map_err(|error| {
            Failure::usage(format!("cannot read {}: {error}", path.display()), "check the name of the file")
        })?;
        let npy = NpyFile::new(&bytes[..]).map_err(|error| wrong(format!("it is no NumPy file: {error}")))?;
        let DType::Plain(dtype) = npy.dtype() else {
            return Err(wrong("its elements are records, not numbers".into()));
        };
        let [rows, columns] = npy.shape()[..] else {
            return Err(wrong(format!("it has {} dimensions, not 2", npy.shape().len())));
        };
        let text = dtype.to_string();
        let kind = (dtype.type_char(), dtype.num_bytes(), dtype.endianness());
        let float = match kind {
            (TypeChar::Float, Some(4), Endianness::Little) => true,
            (TypeChar::Int, Some(4), Endianness::Little) => false,
            (TypeChar::Float | TypeChar::Int, Some(4), Endianness::Big) => {
                return Err(wrong(format!("its elements are big-endian ({text}); devices take little-endian")));
            }
            _ => return Err(wrong(format!("its elements are {text}; devices take int32 and float32"))),
        };
        // Before anything is allocated: the header may promise more than the file holds.
        let needed = rows.checked_mul(columns).and_then(|count| count.checked_mul(4));
        if needed.is_none_or(|needed| needed > bytes.len() as u64) {
            return Err(wrong(format!("it is cut off: {rows}x{columns} elements are promised")));
        }
        if rows == 0 || columns == 0 {
            return Err(wrong(format!("it is empty: {rows}x{columns}")));
        }
        let shape = (rows as usize, columns as usize).set_f(npy.order() == Order::Fortran);
        let cut = |error: std::io::Error| wrong(format!("it cannot be read to its end: {error}"));
        Ok(if float {
            let elements = npy.into_vec::<f32>().map_err(cut)?;
            Self::Float32(Array2::from_shape_vec(shape, elements).map_err(|error| wrong(error.to_string()))?)
        } else {
            let elements = npy.into_vec::<i32>().map_err(cut)?;
            Self::Int32(Array2::from_shape_vec(shape, elements).map_err(|error| wrong(error.to_string()))?)
        })
    }

    /// A matrix of random numbers.
    pub(crate) fn random(float: bool, rows: usize, columns: usize, random: &mut fastrand::Rng) -> Self {
        if float {
            Self::Float32(Array2::from_shape_simple_fn((rows, columns), || random.f32() * 2.0 - 1.0))
        } else {
            Self::Int32(Array2::from_shape_simple_fn((rows, columns), || random.i32(-1000..=1000)))
        }
    }

    /// Writes a file in C order.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let made = match self {
            Self::Int32(matrix) => write(&mut bytes, matrix.view()),
            Self::Float32(matrix) => write(&mut bytes, matrix.view()),
        };
        made.map_err(|error| Failure::check(format!("cannot make a NumPy file: {error}")))?;
        save(&[(path, &bytes)])
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        match self {
            Self::Int32(matrix) => matrix.dim(),
            Self::Float32(matrix) => matrix.dim(),
        }
    }

    pub(crate) fn dtype(&self) -> &'static str {
        match self {
            Self::Int32(_) => "int32",
            Self::Float32(_) => "float32",
        }
    }
}

fn write<T: npyz::AutoSerialize + Copy>(bytes: &mut Vec<u8>, matrix: ArrayView2<'_, T>) -> std::io::Result<()> {
    let shape = [matrix.nrows() as u64, matrix.ncols() as u64];
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&shape).writer(bytes).begin_nd()?;
    writer.extend(matrix.iter().copied())?;
    writer.finish()
}

/// Refuses what cannot be multiplied, by the names of the files.
pub(crate) fn check_pair((a, a_path): (&Matrix, &Path), (b, b_path): (&Matrix, &Path)) -> Result<(), Failure> {
    let (a_path, b_path) = (a_path.display(), b_path.display());
    if a.dtype() != b.dtype() {
        let what = format!("{a_path} holds {}, {b_path} holds {}: they must be of one type", a.dtype(), b.dtype());
        return Err(Failure::usage(what, CONVERT));
    }
    let ((m, k), (rows, n)) = (a.shape(), b.shape());
    if k != rows {
        let what = format!("cannot multiply {a_path} ({m}x{k}) by {b_path} ({rows}x{n}): {k} columns meet {rows} rows");
        return Err(Failure::usage(what, "transpose one of them, or swap them"));
    }
    Ok(())
}

/// Multiplies on a device. The two are of one type.
pub(crate) fn multiply_on(
    device: &Device,
    a: &Matrix,
    b: &Matrix,
    wait: impl FnOnce(&mut Call) -> Result<(), nacelle::Error>,
) -> Result<(Matrix, Report), nacelle::Error> {
    match (a, b) {
        (Matrix::Int32(a), Matrix::Int32(b)) => {
            nacelle::matmul_with(device, a.view(), b.view(), wait).map(|(c, report)| (Matrix::Int32(c), report))
        }
        (Matrix::Float32(a), Matrix::Float32(b)) => {
            nacelle::matmul_with(device, a.view(), b.view(), wait).map(|(c, report)| (Matrix::Float32(c), report))
        }
        _ => Err(nacelle::Error::InvalidArgument { what: "the matrices are of two types".into() }),
    }
}

/// How well a product agrees with the CPU's.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Agreement {
    /// Elements of the product.
    pub(crate) elements: usize,
    /// Elements that agree: integers exactly, floats within the rounding of a sum of so many products.
    pub(crate) agree: usize,
    /// The largest difference, in absolute value.
    pub(crate) largest_difference: f64,
}

impl Agreement {
    /// Multiplies on the CPU and compares.
    pub(crate) fn of(a: &Matrix, b: &Matrix, c: &Matrix) -> Self {
        match (a, b, c) {
            (Matrix::Int32(a), Matrix::Int32(b), Matrix::Int32(c)) => {
                let dot = |row: usize, column: usize| {
                    let products = a.row(row).into_iter().zip(b.column(column)).map(|(x, y)| x.wrapping_mul(*y));
                    products.fold(0i32, i32::wrapping_add)
                };
                Self::count(c, |row, column, got| ((f64::from(*got) - f64::from(dot(row, column))).abs(), 0.0))
            }
            (Matrix::Float32(a), Matrix::Float32(b), Matrix::Float32(c)) => {
                // A sum of k products in any order is off by at most k roundings of the sum of their absolute values
                // (Higham, Accuracy and Stability of Numerical Algorithms, 3.1).
                let roundings = (a.ncols() + 1) as f64 * f64::from(f32::EPSILON);
                Self::count(c, |row, column, got| {
                    let products = || {
                        let pairs = a.row(row).into_iter().zip(b.column(column));
                        pairs.map(|(x, y)| f64::from(*x) * f64::from(*y))
                    };
                    let (sum, size) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                    let got = f64::from(*got);
                    // Beyond the range of float32 only an overflow can be asked for.
                    if got.is_finite() || sum.abs() < f64::from(f32::MAX) / 2.0 {
                        ((got - sum).abs(), size * roundings)
                    } else {
                        (0.0, 0.0)
                    }
                })
            }
            _ => Self { elements: c.shape().0 * c.shape().1, agree: 0, largest_difference: f64::INFINITY },
        }
    }

    /// `compare` gives the difference of an element and how large it may be.
    fn count<T>(c: &Array2<T>, compare: impl Fn(usize, usize, &T) -> (f64, f64)) -> Self {
        let mut found = Self { elements: c.len(), agree: 0, largest_difference: 0.0 };
        for ((row, column), got) in c.indexed_iter() {
            let (difference, allowed) = compare(row, column, got);
            // Not a number agrees with nothing.
            found.agree += usize::from(difference <= allowed);
            found.largest_difference = found.largest_difference.max(difference);
        }
        found
    }

    pub(crate) fn is_good(&self) -> bool {
        self.agree == self.elements
    }
}
