# SPDX-License-Identifier: Apache-2.0
# Front door. Everything is done by CMake; see CMakePresets.json for the configurations.
#   make         build/reef        make test    build and run all tests     make format  clang-format the sources
#   make demo    a model at work   make bench   measure against peers       make fuzz    each fuzzer for MINUTES=1
#   make asan / make tsan          all tests under the sanitizers           make docs    rewrite generated documents
#   make install [PREFIX=/usr/local] [DESTDIR=]    program, libraries, headers, find_package and pkg-config files
#   make arm64   kernels and their tests for 64-bit ARM, in an emulator      make arm64-all    the whole program and its tests there
#   make packages [CPUS="x86_64 aarch64"]   tarball, .deb and wheel in dist/ make check-packages   installs them on other systems and tries them
#   make clang / make ubsan / make tidy / make abi / make site               other compilers, checks, and the documents as a site
.PHONY: all demo test bench docs format check-format fuzz hostile asan ubsan tsan clang tidy abi arm64 arm64-all packages check-packages site install clean
.DEFAULT_GOAL := all
JOBS ?= $(shell nproc)

all:
	@tools/setup.sh build
	@cmake --preset release >build-configure.log 2>&1 || (cat build-configure.log; exit 1)
	@rm -f build-configure.log
	@cmake --build --preset release --target reef -j $(JOBS)

# With a package of this version in dist/ (`make packages`, or downloaded), nothing is compiled.
demo:
	@tools/packages/unpack_prebuilt.sh || $(MAKE) --no-print-directory all
	@tools/demo.sh

test:
	@tools/setup.sh test
	@cmake --preset release -DREEF_TESTS=ON >build-configure.log 2>&1 || (cat build-configure.log; exit 1)
	@rm -f build-configure.log
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $(JOBS)

asan ubsan tsan clang:
	@tools/setup.sh $(if $(filter clang,$@),clang,test)
	@cmake --preset $@ -DREEF_TESTS=ON
	@cmake --build --preset $@ -j $(JOBS)
	@ctest --preset $@ -j $(JOBS)

# Every file cut short at 64 places and 10,000 random bit flips, under the sanitizers; on two cores three minutes after a build of five.
hostile:
	@tools/setup.sh test
	@cmake --preset asan -DREEF_TESTS=ON
	@cmake --build --preset asan -j $(JOBS)
	@REEF_HOSTILE_CUTS=64 REEF_HOSTILE_FLIPS=10000 build-asan/tests/reef_tests --gtest_filter='Hostile*'

PREFIX ?= /usr/local
install:
	@tools/setup.sh build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build-configure.log 2>&1 || (cat build-configure.log; exit 1)
	@rm -f build-configure.log
	@cmake --build --preset release --target reef libreef reef_delegate -j $(JOBS)
	@DESTDIR=$(DESTDIR) cmake --install build --component library

# FUZZERS="zip_archive numpy_npz" runs some.
MINUTES ?= 1
fuzz:
	@tools/setup.sh fuzz
	@cmake --preset fuzz
	@cmake --build --preset fuzz -j $(JOBS)
	@JOBS=$(JOBS) tools/run_fuzzers.sh build-fuzz/fuzz $$(( $(MINUTES) * 60 )) $(FUZZERS)

# Kernels and their tests for 64-bit ARM, in an emulator.
arm64:
	@tools/setup.sh arm64
	@tools/test_arm64.sh

# The whole program, cross-compiled, and its tests that need neither Python nor the collection, in an emulator.
# FILTER="--gtest_filter=Driver*" runs some.
arm64-all:
	@tools/setup.sh arm64
	@cmake --preset arm64 -DREEF_TESTS=ON
	@cmake --build --preset arm64 -j $(JOBS) --target reef libreef reef_delegate reef_tests
	@qemu-aarch64 -L /usr/aarch64-linux-gnu build-arm64-all/tests/reef_tests --gtest_brief=1 $(FILTER)

CPUS ?= x86_64 aarch64
packages:
	@tools/setup.sh packages
	@JOBS=$(JOBS) tools/packages/all.sh $(CPUS)

check-packages:
	@tools/setup.sh packages
	@tools/setup.sh roots
	@tools/packages/check.sh $(CPUS)

# Is libreef's binary interface the recorded one?
abi: all
	@cmake --build --preset release --target libreef -j $(JOBS)
	@python3 tools/check_abi.py build/libreef.so .

tidy:
	@tools/setup.sh tidy
	@cmake --preset release -DREEF_TESTS=OFF -DREEF_TOGETHER=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
	@tools/tidy.sh $(JOBS) $(FILES)

site:
	@tools/setup.sh site
	@build-tools/site/bin/python tools/make_site.py

bench: all
	@tools/setup.sh test
	@bench/run.sh

docs: all
	@cmake --build --preset release --target make_docs -j $(JOBS)
	@build/make_docs .

format:
	@tools/setup.sh format
	@git ls-files '*.cpp' '*.h' '*.hpp' | xargs clang-format -i

# Fails, and changes nothing, where `make format` would change something.
check-format:
	@tools/setup.sh format
	@git ls-files '*.cpp' '*.h' '*.hpp' | xargs clang-format --dry-run -Werror

clean:
	rm -rf build build-* dist
