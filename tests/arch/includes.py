#!/usr/bin/python3
"""includes.py ROOT: the include graph is the one of the table `layers` in src/meson.build.

- a directory includes only public headers of the directories in its row, and libraries of its row;
- the directories of a row stand above it: no two directories include each other;
- an include in quotes is a file beside the one that includes it;
- only src/cli/main.c names concrete adapters: all other files know ports.
"""
import ast
import fnmatch
import pathlib
import re

import arch

TOP = {"daemon", "cli", "ui", "runtime"}  # above the adapters

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

# What the directories above the adapters get through ports, but for the one file that puts all together.
MAIN = "src/cli/main.c"
CONCRETE_HEADERS = ["cloud/target_registry.h", "http/client.h", "kube/kube_store.h", "kube/kube_target.h", "kube/leader_*",
                    "log/log_file.h", "log/sqlite.h", "monitoring/monitoring.h"]
CONCRETE_CALLS = {"as_http_server_new": "http/server.h is for requests; the server is made",
                  "as_receivers_new": "notify/notifier.h is for notices; the messenger is made"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)


def read_table(root, name):
    """A list of src/meson.build whose bare words (dependencies) are read as strings."""
    text = (root / "src/meson.build").read_text(encoding="utf-8")
    start = re.search(rf"^{name} = ", text, re.MULTILINE)
    if not start:
        raise SystemExit(f"src/meson.build: there is no list `{name}`")
    source = re.sub(r"#.*", "", text[start.end() :])
    source = source[: re.search(r"\]\s*^(?=\S)|\]\s*\Z", source, re.MULTILINE).start() + 1]
    if name != "pure":
        words = ", ".join(f"'{word}'" for word in read_table(root, "pure"))
        source = re.sub(r"\bpure \+ \[", f"[{words}, ", re.sub(r"\bpure(?=,)", f"[{words}]", source))
    return ast.literal_eval(re.sub(r"'[^']*'|\b[a-z]\w*", lambda m: "'" + m[0].strip("'") + "'", source))


def check_rows(rows):
    above = set()
    for directory, headers, _ in rows:
        above.add(directory)
        if set(headers) - above:
            yield f"src/meson.build: {directory} sees {', '.join(sorted(set(headers) - above))}, which is below it"


def check_public(path, layer, header, allowed):
    other = header.split("/")[0]
    if other not in allowed:
        return f"{layer} may not include {other}"
    if layer in TOP and str(path) != MAIN and any(fnmatch.fnmatch(header, p) for p in CONCRETE_HEADERS):
        return f"only {MAIN} names concrete adapters, not {header}"
    return None


def check_include(root, path, layer, quote, header, allowed, libraries):
    if quote == '"':
        private = "/" not in header and (root / path.parent / header).is_file()
        return None if private else f'"{header}" is not a private header beside it'
    if header.startswith("alertscaler/"):
        return check_public(path, layer, header.removeprefix("alertscaler/"), allowed)
    library = next((v for k, v in LIBRARY_HEADERS.items() if fnmatch.fnmatch(header, k)), None)
    if library and not any(name.startswith(library) for name in libraries):
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
    allowed = {row[0]: set(row[1]) for row in rows}
    libraries = {row[0]: row[2] for row in rows}
    complaints = list(check_rows(rows))
    files = arch.c_files(root, "src", "include/alertscaler")
    for path in files:
        layer = path.parts[1 if path.parts[0] == "src" else 2]
        if layer not in allowed:
            complaints.append(f"{path}: {layer} is no directory of src/meson.build")
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
pure = ['base', 'engine'] # no input
layers = [
  # directory, headers,           libraries
  ['base',   ['base'],                  [pcre2]],
  ['engine', pure,                      [uthash]],
  ['port',   pure + ['port'],           []],
  ['http',   ['base', 'port', 'http'],  [libevent, openssl, libcurl]],
  ['log',    ['base', 'port', 'log'],   [sqlite]],
  ['daemon', pure + ['port', 'http', 'log', 'daemon'], [jansson]],
  ['cli',    pure + ['port', 'http', 'log', 'daemon', 'cli'],
             [jansson]],
]

other = 1
"""
    good = {
        "src/meson.build": table,
        "include/alertscaler/base/a.h": "#include <stdint.h>\n",
        "include/alertscaler/log/sqlite.h": "#include <alertscaler/port/store.h>\n",
        "src/base/a.c": '#include <alertscaler/base/a.h>\n#include <pcre2.h>\n#include "b.h"\n',
        "src/base/b.h": "",
        "src/engine/a.c": "/*\n#include <curl/curl.h>\n*/\n#include <alertscaler/base/a.h>\n#include <uthash.h>\n",
        "src/http/a.c": "#include <event2/event.h>\n#include <openssl/ssl.h>\n#include <alertscaler/port/http.h>\n",
        "src/cli/main.c": "#include <alertscaler/log/sqlite.h>\nint x = as_http_server_new();\n",
        "src/daemon/a.c": '#include <alertscaler/http/server.h>\n#include <jansson.h>\nchar *x = "as_http_server_new";\n',
    }
    bad = [
        ({"src/engine/b.c": "#include <alertscaler/http/a.h>\n"}, "src/engine/b.c:1: engine may not include http"),
        ({"src/http/b.c": "\n # include <alertscaler/log/a.h>\n"}, "src/http/b.c:2: http may not include log"),
        ({"include/alertscaler/base/b.h": "#include <alertscaler/engine/a.h>\n"}, "base may not include engine"),
        ({"include/alertscaler/port/b.h": "#include <alertscaler/http/a.h>\n"}, "port may not include http"),
        ({"src/engine/b.c": "#include <curl/curl.h>\n"}, "engine may not use libcurl"),
        ({"src/cli/b.c": "#include <expat.h>\n"}, "cli may not use expat"),
        ({"include/alertscaler/http/b.h": "#include <sqlite3.h>\n"}, "http may not use sqlite"),
        ({"src/engine/b.c": '#include "../base/b.h"\n'}, "not a private header beside it"),
        ({"src/engine/b.c": '#include "b.h"\n'}, "not a private header beside it"),
        ({"src/daemon/b.c": "#include <alertscaler/log/sqlite.h>\n"}, "only src/cli/main.c"),
        ({"src/cli/b.c": "#include <alertscaler/http/client.h>\n"}, "only src/cli/main.c"),
        ({"src/daemon/b.c": "int x = as_http_server_new();\n"}, "src/daemon/b.c:1: http/server.h is for requests"),
        ({"src/extra/b.c": "\n"}, "extra is no directory"),
        ({"src/meson.build": table.replace("pure,", "pure + ['port'],")}, "engine sees port, which is below it"),
    ]
    return arch.self_test_on_trees(check, good, bad)


if __name__ == "__main__":
    arch.main(check, self_test)
