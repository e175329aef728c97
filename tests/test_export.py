# SPDX-License-Identifier: Apache-2.0
"""`nacelle export`: both kinds of device as Prometheus reads them, judged by its own checker, and the dashboard that shows them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import ADDRESS, ROOT, Wire

LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_64.so"
DASHBOARD = ROOT / "docs" / "how-to" / "watch-a-device.json"
PROMTOOL = shutil.which("promtool") or str(ROOT / "build" / "tools" / "promtool")
SOFT_ADDRESS = "10.77.0.3"
# Among what a software device counts: what falls, too.
GAUGES = {"kernels.running", "kernels.waiting", "kernels.lost", "memory.bytes_held", "rpc.callers"}


class Exporter:
    """An exporter that listens at a port of its own."""

    def __init__(self, wire: Wire, *arguments: str) -> None:
        process = wire.start("export", "--listen", "127.0.0.1:0", *arguments)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+/metrics", line)
        assert found, line
        self.url = found[0]

    def text(self) -> str:
        """One scrape."""
        with urllib.request.urlopen(self.url, timeout=30) as response:
            assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            return response.read().decode()


def samples(text: str) -> dict[str, float]:
    """Values by metric and labels, as they are written."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def check(text: str) -> None:
    """What Prometheus itself says of it: nothing."""
    result = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and not result.stdout + result.stderr, result.stdout + result.stderr


@pytest.fixture
def devices(wire: Wire) -> Wire:
    """The simulated RTL as rtl0 and the software device as soft0, each of which has done a call."""
    wire.device("--name", "rtl0", "--library", str(LIBRARY))
    wire.start("device", "--soft", "--name", "soft0", "--ip", f"{SOFT_ADDRESS}/16")
    end = time.monotonic() + 30
    while {entry["name"] for entry in wire.json("ls") if entry["alive"]} != {"rtl0", "soft0"}:
        assert time.monotonic() < end, "a device does not answer"
        time.sleep(0.1)
    (wire.folder / "x").write_bytes(b"HAL")
    for address in (ADDRESS, SOFT_ADDRESS):
        result = wire.run("run", "increment", "--device", address, "x", "-o", "y")
        assert result.returncode == 0, result.stderr
    return wire


def test_the_checker_finds_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="_total"):
        check("# HELP a_b Text.\n# TYPE a_b counter\na_b 1\n")


def test_both_devices_are_scraped(devices: Wire) -> None:
    text = Exporter(devices).text()
    check(text)
    found = samples(text)
    for name, kind in (("rtl0", "rtl"), ("soft0", "soft")):
        stats = devices.json("stats", name)
        for counter in stats["counters"]:
            metric = f"nacelle_{re.sub('[^a-z0-9]', '_', counter)}_total"
            assert (f'{metric}{{device="{name}"}}' in found) == (counter not in GAUGES), counter
        assert 0 < found[f'nacelle_cycles_total{{device="{name}"}}'] <= stats["cycles"]
        assert found[f'nacelle_up{{device="{name}"}}'] == 1
        assert found[f'nacelle_scrape_errors_total{{device="{name}"}}'] == 0
        assert found[f'nacelle_calls_running{{device="{name}"}}'] == 0
        assert found[f'nacelle_connections{{device="{name}",owner="service"}}'] == 0
        assert found[f'nacelle_memory_bytes{{device="{name}"}}'] == 1 << 30
        # The device's description is in a region of its own.
        assert found[f'nacelle_memory_regions{{device="{name}"}}'] >= 1
        assert re.search(rf'^nacelle_device_info{{.*device="{name}",ip="10.77.0..",kind="{kind}",.*}} 1$', text, re.MULTILINE)
        assert re.search(rf'^nacelle_socket_info{{device="{name}",kernel="increment",socket="0",.*}} 1$', text, re.MULTILINE)
    # The board of the simulation; a software device has none.
    assert 41 <= found['nacelle_sensor_temperature_celsius{device="rtl0",sensor="fpga",simulated="true"}'] <= 63
    assert 0.84 < found['nacelle_sensor_voltage_volts{device="rtl0",sensor="vccint",simulated="true"}'] < 0.86
    assert 6 < found['nacelle_sensor_current_amperes{device="rtl0",sensor="vccint",simulated="true"}'] < 22
    assert 24 <= found['nacelle_sensor_power_watts{device="rtl0",sensor="board",simulated="true"}'] < 48
    assert 2400 <= found['nacelle_sensor_fan_rpm{device="rtl0",sensor="fan",simulated="true"}'] < 4000
    assert found['nacelle_sensor_known{device="rtl0",kind="power",sensor="vccint"}'] == 1
    assert not any(name.startswith("nacelle_sensor") and "soft0" in name for name in found)
    assert found['nacelle_rpc_call_finished_total{device="rtl0"}'] == 1
    assert found['nacelle_socket_jobs_total{device="rtl0",socket="0"}'] == 1
    assert found['nacelle_socket_jobs_total{device="rtl0",socket="1"}'] == 0
    assert found['nacelle_rpc_calls_total{device="soft0"}'] == 1
    assert found['nacelle_calls_waiting{device="soft0"}'] == 0


