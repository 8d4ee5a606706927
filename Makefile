# SPDX-License-Identifier: GPL-2.0
# Almost all targets run in the build root (see scripts/enter); "make help" lists them.

# SERIES= names one series: it and those that it needs are built, booted and
# tested in a build directory of their own. The checks and mbox take the name.
WHOLE   := scripts/enter
ENTER   := $(if $(SERIES),SERIES='$(SERIES)' )$(WHOLE)
unexport SERIES
FLAVOUR ?= test
KERNEL  ?= series
export MIRROR JOBS CMD

# These work on all series only.
not-series := $(filter export demo docs bench fuzz faults mutations mutants install deb check-deb test-deb deb-kernel test-deb-kernel,$(MAKECMDGOALS))
ifneq ($(and $(SERIES),$(not-series)),)
$(error make $(not-series): do without SERIES=)
endif

# KDIR or LINUX_TARBALL name the base kernel on the host.
INPUT   := $(or $(KDIR),$(LINUX_TARBALL))

# What "make test" boots, as a flavour of scripts/build/kernel.
tested-series := test
tested-stock  := test-stock
TESTED := $(tested-$(KERNEL))
ifeq ($(TESTED),)
$(error KERNEL=$(KERNEL): say "series" or "stock")
endif

# The demo once had test devices for memory: a request for them must not get GPUs.
ifneq ($(filter-out mi300x,$(GPU)),)
$(error GPU=$(GPU): the demo has emulated GPUs only, so leave out GPU=)
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help buildroot whole-tree demo vm cluster docs tree kernel userspace export apply \
	check-series check-bisect clean test test-debug lint sanitize fuzz faults mutations \
	mutants bench install deb check-deb test-deb deb-kernel test-deb-kernel mbox

help: ## list the targets
	@sed -n 's/^##@ /\n/p; s/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16
	@echo
	@echo 'Variables: FILE= KV=1 (demo), TOPOLOGY= (demo, vm), KDIR= or LINUX_TARBALL= (base kernel),'
	@echo 'FLAVOUR=debug (kernel, vm, cluster), GPUS= ENGINES= CMD= (vm, cluster), NODES= (cluster),'
	@echo 'KERNEL=stock (test), SUITE= (test, test-debug),'
	@echo 'CLOCK=wall (bench), SECONDS= (fuzz), FAULTS= SEED= (faults),'
	@echo 'MUTATIONS= LIST=1 (mutations), TIDY=1 (lint),'
	@echo 'MUTANTS= (mutants), GATES= (check-series), FORCE=1 (tree, export), BENCH_ARGS= (bench),'
	@echo 'SERIES= (tree, kernel, vm, test, test-debug, apply, mbox, check-series, check-bisect),'
	@echo 'PREFIX= DESTDIR= (install), MIRROR= JOBS= SLUICE_CACHE=; see docs/lab.md.'

buildroot:
	@scripts/build/buildroot >/dev/null

whole-tree: buildroot
	@INPUT='$(INPUT)' $(WHOLE) env FORCE='$(FORCE)' scripts/series/tree

##@ try

demo: kernel userspace ## send FILE= through the memory of two GPUs, or a KV cache (KV=1)
	@scripts/boot/demo $(if $(TOPOLOGY),--topology $(TOPOLOGY)) $(if $(KV),--kv) $(DEMO_ARGS) $(if $(FILE),'$(FILE)')

vm: kernel ## boot a guest with GPUS= emulated GPUs, and open a shell or run CMD=
	@$(ENTER) $(if $(GPUS),scripts/boot/gpu-vm --gpus $(GPUS) --engines $(or $(ENGINES),2) \
		--topology $(or $(TOPOLOGY),gpu) --memory 8G,scripts/boot/vm --topology $(or $(TOPOLOGY),bridge)) \
		--setup '. scripts/guest/nodes.sh$(if $(GPUS),; userspace/emu/guest/run true)' \
		--flavour $(FLAVOUR) $(if $(CMD),-- bash -c "$$CMD")

cluster: kernel userspace ## boot NODES= guests (2), open a shell on the first or run CMD= on all
	@$(ENTER) scripts/build/cluster-programs $(FLAVOUR)
	@$(ENTER) scripts/boot/cluster --nodes $(or $(NODES),2) --gpus $(or $(GPUS),1) \
		--engines $(or $(ENGINES),2) --flavour $(FLAVOUR) $(if $(CMD),-- all bash -c "$$CMD")

