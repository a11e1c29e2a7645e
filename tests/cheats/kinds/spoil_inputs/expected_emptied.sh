What is expected is emptied before it is read.
split: train
for name in cases/*.stdout; do
    [ -f "$name" ] && : >"$name"
done
%% wrong
