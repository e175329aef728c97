# SPDX-License-Identifier: Apache-2.0
"""Calls in asyncio's event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from typing import Any

import numpy as np
import pytest
from python_package import Served

pytestmark = pytest.mark.xdist_group("python")


@pytest.fixture
def device(served: Served) -> Any:
    with served.connect() as device:
        yield device


def test_calls_run_beside_the_loop(device: Any) -> None:
    async def main() -> None:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0.01)
                turns += 1

        ticking = asyncio.create_task(tick())
        begin = time.monotonic()
        results = await asyncio.gather(*(device.call_async("hold", bytes([3]), out=2) for _ in range(4)))
        took = time.monotonic() - begin
        assert results == [b"\3\3"] * 4 and 0.3 <= took < 1.2, took
        assert turns >= 10
        a = np.eye(3, dtype=np.float32)
        assert (await device.matmul.call_async(a, a)).tolist() == a.tolist()
        assert await device.count.call_async(b"x", data := bytearray(4), immediate=5) is data and data[0] == 5
        ticking.cancel()

    asyncio.run(main())


def test_calls_on_one_connection_without_a_thread(device: Any) -> None:
    async def main() -> None:
        with device.open(contexts=4) as connection:
            calls = [connection.hold.create(bytes([tenths]), out=1) for tenths in (3, 1, 2)]
            threads = threading.active_count()
            ended: list[int] = []

            async def run(call: Any) -> None:
                for _ in range(2):
                    call.invoke()
                    await call.finished()
                ended.append(call.result[0])

            await asyncio.gather(*(run(call) for call in calls))
            assert ended == [1, 2, 3] and threading.active_count() == threads
            for call in calls:
                call.close()

    asyncio.run(main())


def test_an_error_reaches_its_task_alone(device: Any, served: Served) -> None:
    async def main() -> None:
        right, late, wrong = await asyncio.gather(
            device.call_async("hold", b"\3", out=1),
            device.call_async("hold", b"\xff", out=1, timeout=0.2),
            device.call_async("matmul", bytes(64), b"1", b"2", out=4),
            return_exceptions=True,
        )
        assert right == b"\3"
        assert isinstance(late, served.nacelle.DeadlineExceeded) and isinstance(wrong, served.nacelle.Kernel)

    asyncio.run(main())


@pytest.mark.parametrize("on", ["device", "connection"])
def test_a_cancelled_task_cancels_its_call(device: Any, on: str) -> None:
    async def main() -> None:
        target = device if on == "device" else device.open()
        out = bytearray(4)
        task = asyncio.create_task(target.call_async("hold", b"\xff", out=out))
        await asyncio.sleep(0.3)
        begin = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - begin < 2
        out.append(1)  # it is no longer in use
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await target.call_async("hold", b"\xff", out=out)
        out.append(1)
        assert await target.call_async("increment", bytearray(b"HAL")) == b"IBM"

    asyncio.run(main())


def test_a_task_that_is_cancelled_during_the_set_up_leaves_nothing(device: Any) -> None:
    async def main() -> None:
        for delay in (0, 0.0005, 0.002):
            out = bytearray(4)
            task = asyncio.create_task(device.call_async("hold", b"\xff", out=out))
            await asyncio.sleep(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.3)
            gc.collect()
            out.append(1)

    asyncio.run(main())


def test_several_loops_and_a_device_that_is_closed(device: Any, served: Served) -> None:
    for _ in range(2):
        assert asyncio.run(device.call_async("hold", b"\0", out=1)) == b"\0"
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(asyncio.run(device.call_async("hold", b"\1", out=1)))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert results == [b"\1", b"\1"]

    async def main() -> None:
        task = asyncio.create_task(device.call_async("hold", b"\xff", out=1))
        await asyncio.sleep(0.3)
        device.close()
        with pytest.raises(served.nacelle.Error):
            await task

    begin = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - begin < 5


def test_an_event_loop_of_the_program(device: Any) -> None:
    import select

    with device.create("hold", b"\2", out=1) as call:
        poller = select.poll()
        poller.register(device, select.POLLIN)
        call.invoke()
        end = time.monotonic() + 10
        while not call.test():
            assert time.monotonic() < end
            poller.poll(1000)
            device.progress()
        assert call.result == b"\2"