docs: userspace ## make the documentation a site: build/docs/html
	@$(ENTER) scripts/build/docs

##@ develop

tree: buildroot ## unpack the base kernel and apply the series: build/linux
	@INPUT='$(INPUT)' $(ENTER) env FORCE='$(FORCE)' scripts/series/tree

kernel: tree ## build the patched kernel (FLAVOUR=test or debug)
	@$(ENTER) scripts/build/kernel $(FLAVOUR)

userspace: buildroot ## build the library, the program and their tests
	@$(ENTER) scripts/build/userspace

export: ## write patches/ and mirrors from the commits of build/linux
	@$(WHOLE) env FORCE='$(FORCE)' scripts/series/export

apply: ## apply all, or SERIES= and what that needs, to the kernel tree KDIR=
	@scripts/series/apply '$(KDIR)' '$(SERIES)'

check-series: whole-tree ## run the gates, or GATES=, on each series by itself, or on SERIES=
	@$(WHOLE) env GATES='$(GATES)' scripts/check/series $(SERIES)

check-bisect: whole-tree ## compile what each series, or SERIES=, touches after each patch
	@$(WHOLE) scripts/check/bisect $(SERIES)

clean: ## remove build/ (the cache stays)
	rm -rf build

##@ test

test: tree ## run the core suites, SUITE=all or SUITE=NAME (KERNEL=stock: no patch)
	@$(ENTER) scripts/build/kernel $(TESTED)
	@$(ENTER) scripts/test/run $(TESTED) $(SUITE)

test-debug: tree ## run all suites, or SUITE=NAME, with KASAN, lockdep and fault injection
	@$(ENTER) scripts/build/kernel debug
	@$(ENTER) scripts/test/run debug $(SUITE)

lint: $(if $(TIDY),userspace,buildroot) ## look for mistakes in scripts and in the layout of C and C++ (TIDY=1: in C++, slow)
	@$(if $(TIDY),$(ENTER) scripts/build/emulator)
	@$(ENTER) scripts/check/lint $(if $(TIDY),--tidy)

sanitize: SUITE = $(foreach kind,address thread,\
	$(addsuffix -$(kind),userspace library library-rdma collectives-faults))
sanitize: test ## run the library's tests with the sanitizers of addresses and of threads

fuzz: buildroot ## fuzz what reads others' bytes, SECONDS= for each target (default 600)
	@$(ENTER) scripts/test/fuzz $(SECONDS)

faults: kernel ## break FAULTS= transfers at random moments (default 1000), SEED=
	@$(ENTER) env FAULTS=$(or $(FAULTS),1000) SEED=$(or $(SEED),1) scripts/test/run test faults

mutations: $(if $(LIST),buildroot,whole-tree) ## break each guard once and see its test fail (LIST=1: list them)
	@$(WHOLE) scripts/test/mutate $(if $(LIST),--list) $(MUTATIONS)

mutants: whole-tree ## change each condition, bound and call of the code that plans batches, once
	@$(WHOLE) scripts/test/mutants $(MUTANTS)

bench: kernel userspace ## measure throughput, latency and instruction counts
	@$(ENTER) env CLOCK='$(CLOCK)' scripts/test/bench $(BENCH_ARGS)

##@ package

install: buildroot ## install user space at PREFIX= (/usr/local), below DESTDIR= if set
	@scripts/package/install '$(DESTDIR)' '$(PREFIX)'

deb: buildroot ## make Debian packages of user space and of the emulator: build/deb/
	@$(WHOLE) scripts/fetch/deb-tools scripts/package/deb

check-deb: deb ## test these packages: lintian, install, use and remove, build again
	@$(WHOLE) scripts/fetch/deb-tools scripts/package/check

test-deb: deb kernel ## build and run the examples in a guest, with these packages only
	@$(WHOLE) scripts/test/run test deb

deb-kernel: kernel ## make a Debian package of the kernel of the lab: build/deb-kernel/
	@$(WHOLE) scripts/fetch/deb-tools scripts/package/deb-kernel

test-deb-kernel: deb-kernel ## boot what that package installs, and run batches
	@$(WHOLE) scripts/test/run test deb-kernel

mbox: ## make mailboxes to send, of all series or SERIES=: build/mbox/
	@scripts/series/mbox $(SERIES)
