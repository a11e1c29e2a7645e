The process ends itself by a signal.
split: train
process.abort();
%% wrong
