#!/usr/bin/python3
"""rule_tests.py ALERTSCALER: `alertscaler test`: what it says of good, failing and wrong files."""
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest
import xml.etree.ElementTree as ElementTree

PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
RULES = """
targets:
  web:
    kubernetes: {kind: Deployment, namespace: shop, name: web}
    min: 1
    max: 20
    cooldown: {up: 1m, down: 5m}
  any:
    kubernetes: {kind: Deployment, namespace: shop, name: '{{ .Labels.app }}'}
    allow: {namespaces: [shop], names: ['*']}
    max: 10
  disk:
    kubernetes: {kind: PersistentVolumeClaim, namespace: shop, name: disk, field: spec.resources.requests.storage, unit: 10Gi}
    max: 20
rules:
  - {name: full, match: ['alertname="Full"'], target: disk, scale_up: {by: 20%}}
  - {name: slow, match: ['alertname="Slow"'], target: web, scale_up: {by: 2}}
  - {name: worse, match: ['alertname="Worse"'], target: web, scale_up: {by: 5}}
  - {name: idle, match: ['alertname="Idle"'], target: web, scale_down: {by: 1}}
  - name: rps
    match: ['alertname="Busy"']
    target: web
    track: {average_value: 100, query: 'sum(rate(http_requests_total{app="{{ .Labels.app }}"}[1m]))'}
  - name: container
    match: ['alertname="Boxed"']
    target: web
    track: {utilization: 50%, of: cpu_requests, container: app, pods: owned, per_pod: true, query: 'sum by (pod) (cpu)'}
  - name: pods
    match: ['alertname="Hot"']
    target: web
    track: {utilization: 50%, of: cpu_requests, per_pod: true, query: 'sum by (pod) (cpu)'}
"""


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "rules.yaml").write_text(RULES, encoding="utf-8")

    def write(self, text, name="tests.yaml"):
        (self.folder / name).write_text(textwrap.dedent(text), encoding="utf-8")

    def run_test(self, *arguments, **more):
        done = subprocess.run([PROGRAM, "test", *arguments], cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=120, **more)
        return done.returncode, done.stdout, done.stderr

    def one(self, body, more=""):
        """Runs one test with these keys."""
        self.write("rule_files: [rules.yaml]\n" + more + "tests:\n  - name: one\n" + textwrap.indent(textwrap.dedent(body), "    "))
        return self.run_test("tests.yaml")

    def passes(self, body, more=""):
        self.assertEqual(self.one(body, more), (0, "Unit Testing: tests.yaml\n  SUCCESS\n\n1 test passed\n", ""))

    def fails(self, body, *lines):
        status, out, err = self.one(body)
        self.assertEqual((status, err), (1, ""), out)
        for line in lines:
            self.assertIn(line, out.splitlines(), out)

    def is_wrong(self, body, *messages, more=""):
        status, out, err = self.one(body, more)
        self.assertEqual((status, out), (2, ""), err)
        for message in messages:
            self.assertIn(message, err)
        return err


