// SPDX-License-Identifier: Apache-2.0
//! What the benchmark measures Nacelle beside in Rust: a unary call of tonic (gRPC), and a stream of quinn (QUIC).
//!
//!     nacelle-bench-peers tonic-server | quinn-server            says its port, and ends with its standard input
//!     nacelle-bench-peers tonic-client PORT CALLS                prints the time of each call, in seconds, as JSON
//!     nacelle-bench-peers quinn-client PORT BYTES                sends so many bytes; prints the time until they have arrived
//!     nacelle-bench-peers version                                prints the versions of both as JSON
use std::time::Duration;

mod quic;
mod rpc;

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How long a client may take in all.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends when the program that started this one has closed the standard input.
pub async fn stdin_ends() {
    use tokio::io::AsyncReadExt;
    let _ = tokio::io::stdin().read(&mut [0]).await;
}

/// The version of a crate in the lock file that this was built from.
fn locked(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let at = lock.find(&format!("name = \"{name}\"\nversion = \"")).map(|at| &lock[at..]);
    at.and_then(|text| text.split('"').nth(3)).unwrap_or("?")
}

async fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["tonic-server"] => rpc::serve().await,
        ["tonic-client", port, calls] => rpc::measure(port.parse()?, calls.parse()?).await,
        ["quinn-server"] => quic::serve().await,
        ["quinn-client", port, bytes] => quic::measure(port.parse()?, bytes.parse()?).await,
        ["version"] => {
            println!("{{\"tonic\": \"{}\", \"quinn\": \"{}\"}}", locked("tonic"), locked("quinn"));
            Ok(())
        }
        _ => Err("usage: see the first lines of src/main.rs".into()),
    }
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = words.first().is_some_and(|word| word.ends_with("-client"));
    // One thread each: the fastest for one call or stream at a time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = if client {
        runtime.block_on(async { tokio::time::timeout(PATIENCE, run(&words)).await.map_err(|_| "took too long")? })
    } else {
        runtime.block_on(run(&words))
    };
    // Reading the standard input is a thread that does not end by itself.
    runtime.shutdown_background();
    result
}
