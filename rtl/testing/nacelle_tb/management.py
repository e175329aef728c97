# SPDX-License-Identifier: Apache-2.0
"""The management port of a simulated device: queue pairs and regions (docs/reference/management.md)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from .cci import address
from .svtypes import constant


class Registers(Protocol):
    """Whoever reads and writes the device's registers."""

    def read(self, address: int) -> int:
        """A register."""
        ...

    def write(self, address: int, value: int) -> None:
        """A register."""
        ...


class State(IntEnum):
    """qp_state_e"""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQD = 4
    SQE = 5
    ERR = 6


# What is counted for each queue pair: names of qp_counter_e, in the order of the result registers.
QP_COUNTERS = (
    "sent_pkts sent_bytes sent_responses sent_response_bytes rcvd_pkts rcvd_bytes rcvd_responses rcvd_response_bytes "
    "packet_retransmit local_ack_timeout_err rnr_nak_retry_err packet_seq_err duplicate_request out_of_seq_request sent_nak "
    "send_rnr_err np_cnp_sent rp_cnp_handled"
).split()


class ManagerError(Exception):
    """A command was refused."""


def command(name: str) -> int:
    """A command's number, by its name in roce_management_pkg without MAN_."""
    return constant(f"roce_management_pkg::MAN_{name}")


@dataclass(frozen=True)
class QpAttributes:
    """What a queue pair is set up with; names of qp_attr_t."""

    dst_mac: int
    dst_ip: int
    dest_qp_num: int
    pd: int = 1
    client: int = 1
    access: int = 0xF
    path_mtu: int = 5
    selective_repeat: bool = False
    rq_psn: int = 0
    min_rnr_timer: int = 1
    max_dest_rd_atomic: int = 8
    sq_psn: int = 0
    timeout: int = 8
    retry_cnt: int = 7
    rnr_retry: int = 7
    max_rd_atomic: int = 8
    traffic_class: int = 0

    def words(self) -> dict[int, int]:
        """Argument registers 2 and up."""
        return {
            2: self.dst_mac & 0xFFFF_FFFF,
            3: self.dst_mac >> 32,
            4: self.dst_ip,
            5: self.dest_qp_num | self.traffic_class << 24,
            6: self.pd | self.client << 8 | self.access << 12 | self.path_mtu << 16 | int(self.selective_repeat) << 19,
            7: self.rq_psn,
            8: self.min_rnr_timer | self.max_dest_rd_atomic << 8,
            9: self.sq_psn,
            10: self.timeout | self.retry_cnt << 8 | self.rnr_retry << 12 | self.max_rd_atomic << 16,
        }


class Manager:
    """The management port of one device."""

    def __init__(self, device: Registers) -> None:
        self.device = device

    def run(self, name: str, arguments: dict[int, int], results: int = 0) -> list[int]:
        """Gives a command and returns the first `results` words of its result.

        Raises ManagerError with the error code if it is refused.
        """
        for index, value in arguments.items():
            self.device.write(address("management.ARGUMENT") + 4 * index, value)
        self.device.write(address("management.COMMAND"), command(name))
        while (status := self.device.read(address("management.STATUS"))) & 1:
            pass
        if error := status >> 8 & 0xFF:
            raise ManagerError(f"{name} {arguments}: error {error}")
        return [self.device.read(address("management.RESULT") + 4 * i) for i in range(results)]

    def set_up(self, qpn: int, attributes: QpAttributes, state: State = State.RTS) -> None:
        """RESET -> INIT, RTR or RTS."""
        self.run("QP_SETUP", {0: qpn, 1: state, **attributes.words()})

    def reset(self, qpn: int) -> None:
        """Any state -> RESET."""
        self.run("QP_RESET", {0: qpn})

    def counters(self, qpn: int) -> dict[str, int]:
        """What a queue pair counted since it was set up, by the names in QP_COUNTERS; each modulo 2^32."""
        return dict(zip(QP_COUNTERS, self.run("QP_COUNTERS", {0: qpn}, results=len(QP_COUNTERS)), strict=True))

    def register(self, addr: int, length: int, *, pd: int = 1, access: int = 0xF, qpn: int = 0) -> int:
        """Registers a region and returns its key."""
        words = {1: pd | access << 8, 2: qpn, 3: addr & 0xFFFF_FFFF, 4: addr >> 32, 5: length}
        return self.run("MR_REGISTER", words, results=1)[0]
