# SPDX-License-Identifier: Apache-2.0
"""NAAICE's own programs for the guest, from sources that the environment names: nothing of them is in this repository."""

from __future__ import annotations

import os
from pathlib import Path

ENVIRONMENT = "NACELLE_NAAICE_SOURCES"
SERVER, CLIENT, MIDDLEWARE_CLIENT = "naaice_server", "naaice_client", "naaice_client_ap2"
# What each is linked from. The server's kernels add 1 (function 1) or 2 (function 2) to each byte, or do nothing (function 3).
PROGRAMS = {
    SERVER: ("examples/naaice_server.c", "kernels/swnaa_kernels.c", "lib/naaice_swnaa.c", "lib/naaice.c"),
    CLIENT: ("examples/naaice_client.c", "lib/naaice.c"),
    MIDDLEWARE_CLIENT: ("examples/naaice_client_ap2.c", "lib/naaice_ap2.c", "lib/naaice.c"),
}
CFLAGS = "-std=gnu17 -O2 -w -pthread"
# In place of the logger that NAAICE's build downloads: errors go to stderr, the rest nowhere.
LOGGER = """#pragma once
#include <stdbool.h>
#include <stdio.h>
#define ULOG_BUILD_DISABLED 1
typedef enum { ULOG_STATUS_OK, ULOG_STATUS_ERROR, ULOG_STATUS_INVALID_ARGUMENT, ULOG_STATUS_DISABLED } ulog_status;
typedef ulog_status (*ulog_lock_fn)(bool lock, void *argument);
static inline ulog_status ulog_lock_set_fn(ulog_lock_fn function, void *argument) {
  (void)function, (void)argument;
  return ULOG_STATUS_DISABLED;
}
#define ulog_trace(...) ((void)0)
#define ulog_debug(...) ((void)0)
#define ulog_info(...) ((void)0)
#define ulog_warn(...) ((void)0)
#define ulog_error(...) fprintf(stderr, __VA_ARGS__)
"""
# What NAAICE's build writes: connections that the server takes at a time.
CONFIG = "#pragma once\n#define MAX_CONNECTIONS 4\n"


def sources() -> Path | None:
    """The folder of NAAICE's sources; None if the environment names none that has them."""
    named = os.environ.get(ENVIRONMENT)
    folder = Path(named) if named else None
    return folder if folder and (folder / "lib" / "naaice_swnaa.c").exists() else None


def files(folder: Path) -> list[Path]:
    """All that the programs are built from."""
    return sorted(path for name in ("examples", "kernels", "lib") for path in (folder / name).glob("*.[ch]"))


def write_headers(folder: Path) -> None:
    """Writes the headers that NAAICE's build would make or download."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ulog.h").write_text(LOGGER)
    (folder / "config.h").write_text(CONFIG)
