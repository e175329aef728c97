# SPDX-License-Identifier: Apache-2.0

PYTHON := .venv/bin/python
CARGO  := cargo --locked
AREA   ?= rtl host synth
PREFIX ?= /usr/local
BOARD  ?= butterstick
# Ten days with the times of a real network.
CLUSTER_DAYS := "--seeds 10 --nodes 8 --devices 2 --unit 1000 --pace 60000 --time 86400000"
MUTATE_ARGS ?= rtl/compute/rpc rtl/memory rtl/stream rtl/roce --report

# Everything here looks for the host software in host/target, also where the user has cargo build elsewhere.
unexport CARGO_TARGET_DIR

# The waveform of a failing test: make unit UNIT=roce_cm WAVES=1
ifdef WAVES
export NACELLE_WAVES := 1
endif

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-management unit plane soak mutate mutate-host cluster hostile sanitize conformance bench report synth interop docs sim sim-fast sim-waves board \
        host install-cli install-c wheel lint format hooks dist setup-demo setup-test setup-interop setup-bench setup-guest-time clean

##@ Use

help:  ## this list
	@awk 'BEGIN { FS = ":.*?## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	    /^[a-z-]+:.*?## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: sim host  ## set up, build, and offload a matrix multiplication to the simulated device
	@host/target/release/nacelle demo $(DEMO_ARGS)

sim: setup-demo  ## the simulated device: a library (SIM_ARGS="--data-w 64 --device one-socket" for others)
	@$(PYTHON) sim/build.py $(SIM_ARGS)

sim-fast: setup-demo  ## the same, compiled with a profile: takes three times as long, runs faster
	@$(PYTHON) sim/build.py --fast $(SIM_ARGS)

sim-waves: setup-demo  ## the same, able to write waveforms
	@$(PYTHON) sim/build.py --waves $(SIM_ARGS)

host: setup-demo  ## the host software
	@printf '==> building the host software\n' >&2
	@cd host && $(CARGO) build --release -p nacelle-cli

install-cli: host  ## the command, its manual pages, completions for bash, zsh, fish: PREFIX=/usr/local, DESTDIR= for packages
	@$(PYTHON) tools/install_cli.py --prefix "$(PREFIX)" --destdir "$(DESTDIR)"

install-c: setup-demo  ## the C library, headers, C++, Fortran, pkg-config and CMake: PREFIX=/usr/local, DESTDIR= for packages
	@printf '==> building the C library\n' >&2
	@cd host && $(CARGO) build --release -p nacelle-capi
	@$(PYTHON) tools/install_c.py --prefix "$(PREFIX)" --destdir "$(DESTDIR)"

wheel: setup-test  ## the Python package as a wheel, in build/wheel
	@printf '==> building the Python package\n' >&2
	@$(PYTHON) tools/wheel.py

board: setup-test  ## a device for an FPGA board, by open tools: bitstream, size, speed; hours (BOARD=butterstick, BOARD_ARGS=--dhcp)
	@$(PYTHON) -m pip install -q --no-deps --require-hashes -r tools/requirements-board.lock
	@$(PYTHON) tools/board.py $(BOARD) $(BOARD_ARGS)

##@ Develop

unit: setup-test  ## one unit's tests, at 64 bits: UNIT=roce_cm, TEST=regex for single ones; WAVES=1 for a waveform
	@$(PYTHON) tools/unit.py $(UNIT) $(if $(TEST),--test '$(TEST)') $(UNIT_ARGS)

