"""Commands for gdb: the engine's state of a target. Load this file in gdb:

    gdb -x tests/gdb/alertscaler.py build/asan/src/alertscaler CORE
    gdb -x tests/gdb/alertscaler.py -p PROCESS

    as-targets [ENGINE]            the key, the phase and the size of each target
    as-target KEY [ENGINE]         one target; KEY is a part of its key
    as-engine                      where the engine was found

ENGINE is an expression, for example `daemon->shell->engine`. Without it, the variables of all frames and what these point to
are searched. The output has each member of the struct that is set: the helper reads the types of the program, so that a new
member needs no change here. Times are relative to the event that the engine handles.
"""
import datetime

import gdb

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
DEPTH_MAX, ITEMS_MAX, SEARCH_DEPTH = 5, 20, 4
# Pointers to what is not the target's own: a name is printed in place of the members.
NAMED = {"target": "ref", "incident": "fingerprint", "as_rule": "name", "as_target_config": "name", "as_target_kind": "word"}
LINK_MEMBERS = {"tqe_next", "le_next", "stqe_next", "rbe_left"}


class Failure(gdb.GdbError):
    pass


def struct_of(kind):
    """The struct that a type is, or points to; None."""
    kind = kind.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR:
        kind = kind.target().strip_typedefs()
    return kind if kind.code == gdb.TYPE_CODE_STRUCT else None


def names_of(value):
    return [field.name for field in value.type.strip_typedefs().fields() if field.name]


def is_link(kind):
    kind = kind.strip_typedefs()
    return kind.code == gdb.TYPE_CODE_STRUCT and any(field.name in LINK_MEMBERS for field in kind.fields())


def head_of(kind):
    """The first member of a list or a tree: "tqh_first", "rbh_root" ...; None for other structs."""
    for field in kind.strip_typedefs().fields():
        if field.name in ("tqh_first", "lh_first", "stqh_first", "rbh_root"):
            return field.name
    return None


def link_of(item, wanted):
    """The member of an item that links it in a list or a tree: the one of this kind, preferably the target's."""
    found = []
    for field in item.type.strip_typedefs().fields():
        kind = field.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_STRUCT and any(member.name == wanted for member in kind.fields()):
            found.append(field.name)
    for name in ("in_target", "by_id", "by_digest", "link"):
        if name in found:
            return name
    return found[0] if found else None


def items_of(head):
    """The items of a list or a tree of the macros of sys/queue.h and sys/tree.h."""
    first = head_of(head.type)
    place = head[first]
    if not int(place):
        return
    if first == "rbh_root":
        yield from tree_items(place, link_of(place.dereference(), "rbe_left"))
        return
    following = {"tqh_first": "tqe_next", "lh_first": "le_next", "stqh_first": "stqe_next"}[first]
    link = link_of(place.dereference(), following)
    while int(place) and link:
        yield place
        place = place[link][following]


def tree_items(root, link):
    waiting, place = [], root
    while waiting or int(place):
        while int(place):
            waiting.append(place)
            place = place[link]["rbe_left"]
        place = waiting.pop()
        yield place
        place = place[link]["rbe_right"]


def text_of(pointer):
    return pointer.string(errors="replace") if int(pointer) else None


def key_of(target):
    return text_of(target["ref"]["key"])


