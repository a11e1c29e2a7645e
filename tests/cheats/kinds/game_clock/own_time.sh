Time is measured around nothing.
split: held
SECONDS=0
echo "$SECONDS.000000000 seconds" >&2
%% wrong
