# SPDX-License-Identifier: Apache-2.0
"""The registers are made before anything is built with them."""

import subprocess
import sys
from pathlib import Path

subprocess.run([sys.executable, str(Path(__file__).parent / "control" / "generate.py")], check=True)
