// SPDX-License-Identifier: Apache-2.0
//! Multiplies matrices on several devices, each with a part of the rows: `many-devices SIDE ADDRESS...`.

use std::error::Error;
use std::time::{Duration, Instant};

use nacelle::{Device, Options};
use ndarray::{Array2, Axis, concatenate};

/// What a device made of its rows, and how long that took.
type Part = Result<(Array2<i32>, Duration), nacelle::Error>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [side, addresses @ ..] = &arguments[..] else { return Err("usage: many-devices SIDE ADDRESS...".into()) };
    let side: usize = side.parse()?;
    if addresses.is_empty() || side < addresses.len() {
        return Err(format!("{side} rows cannot be given to {} devices", addresses.len()).into());
    }
    let options = Options::default();
    let devices: Vec<Device> =
        addresses.iter().map(|address| Device::connect(address.as_str(), &options)).collect::<Result<_, _>>()?;

    let a = Array2::from_shape_fn((side, side), |(row, column)| (row * 31 + column) as i32 % 1000);
    let b = Array2::from_shape_fn((side, side), |(row, column)| (row + column * 17) as i32 % 1000);
    let rows = side.div_ceil(devices.len());

    let begin = Instant::now();
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let start = |(device, part)| {
            let b = b.view();
            scope.spawn(move || {
                let begin = Instant::now();
                nacelle::matmul(device, part, b).map(|(c, _report)| (c, begin.elapsed()))
            })
        };
        let threads: Vec<_> = devices.iter().zip(a.axis_chunks_iter(Axis(0), rows)).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread returns its errors")).collect()
    });
    let took = begin.elapsed();

    let parts: Vec<(Array2<i32>, Duration)> = parts.into_iter().collect::<Result<_, _>>()?;
    for (address, (c, took)) in addresses.iter().zip(&parts) {
        println!("{address}: {} rows in {took:.1?}", c.nrows());
    }
    let c = concatenate(Axis(0), &parts.iter().map(|(c, _)| c.view()).collect::<Vec<_>>())?;
    let wrong = c.iter().zip(&a.dot(&b)).filter(|(device, cpu)| device != cpu).count();
    println!("{side} x {side} on {} devices in {took:.1?}, {wrong} wrong", devices.len());
    if wrong > 0 { Err("the devices' product is not the CPU's".into()) } else { Ok(()) }
}
