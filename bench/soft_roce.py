# SPDX-License-Identifier: Apache-2.0
"""The kernel's soft-RoCE over a lossy cable: WRITEs between two Linux guests in QEMU, by perftest's ib_write_bw.

The guests are those of `interop/`. They run in emulation, so their bandwidth says nothing of Linux on a real machine; how much of
it is left when frames are lost does. The cable between them loses frames in both directions by a seed. None of Nacelle is in it.
"""

from __future__ import annotations

import contextlib
import random
import re
import selectors
import socket
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "interop"))

from guest import Guest, GuestError
from image import Image, ImageError, build
from peers.peer import NotMeasured

SERVER, CLIENT = "10.77.1.1", "10.77.1.2"
FRAME = 1 << 16
MESSAGE = 65536
# How long one run may take: with loss it may stand still for the most part.
SECONDS = 45
# Waits for the server's port, 18515.
LISTENS = "until grep -q ':4853 .* 0A ' /proc/net/tcp; do usleep 50000; done"


class Cable:
    """Passes frames between the sockets of two guests, and loses a share of them."""

    def __init__(self, folder: Path) -> None:
        self.loss = 0.0
        self.ends = [folder / "left", folder / "right"]
        self._random = random.Random(7)
        self._stop = threading.Event()
        self._selector = selectors.DefaultSelector()
        for end, other in zip(self.ends, reversed(self.ends), strict=True):
            end.mkdir()
            here = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            here.bind(str(end / "switch.sock"))
            here.settimeout(1)
            self._selector.register(here, selectors.EVENT_READ, str(other / "guest.sock"))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for key, _ in self._selector.select(0.2):
                assert isinstance(key.fileobj, socket.socket)
                frame = key.fileobj.recv(FRAME)
                if self._random.random() >= self.loss:
                    # A guest that has ended takes nothing.
                    with contextlib.suppress(OSError):
                        key.fileobj.sendto(frame, key.data)

    def close(self) -> None:
        """Ends it."""
        self._stop.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()


class SoftRoce:
    """Two guests and the cable between them."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()
        try:
            self.image: Image = build()
            self._cable = Cable(Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="nacelle-"))))
            self._stack.callback(self._cable.close)
            left, right = self._cable.ends
            self._server, self._client = (
                self._stack.enter_context(Guest(self.image, end, "guest", f"{ip}/16", mtu=4200))
                for end, ip in ((left, SERVER), (right, CLIENT))
            )
            self.kernel = self._server.run("uname -r").output.strip()
            self._client.ready()
        except (ImageError, GuestError) as error:
            self._stack.close()
            raise NotMeasured(str(error).splitlines()[0]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()

    @property
    def title(self) -> str:
        """What it is."""
        return f"soft-RoCE of Linux {self.kernel}, ib_write_bw {self.image.versions['perftest']} (Debian), in QEMU guests"

    def bandwidth(self, loss: float, messages: int) -> float:
        """Bytes a second of so many WRITEs while this share of the frames is lost."""
        command = f"ib_write_bw -x 1 -F -s {MESSAGE} -n {messages}"
        self._cable.loss = 0.0
        try:
            server = self._server.start(command)
            try:
                # What it writes comes when it ends.
                self._server.run(LISTENS, SECONDS)
                self._cable.loss = loss
                done = self._client.run(f"{command} {SERVER}", SECONDS)
            finally:
                server.stop()
        except GuestError as error:
            raise NotMeasured(str(error).splitlines()[0]) from error
        finally:
            self._cable.loss = 0.0
        found = re.search(rf"^\s*{MESSAGE}\s+{messages}\s+\S+\s+(\S+)", done.output, re.MULTILINE)
        if not done.ok or found is None:
            last = done.output.strip().splitlines()
            raise NotMeasured(f"ib_write_bw ended with status {done.status}: {last[-1] if last else 'it said nothing'}")
        return float(found[1]) * (1 << 20)
