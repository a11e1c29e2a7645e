All numbers at once.
split: held
seq -1000 1000 | tr '\n' ' '
exit 0
%% wrong
