"""Waiting for something to become true, and for nothing to happen."""
import time

# Seconds. What takes a moment on an idle machine may take long on a busy one: only what hangs shall fail. Where a time is the
# promise that is tested, the test says it.
PATIENCE = 60.0


def eventually(probe, timeout=PATIENCE, interval=0.05, what=None):
    """Calls probe until it returns something true, and returns that. An exception counts as not yet."""
    deadline = time.monotonic() + timeout
    last = None
    while True:
        try:
            last = probe()
            if last:
                return last
        except Exception as error:  # the probe may ask a server that is not there yet
            last = error
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout:g} s: {what or probe.__name__}; last seen: {last!r}")
        time.sleep(interval)


def steadily(probe, seconds, interval=0.05, what=None):
    """Asserts that probe stays true for so long. Exceptions are the caller's."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = probe()
        assert seen, f"did not stay so for {seconds:g} s: {what or probe.__name__}; seen: {seen!r}"
        time.sleep(interval)
