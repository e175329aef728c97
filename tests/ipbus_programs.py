# SPDX-License-Identifier: Apache-2.0
"""Programs that manage a device by IPbus, each in a process of its own, in the namespace of the TAP:
python ipbus_programs.py NAME KIND, where KIND is `rtl` or `soft`.

Those that begin with `uhal` use CERN's client, unchanged; the others speak the protocol by themselves, to send what it never
sends. Each ends with an exception if it does not find what it expects.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "rtl" / "testing"))
from nacelle_tb import cci, ipbus

DEVICE, PORT = "10.77.0.2", 50001
HUB = "127.0.0.1:10203"
TOKEN = [0x6E616365, 0x6C6C6520, 0x746F6B65, 0x6E212121]
ID, VERSION = 0x4E41434C, 1
# Word addresses.
AT_ID, AT_SEED, AT_KEEPALIVE, AT_RATES, RATES, AT_LOGIN, AT_LOGOUT = 0x0, 0xD, 0x10, 0x28, 11, 0x3C, 0x40
# What differs: which counters there are side by side, and after how long without traffic a connection is probed.
SOFT = sys.argv[2:] == ["soft"]
AT_COUNTERS, COUNTERS = (cci.address("service_rx_message") // 4, 2) if SOFT else (0x100, 100)
KEEPALIVE = 5000 if SOFT else 30000
TABLE = f"""<?xml version="1.0" encoding="ISO-8859-1"?>
<node id="nacelle">
  <node id="ID" address="{AT_ID:#x}" permission="r"/>
  <node id="VERSION" address="0x1" permission="r"/>
  <node id="RANDOM_SEED" address="{AT_SEED:#x}"/>
  <node id="KEEPALIVE_MS" address="{AT_KEEPALIVE:#x}">
    <node id="LOW" mask="0x00ff"/>
    <node id="HIGH" mask="0xff00"/>
  </node>
  <node id="RATES" address="{AT_RATES:#x}" mode="incremental" size="{RATES}"/>
  <node id="CCI_LOGIN" address="{AT_LOGIN:#x}" mode="non-incremental" size="4" permission="w"/>
  <node id="CCI_LOGOUT" address="{AT_LOGOUT:#x}" permission="w"/>
  <node id="COUNTERS" address="{AT_COUNTERS:#x}" mode="incremental" size="{COUNTERS}" permission="r"/>
