# SPDX-License-Identifier: Apache-2.0
"""The RTL device and Linux over IPv6, both ways: with link-local addresses, and with global ones that are set by hand."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import active
import checks
from guest import Guest, GuestError
from outcome import Outcome
from wire import ROOT, Wire, WireError

STEP = "ipv6"
LIBRARY = ROOT / "build" / "sim" / "libnacelle_sim_512_ipv6.so"  # the standard device has no IPv6
OWN, THEIRS = ipaddress.IPv6Address("2001:db8:77::1"), ipaddress.IPv6Address("2001:db8:77::2")
TENTATIVE_FOR = 30  # seconds, at most, of duplicate address detection


@dataclass(frozen=True)
class Network:
    """Both ends by addresses of one scope."""

    scope: str
    device: str
    """As a program in the guest names it."""
    guest: str
    """As the device is told it."""


def link_local(mac: bytes) -> ipaddress.IPv6Address:
    """The link-local address that follows from a MAC address (RFC 4291, appendix A)."""
    return ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:])


def own_address(wire: Wire, name: str) -> ipaddress.IPv6Address:
    """The link-local address of a device, as soon as it is in use. Raises WireError if it is not."""

    def register(name_of_it: str) -> int:
        return int(wire.run("config", "get", name, name_of_it).stdout.split()[-1], 0)

    end = time.monotonic() + TENTATIVE_FOR
    while not register("device.IPV6_STATE.has_local"):
        if time.monotonic() > end:
            raise WireError(f"{name} has no link-local address")
        time.sleep(0.2)
    words = [register(word) for word in ("MAC_HI", "MAC_LO")]
    return link_local(words[0].to_bytes(2, "big") + words[1].to_bytes(4, "big"))


def bring_up(guest: Guest) -> str:
    """Gives the guest's interface its IPv6 addresses, and returns the link-local one. Raises GuestError if it gets none."""
    guest.run(f"echo 0 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6; /sbin/ip -6 address add {THEIRS}/64 dev eth0 nodad")
    end = time.monotonic() + TENTATIVE_FOR
    while time.monotonic() < end:
        found = guest.run("/sbin/ip -6 -o address show dev eth0 scope link -tentative").output.split()
        if "inet6" in found:
            return found[found.index("inet6") + 1].partition("/")[0]
        time.sleep(0.2)
    raise GuestError(f"{guest.name} has no link-local address")


def ipv6(wire: Wire, guest: Guest, loss: float, patterns: Sequence[str]) -> Iterator[Outcome]:
    """Linux calls the RTL device, and is called by it."""
    kind = checks.RTL
    arguments = [*kind.arguments, "--library", str(LIBRARY), "--ipv6", str(OWN), "--loss", f"{loss:g}", "--seed", "13"]
    theirs = bring_up(guest)
    try:
        with wire.device(kind.name, f"{kind.ip}/16", *arguments, capture=f"{STEP}-mtu{guest.mtu}-loss{loss:g}"):
            own = own_address(wire, kind.name)
            for network in (Network("link-local", f"{own}%eth0", theirs), Network("global", str(OWN), str(THEIRS))):
                circumstances = f"IPv6 {network.scope}, {checks.heading(guest, loss)}"
                yield from checks.verbs(guest, network.device, f"{kind.name}, {circumstances}", loss, patterns)
                yield from active.calls(wire, guest, kind, network.guest, f"{kind.name}, {circumstances}", loss, "-6")
    finally:
        guest.run("echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
