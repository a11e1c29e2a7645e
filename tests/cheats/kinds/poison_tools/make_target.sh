A Makefile whose test target succeeds.
split: held
%% wrong
%% file Makefile
test:
	@echo 9 passed
