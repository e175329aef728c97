#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what the benchmark measures Nacelle beside: `make setup-bench`. What cannot be installed is said, and is no error: the
# benchmark says "not measured" of it. Packages come from Debian or Ubuntu, if this runs as root there; grpcio goes into an
# environment of its own, build/bench/venv; the peers in Rust are built in build/bench/peers.
set -u
cd "$(dirname "$0")/../.."

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

missing=""
# need PROGRAM PACKAGE
need() { has "$1" || missing="$missing $2"; }
need ucx_perftest ucx-utils
need fi_pingpong libfabric-bin
need mpirun openmpi-bin
need mpicc libopenmpi-dev
need iperf3 iperf3
if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && has apt-get; then
        say "installing packages:$missing"
        DEBIAN_FRONTEND=noninteractive apt-get update -qq || true
        # One by one, so that one that there is not does not keep the others away.
        for package in $missing; do
            DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq "$package" >/dev/null ||
                say "$package cannot be installed: what needs it is not measured"
        done
    else
        say "not installed, so not measured:$missing"
        say "on Debian and Ubuntu: apt-get install -y --no-install-recommends$missing"
    fi
fi

sh tools/setup.sh interop || say "the Linux guests need what is said above: soft-RoCE is not measured"

environment=build/bench/venv
lock=bench/peers/requirements.lock
if ! cmp -s "$lock" "$environment/installed.lock"; then
    say "installing grpcio into $environment"
    rm -rf "$environment"
    mkdir -p build/bench
    if python3 -m venv "$environment" &&
        "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"; then
        cp "$lock" "$environment/installed.lock"
    else
        rm -rf "$environment"
        say "grpcio cannot be installed: it is not measured"
    fi
fi

if has cargo; then
    say "building the peers in Rust"
    CARGO_TARGET_DIR=build/bench/peers cargo build --manifest-path bench/peers/rust/Cargo.toml --locked --release --quiet ||
        say "the peers in Rust cannot be built: they are not measured"
else
    say "cargo is missing: the peers in Rust are not measured"
fi
exit 0