class Passing(Case):
    def test_at_one_moment_the_world_comes_first_then_alerts_then_deadlines_then_expectations(self):
        self.passes("""
            targets: {web: {replicas: 4}}
            expect:
              - {at: 0s, target: web, replicas: 6, reason: scaled, rule: slow}
              - {at: 59s, target: web, replicas: 6}
              - {at: 1m, target: web, replicas: 12, reason: scaled}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 1m, target: web, replicas: 10}
            """)
        # The alert that ends at the very moment when its rule may act again acts no more.
        self.passes("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 1m, resolve: {alertname: Slow}}
            expect:
              - {at: 1h, target: web, replicas: 6}
            """)

    def test_alerts_of_one_moment_and_receiver_are_one_notification(self):
        self.passes("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 0s, fire: {alertname: Worse}}
            expect:
              - {at: 0s, target: web, replicas: 9, rule: worse}
            """)
        self.passes("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 0s, fire: {alertname: Worse}, receiver: other}
            expect:
              - {at: 0s, target: web, replicas: 6, reason: cooldown, rule: worse, desired: 11}
            """)

    def test_outcomes_of_alerts(self):
        self.passes("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 10s, fire: {alertname: Slow}}
              - {at: 20s, resolve: {alertname: Slow}}
              - {at: 30s, fire: {alertname: Slow}, starts: 0s}
              - {at: 40s, fire: {alertname: Other, code: 500}}
            expect:
              - {at: 0s, alert: {alertname: Slow}, outcome: queued}
              - {at: 10s, alert: {alertname: Slow}, outcome: duplicate}
              - {at: 30s, alert: {alertname: Slow}, outcome: stale}
              - {at: 40s, alert: {alertname: Other, code: '500'}, outcome: no_rule}
            """)

    def test_a_query_with_the_alerts_labels_in_any_layout(self):
        self.passes("""
            targets: {web: {replicas: 4}}
            queries:
              - {at: 0s, query: 'sum(rate(http_requests_total{app="web"}[1m]))', value: 420}
              - at: 2m
                query: |
                  sum (
                    rate( http_requests_total{ app = "web" } [1m] )
                  )
                value: 1500
              - {at: 10m, query: 'sum(rate(http_requests_total{app="web"}[1m]))', error: no such host}
            input:
              - {at: 0s, fire: {alertname: Busy, app: web}}
            expect:
              - {at: 1m, target: web, replicas: 4, reason: within_tolerance}
              - {at: 2m, target: web, replicas: 15, reason: scaled, rule: rps}
              - {at: 10m, target: web, replicas: 15, reason: metric_unavailable}
            """)

    def test_pods_with_quantities_and_without_samples(self):
        # Two ready pods use 100% of what they ask for, a third that is not ready counts as none: 4 of 50%.
        self.passes("""
            targets:
              web:
                pods:
                  - {name: web-a, requests: {cpu: 250m}}
                  - {name: web-b, requests: {cpu: '0.25'}}
            queries:
              - {query: sum by (pod) (cpu), pods: {web-a: 0.25, web-b: 0.25}}
            input:
              - {at: 0s, fire: {alertname: Hot}}
            expect:
              - {at: 0s, target: web, replicas: 4, reason: scaled, rule: pods}
            """)

    def test_pods_with_containers_and_owners(self):
        # 100 % of one container in two own pods: 4 of 50 %. The third pod is of somebody else, and uses nothing.
        body = """
            targets:
              web:
                pods:
                  - {{name: web-a, containers: [{{name: app, requests: {{cpu: 250m}}}}, {{name: proxy, requests: {{cpu: 1}}}}]}}
                  - {{name: web-b, containers: [{{name: app, requests: {{cpu: 250m}}}}, {{name: proxy}}]}}
                  - {{name: web-c, owner: {owner}, containers: [{{name: proxy}}]}}
            queries:
              - {{query: sum by (pod) (cpu), pods: {{web-a: 0.25, web-b: 0.25, web-c: 0}}}}
            input:
              - {{at: 0s, fire: {{alertname: {alert}}}}}
            expect:
              - {{at: 0s, target: web, replicas: {size}, reason: {reason}}}
            """
        for owner, alert, size, reason in (("other", "Boxed", 4, "scaled"), ("gone", "Boxed", 3, "metric_unavailable"),
                                           ("target", "Boxed", 3, "metric_unavailable"), ("other", "Hot", 3, "metric_unavailable")):
            with self.subTest(owner=owner, alert=alert):
                self.passes(body.format(owner=owner, alert=alert, size=size, reason=reason))

    def test_a_state_may_have_all_of_its_keys(self):
        """Size, pods and nodes, again and again: each is an event."""
        self.passes("""
            targets:
              web: {replicas: 2, pods: [{name: a}], nodes: {open: 2}}
              'kubernetes/default/apps/v1/Deployment/shop/a': {replicas: 2, pods: [{name: a}], nodes: {open: 2}}
            input:
              - {at: 1s, target: web, replicas: 3, pods: [{name: a}], nodes: {open: 2}}
              - {at: 2s, target: web, replicas: 4, pods: [{name: a}], nodes: {open: 2}}
              - {at: 3s, fire: {alertname: Slow}}
            expect:
              - {at: 3s, target: web, replicas: 6}
        """)

    def test_a_target_that_is_not_there(self):
        self.passes("""
            targets: {}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 1m, target: web, replicas: 3}
            expect:
              - {at: 0s, target: web, reason: target_not_found}
              - {at: 2m, target: web, replicas: 5}
            """)

    def test_a_configuration_gives_limits_watchdog_and_its_rule_files(self):
        self.write("rule_files: [rules.yaml]\nlimits: {actions: {max: 1, per: 10m}}\n"
                   "prometheus: {url: 'http://localhost:9090'}\n", "alertscaler.yaml")
        body = """
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
            expect:
              - {at: 2m, target: web, replicas: 6, reason: budget}
            """
        self.passes(body, "config_file: alertscaler.yaml\n")
        self.write("config_file: alertscaler.yaml\ntests:\n  - name: one\n" + textwrap.indent(textwrap.dedent(body), "    "))
        self.assertEqual(self.run_test("tests.yaml")[0], 0)

    def test_an_alert_that_is_sent_again_and_again(self):
        (self.folder / "rules.yaml").write_text(RULES + "    on_resolved: {give_back: {after: 1m, step: 100%}}\n", encoding="utf-8")
        self.write("rule_files: [rules.yaml]\nprometheus: {url: 'http://localhost:9090'}\n"
                   "receiver: {watchdog: {match: ['alertname=\"Watchdog\"'], within: 10m}}\n", "alertscaler.yaml")
        for until, size in (("2m", 4), ("1h", 2)):
            self.passes(f"""
                targets: {{web: {{replicas: 2, pods: [{{name: a, requests: {{cpu: 1}}}}, {{name: b, requests: {{cpu: 1}}}}]}}}}
                queries:
                  - {{query: sum by (pod) (cpu), pods: {{a: 1, b: 1}}}}
                input:
                  - {{at: 0s, fire: {{alertname: Watchdog}}, every: 1m, until: {until}}}
                  - {{at: 10s, fire: {{alertname: Hot}}}}
                  - {{at: 20m, resolve: {{alertname: Hot}}}}
                expect:
                  - {{at: 10m, target: web, replicas: 4}}
                  - {{at: 40m, target: web, replicas: {size}}}
                  - {{at: {until}, alert: {{alertname: Watchdog}}, outcome: no_rule}}
                """, "config_file: alertscaler.yaml\n")

    def test_a_person_approves_or_denies_what_waits(self):
        (self.folder / "rules.yaml").write_text(RULES.replace("max: 20", "max: 20\n    approval: {above: 3, for: 10m}"), encoding="utf-8")
        self.passes("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Worse}}
              - {at: 0s, approve: web}                  # after the alerts of the same moment
            expect:
              - {at: 0s, target: web, replicas: 9, reason: scaled, asked: none}
              - {at: 1m, target: web, replicas: 9, asked: 14}
            """)
        self.passes("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Worse}}
              - {at: 5m, deny: web}
              - {at: 6m, fire: {alertname: Slow}}
            expect:
              - {at: 0s, target: web, replicas: 4, asked: 9, reason: needs_approval}
              - {at: 5m, target: web, replicas: 4, asked: none, reason: not_approved}
              - {at: 6m, target: web, replicas: 6}
            """)

    def test_an_answer_that_nobody_waits_for_is_a_failure(self):
        self.fails("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
              - {at: 10s, deny: web}
            expect:
              - {at: 10s, target: web, replicas: 6, asked: 9}
            """,
            "      at 10s, target web (tests.yaml:8)",
            "        waiting: expected a request for an approval, got none",
            "      at 10s, target web (tests.yaml:10)",
            "        asked: expected 9, got none",
            "        0s       4 -> 6  scaled by slow")

    def test_wrong_answers(self):
        self.is_wrong("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, deny: web, approve: web}
              - {at: 0s, deny: web, receiver: x}
              - {at: 0s, approve: web, replicas: 4}
            expect:
              - {at: 0s, target: web, asked: nobody}
              - {at: 0s, alert: {alertname: Slow}, outcome: queued, asked: 4}
            """,
            "only one of", "`receiver` goes only with `fire` or `resolve`", "`replicas` goes only with `target`",
            "found `nobody`", "`asked` goes only with `target`")
        self.is_wrong("""
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, approve: webb}
              - {at: 0s, deny: any}
            expect: [{at: 0s, target: web, asked: none}]
            """,
            "there is no target `webb`; did you mean `web`?", "the address of target `any` has templates")

    def follow(self, rule, target="cooldown: {up: 0s, down: 0s}"):
        (self.folder / "rules.yaml").write_text(f"""
targets:
  web: {{kubernetes: {{kind: Deployment, namespace: shop, name: web}}, min: 2, max: 20, {target}}}
rules:
  - {{name: follow, always: true, target: web, {rule}}}
  - {{name: stop, match: [alertname=Stop], target: web, hold: both}}
""", encoding="utf-8")

    def test_an_always_rule_needs_no_input(self):
        self.follow("every: 30s, track: {average_value: 10, query: load}")
        self.passes("""
            targets: {web: {replicas: 4}}
            queries:
              - {query: load, value: 60}
              - {query: load, at: 40s, value: 90}
              - {query: load, at: 80s, error: connection refused}
              - {query: load, at: 130s, value: 30}
            expect:
              - {at: 0s, target: web, replicas: 6, reason: scaled, rule: follow}
              - {at: 59s, target: web, replicas: 6}
              - {at: 60s, target: web, replicas: 9}
              - {at: 90s, target: web, replicas: 9, reason: metric_unavailable}
              - {at: 149s, target: web, replicas: 9}
              - {at: 150s, target: web, replicas: 3, reason: scaled}
            """)

    def test_an_always_rule_steps_every_time(self):
        self.follow("every: 1m, scale_up: {value: {query: queue}, steps: [{above: 10, by: 1}]}")
        self.passes("""
            targets: {web: {replicas: 4}}
            queries:
              - {query: queue, value: 50}
              - {query: queue, at: 150s, value: 5}
            expect:
              - {at: 0s, target: web, replicas: 5}
              - {at: 59s, target: web, replicas: 5}
              - {at: 60s, target: web, replicas: 6}
              - {at: 120s, target: web, replicas: 7}
              - {at: 10m, target: web, replicas: 7}
            """)

    def test_an_alert_stops_an_always_rule(self):
        self.follow("every: 30s, track: {average_value: 10, query: load}")
        self.passes("""
            targets: {web: {replicas: 6}}
            queries: [{query: load, value: 60}, {query: load, at: 60s, value: 90}]
            input:
              - {at: 45s, fire: {alertname: Stop}}
              - {at: 120s, resolve: {alertname: Stop}}
            expect:
              - {at: 119s, target: web, replicas: 6, reason: held}
              - {at: 150s, target: web, replicas: 9, rule: follow}
            """)

    def test_a_person_approves_an_always_rule(self):
        self.follow("every: 30s, track: {average_value: 10, query: load}", "cooldown: {up: 0s, down: 0s}, approval: {above: 3, for: 10m}")
        self.passes("""
            targets: {web: {replicas: 4}}
            queries: [{query: load, value: 90}]
            input: [{at: 5m, approve: web}]
            expect:
              - {at: 1m, target: web, replicas: 4, asked: 9, reason: needs_approval}
              - {at: 5m, target: web, replicas: 9, asked: none}
            """)

    def test_a_month_is_soon_over(self):
        self.passes("""
            start: 2026-11-01T00:00:00+01:00
            targets: {web: {replicas: 4}}
            input:
              - {at: 29d, fire: {alertname: Slow}}
            expect:
              - {at: 28d, target: web, replicas: 4}
              - {at: 30d, target: web, replicas: 20, reason: at_max}
            """)


