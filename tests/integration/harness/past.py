"""Hours in a moment: a stopped daemon's stored state is made older, as if the machine had been switched off meanwhile."""
import contextlib
import json
import sqlite3

MICROSECONDS = 1_000_000


def _shift(value, seconds):
    """Moments are [monotonic, wall]. After another boot only the wall clock counts."""
    if isinstance(value, dict):
        return {key: "00000000-0000-0000-0000-000000000000" if key == "boot" else _shift(each, seconds) for key, each in value.items()}
    if isinstance(value, list) and len(value) == 2 and all(isinstance(each, int) for each in value):
        return [value[0], value[1] - seconds * MICROSECONDS]
    return [_shift(each, seconds) for each in value] if isinstance(value, list) else value


def age(daemon, seconds):
    """Of incidents and targets in the SQLite state of a daemon that is stopped."""
    with contextlib.closing(sqlite3.connect(daemon.state_file)) as connection, connection as state:
        for table in ("incident", "target"):
            key_column, column = [row[1] for row in state.execute(f"PRAGMA table_info({table})")]
            for key, text in state.execute(f"SELECT * FROM {table}").fetchall():
                state.execute(f"UPDATE {table} SET {column} = ? WHERE {key_column} = ?", (json.dumps(_shift(json.loads(text), seconds)).encode(), key))


def wait(daemon, seconds):
    """Stops the daemon, lets so much time pass, and starts it again."""
    daemon.stop()
    age(daemon, seconds)
    daemon.start()
