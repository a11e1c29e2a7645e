# `make demo` shows a whole run on this machine; `make test` sets up what the tests need and runs them all.
SHELL := /bin/bash
SETUP := infra/setup
.PHONY: demo learn test chaos nfs lint build setup clean

demo:
	@bash $(SETUP)/setup.sh
	@bash $(SETUP)/demo.sh

learn:
	@bash $(SETUP)/setup.sh
	@bash $(SETUP)/learn.sh

test:
	@bash $(SETUP)/setup.sh test
	@bash $(SETUP)/test.sh

chaos:
	@bash $(SETUP)/setup.sh test
	@bash $(SETUP)/chaos.sh

nfs:
	@bash $(SETUP)/nfs.sh

lint:
	@bash -c '. $(SETUP)/env.sh && cargo fmt --all --check && cargo clippy --workspace --all-targets -- -D warnings'

build: setup
	@bash -c '. $(SETUP)/env.sh && cargo build --release --bins -p rollmill -p rollmill-sandbox -p rollmill-serve -p rollmill-train'

setup:
	@bash $(SETUP)/setup.sh

clean:
	cargo clean
