#!/usr/bin/python3
"""files.py ROOT: only src/base/file.c opens files in src/ and include/, so that each has a form: what may be in its place.

Folders (O_DIRECTORY) and places without reading (O_PATH) may be opened elsewhere. Libraries get contents, not names."""
import pathlib
import re

import arch

HELPER = "src/base/file.c"
BANNED = {
    "open open64 openat openat2 creat fopen fopen64 freopen": "as_file_open, as_file_create",
    "BIO_new_file BIO_read_filename SSL_CTX_use_certificate_file SSL_CTX_use_certificate_chain_file "
    "SSL_CTX_use_PrivateKey_file SSL_CTX_load_verify_file SSL_CTX_load_verify_locations SSL_load_client_CA_file "
    "json_load_file json_dump_file yaml_parser_set_input_file sqlite3_open sqlite3_open_v2": "as_file_read",
    "CURLOPT_CAINFO CURLOPT_CAPATH CURLOPT_SSLCERT CURLOPT_SSLKEY CURLOPT_COOKIEFILE CURLOPT_NETRC_FILE":
        "as_file_read, and the option that ends with _BLOB",
}
INSTEAD = {name: instead for names, instead in BANNED.items() for name in names.split()}
# The file was opened by as_file_open before; SQLite opens what is beside it with O_NOFOLLOW.
ALLOWED = {("src/log/sqlite.c", "sqlite3_open_v2"), ("src/log/log_index.c", "sqlite3_open_v2")}
WORD = re.compile(r"(->|\.)?\s*\b([A-Za-z_]\w*)\b(\s*\()?")
NOT_A_FILE = re.compile(r"\bO_(DIRECTORY|PATH)\b")


def check_file(path, text):
    code = arch.code_only(text)
    for match in WORD.finditer(code):
        member, word, call = match.groups()
        if word not in INSTEAD or member or (word.startswith("open") and not call):
            continue
        arguments = code[match.end():code.find(";", match.end())]
        if (path.as_posix(), word) in ALLOWED or (word in ("open", "openat") and NOT_A_FILE.search(arguments)):
            continue
        yield f"{path}:{arch.line_of(text, match.start(2))}: {word} opens a file past {HELPER}: use {INSTEAD[word]}"


def check(root):
    root = pathlib.Path(root)
    files = [path for path in arch.c_files(root, "src", "include") if path.as_posix() != HELPER]
    complaints = [c for path in files for c in check_file(path, (root / path).read_text(encoding="utf-8"))]
    return complaints if files else [f"{root}: there are no C files"]


def self_test():
    good = {
        HELPER: "int fd = open(path, flags);\n",
        "src/net/good.c": """/* fopen(a, b) */
int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
int place = open(path, O_PATH);
row->port = adapter->open(access); table.open(1); bool open = is_open(door); as_file_open(path);
SET(call, CURLOPT_CAINFO_BLOB, pem);
""",
        "src/log/sqlite.c": "int status = sqlite3_open_v2(path, &db, 0, NULL);\n",
    }
    bad = [
        ({"src/app/b.c": line + "\n"}, complaint)
        for line, complaint in [
            ("\nint fd = open(path, O_RDONLY); int x = O_PATH;", "src/app/b.c:2: open opens a file past"),
            ("int fd = openat(folder, name, O_CREAT);", "openat opens a file"),
            ('FILE *f = fopen(path, "r");', "fopen opens a file"),
            ("SET(call, CURLOPT_CAINFO, path);", "CURLOPT_CAINFO opens a file"),
            ("sqlite3_open_v2(path, &db, 0, NULL);", "sqlite3_open_v2 opens a file"),
        ]
    ]
    wrong = arch.self_test_on_trees(check, good, bad)
    for name in INSTEAD:
        if not list(check_file(pathlib.Path("x.c"), f"x = {name}(y);\n")):
            wrong.append(f"{name} is not found")
    return wrong


if __name__ == "__main__":
    arch.main(check, self_test)
