"""Holds a Workflow against the types of Argo's published schema (PyPI hera), and the graph against itself.

usage: argo.py FILE; exit 1 and one line for each thing that is wrong."""
import sys

import yaml
from hera.workflows.models import Workflow


def unknown(given, known, at=""):
    """Fields of `given` that a model which drops what it does not know has lost."""
    if isinstance(given, dict):
        for name, value in given.items():
            if not isinstance(known, dict) or name not in known:
                yield f"{at}.{name} is no field"
            else:
                yield from unknown(value, known[name], f"{at}.{name}")
    elif isinstance(given, list):
        for number, (value, other) in enumerate(zip(given, known)):
            yield from unknown(value, other, f"{at}[{number}]")


def graph(spec):
    """Tasks of templates that are not there, or after tasks that are not there."""
    names = {template["name"] for template in spec["templates"]}
    if spec["entrypoint"] not in names:
        yield f"the entrypoint {spec['entrypoint']} is no template"
    for template in spec["templates"]:
        tasks = template.get("dag", {}).get("tasks", [])
        there = {task["name"] for task in tasks}
        for task in tasks:
            if task["template"] not in names:
                yield f"{task['name']} is of no template"
            for before in task.get("dependencies", []):
                if before not in there:
                    yield f"{task['name']} comes after {before}, which is no task"


problems = []
for document in yaml.safe_load_all(open(sys.argv[1])):
    if document["kind"] != "Workflow":
        continue
    workflow = Workflow.model_validate(document)
    problems += unknown(document, workflow.model_dump(by_alias=True, exclude_none=True, mode="json"))
    problems += graph(document["spec"])
print("\n".join(problems))
sys.exit(1 if problems else 0)
