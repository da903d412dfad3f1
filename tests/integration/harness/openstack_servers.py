#!/usr/bin/python3
"""Debian's Keystone and Magnum, each in a process of its own, on loopback with SQLite.

    openstack_servers.py keystone FOLDER PORT MAGNUM-PORT
    openstack_servers.py magnum FOLDER PORT KEYSTONE-PORT

Only Magnum's conductor, which needs Heat and Nova, is played: it does what conductor.json says, {"seconds": 0.5,
"failure": "..."}, and writes what it was asked for to resizes.jsonl.
"""
import json
import os
import pathlib
import sqlite3
import sys
import threading
import time

PASSWORD = "s3~cr&et\"="
CLUSTER = "5d12f6fd-a196-4bf0-ae4c-1f639a523a52"
TEMPLATE = "e74c40e0-d825-11e2-a28f-0800200c9a66"
GROUPS = {"default-worker": "483203a3-dbee-4a9c-9d65-9820512f4df8", "default-master": "9b2a5f00-5b0c-4d53-8d0e-0f57f5f2e7a1"}


def serve(application, port):
    import waitress
    waitress.serve(application, listen=f"127.0.0.1:{port}", threads=1)       # SQLite's connections stay in theirs


def make_database(folder, name):
    """In a mode in which who reads keeps nobody from writing; its URL."""
    with sqlite3.connect(folder / name) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    return f"sqlite:///{folder / name}"


def write_conf(folder, name, sections):
    path = folder / name
    path.write_text("".join(f"[{section}]\n" + "".join(f"{k} = {v}\n" for k, v in values.items()) + "\n"
                            for section, values in sections.items()), encoding="utf-8")
    return str(path)


# ---- Keystone ----


def set_up_keystone(conf):
    """What keystone-manage does with fernet_setup, db_sync and bootstrap."""
    from keystone.cmd import bootstrap
    from keystone.common import fernet_utils, sql
    for group in (conf.fernet_tokens, conf.credential, conf.fernet_receipts):
        keys = fernet_utils.FernetUtils(group.key_repository, 3, group._group.name)
        keys.create_key_directory()
        keys.initialize_key_repository()
    admin = bootstrap.Bootstrapper()        # every model is known then
    with sql.session_for_write() as session:
        sql.ModelBase.metadata.create_all(session.get_bind())
    admin.admin_username, admin.admin_password = "admin", PASSWORD
    admin.project_name, admin.admin_role_name = "admin", "admin"
    admin.service_name, admin.region_id = "keystone", "RegionOne"
    admin.public_url = f"{conf.public_endpoint}/v3"
    admin.bootstrap()


def run_keystone(folder, port, magnum_port):
    keys = {name: str(folder / name) for name in ("fernet", "credential", "receipt")}
    path = write_conf(folder, "keystone.conf", {
        "DEFAULT": {"public_endpoint": f"http://127.0.0.1:{port}"},
        "database": {"connection": make_database(folder, "keystone.sqlite")},
        "fernet_tokens": {"key_repository": keys["fernet"]},
        "credential": {"key_repository": keys["credential"]},
        "fernet_receipts": {"key_repository": keys["receipt"]},
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory"},
        "identity": {"password_hash_rounds": 4},        # for speed
    })
    sys.argv[1:] = []
    from keystone.server.flask import core
    child = os.fork()               # Keystone's backends are loaded once in a process
    if child == 0:
        import keystone.conf
        import keystone.server
        keystone.server.configure(config_files=[path])
        set_up_keystone(keystone.conf.CONF)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("Keystone could not be set up")
    serve(core.initialize_application(name="public", config_files=[path]), port)


# ---- Magnum ----


class Conductor:
    """Writes the node count, after a while."""

    def __init__(self, folder):
        self.folder = folder

    def cluster_resize(self, context, cluster, node_count, nodes_to_remove, nodegroup):
        plan = json.loads((self.folder / "conductor.json").read_text())
        with open(self.folder / "resizes.jsonl", "a", encoding="utf-8") as log:
            print(json.dumps({"nodegroup": nodegroup.name, "node_count": node_count,
                              "nodes_to_remove": nodes_to_remove}), file=log)
        nodegroup.node_count = node_count
        self.set_status(cluster, nodegroup, "UPDATE_IN_PROGRESS", None)
        threading.Timer(plan.get("seconds", 0.5), self.finish, (cluster, nodegroup, plan)).start()

    def finish(self, cluster, nodegroup, plan):
        if plan.get("failure"):
            self.set_status(cluster, nodegroup, "UPDATE_FAILED", plan["failure"])
            return
        nodegroup.node_addresses = [f"10.0.0.{i + 4}" for i in range(nodegroup.node_count)]
        self.set_status(cluster, nodegroup, "UPDATE_COMPLETE", "Stack UPDATE completed successfully")

    @staticmethod
    def set_status(cluster, nodegroup, status, reason):
        for one in (nodegroup, cluster):
            one.status, one.status_reason = status, reason
            one.save()


