# SPDX-License-Identifier: Apache-2.0
"""device_start: the device has its addresses and its seed before it is enabled; one that refuses a value is not."""

from __future__ import annotations

import cocotb
from nacelle_tb.axil import SLVERR, Monitor, Slave
from nacelle_tb.bench import AxilMaster, Plain, run
from nacelle_tb.cci import address
from nacelle_tb.streams import start, wait_cycles

MAC, IP, PREFIX_LEN, GATEWAY, MODE = 0x02AABBCCDDEE, 0x0A4D0102, 24, 0x0A4D01FE, 3
SEED = 0xFEED5EED


def bench(dut, delay: int = 0) -> Slave:
    dut.seed_valid.value = 0
    dut.seed.value = SEED
    Monitor(dut, "bus")
    return Slave(dut, "bus", lambda _: delay)


@cocotb.test()
@cocotb.parametrize(delay=[0, 5])
async def sets_up_then_enables(dut, delay: int) -> None:
    slave = bench(dut, delay)
    await start(dut)
    await wait_cycles(dut, 300)
    assert not int(dut.done.value) and address("RANDOM_SEED") not in slave.words and address("CTRL") not in slave.words
    dut.seed_valid.value = 1
    await wait_cycles(dut, 100)
    assert int(dut.done.value) and not int(dut.failed.value)
    assert slave.words == {
        address("MAC_LO"): MAC & 0xFFFFFFFF,
        address("MAC_HI"): MAC >> 32,
        address("IP"): IP,
        address("PREFIX_LEN"): PREFIX_LEN,
        address("GATEWAY"): GATEWAY,
        address("ADDRESS_MODE"): MODE,
        address("RANDOM_SEED"): SEED,
        address("CTRL"): 1,
    }
    assert list(slave.words)[-1] == address("CTRL"), "enabled before all was set"


@cocotb.test()
async def stops_at_an_error(dut) -> None:
    slave = bench(dut)
    slave.resp = SLVERR
    dut.seed_valid.value = 1
    await start(dut)
    await wait_cycles(dut, 300)
    assert int(dut.failed.value) and not int(dut.done.value)
    assert address("CTRL") not in slave.words


def test_device_start() -> None:
    run(
        "device_start",
        __file__,
        params={
            "MAC": f"48'd{MAC}",
            "IP": f"32'd{IP}",
            "PREFIX_LEN": f"6'd{PREFIX_LEN}",
            "GATEWAY": f"32'd{GATEWAY}",
            "ADDRESS_MODE": f"2'd{MODE}",
        },
        ports={
            "seed_valid": Plain("input", "logic"),
            "seed": Plain("input", "logic [31:0]"),
            "bus": AxilMaster(20),
            "done": Plain("output", "logic"),
            "failed": Plain("output", "logic"),
        },
    )
