# Which of some modules the Python files of a folder import. Standard library only, CPython 3.8 or newer.
import ast
import os


def names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
            for alias in node.names:
                yield "%s.%s" % (node.module, alias.name)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called in ("__import__", "import_module") and isinstance(node.args[0].value, str):
                yield node.args[0].value


def check(folder, *forbidden):
    for where, _, files in sorted(os.walk(folder)):
        for file in sorted(files):
            path = os.path.join(where, file)
            if not file.endswith((".py", ".pyw")):
                continue
            with open(path, "rb") as source:
                tree = ast.parse(source.read())
            for name in names(tree):
                for module in forbidden:
                    if name == module or name.startswith(module + "."):
                        return False, "%s imports %s" % (os.path.relpath(path, folder), module)
    return True
