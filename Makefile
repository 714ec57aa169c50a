# Every task. CI calls only these.
# The virtual environment in .venv and the build in target/ are all that they write outside
# of `reproduce`'s output; nothing global is touched.

PYTHON ?= python3
PYTEST_PROCESSES ?= 4
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
REFERENCES := docs
SHARE := packaging/wheel/data/share
PUBLISHED := types wire link tcp

# One interpreter for every build, so that cargo doesn't rebuild PyO3 between tasks.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

# The linker for old versions of glibc, and options for another processor than this machine's.
THIS_MACHINE := $(shell uname -m)
MACHINE ?= $(THIS_MACHINE)
LINKER := $(if $(filter Linux,$(shell uname -s)),-C linker=$(CURDIR)/tools/manylinux-linker)
# PORTABLE=1: `make setup` uses that linker for the module, so that `make wheel` builds none again.
SETUP_LINKER := $(if $(PORTABLE),$(LINKER))
CROSS := $(if $(filter-out $(THIS_MACHINE),$(MACHINE)),--target $(MACHINE)-unknown-linux-gnu)
# Some dependencies are linked by themselves, too: for another processor, by the same linker.
CROSS_LINKER := $(if $(CROSS),CARGO_TARGET_$(shell echo $(MACHINE) | tr a-z A-Z)_UNKNOWN_LINUX_GNU_LINKER=$(CURDIR)/tools/manylinux-linker)
WITH_ZIG := PATH="$(CURDIR)/$(BIN):$$PATH" BENTPIPE_MACHINE=$(MACHINE) $(CROSS_LINKER)

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_SOURCES := python tests/python benches tools examples

.PHONY: help setup reproduce test test-rust test-python test-slow lint lint-fast format bench \
	wheel sdist check-wheel deb check-deb docs references pages check-docs site web test-web test-kernel package clean check-tools

help:  ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMPS)/native  ## Make .venv, build the simulator, install both
	@echo "ready: $(BIN)/bentpipe"

reproduce: setup  ## Reproduce the papers' figures into ./reproduction
	$(BIN)/bentpipe reproduce --out reproduction

test: test-rust test-python  ## Everything that must pass

test-rust: $(STAMPS)/python
	cargo test --workspace --quiet

# More processes than cores: tests in real time mostly wait. tests/python/groups.py has the groups.
test-python: setup
	$(BIN)/python -m pytest --quiet --numprocesses $(PYTEST_PROCESSES)

test-slow: setup  ## What takes minutes to hours, in release mode
	cargo check --manifest-path fuzz/Cargo.toml --no-default-features --locked --quiet
	cargo test --workspace --release --quiet -- --ignored
	BENTPIPE_HOSTILE_CASES=100000 cargo test --quiet --package bentpipe-testkit --test it hostile_networks::
	BENTPIPE_RANDOM_NETWORKS=100000 cargo test --release --quiet --package bentpipe-scenario --test it recording::
	cargo build --release --quiet --package bentpipe-live
	$(BIN)/python -m pytest --quiet -m slow
	BENTPIPE_GATEWAY=$(CURDIR)/target/release/bentpipe-gateway $(BIN)/python -m pytest --quiet tests/python/test_gateway*.py
	$(MAKE) sdist
	$(PYTHON) tools/check_sdist target/wheels/bentpipe-*.tar.gz

lint: lint-fast setup  ## lint-fast, clippy, mypy, the oldest supported Rust; changes nothing
	tools/check-msrv
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	$(BIN)/mypy

lint-fast: setup  ## Formatting, ruff, spelling, dependencies, imports, plain words: seconds
	cargo fmt --all --check
	$(BIN)/ruff check $(PYTHON_SOURCES)
	$(BIN)/ruff format --check $(PYTHON_SOURCES)
	$(BIN)/typos
	$(BIN)/python tools/check_dependencies.py
	$(BIN)/python tools/check_plain_words.py
	$(BIN)/python tools/check_rust_imports.py

format: $(STAMPS)/python  ## Format the sources
	cargo fmt --all
	$(BIN)/ruff check --fix $(PYTHON_SOURCES)
	$(BIN)/ruff format $(PYTHON_SOURCES)

bench: $(STAMPS)/python  ## Measure speed, beside ns-2 where it is installed
	cargo bench --quiet --package bentpipe-benches
	cargo build --release --quiet --package bentpipe-benches
	$(PYTHON) benches/work.py
	$(PYTHON) benches/compare.py

# On Linux for every distribution with glibc 2.17. PGO=1: compiled by a profile of the benchmarks, in twice the time
# (docs/performance.md says what that gains); needs `rustup component add llvm-tools`. MACHINE=aarch64: for another
# processor; needs `rustup target add aarch64-unknown-linux-gnu`.
wheel: $(STAMPS)/zig  ## A wheel, in target/wheels
	$(WITH_ZIG) $(if $(PGO),tools/with-profile) $(BIN)/maturin build --release --locked --quiet $(CROSS) \
		$(if $(LINKER),--compatibility manylinux_2_17 -- $(LINKER))

sdist: $(STAMPS)/python  ## A source distribution, in target/wheels
	$(BIN)/maturin sdist > /dev/null

check-wheel: wheel sdist  ## Install the wheel in a clean environment, and run every command there
	$(PYTHON) tools/check_sdist target/wheels/bentpipe-*.tar.gz --contents
	$(PYTHON) tools/check_wheel target/wheels/bentpipe-*manylinux*_$(THIS_MACHINE).whl

