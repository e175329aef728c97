# SPDX-License-Identifier: Apache-2.0
"""What a responder does with a packet (IBTA 9.6, 9.7; selective repeat: docs/reference/extensions.md): the model that the
receive side is compared with."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field, replace

from nacelle_tb.roce import Frame, op

MAX_PSN = 1 << 24
WINDOW = 128
ECN_CE = 3
RIGHTS = ("remote_write", "remote_read", "remote_atomic", "remote_invalidate")
ALL = frozenset(RIGHTS)

Respond = tuple[int | str, ...]


def acknowledgement(qpn: int, psn: int, msn: int, syndrome: int | None = None) -> Respond:
    """A respond_t of kind ACK, as `receive_bench.respond` reads it; a positive one if no syndrome is given."""
    return ("ACK", qpn, psn % MAX_PSN, op("SYNDROME_ACK") if syndrome is None else syndrome, msn % MAX_PSN)


@dataclass
class Qp:
    """The receive side of a queue pair that was set up."""

    epsn: int
    mtu: int
    peer: str
    timer: int
    state: str = "RTS"
    pd: int = 1
    access: frozenset[str] = ALL
    selective: bool = False
    max_rd: int = 8
    receives: deque[tuple[int, int, int]] = field(default_factory=deque)  # addr, length, wr_id
    msn: int = 0
    nak_sent: bool = False
    established: bool = False
    message: str | None = None
    base: int = 0
    rkey: int = 0  # of the WRITE in progress
    length: int = 0
    offset: int = 0
    wr_id: int = 0
    outstanding: int = 0  # READs and atomics that were not answered
    remembered: set[int] = field(default_factory=set)

    @property
    def error(self) -> bool:
        return self.state == "ERR"


@dataclass
class Region:
    """A registered memory region. qpn 0: of all QPs of the domain."""

    pd: int
    qpn: int
    addr: int
    length: int
    rights: frozenset[str] = ALL


@dataclass(frozen=True)
class Form:
    """What a request's opcode says."""

    kind: str
    first: bool = True
    last: bool = True
    imm: bool = False
    inv: bool = False

    @property
    def right(self) -> str | None:
        return {"WRITE": "remote_write", "READ": "remote_read", "ATOMIC": "remote_atomic"}.get(self.kind)


def _forms() -> dict[int, Form]:
    forms = {
        op("RC_RDMA_READ_REQUEST"): Form("READ"),
        op("RC_COMPARE_SWAP"): Form("ATOMIC"),
        op("RC_FETCH_ADD"): Form("ATOMIC"),
        op("RC_SEND_LAST_WITH_INVALIDATE"): Form("SEND", first=False, inv=True),
        op("RC_SEND_ONLY_WITH_INVALIDATE"): Form("SEND", inv=True),
    }
    for kind, name in {"SEND": "RC_SEND", "WRITE": "RC_RDMA_WRITE"}.items():
        forms[op(f"{name}_FIRST")] = Form(kind, last=False)
        forms[op(f"{name}_MIDDLE")] = Form(kind, first=False, last=False)
        for imm, suffix in ((False, ""), (True, "_WITH_IMM")):
            forms[op(f"{name}_LAST{suffix}")] = Form(kind, first=False, imm=imm)
            forms[op(f"{name}_ONLY{suffix}")] = Form(kind, imm=imm)
    return forms


class Refused(Exception):
    """A NAK that ends the QP: counter, syndrome, status of the event and of the receive in hand."""


INVALID = ("resp_invalid_request", "SYNDROME_NAK_INVALID_REQ", "WC_LOC_QP_OP_ERR")
TOO_LONG = ("resp_local_length_error", "SYNDROME_NAK_INVALID_REQ", "WC_LOC_LEN_ERR")
ACCESS = ("resp_remote_access_errors", "SYNDROME_NAK_REM_ACCESS", "WC_LOC_PROT_ERR")


def _word(frame: Frame, at: int, size: int) -> int:
    return int.from_bytes(frame.ext[at : at + size], "big")


