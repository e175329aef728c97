// SPDX-License-Identifier: Apache-2.0
//! What is told of a device, and how it is called.

use nacelle_manage::histograms::{Histograms, Times};
use nacelle_manage::map::device;
use nacelle_manage::sensors::{Sensor, SensorKind};
use nacelle_manage::{Descriptor, KernelSocket, MemoryRegion, Owner, QueuePair, QueuePairCounters, Stats};

use super::exposition::Exposition;
use super::fleet::{Look, Seen, Socket};

/// Among the counters of a device: values that fall, too. Each with its metric and what it is.
const GAUGES: [(&str, &str, &str); 5] = [
    ("kernels.running", "nacelle_calls_running", RUNNING),
    ("kernels.waiting", "nacelle_calls_waiting", "Calls that wait for a place to run."),
    ("kernels.lost", "nacelle_kernels_lost", "Kernels that did not end when they were told to."),
    ("memory.bytes_held", "nacelle_memory_held_bytes", "Device memory that callers hold."),
    ("rpc.callers", "nacelle_callers", "Connections of callers."),
];
/// What a queue pair moves: of its counters those of requests and of responses together, with the metric and what it is.
const MOVED: [(&str, &str, [&str; 2]); 4] = [
    (
        "nacelle_queue_pair_sent_bytes_total",
        "Payload that a queue pair has sent.",
        ["sent_bytes", "sent_response_bytes"],
    ),
    (
        "nacelle_queue_pair_received_bytes_total",
        "Payload that a queue pair has received.",
        ["rcvd_bytes", "rcvd_response_bytes"],
    ),
    ("nacelle_queue_pair_sent_packets_total", "Packets that a queue pair has sent.", ["sent_pkts", "sent_responses"]),
    (
        "nacelle_queue_pair_received_packets_total",
        "Packets that a queue pair has received.",
        ["rcvd_pkts", "rcvd_responses"],
    ),
];
const RUNNING: &str = "Calls whose kernel runs.";

/// All that was seen, as text.
pub(super) fn text(looks: &[Look]) -> prometheus::Result<String> {
    let mut all = Exposition::default();
    for Look { device, took, errors, seen } in looks {
        let label = [("device", &device[..])];
        all.gauge("nacelle_up", "Whether the device answered.", &label, seen.is_ok().into())?;
        let help = "How long the device took to answer, or to be given up.";
        all.gauge("nacelle_scrape_duration_seconds", help, &label, took.as_secs_f64())?;
        let help = "How often the device did not answer since the exporter was started.";
        all.counter("nacelle_scrape_errors_total", help, &label, *errors)?;
        if let Ok(seen) = seen {
            tell(&mut all, device, seen)?;
        }
    }
    all.text()
}

fn tell(all: &mut Exposition, name: &str, seen: &Seen) -> prometheus::Result<()> {
    identity(all, name, &seen.identity)?;
    counters(all, name, &seen.stats)?;
    connections(all, name, &seen.pairs)?;
    queue_pairs(all, name, &seen.pair_counters)?;
    regions(all, name, &seen.regions)?;
    kernels(all, name, &seen.kernels)?;
    sockets(all, name, &seen.sockets)?;
    sensors(all, name, &seen.sensors)?;
    seen.times.as_ref().map_or(Ok(()), |(histograms, measured)| times(all, name, histograms, measured))
}

fn identity(all: &mut Exposition, name: &str, identity: &Descriptor) -> prometheus::Result<()> {
    let Descriptor { kind, ip, mac, data_w, clock_hz, memory_bytes, .. } = identity;
    let (kind, ip, mac, data_w) = (kind.to_string(), ip.to_string(), mac.to_string(), data_w.to_string());
    let labels = [("device", name), ("kind", &kind), ("ip", &ip), ("mac", &mac), ("data_w", &data_w)];
    all.gauge("nacelle_device_info", "What the device is: its labels say it.", &labels, 1.0)?;
    let label = [("device", name)];
    all.gauge("nacelle_clock_hertz", "Cycles of device time in a second.", &label, f64::from(*clock_hz))?;
    all.gauge("nacelle_memory_bytes", "Device memory.", &label, *memory_bytes as f64)
}

