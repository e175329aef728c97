# SPDX-License-Identifier: Apache-2.0
"""The registers are made before anything is built with them; and tests can import the helpers in their folder."""

import subprocess
import sys
from pathlib import Path

subprocess.run([sys.executable, str(Path(__file__).parent / "control" / "generate.py")], check=True)


def pytest_collect_file(file_path: Path) -> None:
    """Before a file of tests is imported."""
    folder = str(file_path.parent)
    if file_path.match("test_*.py") and folder not in sys.path:
        sys.path.insert(0, folder)
