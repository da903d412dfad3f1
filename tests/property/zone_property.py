#!/usr/bin/python3
"""zone_property.py DRIVER [--seed N]: time zones and schedules against Python's zoneinfo.

From 2020 to 2040: every hour's offset in some zones, every wall time around each change, the days of
schedules; and random moments in all zones of the system, up to the year 2200. Both read the same tzdata.
Tells how much was compared.
"""
import argparse
import datetime
import random
import subprocess
import sys
import zoneinfo

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kolkata",
         "Europe/Dublin", "America/Nuuk", "Antarctica/Troll", "America/Santiago", "Africa/Cairo", "UTC"]
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)
DAY = 86400


def stamp(year, month=1, day=1):
    return int(datetime.datetime(year, month, day, tzinfo=UTC).timestamp())


def offset(zone, utc):
    return int((EPOCH + datetime.timedelta(seconds=utc)).replace(tzinfo=UTC).astimezone(zone).utcoffset().total_seconds())


def find_utc(zone, local, last):
    """When a wall time is; where it does not exist, the moment at which the clock jumps over it."""
    wall = (EPOCH + datetime.timedelta(seconds=local)).replace(tzinfo=zone, fold=int(last))
    utc = local - int(wall.utcoffset().total_seconds())
    if utc + offset(zone, utc) == local:
        return utc
    low, high = local - 2 * DAY, local + 2 * DAY # the wall clock passes `local` once
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle + offset(zone, middle) < local else (low, middle)
    return high


def changes_of(zone, days, start, end, low, high):
    """Begins and ends of a schedule, from the stretches of each day."""
    stretches = []
    for day in range(low // DAY - 20, high // DAY + 20):
        weekday = (EPOCH + datetime.timedelta(days=day)).weekday()
        if days >> weekday & 1:
            begin = find_utc(zone, day * DAY + start, False)
            stop = find_utc(zone, (day + (end <= start)) * DAY + end, True)
            if begin < stop:
                stretches.append((begin, stop))
    merged = []
    for begin, stop in sorted(stretches):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((begin, stop))
    events = [(begin, "+") for begin, _ in merged] + [(stop, "-") for _, stop in merged]
    return [f"{sign}{at}" for at, sign in sorted(events) if low < at < high]


class Questions:
    def __init__(self):
        self.lines, self.answers, self.counts = [], [], {}

    def ask(self, kind, line, answer):
        self.lines.append(line)
        self.answers.append(str(answer))
        self.counts[kind] = self.counts.get(kind, 0) + 1


def ask_offsets(questions, zone):
    """Every hour, and every wall time around each change, in minutes."""
    last = None
    for utc in range(stamp(2020), stamp(2041), 3600):
        now = offset(zone, utc)
        questions.ask("offsets", f"offset {utc}", now)
        if last is not None and now != last:
            for local in range(utc + last - 3 * 3600, utc + last + 3 * 3600, 900):
                questions.ask("wall times", f"utc first {local}", find_utc(zone, local, False))
                questions.ask("wall times", f"utc last {local}", find_utc(zone, local, True))
        last = now


def ask_schedules(questions, zone, generator):
    for _ in range(4):
        days, low = generator.randrange(1, 127), stamp(generator.randrange(2020, 2040))
        start, end = (60 * generator.randrange(24 * 60) for _ in range(2))
        if generator.random() < 0.5: # where clocks change
            start, end = (60 * generator.randrange(4 * 60) for _ in range(2))
        if start != end:
            expected = changes_of(zone, days, start, end, low, low + 400 * DAY)
            questions.ask("schedules", f"schedule {days} {start} {end} {low} {low + 400 * DAY}",
                          " ".join(expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("driver")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    questions = Questions()
    for name in ZONES:
        zone = zoneinfo.ZoneInfo(name)
        questions.ask("zones", f"zone {name}", "ok")
        ask_offsets(questions, zone)
        ask_schedules(questions, zone, generator)
    for name in sorted(zoneinfo.available_timezones()):
        zone = zoneinfo.ZoneInfo(name)
        questions.ask("zones", f"zone {name}", "ok")
        for _ in range(60):
            utc = generator.randrange(stamp(1900), stamp(2200))
            questions.ask("offsets", f"offset {utc}", offset(zone, utc))
    got = subprocess.run([options.driver], input="\n".join(questions.lines) + "\n", text=True,
                         stdout=subprocess.PIPE, check=True).stdout.split("\n")[:-1]
    print(", ".join(f"{count} {kind}" for kind, count in questions.counts.items()))
    if len(got) != len(questions.lines):
        sys.exit(f"{len(got)} answers to {len(questions.lines)} questions")
    wrong = [(line, answer, found.strip()) for line, answer, found in zip(questions.lines, questions.answers, got)
             if answer != found.strip()]
    for line, answer, found in wrong[:10]:
        print(f"{line}: expected {answer}, found {found}")
    if wrong:
        sys.exit(f"{len(wrong)} wrong answers, seed {options.seed}")


if __name__ == "__main__":
    main()
