// SPDX-License-Identifier: Apache-2.0
//! Adds one to each byte of a text, on a device: `increment ADDRESS`.

use std::error::Error;
use std::time::Duration;

use nacelle::{Device, FunctionCode, Options, Region};

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: increment ADDRESS")?;
    let device = Device::connect(address.as_str(), &Options::default())?;

    // The device reads the text here, and writes it back to the same place.
    let mut text = *b"EbiilTloia";
    nacelle::memory::scope(|scope| {
        let region = Region::inout(scope.lend_mut(&mut text));
        let mut call = device.create(FunctionCode::INCREMENT, vec![region])?;

        // Start, and wait.
        call.invoke()?;
        call.wait()?;

        // The regions stay: another call costs its data only. Start, and do something else until it is done.
        call.invoke()?;
        let mut looks = 0;
        while !call.test()? {
            looks += 1;
        }
        println!("after {looks} looks");

        // Wait for a second at most.
        call.invoke()?;
        if !call.wait_timeout(Duration::from_secs(1))? {
            println!("it takes longer than a second");
            call.wait()?;
        }
        Ok::<(), nacelle::Error>(())
    })?;
    println!("{}", String::from_utf8_lossy(&text));
    Ok(())
}