class Model:
    """The receive side. `packet` takes a frame; what must come out is in the lists."""

    def __init__(self, qps: int) -> None:
        self.numbers = range(2, 2 + qps)
        self.forms = _forms()
        self.answers = {op(f"RC_RDMA_READ_RESPONSE_{form}") for form in ("FIRST", "MIDDLE", "LAST", "ONLY")}
        self.answers |= {op("RC_ACKNOWLEDGE"), op("RC_ATOMIC_ACKNOWLEDGE")}
        self.qps: dict[int, Qp] = {}
        self.regions: dict[int, Region] = {}
        self.memory: dict[int, int] = {}
        self.responds: list[Respond] = []
        self.responses: list[Frame] = []
        self.completions: dict[int, list[tuple[int | None, ...]]] = defaultdict(list)  # by QP
        self.events: list[tuple[int, int, int]] = []
        self.counts: Counter[str] = Counter()
        self.pulses: Counter[str] = Counter()

    # ---- what comes out ----

    def _ack(self, qpn: int, psn: int, msn: int, syndrome: int | None = None) -> None:
        self.responds.append(acknowledgement(qpn, psn, msn, syndrome))

    def _gap(self, frame: Frame, qp: Qp) -> None:
        """The NAK of selective repeat."""
        self._ack(frame.qpn, qp.epsn, frame.psn, op("SYNDROME_NAK_PSN_SEQ"))

    def _complete(self, qpn: int, status: str, opcode: str, wr_id: int, *more: int | None) -> None:
        self.completions[qpn].append((op(status), op(opcode), qpn, wr_id, *more))
        if status == "WC_WR_FLUSH_ERR":
            self.counts["resp_cqe_flush_error"] += 1

    def _flush(self, qpn: int, qp: Qp) -> None:
        qp.state = "ERR"
        while qp.receives:
            self._complete(qpn, "WC_WR_FLUSH_ERR", "WC_RECV", qp.receives.popleft()[2])

    # ---- commands ----

    def modify(self, qpn: int, state: str) -> bool:
        """QP_MODIFY: whether it is allowed."""
        qp = self.qps.get(qpn)
        before = {"RTR": {"INIT"}, "RTS": {"RTR", "SQD"}, "SQD": {"RTS"}, "ERR": {"INIT", "RTR", "RTS", "SQD", "ERR"}}
        if qp is None or qp.state not in before.get(state, ()):
            return False
        if state == "ERR" and not qp.error:
            if qp.message == "SEND":
                self._complete(qpn, "WC_WR_FLUSH_ERR", "WC_RECV", qp.wr_id)
            self._flush(qpn, qp)
        qp.state = state
        return True

    def fail(self, qpn: int, denied: bool = False) -> None:
        """Memory refused what was to be read for the peer, or its key is not valid any more: the response unit has reported it."""
        qp = self.qps.get(qpn)
        if qp is None or qp.state not in ("RTR", "RTS", "SQD"):
            return
        self.counts["resp_remote_access_errors" if denied else "resp_local_protection_errors"] += 1
        self.events.append((op("EVENT_QP_FATAL"), qpn, op("WC_LOC_PROT_ERR")))
        if qp.message == "SEND":
            self._complete(qpn, "WC_LOC_PROT_ERR", "WC_RECV", qp.wr_id)
        self._flush(qpn, qp)

    def post(self, qpn: int, receive: tuple[int, int, int]) -> None:
        """A receive that finds room."""
        qp = self.qps[qpn]
        qp.receives.append(receive)
        if qp.error:
            self._flush(qpn, qp)

    # ---- packets ----

    def packet(self, frame: Frame) -> None:
        """One frame."""
        frame = replace(frame, psn=frame.psn % MAX_PSN)
        cnp = frame.opcode == op("CNP")
        answer = frame.opcode in self.answers
        if frame.tver or frame.pkey & 0x7FFF != 0x7FFF or frame.qpn == 1 or (frame.opcode >> 5 and not cnp):
            self.counts["drop_bad_bth"] += 1
            return
        if answer:
            self.responses.append(frame)
            if frame.ecn != ECN_CE:
                return
        qp = self.qps.get(frame.qpn)
        if frame.qpn not in self.numbers:
            reason = "drop_no_qp"
        elif qp is None or qp.state not in ("RTR", "RTS", "SQD"):
            reason = "drop_qp_state"
        elif qp.peer != frame.src:
            reason = "drop_wrong_peer"
        else:
            self.pulses["active"] += 1
            self.pulses["ecn_marked"] += frame.ecn == ECN_CE
            self.pulses["cnp"] += cnp
            self.counts["np_ecn_marked_roce_packets"] += frame.ecn == ECN_CE
            if not cnp and not answer:
                self.counts["rcvd_pkts"] += 1
                self._request(frame, qp)
            return
        self.counts[reason] += not answer

    def _granted(self, frame: Frame, qp: Qp, rkey: int, right: str, place: tuple[int, int] | None = None) -> bool:
        region = self.regions.get(rkey)
        if region is None or region.pd != qp.pd or region.qpn not in (0, frame.qpn) or right not in region.rights:
            return False
        return place is None or (region.addr <= place[0] and sum(place) <= region.addr + region.length)

    def _reth(self, frame: Frame) -> tuple[int, int, int]:
        """Address, key, length."""
        form = self.forms[frame.opcode]
        return _word(frame, 0, 8), _word(frame, 8, 4), 8 if form.kind == "ATOMIC" else _word(frame, 12, 4)

    def _responses(self, frame: Frame, qp: Qp) -> int:
        """PSNs that the packet takes."""
        form = self.forms.get(frame.opcode)
        return max(1, -(-self._reth(frame)[2] // qp.mtu)) if form and form.kind == "READ" else 1

    def _form_wrong(self, frame: Frame, qp: Qp, form: Form) -> bool:
        """Lengths and alignment that are wrong whatever the QP's state is."""
        size = len(frame.payload)
        if form.kind in ("READ", "ATOMIC"):
            va, _, length = self._reth(frame)
            return size > 0 or (va % 8 > 0 if form.kind == "ATOMIC" else length > 1 << 31)
        if form.kind == "WRITE" and form.first:
            length = self._reth(frame)[2]
            if length > 1 << 31 or (qp.selective and form.imm and length and not size):
                return True
        return size != qp.mtu if not form.last else not (0 if form.first else 1) <= size <= qp.mtu

    def _disabled(self, qp: Qp, form: Form) -> bool:
        return form.right is not None and form.right not in qp.access

    def _may_touch(self, frame: Frame, qp: Qp, form: Form) -> bool:
        va, rkey, length = self._reth(frame)
        return not length or self._granted(frame, qp, rkey, form.right, (va, length))

    def _execute(self, frame: Frame, qp: Qp, duplicate: bool) -> None:
        """A READ or atomic goes to the response unit."""
        va, rkey, length = self._reth(frame)
        head = (int(duplicate), frame.qpn, frame.psn, op("SYNDROME_ACK"), qp.msn % MAX_PSN, va, rkey)
        if self.forms[frame.opcode].kind == "READ":
            self.responds.append(("READ", *head, qp.mtu, length))
        else:
            swap = int(frame.opcode == op("RC_COMPARE_SWAP"))
            self.responds.append(("ATOMIC", *head, swap, _word(frame, 12, 8), _word(frame, 20, 8)))

    def _place(self, base: int, frame: Frame) -> None:
        self.memory.update(zip(range(base, base + len(frame.payload)), frame.payload, strict=True))

    def _request(self, frame: Frame, qp: Qp) -> None:
        distance = (frame.psn - qp.epsn) % MAX_PSN
        if distance >= MAX_PSN // 2:
            self._duplicate(frame, qp)
        elif distance:
            self._ahead(frame, qp, distance)
        else:
            try:
                self._expected(frame, qp)
            except Refused as refusal:
                counter, syndrome, status = refusal.args[0]
                self.counts[counter] += 1
                self._ack(frame.qpn, qp.epsn, qp.msn, op(syndrome))
                self.events.append((op("EVENT_QP_FATAL"), frame.qpn, op(status)))
                if hand := refusal.args[1]:
                    self._complete(frame.qpn, status, *hand)
                self._flush(frame.qpn, qp)

    def _duplicate(self, frame: Frame, qp: Qp) -> None:
        self.counts["duplicate_request"] += 1
        form = self.forms.get(frame.opcode)
        if form is None or form.kind in ("SEND", "WRITE"):
            return self._ack(frame.qpn, qp.epsn - 1, qp.msn)
        past = (qp.epsn - frame.psn - self._responses(frame, qp)) % MAX_PSN < MAX_PSN // 2
        wrong = self._form_wrong(frame, qp, form) or self._disabled(qp, form)
        if wrong or not past or (form.kind == "READ" and not self._may_touch(frame, qp, form)):
            self.counts["drop_duplicate_forgotten"] += 1
        else:
            self._execute(frame, qp, True)
        return None

    def _ahead(self, frame: Frame, qp: Qp, distance: int) -> None:
        self.counts["out_of_seq_request"] += 1
        if qp.nak_sent:
            return
        if not qp.selective:
            self._ack(frame.qpn, qp.epsn, qp.msn, op("SYNDROME_NAK_PSN_SEQ"))
            qp.nak_sent = True
            return
        form = self.forms.get(frame.opcode)
        alone = form == Form("WRITE") and not self._form_wrong(frame, qp, form) and not self._disabled(qp, form)
        if alone and distance < WINDOW and frame.psn not in qp.remembered:
            va, _, length = self._reth(frame)
            if length == len(frame.payload) and self._may_touch(frame, qp, form):
                self._place(va, frame)
                qp.remembered.add(frame.psn)
                self.counts["out_of_order_placed"] += 1
                self.counts["rx_write_requests"] += 1
        self._gap(frame, qp)

    def _expected(self, frame: Frame, qp: Qp) -> None:
        """The packet that is next in turn."""
        form = self.forms.get(frame.opcode)
        hand = ("WC_RECV", qp.wr_id) if qp.message == "SEND" else None
        if form is None or self._disabled(qp, form) or qp.message != (None if form.first else form.kind):
            raise Refused(INVALID, hand)
        if form.kind in ("READ", "ATOMIC") and qp.outstanding >= qp.max_rd:
            raise Refused(INVALID, hand)
        takes = form.first if form.kind == "SEND" else form.imm
        if takes and not qp.receives:
            self._ack(frame.qpn, qp.epsn, qp.msn, op("SYNDROME_RNR_NAK") + qp.timer)
            self.counts["out_of_buffer"] += 1
            qp.nak_sent = True
            return
        base, length, offset = qp.base, qp.length, 0 if form.first else qp.offset
        opcode = "WC_RECV" if form.kind == "SEND" else "WC_RECV_RDMA_WITH_IMM"
        if takes:
            addr, room, qp.wr_id = qp.receives.popleft()
            hand = (opcode, qp.wr_id)
            if form.kind == "SEND":
                base, length = addr, room
        if self._form_wrong(frame, qp, form):
            raise Refused(INVALID, hand)
        if form.right and form.first:
            base, qp.rkey, length = self._reth(frame)
            if not self._may_touch(frame, qp, form):
                raise Refused(ACCESS, hand)
        elif form.right and qp.rkey not in self.regions:
            raise Refused(ACCESS, hand)
        if form.inv and not self._granted(frame, qp, _word(frame, 0, 4), "remote_invalidate"):
            raise Refused(ACCESS, hand)
        size = len(frame.payload)
        if qp.selective and form == Form("WRITE", imm=True):
            offset = length - size  # the end of the whole
        total = offset + size
        if form.kind == "SEND" and total > length:
            raise Refused(TOO_LONG, hand)
        if form.kind == "WRITE" and not (offset >= 0 and (total == length if form.last else total < length)):
            raise Refused(INVALID, hand)
        self._accept(frame, qp, form, base, length, offset, opcode)

    def _accept(self, frame: Frame, qp: Qp, form: Form, base: int, length: int, offset: int, opcode: str) -> None:
        self._place(base + offset, frame)
        total = offset + len(frame.payload)
        qp.base, qp.length, qp.offset, qp.message = base, length, total, None if form.last else form.kind
        qp.nak_sent = False
        if not qp.established:
            qp.established = True
            self.events.append((op("EVENT_COMM_EST"), frame.qpn, 0))
        if form.last:
            qp.msn += 1
            self.counts[f"rx_{form.kind.lower()}_requests"] += 1
        if form.inv:
            del self.regions[_word(frame, 0, 4)]
        if form.last and (form.kind == "SEND" or form.imm):
            value = _word(frame, 16 if form.kind == "WRITE" and form.first else 0, 4) if form.imm or form.inv else None
            self._complete(
                frame.qpn, "WC_SUCCESS", opcode, qp.wr_id, total, int(frame.solicited), int(form.imm), int(form.inv), value
            )
        executes = form.kind in ("READ", "ATOMIC")
        if executes:
            self._execute(frame, qp, False)
            qp.outstanding += 1
        qp.epsn = (qp.epsn + self._responses(frame, qp)) % MAX_PSN
        jumped = False
        while qp.epsn in qp.remembered:
            qp.remembered.remove(qp.epsn)
            qp.epsn = (qp.epsn + 1) % MAX_PSN
            qp.msn += 1
            jumped = True
        if qp.remembered:
            self._gap(frame, qp)
        elif jumped or (frame.ackreq and not executes):
            self._ack(frame.qpn, qp.epsn - 1, qp.msn)
