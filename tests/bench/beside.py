"""The daemon's throughput beside Debian's `webhook`, which stores nothing, and beside jansson's parse of the body alone.

Each in its turn has core 0, and wrk core 1: a machine's speed changes from one second to the next. The ratios are those
of one round.
"""
import itertools
import subprocess
import tempfile

from daemon import SECONDS, Daemon, Webhook, fixed_body, group, notification_of, wrk
from figures import ROUNDS, report_rounds

CONNECTIONS = 16


def measure(server, script):
    """Requests a second, and as many as the server's processor time would allow on a core of its own."""
    before = server.cpu_seconds()
    rate = wrk(server.webhook, script, CONNECTIONS)
    return rate, rate * SECONDS / (server.cpu_seconds() - before)


def measure_jansson(build, body):
    """How often a second jansson alone parses the body, on the daemon's core."""
    program = build / "tests/bench/bench_jansson"
    if not program.exists():
        raise SystemExit(f"{program} is not there: build {build} without -Dtests=disabled")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(body)
        file.flush()
        out = subprocess.run(["taskset", "-c", "0", program, file.name], capture_output=True,
                             text=True, check=True).stdout
    return 1e6 / float(out.split()[0])


def print_beside(build, name, body, daemons, make_script, bound):
    """One row: `daemons` yields the daemon of each round."""
    ours, ours_cpu, theirs, ratios, cpu_ratios, to_parse = [], [], [], [], [], []
    with Webhook() as webhook:
        for daemon in daemons:
            rate, by_cpu = measure(daemon, make_script())
            their_rate, their_cpu = measure(webhook, make_script())
            ours.append(rate)
            ours_cpu.append(by_cpu)
            theirs.append(their_rate)
            ratios.append(rate / their_rate)
            cpu_ratios.append(by_cpu / their_cpu)
            to_parse.append(rate / measure_jansson(build, body))
    report_rounds(f"{name}, {len(body):,} bytes", ours, "requests/s")
    report_rounds("  by its processor time alone", ours_cpu, "requests/s")
    report_rounds("  Debian's webhook, a rule that does not match", theirs, "requests/s")
    report_rounds("  ratio to it", ratios, "", bound)
    report_rounds("  ratio to it by processor time", cpu_ratios, "")
    report_rounds("  ratio to jansson's parse alone", to_parse, "")


def bench_repeated(build, name, body, bound):
    with Daemon(build / "src/alertscaler") as daemon:
        wrk(daemon.webhook, fixed_body(body), CONNECTIONS, 1)
        print_beside(build, name, body, itertools.repeat(daemon, ROUNDS), lambda: fixed_body(body), bound)


def bench_repeats(build):
    bench_repeated(build, "one-alert repeats", notification_of("0"), "at least 1.3, aim 2")


def bench_groups(build):
    bench_repeated(build, "groups of 100 repeats", group(0, 100), "at least 3, aim 5")


def new_alerts():
    """A script whose requests are all different."""
    head, tail = notification_of("POD-NUMBER").split("POD-NUMBER")
    return fixed_body("") + f"""
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, nil, nil, [==[{head}]==] .. n .. [==[{tail}]==])
end
"""


def new_daemons(build):
    for _ in range(ROUNDS):
        with Daemon(build / "src/alertscaler") as daemon:
            yield daemon


def bench_new(build):
    print_beside(build, "new alerts made durable, one a request", notification_of("0"), new_daemons(build), new_alerts,
                 "at least 0.8, aim 1.0")
