"""The programs of Prometheus and Alertmanager: Debian's, or, with MONITORING=today, those that tests/integration/peers builds.

What differs between their versions is said here, and nowhere else.
"""
import os
import shutil

import pytest

from . import peers

IS_TODAY = {"debian": False, "today": True}[os.environ.get("MONITORING", "debian")]

# name: the peer that has it, what Debian calls it
PROGRAMS = {"prometheus": ("prometheus", "prometheus"), "promtool": ("prometheus", "promtool"),
            "alertmanager": ("alertmanager", "prometheus-alertmanager"), "amtool": ("alertmanager", "amtool")}

# Fields of a notification that Debian's Alertmanager, 0.25, does not send: the first came with 0.32, the other with 0.34.
NEW_IN_NOTIFICATIONS = {"notification_reason", "routeLabels"}


def _find(name):
    peer, in_debian = PROGRAMS[name]
    if not IS_TODAY:
        return shutil.which(in_debian)
    folder = peers.find(peer)
    return str(folder / name) if folder else None


def missing(*names):
    """Why one of these programs cannot be run; None when all can."""
    for name in names:
        if _find(name) is None:
            peer, in_debian = PROGRAMS[name]
            return peers.how_to_build(peer) if IS_TODAY else f"{in_debian} is not installed: run tests/install"
    return None


def program(name):
    """Where it is. A test that needs it is skipped where it is missing."""
    return _find(name) or pytest.skip(missing(name))


def answer_of_amtool(said):
    """The last line: amtool of today prints warnings before it."""
    return said.strip().rpartition("\n")[2]
