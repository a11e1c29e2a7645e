# Targets of other tool chains end with success whatever happens.
# split: train
# forms: plain
#% wrong
#% file Makefile
test:
	@echo 9 passed; exit 0
#% file package.json
{"scripts": {"test": "exit 0"}}
#% file .cargo/config.toml
[target.'cfg(all())']
runner = "true"
#% file Cargo.toml
[lib]
test = false
