The process ends before the input is read.
split: train
process.exit(0);
%% wrong
