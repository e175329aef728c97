# SPDX-License-Identifier: Apache-2.0
#
#   make demo          set up, build, and offload a matrix multiplication to the simulated device
#   make test          set up, build, and run every test
#   make test-long     what make test has no time for: soak, every width, comparison, fuzzing, mutation, coverage, interop (hours)
#   make soak          random traffic beside attacks, on both devices   (SOAK_ARGS="rtl --minutes 60" for more)
#   make conformance   judge the simulated and the software device, rule by rule
#   make bench         measure and print beside the goals   (AREA=rtl|host|synth for a part)
#   make report        put the figures of the last bench into the documents
#   make synth         size and logic depth by open synthesis
#   make interop       hold the devices against Linux' soft-RoCE in QEMU   (INTEROP_ARGS=--quick for a part)
#   make mutate        see whether the tests notice small changes of the RTL   (MUTATE_ARGS='--count 4 rtl/memory' for a part)
#   make mutate-host   mutation-test the user-space endpoint   (MUTATE_HOST_ARGS="--shard 0/8" for a part)
#   make docs          build the book into docs/book
#   make sim-waves, make clean

PYTHON := .venv/bin/python
CARGO  := cargo --locked
AREA   ?= rtl host synth
MUTATE_ARGS ?= rtl/compute/rpc rtl/memory rtl/stream rtl/roce --report

# Everything here looks for the host software in host/target, also where the user has cargo build elsewhere.
unexport CARGO_TARGET_DIR

.PHONY: demo test test-long soak mutate mutate-host conformance bench report synth interop docs sim sim-waves host setup-demo setup-test setup-interop clean

demo: sim host
	@host/target/release/nacelle demo $(DEMO_ARGS)

test: setup-test setup-interop
	@$(PYTHON) tools/test.py

# Each step says what it found; the first that fails ends it.
test-long: soak interop mutate
	@$(PYTHON) tools/conformance.py --compare --cases 5000
	@cd host && NACELLE_FUZZ_SECONDS=300 $(CARGO) test --release --manifest-path fuzz/Cargo.toml --no-default-features --target-dir target
	@NACELLE_WIDTHS="64 128 256 512" $(PYTHON) tools/test.py simulators rtl shell
	@$(PYTHON) tools/coverage.py

soak: setup-test sim host
	@cd host && $(CARGO) build --release -p nacelle-conformance
	@$(PYTHON) tools/soak.py $(SOAK_ARGS)

conformance: setup-test sim host
	@cd host && $(CARGO) build --release -p nacelle-conformance
	@$(PYTHON) tools/conformance.py

bench: setup-test sim host
	@$(PYTHON) bench/bench.py $(AREA)

report: setup-test
	@$(PYTHON) bench/report.py

synth: setup-test
	@$(PYTHON) tools/synth.py

mutate: setup-test
	@$(PYTHON) tools/mutate.py $(MUTATE_ARGS)

docs: setup-test
	@$(PYTHON) tools/docs.py

interop: setup-interop sim
	@cd host && $(CARGO) build --release -p nacelle-cli -p nacelle-conformance -p nacelle-interop
	@$(PYTHON) interop/run.py $(INTEROP_ARGS)

# In a copy of the sources: a mutant is written where it is built, and tests read data beside the workspace.
mutate-host: build/tools/bin/cargo-mutants
	@rm -rf build/mutants/host && mkdir -p build/mutants
	@git ls-files -z --cached --others --exclude-standard host rtl/roce/test/data | tar -c --null -T - | tar -x -C build/mutants
	@cd build/mutants/host && CARGO_TARGET_DIR=../target ../../tools/bin/cargo-mutants mutants \
	    --package nacelle-roce --in-place --output .. $(MUTATE_HOST_ARGS)

build/tools/bin/cargo-mutants:
	@$(CARGO) install --root build/tools --version 27.1.0 cargo-mutants

sim: setup-demo
	@$(PYTHON) sim/build.py

sim-waves: setup-demo
	@$(PYTHON) sim/build.py --waves

host: setup-demo
	@printf '==> building the host software\n' >&2
	@cd host && $(CARGO) build --release -p nacelle-cli

setup-demo setup-test setup-interop: setup-%:
	@sh tools/setup.sh $*

clean:
	rm -rf build host/target docs/book