fn counters(all: &mut Exposition, name: &str, stats: &Stats) -> prometheus::Result<()> {
    let label = [("device", name)];
    all.counter("nacelle_cycles_total", "Device time, in cycles.", &label, stats.cycles)?;
    for (counter, value) in &stats.counters {
        match GAUGES.iter().find(|(gauge, ..)| gauge == counter) {
            Some((_, metric, help)) => all.gauge(metric, help, &label, *value as f64)?,
            None => {
                let register = device::BLOCK.registers.iter().find(|register| register.name == counter);
                let event = register.map_or_else(String::new, |register| format!(": {}", register.doc));
                let help = format!("Counter {counter} of the device{event}.");
                all.counter(&metric_name(counter), &help, &label, *value)?;
            }
        }
    }
    Ok(())
}

/// The metric of a counter: `roce.rx_frames` is `nacelle_roce_rx_frames_total`.
fn metric_name(counter: &str) -> String {
    format!("nacelle_{}_total", counter.replace(|one: char| !one.is_ascii_alphanumeric(), "_"))
}

fn connections(all: &mut Exposition, name: &str, pairs: &[QueuePair]) -> prometheus::Result<()> {
    // Each owner has a value, also 0: a line of a graph that ends where it should fall misleads.
    for owner in [Owner::Service, Owner::Management, Owner::Kernel] {
        let count = pairs.iter().filter(|pair| pair.owner == owner).count();
        let labels = [("device", name), ("owner", &owner.to_string()[..])];
        all.gauge("nacelle_connections", "Queue pairs in use, by whose they are.", &labels, count as f64)?;
    }
    Ok(())
}

fn queue_pairs(all: &mut Exposition, name: &str, pairs: &[QueuePairCounters]) -> prometheus::Result<()> {
    for pair in pairs {
        let qpn = pair.qpn.to_string();
        let labels = [("device", name), ("qpn", &qpn[..])];
        for (metric, help, counters) in MOVED {
            let counts = counters.iter().filter_map(|counter| pair.counters.get(*counter));
            all.counter(metric, help, &labels, counts.sum())?;
        }
    }
    Ok(())
}

fn regions(all: &mut Exposition, name: &str, regions: &[MemoryRegion]) -> prometheus::Result<()> {
    let label = [("device", name)];
    all.gauge("nacelle_memory_regions", "Memory regions.", &label, regions.len() as f64)?;
    let bytes: u64 = regions.iter().map(|region| region.length).sum();
    let help = "Lengths of all memory regions; those that overlap count twice.";
    all.gauge("nacelle_memory_region_bytes", help, &label, bytes as f64)
}

fn kernels(all: &mut Exposition, name: &str, sockets: &[KernelSocket]) -> prometheus::Result<()> {
    for (number, socket) in sockets.iter().enumerate() {
        let number = number.to_string();
        let active = socket.active.and_then(|active| socket.images.get(usize::from(active)));
        if let Some(image) = active {
            let version = format!("{}.{}", image.version.0, image.version.1);
            let labels =
                [("device", name), ("socket", &number[..]), ("kernel", &image.name[..]), ("version", &version[..])];
            all.gauge("nacelle_socket_info", "The kernel of a socket: its labels say it.", &labels, 1.0)?;
        }
        let help = "Whether the kernel of a socket is being replaced.";
        let labels = [("device", name), ("socket", &number[..])];
        all.gauge("nacelle_socket_changing", help, &labels, socket.changing.into())?;
    }
    Ok(())
}

fn sockets(all: &mut Exposition, name: &str, sockets: &[Socket]) -> prometheus::Result<()> {
    for (number, Socket { busy, jobs, timeouts }) in sockets.iter().enumerate() {
        let number = number.to_string();
        let labels = [("device", name), ("socket", &number[..])];
        all.gauge("nacelle_socket_busy", "Whether the socket runs a job at this moment.", &labels, (*busy).into())?;
        all.counter("nacelle_socket_jobs_total", "Jobs that the socket has finished.", &labels, (*jobs).into())?;
        let help = "Jobs that the socket ended because they took too long.";
        all.counter("nacelle_socket_timeouts_total", help, &labels, (*timeouts).into())?;
    }
    if !sockets.is_empty() {
        let running = sockets.iter().filter(|socket| socket.busy).count();
        all.gauge("nacelle_calls_running", RUNNING, &[("device", name)], running as f64)?;
    }
    Ok(())
}

