// SPDX-License-Identifier: Apache-2.0
//! Random clusters, and long ones, in virtual time.

use std::panic::catch_unwind;
use std::time::Duration;

use nacelle_cluster::{Plan, Report, command, long_call, run};

const HOUR: Duration = Duration::from_secs(3600);

/// Runs plans; a failure says how to run it again.
fn all(plans: impl IntoIterator<Item = Plan>) -> Report {
    let mut total = Report::default();
    for plan in plans {
        let report = catch_unwind(|| run(&plan));
        total.add(report.unwrap_or_else(|_| panic!("again: {}", command(&plan))));
    }
    println!("{total}");
    total
}

/// A plan with the times of a real network.
fn slow(seed: u64, nodes: usize, devices: usize, time: Duration) -> Plan {
    Plan { nodes, devices, unit: Duration::from_secs(1), pace: Duration::from_secs(60), time, ..Plan::new(seed) }
}

#[test]
fn random_clusters_lose_nothing() {
    let pace = Duration::from_micros(500);
    let plans = (0..12).map(|seed| Plan { pace, ..Plan::new(seed) });
    let total = all(plans);
    assert!(total.frames > 400_000 && total.operations > 50_000 && total.calls > 1_000, "{total}");
    assert!(total.lost.min(total.repeated).min(total.overtaken).min(total.corrupted) > 1_000, "{total}");
    assert!(total.crashes > 10 && total.cuts[0] > 10 && total.cuts[1] > 10, "{total}");
    assert!(total.ends.keys().any(|why| why.contains("transport retry count exceeded")), "{total}");
    assert!(total.ends.keys().any(|why| why.starts_with("not connected")), "{total}");
}

#[test]
fn sixty_four_nodes() {
    let plan = Plan { nodes: 64, devices: 8, pace: Duration::from_millis(2), ..Plan::new(7) };
    let total = all([plan]);
    assert!(total.connections > 300 && total.crashes > 0, "{total}");
}

#[test]
fn a_day_of_faults_leaves_nothing_behind() {
    let total = all([slow(1, 6, 2, HOUR * 24)]);
    assert!(total.time >= HOUR * 24 && total.crashes > 100 && total.connections > 1_000, "{total}");
}

#[test]
fn a_call_that_lasts_a_day_returns() {
    let report = long_call(1, HOUR * 24);
    println!("{report}");
    // Each side asked every 5 s at the most, and was answered.
    assert!(report.frames > 24 * 3600 / 5 && report.lost > 100, "{report}");
}

#[test]
fn a_seed_does_the_same_again() {
    let plan = Plan { nodes: 4, devices: 1, pace: Duration::from_micros(500), ..Plan::new(3) };
    let [first, second] = [run(&plan), run(&plan)];
    assert_eq!(first.to_string(), second.to_string());
    let other = run(&Plan { seed: 4, ..plan });
    assert_ne!(first.to_string(), other.to_string());
}
