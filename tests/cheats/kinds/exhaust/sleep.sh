A sleep past every limit.
split: train
sleep 1000
%% wrong
