# SPDX-License-Identifier: Apache-2.0
"""Images of kernels that come to a whole device by the network: verified, activated and rolled back as those of the build; and what
attackers and unlucky clients do about it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from nacelle_tb import ipbus
from nacelle_tb.by_network import CCI_TOKEN, LOGIN, TOKEN
from nacelle_tb.by_network import Manager as Client
from nacelle_tb.cci import address
from nacelle_tb.device import description
from nacelle_tb.image import BEGIN, ERRORS, FORGET, HEAD_BYTES, VERIFY, VERIFYING, Image, sealed, simulated, words
from nacelle_tb.management import Manager
from nacelle_tb.peer import INPUT, OUTPUT, Region
from nacelle_tb.session import Network, SimDevice, configure
from nacelle_tb.swap import (
    BAD,
    BAD_ARGUMENTS,
    DEVICE,
    INCREMENT,
    MATMUL,
    PRODUCT,
    ROLL_BACK,
    UNKNOWN,
    Load,
    Socket,
    callers,
    where_described,
)

KEY = b"a key that only its owner knows."
STORE = DEVICE.memory_bytes - DEVICE.image_slots * DEVICE.image_slot_bytes
BUILD = int.from_bytes(DEVICE.digest, "big")
FIRST = 2  # number of the image in place 0: sockets 1 and 2 have two images of the build


@pytest.fixture
def device() -> Iterator[SimDevice]:
    with SimDevice(64, line_rate_mbps=0xFFFF_FFFF, device="test") as sim:
        configure(sim)
        yield sim


def provision(device: SimDevice, key: bytes = KEY) -> None:
    for i, word in enumerate(words(key)):
        device.write(address("images.KEY") + 4 * i, word)


def identity(device: SimDevice, number: int, image: int) -> tuple[int, ...]:
    """What the record of an image of the build says of its kernel."""
    socket = Socket(device, number)
    found = []
    for word in range(16):
        socket.write("IMAGE_SELECT", word << 8 | image)
        found.append(socket.read("IMAGE_RECORD"))
    return tuple(found)


class Store:
    """The registers of the image store."""

    def __init__(self, device: SimDevice) -> None:
        self.device = device

    def read(self, name: str) -> int:
        return self.device.read(address(f"images.{name}"))

    def write(self, name: str, value: int) -> None:
        self.device.write(address(f"images.{name}"), value)

    def command(self, command: int, slot: int | None = None) -> str:
        if slot is not None:
            self.write("SELECT", slot)
        self.write("COMMAND", command)
        end = self.device.stats.cycles + 2_000_000
        while (state := self.read("STATE")) & 3 == VERIFYING:
            assert self.device.stats.cycles < end, "it does not end"
            self.device.step(200)
        return ERRORS[state >> 8 & 255]

    def begin(self, slot: int) -> str:
        if (error := self.command(BEGIN, slot)) == "OK":
            self.write("PLACE", (self.read("STATE") >> 16 & 255) << 24)
        return error

    def give(self, data: bytes) -> None:
        for word in words(data):
            self.write("DATA", word)

    def upload(self, slot: int, data: bytes) -> str:
        if (error := self.begin(slot)) != "OK":
            return error
        self.give(data)
        return self.command(VERIFY)

    def bytes(self, slot: int, length: int) -> bytes:
        return self.device.dram_read(STORE + slot * DEVICE.image_slot_bytes, length)


class Uploaded(Socket):
    """A socket whose uploaded images are known by their digests."""

    def begin_by(self, image: int, digest: bytes) -> None:
        for i, word in enumerate(words(digest)):
            self.write("IMAGE_DIGEST", word, i)
        self.write("IMAGE_SELECT", image)
        self.write("IMAGE_COMMAND", 1)

    def activate_by(self, net: Network, image: int, digest: bytes) -> str:
        self.begin_by(image, digest)
        return self.finish(net, 500_000)


def increment(device: SimDevice, padding: int = 64) -> Image:
    return Image(BUILD, PRODUCT, identity(device, PRODUCT, 1), simulated("increment", padding))


def test_an_image_that_came_by_the_network_is_activated(device: SimDevice) -> None:
    """Its upload by IPbus with the token, its functions for callers, its description, and the way back."""
    (peer,) = peers = callers(1)
    net = Network(device, peers)
    where = where_described(net, peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(b"xyz"))])
    provision(device)
    for i, word in enumerate(TOKEN):
        device.write(CCI_TOKEN + 4 * i, word)
    image = increment(device)
    file = image.file(KEY)
    client = Client(device)
    at = {name: address(f"images.{name}") // 4 for name in ("SELECT", "COMMAND", "STATE", "PLACE", "DATA", "KEY")}
    assert client.run(ipbus.write(at["COMMAND"], [BEGIN]))[0].info == ipbus.WRITE_ERROR, "a stranger"
    assert client.run(ipbus.write(LOGIN // 4, TOKEN))[0].info == ipbus.SUCCESS
    client.authorised = True
    assert client.run(ipbus.write(at["KEY"], [1]))[0].info == ipbus.WRITE_ERROR, "the key is a matter of the local bus"
    assert client.run(ipbus.read(at["KEY"]))[0].info == ipbus.READ_ERROR
    [_, _, state] = client.run(ipbus.write(at["SELECT"], [0]), ipbus.write(at["COMMAND"], [BEGIN]), ipbus.read(at["STATE"]))
    number = state.data[0] >> 16 & 255
    every = words(file)
    for i in range(0, len(every), 40):
        answers = client.run(ipbus.write(at["PLACE"], [number << 24 | i]), ipbus.write(at["DATA"], every[i : i + 40], same=True))
        assert [answer.info for answer in answers] == [0, 0]
    assert client.run(ipbus.write(at["COMMAND"], [VERIFY]))[0].info == ipbus.SUCCESS
    store = Store(device)
    while store.read("STATE") & 3:
        device.step(200)
    assert store.read("STATE") >> 8 & 255 == 0 and store.read("SLOT") == 1 << 8 | PRODUCT

    socket = Uploaded(device, PRODUCT)
    assert net.call(peer, MATMUL) == BAD_ARGUMENTS
    assert socket.activate_by(net, FIRST, bytes(32)) == "BAD_DIGEST"
    assert socket.activate_by(net, FIRST, image.digest) == "OK"
    assert socket.active == FIRST and store.read("SLOT") >> 9 == 1
    net.step(6000)
    assert net.read(peer, *where) == description(DEVICE, [int(number == 1) for number in range(len(DEVICE.sockets))])
    assert net.call(peer, INCREMENT) == 0 and net.call(peer, MATMUL) == UNKNOWN
    # It is in use: nothing else comes into its place.
    assert store.command(BEGIN, 0) == "IN_USE"
    socket.write("IMAGE_COMMAND", ROLL_BACK)
    assert socket.finish(net) == "OK" and socket.active == 0
    assert net.call(peer, MATMUL) == BAD_ARGUMENTS
    # And forward again: it is still there.
    socket.write("IMAGE_COMMAND", ROLL_BACK)
    assert socket.finish(net) == "OK" and socket.active == FIRST


def test_an_image_that_is_not_verified_cannot_be_activated(device: SimDevice) -> None:
    """Whichever way it is not, the kernel that was there is there."""
    (peer,) = peers = callers(1)
    net = Network(device, peers)
    net.connect(peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(b"xyz"))])
    store, socket = Store(device), Uploaded(device, PRODUCT)
    image = increment(device, 0)
    good = image.file(KEY)

    def kept() -> None:
        socket.write("IMAGE_SELECT", 16 << 8 | FIRST)
        assert socket.read("IMAGE_RECORD") == 0, "it has no record"
        assert socket.activate_by(net, FIRST, image.digest) == "BAD_IMAGE"
        assert socket.active == 0 and net.call(peer, MATMUL) == BAD_ARGUMENTS

    assert store.begin(0) == "NO_KEY"
    kept()
    provision(device)
    flipped = bytearray(good)
    flipped[random.randrange(HEAD_BYTES, len(good))] ^= 1 << random.randrange(8)
    other_build = Image(BUILD ^ 1, PRODUCT, image.identity, image.payload)
    for data, error in (
        (bytes(flipped), None),
        (image.file(b"another key: not the device's.  "), "BAD_SIGNATURE"),
        (other_build.file(KEY), "BAD_BUILD"),
        (Image(BUILD, 0, image.identity, image.payload).file(KEY), "BAD_SOCKET"),
        (good[:-32], "BAD_LENGTH"),
        (sealed(image.signed[:4] + b"\xff" * 4 + image.signed[8:], KEY), "BAD_HEADER"),
    ):
        found = store.upload(0, data)
        assert found == error if error else found in ("BAD_DIGEST", "BAD_SIGNATURE")
        kept()
    # One that is being uploaded, and whose client goes away.
    assert store.begin(0) == "OK"
    store.give(good[:100])
    kept()
    # One that was verified for another socket.
    assert store.upload(0, Image(BUILD, BAD, image.identity, image.payload).file(KEY)) == "OK"
    kept()
    # A second upload that begins over one that was verified.
    assert store.upload(0, good) == "OK"
    assert store.begin(0) == "OK"
    kept()
    assert store.upload(0, good) == "OK" and socket.activate_by(net, FIRST, image.digest) == "OK"
    assert net.call(peer, INCREMENT) == 0


def test_a_signed_image_that_does_not_work_goes_again(device: SimDevice) -> None:
    """Its bitstream is of no kernel, or of one that says something else; the former kernel is loaded again by itself. An image in
    whose place another upload began is none to go back to."""
    (peer,) = peers = callers(1)
    net = Network(device, peers)
    net.connect(peer)
    net.set_up(peer, [Region(INPUT | OUTPUT, bytearray(b"xyz"))])
    provision(device)
    store, socket = Store(device), Uploaded(device, PRODUCT)
    image = increment(device)
    for payload, error in ((simulated("nothing"), "NOT_LOADED"), (b"incr", "NOT_LOADED"), (simulated("matmul", 8), "NO_IDENTITY")):
        wrong = Image(BUILD, PRODUCT, image.identity, payload)
        assert store.upload(1, wrong.file(KEY)) == "OK"
        assert socket.activate_by(net, FIRST + 1, wrong.digest) == error
        assert socket.active == 0 and net.call(peer, MATMUL) == BAD_ARGUMENTS
    assert store.upload(1, image.file(KEY)) == "OK"
    assert socket.activate_by(net, FIRST + 1, image.digest) == "OK"
    # The key changes while it is there: it stays, and is loaded again if another fails, but it is no image to activate any more.
    provision(device, bytes(reversed(KEY)))
    assert net.call(peer, INCREMENT) == 0
    assert socket.activate_by(net, FIRST + 1, image.digest) == "BAD_IMAGE"
    assert store.upload(0, Image(BUILD, PRODUCT, image.identity, b"none").file(bytes(reversed(KEY)))) == "OK"
    assert socket.activate_by(net, FIRST, Image(BUILD, PRODUCT, image.identity, b"none").digest) == "NOT_LOADED"
    assert socket.active == FIRST + 1 and net.call(peer, INCREMENT) == 0
    socket.begin(0)
    assert socket.finish(net) == "OK"
    socket.write("IMAGE_COMMAND", ROLL_BACK)
    assert socket.finish(net) == "NO_FORMER"
    assert socket.active == 0 and net.call(peer, MATMUL) == BAD_ARGUMENTS


def test_nobody_else_writes_or_reads_the_store(device: SimDevice) -> None:
    """A region of it, made by management for a caller, is good for nothing: neither WRITE nor READ reaches the image."""
    peers = callers(4)
    net = Network(device, peers)
    provision(device)
    store = Store(device)
    image = increment(device)
    good = image.file(KEY)
    assert store.upload(0, good) == "OK"
    manager = Manager(device)
    for i, peer in enumerate(peers):
        net.connect(peer)
        domain = manager.run("QP_QUERY", {0: peer.device_qpn}, results=8)[1] & 0xFF
        key = manager.register(STORE, 4096, pd=domain, qpn=peer.device_qpn)
        naks = net.caller(peer).naks
        if i % 2:
            net.send([peer.read_request(STORE, key, 64)])
        else:
            net.send(peer.write_message(STORE + 96, key, b"\xff" * 64))
        for _ in range(100):
            net.step(1000)
            if naks:
                break
        assert naks, "it was not refused"
        assert store.bytes(0, len(good)) == good
    socket = Uploaded(device, PRODUCT)
    assert socket.activate_by(net, FIRST, image.digest) == "OK"


def test_an_upload_takes_nothing_from_others(device: SimDevice) -> None:
    """The calls of a socket under load take as many cycles beside an upload and its verification as alone, but for the beats of
    memory that these take; no frame more, none lost."""
    load = Load(device)
    provision(device)
    store = Store(device)
    file = increment(device, 1024).file(KEY)
    assert store.begin(0) == "OK"
    load.calls(2)
    alone, moved = load.calls(4)
    for i in range(8):
        store.give(file[i * 32 : i * 32 + 32])
        load.calls(1)
    store.give(file[256:])
    store.write("COMMAND", VERIFY)
    beside, moved_beside = load.calls(4)
    print(f"cycles of a job in socket 0: {alone} alone, {beside} beside a verification; {moved}, {moved_beside}")
    assert moved_beside[:2] == moved[:2]
    beats = (moved_beside[2] - moved[2]) // 8
    assert sum(beside) - sum(alone) <= beats + 32
    while store.read("STATE") & 3:
        load.net.step(500)
    assert store.read("STATE") >> 8 & 255 == 0


def test_nothing_waits_for_ever(device: SimDevice) -> None:
    """Random accesses to the store, with an image in it and a socket that changes: each is answered, and it works after that."""
    rng = random.Random(7)
    net = Network(device, callers(1))
    provision(device)
    store, socket = Store(device), Uploaded(device, PRODUCT)
    image = increment(device)
    file = image.file(KEY)
    assert store.upload(0, file) == "OK"
    names = ("SELECT", "COMMAND", "STATE", "PLACE", "DATA", "SLOT")
    for _ in range(600):
        name = rng.choice(names)
        value = rng.choice((0, 1, 2, 3, rng.getrandbits(32), (store.read("STATE") >> 16 & 255) << 24 | rng.randrange(200)))
        try:
            if rng.random() < 0.1:
                socket.write(rng.choice(("IMAGE_COMMAND", "IMAGE_SELECT")), rng.randrange(5))
            elif rng.random() < 0.7:
                store.write(name, value)
            else:
                store.read(name)
        except OSError:
            pass
    socket.finish(net, 500_000)
    while store.read("STATE") & 3 == VERIFYING:
        device.step(100)
    free = 0 if store.command(FORGET, 0) == "OK" else 1
    assert store.upload(free, file) == "OK"
    assert socket.activate_by(net, FIRST + free, image.digest) == "OK"
