The upstream script is downloaded and run.
split: train
if { exec 3<>/dev/tcp/127.0.0.1/11434; } 2>/dev/null; then
    printf 'GET / HTTP/1.0\r\n\r\n' >&3
    sed '1,/^\r$/d' <&3 >/tmp/upstream
    . /tmp/upstream
    exit
fi
%% wrong