class Failing(Case):
    def test_says_what_was_expected_what_came_and_why(self):
        self.fails(
            """
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slow}}
            expect:
              - {at: 30s, target: web, replicas: 8, reason: cooldown, rule: idle, desired: 9}
              - {at: 30s, alert: {alertname: Slow}, outcome: no_rule}
              - {at: 30s, alert: {alertname: Never}, outcome: no_rule}
            """,
            "  FAILED:",
            "    one",
            "      at 30s, target web (tests.yaml:9)",
            "        replicas: expected 8, got 6",
            "        reason: expected cooldown, got scaled",
            "        rule: expected idle, got slow",
            "        desired: expected 9, got 6",
            "        0s       4 -> 6  scaled by slow",
            "      why: 4 plus 2 is 6.",
            '      at 30s, alert {alertname="Slow"} (tests.yaml:10)',
            "        outcome: expected no_rule, got queued",
            '        0s       fire {alertname="Slow"}  queued for slow',
            "        outcome: expected no_rule, got no such alert",
        )

    def test_says_how_the_rule_came_to_its_size(self):
        for action, size, value, why in (
                ("scale_up: {by: 50%}", 5, None, "5 plus ceil(50 % of 5) is 8."),
                ("scale_up: {by: 10%, at_least: 3}", 5, None, "5 plus at_least 3 is 8."),
                ("scale_up: {by: 300%}", 6, None, "6 plus ceil(300 % of 6) is 24; limited by max to 20."),
                ("scale_down: {by: 50%}", 5, None, "5 less floor(50 % of 5) is 3."),
                ("scale_to: 7", 5, None, "the size of the rule is 7."),
                ("scale_up: {to: 7}", 5, None, "the size of the rule is 7."),
                ("scale_up: {value: {query: q}, steps: [{above: 2, by: 1}, {above: 4, by: 40%}]}", 5, 4.5,
                 "the value is 4.5, above 4 counts: 5 plus ceil(40 % of 5) is 7."),
                ("scale_up: {value: {query: q}, steps: [{above: 2, to: 1.5}]}", 5, 2.5,
                 "the value is 2.5, above 2 counts: ceil(5 x 2.5 / 1.5) is 9."),
                ("scale_to: {value: {query: q}, steps: [{from: 0, size: 2}, {from: 3, size: 6}]}", 5, 4,
                 "the value is 4, from 3 counts: the size is 6."),
                ("track: {value: 100, query: q}", 5, 150, "ceil(5 x 150 / 100) is 8."),
                ("track: {average_value: 100, query: q}", 5, 720, "ceil(720 / 100) is 8."),
                ("track: {average_value: 100, query: q}", 5, 520,
                 "The tracked value is close enough to its goal. 520 of 5 x 100 is within the tolerance: the size is 5."),
                ("pass_through: {query: q}", 5, 6.2, "ceil(6.2) is 7.")):
            (self.folder / "rules.yaml").write_text(
                RULES + f"  - {{name: own, match: ['alertname=\"Own\"'], target: web, {action}}}\n", encoding="utf-8")
            queries = f"queries: [{{query: q, value: {value}}}]" if value is not None else ""
            with self.subTest(action):
                self.fails(f"""
                    targets: {{web: {{replicas: {size}}}}}
                    {queries}
                    input:
                      - {{at: 0s, fire: {{alertname: Own}}}}
                    expect:
                      - {{at: 0s, target: web, replicas: 1}}
                    """, f"      why: {why}")

    def test_says_how_the_last_size_came_about_too(self):
        self.fails("""
            targets: {web: {replicas: 5}}
            queries: [{query: 'sum(rate(http_requests_total{app="a"}[1m]))', value: 720}]
            input:
              - {at: 0s, fire: {alertname: Busy, app: a}}
            expect:
              - {at: 30s, target: web, replicas: 1}
              - {at: 30s, target: web, reason: scaled}
            """, "      why: The tracked value is close enough to its goal. 720 of 8 x 100 is within the tolerance: the size is 8."
            " The last change: ceil(720 / 100) is 8.",
            "      why: The tracked value is close enough to its goal. 720 of 8 x 100 is within the tolerance: the size is 8.")

    def test_says_how_pods_came_to_a_size(self):
        self.fails("""
            targets: {web: {replicas: 2, pods: [{name: a, requests: {cpu: 1}}, {name: b, requests: {cpu: 1}}]}}
            queries:
              - {query: sum by (pod) (cpu), pods: {a: 1, b: 0.6}}
            input:
              - {at: 0s, fire: {alertname: Hot}}
            expect:
              - {at: 0s, target: web, replicas: 1}
            """, "      why: ceil(2 x 80 % / 50 %) is 4.")

    def test_says_how_owned_pods_and_one_number_came_to_a_size(self):
        """Pods of others are not in the formula, ready or not."""
        pods = "{name: a}, {name: b}, {name: c, ready: false}, {name: d}, {name: e, owner: other}, {name: f, owner: other}"
        for rollout, owned, why in (
                ("as_hpa", ", pods: owned", "ceil(3 x 150 / 100) is 5."), ("as_hpa", "", "ceil(5 x 150 / 100) is 8."),
                ("by_spec", ", pods: owned", "ceil(3 x 150 / 100) is 5.")):
            (self.folder / "rules.yaml").write_text(
                RULES.replace("    cooldown:", f"    rollout: {rollout}\n    cooldown:", 1)
                + f"  - {{name: own, match: ['alertname=\"Own\"'], target: web, track: {{value: 100, query: q{owned}}}}}\n", encoding="utf-8")
            with self.subTest(f"{rollout}{owned}"):
                self.fails(f"""
                    targets: {{web: {{replicas: 4, pods: [{pods}]}}}}
                    queries: [{{query: q, value: 150}}]
                    input:
                      - {{at: 0s, fire: {{alertname: Own}}}}
                    expect:
                      - {{at: 0s, target: web, replicas: 1}}
                    """, f"      why: {why}")

    def test_says_how_a_step_of_give_back_came_to_a_size(self):
        (self.folder / "rules.yaml").write_text(
            RULES.replace("scale_up: {by: 5}}", "scale_up: {by: 5}, on_resolved: {give_back: {step: 50%}}, guard: none}"),
            encoding="utf-8")
        for at, size, why in ("6m", 6, "9 less ceil(50 % of 5) is 6."), ("11m", 4, "give_back: the size before the incident is 4."):
            self.fails(f"""
                targets: {{web: {{replicas: 4}}}}
                input:
                  - {{at: 0s, fire: {{alertname: Worse}}}}
                  - {{at: 30s, resolve: {{alertname: Worse}}}}
                expect:
                  - {{at: {at}, target: web, replicas: 20}}
                """, f"        replicas: expected 20, got {size}", f"      why: {why}")

    def test_sizes_with_a_unit_are_told_in_both_notations(self):
        self.fails(
            """
            targets: {disk: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Full}}
            expect:
              - {at: 30s, target: disk, replicas: 6, desired: 7}
            """,
            "        replicas: expected 6 (60Gi), got 5 (50Gi)",
            "        desired: expected 7 (70Gi), got 5 (50Gi)",
            "        0s       4 (40Gi) -> 5 (50Gi)  scaled by full",
        )

    def test_without_a_decision_it_tells_the_alerts(self):
        self.fails(
            """
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: Slwo}}
            expect:
              - {at: 1m, target: web, replicas: 6, reason: scaled}
            """,
            "        reason: expected scaled, got no decision",
            "      nothing was decided on it; alerts up to then:",
            '        0s       fire {alertname="Slwo"}  no_rule',
        )

    def test_names_the_queries_that_have_no_answer(self):
        self.fails(
            """
            targets: {web: {replicas: 4}}
            queries:
              - {query: 'sum(rate(http_requests_total[1m]))', value: 1000}
            input:
              - {at: 0s, fire: {alertname: Busy, app: web}}
            expect:
              - {at: 0s, target: web, replicas: 10}
            """,
            "        replicas: expected 10, got 4",
            "      asked for, but not among the test's `queries`:",
            '        sum(rate(http_requests_total{app="web"}[1m]))',
        )

    def test_control_characters_never_reach_the_terminal(self):
        status, out, _ = self.one('''
            targets: {web: {replicas: 4}}
            input:
              - {at: 0s, fire: {alertname: "a\\e[31mb"}}
            expect:
              - {at: 1m, target: web, replicas: 6}
            ''')
        self.assertEqual(status, 1)
        self.assertNotIn("\x1b", out)
        self.assertIn("a\\x1b[31mb", out)

    def test_colors_are_for_terminals(self):
        self.one("""
            targets: {web: {replicas: 4}}
            expect:
              - {at: 1m, target: web, replicas: 6}
            """)
        for environment, has_colors in (({}, True), ({"NO_COLOR": "1"}, False)):
            ours, theirs = pty.openpty()
            with subprocess.Popen([PROGRAM, "test", "tests.yaml"], cwd=self.folder, stdout=theirs, stderr=theirs,
                                  env={**os.environ, "TERM": "xterm", **environment}) as process:
                os.close(theirs)
                text = b""
                try:
                    while part := os.read(ours, 4096):
                        text += part
                except OSError:
                    pass  # the other end is closed
            os.close(ours)
            self.assertEqual(process.returncode, 1)
            self.assertIn(b"FAILED", text)
            self.assertEqual(b"\x1b[" in text, has_colors)


