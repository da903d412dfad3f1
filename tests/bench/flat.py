"""What more rules, and more open incidents, cost a request: nothing that grows with their number.

A million incidents take a minute or two to be opened, and some minutes to be read again under callgrind.
"""
from beside import CONNECTIONS, measure
from daemon import Daemon, fixed_body, notification_of
from figures import ROUNDS, report, report_rounds
from instructions import Counted, count


def compare(few, many, what, numbers):
    few_rates, many_rates = [], []
    repeat = fixed_body(notification_of("0"))
    for _ in range(ROUNDS):
        few_rates.append(measure(few, repeat)[0])
        many_rates.append(measure(many, repeat)[0])
    for rates, number in zip((few_rates, many_rates), numbers):
        report_rounds(f"one-alert repeats with {number:,} {what}", rates, "requests/s")
    report_rounds("  ratio", [many_rate / few_rate for few_rate, many_rate in zip(few_rates, many_rates)], "", "at least 0.9")
    counted = [Counted(few), Counted(many)]
    for name in ("a repeat", "a new alert"):
        taken = [count(daemon, name, CONNECTIONS, f", {number:,} {what}") for daemon, number in zip(counted, numbers)]
        report("  ratio", taken[1] / taken[0], "", "at most 1.1")
    for daemon in counted:
        daemon.end()


def bench_flat(build):
    binary = build / "src/alertscaler"
    numbers = (10, 100000)
    with Daemon(binary, rule_count=numbers[0]) as few, Daemon(binary, rule_count=numbers[1]) as many:
        compare(few, many, "rules", numbers)
    numbers = (10, 1000000)
    receiver = {"max_incident_memory": "8GiB"}
    with Daemon(binary, receiver=receiver) as few, Daemon(binary, receiver=receiver) as many:
        few.open_incidents(numbers[0])
        many.open_incidents(numbers[1])
        compare(few, many, "open incidents", numbers)
