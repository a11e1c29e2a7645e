# Runs the tests that a task names, each in a process of its own, and reports what came of them. CPython 3.8 or newer.
#
# This process never imports anything of a solution. For each test it forks; the child imports the test and, by it, the
# solution, runs that one test and reports over a pipe made for it, under a word made for it. Everything in the child
# belongs to the solution from then on: what it can do there is lie about its own test, which is what twins and tests B
# are for. After each test every other process of the sandbox is killed.
import importlib
import select
import signal
import time
import unittest

SUITE = "/pristine/suite"
MAX_REPORT = 1 << 14


def run_unittest(name):
    names = name.split(".")
    for count in range(len(names) - 2, 0, -1):
        path = os.path.join(SUITE, *names[:count]) + ".py"
        if os.path.isfile(path):
            break
    else:
        return "missing", "no such file"
    if len(names) != count + 2:
        return "missing", "no such test"

    class Result(unittest.TestResult):
        passed = started = 0

        def startTest(self, test):
            super().startTest(test)
            self.started += 1

        def addSuccess(self, test):
            super().addSuccess(test)
            self.passed += 1

    result, case_type = Result(), unittest.TestCase
    module = importlib.import_module(".".join(names[:count]))
    if os.path.realpath(module.__file__) != path:
        return "missing", "another module of its name was found first"
    case = getattr(module, names[-2], None)
    if not (isinstance(case, type) and issubclass(case, case_type) and callable(getattr(case, names[-1], None))):
        return "missing", "no such test"
    unittest.TestSuite([case(names[-1])]).run(result)
    if result.skipped:
        return "skipped", ""
    if result.expectedFailures or result.unexpectedSuccesses:
        return "xfailed", ""
    if result.errors:
        return "errored", last_line(result.errors[0][1])
    if result.failures:
        return "failed", last_line(result.failures[0][1])
    return ("passed", "") if (result.started, result.passed) == (1, 1) else ("missing", "it did not run")


def last_line(text):
    # The name of the exception alone: its message holds what the test wanted.
    return text.strip().rsplit("\n", 1)[-1].split(":", 1)[0]


def run_pytest(name):
    import pytest

    class Reporter:
        def __init__(self):
            self.phases, self.raised, self.broken = [], "", False

        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items):
            items[:] = [item for item in items if item.nodeid == name and str(item.fspath).startswith(SUITE + "/")]

        def pytest_collectreport(self, report):
            self.broken = self.broken or report.failed

        def pytest_exception_interact(self, call):
            self.raised = call.excinfo.typename

        def pytest_runtest_logreport(self, report):
            kind = "xfailed" if hasattr(report, "wasxfail") else report.outcome
            self.phases.append((report.nodeid, report.when, kind))

    reporter = Reporter()
    arguments = ["--rootdir=" + SUITE, "--confcutdir=" + SUITE, "-p", "no:cacheprovider", "-q"]
    code = pytest.main(arguments + [os.path.join(SUITE, name)], plugins=[reporter])
    kinds = {when: kind for _, when, kind in reporter.phases}
    if reporter.broken:
        return "errored", reporter.raised
    if not reporter.phases:
        return "missing", "no such test"
    if "skipped" in kinds.values():
        return "skipped", ""
    if "xfailed" in kinds.values():
        return "xfailed", ""
    if kinds.get("call") == "failed":
        return "failed", reporter.raised
    if reporter.phases == [(name, when, "passed") for when in ("setup", "call", "teardown")] and code == 0:
        return "passed", ""
    return "errored", reporter.raised


def child(run, name, word, pipe, channel):
    write, leave, dumps = os.write, os._exit, json.dumps
    channel.close()
    os.setsid()
    os.dup2(1, 2)  # to nowhere
    try:
        outcome, detail = run(name)
    except BaseException as error:
        outcome, detail = "errored", type(error).__name__
    write(pipe, dumps([word, outcome, str(detail)[:200]]).encode("ascii", "replace")[:MAX_REPORT])
    leave(0)


def figures(pid):
    """CPU time, and time runnable without a CPU, of a living process in seconds."""
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    cpu = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    waiting = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as file:
                waiting += int(file.read().split()[1])
        except (OSError, IndexError):
            pass
    return cpu, waiting / 1e9


def watch(pid, pipe, limit):
    """The report, the child's status (None if it was killed here) and what it cost."""
    started, data, status = time.monotonic(), b"", None
    cost, ended, closed = (0.0, 0.0), False, False
    exits = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None  # from 3.9 on
    poll = select.poll()
    for file in [pipe] if exits is None else [pipe, exits]:
        poll.register(file, select.POLLIN)
    while not ended:
        ready = [file for file, _ in poll.poll(5 if closed and exits is None else 20)]
        if pipe in ready:
            part = os.read(pipe, 1 << 16)
            closed = not part
            if closed:
                poll.unregister(pipe)
            data = (data + part)[: MAX_REPORT + 1]
        wall = time.monotonic() - started
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            ended = True
            status = os.waitpid(pid, 0)[1]
        else:
            try:
                cost = figures(pid)
            except (OSError, IndexError, ValueError):
                pass
            # Time without a CPU does not count, within reason.
            if cost[0] > limit or wall - cost[1] > 4 * limit or wall > 20 * limit:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                ended = True
    if exits is not None:
        os.close(exits)
    os.set_blocking(pipe, False)
    try:
        data = (data + os.read(pipe, MAX_REPORT + 1))[: MAX_REPORT + 1]
    except OSError:
        pass
    return data, status, dict(cpu=cost[0], waiting=cost[1], wall=time.monotonic() - started)


def kill_the_rest():
    for _ in range(1000):
        try:
            os.kill(-1, signal.SIGKILL)  # all but this process and init
        except ProcessLookupError:
            return
        time.sleep(0.001)


def one(run, name, limit, channel):
    word = os.urandom(16).hex()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            child(run, name, word, theirs, channel)
        finally:
            os._exit(1)
    os.close(theirs)
    data, status, cost = watch(pid, ours, limit)
    os.close(ours)
    kill_the_rest()
    if status is None:
        return dict(cost, outcome="timeout", detail="")
    try:
        said, outcome, detail = json.loads(data)
    except (ValueError, TypeError):
        said = None
    if not data or status != 0:
        how = "exit code %d" % (status >> 8) if status & 127 == 0 else "signal %d" % (status & 127)
        return dict(cost, outcome="died", detail="its process ended with %s before it reported" % how)
    if said != word:
        return dict(cost, outcome="protocol", detail="")
    return dict(cost, outcome=str(outcome), detail=str(detail))


def main():
    channel = Channel()
    request = channel.receive()
    sys.path[:] = [path for path in sys.path if path.startswith("/usr/")]
    sys.path += ["/pristine/site", SUITE] + [os.path.normpath(os.path.join("/work", p)) for p in request["paths"]]
    run = {"unittest": run_unittest, "pytest": run_pytest}[request["framework"]]
    if run is run_pytest:
        try:
            import pytest
        except ImportError as error:
            channel.send({"seq": request["seq"], "error": str(error)})
            return
    import unittest.mock

    sys.modules["_rollmill_twin"] = twin_module()
    channel.send({"seq": request["seq"], "error": ""})
    for index, name in enumerate(request["ids"]):
        answer = one(run, name, request["limit"], channel)
        channel.send(dict(answer, seq=request["seq"], index=index))


main()