fn sensors(all: &mut Exposition, name: &str, sensors: &[Sensor]) -> prometheus::Result<()> {
    for sensor in sensors {
        let kind = sensor.kind.to_string();
        let labels = [("device", name), ("sensor", &sensor.name[..]), ("kind", &kind[..])];
        let help = "Whether a sensor of the board has a value.";
        all.gauge("nacelle_sensor_known", help, &labels, sensor.value.is_some().into())?;
        let Some(value) = sensor.value else { continue };
        let simulated = value.simulated.to_string();
        let labels = [("device", name), ("sensor", &sensor.name[..]), ("simulated", &simulated[..])];
        let (metric, help) = match sensor.kind {
            SensorKind::Temperature => ("nacelle_sensor_temperature_celsius", "Temperature on the board."),
            SensorKind::Voltage => ("nacelle_sensor_voltage_volts", "Voltage of a rail of the board."),
            SensorKind::Current => ("nacelle_sensor_current_amperes", "Current of a rail of the board."),
            SensorKind::Power => ("nacelle_sensor_power_watts", "Power of a rail of the board."),
            SensorKind::Fan => ("nacelle_sensor_fan_rpm", "Turns of a fan in a minute."),
            SensorKind::Other(_) => continue,
        };
        all.gauge(metric, help, &labels, value.value())?;
    }
    Ok(())
}

