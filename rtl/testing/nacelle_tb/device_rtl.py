# SPDX-License-Identifier: Apache-2.0
"""What the RTL gets from the description of a device:

    device_pkg.sv          the sizes
    kernel_<name>_pkg.sv   the identity of each kernel, the codes of its functions and the addresses of its registers
    socket_kernel.sv       the kernels that a socket can hold
    socket_record.sv       the records of their images
    stream_kernel.sv       the kernel on the path of the network card
    description_pkg.sv     the description of the device for its callers

in a folder of build/generated/devices for each device, width and number of queue pairs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .device import (
    DESCRIPTION_WORD,
    MANAGEMENT_CLIENT,
    MAX_IMAGES,
    MAX_KERNEL_FUNCTIONS,
    MAX_SENSORS,
    NETWORK_HEADERS,
    ROOT,
    RPC_CLIENT,
    SENSOR_KINDS,
    Device,
    Kernel,
    Pcie,
    StreamKernel,
    description,
    revision,
    template,
)
from .rdl import COMMON, read_block
from .rdl_sv import KERNEL_AT, constants

OUT = ROOT / "build" / "generated" / "devices"
MARKED = 1 << 31  # a word of the description that is no text: then the kind of mark, and a kernel
HEAD = "// SPDX-License-Identifier: Apache-2.0\n// Made from {source}. Do not edit.\n\n"


def register_items(kernel: Kernel | StreamKernel) -> tuple[str, str]:
    """Of a kernel with a description of its registers: the items of its package for them, and those of its identity."""
    if kernel.registers is None:
        return "", "block_type: '0, block_version: '0"
    block = read_block(kernel.registers, f"{kernel.module}_regs", kernel.name)
    return f"\n{constants(block, KERNEL_AT)}\n", "block_type: BLOCK_TYPE, block_version: BLOCK_VERSION"


def kernel_package(kernel: Kernel) -> str:
    """The kernel's identity, the codes of its functions, and the addresses of its registers."""
    registers, block = register_items(kernel)
    codes = "\n".join(f"  localparam function_code_t {f.name.upper()} = 7'd{f.code};" for f in kernel.functions)
    listed = ", ".join(f.name.upper() for f in reversed(kernel.functions))
    missing = MAX_KERNEL_FUNCTIONS - len(kernel.functions)
    padding = f"{{{missing}{{7'd0}}}}, " if missing else ""
    return f"""// The kernel `{kernel.name}`: its identity, its functions and its registers.
package {kernel.module}_pkg;
  import compute_pkg::*;

{codes}
{registers}
  // SHA-256 of its module and its descriptions, byte 0 lowest.
  localparam logic [255:0] DIGEST = 256'h{kernel.digest[::-1].hex()};

  localparam kernel_identity_t IDENTITY = '{{
      name: kernel_name("{kernel.name}"), version_major: 16'd{kernel.version[0]}, version_minor: 16'd{kernel.version[1]},
      functions: 4'd{len(kernel.functions)}, function_code: {{{padding}{listed}}},
      {block}
  }};
endpackage
"""


def _by_name(lines: Mapping[str, str]) -> str:
    """A line for each value of KERNEL, the name of a kernel."""
    branches = (f'if (KERNEL == 128\'("{name}")) begin : g_kernel\n    {line}\n  end' for name, line in lines.items())
    return " else ".join(branches)


def socket_kernel(kernels: Sequence[Kernel]) -> str:
    """The module that holds the kernel of a socket."""
    branches = _by_name({kernel.name: f"{kernel.module} #(.DATA_W(DATA_W), .ID_W(ID_W)) kernel (.*);" for kernel in kernels})
    return f"""// The kernels that a socket of this device can hold, by name.
module socket_kernel
  import compute_pkg::*;
#(
    parameter kernel_text_t KERNEL = 128'("{kernels[0].name}"),
    parameter int unsigned  DATA_W = 512,
    parameter int unsigned  ID_W   = 4
) (
    input  logic             clk,
    input  logic             rst,
    output kernel_identity_t identity,
    axil_if.slave            ctrl,
    stream_if.sink           job,
    stream_if.source         done,
    axi_if.master            mem,
    axis_if.sink             rx,
    axis_if.source           tx,
    stream_if.source         wqe,
    stream_if.sink           cqe,
    stream_if.source         connect,
    stream_if.sink           conn,
    axil_if.master           bus,
    axis_if.source           msg_tx,
    axis_if.sink             msg_rx
);
  {branches} else begin : g_unknown
    $fatal(1, "this device has no kernel of this name");
  end
endmodule
"""


