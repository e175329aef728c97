# SPDX-License-Identifier: Apache-2.0
"""The registers of the PCI transport: initialization as in the standard, accesses of every width, interrupts, reset under load."""

import random

import cocotb
import pytest
from nacelle_tb.bench import run
from nacelle_tb.long import rounds, some
from nacelle_tb.planes import network_card
from nacelle_tb.streams import start, wait_cycles
from nacelle_tb.virtio import (
    ACKNOWLEDGE,
    COMMON,
    DRIVER,
    DRIVER_OK,
    F_CTRL_VQ,
    F_EVENT_IDX,
    F_INDIRECT_DESC,
    F_MAC,
    F_MRG_RXBUF,
    F_MTU,
    F_STATUS,
    F_VERSION_1,
    FAILED,
    Buffer,
)  # fmt: skip
from nacelle_tb.widths import WIDTHS, at_width
from net_bench import FEATURES, MAC, MTU, PAIRS, NetBench, features, params

NO_VECTOR = 0xFFFF
ISR, DEVICE = 0x40, 0x80


async def idle_device(dut) -> NetBench:
    bench = NetBench(dut)
    await start(dut)
    return bench


@cocotb.test()
async def after_power_on_all_is_as_after_a_reset(dut) -> None:
    bench = await idle_device(dut)
    await fresh(bench)


async def fresh(bench: NetBench) -> None:
    pci = bench.pci
    assert await pci.get("device_status") == 0
    assert await pci.get("num_queues") == 2 * PAIRS + 1
    assert await pci.get("config_msix_vector") == NO_VECTOR
    for select in range(2):
        await pci.set("driver_feature_select", select)
        assert await pci.get("driver_feature") == 0
    for number in range(3):  # without VIRTIO_NET_F_MQ: one pair, and the control queue
        await pci.set("queue_select", number)
        assert await pci.get("queue_size") == 256
        assert await pci.get("queue_notify_off") == number
        assert await pci.get("queue_msix_vector") == NO_VECTOR
        for field in ("queue_enable", "queue_desc", "queue_driver", "queue_device"):
            assert await pci.get(field) == 0, field


@cocotb.test()
async def features_are_offered_and_must_fit(dut) -> None:
    bench = await idle_device(dut)
    offered = await bench.pci.offered()
    for bit in (F_MAC, F_STATUS, F_MTU, F_MRG_RXBUF, F_INDIRECT_DESC, F_EVENT_IDX, F_VERSION_1):
        assert offered >> bit & 1
    await bench.pci.set("device_feature_select", 2)
    assert await bench.pci.get("device_feature") == 0
    for wanted, accepted in (
        (offered, True),
        (FEATURES, True),
        (1 << F_VERSION_1, True),
        (FEATURES & ~(1 << F_VERSION_1), False),
        (FEATURES & ~(1 << F_CTRL_VQ), False),  # VIRTIO_NET_F_MQ needs it
        (FEATURES | 1 << 63, False),
        (FEATURES | (~offered & -~offered), False),  # one that is not offered
        (0, False),
    ):
        await bench.pci.reset()
        assert await bench.pci.negotiate(wanted) == accepted, hex(wanted)


@cocotb.test()
async def features_stay_once_accepted(dut) -> None:
    bench = await idle_device(dut)
    await bench.pci.reset()
    assert await bench.pci.negotiate(FEATURES)
    await bench.pci.set("driver_feature_select", 0)
    await bench.pci.set("driver_feature", 0)
    assert await bench.pci.get("driver_feature") == FEATURES & 0xFFFFFFFF


@cocotb.test()
async def fields_are_written_by_their_width(dut) -> None:
    """Each byte, word and double word alone, and nothing beside it."""
    bench = await idle_device(dut)
    pci = bench.pci
    await pci.set("queue_select", 1)
    model = {"queue_size": 256, "queue_msix_vector": NO_VECTOR, "queue_desc": 0, "queue_driver": 0, "queue_device": 0}
    for _ in range(40):
        field = random.choice(list(model))
        size = COMMON[field][1]
        value = 1 << random.randint(0, 8) if field == "queue_size" else random.randrange(8) if size == 2 else random.getrandbits(64)
        await pci.set(field, value)
        model[field] = value
        for name, expected in model.items():
            assert await pci.get(name) == expected, name
    await bench.registers.write(COMMON["queue_desc"][0], 0xAABBCCDD, 4)  # one byte
    assert await pci.get("queue_desc") == model["queue_desc"] & ~0xFF0000 | 0xBB0000
    await pci.set("queue_select", 0)
    assert await pci.get("queue_desc") == 0


