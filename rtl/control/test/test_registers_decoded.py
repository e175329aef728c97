# SPDX-License-Identifier: Apache-2.0
"""The decoders that are written by hand name every register of their block, by the constants that are made from its description."""

from __future__ import annotations

import re

import pytest
from nacelle_tb.cci import blocks
from nacelle_tb.sources import RTL

DECODERS = {
    "management": ["roce/clients/roce_management_registers.sv"],
    "admission": ["roce/admission/roce_admission_registers.sv"],
    "event_log": ["control/event_log_registers.sv"],
    "trace": ["telemetry/frame_trace_registers.sv"],
    "histograms": ["telemetry/call_histograms_registers.sv"],
    "images": ["compute/images/image_store.sv"],
    "sensors": ["telemetry/board_sensors.sv"],
    "copy": ["copy/copy_registers.sv"],
    "classifier": ["classify/classify_registers.sv", "classify/classify_flow_registers.sv", "classify/classify_meter_registers.sv"],
    "socket": ["compute/socket/socket_registers.sv", "compute/socket/socket_swap.sv"],
    "stream": ["compute/stream/stream_registers.sv"],
    "traffic": ["compute/kernels/kernel_traffic.sv"],
}
# The socket answers the words that the block of a kernel begins with.
HEADER = {"TYPE", "VERSION", "NEXT"}


@pytest.mark.parametrize("name", DECODERS)
def test_every_register_is_decoded(name: str) -> None:
    text = "".join((RTL / file).read_text() for file in DECODERS[name])
    named = set(re.findall(r"\bAT_(\w+)", text))
    registers = blocks()[name]["registers"]
    if name == "traffic":
        # Its settings are an array, whose length the module checks.
        settings = [register["name"] for register in registers if register["access"] == "w" and register["name"] != "CONTROL"]
        assert {settings[0], settings[-1]} <= named
        registers = [register for register in registers if register["name"] not in {*settings, *HEADER}]
    if name == "admission":
        # What an entry says is a table, whose bounds the module checks.
        table = {"HANDLE", "DEADLINE", "ADDRESS", "ADDRESS_2", "TOKEN_0", "TOKEN_1", "TOKEN_2"}
        registers = [register for register in registers if register["name"] not in table]
    if name == "socket":
        # Its counters of datagrams are another unit's, read by their place.
        counters = [register["name"] for register in registers if register["name"].startswith("DATAGRAMS_")]
        assert {counters[0], counters[-1]} <= named
        registers = [register for register in registers if register["name"] not in counters]
    assert {register["name"] for register in registers} <= named
