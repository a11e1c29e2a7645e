#!/usr/bin/env python3
"""Checks the task set of this folder. Usage: python3 examples/learn/check.py [FILE ...]

It runs the references, which are part of this folder, and nothing else. Each FILE is JSON Lines, plain or gzip (HumanEval, MBPP);
the functions named in it must not occur here. Prints "file:line: reason" for everything that is wrong and exits 1 if anything is.
"""
import ast
import collections
import gzip
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
OLD = HERE.parent / "tasks"
APPROX = "approx(abs=1e-6,rel=0.0)"
FIELDS = ["task_id", "family", "question", "entry_point", "visible_tests", "test_cases", "tests_b", "reference", "difficulty",
          "ability", "licence"]
SIZES = {"visible_tests": (2, 2), "test_cases": (5, 6), "tests_b": (5, 6)}
ABILITIES = {"arithmetic", "control_flow", "dicts", "lists", "matrices", "number_theory", "sets", "sorting", "strings"}

problems = []


def same(a, b):
    """Equal in value and in type all the way down; floats within 1e-6."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return abs(a - b) <= 1e-6
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def has_float(v):
    if isinstance(v, dict):
        v = list(v.values())
    return isinstance(v, float) or isinstance(v, (list, tuple)) and any(map(has_float, v))


def normal(reference):
    """The reference with its function, parameters and variables renamed in a fixed order."""
    tree = ast.parse(reference)
    own = {a.arg for a in ast.walk(tree) if isinstance(a, ast.arg)}
    own |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.name = "f"
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"v{len(names)}")
        elif isinstance(node, ast.Name) and node.id in own:
            node.id = names.setdefault(node.id, f"v{len(names)}")
    return ast.unparse(tree)


def lines_of(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if str(path).endswith(".gz") else open(path, encoding="utf-8")
    with opened as file:
        for number, line in enumerate(file, 1):
            try:
                yield number, json.loads(line)
            except ValueError as error:
                problems.append(f"{path}:{number}: {error}")


class Task:
    def __init__(self, path, number, task):
        self.where = f"{path.relative_to(HERE.parent)}:{number}"
        self.task, self.name = task, task["entry_point"]
        space = {}
        exec(task["reference"], space)
        self.call = space[self.name]
        self.cases = {part: [tuple(ast.literal_eval(c[k]) for k in ("args", "expected")) for c in task[part]] for part in SIZES}

    def all_cases(self):
        return [case for part in SIZES for case in self.cases[part]]

    def passes(self, args, expected):
        """Whether the reference gives `expected` for a fresh copy of `args`."""
        try:
            return same(self.call(*ast.literal_eval(repr(args))), expected)
        except Exception:
            return False

    def bad(self, reason):
        problems.append(f"{self.where}: {reason}")


def check_form(t, path):
    task = t.task
    if list(task) != FIELDS:
        t.bad(f"fields are {list(task)}")
    if task["family"] != path.stem or task["task_id"] != f"{path.stem}/{t.name}":
        t.bad("family, file name and task_id do not fit")
    if (task["difficulty"], task["licence"]) != ("trivial", "Apache-2.0") or task["ability"] not in ABILITIES:
        t.bad("difficulty, licence or ability")
    head, _, body = task["reference"].partition("\n")
    if f"`{head[4:-1]}`" not in task["question"] or not head.startswith(f"def {t.name}("):
        t.bad("the question does not hold the signature in backticks")
    if not re.fullmatch(r"    return [^\n]+\n", body):
        t.bad("the body of the reference is not one line")
    if len(task["question"].split()) > 40:
        t.bad(f"the question has {len(task['question'].split())} words")
    for part, (low, high) in SIZES.items():
        if not low <= len(task[part]) <= high:
            t.bad(f"{part} has {len(task[part])} cases")
        for case, (args, expected) in zip(task[part], t.cases[part]):
            if not isinstance(args, tuple) or expected is None:
                t.bad(f"{part}: {case}: args must be a tuple, expected must not be None")
            if case.get("comparator") != (APPROX if has_float(expected) else None):
                t.bad(f"{part}: {case}: comparator")


def check_cases(t):
    for part in SIZES:
        for args, expected in t.cases[part]:
            if not t.passes(args, expected):
                t.bad(f"{part}: the reference does not give {expected!r} for {args!r}")
    inputs = [repr(args) for args, _ in t.all_cases()]
    if len(set(inputs)) != len(inputs):
        t.bad("an input occurs twice")
    # A constant answer, and any argument returned as it is: at most half of A and of B, and not both visible cases.
    for part, cases in t.cases.items():
        often = [sum(same(a, e) for _, a in cases) for _, e in cases]
        often += [sum(args[i] == e for args, e in cases) for i in range(len(cases[0][0]))]
        if max(often) > len(cases) // 2:
            t.bad(f"{part}: a constant or an unchanged argument passes {max(often)} of {len(cases)}")


def main():
    tasks, families = [], collections.defaultdict(set)
    for split in ("train", "heldout"):
        for path in sorted((HERE / split).glob("*.jsonl")):
            before = len(tasks)
            families[path.stem].add(split)
            if len(families[path.stem]) > 1:
                problems.append(f"{path.relative_to(HERE.parent)}:1: the family is in both splits")
            for number, task in lines_of(path):
                try:
                    tasks.append(Task(path, number, task))
                    check_form(tasks[-1], path)
                    check_cases(tasks[-1])
                except Exception as error:
                    problems.append(f"{path.relative_to(HERE.parent)}:{number}: {error!r}")
            if not 4 <= len(tasks) - before <= 8:
                problems.append(f"{path.relative_to(HERE.parent)}:1: {len(tasks) - before} tasks")

    old = [Task(path, number, task) for path in sorted(OLD.glob("*.jsonl")) for number, task in lines_of(path)]
    taken = {t.name: t.where for t in old}
    for path in sys.argv[1:]:
        for number, task in lines_of(path):
            for name in [task.get("entry_point")] + re.findall(r"def (\w+)\(", task.get("code", "")):
                taken.setdefault(name, f"{path}:{number}")
    questions, bodies = {}, {normal(t.task["reference"]): t.where for t in old}
    for t in tasks:
        for seen, key, what in [(taken, t.name, "entry point"), (bodies, normal(t.task["reference"]), "reference"),
                                (questions, re.sub(r"`.*?`", "", t.task["question"]), "question")]:
            if key in seen:
                t.bad(f"the {what} is that of {seen[key]}")
            seen.setdefault(key, t.where)

    # The same function under two names: each of two references passes every case of the other task.
    for i, t in enumerate(tasks):
        for other in tasks[i + 1:] + old:
            if all(t.passes(*c) for c in other.all_cases()) and all(other.passes(*c) for c in t.all_cases()):
                t.bad(f"cannot be told from {other.where} ({other.name})")

    print("\n".join(problems) if problems else f"{len(tasks)} tasks in {len(families)} families: all as it should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