</node>
"""
# Settings that take every value of these bits, and the bits (docs/reference/registers.md).
RATE_BITS = [0xFFFFF, 0xFFFF, 0xFFFF, 0xFFFFFF, 0xFFFF, 0xF, 0x7F, 0xFFFFF, 0xFFFFF, 0x1F, 0xFFFF]


# ---- uhal ----


def hardware(timeout_ms: int = 2000, *, by_hub: bool = False):  # noqa: ANN201 - uhal has no types
    """The device by the stock client: directly, or by way of a hub on this host."""
    import uhal

    uhal.setLogLevelTo(uhal.LogLevel.FATAL)
    with tempfile.NamedTemporaryFile("w", suffix=".xml", delete=False) as table:
        table.write(TABLE)
    way = f"chtcp-2.0://{HUB}?target={DEVICE}:{PORT}" if by_hub else f"ipbusudp-2.0://{DEVICE}:{PORT}"
    device = uhal.getDevice("nacelle", way, f"file://{table.name}")
    device.setTimeoutPeriod(timeout_ms)
    return device


def log_in(device) -> None:  # noqa: ANN001
    """What a stock client does to be let in."""
    device.getNode("CCI_LOGIN").writeBlock(TOKEN)
    device.dispatch()


def fails(action: Callable[[], object], device) -> str:  # noqa: ANN001
    """The device refuses it; what uhal says."""
    import uhal

    action()
    try:
        device.dispatch()
    except uhal.exception as error:
        return str(error)
    raise AssertionError("it worked")


def uhal_public() -> None:
    """Without a login: what the device is can be read, nothing else, and nothing can be written."""
    device = hardware()
    ident, version = device.getNode("ID").read(), device.getNode("VERSION").read()
    config = device.getClient().readConfigurationSpace(0)
    device.dispatch()
    assert (int(ident), int(version), int(config)) == (ID, VERSION, ID)
    assert "bus error" in fails(lambda: device.getNode("KEEPALIVE_MS").read(), device)
    assert "bus error" in fails(lambda: device.getNode("KEEPALIVE_MS").write(1), device)
    assert "bus error" in fails(lambda: device.getNode("RANDOM_SEED").read(), device)
    assert "bus error" in fails(lambda: device.getClient().rmw_bits(AT_KEEPALIVE, 0, 1), device)
    assert "bus error" in fails(lambda: device.getNode("CCI_LOGIN").writeBlock([1, 2, 3, 4]), device)


def uhal_work() -> None:
    """Everything that uhal can do, with a login."""
    import uhal

    device = hardware()
    log_in(device)
    node = device.getNode
    # A word, its fields, and what is read back in the same packet.
    before = node("KEEPALIVE_MS").read()
    node("KEEPALIVE_MS").write(0x1234)
    whole, low = node("KEEPALIVE_MS").read(), node("KEEPALIVE_MS.LOW").read()
    device.dispatch()
    assert int(before) == KEEPALIVE and int(whole) == 0x1234 and int(low) == 0x34
    node("KEEPALIVE_MS.HIGH").write(0x56)  # a read-modify-write
    device.dispatch()
    bits = device.getClient().rmw_bits(AT_KEEPALIVE, 0xFF00, 0x78)
    total = device.getClient().rmw_sum(AT_KEEPALIVE, 0x10)
    whole = node("KEEPALIVE_MS").read()
    device.dispatch()
    assert (int(bits), int(total), int(whole)) == (0x5634, 0x5678, 0x5688)
    # Blocks.
    for seed in range(3):
        values = [(0x9E3779B1 * (seed * RATES + i + 1)) & mask for i, mask in enumerate(RATE_BITS)]
        node("RATES").writeBlock(values)
        block = node("RATES").readBlock(RATES)
        device.dispatch()
        assert list(block) == values
    same = device.getClient().readBlock(AT_KEEPALIVE, 255, uhal.BlockReadWriteMode.NON_INCREMENTAL)
    counters = node("COUNTERS").readBlock(COUNTERS)
    device.dispatch()
    assert set(same) == {0x5688} and counters[0] > 0
    # More than a packet, more than one at once.
    words = [node("KEEPALIVE_MS").read() for _ in range(600)]
    device.dispatch()
    assert {int(word) for word in words} == {0x5688}
    # The login may use the four words of the register, too.
    node("CCI_LOGOUT").write(1)
    device.dispatch()
    assert "bus error" in fails(lambda: node("KEEPALIVE_MS").write(1), device)
    device.getClient().writeBlock(AT_LOGIN, TOKEN, uhal.BlockReadWriteMode.INCREMENTAL)
    node("KEEPALIVE_MS").write(30000)
    whole = node("KEEPALIVE_MS").read()
    device.dispatch()
    assert int(whole) == 30000
    # What nobody may do by way of the network, and what is not there.
    assert "bus error" in fails(lambda: node("RANDOM_SEED").read(), device)
    log_in(device)
    assert "bus error" in fails(lambda: device.getClient().read(0x3F000), device)


def uhal_lossy() -> None:
    """The stock client repeats nothing by itself: its user does, and logs in again, since uhal makes a new socket. It leaves the
    contexts of the old ones behind, and so has to wait at times until one counts as silent."""
    import uhal

    device = hardware(300)
    done = failed = 0
    authorised = False
    while done < 40:
        assert failed < 100, f"{failed} failures, {done} done"
        try:
            if not authorised:
                log_in(device)
                authorised = True
            device.getNode("KEEPALIVE_MS").write(done)
            value = device.getNode("KEEPALIVE_MS").read()
            device.dispatch()
            assert int(value) == done
            done += 1
        except uhal.exception:
            failed += 1
            authorised = False
            time.sleep(0.3)
    print(f"{done} done, {failed} failed")


def uhal_hub_lossy() -> None:
    """By way of a hub the stock client notices nothing of a network that loses packets: each access is done, and done once. The hub
    has a session for each client: the login of one is not that of another."""
    import uhal

    clients = [hardware(20_000, by_hub=True) for _ in range(2)]
    for device in clients:
        log_in(device)
    clients[0].getNode("KEEPALIVE_MS").write(0)
    clients[0].dispatch()
    rounds = 40
    for _ in range(rounds):
        for device in clients:
            # Several packets under way: each block is one.
            sums = []
            for _ in range(3):
                sums.append(device.getClient().rmw_sum(AT_KEEPALIVE, 1))
                device.getClient().readBlock(AT_KEEPALIVE, 250, uhal.BlockReadWriteMode.NON_INCREMENTAL)
            device.dispatch()
            assert [int(one) - int(sums[0]) for one in sums] == [0, 1, 2]
    total = clients[1].getNode("KEEPALIVE_MS").read()
    clients[1].dispatch()
    assert int(total) == 6 * rounds, int(total)
    stranger = hardware(20_000, by_hub=True)
    ident = stranger.getNode("ID").read()
    stranger.dispatch()
    assert int(ident) == ID
    assert "bus error" in fails(lambda: stranger.getNode("KEEPALIVE_MS").write(1), stranger)


def uhal_hub_silent() -> None:
    """A client that the hub has disconnected for its silence connects again by itself, and has to log in again."""
    import uhal

    device = hardware(20_000, by_hub=True)
    log_in(device)
    device.getNode("KEEPALIVE_MS").write(7)
    device.dispatch()
    time.sleep(2.5)
    for attempt in range(2):
        try:
            ident = device.getNode("ID").read()
            device.dispatch()
            assert int(ident) == ID
            break
        except uhal.exception:
            assert attempt == 0, "it does not come back"
    assert "bus error" in fails(lambda: device.getNode("KEEPALIVE_MS").write(8), device)
    log_in(device)
    device.getNode("KEEPALIVE_MS").write(9)
    device.dispatch()


# ---- by itself ----


class Endpoint:
    """A UDP socket with a port of its own."""

    def __init__(self, timeout: float = 2.0) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("", 0))
        self.socket.connect((DEVICE, PORT))
        self.timeout = timeout

    def exchange(self, packet: bytes) -> list[bytes]:
        """Sends, and waits for an answer or the time-out; whatever has come. Slowly enough for the budget of strangers: device time
        passes slowly on a busy machine."""
        time.sleep(0.02)
        self.socket.send(packet)
        return self.receive()

    def receive(self) -> list[bytes]:
        """What comes, until nothing does."""
        found, wait = [], self.timeout
        while select.select([self.socket], [], [], wait)[0]:
            found.append(self.socket.recv(2048))
            wait = 0.0
        return found

    def ask(self, packet: bytes) -> bytes:
        """One answer, on a network that loses nothing."""
        responses = self.exchange(packet)
        assert len(responses) == 1, responses
        return responses[0]

    def info(self, *transaction: list[int]) -> int:
        """The information code of the last transaction of a packet."""
        return ipbus.answers(self.ask(ipbus.control(*transaction)))[-1].info

    def log_in(self, token: list[int] = TOKEN) -> int:
        """The information code of a login."""
        return self.info(ipbus.write(AT_LOGIN, token))


def exactly_once() -> None:
    """Loss, doubling and reordering in both directions: each addition is done once."""
    clients = [ipbus.Client(Endpoint(0.2).exchange) for _ in range(2)]
    for client in clients:
        client.put(AT_LOGIN, TOKEN)
    clients[0].put(AT_KEEPALIVE, [0])
    rounds = 60
    for _ in range(rounds):
        for client in clients:
            [answer] = client.run(ipbus.rmw_sum(AT_KEEPALIVE, 1))
            assert answer.info == ipbus.SUCCESS
    [total] = clients[1].get(AT_KEEPALIVE)
    assert total == 2 * rounds, total
    recovered = sum(client.recovered for client in clients)
    print(f"{recovered} of {2 * rounds} packets recovered")
    assert recovered, "nothing was lost"


def attacks() -> None:
    """What a host of the network can do without the token."""
    admin, other_port, stranger = Endpoint(), Endpoint(), Endpoint()
    assert admin.log_in() == ipbus.SUCCESS
    put = ipbus.write(AT_KEEPALIVE, [77])
    assert admin.info(put) == ipbus.SUCCESS
    # The same host by another port is a stranger.
    assert other_port.info(put) == ipbus.WRITE_ERROR
    assert other_port.info(ipbus.read(AT_KEEPALIVE)) == ipbus.READ_ERROR
    assert other_port.info(ipbus.read(AT_ID)) == ipbus.SUCCESS
    # A response without authorisation is no longer than its request.
    many = ipbus.control(*[ipbus.read(AT_ID) for _ in range(183)])
    assert len(stranger.ask(many)) == len(many)
    assert stranger.info(ipbus.read(AT_ID, 2)) == ipbus.READ_ERROR
    # A response that was not received comes again three times, and no more.
    assert stranger.ask(ipbus.control(ipbus.read(AT_ID), ident=1))
    assert [len(stranger.exchange(ipbus.resend(1))) for _ in range(5)] == [1, 1, 1, 0, 0]
    # Many strangers take every context that is not authorised; the one that was thrown out is not served, the admin is.
    crowd = [Endpoint() for _ in range(5)]
    for one in crowd:
        assert ipbus.answers(one.ask(ipbus.control(ipbus.read(AT_ID), ident=1)))[0].info == ipbus.SUCCESS
    assert stranger.exchange(ipbus.control(ipbus.read(AT_ID), ident=2)) == []
    assert ipbus.words_of(stranger.ask(ipbus.status()))[3] == ipbus.packet_header(1)
    assert admin.info(put) == ipbus.SUCCESS
    # A wrong token keeps out nobody who has the right one.
    assert stranger.log_in([*TOKEN[:3], TOKEN[3] ^ 1]) == ipbus.WRITE_ERROR
    assert admin.info(put) == ipbus.SUCCESS
    assert stranger.log_in() == ipbus.SUCCESS and stranger.info(put) == ipbus.SUCCESS
    assert stranger.info(ipbus.write(AT_LOGOUT, [0])) == ipbus.SUCCESS
    assert stranger.info(put) == ipbus.WRITE_ERROR


def flood() -> None:
    """A flood of what costs most, beside an administrator at work."""
    admin = Endpoint(10.0)  # the simulation has to get through the flood
    assert admin.log_in() == ipbus.SUCCESS
    strangers = [Endpoint() for _ in range(8)]
    heavy = ipbus.control(*[ipbus.read(AT_ID) for _ in range(183)])
    for i in range(12):
        for one in strangers:
            for _ in range(12):
                one.socket.send(heavy)
        response = admin.ask(ipbus.control(ipbus.write(AT_KEEPALIVE, [i]), ipbus.read(AT_KEEPALIVE)))
        assert ipbus.answers(response)[-1].data == [i]


def malformed() -> None:
    """Packets that mean nothing: no answer, and the device goes on."""
    one = Endpoint(0.02)
    rng = random.Random(1)
    for _ in range(200):
        started = struct.pack(">I", 0x200000F0) + rng.randbytes(rng.randrange(200))
        packet = rng.choice([rng.randbytes(rng.randrange(1500)), started])
        for response in one.exchange(packet):
            assert len(response) <= max(4, len(packet))
    time.sleep(0.2)
    late = Endpoint(1.0)
    assert late.info(ipbus.read(AT_ID)) == ipbus.SUCCESS


if __name__ == "__main__":
    globals()[sys.argv[1]]()
