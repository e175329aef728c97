# SPDX-License-Identifier: Apache-2.0
"""Linux guests with soft-RoCE under QEMU, on a virtual wire.

    with Guest(image, wire, "left", "10.77.1.1/16") as guest:
        print(guest.run("ibv_devinfo").output)

It boots from the moment it is made, and the first command waits until it is ready: several boot side by side.

A guest is ready in three to four seconds on a machine that is not busy. It needs no root: its network is the wire's AF_UNIX
datagrams. It runs in QEMU's own emulation, which works on every machine; NACELLE_ACCEL=kvm takes KVM instead.
"""

from __future__ import annotations

import base64
import ipaddress
import os
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from image import Image
from qemu import Qemu

QEMU = "qemu-system-x86_64"
ACCELERATOR = os.environ.get("NACELLE_ACCEL", "tcg")


class GuestError(Exception):
    """The guest did not start, or has ended; has the last lines of its console."""


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    command: str
    status: int
    """Exit status; 124 if its time ran out."""
    output: str
    """What it wrote to stdout and stderr."""

    @property
    def ok(self) -> bool:
        """True if it succeeded."""
        return self.status == 0


class Job:
    """A command that runs in a guest."""

    def __init__(self, guest: Guest, key: str, command: str) -> None:
        self.guest = guest
        self.key = key
        self.command = command

    def wait(self, timeout: float) -> Result:
        """Waits until the command has ended; when `timeout` seconds have passed, kills it and all that it started."""
        answer = self.guest._answer(self.key, timeout)
        if answer:
            return Result(self.command, *answer)
        result = self.stop()
        return Result(self.command, 124, f"{result.output}\n(killed after {timeout:g} s)")

    def stop(self) -> Result:
        """Kills the command if it still runs."""
        self.guest.run(f"kill -KILL -$(cat /tmp/{self.key}.pid)", timeout=20)
        status, output = self.guest._answer(self.key, 20) or (124, "(cannot be killed)")
        return Result(self.command, status, output)

    def wait_for(self, text: str, timeout: float = 20) -> None:
        """Waits until the command has written `text`. Raises GuestError if it ends or the time runs out before."""
        end = time.monotonic() + timeout
        while True:
            output = self.guest.run(f"cat /tmp/{self.key}.out").output
            if text in output:
                return
            if self.key in self.guest.answers or time.monotonic() > end:
                raise GuestError(f"{self.command} did not write {text!r}, but:\n{output}")
            time.sleep(0.05)


class Guest:
    """A Linux with one soft-RoCE device, rxe0 on eth0. `ip` is its address with the length of the prefix.

    Its network card is QEMU's on the wire, or what the options `card` make; memory is shared with these. `qemu` is another QEMU
    than that of this machine.

    Raises GuestError if there is no QEMU.
    """

    def __init__(
        self,
        image: Image,
        wire: Path,
        name: str,
        ip: str,
        *,
        mtu: int = 1500,
        memory_mib: int = 256,
        processors: int = 1,
        card: Sequence[str] = (),
        qemu: Qemu | None = None,
    ) -> None:
        self.name = name
        self.ip = ip.partition("/")[0]
        self.mtu = mtu
        self.answers: dict[str, tuple[int, str]] = {}
        self._received = b""
        self._jobs = 0
        self._console = tempfile.NamedTemporaryFile(prefix=f"guest-{name}-", suffix=".log")
        mac = "52:54:" + ipaddress.ip_address(self.ip).packed.hex(":")
        if not qemu and not shutil.which(QEMU):
            raise GuestError(f"{QEMU} is missing. Try: sh tools/setup.sh interop")
        own = [
            "-netdev", f"dgram,id=net,local.type=unix,local.path={wire}/{name}.sock,"
                       f"remote.type=unix,remote.path={wire}/switch.sock",
            # Frames as they are on the wire: whole, with checksums, none merged.
            "-device", f"virtio-net-pci,romfile=,netdev=net,mac={mac},csum=off,guest_csum=off,gso=off,guest_tso4=off,"
                       "guest_tso6=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ufo=off",
        ]  # fmt: skip
        self._control, theirs = socket.socketpair()
        with theirs:
            # Not -M microvm: without HPET Linux' calibration of the clock fails now and then on a busy machine.
            self._qemu = subprocess.Popen(
                [
                    *(qemu.command if qemu else [QEMU]), "-M", "pc,vmport=off,memory-backend=memory", "-accel", ACCELERATOR,
                    "-cpu", "qemu64", "-smp", str(processors), "-m", str(memory_mib), "-nodefaults", "-display", "none",
                    "-no-reboot",
                    "-kernel", str(image.kernel), "-initrd", str(image.initramfs),
                    "-append", "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr no_timer_check"
                               f" GUEST_IP={ip} GUEST_MTU={mtu} GUEST_NAME={name}",
                    "-serial", f"file:{self._console.name}",
                    "-object", f"memory-backend-memfd,id=memory,size={memory_mib}M,share=on",
                    *(card or own),
                    "-device", "virtio-serial-pci", "-chardev", f"socket,id=control,fd={theirs.fileno()}",
                    "-device", "virtserialport,chardev=control,name=control",
                ],
                pass_fds=[theirs.fileno()], env=qemu.environment if qemu else None,
                stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, stdout=self._console,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ready(self, timeout: float = 300) -> None:
        """Waits until the guest has booted. Raises GuestError if it ends or the time runs out before."""
        if not self._receive("up", timeout):
            raise GuestError(f"the guest {self.name} was not ready after {timeout:g} s\n{self.console()}")

    def start(self, command: str) -> Job:
        """Starts a shell command and does not wait for it. Raises GuestError if the guest does not boot."""
        self.ready()
        self._jobs += 1
        key = str(self._jobs)
        self._control.sendall(f"{key} {base64.b64encode(command.encode()).decode()}\n".encode())
        return Job(self, key, command)

    def run(self, command: str, timeout: float = 60) -> Result:
        """Runs a shell command to its end, or until `timeout` seconds have passed."""
        return self.start(command).wait(timeout)

    @staticmethod
    def qemu_version() -> str:
        """What QEMU says of itself."""
        return subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=True).stdout

    def console(self) -> str:
        """The last lines of the console."""
        return "\n".join(Path(self._console.name).read_text(errors="replace").splitlines()[-40:])

    def close(self) -> None:
        """Ends the guest at once."""
        self._qemu.kill()
        self._qemu.wait()
        self._control.close()
        self._console.close()

    def _answer(self, key: str, timeout: float) -> tuple[int, str] | None:
        """How a job ended; None if it has not after `timeout` seconds."""
        self._receive(key, timeout)
        return self.answers.pop(key, None)

    def _receive(self, wanted: str, timeout: float) -> bool:
        """Reads what the guest says until the line that begins with `wanted` has come."""
        end = time.monotonic() + timeout
        while wanted not in self.answers:
            if not select.select([self._control], [], [], max(0.0, end - time.monotonic()))[0]:
                return False
            data = self._control.recv(1 << 16)
            if not data:
                raise GuestError(f"the guest {self.name} has ended\n{self.console()}")
            *lines, self._received = (self._received + data).split(b"\n")
            for line in lines:
                key, status, output = [*line.decode().split(" "), "0", ""][:3]
                self.answers[key] = int(status), base64.b64decode(output).decode(errors="replace")
        return True