@cocotb.test()
async def values_that_cannot_be_are_refused(dut) -> None:
    bench = await idle_device(dut)
    pci = bench.pci
    for value in (0, 3, 100, 512, 32768):  # no power of two, or more than there is room for
        await pci.set("queue_size", value)
        assert await pci.get("queue_size") == 256
    for vector, kept in ((7, 7), (8, NO_VECTOR), (3, 3), (NO_VECTOR, NO_VECTOR)):
        await pci.set("queue_msix_vector", vector)
        assert await pci.get("queue_msix_vector") == kept
        await pci.set("config_msix_vector", vector)
        assert await pci.get("config_msix_vector") == kept
    await pci.set("queue_select", 2 * PAIRS)
    assert await pci.get("queue_size") == 0
    await pci.set("queue_enable", 1)
    await pci.set("queue_desc", 77)
    for number in range(2 * PAIRS):
        await pci.set("queue_select", number)
        assert await pci.get("queue_enable") == 0 and await pci.get("queue_desc") == 0


@cocotb.test()
async def an_enabled_queue_stays_as_it_is(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    await bench.pci.set("queue_select", 1)
    await bench.pci.set("queue_desc", 0x1234)
    await bench.pci.set("queue_size", 8)
    assert await bench.pci.get("queue_desc") == bench.queues[1].desc and await bench.pci.get("queue_size") == 64
    await bench.pci.set("queue_enable", 0)
    assert await bench.pci.get("queue_enable") == 1


@cocotb.test()
async def nothing_is_consumed_before_driver_ok(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    await bench.pci.reset()
    assert await bench.pci.negotiate(FEATURES)
    await bench.set_queues_up()
    bench.transmit(b"early" * 20)
    bench.queues[1].publish()
    bench.notify.send(1)
    bench.rx.give(bytes(64))
    reads = bench.memory.stats.read_bursts
    await wait_cycles(dut, 500)
    assert bench.memory.stats.read_bursts == reads and not bench.tx.packets
    await bench.pci.driver_ok()
    bench.notify.send(1)
    assert await bench.tx.recv() == b"early" * 20


@cocotb.test()
async def device_configuration(dut) -> None:
    bench = await idle_device(dut)
    assert (await bench.pci.load(DEVICE, 6)).to_bytes(6, "little") == MAC.to_bytes(6, "big")
    assert await bench.pci.load(DEVICE + 6, 2) == 1
    assert await bench.pci.load(DEVICE + 8, 2) == PAIRS
    assert await bench.pci.load(DEVICE + 10, 2) == MTU


@cocotb.test()
async def a_link_that_goes_down_is_told(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    await bench.pci.set("config_msix_vector", 6)
    before = await bench.pci.get("config_generation")
    dut.link_up.value = 0
    assert await bench.interrupt.recv() == 6
    assert await bench.pci.load(DEVICE + 6, 2) == 0
    assert await bench.pci.get("config_generation") != before
    assert (await bench.registers.read(ISR))[0] == 2
    assert (await bench.registers.read(ISR))[0] == 0


@cocotb.test()
async def interrupts_go_to_the_vector_of_the_queue(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    bench.transmit(bytes(64), 3)
    bench.publish(3)
    assert await bench.interrupt.recv() == 3
    assert (await bench.registers.read(ISR))[0] == 1
    assert (await bench.registers.read(ISR))[0] == 0


@cocotb.test()
async def notifications_by_register(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    for number in (1, 3):
        frame = random.randbytes(99)
        bench.transmit(frame, number)
        bench.queues[number].publish()
        await bench.pci.notify(number)
        assert await bench.tx.recv() == frame
    await bench.registers.write(0x17C, 31, 3)  # of a queue that is not there
    await wait_cycles(dut, 100)


@cocotb.test()
@cocotb.parametrize(latency=[(1, 20), (150, 400)], function=[False, True])
async def reset_under_load(dut, latency, function: bool) -> None:
    """Both ways at full load: once device_status reads 0, or a function-level reset is done, nothing is read, written or
    interrupted; then the device starts anew."""
    bench = NetBench(dut, latency=latency, size=256, wanted=features(F_EVENT_IDX))
    await bench.begin()
    for turn in range(rounds(3)):
        for _ in range(40):
            bench.transmit(random.randbytes(random.randint(14, 1500)), 1, cuts=random.choice([0, 3]))
            bench.post(0, [random.choice([100, 2000])])
        bench.publish(0)
        bench.publish(1)
        await wait_cycles(dut, 1200)
        for _ in range(100):
            bench.rx.give(random.randbytes(random.randint(14, 1500)))
        await wait_cycles(dut, random.randint(0, 900))
        await (bench.function_reset() if function else bench.pci.reset())
        stats = bench.memory.stats
        before = (stats.read_bursts, stats.write_beats, bytes(bench.memory.content))
        assert bench.memory.outstanding() == 0
        bench.interrupt.received.clear()
        for number in range(2 * PAIRS):
            bench.notify.send(number)
        await wait_cycles(dut, 2000)
        assert (stats.read_bursts, stats.write_beats, bytes(bench.memory.content)) == before, f"turn {turn}"
        assert not bench.interrupt.received
        await fresh(bench)
        await bench.rx.drained()
        bench.tx.packets.clear()
        bench.tx.spans.clear()
        await bench.initialize()
        frame = random.randbytes(333)
        bench.transmit(frame, 1)
        bench.publish(1)
        assert await bench.tx.recv() == frame
        bench.post(0, [500])
        bench.publish(0)
        await wait_cycles(dut, 1500)
        bench.rx.give(frame)
        assert (await bench.received(0)).frame == frame
        await bench.reap(1)


@cocotb.test()
async def an_access_that_waits_has_no_effect_behind_a_function_reset(dut) -> None:
    """While the device clears itself accesses wait. One that does so when a function-level reset begins is answered, and the device
    is as new when that is done."""
    bench = NetBench(dut)
    await bench.begin()
    for _ in range(12):
        await bench.pci.reset()
        await bench.pci.set("device_status", 0)  # it is 0 already: what comes now waits
        await wait_cycles(dut, random.randint(0, 200))
        waiting = cocotb.start_soon(bench.pci.set("queue_select", 1))
        await wait_cycles(dut, random.randint(0, 12))
        dut.reset.value = 1
        for _ in range(2000):
            await wait_cycles(dut, 1)
            if int(dut.reset_done.value):
                break
        assert int(dut.reset_done.value) and waiting.done()
        dut.reset.value = 0
        await wait_cycles(dut, 3)
        assert await bench.pci.get("queue_select") == 0


@cocotb.test()
async def reset_in_the_middle_of_a_frame(dut) -> None:
    """What is left of a frame from the network is not taken for one."""
    bench = NetBench(dut)
    await bench.begin()
    bench.rx.give(bytes(9000))
    bench.rx.stall = 0.98
    await wait_cycles(dut, 300)
    await bench.pci.reset()
    await bench.initialize()
    bench.post(0, [9100])
    bench.publish(0)
    bench.rx.stall = 0.0
    await wait_cycles(dut, 1500)
    bench.rx.give(b"whole" * 20)
    assert (await bench.received(0)).frame == b"whole" * 20


@cocotb.test()
async def a_stopped_queue_works_after_a_reset(dut) -> None:
    bench = NetBench(dut)
    await bench.begin()
    bench.queues[1].add([Buffer(0x60000, 0)])
    bench.publish(1)
    await wait_cycles(dut, 500)
    assert await bench.fault(1)
    await bench.pci.reset()
    await bench.initialize()
    assert not await bench.fault(1)
    bench.transmit(b"again" * 20)
    bench.publish(1)
    assert await bench.tx.recv() == b"again" * 20


@cocotb.test()
async def status_is_what_was_written(dut) -> None:
    bench = await idle_device(dut)
    for status in (ACKNOWLEDGE, ACKNOWLEDGE | DRIVER, ACKNOWLEDGE | DRIVER | FAILED):
        await bench.pci.set("device_status", status)
        assert await bench.pci.get("device_status") == status
    await bench.pci.reset()
    await bench.pci.set("device_status", ACKNOWLEDGE | DRIVER | DRIVER_OK)  # without FEATURES_OK
    await bench.pci.reset()


@pytest.mark.parametrize("width", some(WIDTHS))
def test_virtio_transport(width: int) -> None:
    chosen = at_width(width, "reset_under_load.*0")
    run("virtio_net", __file__, params=params(width), ports=network_card(width), random_state=True, env=chosen)
