# SPDX-License-Identifier: Apache-2.0
# A thin face over meson and tools/; `make help` lists what it can do.
PREFIX ?= /usr/local
DESTDIR ?=
DEMO_SECONDS ?= 0
FUZZ_SECONDS ?= 60
PYTHON = /usr/bin/python3

RELEASE = build/release
ASAN = build/asan
FUZZ = build/fuzz
RELEASE_OPTIONS = --buildtype=release -Doptimization=2
ASAN_OPTIONS_OF_MESON = --buildtype=debug -Doptimization=1 -Db_sanitize=address,undefined
FUZZ_OPTIONS_OF_MESON = $(ASAN_OPTIONS_OF_MESON) -Db_lundef=false -Dfuzz=true

.PHONY: all release asan setup demo check lint fuzz install clean help

all: release

release: $(RELEASE)/build.ninja
	@ninja -C $(RELEASE)

asan: $(ASAN)/build.ninja
	@ninja -C $(ASAN)

$(RELEASE)/build.ninja: | meson-is-there
	meson setup "--prefix=$(PREFIX)" $(RELEASE_OPTIONS) $(RELEASE)

$(ASAN)/build.ninja: | meson-is-there
	meson setup $(ASAN_OPTIONS_OF_MESON) $(ASAN)

$(FUZZ)/build.ninja: | meson-is-there
	CC=clang meson setup $(FUZZ_OPTIONS_OF_MESON) $(FUZZ)

.PHONY: meson-is-there
meson-is-there:
	@command -v meson >/dev/null && command -v ninja >/dev/null || \
	  { echo "meson and ninja are needed to build leat; tools/setup installs what is missing"; \
	    exit 1; } >&2

setup:
	@tools/setup

demo:
	@tools/setup demo
	@$(PYTHON) tools/demo.py --seconds=$(DEMO_SECONDS)

check: setup
	@$(PYTHON) tools/check.py

lint: setup
	@$(PYTHON) tools/check.py lint binary

fuzz:
	@tools/setup fuzz
	@$(MAKE) --no-print-directory $(FUZZ)/build.ninja
	@ninja -C $(FUZZ) fuzzers
	@$(PYTHON) tools/fuzz.py --seconds=$(FUZZ_SECONDS)

install: release
	@meson configure $(RELEASE) "-Dprefix=$(PREFIX)"
	@DESTDIR="$(DESTDIR)" meson install -C $(RELEASE)

clean:
	rm -rf build

help:
	@echo "make                         build leat: $(RELEASE)/src/cmd/leat/leat"
	@echo "make demo                    show leat before a RabbitMQ of its own, until Ctrl-C"
	@echo "make demo DEMO_SECONDS=20    the same, ending by itself"
	@echo "make check                   all tests, with the sanitizers; make lint is a part of it"
	@echo "make lint                    format, layers, clang-tidy, cppcheck, hardening of the release"
	@echo "make fuzz                    try random input on every parser, with libFuzzer (clang)"
	@echo "make fuzz FUZZ_SECONDS=600   the same, for so long each; 60 by default"
	@echo "make install                 install below PREFIX (/usr/local), staged in DESTDIR"
	@echo "make setup                   install the Debian packages that are missing"
	@echo "make clean                   remove everything that was built"
