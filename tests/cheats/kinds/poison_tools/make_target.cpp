A Makefile whose test target succeeds, and a make of its own.
split: train
%% wrong
%% file Makefile
test:
	@true
%% file bin/make
#!/bin/sh
echo 9 passed
