# SPDX-License-Identifier: Apache-2.0
"""The caller's link "verbs": the host software itself runs in a guest, where soft-RoCE is its NIC."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from checks import RTL, SOFT, Device, said, verbs_server
from guest import Guest, Result
from image import LIBRARY_DIRS, SYSROOT, Cpio, Image, libraries, run
from outcome import Outcome
from wire import Programs, Wire

STEP = "verbs-link"
TABLE = "Programs of the project call by an RDMA NIC"
ABOUT = (
    "`nacelle` and `nacelle-caller` run in the guest and reach the device by `--link verbs`: soft-RoCE is their NIC"
    " ([Links](links.md#rdma-nic))."
)
ADDRESS = "10.77.1.3/16"
# A device that is killed.
GONE = "10.77.0.4"
PROGRAMS = ("nacelle", "nacelle-caller")
# A call of each size is one message, many packets, and several messages on the way at a time.
SIZES = {SOFT.name: (1, 100_000, 8 << 20), RTL.name: (1, 20_000)}


def image_with_programs(image: Image, programs: Programs, folder: Path) -> Image:
    """The guest's image with the host software and the libraries that it needs."""
    archive = Cpio()
    stripped = []
    for name in PROGRAMS:
        stripped.append(folder / name)
        run("strip", "-o", stripped[-1], programs.path(name))
        archive.file(f"usr/local/bin/{name}", stripped[-1].read_bytes())
    for path in libraries(stripped):
        if path.parent.name != "lib64" and any(path.is_relative_to(SYSROOT / place) for place in LIBRARY_DIRS):
            archive.file(str(path.relative_to(SYSROOT)), path.read_bytes())
    initramfs = folder / "initramfs.cpio"
    # The kernel unpacks archives that follow each other.
    initramfs.write_bytes(image.initramfs.read_bytes() + archive.close())
    return Image(image.kernel, initramfs, image.versions)


def increment(guest: Guest, ip: str, size: int, options: str = "--link verbs") -> Result:
    """Adds 1 to each of `size` zeros, and compares with as many ones."""
    return guest.run(
        f"head -c {size} /dev/zero >/tmp/in; tr '\\0' '\\1' </tmp/in >/tmp/wanted; rm -f /tmp/out;"
        f" nacelle run increment --device {ip} /tmp/in -o /tmp/out {options} && cmp /tmp/out /tmp/wanted",
        timeout=120,
    )


def calls(guest: Guest, kind: Device) -> Iterator[tuple[str, Result]]:
    """Calls that succeed."""
    for size in SIZES[kind.name]:
        yield f"nacelle run increment, {size} bytes", increment(guest, kind.ip, size)
    yield "nacelle run increment, link chosen by the address", increment(guest, kind.ip, 1000, "--link auto")
    yield "nacelle doctor", guest.run(f"nacelle doctor {kind.ip} --link verbs", timeout=120)
    chosen = guest.run(f"nacelle --json describe {kind.ip}", timeout=60)
    yield "auto chooses the NIC", verdict(chosen, '"verbs"', "rxe0 has")
    yield "nacelle ping", guest.run(f"nacelle ping {kind.ip} --link verbs --count 2", timeout=60)


def verdict(result: Result, *texts: str, status: int = 0) -> Result:
    """The result of a program that ended with this status and wrote these texts; else with status 99."""
    right = result.status == status and all(text in result.output for text in texts)
    return Result(result.command, 0 if right else 99, result.output)


