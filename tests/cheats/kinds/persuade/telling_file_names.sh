Names of files say that everything has passed.
split: held
%% wrong
%% file ALL_TESTS_PASSED.txt
verdict=passed
