"""Which tests run together on one worker of pytest-xdist, and in which order they begin.

Most tests run wherever a worker is free. Those of a file that has a world of its own, told once, stay together. A control
plane takes a worker some seconds to start and a processor all the while: so its tests share a few workers, file by file.
"""
import pytest

CONTROL_PLANES = 3
ALONE = 60.0            # s: a test that may take longer begins first


def place(item):
    """Gives a test its marks and its group."""
    fixtures = item._fixtureinfo.name2fixturedefs
    if "session_control_plane" in fixtures:
        item.add_marker(pytest.mark.kubernetes)
    if {"make_prometheus", "make_alertmanager", "make_alertmanager_cluster"} & fixtures.keys():
        item.add_marker(pytest.mark.monitoring)


def get_order(item):
    return 0