plane: setup-test  ## one plane's tests, at 64 bits: PLANE=roce; WAVES=1 for waveforms
	@test -d "rtl/$(PLANE)" && test -n "$(PLANE)" || { echo "error: make plane PLANE=..., one of:" $(notdir $(wildcard rtl/*)); exit 1; }
	@NACELLE_WIDTHS="$${NACELLE_WIDTHS:-64}" $(PYTHON) -m pytest -q -n 2 --ignore-glob='*/formal/*' rtl/$(PLANE) $(UNIT_ARGS)

lint: setup-test  ## RTL, Python and Rust: lint and format, without a change
	@$(PYTHON) tools/test.py registers python-style lint host-style

format: setup-test  ## Python and Rust as the format rules have it
	@$(PYTHON) -m ruff format -q . && $(PYTHON) -m ruff check -q --fix .
	@cd host && cargo fmt --all

hooks: setup-test  ## let git check what is staged before each commit
	@.venv/bin/pre-commit install

docs: setup-test  ## build the book into docs/book
	@$(PYTHON) tools/docs.py

##@ Test

test: setup-test setup-interop  ## set up, build, and run every test
	@$(PYTHON) tools/test.py

# Each step says what it found; the first that fails ends it.
test-long: soak cluster hostile interop mutate  ## what make test has no time for: soak, hostile drivers, kills, every width, comparison, fuzzing, mutation, the board's netlist, coverage (hours)
	@$(PYTHON) tools/conformance.py --compare --cases 5000
	@cd host && NACELLE_LONG=1 $(CARGO) test --release -p nacelle-device --test kills
	@cd host && NACELLE_FUZZ_SECONDS=300 $(CARGO) test --release -p nacelle-fuzz
	@NACELLE_LONG=1 NACELLE_WIDTHS="64 128 256 512" $(PYTHON) tools/test.py simulators rtl formal shell
	@$(PYTHON) -m pip install -q --no-deps --require-hashes -r tools/requirements-board.lock
	@NACELLE_LONG=1 $(PYTHON) -m pytest -q tests/test_board.py tests/test_examples.py tests/test_guest_card.py tests/test_guest_time.py tests/test_qemu_card.py
	@$(PYTHON) tools/coverage.py

test-management: setup-test setup-demo  ## what a device does without a host: registers, address, discovery, link, log, trace; against Linux programs (root)
	@$(PYTHON) sim/build.py --data-w 64
	@cd host && $(CARGO) build --release -p nacelle-cli
	@$(PYTHON) -m pytest -q -n 2 rtl/services rtl/control
	@$(PYTHON) -m pytest -q -n 2 tests/test_ipbus.py tests/test_dhcp.py tests/test_discovery.py tests/test_ipv6.py tests/test_link_layer.py tests/test_log.py tests/test_trace.py

soak: setup-test sim-fast host  ## random traffic beside attacks, on both devices (SOAK_ARGS="rtl --minutes 60" for more)
	@cd host && $(CARGO) build --release -p nacelle-conformance
	@$(PYTHON) tools/soak.py $(SOAK_ARGS)

cluster: setup-test  ## random clusters in virtual time, then days of it (CLUSTER_ARGS="--minutes 60" for other runs)
	@cd host && $(CARGO) build --release -p nacelle-cluster
	@cd host && for run in $(if $(CLUSTER_ARGS),"$(CLUSTER_ARGS)","--minutes 5" $(CLUSTER_DAYS)); do \
	    target/release/nacelle-cluster $$run || exit 1; done

hostile: setup-test  ## an hour of hostile drivers of a device in a slot, beside well-behaved users (HOSTILE_ARGS="--seconds 60 --seed 7")
	@$(PYTHON) sim/build.py --data-w 64 --device nic
	@cd host && $(CARGO) build --release -p nacelle-hostile
	@host/target/release/nacelle-hostile $(if $(HOSTILE_ARGS),$(HOSTILE_ARGS),--seconds 3600)

sanitize: setup-test  ## Miri, loom and ThreadSanitizer on the host software (SANITIZE_ARGS=loom for a part)
	@$(PYTHON) tools/sanitize.py $(SANITIZE_ARGS)

conformance: setup-test sim host  ## judge the simulated and the software device, rule by rule
	@cd host && $(CARGO) build --release -p nacelle-conformance
	@$(PYTHON) tools/conformance.py

interop: setup-interop sim-fast  ## hold the devices against Linux' soft-RoCE in QEMU (INTEROP_ARGS=--quick for a part)
	@cd host && $(CARGO) build --release -p nacelle-cli -p nacelle-capi -p nacelle-conformance -p nacelle-interop
	@$(PYTHON) sim/build.py --device ipv6
	@$(PYTHON) interop/run.py $(INTEROP_ARGS)

mutate: setup-test  ## see whether the tests notice small changes of the RTL (MUTATE_ARGS='--count 4 rtl/memory' for a part)
	@$(PYTHON) tools/mutate.py $(MUTATE_ARGS)

# In a copy of the sources: a mutant is written where it is built, and tests read data beside the workspace.
mutate-host: build/tools/bin/cargo-mutants  ## the same for the user-space endpoint (MUTATE_HOST_ARGS="--shard 0/8" for a part)
	@rm -rf build/mutants/host && mkdir -p build/mutants
	@git ls-files -z --cached --others --exclude-standard host rtl/roce/test/data | tar -c --null -T - | tar -x -C build/mutants
	@cd build/mutants/host && CARGO_TARGET_DIR=../target ../../tools/bin/cargo-mutants mutants \
	    --package nacelle-roce --in-place --output .. $(MUTATE_HOST_ARGS)

build/tools/bin/cargo-mutants:
	@$(CARGO) install --root build/tools --version 27.1.0 cargo-mutants

##@ Measure

bench: setup-test setup-bench sim-fast host  ## measure and print beside the goals (AREA=rtl|host|synth for a part)
	@$(PYTHON) sim/build.py --device two-memories
	@$(PYTHON) sim/build.py --device slot
	@$(PYTHON) sim/build.py $(if $(wildcard build/guest/stamp),--fast) --device nic
	@$(PYTHON) bench/bench.py $(AREA)

report: setup-test  ## put the figures of the last bench into the documents
	@$(PYTHON) bench/report.py

synth: setup-test  ## size and logic depth by open synthesis (SYNTH_ARGS="roce --by-instance 2" and more)
	@$(PYTHON) tools/synth.py $(SYNTH_ARGS)

##@ Release and set-up

dist: sim host wheel  ## sources, programs, the C library and the Python package with their sums, in build/dist
	@cd host && $(CARGO) build --release -p nacelle-capi
	@$(PYTHON) tools/dist.py

setup-demo setup-test setup-interop: setup-%:
	@sh tools/setup.sh $*

# User-mode Linux that can live in device time, for `nacelle guest-time`: once, 8 minutes of one core.
setup-guest-time: setup-test
	@$(PYTHON) interop/guest_kernel.py

# What the benchmark measures Nacelle beside, as far as this machine can have it.
setup-bench:
	@sh bench/peers/setup.sh

clean:  ## remove everything that was built
	rm -rf build host/target docs/book
