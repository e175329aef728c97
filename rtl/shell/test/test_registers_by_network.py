# SPDX-License-Identifier: Apache-2.0
"""Registers of the whole device by IPbus, frame by frame: the policy as the register map has it, and the time that a read takes."""

from __future__ import annotations

from nacelle_tb import ipbus
from nacelle_tb.by_network import CCI_PORT, CCI_TOKEN, LOGIN, LOGOUT, TOKEN, Manager
from nacelle_tb.cci import address, blocks
from nacelle_tb.session import SimDevice

KEEPALIVE = address("KEEPALIVE_MS")


def test_every_register_keeps_its_level(device: SimDevice) -> None:
    """Of the device's own block, and the words by which the others are found."""
    for i, word in enumerate(TOKEN):
        device.write(CCI_TOKEN + 4 * i, word)
    manager = Manager(device)
    own = [(register["offset"], register) for register in blocks()["device"]["registers"] if not register["group"]]
    first = [(blocks()[name]["base"], blocks()[name]["registers"][0]) for name in ("management", "socket")]
    for at, register in (*own, *first):
        public = "r" in register["access"] and register["read"] == "public"
        [answer] = manager.run(ipbus.read(at // 4))
        assert answer.info == (ipbus.SUCCESS if public else ipbus.READ_ERROR), f"{at:#x}"
        assert answer.data == ([device.read(at)] if public else [])
        if at % 32 == 0:
            assert manager.run(ipbus.write(at // 4, [1]))[0].info == ipbus.WRITE_ERROR, f"{at:#x}"
    assert manager.run(ipbus.write(LOGIN // 4, TOKEN))[0].info == ipbus.SUCCESS
    manager.authorised = True
    for at, register in (*own, *first):
        readable = "r" in register["access"] and register["read"] != "local"
        assert manager.run(ipbus.read(at // 4))[0].info == (ipbus.SUCCESS if readable else ipbus.READ_ERROR), f"{at:#x}"
        if "w" not in register["access"] or register["write"] == "local":
            assert manager.run(ipbus.write(at // 4, [1]))[0].info == ipbus.WRITE_ERROR, f"{at:#x}"
    answers = manager.run(ipbus.write(KEEPALIVE // 4, [777]), ipbus.rmw_sum(KEEPALIVE // 4, 1), little=True)
    assert [answer.info for answer in answers] == [0, 0] and device.read(KEEPALIVE) == 778
    # Another port of the same host is nobody.
    assert Manager(device, 4001).run(ipbus.write(KEEPALIVE // 4, [1]))[0].info == ipbus.WRITE_ERROR
    assert manager.run(ipbus.write(LOGOUT // 4, [0]), ipbus.write(KEEPALIVE // 4, [1]))[1].info == ipbus.WRITE_ERROR
    assert device.read(KEEPALIVE) == 778


def test_management_can_be_switched_off(device: SimDevice) -> None:
    manager = Manager(device)
    assert manager.run(ipbus.read(0))[0].data == [0x4E41434C]
    device.write(CCI_PORT, 0)
    assert manager.ask(ipbus.control(ipbus.read(0))) is None


def test_a_read_takes_less_than_a_hundred_cycles_on_the_device(device: SimDevice) -> None:
    manager = Manager(device)
    manager.run(ipbus.read(0))
    print(f"{manager.cycles} cycles from the first beat of the request to the first of the answer")
    assert manager.cycles < 100
