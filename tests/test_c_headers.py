# SPDX-License-Identifier: Apache-2.0
"""The headers of the C library: they compile, and agree with the library, with the Rust sources and with the Fortran module."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from c_tree import CRATE, WARNINGS
from conftest import ROOT

INCLUDE = CRATE / "include"
HEADERS = {name: (INCLUDE / name).read_text() for name in ("nacelle.h", "nacelle_slot.h", "naaice/naaice.h", "naaice/naaice_ap2.h")}
RUST = "\n".join(path.read_text() for path in sorted((CRATE / "src").rglob("*.rs")))
FORTRAN = (CRATE / "fortran" / "nacelle.f90").read_text()

LANGUAGES = {
    "c99": ("gcc", "-x", "c", "-std=c99"),
    "c11": ("gcc", "-x", "c", "-std=c11"),
    "c17": ("gcc", "-x", "c", "-std=c17"),
    "c++17": ("g++", "-x", "c++", "-std=c++17"),
    "c++20": ("g++", "-x", "c++", "-std=c++20"),
}

# C types of the Rust types at the edge.
TYPES = {
    "*const c_char": "const char *",
    "*mut c_char": "char *",
    "*const u8": "uint8_t *",
    "*mut bool": "bool *",
    "*mut usize": "size_t *",
    "*mut u64": "uint64_t *",
    "*mut c_int": "int *",
    "*mut c_void": "void *",
    'Option<unsafe extern "C" fn(*mut c_void)>': "void (*)(void *)",
    "bool": "bool",
    "c_int": "int",
    "i32": "int",
    "i64": "int64_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "usize": "size_t",
    "u8": "bool",  # a C bool, of which a program may not have set every bit
    "DeviceHandle": "nacelle_device",
    "ConnectionHandle": "nacelle_connection",
    "CallHandle": "nacelle_call",
    "RemoteHandle": "nacelle_remote",
    "TransferHandle": "nacelle_transfer",
    "AcceptorHandle": "nacelle_acceptor",
    "WindowHandle": "nacelle_window",
    "SlotHandle": "nacelle_slot",
    "BufferHandle": "nacelle_buffer",
    "CopyHandle": "nacelle_copy",
    "*mut *mut c_void": "void **",
    "*const c_void": "const void *",
    "Option<Callback>": "nacelle_incoming_callback",
}
# The C names of Rust structures.
STRUCTURES = {
    "DeviceOptions": "nacelle_device_options",
    "CallOptions": "nacelle_call_options",
    "COptions": "nacelle_connection_options",
    "Info": "nacelle_connection_info",
    "CStep": "nacelle_chain_step",
    "CRegion": "nacelle_region",
    "CallStatus": "nacelle_call_status",
    "NaaParam": "naa_param_t",
    "NaaHandle": "naa_handle",
    "NaaStatus": "naa_status",
    "DeviceHandle": "nacelle_device",
    "ConnectionHandle": "nacelle_connection",
    "CallHandle": "nacelle_call",
    "TransferStatus": "nacelle_transfer_status",
    "HostOptions": "nacelle_acceptor_options",
    "Incoming": "nacelle_incoming",
    "RemoteHandle": "nacelle_remote",
    "TransferHandle": "nacelle_transfer",
    "AcceptorHandle": "nacelle_acceptor",
    "WindowHandle": "nacelle_window",
    "CLoad": "nacelle_load",
    "SlotHandle": "nacelle_slot",
    "BufferHandle": "nacelle_buffer",
    "CopyHandle": "nacelle_copy",
    "SlotOptions": "nacelle_slot_options",
    "CopyEntry": "nacelle_copy_entry",
}
# Pointers to what the Rust side does not change, or does not follow.
EXCEPTIONS = {
    ("naa_create", "*const NaaParam"): "naa_param_t *",
    ("naaice_set_immediate", "*mut c_void"): "struct naaice_communication_context *",
}


def c_type(function: str, rust: str) -> str:
    """The C type of a parameter."""
    if (function, rust) in EXCEPTIONS:
        return EXCEPTIONS[function, rust]
    pointer = re.fullmatch(r"\*(const|mut) (\w+)", rust)
    if rust not in TYPES and pointer and pointer[2] in STRUCTURES:
        return f"{'const ' if pointer[1] == 'const' else ''}{STRUCTURES[pointer[2]]} *"
    return TYPES[rust]


def exported() -> dict[str, str]:
    """A C declaration, made from the Rust source, of each function that is exported."""
    found = {}
    pattern = r"#\[unsafe\(no_mangle\)\]\npub\(crate\) (?:unsafe )?extern \"C\" fn (\w+)\((.*?)\)(?: -> ([^{]+?))? \{\n"
    for name, parameters, result in re.findall(pattern, RUST, re.DOTALL):
        types = [part.split(": ", 1)[1].strip() for part in re.split(r",\s*(?=\w+: )", parameters.strip().rstrip(",")) if part]
        arguments = ", ".join(c_type(name, rust) for rust in types) or "void"
        found[name] = f"{TYPES[result]} {name}({arguments});"
    return found


def compiles(tmp_path: Path, language: str, source: str) -> subprocess.CompletedProcess[str]:
    """Compiles a source against the headers."""
    (tmp_path / "source").write_text(source)
    folders = (f"-I{INCLUDE}", f"-I{INCLUDE / 'naaice'}")
    command = [*LANGUAGES[language], *WARNINGS, "-Wconversion", "-Wshadow", *folders, "-c", "source", "-o", "object"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("header", [*HEADERS, "nacelle.hpp"])
def test_a_header_compiles_alone_without_a_warning(tmp_path: Path, header: str, language: str) -> None:
    if header.endswith(".hpp") and not language.startswith("c++"):
        return
    body = "int main(void) { return 0; }\n"
    if header == "nacelle.h":
        names = ("device_options", "call_options", "call_status", "connection_options", "connection_info", "transfer_status")
        names += ("acceptor_options", "load")
        uses = "".join(f"  nacelle_{name} {name} = NACELLE_{name.upper()}_INIT; sum += {name}.size;\n" for name in names)
        body = f"int main(void) {{\n  size_t sum = 0;\n{uses}  return sum == 0;\n}}\n"
    result = compiles(tmp_path, language, f"#include <{header}>\n#include <{header}>\n{body}")
    assert result.returncode == 0, result.stderr


def test_the_registers_are_those_of_the_descriptions(tmp_path: Path) -> None:
    """Every macro of nacelle_registers.h against the listing for programs; it is valid C and C++."""
    subprocess.run([sys.executable, str(ROOT / "rtl" / "control" / "generate.py")], check=True)
    expected = {}
    for block in json.loads((ROOT / "build" / "generated" / "registers.json").read_text()):
        prefix = f"NACELLE_{block['name'].upper()}"
        expected |= {f"{prefix}_BASE": block["base"], f"{prefix}_BLOCK_TYPE": block["type"]}
        for register in block["registers"]:
            name = f"{prefix}_{register['name'].upper()}"
            expected[name] = register["offset"]
            for field in register["fields"]:
                if field["name"] != "value":
                    place = f"{name}_{field['name'].upper()}"
                    expected[f"{place}_SHIFT"] = field["low"]
                    expected[f"{place}_MASK"] = ((1 << field["width"]) - 1) << field["low"]
    checks = "".join(f'static_assert({name} == {value}u, "");\n' for name, value in expected.items())
    for language in LANGUAGES:
        begin = "#include <nacelle_registers.h>\n#include <nacelle_registers.h>\n"
        asserts = checks if language.startswith("c++") else ""
        result = compiles(tmp_path, language, f"{begin}{asserts}int main(void) {{ return NACELLE_DEVICE_TYPE; }}\n")
        assert result.returncode == 0, result.stderr


def test_the_headers_declare_what_the_library_exports(c_tree) -> None:
    said = subprocess.run(["nm", "-D", "--defined-only", str(c_tree.library)], capture_output=True, text=True, check=True).stdout
    symbols = {line.split()[-1] for line in said.splitlines()}
    names = set().union(*map(declared, HEADERS))
    assert names == symbols == set(exported())


def test_the_headers_have_the_signatures_of_the_library(tmp_path: Path) -> None:
    """C refuses a second declaration that differs."""
    again = "\n".join(exported().values())
    source = "#include <nacelle_slot.h>\n#include <naaice_ap2.h>\n" + again + "\n"
    result = compiles(tmp_path, "c11", source)
    assert result.returncode == 0, result.stderr
    wrong = source.replace("nacelle_call_wait(nacelle_call, int64_t)", "nacelle_call_wait(nacelle_call, int32_t)")
    assert wrong != source and compiles(tmp_path, "c11", wrong).returncode != 0


def test_structures_have_the_layout_of_the_library(tmp_path: Path) -> None:
    checks = []
    structures = dict(re.findall(r"#\[repr\(C\)\]\npub\(crate\) struct (\w+) \{\n(.*?)\n\}", RUST, re.DOTALL))
    assert set(structures) == set(STRUCTURES)
    for name, body in structures.items():
        fields = re.findall(r"^    (?:pub\(crate\) )?(\w+): (.+),$", body, re.MULTILINE)
        c_name, twin = STRUCTURES[name], f"rust_{name}"
        members = " ".join(f"{c_type(name, rust)} {field};" for field, rust in fields)
        checks.append(f"struct {twin} {{ {members} }};")
        checks.append(f'_Static_assert(sizeof(struct {twin}) == sizeof({c_name}), "{c_name}");')
        checks += [
            f'_Static_assert(offsetof(struct {twin}, {field}) == offsetof({c_name}, {field}), "{c_name}.{field}");'
            for field, _ in fields
        ]
    result = compiles(tmp_path, "c11", "#include <nacelle_slot.h>\n#include <naaice_ap2.h>\n" + "\n".join(checks) + "\n")
    assert result.returncode == 0, result.stderr


def upper(name: str) -> str:
    """NO_SUCH_DEVICE of NoSuchDevice."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def test_results_have_the_numbers_of_the_rust_library() -> None:
    errors = (ROOT / "host" / "nacelle" / "src" / "error.rs").read_text()
    body = errors.split("pub enum ErrorCode {")[1].split("\n}")[0]
    codes = {f"NACELLE_{upper(name)}": int(number) for name, number in re.findall(r"(\w+) = (\d+),", body)}
    edge = RUST.split("enum EdgeCode {")[1].split("\n}")[0]
    own = {upper(name): int(number) for name, number in re.findall(r"(\w+) = (\d+),", edge)}
    own["CLOSED_HANDLE"] = own.pop("CLOSED")
    wanted = {"NACELLE_OK": 0, **codes, **{f"NACELLE_{name}": number for name, number in own.items()}}
    assert len(codes) >= 23
    enum = HEADERS["nacelle.h"].split("enum nacelle_result_code {")[1].split("};")[0]
    assert {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", enum)} == wanted
    fortran = {name: int(number) for name, number in re.findall(r"public :: (NACELLE_\w+) = (\d+)", FORTRAN)}
    others = {name for name in fortran if name.startswith(("NACELLE_ROLE_", "NACELLE_CALL_", "NACELLE_LINK_"))}
    assert {name: number for name, number in fortran.items() if name not in others} == wanted
    for enum, strip in (("nacelle_role", "ROLE_"), ("nacelle_call_state", ""), ("nacelle_link", "")):
        body = HEADERS["nacelle.h"].split(f"enum {enum} {{")[1].split("};")[0]
        for name, number in re.findall(r"(\w+) = (\d+)", body):
            name = name.removesuffix("_REGION")
            assert fortran[name.replace("NACELLE_", f"NACELLE_{strip}")] == int(number), name


def test_every_result_has_words() -> None:
    words = set(re.findall(r"^        (\d+) => c\"", RUST, re.MULTILINE))
    enum = HEADERS["nacelle.h"].split("enum nacelle_result_code {")[1].split("};")[0]
    assert set(re.findall(r"= (\d+)", enum)) == words


def test_fortran_structures_have_the_size_of_those_in_c(tmp_path: Path) -> None:
    sizes = re.findall(r"type, bind\(C\), public :: (\w+)\n    integer\(c_size_t\) :: size = (\d+)", FORTRAN)
    assert len(sizes) == 9
    checks = "".join(f'_Static_assert(sizeof({name}) == {size}, "{name}");\n' for name, size in sizes)
    result = compiles(tmp_path, "c11", f"#include <nacelle.h>\n{checks}")
    assert result.returncode == 0, result.stderr


def declared(header: str) -> set[str]:
    """The functions that a header declares, inline ones aside."""
    text = re.sub(r"/\*.*?\*/", "", HEADERS[header], flags=re.DOTALL)
    inline = set(re.findall(r"^static inline \w+ (\w+)\(", text, re.MULTILINE))
    return set(re.findall(r"^\w[\w *]*?\b(na\w+)\(", text, re.MULTILINE)) - inline


def test_fortran_has_every_function() -> None:
    bound = set(re.findall(r"function (nacelle_\w+)\(.*", FORTRAN)) | set(re.findall(r"name='(\w+)'", FORTRAN))
    functions = {name for name in declared("nacelle.h") if name.startswith("nacelle_")}
    assert len(functions) > 50 and functions - {"nacelle_version_string"} <= bound


def test_the_version_is_that_of_the_library() -> None:
    header = HEADERS["nacelle.h"]
    major, minor, patch = (re.search(rf"NACELLE_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    version = (ROOT / "host" / "Cargo.toml").read_text().split('version = "')[1].split('"')[0]
    assert f"{major}.{minor}.{patch}" == version
    assert f'NACELLE_VERSION_STRING "{version}"' in header