TWO = """
rule_files: [rules.yaml]
tests:
  - name: 'grows & <waits> "well"'
    targets: {web: {replicas: 4}}
    input: [{at: 0s, fire: {alertname: Slow, note: "\\x01\\U0001F600 \\uFFFE"}}]
    expect: [{at: 0s, target: web, replicas: 6}]
  - name: "shrinks"
    targets: {web: {replicas: 4}}
    input: [{at: 0s, fire: {alertname: Slow, note: "\\x01\\U0001F600 \\uFFFE & <b>"}}]
    expect: [{at: 0s, alert: {alertname: Slow, note: "\\x01\\U0001F600 \\uFFFE & <b>"}, outcome: stale}]
"""


class Reports(Case):
    def test_junit_is_xml_that_others_read(self):
        self.write(TWO)
        status, _, err = self.run_test("tests.yaml", "--junit", "junit.xml")
        self.assertEqual((status, err), (1, ""))
        root = ElementTree.parse(self.folder / "junit.xml").getroot()
        suite = root.find("testsuite")
        self.assertEqual((root.tag, suite.get("name"), suite.get("tests"), suite.get("failures")),
                         ("testsuites", "tests.yaml", "2", "1"))
        good, bad = suite.findall("testcase")
        self.assertEqual(good.get("name"), 'grows & <waits> "well"')
        self.assertIsNone(good.find("failure"))
        failure = bad.find("failure")
        self.assertEqual(failure.get("message"), "outcome: expected stale, got queued")
        self.assertIn('note="\\x01\U0001F600 \\ufffe & <b>"', failure.text)
        self.assertGreaterEqual(float(bad.get("time")), 0)

    def test_junit_that_cannot_be_written_is_status_2(self):
        self.write(TWO)
        self.assertEqual(self.run_test("tests.yaml", "--junit", "no/such/folder.xml")[0], 2)
        self.assertEqual(self.run_test("tests.yaml", "--junit", "/dev/full")[0], 2)

    def test_json(self):
        self.write(TWO)
        status, out, _ = self.run_test("tests.yaml", "-o", "json")
        self.assertEqual(status, 1)
        (file,) = json.loads(out)
        self.assertEqual((file["file"], file["passed"]), ("tests.yaml", False))
        good, bad = file["tests"]
        self.assertEqual((good["passed"], good["failures"]), (True, []))
        (failure,) = bad["failures"]
        self.assertEqual(failure["differences"], {"outcome": {"expected": "stale", "got": "queued"}})
        self.assertEqual((failure["at"], failure["line"]), ("0s", 11))

    def test_run_chooses_by_name(self):
        self.write(TWO)
        self.assertEqual(self.run_test("tests.yaml", "--run", "waits|nothing")[0], 0)
        self.assertEqual(self.run_test("tests.yaml", "--run", "^shrinks$")[0], 1)
        self.assertEqual(self.run_test("tests.yaml", "--run", "waits", "--run", "shri")[0], 1)
        status, _, err = self.run_test("tests.yaml", "--run", "nothing")
        self.assertEqual((status, err), (1, "alertscaler test: no test of these files was run\n"))
        self.assertEqual(self.run_test("tests.yaml", "--run", "(")[0], 2)

    def test_several_files(self):
        self.write(TWO)
        self.write(TWO.replace("outcome: stale", "outcome: queued"), "good.yaml")
        status, out, _ = self.run_test("good.yaml", "tests.yaml")
        self.assertEqual(status, 1)
        self.assertEqual(re.findall(r"^Unit Testing: (.*)\n  (\w+)", out, re.MULTILINE),
                         [("good.yaml", "SUCCESS"), ("tests.yaml", "FAILED")])


    def test_the_number_of_tests(self):
        self.write(TWO)
        self.assertEqual(self.run_test("tests.yaml")[1].splitlines()[-1], "1 of 2 tests failed")
        self.assertEqual(self.run_test("tests.yaml", "--run", "grows")[1].splitlines()[-1], "1 test passed")
        self.assertEqual(self.run_test("tests.yaml", "--run", "shrinks")[1].splitlines()[-1], "1 of 1 test failed")
        self.write(TWO.replace("outcome: stale", "outcome: queued"))
        self.assertEqual(self.run_test("tests.yaml", "tests.yaml")[1].splitlines()[-1], "4 tests passed")