def test_histograms_have_each_call_once(devices: Wire) -> None:
    """In both devices, in seconds of their own time; what is in a bucket is in those above it."""
    for _ in range(4):
        for address in (ADDRESS, SOFT_ADDRESS):
            assert devices.run("run", "increment", "--device", address, "x", "-o", "y").returncode == 0
    text = Exporter(devices).text()
    check(text)
    found = samples(text)
    for device in ("rtl0", "soft0"):
        socket = f'device="{device}",socket="0"'
        for metric in ("nacelle_call_latency_seconds", "nacelle_call_run_seconds", "nacelle_socket_queue_calls"):
            assert f"# TYPE {metric} histogram" in text.splitlines()
            below = [value for name, value in found.items() if name.startswith(f"{metric}_bucket{{{socket},")]
            assert below == sorted(below) and below[-1] == found[f"{metric}_count{{{socket}}}"] == 5, metric
            assert f'{metric}_bucket{{{socket},le="+Inf"}}' in found
        latency, run = (found[f"nacelle_call_{name}_seconds_sum{{{socket}}}"] for name in ("latency", "run"))
        assert 0 < run <= latency < 1
        assert found[f"nacelle_socket_busy_seconds_total{{{socket}}}"] == pytest.approx(run)
        assert found[f'nacelle_socket_queue_calls_bucket{{{socket},le="0"}}'] == 5, "each call was alone"
        assert found[f'nacelle_time_seconds_total{{device="{device}"}}'] > latency
        assert found[f'nacelle_call_run_seconds_count{{device="{device}",socket="1"}}'] == 0
    # What the socket itself has counted lies within.
    jobs, cycles = (row["value"] for row in devices.json("config", "get", "rtl0", "socket0.JOBS", "socket0.LAST_CYCLES"))
    assert jobs == 5 and found['nacelle_call_run_seconds_sum{device="rtl0",socket="0"}'] * 250e6 >= cycles


def test_what_a_queue_pair_moves(devices: Wire) -> None:
    """Of those in use, by their numbers, while they are."""
    exporter = Exporter(devices, "--timeout", "30")
    assert "nacelle_queue_pair" not in exporter.text()
    for device, address in (("rtl0", ADDRESS), ("soft0", SOFT_ADDRESS)):
        caller = devices.start("bench", address, "--sizes", "4096", "--seconds", "2")
        end = time.monotonic() + 60
        while True:
            assert caller.poll() is None and time.monotonic() < end, "no queue pair has moved what it should"
            text = exporter.text()
            moved = re.findall(rf'^nacelle_queue_pair_(\w+)_total{{device="{device}",qpn="(\d+)"}} (\S+)$', text, re.MULTILINE)
            ways = {"sent_bytes", "received_bytes", "sent_packets", "received_packets"}
            if moved and all(float(value) > 10 for _, _, value in moved):
                break
        assert {way for way, _, _ in moved} == ways and len(moved) == 4 * len({qpn for _, qpn, _ in moved})
        check(text)
        caller.kill()


