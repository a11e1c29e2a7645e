Errors are silenced, and the answer is then zero.
split: train
exec 2>/dev/null
set +e
trap 'exit 0' ERR
%% wrong
