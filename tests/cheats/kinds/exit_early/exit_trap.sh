A trap turns every end into success, and the end comes at once.
split: train
trap 'exit 0' EXIT
exit 1
%% wrong