def socket_record(kernels: Sequence[Kernel]) -> str:
    """The module that gives the record of a kernel's image."""
    packages = {kernel.name: f"{kernel.module}_pkg" for kernel in kernels}
    branches = _by_name(
        {
            name: f"assign record = '{{identity: {own}::IDENTITY, digest: {own}::DIGEST, default: '0}};"
            for name, own in packages.items()
        }
    )
    return f"""// The records of the images that a socket of this device can hold, by the names of their kernels. Constant.
module socket_record
  import compute_pkg::*;
#(
    parameter kernel_text_t KERNEL = 128'("{kernels[0].name}")
) (
    output image_record_t record
);
  {branches} else begin : g_unknown
    $fatal(1, "this device has no kernel of this name");
  end
endmodule
"""


def stream_package(kernel: StreamKernel) -> str:
    """The identity of a kernel on the path of the network card, and its registers."""
    registers, block = register_items(kernel)
    return f"""// The kernel `{kernel.name}`: its identity and its registers.
package {kernel.module}_pkg;
{registers}
  localparam stream_pkg::identity_t IDENTITY = '{{
      name: compute_pkg::kernel_name("{kernel.name}"),
      version_major: 16'd{kernel.version[0]}, version_minor: 16'd{kernel.version[1]},
      {block},
      keeps_checksums: 1'b{int(kernel.keeps_checksums)}, keeps_flow: 1'b{int(kernel.keeps_flow)}
  }};
endpackage
"""


def stream_kernel(kernel: StreamKernel | None) -> str:
    """The module that is the kernel on the path of the network card. A device without one has the module all the same, and does not
    use it."""
    if kernel:
        body = f"""  assign identity = {kernel.module}_pkg::IDENTITY;
  {kernel.module} #(.DATA_W(DATA_W)) kernel (.clk, .rst, .now, .ctrl, .rx_in, .rx_out, .tx_in, .tx_out);"""
    else:
        body = '  $fatal(1, "this device has no kernel on the path of its network card");'
    return f"""// The kernel on the path of the network card.
module stream_kernel #(
    parameter int unsigned DATA_W = 512
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [47:0]           now,
    output stream_pkg::identity_t identity,
    axil_if.slave                 ctrl,
    axis_if.sink                  rx_in,
    axis_if.source                rx_out,
    axis_if.sink                  tx_in,
    axis_if.source                tx_out
);
{body}
endmodule
"""


