// SPDX-License-Identifier: Apache-2.0
//! How results look.

use std::io::{ErrorKind, Write};
use std::path::Path;

use nacelle::Report;
use serde::Serialize;

use crate::failure::Failure;

/// Prints to stdout. A reader that has gone away has read enough.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::usage(format!("cannot write the result: {error}"), "check the free space where it goes"))
        }
        _ => Ok(()),
    }
}

/// Prints one value as JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::check(error.to_string()))?;
    print(&format!("{text}\n"))
}

/// Columns of text: the first `left` of them aligned at the left, the others at the right.
pub(crate) fn table(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// What each step of a call took.
pub(crate) fn report(report: &Report) -> String {
    let clock = match report.clock_hz {
        0 => "device time".to_owned(),
        hz => format!("at {} MHz", f64::from(hz) / 1e6),
    };
    let heads = ["step", "device cycles", &clock, "wall time", "packets out", "in", "bytes out", "in"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for step in &report.steps {
        let unknown = || "-".to_owned();
        let micros = step.cycles.and_then(|cycles| report.micros(cycles));
        rows.push(vec![
            step.step.to_string(),
            step.cycles.map_or_else(unknown, |cycles| cycles.to_string()),
            micros.map_or_else(unknown, |micros| format!("{micros:.2} µs")),
            format!("{:.1} ms", step.wall.as_secs_f64() * 1e3),
            step.tx_packets.to_string(),
            step.rx_packets.to_string(),
            step.tx_bytes.to_string(),
            step.rx_bytes.to_string(),
        ]);
    }
    table(&rows, 1)
}

/// A path as a shell reads it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
