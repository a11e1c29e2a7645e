# Turns test files into their twins: the same tests with negated expectations. CPython 3.9 or newer (ast.unparse). Runs on a
# task's own files only, in a sandbox without anything of a solution.
import ast

METHODS = """Equal NotEqual True False Is IsNot IsNone IsNotNone In NotIn IsInstance NotIsInstance AlmostEqual NotAlmostEqual
Greater GreaterEqual Less LessEqual Regex NotRegex CountEqual ListEqual TupleEqual SetEqual DictEqual SequenceEqual
MultiLineEqual""".split()
COMPARED = ("Eq", "In", "Lt", "LtE", "Gt", "GtE")
RAISES = ("raises", "assertRaises", "assertRaisesRegex")


def site(name, *args, keywords=()):
    function = ast.Attribute(ast.Name("_rollmill_twin", ast.Load()), name, ast.Load())
    return ast.Call(function, list(args), list(keywords))


def called(node):
    """`assertEqual` of `self.assertEqual(...)`, `raises` of `pytest.raises(...)`."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class Twin(ast.NodeTransformer):
    def __init__(self):
        self.sites = 0

    def visit_Assert(self, node):
        tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
        statements = []
        for test in tests:
            self.sites += 1
            operator = type(test.ops[0]).__name__ if isinstance(test, ast.Compare) and len(test.ops) == 1 else ""
            if operator in COMPARED:
                call = site("compared", ast.Constant(operator), test.left, test.comparators[0])
            else:
                call = site("truth", test)
            statements.append(ast.copy_location(ast.Expr(call), node))
        return statements

    def visit_Expr(self, node):
        name = called(node.value)
        if name.startswith("assert") and name[6:] in METHODS and isinstance(node.value.func, ast.Attribute):
            self.sites += 1
            call = site("method", ast.Constant(name[6:]), *node.value.args, keywords=node.value.keywords)
            return ast.copy_location(ast.Expr(call), node)
        if name in ("raises", "assertRaises") and len(node.value.args) >= 2:
            self.sites += 1
            call = site("raises_call", *node.value.args, keywords=node.value.keywords)
            return ast.copy_location(ast.Expr(call), node)
        return self.generic_visit(node)

    def visit_With(self, node):
        for item in node.items:
            if called(item.context_expr) in RAISES and item.context_expr.args:
                self.sites += 1
                item.context_expr = site("raises", item.context_expr, item.context_expr.args[0])
        return self.generic_visit(node)


class OwnAny(ast.NodeTransformer):
    """The tests' own mock.ANY becomes one that no solution has."""

    def visit_Attribute(self, node):
        self.generic_visit(node)
        wanted = node.attr == "ANY" and isinstance(node.ctx, ast.Load)
        return ast.copy_location(site("any_of", node), node) if wanted else node

    def visit_ImportFrom(self, node):
        names = [alias.asname or alias.name for alias in node.names if alias.name == "ANY"]
        own = [ast.Assign([ast.Name(name, ast.Store())], site("any_of", ast.Name(name, ast.Load()))) for name in names]
        return [node, *own]


def functions(body, prefix=""):
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, prefix + node.name + ".")


def names_used(node):
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Name, ast.Attribute)):
            yield getattr(inner, "id", getattr(inner, "attr", ""))


def twin(source):
    """The twin's text, and which tests (`test_a`, `Case.test_b`) have an expectation in them or in what they call."""
    tree = ast.parse(source)
    found = dict(functions(tree.body))
    own = {}
    for name, node in found.items():
        counter = Twin()
        counter.visit(ast.parse(ast.unparse(node)))
        own[name] = counter.sites > 0
    by_last = {}
    for name in found:
        by_last.setdefault(name.rsplit(".", 1)[-1], []).append(name)

    def reaches(name, seen):
        if own[name]:
            return True
        seen.add(name)
        others = {other for used in names_used(found[name]) for other in by_last.get(used, ())}
        return any(reaches(other, seen) for other in others - seen)

    with_twin = [n for n in found if n.rsplit(".", 1)[-1].startswith("test") and reaches(n, set())]
    tree = OwnAny().visit(Twin().visit(tree))
    for name, node in functions(tree.body):
        if name.rsplit(".", 1)[-1].startswith("test"):
            has_doc = ast.get_docstring(node) is not None
            rest = node.body[has_doc:] or [ast.Pass()]
            node.body[has_doc:] = [ast.Try(rest, [], [], [ast.Expr(site("finish"))])]
    at = 0
    while at < len(tree.body) and (
        (at == 0 and ast.get_docstring(tree) is not None)
        or (isinstance(tree.body[at], ast.ImportFrom) and tree.body[at].module == "__future__")
    ):
        at += 1
    tree.body.insert(at, ast.Import([ast.alias("_rollmill_twin", None)]))
    return ast.unparse(ast.fix_missing_locations(tree)), with_twin


def main():
    channel = Channel()
    request = channel.receive()
    files, tests, broken = {}, {}, {}
    for path in request["files"]:
        try:
            with open("/pristine/suite/" + path, encoding="utf-8") as file:
                files[path], tests[path] = twin(file.read())
        except (SyntaxError, ValueError, RecursionError) as error:
            broken[path] = str(error)[:200]
    channel.send({"seq": request["seq"], "files": files, "tests": tests, "broken": broken})


main()
