"""Which tests run together on one worker of pytest-xdist, and in which order they begin.

Most tests run wherever a worker is free. Those of a file that has a world of its own, told once, stay together. A control
plane takes seconds to start and a share of a processor all the while: so the tests that use one share a few workers.
"""
import zlib

import pytest

CONTROL_PLANES = 4
MONITORING = {"make_prometheus", "make_alertmanager", "make_alertmanager_cluster"}


def place(item):
    """Gives a test its marks and its group."""
    fixtures = item._fixtureinfo.name2fixturedefs
    has_world = any(definition.scope == "module" for definitions in fixtures.values() for definition in definitions)
    place_of = str(item.path) if has_world else item.nodeid
    if MONITORING & fixtures.keys():
        item.add_marker(pytest.mark.monitoring)
    if "session_control_plane" in fixtures:
        item.add_marker(pytest.mark.kubernetes)
        item.add_marker(pytest.mark.xdist_group(f"kubernetes-{zlib.crc32(place_of.encode()) % CONTROL_PLANES}"))
    elif has_world:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


def get_order(item):
    """Groups begin first, in the order that their files have; then the tests that ask for more time than others."""
    seconds = item.get_closest_marker("seconds")
    is_grouped = item.get_closest_marker("xdist_group") is not None
    return not is_grouped, 0 if is_grouped or not seconds else -seconds.args[0]