class Printer:
    def __init__(self, engine):
        self.now = int(engine["mono"]["us"])
        self.seen = set()

    def relative(self, us):
        if us in (INT64_MIN, INT64_MAX):
            return None
        seconds = (us - self.now) / 1e6
        return f"{abs(seconds):.3f} s ago" if seconds <= 0 else f"in {seconds:.3f} s"

    def scalar(self, value):
        """The text of a value that is no struct; None if it is not set."""
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_BOOL:
            return "yes" if value else None
        if kind.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_FLT):
            return str(value) if value else None
        if kind.code == gdb.TYPE_CODE_ENUM:
            return value.format_string(symbols=False) if int(value) else None
        if kind.code == gdb.TYPE_CODE_ARRAY:
            return self.array(value, kind)
        if kind.code == gdb.TYPE_CODE_PTR:
            return self.pointer(value)
        return value.format_string(max_elements=8)

    @staticmethod
    def array(value, kind):
        data = bytes(gdb.selected_inferior().read_memory(int(value.address), kind.sizeof))
        if not any(data):
            return None
        item = kind.target()
        if item.sizeof > 1:
            return value.format_string(max_elements=8)
        return data.hex() if "uint8" in str(item) or "unsigned" in str(item) else data.split(b"\0")[0].decode(errors="replace")

    def pointer(self, value):
        kind = value.type.strip_typedefs().target().strip_typedefs()
        if not int(value):
            return None
        if kind.code == gdb.TYPE_CODE_INT and kind.sizeof == 1:
            return f'"{text_of(value)}"'
        name = NAMED.get(kind.tag)
        if name and name in names_of(value.dereference()):
            part = value[name]
            return key_of(value) if name == "ref" else self.scalar(part) or "no name"
        return None if kind.code == gdb.TYPE_CODE_PTR else f"at {value.format_string(symbols=False)}"

    def time(self, value):
        """(whether the struct is a time, its text)."""
        names = names_of(value)
        if names == ["us"]:
            wall = "wall" in str(value.type)
            return True, self.wall(int(value["us"])) if wall else self.relative(int(value["us"])) if int(value["us"]) else None
        if names == ["mono", "wall"]:
            us = int(value["mono"]["us"])
            return True, self.relative(us) if us else None
        return False, None

    @staticmethod
    def wall(us):
        try:
            return str(datetime.datetime.fromtimestamp(us / 1e6, datetime.timezone.utc)) if us > 0 else None
        except (OverflowError, ValueError):
            return None

    def member(self, name, value, depth):
        """Lines of one member; none if it is not set."""
        kind = value.type.strip_typedefs()
        space = "    " * depth
        if kind.code == gdb.TYPE_CODE_STRUCT:
            is_time, text = self.time(value)
            if is_time:
                return [f"{space}{name}: {text}"] if text else []
            if head_of(kind):
                return self.list(name, value, depth)
            lines = self.members(value, depth + 1)
            return [f"{space}{name}:", *lines] if lines else []
        if kind.code == gdb.TYPE_CODE_PTR and int(value) and struct_of(kind):
            struct = kind.target().strip_typedefs()
            if struct.tag not in NAMED and struct.fields():
                lines = self.members(value.dereference(), depth + 1)
                return [f"{space}{name}:", *lines] if lines else []
        text = self.scalar(value)
        return [f"{space}{name}: {text}"] if text else []

    def list(self, name, head, depth):
        items, lines = list(items_of(head)), []
        if not items:
            return []
        for number, item in enumerate(items[:ITEMS_MAX]):
            lines.append("    " * (depth + 1) + f"[{number}]")
            lines += self.members(item.dereference(), depth + 2)
        if len(items) > ITEMS_MAX:
            lines.append("    " * (depth + 1) + f"and {len(items) - ITEMS_MAX} more")
        return ["    " * depth + f"{name}: {len(items)}", *lines]

    def members(self, value, depth):
        place = (int(value.address), str(value.type)) if value.address else None
        if depth > DEPTH_MAX or place in self.seen:
            return []
        self.seen.add(place)
        lines = []
        for field in value.type.strip_typedefs().fields():
            if not field.name or is_link(field.type) or struct_of(field.type) == self.engine_type():
                continue
            try:
                lines += self.member(field.name, value[field.name], depth)
            except gdb.MemoryError:
                lines.append("    " * depth + f"{field.name}: not readable")
        return lines

    @staticmethod
    def engine_type():
        return gdb.lookup_type("struct as_engine")