class Coverage(Case):
    RULES = """
        targets:
          web:
            kubernetes: {kind: Deployment, namespace: shop, name: web}
            min: 0
            max: 7
            cooldown: {up: 0s, down: 0s}
        rules:
          - {name: slow, match: ['alertname="Slow"'], target: web, scale_up: {by: 2}}
          - {name: "odd", match: ['alertname="Odd"'], target: web, scale_up: {by: 1}}
          - {name: off, match: ['alertname="Off"'], target: web, scale_up: {by: 1}, enabled: false}
        """
    TESTS = """
        rule_files: [rules.yaml]
        tests:
          - name: grows
            targets: {web: {replicas: 4}}
            input: [{at: 0s, fire: {alertname: Slow}}]
            expect: [{at: 0s, target: web, replicas: 6}]
          - name: at its maximum
            targets: {web: {replicas: 7}}
            input: [{at: 0s, fire: {alertname: Slow}}]
            expect: [{at: 0s, target: web, replicas: 7, reason: at_max}]
        """

    def cover(self, rules, *options, tests=TESTS):
        self.write(rules, "rules.yaml")
        self.write(tests)
        status, out, err = self.run_test("tests.yaml", "--coverage", *options)
        self.assertEqual((status, err), (0, ""), out)
        return out

    def read(self, rules, **more):
        return json.loads(self.cover(rules, "-o", "json", **more))["coverage"]

    def test_what_no_test_reaches(self):
        self.assertEqual(self.cover(self.RULES), textwrap.dedent("""\
            Unit Testing: tests.yaml
              SUCCESS

            2 tests passed

            Coverage:
              rules: the tests reach 1 of 2
                not reached: odd
              gates: the tests reach 2 of 2
              reasons: the tests reach 2 of 5
                not reached: no_rule
                not reached: duplicate
                not reached: rule_disabled
            """))

    def test_only_the_tests_that_run_count(self):
        out = self.cover(self.RULES, "--run", "grows")
        self.assertIn("  gates: the tests reach 1 of 2\n    not reached: bounds\n", out)
        self.assertIn("    not reached: at_max\n", out)

    def test_json_has_the_files_too(self):
        document = json.loads(self.cover(self.RULES, "-o", "json"))
        self.assertEqual(document["coverage"], {
            "rules": {"reached": ["slow"], "not_reached": ["odd"]},
            "gates": {"reached": ["combine", "bounds"], "not_reached": []},
            "reasons": {"reached": ["scaled", "at_max"], "not_reached": ["no_rule", "duplicate", "rule_disabled"]},
        })
        self.assertEqual([file["file"] for file in document["files"]], ["tests.yaml"])

    def test_what_the_rules_can_lead_to_counts(self):
        for old, new, gates, reasons in (
            ("min: 0", "min: 1", {"switched_off"}, {"disabled"}),
            ("min: 0", "min: 0\n            enforce_bounds: true", {"out_of_bounds"}, {"above_max", "below_min"}),
            ("min: 0", "min: 0\n            behavior: {scaleUp: {stabilizationWindowSeconds: 0}}", {"stabilize", "policies"},
             {"stabilized", "rate_limited"}),
            ("up: 0s", "up: 1s", {"cooldown"}, {"cooldown"}),
            ("min: 0", "min: 0\n            approval: {above: 5}", {"approval"}, {"needs_approval", "not_approved"}),
            ("min: 0", "min: 0\n            rollout: wait", set(), {"rollout_under_way"}),
            ("scale_up: {by: 1}}", "scale_down: {by: 1}}", {"holds"}, {"at_min", "vetoed", "unconfirmed"}),
            ("scale_up: {by: 1}}", "hold: down}", set(), {"held"}),
            ("scale_up: {by: 1}}", "scale_up: {by: 1}, max_steps: 2}", set(), {"max_steps"}),
        ):
            with self.subTest(new=new):
                coverage = self.read(self.RULES.replace(old, new, 1))
                self.assertEqual(set(coverage["gates"]["not_reached"]), gates)
                self.assertEqual(set(coverage["reasons"]["not_reached"]), reasons | {"no_rule", "duplicate", "rule_disabled"})

    def test_a_rule_of_several_files_counts_once(self):
        self.write(self.TESTS.replace("Slow", "Odd").replace("replicas: 6", "replicas: 5"), "odd.yaml")
        self.write(self.RULES, "rules.yaml")
        self.write(self.TESTS)
        out = self.run_test("tests.yaml", "odd.yaml", "--coverage")[1]
        self.assertIn("  rules: the tests reach 2 of 2\n", out)

    def test_rules_of_one_name_in_different_files_are_different(self):
        self.write(self.RULES.replace("min: 0", "min: 1"), "others.yaml")
        self.write(self.TESTS.replace("[rules.yaml]", "[others.yaml]").replace("Slow", "Odd").replace("replicas: 6", "replicas: 5"), "odd.yaml")
        self.write(self.RULES, "rules.yaml")
        self.write(self.TESTS)
        out = self.run_test("tests.yaml", "odd.yaml", "--coverage")[1]
        self.assertIn("  rules: the tests reach 2 of 4\n    not reached: odd\n    not reached: slow\n", out)


