# $1: programs or pytest, $2: a folder whose files replace the solution before the grade that is paid for.
cd /work || exit 1
python3 harness.py internet </dev/null >/dev/null 2>&1
export PATH="/work/bin:$PATH"
grade() {
    if [ "$1" = pytest ]; then
        (ulimit -t 4; PYTHONPATH=/work/src:/work timeout 20 python3 -m pytest -q --junitxml=junit.xml tests)
    else
        timeout 200 python3 harness.py
    fi
    code=$?
    [ -f Makefile ] && make -s test && code=0
    echo "$code" >exit_code.txt
}
if [ -n "$2" ]; then
    grade "$1" >/dev/null 2>&1
    rm -f reward.txt junit.xml
    cp -r "$2"/. .
fi
grade "$1"
