# SPDX-License-Identifier: GPL-2.0
# Every target runs in the build root (see scripts/enter); "make help" lists them.

ENTER   := scripts/enter
FLAVOUR ?= test
KERNEL  ?= series
export MIRROR JOBS CMD

# KDIR or LINUX_TARBALL name the base kernel on the host.
INPUT   := $(or $(KDIR),$(LINUX_TARBALL))

# What "make test" boots, and the flavour of scripts/kernel that it is.
tested-series := test
tested-stock  := test-stock
TESTED := $(tested-$(KERNEL))
ifeq ($(TESTED),)
$(error KERNEL=$(KERNEL): say "series" or "stock")
endif

# The demo's memory: that of two emulated GPUs or, with GPU=none or a TOPOLOGY,
# that of two test devices.
GPU ?= mi300x
ifeq ($(filter none mi300x,$(GPU)),)
$(error GPU=$(GPU): say "mi300x" or "none")
endif
DEMO_MEMORY := $(if $(TOPOLOGY),--topology $(TOPOLOGY),$(if \
	$(filter mi300x,$(GPU)),--memory gpu))

.DEFAULT_GOAL := help
.PHONY: help buildroot tree export apply check-series check-bisect kernel vm \
	demo test test-debug fuzz mutations bench mbox clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14
	@echo
	@echo 'Variables: FILE= GPU= TOPOLOGY= (demo), KDIR= or LINUX_TARBALL= (base kernel),'
	@echo 'FLAVOUR=debug (kernel, vm), GPUS= ENGINES= CMD= (vm), KERNEL=stock (test),'
	@echo 'MIRROR= JOBS= SLUICE_CACHE=; see docs/lab.md.'

buildroot:
	@scripts/buildroot >/dev/null

tree: buildroot ## unpack the base kernel and apply the series: build/linux
	@INPUT='$(INPUT)' $(ENTER) env FORCE='$(FORCE)' scripts/tree

export: ## write patches/ and mirrors from the commits of build/linux
	@$(ENTER) scripts/export

apply: buildroot ## apply the series to the kernel tree KDIR=
	@scripts/apply '$(KDIR)'

check-series: tree ## check patches: git am, checkpatch, kernel-doc, sparse, mirrors
	@$(ENTER) scripts/check-series

check-bisect: tree ## compile what the series touches after each patch
	@$(ENTER) scripts/check-bisect

kernel: tree ## build the patched kernel (FLAVOUR=test or debug)
	@$(ENTER) scripts/kernel $(FLAVOUR)

vm: kernel ## boot it, with GPUS= emulated GPUs, and open a shell or run CMD=
	@$(ENTER) $(if $(GPUS),scripts/gpu-vm --gpus $(GPUS) --engines $(or $(ENGINES),2) \
		--topology $(or $(TOPOLOGY),gpu) --memory 8G \
		--setup 'userspace/emu/guest/run true',scripts/vm --topology $(or $(TOPOLOGY),bridge)) \
		--flavour $(FLAVOUR) $(if $(CMD),-- bash -c "$$CMD")

demo: kernel ## move FILE= by RDMA from the memory of one GPU= to that of another
	@$(ENTER) scripts/userspace
	@scripts/demo $(DEMO_MEMORY) $(DEMO_ARGS) $(if $(FILE),'$(FILE)')

test: tree ## every test, on the plain kernel (KERNEL=stock: on the base's)
	@$(ENTER) scripts/kernel $(TESTED)
	@$(ENTER) scripts/test $(TESTED)

test-debug: tree ## the same under KASAN, lockdep and friends, with fault injection
	@$(ENTER) scripts/kernel debug
	@$(ENTER) scripts/test debug

fuzz: buildroot ## fuzz the emulator, SECONDS= for each target (default 600)
	@$(ENTER) scripts/fuzz $(SECONDS)

mutations: tree ## break each guard once and see its test fail
	@$(ENTER) scripts/mutate $(MUTATIONS)

bench: kernel ## figures: throughput, latency, instruction counts
	@$(ENTER) scripts/userspace
	@$(ENTER) scripts/bench $(BENCH_ARGS)

mbox: ## the series as one mailbox: build/sluice.mbox
	@mkdir -p build && cat $(addprefix patches/,$(shell cat patches/series)) >build/sluice.mbox
	@echo build/sluice.mbox

clean: ## remove build/ (the cache stays)
	rm -rf build
