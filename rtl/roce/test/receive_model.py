# SPDX-License-Identifier: Apache-2.0
"""What a responder does with a packet (IBTA 9.6, 9.7), in a few lines: the model that the receive side is compared with."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from types import SimpleNamespace

from nacelle_tb.roce import Frame, op

MAX_PSN = 1 << 24


def acknowledgement(qpn: int, psn: int, msn: int, syndrome: int | None = None) -> SimpleNamespace:
    """As ack_tx_t; a positive one if no syndrome is given."""
    syndrome = op("SYNDROME_ACK") if syndrome is None else syndrome
    return SimpleNamespace(qpn=qpn, psn=psn % MAX_PSN, aeth=SimpleNamespace(syndrome=syndrome, msn=msn % MAX_PSN))


@dataclass
class Qp:
    """The receive side of a queue pair that was set up."""

    epsn: int
    mtu: int
    peer: str
    timer: int
    receives: deque[tuple[int, int, int]] = field(default_factory=deque)  # addr, length, wr_id
    msn: int = 0
    nak_sent: bool = False
    message: str | None = None
    base: int = 0
    length: int = 0
    offset: int = 0
    wr_id: int = 0
    error: bool = False


@dataclass
class Region:
    """A registered memory region."""

    qpn: int
    addr: int
    length: int
    write: bool = True


NAMES = {"SEND": "RC_SEND", "WRITE": "RC_RDMA_WRITE"}


def _forms() -> dict[int, tuple[str, bool, bool, bool]]:
    """Opcode -> (SEND or WRITE, first, last, with immediate)."""
    forms = {}
    for kind, name in NAMES.items():
        forms[op(f"{name}_FIRST")] = (kind, True, False, False)
        forms[op(f"{name}_MIDDLE")] = (kind, False, False, False)
        for imm, suffix in ((False, ""), (True, "_WITH_IMM")):
            forms[op(f"{name}_LAST{suffix}")] = (kind, False, True, imm)
            forms[op(f"{name}_ONLY{suffix}")] = (kind, True, True, imm)
    return forms


class Model:
    """The receive side. `packet` takes a frame; what must come out is in the lists."""

    def __init__(self, qps: int) -> None:
        self.numbers = range(2, 2 + qps)
        self.forms = _forms()
        self.responses = {op(f"RC_RDMA_READ_RESPONSE_{form}") for form in ("FIRST", "MIDDLE", "LAST", "ONLY")}
        self.responses.add(op("RC_ATOMIC_ACKNOWLEDGE"))
        self.qps: dict[int, Qp] = {}
        self.regions: dict[int, Region] = {}
        self.memory: dict[int, int] = {}
        self.acks: list[SimpleNamespace] = []
        self.ack_rx: list[SimpleNamespace] = []
        self.completions: list[tuple[int, ...]] = []
        self.events: list[tuple[int, int]] = []
        self.counts: Counter[str] = Counter()

    def _nak(self, frame: Frame, qp: Qp, syndrome: str, status: str | None = None) -> None:
        self.acks.append(acknowledgement(frame.qpn, qp.epsn, qp.msn, op(syndrome)))
        self.counts["sent_nak"] += 1
        if status:
            qp.error = True
            self.events.append((frame.qpn, op(status)))

    def _invalid(self, frame: Frame, qp: Qp, status: str = "WC_LOC_QP_OP_ERR") -> None:
        self.counts["rx_invalid_request"] += 1
        self._nak(frame, qp, "SYNDROME_NAK_INVALID_REQ", status)

    def packet(self, frame: Frame) -> None:
        """One frame."""
        if frame.tver or frame.pkey & 0x7FFF != 0x7FFF or frame.qpn == 1 or frame.opcode >> 5:
            self.counts["drop_bad_bth"] += 1
            return
        qp = self.qps.get(frame.qpn)
        if frame.qpn not in self.numbers:
            self.counts["drop_no_qp"] += 1
        elif qp is None or qp.error:
            self.counts["drop_qp_state"] += 1
        elif qp.peer != frame.src:
            self.counts["drop_wrong_peer"] += 1
        else:
            self.counts["rx_packet"] += 1
            self._from_peer(frame, qp)

    def _from_peer(self, frame: Frame, qp: Qp) -> None:
        if frame.opcode == op("RC_ACKNOWLEDGE"):
            syndrome = frame.ext[0]
            self.ack_rx.append(acknowledgement(frame.qpn, frame.psn, int.from_bytes(frame.ext[1:4], "big"), syndrome))
            if name := ("rcv_ack", "rcv_rnr_nak", None, "rcv_nak")[syndrome >> 5 & 3]:
                self.counts[name] += 1
        elif frame.opcode in self.responses:
            self.counts["drop_ghost_ack"] += 1
        elif (distance := (frame.psn - qp.epsn) % MAX_PSN) >= MAX_PSN // 2:
            self.counts["duplicate_request"] += 1
            self.counts["sent_ack"] += 1
            self.acks.append(acknowledgement(frame.qpn, qp.epsn - 1, qp.msn))
        elif distance:
            self.counts["out_of_sequence"] += 1
            if not qp.nak_sent:
                self._nak(frame, qp, "SYNDROME_NAK_PSN_SEQ")
            qp.nak_sent = True
        else:
            self._expected(frame, qp)

    def _expected(self, frame: Frame, qp: Qp) -> None:
        if frame.opcode not in self.forms:
            return self._invalid(frame, qp)
        kind, first, last, imm = self.forms[frame.opcode]
        if qp.message != (None if first else kind):
            return self._invalid(frame, qp)
        takes_receive = first if kind == "SEND" else imm
        if takes_receive and not qp.receives:
            self.acks.append(acknowledgement(frame.qpn, qp.epsn, qp.msn, op("SYNDROME_RNR_NAK") + qp.timer))
            self.counts["sent_rnr_nak"] += 1
            qp.nak_sent = True
            return None
        size = len(frame.payload)
        if (size != qp.mtu) if not last else not (0 if first else 1) <= size <= qp.mtu:
            return self._invalid(frame, qp)
        base, length = qp.base, qp.length
        if first and kind == "WRITE":
            base, key, length = (int.from_bytes(frame.ext[a:b], "big") for a, b in ((0, 8), (8, 12), (12, 16)))
            if length > 1 << 31:
                return self._invalid(frame, qp)
            region = self.regions.get(key)
            if length and not (
                region and region.write and region.qpn == frame.qpn
                and region.addr <= base and base + length <= region.addr + region.length
            ):  # fmt: skip
                self.counts["rx_write_access_err"] += 1
                return self._nak(frame, qp, "SYNDROME_NAK_REM_ACCESS", "WC_LOC_PROT_ERR")
        if takes_receive:
            addr, room, qp.wr_id = qp.receives.popleft()
            if kind == "SEND":
                base, length = addr, room
        offset = 0 if first else qp.offset
        total = offset + size
        opcode = op("WC_RECV") if kind == "SEND" else op("WC_RECV_RDMA_WITH_IMM")
        if kind == "SEND" and total > length:
            self.completions.append((op("WC_LOC_LEN_ERR"), opcode, frame.qpn, qp.wr_id))
            return self._invalid(frame, qp, "WC_LOC_LEN_ERR")
        if kind == "WRITE" and not (total == length if last else total < length):
            return self._invalid(frame, qp)

        self.memory.update(zip(range(base + offset, base + total), frame.payload, strict=True))
        qp.base, qp.length, qp.offset, qp.message = base, length, total, None if last else kind
        qp.epsn = (qp.epsn + 1) % MAX_PSN
        qp.nak_sent = False
        if last:
            qp.msn += 1
            self.counts["rcv_send" if kind == "SEND" else "rcv_write"] += 1
            if kind == "SEND" or imm:
                at = 16 if kind == "WRITE" and first else 0
                value = int.from_bytes(frame.ext[at : at + 4], "big") if imm else None
                self.completions.append((op("WC_SUCCESS"), opcode, frame.qpn, qp.wr_id, total, int(frame.solicited), value))
        if frame.ackreq:
            self.acks.append(acknowledgement(frame.qpn, frame.psn, qp.msn))
            self.counts["sent_ack"] += 1
        return None
