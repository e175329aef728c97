# SPDX-License-Identifier: Apache-2.0
"""Descriptions of devices: every one in the repository can be built, and one that cannot says what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nacelle_tb.device import DEVICES, DRAMS, ROOT, DescriptionError, Device, description, load, load_dram
from nacelle_tb.device_rtl import generate

STANDARD = (DEVICES / "standard.toml").read_text()
KERNEL = """
name = "other"
version = "1.0"
[[functions]]
code = 5
name = "other"
doc = "Does something else."
"""


@pytest.mark.parametrize("path", [*DEVICES.glob("*.toml"), ROOT / "examples" / "kernel_sum" / "device.toml"], ids=lambda p: p.stem)
def test_every_description_can_be_built(path: Path) -> None:
    device = load(path)
    files = {file.name for file in generate(device).folder.glob("*.sv")}
    assert {"device_pkg.sv", "socket_kernel.sv", "description_pkg.sv"} < files
    assert {f"{kernel.module}_pkg.sv" for kernel in device.kernels} < files


WRONG = {
    "contexts = 4 ": ("contexts = 1 ", "long_set_up needs contexts: 2 or 4"),
    "queue_pairs = 256": ("queue_pairs = 100", "queue_pairs is 100; it must be a power of two from 16 to 1024"),
    "data_w = 512": ("data_w = 1024", "data_w is 1024; it must be a power of two from 64 to 512"),
    "clock_hz = 250_000_000": ('clock_hz = "fast"', "clock_hz is 'fast'; it must be of type int"),
    "memory_regions = 1024\n": ("", "memory_regions is missing"),
    "read_depth = 8": ("read_depth = 8\nreed_depth = 8", "unknown key reed_depth"),
    'kernel = "matmul"': ('kernel = "matmull"', "no kernel_matmull.toml in"),
    "completions = 4096": ("completions = 4095", "traffic: completions must be a power of two"),
    "[management]": ("[management]\nport = 0", "port is 0; it must be of type bool"),
    "[transport]": ('[transport]\ncongestion_control = "off"', "congestion_control is 'off'; it must be of type bool"),
    "[memory]": ("[memory", "Expected"),
    "[telemetry]": ("[images]\nslots = 2\n[telemetry]", "it has slots for images; a socket must have several kernels"),
    "[calls]": ("[images]\nslots = 3\n[calls]", "3 slots of 4096 bytes; they must be 0, 1, 2 or 4"),
    "1_073_741_824": ("4_194_304", "the messages of 256 connections fill the memory: bytes must be larger"),
    "bytes = 1_073_741_824": (
        'bytes = 1_073_741_824\ntiming = "ddr9"',
        "timing is 'ddr9'; it must be a .toml file, or one of fixed, ddr4",
    ),
    'kernel = "increment"': ('kernel = "increment"\nmemories = [0, 1]', "sockets[0]: memories is [0, 1]; there are 1, from 0"),
    'name = "fpga"': ('name = "fpga.temperature."', "name is 'fpga.temperature.'; it must be 1 to 16 printable ASCII characters"),
    'kind = "temperature"': ('kind = "dew"', "kind is 'dew'; it must be one of temperature, voltage, current, power, fan"),
    "simulated = [41.0, 63.0]": ("simulated = [41.0]", "sensors[0]: simulated is [41.0]; it must be two numbers from"),
    'name = "board"': ('name = "vccint"', "sensors[4]: there is another power of vccint"),
    "[[sockets]]": ('[[sensors]]\nkind = "fan"\n[[sockets]]', "name is missing"),
    '[[sockets]]\nkernel = "traffic"': (
        '[[sockets]]\nregisters = 1\nkernel = "traffic"',
        "registers is 1; it must be of type bool",
    ),
    'kernel = "traffic"': ('kernel = "traffic"\nmemories = 0', "memories is 0; it must be of type list"),
}


@pytest.mark.parametrize("right", WRONG, ids=lambda text: text.split()[0].strip("["))
def test_a_mistake_is_named(tmp_path: Path, right: str) -> None:
    wrong, said = WRONG[right]
    assert right in STANDARD
    path = tmp_path / "device.toml"
    path.write_text(STANDARD.replace("../rtl", str(ROOT / "rtl")).replace(right, wrong, 1))
    with pytest.raises(DescriptionError) as error:
        load(path)
    assert said in str(error.value) and ("device.toml" in str(error.value) or "kernel_" in str(error.value))


LEFT_OUT = """
[transport]
congestion_control = false
selective_repeat = false
[management]
port = false
[network]
ipv6 = false
link_control = false
[services]
discovery = false
[telemetry]
event_log = false
counters = false
histograms = false
"""


def test_what_a_device_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "device.toml"
    path.write_text(f'base = "{DEVICES / "standard.toml"}"\n{LEFT_OUT}')
    package = (generate(load(path)).folder / "device_pkg.sv").read_text()
    off = (
        "CONGESTION_CONTROL",
        "SELECTIVE_REPEAT",
        "MANAGEMENT_PORT",
        "IPV6",
        "LINK_CONTROL",
        "DISCOVERY",
        "EVENT_LOG",
        "COUNTERS",
        "HISTOGRAMS",
    )
    for name in off:
        assert f"{name} = 1'b0;" in package
    assert "CLASSIFIER = 1'b0;" in package
    classifies = tmp_path / "classifies.toml"
    classifies.write_text(f'base = "{path}"\n[network]\nclassifier = true\n')
    assert "CLASSIFIER = 1'b1;" in (generate(load(classifies)).folder / "device_pkg.sv").read_text()
    assert "STREAM = 1'b0;" in package
    streams = tmp_path / "streams.toml"
    for card, name, says in ((True, "nat", None), (True, "nobody", "no stream_nobody.toml"), (False, "nat", "needs network_card")):
        streams.write_text(f'base = "{path}"\n[network]\nstream = "{name}"\n[pcie]\nnetwork_card = {str(card).lower()}\n')
        if says:
            with pytest.raises(DescriptionError, match=says):
                load(streams)
        else:
            made = generate(load(streams)).folder
            assert "STREAM = 1'b1;" in (made / "device_pkg.sv").read_text()
            assert "stream_nat #(" in (made / "stream_kernel.sv").read_text()
    assert load(path).digest != load(DEVICES / "standard.toml").digest


def test_addresses_have_the_bits_of_the_memory_where_only_peers_name_them(tmp_path: Path) -> None:
    path = tmp_path / "device.toml"

    def bits(*lines: str) -> int:
        path.write_text("\n".join([f'base = "{DEVICES / "ecp5.toml"}"', *lines]))
        device = load(path)
        assert f"ADDR_W = {device.address_bits};" in generate(device).widths.read_text()
        return device.address_bits

    assert bits() == 18  # 128 KiB, and the address behind
    assert bits("[memory]", "bytes = 1_048_576") == 21
    assert bits("[memory]", "count = 2") == bits("[management]", "port = true") == 64
    assert bits("[[sockets]]", 'kernel = "traffic"', "completions = 16") == 64
    assert load(DEVICES / "standard.toml").address_bits == 64


def test_sensors_of_a_board(tmp_path: Path) -> None:
    """Up to 16; they are part of what tells one build from another, but for what the simulation gives."""
    path = tmp_path / "device.toml"

    def built(*sensors: str) -> Device:
        tables = "".join(f"[[sensors]]\n{sensor}\n" for sensor in sensors)
        path.write_text(f'base = "{DEVICES / "standard.toml"}"\n{tables or "sensors = []"}\n')
        return load(path)

    most = [f'name = "s{i}"\nkind = "fan"' for i in range(16)]
    assert len(built(*most).sensors) == 16
    with pytest.raises(DescriptionError, match="17 sensors; there can be 16"):
        built(*most, 'name = "more"\nkind = "power"')
    assert "SENSORS = 0;" in (generate(built()).folder / "device_pkg.sv").read_text()
    one = built('name = "ab"\nkind = "current"')
    package = (generate(one).folder / "device_pkg.sv").read_text()
    assert "128'h6261}" in package and "8'd0, 8'd3}" in package and one.sensors[0].simulated is None
    simulated = built('name = "ab"\nkind = "current"\nsimulated = [1, 2.5]')
    assert simulated.digest == one.digest != built('name = "ab"\nkind = "power"').digest
    assert simulated.sensors[0].simulated == (1, 2.5)
    for wrong in ("[1, true]", '["1", 2]', "[0, nan]", "[0, 2_000_001]", "3"):
        with pytest.raises(DescriptionError, match="simulated is"):
            built(f'name = "ab"\nkind = "current"\nsimulated = {wrong}')


def test_sockets_reach_the_memories_that_they_name(tmp_path: Path) -> None:
    path = tmp_path / "device.toml"
    head = f'base = "{DEVICES / "standard.toml"}"\n[memory]\ncount = 3\nof_calls = 1\n'
    sockets = ('[[sockets]]\nkernel = "increment"\n', '[[sockets]]\nkernel = "matmul"\nmemories = [2, 1]\n')
    path.write_text(head + "".join(sockets))
    assert load(path).reach() == [0b111, 0b110]
    assert "SOCKET_MEMORIES = {3'b110, 3'b111};" in (generate(load(path)).folder / "device_pkg.sv").read_text()
    path.write_text(path.read_text().replace("[2, 1]", "[2, 0]"))
    with pytest.raises(DescriptionError, match=r"sockets\[1\]: memories must have 1, which callers' regions are in"):
        load(path)


def test_a_device_in_a_slot(tmp_path: Path) -> None:
    """Host memory is one memory more, behind the others; without the table there is nothing of it."""
    path = tmp_path / "device.toml"

    def built(text: str) -> Device:
        path.write_text(f'base = "{DEVICES / "standard.toml"}"\n{text}')
        return load(path)

    plain, slot = built(""), built("[pcie]\ntags = 128\n[memory]\ncount = 3\n")
    assert plain.pcie is None and "PCIE = 1'b0;" in (generate(plain).folder / "device_pkg.sv").read_text()
    assert slot.targets == 4 and slot.memories == 3 and set(slot.reach()) == {0b1111}
    package = (generate(slot).folder / "device_pkg.sv").read_text()
    assert "PCIE = 1'b1;" in package and "PCIE_TAGS = 128;" in package and "PCIE_TIMEOUT = 250000;" in package
    assert "COPY = 1'b1;" in package
    for without in (plain, built("[pcie]\ncopy = false\n")):
        assert "COPY = 1'b0;" in (generate(without).folder / "device_pkg.sv").read_text()
    assert len({plain.digest, slot.digest, built("[pcie]\n[memory]\ncount = 3\n").digest}) == 3
    for wrong, said in {
        "[pcie]\n[memory]\ncount = 4\n": "with [pcie] there can be 3",
        "[pcie]\ntags = 48\n": "tags is 48; it must be a power of two from 32 to 256",
        "[pcie]\nvectors = 129\n": "vectors is 129; it must be from 2 to 128",
        "[pcie]\ntimeout_us = 1\n": "timeout_us is 1; it must be from 50 to 50000",
        "[pcie]\nhost_bytes = 100\n": "host_bytes is 100; it must be a multiple of 4096",
        "[pcie]\nhost_bytes = 1_073_741_824\n": "and half of the memory at most, 536870912",
        "[pcie]\nlanes = 16\n": "unknown key lanes",
        "[pcie]\ncopy = 1\n": "copy is 1; it must be of type bool",
        "[pcie]\nnetwork_card = 1\n": "network_card is 1; it must be of type bool",
        "[pcie]\npairs = 5\n": "pairs is 5; it must be from 1 to 4",
        "[pcie]\nmtu = 9001\n": "mtu is 9001; it must be from 68 to 9000",
    }.items():
        with pytest.raises(DescriptionError) as error:
            built(wrong)
        assert said in str(error.value)


DRAM_MISTAKES = {
    "banks = 16 ": ("banks = 17 ", "banks is 17; it must be a power of two"),
    "bank_groups = 4 ": ("bank_groups = 32 ", "bank_groups is 32; it must divide banks, 16"),
    "trcd = 14.063 ": ("trcd = 14 ", "trcd is 14; it must be of type float"),
    "tras = 33.0 ": ("tras = -1.0 ", "tras is -1.0; it must be nanoseconds"),
    "trefi = 7800.0 ": ("trefi = 360.0 ", "trefi is 360.0; it must be longer than a refresh"),
    "trp = ": ("trap = ", "trp is missing"),
    "lookahead = 4 ": ("lookahead = 0 ", "lookahead is 0"),
    "twr = 15.0 ": ("twr = 15.0\ntwx = 1.0 ", "unknown key twx"),
}


@pytest.mark.parametrize("right", DRAM_MISTAKES, ids=lambda text: text.split()[0])
def test_a_mistake_of_a_dram_is_named(tmp_path: Path, right: str) -> None:
    wrong, said = DRAM_MISTAKES[right]
    text = (DRAMS / "ddr4-2133.toml").read_text()
    path = tmp_path / "device.toml"
    path.write_text(f'base = "{DEVICES / "standard.toml"}"\n[memory]\ntiming = "mine.toml"\n')
    (tmp_path / "mine.toml").write_text(text)
    assert load(path).dram == load_dram(DRAMS / "ddr4-2133.toml")
    assert right in text
    (tmp_path / "mine.toml").write_text(text.replace(right, wrong, 1))
    with pytest.raises(DescriptionError) as error:
        load(path)
    assert said in str(error.value) and "mine.toml" in str(error.value)


KERNEL_MISTAKES = {
    "code = 5": ("code = 0", "code is 0; it must be from 1 to 127"),
    'name = "other"\nversion': ('name = "another"\nversion', "its name must be other"),
    '"1.0"': ('"1"', "version must be two numbers"),
    'doc = "Does something else."': ('doc = "Macht \u00e4rger."', "printable ASCII"),
    "[[functions]]": ('[errors]\n0x80 = "too large"\n[[functions]]', "0x80 must be a code from 0x10 to 0x7f"),
}


@pytest.mark.parametrize("right", KERNEL_MISTAKES, ids=lambda text: text.split()[0].strip("["))
def test_a_mistake_of_a_kernel_is_named(tmp_path: Path, right: str) -> None:
    wrong, said = KERNEL_MISTAKES[right]
    (tmp_path / "kernel_other.sv").touch()
    (tmp_path / "device.toml").write_text(
        f'base = "{DEVICES / "standard.toml"}"\nname = "d"\nkernels = ["."]\n[[sockets]]\nkernel = "other"\n'
    )
    (tmp_path / "kernel_other.toml").write_text(KERNEL)
    assert load(tmp_path / "device.toml").kernels[0].functions[0].code == 5
    (tmp_path / "kernel_other.toml").write_text(KERNEL.replace(right, wrong, 1))
    with pytest.raises(DescriptionError) as error:
        load(tmp_path / "device.toml")
    assert said in str(error.value) and "kernel_other.toml" in str(error.value)


def test_two_kernels_with_one_function(tmp_path: Path) -> None:
    (tmp_path / "kernel_other.sv").touch()
    (tmp_path / "kernel_other.toml").write_text(KERNEL.replace("code = 5", "code = 16"))
    path = tmp_path / "device.toml"
    folders = f'kernels = [".", "{ROOT / "rtl" / "compute" / "kernels"}"]'
    sockets = "".join(f'[[sockets]]\nkernel = "{name}"\n' for name in ("matmul", "other", "matmul"))
    path.write_text(f'base = "{DEVICES / "standard.toml"}"\n{folders}\n{sockets}')
    with pytest.raises(DescriptionError, match="matmul and other both have function 16"):
        load(path)
    path.write_text(path.read_text().replace('kernel = "other"', 'kernel = "increment"'))
    assert [function["sockets"] for function in json.loads(description(load(path)))["functions"]] == [2, 1, 1]


def test_a_kernel_without_a_module_and_a_circle_of_bases(tmp_path: Path) -> None:
    (tmp_path / "kernel_other.toml").write_text(KERNEL)
    path = tmp_path / "device.toml"
    path.write_text(f'base = "{DEVICES / "standard.toml"}"\nkernels = ["."]\n[[sockets]]\nkernel = "other"\n')
    with pytest.raises(DescriptionError, match=r"there is no kernel_other\.sv beside it"):
        load(path)
    path.write_text('base = "device.toml"\n')
    with pytest.raises(DescriptionError, match="its own base"):
        load(path)
