"""The dashboards of deploy/grafana: each query has data in a Prometheus that scraped alertscaler, which an Alertmanager told of
alerts: targets that are tracked, scaled in steps, at their maximum, and one whose provider fails.

The panels about nodes and about effects need a cluster: test_pools.py and test_effects.py have them. The metrics and labels of
the panels about Kubernetes are compared with the program by tests/docs/test_series.py.
"""
import pytest

from harness.dashboards import find_empty, read_queries, wait_for_data
from harness.node_group import Fault
from harness.wait import eventually

pytestmark = pytest.mark.monitoring

FAST = {"min": 1, "max": 3, "cooldown": {"up": "2s", "down": "2s"}}


def rule(name, target, **more):
    return {"name": name, "match": [f'alertname="{name}"'], "target": target, **more}


@pytest.mark.seconds(240)
def test_each_panel_has_data(make_daemon, make_prometheus, make_alertmanager, node_group, exporter):
    web, stuck = node_group(size=1), node_group(size=1)
    stuck.inject(Fault(status=500), times=1000)
    exporter.set("load", 1)
    daemon = make_daemon(start=False, rules={
        "targets": {name: {"node_group": {"provider": "mine", "url": group.url}, **FAST}
                    for name, group in (("web", web), ("stuck", stuck))},
        "rules": [rule("Tracked", "web", every="1s", track={"value": 30, "query": "load"}),
                  rule("Blind", "web", every="1s", track={"value": 30, "query": "no_such_metric"}),
                  rule("Slow", "stuck", scale_up={"by": 1})],
    })
    alertmanager = make_alertmanager(webhook=daemon.url + "/webhook")
    prometheus = make_prometheus(
        targets=[daemon.address, exporter.address], alertmanagers=[alertmanager.url],
        rules=[{"alert": name, "expr": "load > 30", "labels": {"scale": "true"}} for name in ("Tracked", "Blind", "Slow")])
    daemon.write_config({"providers": {"mine": {"type": "http"}}, "prometheus": {"url": prometheus.url}})
    daemon.start()
    # Prometheus sees each step: what is there at its first look is no increase and no change.
    eventually(lambda: prometheus.query("count_over_time(alertscaler_leader[1m]) >= 2"), 60, what="alertscaler is scraped")
    exporter.set("load", 40)
    eventually(lambda: prometheus.query('alertscaler_target_replicas{target="web"} == 2'), 60, what="the first step is seen")
    exporter.set("load", 70)
    eventually(lambda: web.size == 3, 60, what="the target is scaled to its maximum")

    def read(word):
        return [float(row["value"][1]) for row in prometheus.query(f'alertscaler_rule_{word}{{rule="Tracked"}}')]

    # together: after a scrape that failed there is neither for a second
    eventually(lambda: (read("value"), read("goal")) == ([70], [30]), 60, what="the new value is seen, and its goal")

    queries = {**read_queries("overview.json", rows=lambda row: row not in ("Did it help?", "Kubernetes")),
               **read_queries("target.json", "web", rows=lambda row: not row.startswith("Nodes"))}
    assert len(queries) > 40
    wait_for_data(prometheus, queries)

    exporter.set("load", 1)     # the alert is over: so is what the rule saw
    eventually(lambda: not prometheus.query('alertscaler_rule_goal{rule="Tracked"}'), 60, what="no goal without an alert")


def test_a_query_without_data_is_found(make_prometheus, exporter):
    exporter.set("one", 1)
    prometheus = make_prometheus(targets=[exporter.address])
    queries = {"here": "one", "gone": "two", "nan": "one * NaN"}
    eventually(lambda: find_empty(prometheus, queries) == ["gone", "nan"], what="what is there, and nothing else, has data")
