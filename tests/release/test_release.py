"""What a release build installs. RELEASE_BUILDS names the build directories; tests/run makes them."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **kwargs):
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **kwargs)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module", params=os.environ.get("RELEASE_BUILDS", "build/release").split())
def build(request):
    return request.param


@pytest.fixture(scope="module")
def prefix(build, tmp_path_factory):
    destination = tmp_path_factory.mktemp("install")
    run("meson", "install", "-C", ROOT / build, "--no-rebuild", "--destdir", destination)
    return destination / "usr/local"


@pytest.fixture
def binary(prefix):
    return prefix / "bin/alertscaler"


def list_segments(binary):
    """Type and flags (of R, W, E) of every segment."""
    lines = run("readelf", "-lW", binary).splitlines()
    rows = [re.match(r"\s+([A-Z_]+)(?:\s+0x[0-9a-f]+){5}\s+([RWE ]{3})\s", line) for line in lines]
    return [(row[1], row[2]) for row in rows if row]


def list_dynamic(binary):
    return run("readelf", "-dW", binary)


def list_imports(binary):
    return {line.split()[-1].split("@")[0] for line in run("nm", "-D", "--undefined-only", binary).splitlines()}


def test_nothing_but_the_product_is_installed(prefix):
    pages = {f"share/man/man{page.suffix[1:]}/{page.name}" for page in (ROOT / "docs/man").glob("*.[1-9]")}
    expected = {
        "bin/alertscaler",
        "share/bash-completion/completions/alertscaler.bash",
        *(f"share/alertscaler/schema/{kind}.json" for kind in ("config", "rules", "tests", "web", "decision", "decision-answer", "log")),
        "share/zsh/site-functions/_alertscaler",
        "share/fish/vendor_completions.d/alertscaler.fish",
        "lib/systemd/system/alertscaler.service",
        "lib/sysusers.d/alertscaler.conf",
    }
    found = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if path.is_file()}
    assert found == expected | pages


def test_the_unit_starts_what_was_installed(prefix):
    unit = (prefix / "lib/systemd/system/alertscaler.service").read_text()
    assert "\nType=notify\n" in unit
    assert "\nExecStart=/usr/local/bin/alertscaler serve " in unit
    account = (prefix / "lib/sysusers.d/alertscaler.conf").read_text()
    assert re.search(r"(?m)^User=(.*)$", unit)[1] == account.split()[1]


def test_the_binary_says_its_version(binary):
    version = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]
    assert f"alertscaler {version}" in run(binary, "--version")


def test_the_binary_is_position_independent(binary):
    assert re.search(r"Type:\s+DYN", run("readelf", "-hW", binary))
    assert re.search(r"FLAGS_1.*\bPIE\b", list_dynamic(binary))


def test_relocations_are_read_only_before_main(binary):
    assert "GNU_RELRO" in dict(list_segments(binary))
    assert re.search(r"FLAGS_1.*\bNOW\b", list_dynamic(binary))


def test_no_segment_is_both_writable_and_executable(binary):
    segments = list_segments(binary)
    assert "GNU_STACK" in dict(segments) and "LOAD" in dict(segments)
    assert not [segment for segment in segments if {"W", "E"} <= set(segment[1])]


def test_the_stack_is_protected(binary):
    assert "__stack_chk_fail" in list_imports(binary)


def test_calls_of_the_c_library_are_fortified(binary):
    fortified = {name for name in list_imports(binary) if re.fullmatch(r"__\w+_chk", name)}
    assert {"__snprintf_chk", "__vsnprintf_chk"} & fortified


def find_option(build, name):
    options = json.loads(run("meson", "introspect", "--buildoptions", ROOT / build))
    return next(option["value"] for option in options if option["name"] == name)


@pytest.fixture
def has_cfi(build):
    return find_option(build, "cfi")


def test_calls_and_returns_land_where_they_may(binary, has_cfi):
    """Control-flow integrity of clang, which checks types, or else marks for the processor. Whether it looks at them is
    the C library's decision."""
    if has_cfi:
        functions = [line.split()[-1] for line in run("readelf", "-sW", binary).splitlines() if " FUNC " in line]
        assert len([name for name in functions if name.endswith(".cfi")]) > 100
    else:
        mark = "endbr64" if "X86-64" in run("readelf", "-hW", binary) else "paciasp"
        assert run("objdump", "-d", "--no-show-raw-insn", binary).count(mark) > 100


def test_code_is_not_in_a_segment_with_data(binary):
    loads = [flags.replace(" ", "") for kind, flags in list_segments(binary) if kind == "LOAD"]
    assert loads.count("RE") == 1 and "R" in loads and "RW" in loads


def test_what_is_freed_is_wiped_also_for_libraries(binary):
    defined = {line.split()[-1] for line in run("nm", "-D", "--defined-only", binary).splitlines() if " T " in line}
    assert {"free", "realloc"} <= defined


def test_only_libraries_of_the_product_are_needed(binary):
    dynamic = list_dynamic(binary)
    assert "libevent_core" in dynamic and "libseccomp" in dynamic
    assert not re.search(r"RPATH|RUNPATH|libasan|libubsan|libtsan|libcriterion", dynamic)


def test_the_binary_does_not_know_where_it_was_built(binary):
    assert str(ROOT).encode() not in binary.read_bytes()


def test_bash_finds_the_completion(prefix):
    script = prefix / "share/bash-completion/completions/alertscaler.bash"
    assert "-F _alertscaler alertscaler" in run("bash", "-uc", f". {script}; complete -p alertscaler")


def test_zsh_finds_the_completion(prefix):
    folder = prefix / "share/zsh/site-functions"
    run("zsh", "-fn", folder / "_alertscaler")
    script = f"fpath=({folder} $fpath); autoload -Uz compinit; compinit -D -u; print $_comps[alertscaler]"
    assert run("zsh", "-fc", script).strip() == "_alertscaler"