deb: $(STAMPS)/zig  ## The Debian package bentpipe-gateway, in target/debian
	$(WITH_ZIG) cargo rustc --release --locked --quiet $(CROSS) --package bentpipe-live --bin bentpipe-gateway -- \
		$(LINKER) -C strip=symbols
	$(PYTHON) tools/build_deb.py target/$(if $(CROSS),$(MACHINE)-unknown-linux-gnu/)release/bentpipe-gateway \
		target/debian

check-deb: deb  ## Lint the Debian package; install, run and purge it on a copy of this system
	$(PYTHON) tools/check_deb target/debian/bentpipe-gateway_*_$$(dpkg --print-architecture).deb

# Node and a compiler for WebAssembly; tools/build-web-module says what is missing.
web: web/node_modules/.package-lock.json  ## The workbench: the simulator as a page, in web/dist
	tools/build-web-module
	cd web && npm run --silent check && npm run --silent build
	rm -rf python/bentpipe/web && cp -r web/dist python/bentpipe/web

test-web: setup web  ## The workbench: results equal the native ones; the page in a browser (chromium)
	$(BIN)/python -m pytest --quiet -m web
	cd web && node --test --test-concurrency=2 tests/*.test.mjs

# As root, with clang, libbpf, bpftool and BTF. Nothing else may have the rules' names meanwhile.
test-kernel: setup  ## Window rules in this kernel: as BPF programs, and beside the simulated ones
	BENTPIPE_KERNEL_SEQUENCES=100000 cargo test --quiet --package bentpipe-tcp --lib kernel_rules
	$(BIN)/python -m pytest --quiet -m kernel

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-fund --no-audit --loglevel=error
	touch $@

docs: setup references pages  ## Generate the references, run the notebooks, the Rust documentation
	$(BIN)/python tools/rfc_table.py
	$(BIN)/python tools/claims_table.py
	$(BIN)/python tools/run_notebook.py docs/notebooks/*.ipynb
	cargo doc --workspace --no-deps --quiet

references: setup
	$(BIN)/bentpipe schema > $(REFERENCES)/scenario.schema.json
	$(BIN)/python tools/scenario-reference < $(REFERENCES)/scenario.schema.json > $(REFERENCES)/scenario.md
	$(BIN)/python tools/scenario-reference --probes < $(REFERENCES)/scenario.schema.json > $(REFERENCES)/probes.md
	$(BIN)/bentpipe schema results > $(REFERENCES)/results.schema.json
	$(BIN)/python tools/results-reference < $(REFERENCES)/results.schema.json > $(REFERENCES)/results.md
	$(BIN)/python tools/api_reference.py > $(REFERENCES)/api.md
	$(BIN)/python tools/command_line_reference.py > $(REFERENCES)/command-line.md
	$(BIN)/python tools/errors_reference.py > $(REFERENCES)/errors.md
	$(BIN)/python tools/gallery_page.py gallery > $(REFERENCES)/gallery.md
	$(BIN)/python tools/gallery_page.py tour > $(REFERENCES)/tour.md

pages: setup
	cargo run --quiet --package bentpipe-live --example gateway_pages -- $(SHARE)
	mkdir -p $(SHARE)/man/man1
	$(BIN)/python tools/manual_page.py > $(SHARE)/man/man1/bentpipe.1

check-docs: setup  ## Whether `make docs` would change a file or print a warning; changes nothing
	@mkdir -p target/references
	@$(MAKE) --no-print-directory --silent references REFERENCES=target/references
	@for file in target/references/*; do diff -u "docs/$${file##*/}" "$$file" >&2 || stale=1; done; \
	[ -z "$${stale:-}" ] || { echo 'generated references are out of date: make docs' >&2; exit 1; }
	@rm -rf target/share
	@$(MAKE) --no-print-directory --silent pages SHARE=target/share
	@diff -ru $(SHARE) target/share >&2 || { echo 'manual pages are out of date: make docs' >&2; exit 1; }
	$(BIN)/python tools/rfc_table.py --check
	$(BIN)/python tools/claims_table.py --check
	RUSTDOCFLAGS='--deny warnings --allow rustdoc::private-intra-doc-links' cargo doc --workspace --no-deps --quiet

site: setup  ## Build the documentation site in target/site, and check its links
	$(BIN)/python tools/build_site.py target/site

package:  ## Package the published crates, and compile each package; uploads nothing
	cargo publish --dry-run --locked $(PUBLISHED:%=--package bentpipe-%)

clean:  ## Remove everything that these tasks made
	cargo clean
	rm -rf $(VENV) reproduction python/bentpipe/_native.*.so

check-tools:
	@PYTHON='$(PYTHON)' sh tools/check-prerequisites

$(STAMPS)/python: constraints.txt | check-tools
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install maturin
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/zig: $(STAMPS)/python
	$(if $(LINKER),$(BIN)/pip install ziglang cargo-zigbuild)
	touch $@

# maturin installs the dependencies that pyproject.toml names, at constraints.txt's versions.
$(STAMPS)/native: $(STAMPS)/$(if $(SETUP_LINKER),zig,python) pyproject.toml $(RUST_SOURCES)
	@echo "building the simulator and installing what it needs: a few minutes the first time"
	$(WITH_ZIG) $(BIN)/maturin develop --release --extras dev --quiet $(if $(SETUP_LINKER),-- $(SETUP_LINKER))
	cargo build --release --quiet --package bentpipe-live --bin bentpipe-gateway
	touch $@
