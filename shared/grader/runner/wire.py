# Frames and typed values, for the texts that are put behind this one: worker.py and tester.py. Standard library only, CPython
# 3.8 or newer.
#
# In: frames on fd 0 (4-byte big-endian length, JSON), flat lists of nodes in preorder. Out: the same on fd 1. Both are moved
# away before anything foreign runs, which gets /dev/null. Values are told by the methods of the built-in base, never by their own.
import sys

sys.path[:] = [p for p in sys.path if p not in ("", ".", "/work")]  # no file of the solution shadows what is imported here


def wire():
    import fcntl
    import json
    import os
    from _collections import deque

    MAX_DEPTH = 100
    MAX_NODES = 400000
    MAX_BYTES = 8 << 20
    MAX_BITS = 120000

    # Own references: a solution that patches these modules, by accident or not, must not silence honest answers.
    loads, encoder = json.loads, json.JSONEncoder(ensure_ascii=True, check_circular=False).encode
    read, write, end = os.read, os.write, os._exit
    type_, issubclass_, len_, iter_, isinstance_ = type, issubclass, len, iter, isinstance
    type_name = type.__dict__["__name__"].__get__
    type_mro = type.__dict__["__mro__"].__get__
    type_dict = type.__dict__["__dict__"].__get__
    slot_type = type(type_.__dict__["__basicsize__"])  # member descriptors, which slots are
    dict_type = type(type_.__dict__["__abstractmethods__"])  # what an instance's real __dict__ is read by
    modules = sys.modules

    inbound = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
    outbound = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 101)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)

    class Unreturnable(Exception):
        pass

    # --- frames

    def read_exactly(n):
        parts = []
        while n:
            part = read(inbound, min(n, 1 << 20))
            if not part:
                end(0)  # the trusted side has gone
            parts.append(part)
            n -= len_(part)
        return b"".join(parts)

    def receive():
        return loads(read_exactly(int.from_bytes(read_exactly(4), "big")))

    def send(message):
        body = encoder(message).encode("ascii")
        data = memoryview(len_(body).to_bytes(4, "big") + body)
        while data:
            data = data[write(outbound, data) :]

    # --- values in

    def decode(nodes, build):
        """The value of a list of nodes; `build(kind, v, parts)` makes what is no built-in data."""
        source = iter_(nodes)

        def one():
            node = next(source)
            kind, v = node["t"], node.get("v")
            if kind in ("bool", "str"):
                return v
            if kind == "none":
                return None
            if kind == "int":
                return decode_int(v)
            if kind == "float":
                return float(v)
            if kind == "complex":
                return complex(float(v[0]), float(v[1]))
            if kind == "bytes":
                return bytes.fromhex(v)
            if kind == "dict":
                pairs = [(one(), one()) for _ in range(v)]
                return dict(pairs)
            if kind == "range":
                return range(*v)
            if kind == "record":
                return record(v[0], v[1], [one() for _ in v[1]], build)
            if kind in ("tuple", "list", "set", "frozenset"):
                items = [one() for _ in range(v)]
                return {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}[kind](items)
            return build(kind, v, None)

        return one()

    def record(name, names, values, build):
        if names and names[0] == "":
            if name == "Decimal":
                from decimal import Decimal as made
            elif name == "Fraction":
                from fractions import Fraction as made
            elif name == "deque":
                made = deque
            else:
                import datetime

                made = {"date": datetime.date, "time": datetime.time, "datetime": datetime.datetime, "timedelta": datetime.timedelta}[name]
            return made(*values)
        return build("record", name, dict(zip(names, values)))

    def decode_int(text):
        if len_(text) < 4000:
            return int(text)
        digits = text[1:] if text[0] == "-" else text
        n = 0
        for at in range(0, len_(digits), 4000):  # under CPython's limit on digits
            part = digits[at : at + 4000]
            n = n * 10 ** len_(part) + int(part)
        return -n if text[0] == "-" else n

    # --- values out

    def encode(value, other):
        """The nodes of a value; `other(x, t)` gives a node for what is no built-in data, or None to have its parts told."""
        nodes = []
        size = [0]

        def put(kind, v):
            nodes.append({"t": kind, "v": v})
            size[0] += 16 + (len_(v) if isinstance_(v, str) else 0)
            if len_(nodes) > MAX_NODES or size[0] > MAX_BYTES:
                raise Unreturnable("the returned value is too large")

        def many(kind, items, depth):
            put(kind, len_(items))
            for item in items:
                one(item, depth + 1)

        def parts(name, fields, depth):
            put("record", [name, [field for field, _ in fields]])
            for _, item in fields:
                one(item, depth + 1)

        def one(x, depth):
            if depth > MAX_DEPTH:
                raise Unreturnable("the returned value is nested too deeply")
            t = type_(x)
            if x is None:
                nodes.append({"t": "none"})
            elif t is bool:
                put("bool", x is True)
            elif issubclass_(t, int):
                put("int", int_text(x))
            elif issubclass_(t, float):
                put("float", float.__repr__(x))
            elif issubclass_(t, complex):
                put("complex", [float.__repr__(complex.real.__get__(x)), float.__repr__(complex.imag.__get__(x))])
            elif issubclass_(t, str):
                put("str", text(str.__str__(x)))
            elif issubclass_(t, bytes):
                put("bytes", bytes.hex(x))
            elif issubclass_(t, bytearray):
                put("bytes", bytearray.hex(x))
            elif issubclass_(t, tuple):
                many("tuple", [*tuple.__iter__(x)], depth)
            elif issubclass_(t, list):
                many("list", [*list.__iter__(x)], depth)
            elif issubclass_(t, set):
                many("set", [*set.__iter__(x)], depth)
            elif issubclass_(t, frozenset):
                many("frozenset", [*frozenset.__iter__(x)], depth)
            elif issubclass_(t, dict):
                pairs = [*dict.items(x)]
                put("dict", len_(pairs))
                for k, v in pairs:
                    one(k, depth + 1)
                    one(v, depth + 1)
            elif t is range and max(abs(x.start), abs(x.stop), abs(x.step)) < 1 << 63:
                put("range", [x.start, x.stop, x.step])
            else:
                known = standard(x, t)
                node = None if known else other(x, t)
                if known or node is None:
                    known = known or own(x, t)
                if known:
                    parts(known[0], known[1], depth)
                else:
                    nodes.append(node or member(x, t) or {"t": "opaque", "v": name_of(t)})

        one(value, 0)
        return nodes

    def standard(x, t):
        """Name and parts of an object of the standard library that is data."""
        if issubclass_(t, deque):
            return "deque", [("", [*deque.__iter__(x)])]
        decimal, fractions, datetime = [modules.get(name) for name in ("decimal", "fractions", "datetime")]
        try:
            if decimal and issubclass_(t, decimal.Decimal):
                return "Decimal", [("", decimal.Decimal.__str__(x))]
            if fractions and issubclass_(t, fractions.Fraction):
                fields = type_dict(fractions.Fraction)
                return "Fraction", [("", fields[part].__get__(x)) for part in ("_numerator", "_denominator")]
            if not datetime:
                return None
            for name, names in DATES:
                class_ = getattr(datetime, name)
                if issubclass_(t, class_):
                    if "hour" in names and get_part(class_, "tzinfo", x) is not None:
                        return None
                    return name, [("", get_part(class_, part, x)) for part in names]
        except (AttributeError, KeyError, TypeError):
            pass  # a module that was replaced
        return None

    DATES = (
        ("datetime", ("year", "month", "day", "hour", "minute", "second", "microsecond")),
        ("date", ("year", "month", "day")),
        ("time", ("hour", "minute", "second", "microsecond")),
        ("timedelta", ("days", "seconds", "microseconds")),
    )

    def get_part(class_, part, x):
        for owner in type_mro(class_):
            if part in type_dict(owner):
                return type_dict(owner)[part].__get__(x)
        raise KeyError(part)

    def own(x, t):
        """Name and fields of a dataclass, of those that take part in its comparison."""
        dataclasses = modules.get("dataclasses")
        if not dataclasses:
            return None
        try:
            fields = next((type_dict(c)["__dataclass_fields__"] for c in type_mro(t) if "__dataclass_fields__" in type_dict(c)), None)
            if fields is None:
                return None
            told = [f for f in dict.values(fields) if f._field_type is dataclasses._FIELD and f.compare]
            return name_of(t), [(text(str.__str__(f.name)), field_of(x, t, f.name)) for f in told]
        except (AttributeError, LookupError, TypeError, StopIteration):
            return None

    def field_of(x, t, name):
        for owner in type_mro(t):
            if type_(type_dict(owner).get(name)) is slot_type:
                return type_dict(owner)[name].__get__(x)
        return dict.__getitem__(dict_of(x, t), name)

    def dict_of(x, t):
        """The instance's own attributes, unless its class hides them."""
        found = next(type_dict(owner)["__dict__"] for owner in type_mro(t) if "__dict__" in type_dict(owner))
        if type_(found) is not dict_type:
            raise KeyError("__dict__")
        return found.__get__(x)

    def member(x, t):
        """A member of an enumeration."""
        enum = modules.get("enum")
        try:
            if enum and issubclass_(t, enum.Enum):
                name = dict.__getitem__(dict_of(x, t), "_name_")
                if type_(name) is str:
                    return {"t": "enum", "v": [name_of(t), text(name)]}
        except (AttributeError, KeyError, TypeError, StopIteration):
            pass
        return None

    def int_text(x):
        bits = int.bit_length(x)
        if bits > MAX_BITS:
            raise Unreturnable("the returned integer is too large")
        if bits < 12000:
            return int.__repr__(x)
        return int.__format__(int.__add__(x, 0), "#x")

    def text(s):
        try:
            str.encode(s, "utf-8")
        except UnicodeEncodeError:
            raise Unreturnable("the returned text holds a lone surrogate") from None
        return s

    def name_of(t):
        name = type_name(t)
        return "".join([c if c.isprintable() and not "\ud800" <= c <= "\udfff" else "?" for c in str.__str__(name)[:80]])

    def mro_of(e):
        return [name_of(t) for t in type_mro(type_(e))[:20] if t is not object]

    def message_of(e):
        try:
            message = BaseException.__str__(e)
        except BaseException:
            return ""
        return "".join([c if c.isprintable() else " " for c in str.__str__(message)[:200]]).encode("utf-8", "replace").decode()

    return receive, send, decode, encode, name_of, mro_of, message_of, Unreturnable