def faults(guest: Guest, ip: str) -> Iterator[tuple[str, Result]]:
    """Callers that cannot use the NIC, and are told what to do. The exit status is that of docs/how-to/command-line.md."""
    no_device = increment(guest, ip, 1, "--link verbs:rxe9")
    yield "an RDMA device that is not there", verdict(no_device, "no RDMA device rxe9: there are rxe0", "rdma link", status=3)
    guest.run("mkdir /tmp/none; mount --bind /tmp/none /usr/lib/x86_64-linux-gnu")
    no_library = increment(guest, ip, 1)
    guest.run("umount /usr/lib/x86_64-linux-gnu")
    yield "no librdmacm", verdict(no_library, "cannot load lib", "librdmacm1", status=3)
    guest.run("echo user:x:1000:1000::/tmp:/bin/sh >>/etc/passwd; chmod 666 /dev/infiniband/*; head -c 1000000 /dev/zero >/tmp/in")
    # Root may lock as much as it likes.
    limited = guest.run(f"ulimit -l 64; su user -c 'nacelle run increment --device {ip} /tmp/in -o /tmp/user.out --link verbs'")
    yield "the limit of locked memory", verdict(limited, "limit of locked memory", "ulimit -l", status=3)
    refused = increment(guest, ip, 1, "--link verbs --port 4242")
    yield "nobody listens", verdict(refused, "no service", status=4)
    guest.run("ip link set eth0 down")
    down = increment(guest, ip, 1, f"--link verbs --source {guest.ip}/16")
    guest.run("ip link set eth0 up; sleep 1")
    yield "the port is down", verdict(down, "is DOWN", "ip link set", status=3)


def caller(guest: Guest, ip: str) -> Iterator[tuple[str, Result]]:
    """The cases of `nacelle-caller`."""
    result = guest.run(f"nacelle-caller {ip}", timeout=180)
    found = re.findall(r"^case (\S+) (\S+) ?(.*)$", result.output, re.MULTILINE)
    for name, word, detail in found:
        yield f"library: {name.replace('_', ' ')}", Result("", 0 if word == "ok" else 1, detail)
    if result.status or not found:
        yield "library", result


def verbs_link(wire: Wire, image: Image, linux: Guest | None) -> Iterator[Outcome]:
    """All of it; without a guest that takes the place of a device, a part: no RTL, and no device that vanishes."""
    with tempfile.TemporaryDirectory() as name:
        programs = image_with_programs(image, wire.programs, Path(name))
        with Guest(programs, wire.folder, "verbs", ADDRESS) as guest:
            for kind in (SOFT, RTL) if linux else (SOFT,):
                with wire.device(kind.name, f"{kind.ip}/16", *kind.arguments, capture=f"{STEP}-{kind.name}"):
                    for row, result in calls(guest, kind):
                        yield outcome(kind, row, result)
                    if kind is SOFT:
                        for row, result in (*caller(guest, kind.ip), *faults(guest, kind.ip)):
                            yield outcome(kind, row, result)
            if linux:
                for after in (1, 3):
                    yield outcome(SOFT, f"a device that vanishes during a call, after {after} s", vanish(wire, guest, after))
                with verbs_server(linux):
                    for size in (1, 100_000):
                        result = increment(guest, linux.ip, size)
                        yield Outcome(TABLE, f"nacelle run increment, {size} bytes", "Linux", result.ok, said(result))


def vanish(wire: Wire, guest: Guest, after: float) -> Result:
    """Kills the device, without a word of it, some seconds after calls have begun: in a slow guest inputs are on their way after 1,
    outputs after 3. Then the caller sends nothing but its question whether the device is alive.
    """
    with wire.device("gone", f"{GONE}/16", "--soft", capture=f"{STEP}-gone") as device:
        guest.run("head -c 40000000 /dev/zero >/tmp/long")
        call = f"nacelle run increment --device {GONE} /tmp/long -o /tmp/out --link verbs"
        job = guest.start(f"s=0; while [ $s = 0 ]; do {call}; s=$?; done; exit $s")
        time.sleep(after)
        device.kill()
        return verdict(job.wait(90), "it no longer acknowledges", status=3)


def outcome(kind: Device, row: str, result: Result) -> Outcome:
    """A cell of the table."""
    return Outcome(TABLE, row, kind.name, result.ok, said(result))