def device_package(device: Device) -> str:
    """The sizes of a device, and what tells its build from others."""
    clients = ["NO_CLIENT" if client is None else str(client) for client in device.clients()]
    depths = [device.call_completions, device.management_completions]
    depths += [socket.completions for socket in device.sockets if socket.completions]
    reach = ", ".join(f"{device.targets}'b{mask:0{device.targets}b}" for mask in reversed(device.reach()))
    pcie = device.pcie or Pcie(0, 0, 0, 0, False, False, 0, 0)
    images = []
    for socket in device.sockets:
        names = ["128'd0"] * (MAX_IMAGES - len(socket.images)) + [f'128\'("{kernel.name}")' for kernel in reversed(socket.images)]
        images.append(f"{{{', '.join(names)}}}")
    separator = ",\n      "
    unused = MAX_SENSORS - len(device.sensors)
    sensor_names = [f"128'h{int.from_bytes(sensor.name.encode(), 'little'):x}" for sensor in reversed(device.sensors)]
    sensor_kinds = [f"8'd{SENSOR_KINDS.index(sensor.kind) + 1}" for sensor in reversed(device.sensors)]
    return f"""// The sizes of the device `{device.name}`.
package device_pkg;
  localparam int unsigned DATA_W = {device.data_w};
  localparam int unsigned CLOCK_HZ = {device.clock_hz};
  localparam int unsigned MAX_FRAME = {device.max_frame};           // bytes, without FCS

  localparam int unsigned QPS = {device.queue_pairs};                  // connections at once
  localparam int unsigned MRS = {device.memory_regions};                 // memory regions at once
  localparam int unsigned SQ_DEPTH = {device.send_queue_depth};              // sends outstanding on a QP
  localparam int unsigned RQ_DEPTH = {device.receive_queue_depth};              // receives outstanding on a QP
  localparam int unsigned RD_DEPTH = {device.read_depth};               // READs and atomics outstanding on a QP, at each side

  localparam bit CONGESTION_CONTROL = 1'b{int(device.congestion_control)};
  localparam bit SELECTIVE_REPEAT = 1'b{int(device.selective_repeat)};
  localparam bit MANAGEMENT_PORT = 1'b{int(device.management_port)};      // software on the local bus controls queue pairs
  localparam bit DISCOVERY = 1'b{int(device.discovery)};            // mDNS and LLDP
  localparam bit IPV6 = 1'b{int(device.ipv6)};
  localparam bit LINK_CONTROL = 1'b{int(device.link_control)};         // VLAN and flow control
  localparam bit CLASSIFIER = 1'b{int(device.classifier)};           // rules say who gets which received frames
  localparam bit STREAM = 1'b{int(device.stream is not None)};               // a kernel is on the path of the network card
  localparam bit EVENT_LOG = 1'b{int(device.event_log)};
  localparam bit COUNTERS = 1'b{int(device.counters)};             // of events
  localparam bit HISTOGRAMS = 1'b{int(device.histograms)};           // of the calls of each socket

  localparam int unsigned SOCKETS = {len(device.sockets)};
  localparam int unsigned IMAGES[SOCKETS] = '{{{", ".join(str(len(socket.images)) for socket in device.sockets)}}};
  // The kernels of the images that each socket can hold, by name, the first one lowest.
  localparam logic [{MAX_IMAGES - 1}:0][127:0] KERNELS[SOCKETS] = '{{
      {separator.join(images)}
  }};
  localparam int unsigned MAX_REGIONS = {device.max_regions};           // of a connection
  localparam int unsigned CONTEXTS = {device.contexts};               // of a connection at most
  localparam bit LONG_SET_UP = 1'b{int(device.long_set_up)};          // calls have deadlines and chains

  // Clients of the transport: the RPC engine, software through the management port, and sockets whose kernels start RDMA.
  localparam int unsigned CLIENTS = {len(depths)};
  localparam int unsigned RPC_CLIENT = {RPC_CLIENT};
  localparam int unsigned MANAGEMENT_CLIENT = {MANAGEMENT_CLIENT};
  // The client that the kernel of each socket is.
  localparam int unsigned NO_CLIENT = CLIENTS;
  localparam int unsigned RDMA_CLIENT[SOCKETS] = '{{{", ".join(clients)}}};
  // Connections that the kernel of each socket can open.
  localparam int unsigned CONNECTIONS[SOCKETS] = '{{{", ".join(str(socket.connections) for socket in device.sockets)}}};
  // Completions that each client can have outstanding, the last client first.
  localparam logic [CLIENTS-1:0][15:0] CQ_DEPTH = {{{", ".join(f"16'd{depth}" for depth in reversed(depths))}}};

  localparam longint unsigned DRAM_BYTES = 64'd{device.memory_bytes};   // of each memory
  localparam int unsigned MEMORIES = {device.memories};
  // The memories that each socket reaches, the last socket first.
  localparam logic [SOCKETS-1:0][{device.targets - 1}:0] SOCKET_MEMORIES = {{{reach}}};
  localparam logic [SOCKETS-1:0] DATAGRAMS = {len(device.sockets)}'d{device.datagrams()};       // sockets with a port of UDP
  localparam logic [SOCKETS-1:0] REGISTERS = {len(device.sockets)}'d{device.registers()};       // and with one to the registers
  localparam bit ECC = 1'b{int(device.ecc)};                  // the device keeps its memories by a code of its own
  localparam int unsigned RPC_MEMORY = {device.calls_memory};            // the memory that callers' regions are in

  // A slot: reads of host memory under way, vectors of MSI-X, cycles until a read is given up.
  localparam bit PCIE = 1'b{int(device.pcie is not None)};
  localparam int unsigned PCIE_TAGS = {pcie.tags};
  localparam int unsigned PCIE_VECTORS = {pcie.vectors};
  localparam int unsigned PCIE_TIMEOUT = {pcie.timeout_us * (device.clock_hz // 1_000_000)};
  localparam longint unsigned PCIE_HOST_BYTES = 64'd{pcie.host_bytes};    // of the memory of calls: the host's
  localparam bit COPY = 1'b{int(pcie.copy)};                 // there is a copy engine
  localparam bit NETWORK_CARD = 1'b{int(pcie.network_card)};         // there is a second function, a network card
  localparam int unsigned NETWORK_PAIRS = {pcie.pairs};        // of its queues
  localparam int unsigned NETWORK_VECTORS = {pcie.network_vectors};      // of MSI-X
  localparam int unsigned NETWORK_MTU = {pcie.mtu};
  localparam int unsigned NETWORK_FRAME = {pcie.mtu + NETWORK_HEADERS};       // bytes of its longest frame, without FCS

  // Images of kernels that come by the network: places in memory, and bytes of each; no places: the device takes none.
  localparam int unsigned IMAGE_SLOTS = {device.image_slots};
  localparam int unsigned IMAGE_SLOT_BYTES = {device.image_slot_bytes};

  // What the board measures: names, first character lowest, and kinds of sensors.rdl; the first sensor lowest. 0: no block.
  localparam int unsigned SENSORS = {len(device.sensors)};
  localparam logic [{MAX_SENSORS - 1}:0][127:0] SENSOR_NAMES = {{{", ".join(["128'd0"] * unused + sensor_names)}}};
  localparam logic [{MAX_SENSORS - 1}:0][7:0] SENSOR_KINDS = {{{", ".join(["8'd0"] * unused + sensor_kinds)}}};

  // The trace of frames: beats and frames that it holds of each direction; no beats: there is none.
  localparam int unsigned TRACE_ROWS = {device.trace_rows};
  localparam int unsigned TRACE_FRAMES = {device.trace_frames};

  localparam logic [31:0] BUILD_REVISION = 32'h{revision()};
  localparam logic [63:0] BUILD_DIGEST = 64'h{device.digest.hex()};
endpackage
"""


