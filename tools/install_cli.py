# SPDX-License-Identifier: Apache-2.0
"""Installs the command `nacelle`, its manual pages, and completions for bash, zsh and fish.

    python tools/install_cli.py --prefix /usr/local [--destdir STAGE]

The command must have been built (make install-cli does both).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from install_c import put

ROOT = Path(__file__).resolve().parents[1]
NACELLE = ROOT / "host" / "target" / "release" / "nacelle"

# Where each shell looks for them.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/nacelle",
    "zsh": "share/zsh/site-functions/_nacelle",
    "fish": "share/fish/vendor_completions.d/nacelle.fish",
}


def install(tree: Path, nacelle: Path = NACELLE) -> None:
    """Installs everything into a tree."""
    put(nacelle, tree / "bin" / "nacelle", 0o755)
    subprocess.run([nacelle, "man", "--dir", tree / "share" / "man" / "man1"], check=True)
    for shell, target in COMPLETIONS.items():
        script = subprocess.run([nacelle, "completions", shell], check=True, capture_output=True).stdout
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        (tree / target).write_bytes(script)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, required=True, help="where it is installed, an absolute path")
    parser.add_argument("--destdir", default="", help="a folder to put before the prefix, for packages")
    arguments = parser.parse_args()
    if not arguments.prefix.is_absolute():
        parser.error(f"{arguments.prefix} is not an absolute path")
    tree = Path(f"{arguments.destdir}{arguments.prefix}")
    try:
        install(tree)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}\ntry: make install-cli PREFIX=/a/folder/that/you/may/write/to")
    print(f"installed in {tree}")


if __name__ == "__main__":
    main()