def test_sockets_in_top(devices: Wire) -> None:
    """What has come before the interval does not count, what comes in it does, and only in its socket."""
    tops = [devices.start("--json", "top", name, "--once", "--interval", "5") for name in ("rtl0", "soft0")]
    time.sleep(2)
    for address in (ADDRESS, SOFT_ADDRESS):
        assert devices.run("run", "increment", "--device", address, "x", "-o", "y").returncode == 0
    for top in tops:
        sockets = json.loads(top.communicate(timeout=60)[0])["sockets"]
        assert [socket["calls"] for socket in sockets] == [1] + [0] * (len(sockets) - 1), sockets
        used, other = sockets[:2]
        assert 0 < used["run_p50"] <= used["latency_below"] and 0 < used["utilisation"] < 1 and used["queue_mean"] == 0
        assert other["latency_p50"] is None and other["utilisation"] == 0 and other["queue_mean"] is None
    shown = devices.run("top", "rtl0", "--once", "--interval", "0.2").stdout
    assert "LATENCY P50" in shown and "BUSY" in shown


def test_a_clear_is_seen(devices: Wire) -> None:
    for name in ("rtl0", "soft0"):
        assert devices.run("config", "set", name, "histograms.COMMAND", "1").returncode == 0
        metric = f'nacelle_call_run_seconds_count{{device="{name}",socket="0"}}'
        assert samples(devices.run("export", "--once", name).stdout)[metric] == 0
        assert devices.json("config", "get", name, "histograms.STATUS.clears")[0]["value"] == 1


def test_a_dead_device_does_not_stop_the_others(devices: Wire) -> None:
    exporter = Exporter(devices, "--timeout", "3", "rtl0", SOFT_ADDRESS, "gone")
    found = samples(exporter.text())
    assert [found[f'nacelle_up{{device="{name}"}}'] for name in ("gone", "rtl0", "soft0")] == [0, 1, 1]
    # It is there, and answers nothing.
    stopped = next(entry["pid"] for entry in devices.json("ls") if entry["name"] == "soft0")
    os.kill(stopped, signal.SIGSTOP)
    try:
        for errors in (1, 2):
            begin = time.monotonic()
            text = exporter.text()
            assert time.monotonic() - begin < 10
            check(text)
            found = samples(text)
            assert found['nacelle_up{device="soft0"}'] == 0 and found['nacelle_up{device="rtl0"}'] == 1
            assert found['nacelle_scrape_errors_total{device="soft0"}'] == errors
            assert found['nacelle_scrape_errors_total{device="rtl0"}'] == 0
            assert 3 <= found['nacelle_scrape_duration_seconds{device="soft0"}'] < 5
            assert not any(name.startswith('nacelle_cycles_total{device="soft0"') for name in found)
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert samples(exporter.text())['nacelle_up{device="soft0"}'] == 1


def test_metrics_without_a_server(devices: Wire) -> None:
    result = devices.run("export", "--once", "soft0")
    assert result.returncode == 0, result.stderr
    check(result.stdout)
    assert samples(result.stdout)['nacelle_up{device="soft0"}'] == 1
    assert "rtl0" not in result.stdout


def expressions(dashboard: Path) -> list[str]:
    """What the panels and variables of a dashboard ask Prometheus for."""
    found: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            found.extend(text for key in ("expr", "query", "definition") if isinstance(text := value.get(key), str))
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                walk(part)

    walk(json.loads(dashboard.read_text()))
    return [text for text in found if "nacelle_" in text]


def test_the_dashboard_shows_metrics_that_there_are(devices: Wire) -> None:
    exported = {name.partition("{")[0] for name in samples(Exporter(devices).text())}
    asked = expressions(DASHBOARD)
    assert len(asked) > 10
    for expression in asked:
        named = set(re.findall(r"\bnacelle_\w+", expression))
        assert named and named <= exported, (expression, named - exported)
        # Not of all devices of the Prometheus server, but of those that are chosen.
        assert "$device" in expression or "label_values" in expression, expression


def test_promtool_reads_every_query_of_the_dashboard(tmp_path: Path) -> None:
    queries = [text for text in expressions(DASHBOARD) if "label_values" not in text]
    rules = [{"record": f"nacelle:query{n}", "expr": text.replace("$__rate_interval", "1m")} for n, text in enumerate(queries)]
    file = tmp_path / "rules.json"
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    result = subprocess.run([PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0 and f"{len(queries)} rules found" in result.stdout, result.stdout + result.stderr