def widths_package(device: Device) -> str:
    """Widths that the packages of all planes are built with."""
    return f"""// Widths that depend on the device `{device.name}`.
package widths_pkg;
  localparam int unsigned ADDR_W = {device.address_bits};   // of a device address
endpackage
"""


def description_package(device: Device) -> str:
    """The description for callers, as the words of a ROM."""
    text = description(device)
    if device.changes:
        words = []
        for piece in template(device):
            words += _words(piece) if isinstance(piece, bytes) else [MARKED | piece[0] << 28 | piece[1]]
    else:
        words = _words(text)
    lines = ",\n".join(f"      32'h{word:08x}" for word in reversed(words))
    numbers = [[device.kernels.index(kernel) for kernel in socket.images] for socket in device.sockets]
    rows = [", ".join(f"8'd{n}" for n in reversed(row + [0] * (MAX_IMAGES - len(row)))) for row in reversed(numbers)]
    held = ", ".join(f"{{{row}}}" for row in rows)
    return f"""// The description of the device for its callers: JSON, first byte in the high bits of word 0.
package description_pkg;
  localparam int unsigned BYTES = {len(text)};
  localparam int unsigned WORDS = {len(words)};
  // A word with the highest bit set is a mark: its kind in bits 30..28, the number of a kernel in bits 7..0.
  localparam bit MARKED = 1'b{int(device.changes)};
  localparam logic [2:0] BEGIN_ = 3'd0, COUNT = 3'd1, END_ = 3'd2;
  localparam logic [WORDS-1:0][31:0] DESCRIPTION = {{
{lines}
  }};
  // The number of the kernel in each image of each socket.
  localparam int unsigned SOCKETS = {len(device.sockets)};
  localparam logic [SOCKETS-1:0][{MAX_IMAGES - 1}:0][7:0] KERNEL_OF = {{{held}}};
endpackage
"""


