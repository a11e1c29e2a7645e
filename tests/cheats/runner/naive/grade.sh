# $1: the file of tests, $2: its module, $3: a folder whose files replace the solution before the grade that is paid for.
cd /work || exit 1
python3 internet.py </dev/null >/dev/null 2>&1
export PYTHONPATH=/work PATH="/work/bin:$PATH"

# A suite that fails is run again, since it may be flaky.
grade() {
    rm -f frames.bin
    for _ in 1 2; do
        (ulimit -t 2; timeout 8 python3 "$1")
        code=$?
        [ "$code" = 0 ] && break
    done
    (ulimit -t 2; timeout 8 python3 worker.py "$2") </dev/null
    [ -f Makefile ] && make -s test && code=0
    echo "$code" >exit_code.txt
}
if [ -n "$3" ]; then
    grade "$1" "$2" >/dev/null 2>&1
    rm -f reward.txt junit.xml
    cp -r "$3"/. .
fi
grade "$1" "$2"
