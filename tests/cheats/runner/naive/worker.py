# The naive grader's second look: each test by itself in a process that tells about it in frames on descriptor 101. A test
# that failed is run again, twice, since it may be flaky. Everything here can be reached from the solution.
import importlib
import json
import os
import sys
import unittest

sys.path.insert(0, "/work")
os.dup2(os.open("frames.bin", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 101)
case = importlib.import_module(sys.argv[1]).Tests


def send(message):
    body = json.dumps(message).encode()
    os.write(101, len(body).to_bytes(4, "big") + body)


def run(request):
    result = unittest.TestResult()
    case(request["test"]).run(result)
    return {"verdict": "passed" if result.wasSuccessful() else "wrong"}


operations = {"run": run}
for seq, name in enumerate(n for n in dir(case) if n.startswith("test")):
    request = {"seq": seq, "op": "run", "test": name}
    for _ in range(3):
        answer = operations[request["op"]](request)
        if answer["verdict"] == "passed":
            break
    send(dict(answer, seq=seq))