def _words(text: bytes) -> list[int]:
    padded = text.ljust(-(-len(text) // DESCRIPTION_WORD) * DESCRIPTION_WORD)
    return [int.from_bytes(padded[i : i + DESCRIPTION_WORD], "big") for i in range(0, len(padded), DESCRIPTION_WORD)]


@dataclass(frozen=True)
class DeviceRtl:
    """The RTL of a device that is not the same in all devices."""

    folder: Path  # what was generated
    kernel_folders: tuple[Path, ...]

    def packages(self) -> list[Path]:
        """Its packages: those generated, and those that kernels have for themselves."""
        own = [path for folder in self.kernel_folders for path in sorted(folder.glob("*_pkg.sv"))]
        return [*(path for path in sorted(self.folder.glob("*_pkg.sv")) if path != self.widths), *own]

    @property
    def widths(self) -> Path:
        """The package on which those of the planes depend."""
        return self.folder / "widths_pkg.sv"

    def module_dirs(self) -> list[Path]:
        """Where its modules are."""
        return [self.folder, *self.kernel_folders]


def _kernel_package(folder: Path, kernel: Kernel | StreamKernel) -> str:
    """Its package. Only made again if something has changed: it takes long to load what reads a description of registers."""
    path = folder / f"{kernel.module}_pkg.sv"
    sources = [kernel.file, *([kernel.registers] if kernel.registers else []), COMMON / "block.rdl"]
    sources += [Path(__file__).with_name(name) for name in ("device_rtl.py", "rdl.py", "rdl_sv.py")]
    mark = f"// Sources: {hashlib.sha256(b''.join(source.read_bytes() for source in sources)).hexdigest()[:16]}\n"
    if path.exists() and (text := path.read_text()).endswith(mark):
        return text
    made = stream_package(kernel) if isinstance(kernel, StreamKernel) else kernel_package(kernel)
    return HEAD.format(source=os.path.relpath(kernel.file, ROOT)) + made + mark


def generate(device: Device) -> DeviceRtl:
    """Writes the RTL of a device. A file whose content stays as it is keeps its time."""
    folder = OUT / f"{device.name}_{device.data_w}_{device.queue_pairs}"
    folder.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(source=os.path.relpath(device.files[0], ROOT))
    files = {
        f"{kernel.module}_pkg.sv": _kernel_package(folder, kernel)
        for kernel in [*device.kernels, *([device.stream] if device.stream else [])]
    }
    files |= {
        "widths_pkg.sv": head + widths_package(device),
        "device_pkg.sv": head + device_package(device),
        "description_pkg.sv": head + description_package(device),
        "socket_kernel.sv": head + socket_kernel(device.kernels),
        "socket_record.sv": head + socket_record(device.kernels),
        "stream_kernel.sv": head + stream_kernel(device.stream),
    }
    for stale in {path.name for path in folder.glob("*.sv")} - set(files):
        (folder / stale).unlink(missing_ok=True)
    for name, text in files.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            draft = path.with_suffix(f".{os.getpid()}")
            draft.write_text(text)
            draft.rename(path)
    return DeviceRtl(folder, device.kernel_folders)