fn times(all: &mut Exposition, name: &str, histograms: &Histograms, times: &Times) -> prometheus::Result<()> {
    let clock = f64::from(histograms.clock_hz);
    let seconds = |cycles: u64| cycles as f64 / clock;
    let help = "Device time, by which calls are measured.";
    all.seconds("nacelle_time_seconds_total", help, &[("device", name)], seconds(times.now))?;
    for (number, socket) in times.sockets.iter().enumerate() {
        let number = number.to_string();
        let labels = [("device", name), ("socket", &number[..])];
        let help = "Device time in which the socket had a call, that of each call counted by itself.";
        all.seconds("nacelle_socket_busy_seconds_total", help, &labels, seconds(socket.busy))?;
        let help = "Device time from the arrival of a call to its result.";
        let (latency, run, queue) = (&socket.latency, &socket.run, &socket.queue);
        all.histogram("nacelle_call_latency_seconds", help, &labels, latency, seconds, seconds(latency.sum));
        let help = "Device time that a call had its socket.";
        all.histogram("nacelle_call_run_seconds", help, &labels, run, seconds, seconds(run.sum));
        let help = "Calls that a socket had when another one came.";
        let most = |bound: u64| (bound - 1) as f64;
        all.histogram("nacelle_socket_queue_calls", help, &labels, queue, most, queue.sum as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nacelle_manage::sensors::SensorValue;
    use nacelle_manage::{Error, QP_COUNTERS};

    use super::*;

    #[test]
    fn a_device_that_does_not_answer_is_told_beside_the_others() {
        let why = Error::Management { name: "a \"b\"".into(), why: "no answer".into() };
        let took = Duration::from_millis(1500);
        let dead = Look { device: "a \"b\"".into(), took, errors: 3, seen: Err(why) };
        let text = text(&[dead]).unwrap();
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "nacelle_scrape_duration_seconds{device=\"a \\\"b\\\"\"} 1.5",
            "nacelle_scrape_errors_total{device=\"a \\\"b\\\"\"} 3",
            "nacelle_up{device=\"a \\\"b\\\"\"} 0",
        ];
        assert_eq!(samples, expected);
    }

    #[test]
    fn bins_become_buckets_of_seconds() {
        use nacelle_manage::histograms::{Histogram, SocketTimes};
        let histograms = crate::fake::histograms(1024);
        let time = Histogram { counts: vec![1, 0, 2, 4], sum: 10_240, first: 8 };
        let queue = Histogram { counts: vec![5, 1, 1], sum: 9, first: 0 };
        let socket = SocketTimes { latency: time.clone(), run: time, queue, busy: 2048 };
        let measured = Times { now: 4096, clears: 0, sockets: vec![socket] };
        let mut all = Exposition::default();
        times(&mut all, "d", &histograms, &measured).unwrap();
        let text = all.text().unwrap();
        for line in [
            "# TYPE nacelle_call_latency_seconds histogram",
            "nacelle_call_latency_seconds_bucket{device=\"d\",socket=\"0\",le=\"0.25\"} 1",
            "nacelle_call_latency_seconds_bucket{device=\"d\",socket=\"0\",le=\"1\"} 3",
            "nacelle_call_latency_seconds_bucket{device=\"d\",socket=\"0\",le=\"+Inf\"} 7",
            "nacelle_call_latency_seconds_sum{device=\"d\",socket=\"0\"} 10",
            "nacelle_call_latency_seconds_count{device=\"d\",socket=\"0\"} 7",
            "nacelle_socket_queue_calls_bucket{device=\"d\",socket=\"0\",le=\"0\"} 5",
            "nacelle_socket_queue_calls_bucket{device=\"d\",socket=\"0\",le=\"1\"} 6",
            "nacelle_socket_busy_seconds_total{device=\"d\",socket=\"0\"} 2",
            "nacelle_time_seconds_total{device=\"d\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn sensors_are_in_base_units() {
        let sensor = |name: &str, kind, thousandths: Option<i32>| Sensor {
            name: name.into(),
            kind,
            value: thousandths.map(|thousandths| SensorValue { thousandths, simulated: true, age: Duration::ZERO }),
        };
        let all_kinds = [
            sensor("fpga", SensorKind::Temperature, Some(-1500)),
            sensor("vccint", SensorKind::Voltage, Some(850)),
            sensor("vccint", SensorKind::Power, None),
            sensor("new", SensorKind::Other(6), Some(1)),
        ];
        let mut all = Exposition::default();
        sensors(&mut all, "d", &all_kinds).unwrap();
        let text = all.text().unwrap();
        for line in [
            "nacelle_sensor_temperature_celsius{device=\"d\",sensor=\"fpga\",simulated=\"true\"} -1.5",
            "nacelle_sensor_voltage_volts{device=\"d\",sensor=\"vccint\",simulated=\"true\"} 0.85",
            "nacelle_sensor_known{device=\"d\",kind=\"power\",sensor=\"vccint\"} 0",
            "nacelle_sensor_known{device=\"d\",kind=\"kind 6\",sensor=\"new\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
        assert!(!text.contains("power_watts"), "without a value there is none");
    }

    #[test]
    fn requests_and_responses_of_a_queue_pair_are_told_together() {
        let counters = [("sent_bytes", 5), ("sent_response_bytes", 70), ("rcvd_pkts", 3)];
        let pair =
            QueuePairCounters { qpn: 9, counters: counters.map(|(name, count)| (name.to_owned(), count)).into() };
        let mut all = Exposition::default();
        queue_pairs(&mut all, "d", &[pair]).unwrap();
        let text = all.text().unwrap();
        for line in [
            "nacelle_queue_pair_sent_bytes_total{device=\"d\",qpn=\"9\"} 75",
            "nacelle_queue_pair_received_packets_total{device=\"d\",qpn=\"9\"} 3",
            "nacelle_queue_pair_sent_packets_total{device=\"d\",qpn=\"9\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }

    #[test]
    fn every_metric_of_a_queue_pair_is_made_of_counters_that_there_are() {
        let named = MOVED.iter().flat_map(|(_, _, counters)| counters);
        assert!(named.clone().all(|name| QP_COUNTERS.contains(name)), "{QP_COUNTERS:?}");
    }

    #[test]
    fn counters_become_metrics() {
        let mut all = Exposition::default();
        let counters = [("roce.rx_frames", 7), ("kernels.waiting", 2), ("rpc_call_started", 5)];
        let counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
        super::counters(&mut all, "d", &Stats { cycles: 9, counters }).unwrap();
        let text = all.text().unwrap();
        for line in [
            "# TYPE nacelle_roce_rx_frames_total counter",
            "nacelle_roce_rx_frames_total{device=\"d\"} 7",
            "# TYPE nacelle_calls_waiting gauge",
            "nacelle_calls_waiting{device=\"d\"} 2",
            "# HELP nacelle_rpc_call_started_total Counter rpc_call_started of the device: call started.",
            "nacelle_cycles_total{device=\"d\"} 9",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
