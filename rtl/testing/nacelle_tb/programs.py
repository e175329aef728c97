# SPDX-License-Identifier: Apache-2.0
"""Two devices on a line, with queue pairs between them and work requests made by hand: software on their management ports."""

from __future__ import annotations

from types import TracebackType

from .management import Manager, ManagerError, QpAttributes, State
from .pair import IP, MAC, Line
from .peer import ip_bytes, mac_bytes
from .session import SimDevice, configure

QPN, OTHER = 2, 3
LOCAL, REMOTE, SIZE = 0x1000_0000, 0x2000_0000, 0x1000
SIGNALED = 1 << 4


class Programs:
    """Software at each device, on its management port."""

    def __init__(self, width: int, device: str = "standard") -> None:
        self.devices = [SimDevice(width, device=device) for _ in range(2)]
        for device, ip, mac in zip(self.devices, IP, MAC, strict=True):
            configure(device, ip=ip, mac=mac)
        self.line = Line(*self.devices)
        self.line.step(1000)
        self.managers = [Manager(device) for device in self.devices]
        for qpn in (QPN, OTHER):
            self.make(qpn)
        self.rkey = self.managers[1].register(REMOTE, SIZE)
        self.mine = bytes(i * 7 & 0xFF for i in range(3 * SIZE))
        self.devices[0].dram_write(LOCAL - SIZE, self.mine)

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends both."""
        self.line.close()
        for device in self.devices:
            device.close()

    def make(self, qpn: int) -> None:
        """A queue pair at both ends."""
        for me, manager in enumerate(self.managers):
            mac, ip = (int.from_bytes(b, "big") for b in (mac_bytes(MAC[1 - me]), ip_bytes(IP[1 - me])))
            manager.set_up(qpn, QpAttributes(mac, ip, qpn))

    def again(self, qpn: int = QPN) -> None:
        """It has failed: a new one in its place."""
        for manager in self.managers:
            manager.reset(qpn)
        self.make(qpn)

    def post(self, me: int, opcode: int, lkey: int, addr: int = LOCAL, length: int = SIZE, qpn: int = QPN, wr_id: int = 0) -> None:
        """A work request, from or to `addr`; the far memory is REMOTE."""
        words = {0: qpn, 1: opcode | SIGNALED, 2: wr_id, 3: addr, 4: 0, 5: length, 6: REMOTE, 7: 0, 8: self.rkey, 9: 0, 14: lkey}
        self.managers[me].run("POST", words)

    def completion(self, me: int) -> tuple[int, int]:
        """Its wr_id and status."""
        for _ in range(400):
            try:
                _, word, wr_id, *_ = self.managers[me].run("POLL_CQ", {}, results=5)
                return wr_id, word & 0x1F
            except ManagerError:
                self.line.step(500)
        raise TimeoutError("no completion")

    def state(self, me: int, qpn: int = QPN) -> State:
        """Of a queue pair."""
        return State(self.managers[me].run("QP_QUERY", {0: qpn}, results=1)[0])

    def remote(self, data: bytes | None = None) -> bytes:
        """Far memory, with as much before and behind it; `data` is put there first."""
        if data is not None:
            self.devices[1].dram_write(REMOTE - SIZE, data)
        return self.devices[1].dram_read(REMOTE - SIZE, 3 * SIZE)

    def local(self) -> bytes:
        """Near memory, likewise."""
        return self.devices[0].dram_read(LOCAL - SIZE, 3 * SIZE)