def search(value, depth, seen):
    """A pointer to the engine in a value, its members, and what these point to; None."""
    struct = struct_of(value.type)
    if struct is None:
        return None
    is_pointer = value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR
    if is_pointer and not int(value):
        return None
    if struct.tag == "as_engine":
        return value if is_pointer else value.address
    if depth == 0 or (is_pointer and int(value) in seen):
        return None
    if is_pointer:
        seen.add(int(value))
        value = value.dereference()
    try:
        found = None
        for field in struct.fields():
            if field.name and not is_link(field.type) and struct_of(field.type) is not None:
                found = search(value[field.name], depth - 1, seen)
            if found is not None:
                return found
    except gdb.MemoryError:
        pass
    return None


def symbols_of(frame):
    try:
        block = frame.block()
    except RuntimeError:                # without debug information
        return
    while block is not None and not block.is_global:
        if not block.is_static:
            yield from (symbol for symbol in block if symbol.is_variable or symbol.is_argument)
        block = block.superblock


def find_engine(expression=""):
    if expression:
        value = gdb.parse_and_eval(expression)
        struct = struct_of(value.type)
        if struct is None or struct.tag != "as_engine":
            raise Failure(f"{expression} is no engine: its type is {value.type}")
        return value.dereference() if value.type.strip_typedefs().code == gdb.TYPE_CODE_PTR else value
    thread = gdb.selected_thread()
    if thread is None:
        raise Failure("no process and no core: start one, for example with the command run")
    frame = gdb.selected_frame()
    try:
        return search_threads()
    finally:
        thread.switch()
        frame.select()


def search_threads():
    for depth in range(SEARCH_DEPTH + 1):       # the nearest first
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            frame = gdb.newest_frame()
            while frame is not None:
                for symbol in symbols_of(frame):
                    try:
                        found = search(symbol.value(frame), depth, set())
                        if found is not None and int(found):
                            found.dereference()["targets"].fetch_lazy()
                            return found.dereference()
                    except gdb.error:
                        continue                # optimized out, or not initialized yet
                frame = frame.older()
    raise Failure("no frame has an engine: name it, for example as-targets daemon->shell->engine")


def describe(engine, target):
    """All that is set of a target, and the commits that it waits for."""
    printer = Printer(engine)
    lines = [f"target {key_of(target)}", f"    id: {text_of(target['ref']['id'])}", f"    phase: {target['phase']}"]
    for field in target.type.strip_typedefs().target().fields():
        if field.name in ("ref", "phase") or is_link(field.type):
            continue
        lines += printer.member(field.name, target[field.name], 1)
    if "waiters" in names_of(engine):
        for waiter in items_of(engine["waiters"]):
            if "target" in names_of(waiter.dereference()) and int(waiter["target"]) == int(target):
                lines += ["    waits for a commit:", *Printer(engine).members(waiter.dereference(), 2)]
    return "\n".join(lines)


def list_targets(engine):
    lines = []
    for target in items_of(engine["targets"]):
        size = str(target["replicas"]) if target["has_size"] else "not observed"
        lines.append(f"{key_of(target)}  {target['phase']}  size {size}")
    return "\n".join(lines) or "no targets"


class TargetsCommand(gdb.Command):
    """as-targets [ENGINE]: the key, the phase and the size of each target of the engine."""

    def __init__(self):
        super().__init__("as-targets", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        print(list_targets(find_engine(argument)))


class TargetCommand(gdb.Command):
    """as-target KEY [ENGINE]: all that is set of each target whose key contains KEY."""

    def __init__(self):
        super().__init__("as-target", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        key, _, expression = argument.partition(" ")
        if not key:
            raise Failure("as-target KEY [ENGINE]")
        engine = find_engine(expression)
        found = [target for target in items_of(engine["targets"]) if key in key_of(target)]
        if not found:
            raise Failure(f"no target has {key} in its key")
        for target in found:
            print(describe(engine, target))


class EngineCommand(gdb.Command):
    """as-engine: where the engine is, as an expression for as-target and as-targets."""

    def __init__(self):
        super().__init__("as-engine", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        print(f"(struct as_engine *){int(find_engine(argument).address):#x}")


TargetsCommand()
TargetCommand()
EngineCommand()
