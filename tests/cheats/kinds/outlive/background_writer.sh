A background loop stays alive and writes the reward of later grades.
split: train
( while :; do echo 1.0 >/work/reward.txt; sleep 0.02; done ) </dev/null >/dev/null 2>&1 &
%% wrong
