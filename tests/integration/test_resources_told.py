"""Everything that people read about a target with a unit says a size in both notations: 5 (320Mi)."""
import json
import subprocess

from harness.daemon import environment
from test_resources import fire, make, wait_event    # noqa: F401  (make is a fixture)


def run(daemon, *arguments, stdin=None):
    done = subprocess.run([daemon.binary, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False,
                          input=stdin, env=environment(HOME=daemon.directory))
    assert done.returncode == 0, done
    return done.stdout


def test_a_size_is_told_in_both_notations_everywhere(control_plane, namespace, make, tmp_path):
    daemon = make()
    fire(daemon)
    action = daemon.wait_record("action", outcome="applied")
    assert (action["from"], action["to"], action["unit"]) == (4, 5, "64Mi"), "records count units"
    decision, = daemon.records("decision", id=action["decision"])

    text = daemon.process.log_text()
    assert 'replicas="4 (256Mi)" desired="5 (320Mi)"' in text
    assert 'from="4 (256Mi)" to="5 (320Mi)"' in text
    said = wait_event(control_plane, namespace, "SuccessfulRescale")
    assert said["message"].startswith("New size: 5 (320Mi)")

    asks = ("--url", daemon.url, "--token-file", tmp_path / "token")
    assert "5 (320Mi)" in run(daemon, "status", *asks)
    log = run(daemon, "log", daemon.log_file)
    assert "4 (256Mi)" in log and "5 (320Mi)" in log, log
    told = run(daemon, "explain", "--target=cart-memory", "--at", decision["time"], daemon.log_file)
    assert "4 (256Mi)" in told and "5 (320Mi)" in told, told
    decided = json.loads(run(daemon, "decide", stdin=json.dumps(decision["input"])))
    assert decided["desired"] == 5, "documents count units"

    page = daemon.get("/targets/cart-memory").text
    assert "units of 64Mi" in page and ">replicas<" not in page, page
    assert "5 (320Mi)" in page
    run(daemon, "floor", "cart-memory", 5, "--for=1h", "--reason=the sale", *asks)
    assert "<dt>Floor</dt><dd>5 (320Mi), by " in daemon.get("/targets/cart-memory").text
    home = daemon.get("/").text
    assert "5 (320Mi)" in home
    target = daemon.target("cart-memory")
    assert (target["replicas"], target["unit"]) == (5, "64Mi")


def test_a_question_is_asked_in_both_notations(make, tmp_path):
    daemon = make(rule={"approval": {"above": 0}})
    fire(daemon)
    asked = daemon.wait_record("approval", event="asked")
    assert (asked["from"], asked["to"], asked["unit"]) == (4, 5, "64Mi"), "records count units"
    line, = [line for line in daemon.process.log_text().splitlines() if "msg=approval event=asked" in line]
    assert 'from="4 (256Mi)" to="5 (320Mi)"' in line, line
    assert "oom from 4 (256Mi) to 5 (320Mi)" in run(daemon, "status", "--url", daemon.url, "--token-file", tmp_path / "token")
    page = daemon.get("/targets/cart-memory").text
    assert "4 (256Mi)" in page and "5 (320Mi)" in page