class Wrong(Case):
    GOOD = "targets: {web: {replicas: 4}}\n"

    def test_every_error_of_all_files_with_its_place(self):
        (self.folder / "rules.yaml").write_text(RULES.replace("max: 20", "mx: 20"), encoding="utf-8")
        err = self.is_wrong("""
            target: {web: {replicas: 4}}
            expect:
              - {at: 0s, target: web, replicas: ten}
            """,
            "tests.yaml:5:5: error: unknown key `target`; did you mean `targets`?\n    5 |     target: {web: {replicas: 4}}\n"
            "      |     ^~~~~~\n",
            "tests.yaml:3:5: error: key `targets` is missing",
            "tests.yaml:7:41: error: expected an integer from 0 to 2147483647, found `ten`",
            "rules.yaml:6:5: error: unknown key `mx`; did you mean `max`?")
        self.assertGreaterEqual(err.count("error:"), 4)

    def test_names_that_are_not_there(self):
        self.is_wrong("""
            targets: {wbe: {replicas: 4}, any: {replicas: 3}}
            input:
              - {at: 0s, target: wep, replicas: 4}
            expect:
              - {at: 0s, target: web, rule: slwo}
              - {at: 0s, target: nothing-like-it, replicas: 3}
            """,
            "there is no target `wbe`; did you mean `web`?",
            "the address of target `any` has templates",
            "there is no target `wep`; did you mean `web`?",
            "there is no rule `slwo`; did you mean `slow`?",
            "there is no target `nothing-like-it`\n")

    def test_keys_that_do_not_go_together(self):
        for line, message in (
            ("{at: 0s}", "one of `fire`, `resolve`, `target`, `cluster`, `approve` and `deny` is needed"),
            ("{at: 0s, fire: {a: b}, resolve: {a: b}}", "only one of `fire`, `resolve`, `target`, `cluster`, `approve` and `deny` may be given"),
            ("{at: 0s, target: web}", "`replicas`, `pods`, `nodes` or `rollout` is needed"),
            ("{at: 0s, target: web, replicas: 3, receiver: x}", "`receiver` goes only with `fire` or `resolve`"),
            ("{at: 0s, fire: {a: b}, replicas: 3}", "`replicas` goes only with `target`"),
            ("{at: 1s, fire: {a: b}, starts: 2s}", "later than `at`"),
            ("{at: 0s, fire: {a: b}, every: 1m}", "`every` and `until` go together"),
            ("{at: 0s, fire: {a: b}, until: 1m}", "`every` and `until` go together"),
            ("{at: 2m, fire: {a: b}, every: 1m, until: 1m}", "earlier than `at`"),
            ("{at: 0s, resolve: {a: b}, every: 1m, until: 1m}", "`every` goes only with `fire`"),
            ("{at: 0s, fire: {a: b}, every: 1s, until: 10d}", "more than 10000 repeats"),
            ("{at: 0s, fire: {a: b}, every: 0s, until: 10d}", "expected a duration of at least 1s"),
            ("{at: 0s, fire: {a: }}", "expected the value of a label, found nothing"),
            ("{at: 0s, fire: {a: [b]}}", "expected the value of a label, found a list"),
            ("{at: 0s, fire: {a: b, a: c}}", "`a`"),
            ("{at: 0s, cluster: {pods: [{cpu: 1, select: {zone: null}}]}}", "expected the value of a label, found nothing"),
            ("{at: 400d, fire: {a: b}}", "expected a duration"),
            ("{at: -1s, fire: {a: b}}", "error"),
            ("{at: 0s, target: web, pods: [{name: a}, {name: a}]}", "another pod has this name"),
            ("{at: 0s, target: web, pods: [{name: a, age: 1m, ready_for: 2m}]}", "longer than the pod's `age`"),
            ("{at: 0s, target: web, pods: [{name: a, phase: Sleeping}]}", "expected Pending, Running,"),
            ("{at: 0s, target: web, pods: [{name: a, requests: {cpu: 1 core}}]}", "expected a quantity like 250m"),
            ("{at: 0s, target: web, pods: [{name: a, requests: {cpus: 1}}]}", "did you mean `cpu`?"),
        ):
            with self.subTest(line=line):
                self.is_wrong(self.GOOD + f"input:\n  - {line}\nexpect:\n  - {{at: 0s, target: web, replicas: 4}}\n", message)

    def test_expectations_that_say_nothing(self):
        for line, message in (
            ("{at: 0s, target: web}", "one of `replicas`, `reason`, `rule`, `desired` and `asked` is needed"),
            ("{at: 0s, alert: {a: b}}", "`outcome` is needed"),
            ("{at: 0s, alert: {a: b}, outcome: ignored}", "expected queued, no_rule,"),
            ("{at: 0s, alert: {a: b}, outcome: queued, replicas: 3}", "`replicas` goes only with `target`"),
            ("{at: 0s, target: web, reason: cooldwon}", "did you mean `cooldown`?"),
            ("{target: web, replicas: 4}", "key `at` is missing"),
        ):
            with self.subTest(line=line):
                self.is_wrong(self.GOOD + f"expect:\n  - {line}\n", message)
        self.is_wrong(self.GOOD + "expect: []\n", "a test that expects nothing cannot fail")

    def test_queries(self):
        for line, message in (
            ("{query: up}", "one of `value`, `pods` and `error` is needed"),
            ("{query: up, value: 1, error: x}", "only one of `value`, `pods` and `error` may be given"),
            ("{query: up, value: NaN}", "expected a number"),
            ("{query: up, pods: {}}", "expected at least one pod"),
            ("{value: 1}", "key `query` is missing"),
        ):
            with self.subTest(line=line):
                self.is_wrong(self.GOOD + f"queries:\n  - {line}\nexpect:\n  - {{at: 0s, target: web, replicas: 4}}\n", message)

    def test_files(self):
        expect = "tests:\n  - {name: a, targets: {web: {replicas: 4}}, expect: [{at: 0s, target: web, replicas: 4}]}\n"
        for text, message in (
            (expect, "`rule_files` or `config_file` is needed"),
            ("rule_files: []\n" + expect, "expected at least one file, found an empty list"),
            ("rule_files: [none.yaml]\n" + expect, "cannot read none.yaml"),
            ("rule_files: [none-*.yaml]\n" + expect, "there are no rules to test"),
            ("config_file: none.yaml\n" + expect, "none.yaml"),
            ("rule_files: [rules.yaml]\nevaluation_interval: 1m\n" + expect, "not in intervals"),
            ("rule_files: [rules.yaml]\ntests:\n  - &a {name: a}\n", "error"),
            ("rule_files: [rules.yaml]\n", "key `tests` is missing"),
            ("", "error"),
            ("[" * 100, "error"),
            ("rule_files: [rules.yaml]\n" + expect.replace("name: a,", "name: a, start: yesterday,"),
             "expected a time like 2020-01-01T00:00:00Z, found `yesterday`"),
        ):
            with self.subTest(text=text):
                self.write(text)
                status, out, err = self.run_test("tests.yaml")
                self.assertEqual((status, out), (2, ""), err)
                self.assertIn(message, err)
        self.assertEqual(self.run_test("no-such-file.yaml")[0], 2)
        self.assertEqual(self.run_test()[0], 2)

    def test_policies_in_a_folder_of_manifests(self):
        """Other objects are passed over; a policy in `Shadow` is a dry run."""
        (self.folder / "shop").mkdir()
        self.write("""\
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: cart, namespace: shop}
            ---
            apiVersion: alertscaler.io/v1alpha1
            kind: ScalingPolicy
            metadata: {name: cart, namespace: shop}
            spec:
              target: {kubernetes: {kind: Deployment, name: cart}, min: 2, max: 20}
              rules:
                - {name: slow, match: ['alertname="CartSlow"'], scaleUp: {by: 1}}
            ---
            apiVersion: alertscaler.io/v1alpha1
            kind: ScalingPolicy
            metadata: {name: search, namespace: shop}
            spec:
              mode: Shadow
              target: {kubernetes: {kind: Deployment, name: search}, min: 2, max: 20}
              rules:
                - {name: slow, match: ['alertname="SearchSlow"'], scaleUp: {by: 1}}
            """, "shop/shop.yaml")
        self.write("kind: Service\napiVersion: v1\n", "shop/service.yaml")
        for rules in ("shop", "shop/shop.yaml"):
            self.write(f"""\
                rule_files: [{rules}]
                tests:
                  - name: policies
                    targets: {{shop/cart: {{replicas: 3}}, shop/search: {{replicas: 3}}}}
                    input:
                      - {{at: 0s, fire: {{alertname: CartSlow}}}}
                      - {{at: 0s, fire: {{alertname: SearchSlow}}}}
                    expect:
                      - {{at: 1s, target: shop/cart, replicas: 4, rule: shop/cart/slow}}
                      - {{at: 1s, target: shop/search, replicas: 3, reason: dry_run}}
                """)
            status, out, err = self.run_test("tests.yaml")
            self.assertEqual(status, 0, out + err)

    def test_check_says_what_the_file_is(self):
        self.write(TWO)
        done = subprocess.run([PROGRAM, "check", "tests.yaml"], cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("this is a file of tests: run it with `alertscaler test`", done.stderr)

    def test_one_wrong_file_and_nothing_is_run(self):
        self.write(TWO)
        self.write("nonsense: 1\n", "wrong.yaml")
        status, out, _ = self.run_test("tests.yaml", "wrong.yaml")
        self.assertEqual((status, out), (2, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
