#!/usr/bin/python3
"""includes.py ROOT: the include graph is the one of the table `layers` in src/meson.build.

- a layer includes only public headers of the layers in its row, and libraries of its row;
- adapters do not know each other; the core knows only base;
- an include in quotes is a file beside the one that includes it, or one of the same layer, by its path in there;
- only src/app/main.c names concrete adapters: all others know ports.
"""
import ast
import fnmatch
import pathlib
import re

import arch

ADAPTERS = {"net", "target", "source", "store", "leader", "audit"}
UNLISTED = {"port": {"base", "core", "port"}}  # layers of headers only
TOP = {"app", "cli"}  # may include everything

LIBRARY_HEADERS = {
    "curl/*": "libcurl",
    "event2/*": "libevent",
    "expat.h": "expat",
    "jansson.h": "jansson",
    "openssl/*": "openssl",
    "pcre2.h": "pcre2",
    "sqlite3.h": "sqlite",
    "yaml.h": "libyaml",
}

# What the layers above the adapters get through ports, but for the one file that puts all together.
MAIN = "src/app/main.c"
CONCRETE_HEADERS = ["audit/file.h", "leader/*", "net/client.h", "source/*", "store/*", "target/*"]
CONCRETE_CALLS = {"as_http_server_new": "net/server.h is for requests; the server is made"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def read_table(root, name):
    """A list of src/meson.build whose bare words (dependencies) are read as strings."""
    text = (root / "src/meson.build").read_text(encoding="utf-8")
    start = re.search(rf"^{name} = ", text, re.MULTILINE)
    if not start:
        raise SystemExit(f"src/meson.build: there is no list `{name}`")
    source = re.sub(r"#.*", "", text[start.end() :])
    source = source[: re.search(r"\]\s*^(?=\S)|\]\s*\Z", source, re.MULTILINE).start() + 1]
    return ast.literal_eval(re.sub(r"'[^']*'|\b[a-z]\w*", lambda m: "'" + m[0].strip("'") + "'", source))


def check_rows(rows):
    for layer, headers, _ in rows:
        others = (set(headers) & ADAPTERS) - {layer}
        if layer in ADAPTERS and others:
            yield f"src/meson.build: adapter {layer} sees adapter {', '.join(sorted(others))}"
        if layer in ("base", "core") and set(headers) - {"base", layer}:
            yield f"src/meson.build: {layer} sees {', '.join(sorted(set(headers) - {'base', layer}))}"


def check_public(path, layer, header, allowed):
    other = header.split("/")[0]
    if other not in allowed:
        return f"{layer} may not include {other}"
    if layer in TOP and str(path) != MAIN and any(fnmatch.fnmatch(header, p) for p in CONCRETE_HEADERS):
        return f"only {MAIN} names concrete adapters, not {header}"
    return None


def check_include(root, path, layer, quote, header, allowed, libraries):
    if quote == '"':
        places = [root / path.parent] if "/" not in header else []
        places.append(root / path.parents[-3])  # the layer's folder
        private = ".." not in header and any((place / header).is_file() for place in places)
        return None if private else f'"{header}" is not a private header beside it or of its layer'
    if header.startswith("alertscaler/"):
        return check_public(path, layer, header.removeprefix("alertscaler/"), allowed)
    library = next((v for k, v in LIBRARY_HEADERS.items() if fnmatch.fnmatch(header, k)), None)
    if library and layer not in TOP and not any(name.startswith(library) for name in libraries):
        return f"{layer} may not use {library}"
    return None


def check_calls(path, layer, text):
    if layer not in TOP or str(path) == MAIN:
        return
    for match in re.finditer(r"\b\w+\b", arch.code_only(text)):
        if match[0] in CONCRETE_CALLS:
            yield f"{path}:{arch.line_of(text, match.start())}: {CONCRETE_CALLS[match[0]]} in {MAIN} ({match[0]})"


def check(root):
    root = pathlib.Path(root)
    rows = read_table(root, "layers")
    everything = set(read_table(root, "all_layers"))
    allowed = {row[0]: set(row[1]) for row in rows} | UNLISTED | {layer: everything for layer in TOP}
    libraries = {row[0]: row[2] for row in rows}
    complaints = list(check_rows(rows))
    files = arch.c_files(root, "src", "include/alertscaler")
    for path in files:
        layer = path.parts[1 if path.parts[0] == "src" else 2]
        if layer not in allowed:
            complaints.append(f"{path}: {layer} is no layer of src/meson.build")
            continue
        text = (root / path).read_text(encoding="utf-8")
        for match in INCLUDE.finditer(arch.without_comments(text)):
            wrong = check_include(root, path, layer, *match.groups(), allowed[layer], libraries.get(layer, []))
            if wrong:
                complaints.append(f"{path}:{arch.line_of(text, match.start())}: {wrong}")
        complaints += check_calls(path, layer, text)
    return complaints if files else [f"{root}: there are no C files"]


def self_test():
    table = """
layers = [
  # layer,   headers,           libraries
  ['base',   ['base'],                  [pcre2]],
  ['core',   ['base', 'core'],          [uthash]],
  ['net',    ['base', 'port', 'net'],   [libevent, openssl, libcurl]],
  ['store',  ['base', 'port', 'store'], [sqlite]],
]
all_layers = ['base', 'core', 'net', 'store', 'port', 'app', 'cli']

other = 1
"""
    good = {
        "src/meson.build": table,
        "include/alertscaler/base/a.h": "#include <stdint.h>\n",
        "include/alertscaler/store/sqlite.h": "#include <alertscaler/port/store.h>\n",
        "src/base/a.c": '#include <alertscaler/base/a.h>\n#include <pcre2.h>\n#include "b.h"\n',
        "src/base/b.h": "",
        "src/base/room/c.c": '#include "other/d.h"\n#include "b.h"\n',
        "src/base/other/d.h": "",
        "src/core/a.c": "/*\n#include <curl/curl.h>\n*/\n#include <alertscaler/base/a.h>\n#include <uthash.h>\n",
        "src/net/a.c": "#include <event2/event.h>\n#include <openssl/ssl.h>\n#include <alertscaler/port/http.h>\n",
        "src/app/main.c": "#include <alertscaler/store/sqlite.h>\nint x = as_http_server_new();\n",
        "src/app/a.c": '#include <alertscaler/net/server.h>\n#include <jansson.h>\nchar *x = "as_http_server_new";\n',
    }
    bad = [
        ({"src/core/b.c": "#include <alertscaler/net/a.h>\n"}, "src/core/b.c:1: core may not include net"),
        ({"src/net/b.c": "\n # include <alertscaler/store/a.h>\n"}, "src/net/b.c:2: net may not include store"),
        ({"include/alertscaler/base/b.h": "#include <alertscaler/core/a.h>\n"}, "base may not include core"),
        ({"include/alertscaler/port/b.h": "#include <alertscaler/net/a.h>\n"}, "port may not include net"),
        ({"src/core/b.c": "#include <curl/curl.h>\n"}, "core may not use libcurl"),
        ({"include/alertscaler/net/b.h": "#include <sqlite3.h>\n"}, "net may not use sqlite"),
        ({"src/core/b.c": '#include "../base/b.h"\n'}, "not a private header beside it or of its layer"),
        ({"src/core/b.c": '#include "b.h"\n'}, "not a private header beside it"),
        ({"src/app/b.c": "#include <alertscaler/store/sqlite.h>\n"}, "only src/app/main.c"),
        ({"src/cli/b.c": "#include <alertscaler/net/client.h>\n"}, "only src/app/main.c"),
        ({"include/alertscaler/app/b.h": "#include <alertscaler/audit/file.h>\n"}, "may not include audit"),
        ({"src/app/b.c": "int x = as_http_server_new();\n"}, "src/app/b.c:1: net/server.h is for requests"),
        ({"src/extra/b.c": "\n"}, "extra is no layer"),
        ({"src/meson.build": table.replace("'port', 'net']", "'port', 'net', 'store']")}, "net sees adapter store"),
        ({"src/meson.build": table.replace("['base', 'core']", "['base', 'core', 'port']")}, "core sees port"),
    ]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