def set_up_magnum(project):
    from magnum.db import api
    from magnum.db.sqlalchemy import api as sqlalchemy_api, models
    models.Base.metadata.create_all(sqlalchemy_api.get_engine())
    database = api.get_instance()
    common = {"project_id": project, "user_id": "u"}
    database.create_cluster_template({
        "uuid": TEMPLATE, "name": "k8s", "image_id": "fedora-coreos", "coe": "kubernetes", "cluster_distro": "fedora-coreos",
        "server_type": "vm", "labels": {}, **common})
    database.create_cluster({
        "uuid": CLUSTER, "name": "prod", "cluster_template_id": TEMPLATE, "status": "CREATE_COMPLETE", "labels": {},
        "stack_id": "047c6319-7abd-4bd9-a033-8c6af0173cd0", "create_timeout": 60, **common})
    for name, uuid in GROUPS.items():
        database.create_nodegroup({
            "uuid": uuid, "name": name, "cluster_id": CLUSTER, "project_id": project, "node_count": 2, "labels": {},
            "node_addresses": ["10.0.0.4", "10.0.0.5"], "role": name.removeprefix("default-"), "min_node_count": 1,
            "max_node_count": 6, "is_default": True, "status": "CREATE_COMPLETE", "stack_id": "s", "version": "1"})


def start_conductor(folder):
    import oslo_messaging
    from magnum.common import rpc
    from magnum.objects import base
    target = oslo_messaging.Target(topic="magnum-conductor", server="localhost")
    serializer = rpc.RequestContextSerializer(base.MagnumObjectSerializer())
    oslo_messaging.get_rpc_server(rpc.TRANSPORT, target, [Conductor(folder)], executor="threading", serializer=serializer,
                                  access_policy=oslo_messaging.rpc.dispatcher.DefaultRPCAccessPolicy).start()


def run_magnum(folder, port, keystone_port):
    auth = f"http://127.0.0.1:{keystone_port}/v3"
    paste = folder / "magnum-paste.ini"
    paste.write_text("""[pipeline:main]
pipeline = request_id authtoken api_v1
[app:api_v1]
paste.app_factory = magnum.api.app:app_factory
[filter:authtoken]
acl_public_routes = /, /v1
paste.filter_factory = magnum.api.middleware.auth_token:AuthTokenMiddleware.factory
[filter:request_id]
paste.filter_factory = oslo_middleware:RequestId.factory
""", encoding="utf-8")
    policy = folder / "magnum-policy.yaml"
    policy.write_text('"cluster:resize": "role:member or role:admin"\n', encoding="utf-8")
    account = {"auth_type": "password", "auth_url": auth, "username": "admin", "password": f"'{PASSWORD}'",
               "project_name": "admin", "user_domain_id": "default", "project_domain_id": "default"}
    path = write_conf(folder, "magnum.conf", {
        "DEFAULT": {"transport_url": "fake://", "host": "localhost"},
        "api": {"api_paste_config": paste},
        "database": {"connection": make_database(folder, "magnum.sqlite")},
        "keystone_authtoken": {**account, "www_authenticate_uri": auth, "interface": "public",
                               "token_cache_time": -1},
        "keystone_auth": account,
        "trust": {"trustee_domain_name": "magnum", "trustee_domain_admin_name": "magnum_domain_admin",
                  "trustee_domain_admin_password": f"'{PASSWORD}'"},
        "oslo_policy": {"policy_file": policy},
    })
    from magnum.common import service
    service.prepare_service(["magnum", "--config-file", path])
    from magnum.api import app
    set_up_magnum((folder / "project").read_text())
    start_conductor(folder)
    serve(app.load_app(), port)


if __name__ == "__main__":
    which, where, *ports = sys.argv[1:]
    {"keystone": run_keystone, "magnum": run_magnum}[which](pathlib.Path(where), *map(int, ports))
