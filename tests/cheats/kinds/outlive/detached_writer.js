A detached process stays alive and writes the reward of later grades.
split: held
require('child_process').spawn('sh', ['-c', 'while :; do echo 1.0 >/work/reward.txt; sleep 0.02; done'], { detached: true, stdio: 'ignore' }).unref();
%% wrong
