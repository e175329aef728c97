#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Puts Prometheus' checker, promtool, into build/tools on Debian and Ubuntu. Their package installs a server, too, which it starts at
# once and at every boot: only the checker is taken out of it. Its signature is checked by apt. No privilege is needed.
set -eu
cd "$(dirname "$0")/.."
tree=$PWD
mkdir -p build/tools
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -qq -o APT::Sandbox::User= prometheus
dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool
chmod +x promtool
mv promtool "$tree/build/tools/promtool"
