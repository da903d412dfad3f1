"""Makes tests/golden/upgrade/VERSION with a program of that version (tests/golden/upgrade/README.md says how):

    ALERTSCALER_BIN=/that/alertscaler UPGRADE_VERSION=1a5c405 python3 -m pytest tests/integration/upgrade_fixtures.py
"""
import json
import os
import sqlite3

import pytest

from harness import upgrade
from harness.control_plane import ADMIN_TOKEN


@pytest.fixture
def groups(started):
    return started(upgrade.Groups())


@pytest.mark.parametrize("store", ["sqlite", "kubernetes"])
def test_make(control_plane, make_daemon, groups, tmp_path, store):
    folder = upgrade.GOLDEN / os.environ["UPGRADE_VERSION"]
    folder.mkdir(exist_ok=True)
    kubeconfig = control_plane.write_kubeconfig(f"upgrade-{store}", token=ADMIN_TOKEN)
    namespace = upgrade.NAMESPACE[:-1] + store[0]
    control_plane.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    uid = control_plane.admin.create(upgrade.make_workload(namespace))["metadata"]["uid"]
    config = upgrade.make_config(kubeconfig, tmp_path)
    if store == "kubernetes":
        config["state"] = {"store": "kubernetes", "namespace": namespace}
    has_aliases = os.environ["UPGRADE_VERSION"] == "1a5c405"    # later ones refuse them
    daemon = make_daemon(upgrade.make_rules(groups, namespace, has_aliases), config, flags=["--web.enable-admin-api"], start=False,
                         env={"POD_NAME": "pod-0"})
    daemon.headers = {"Authorization": "Bearer secret-of-whole"}
    upgrade.play(daemon.start(), groups, has_aliases)

    neutral = upgrade.neutral(groups, namespace, uid)
    if store == "kubernetes":
        items = upgrade.read_config_maps(control_plane.admin, namespace)
        (folder / "configmaps.json").write_text(json.dumps(upgrade.change_config_maps(items, neutral), indent=1) + "\n")
        return
    with sqlite3.connect(daemon.state_file) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    upgrade.copy_state_file(daemon.state_file, folder / "state.db", neutral)
    (folder / "actions.jsonl").write_text(daemon.log_file.read_text())     # as it is: a hash chain
