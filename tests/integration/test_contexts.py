"""The client file: which daemon a command talks to, with which token, and what is said about a wrong file."""
import pytest
import yaml

from harness.played import Played, run

CONFIG = "alertscaler/config.yaml"


@pytest.fixture
def played():
    daemon = Played()
    daemon.answer = 200, {}, b"reloaded"
    yield daemon
    daemon.server.stop()


@pytest.fixture
def other():
    daemon = Played()
    daemon.answer = 200, {}, b"reloaded"
    yield daemon
    daemon.server.stop()


@pytest.fixture
def home(tmp_path):
    (tmp_path / "alertscaler").mkdir()
    return tmp_path


def write(home, *contexts, current=None):
    file = {"contexts": list(contexts)} | ({"current_context": current} if current else {})
    (home / CONFIG).write_text(yaml.safe_dump(file))


def write_token(home, name, token):
    (home / "alertscaler" / name).write_text(token + "\n")


def reload(home, *words, **env):
    return run(*words, env={"XDG_CONFIG_HOME": home, **env})


def test_the_current_context_and_another(played, other, home):
    write(home, {"name": "shop", "url": played.url, "token_file": "shop.token"}, {"name": "staging", "url": other.url}, current="shop")
    write_token(home, "shop.token", "s3cret")
    assert reload(home, "reload").stdout == "reloaded\n"
    assert played.asked[0].headers["Authorization"] == "Bearer s3cret" and not other.asked
    for words in (["reload", "--context", "staging"], ["reload", "--context=staging"], ["--context", "staging", "reload"],
                  ["--context=staging", "reload"]):
        other.asked.clear()
        assert reload(home, *words).stdout == "reloaded\n", words
        assert "Authorization" not in other.asked[0].headers
    assert len(played.asked) == 1


def test_without_a_current_context_the_file_is_not_used(played, home):
    write(home, {"name": "shop", "url": played.url})
    done = reload(home, "reload")
    assert done.returncode == 2 and "http://localhost:9096" in done.stderr
    assert not played.asked
    assert reload(home, "reload", ALERTSCALER_URL=played.url).returncode == 0


def test_home_is_the_default_place(played, tmp_path):
    (tmp_path / ".config/alertscaler").mkdir(parents=True)
    write(tmp_path / ".config", {"name": "shop", "url": played.url}, current="shop")
    assert run("reload", env={"HOME": tmp_path}).returncode == 0
    assert run("reload", env={"HOME": tmp_path, "XDG_CONFIG_HOME": "relative"}).returncode == 0
    assert len(played.asked) == 2


def test_a_token_goes_only_to_its_own_daemon(played, other, home):
    """Neither the token of the context to another address, nor that of the environment to the context."""
    write(home, {"name": "shop", "url": played.url, "token_file": "shop.token"}, {"name": "bare", "url": played.url}, current="shop")
    write_token(home, "shop.token", "s3cret")
    write_token(home, "env.token", "from-env")
    env = {"ALERTSCALER_TOKEN_FILE": home / "alertscaler/env.token"}
    for words in (["reload", f"--url={other.url}"], ["reload"]):
        other.asked.clear()
        assert reload(home, *words, ALERTSCALER_URL=other.url).returncode == 0
        assert "Authorization" not in other.asked[0].headers
    for words, authorization in ((["reload"], "Bearer s3cret"), (["reload", "--context=bare"], None),
                                 (["reload", "--context=bare", f"--token-file={env['ALERTSCALER_TOKEN_FILE']}"], "Bearer from-env")):
        played.asked.clear()
        assert reload(home, *words, **env).returncode == 0
        assert played.asked[0].headers.get("Authorization") == authorization
    # a context that is named is used before the address of the environment
    played.asked.clear()
    assert reload(home, "reload", "--context=bare", ALERTSCALER_URL=other.url).returncode == 0
    assert len(played.asked) == 1


def test_context_and_url_together(played, home):
    write(home, {"name": "shop", "url": played.url})
    done = reload(home, "reload", "--context=shop", f"--url={played.url}")
    assert (done.returncode, done.stderr) == (2, "alertscaler reload: either --context or --url, not both\n")


def test_a_context_that_is_not_there(played, home):
    write(home, {"name": "shop", "url": played.url})
    assert reload(home, "reload", "--context=sohp").stderr == \
        f'alertscaler reload: there is no context "sohp" in {home / CONFIG}; did you mean "shop"?\n'
    (home / CONFIG).unlink()
    done = reload(home, "reload", "--context=shop")
    assert (done.returncode, done.stderr) == (
        2, f'alertscaler reload: there is no context "shop" in {home / CONFIG}: write `contexts: [{{name: shop, url: '
           "'https://alertscaler.shop.example'}]`\n")
    assert "there is no context" in run("reload", "--context=shop").stderr      # no home at all


def test_a_command_without_requests_has_no_context(home):
    done = reload(home, "--context=shop", "version")
    assert done.returncode == 2 and done.stderr.startswith("alertscaler version: unknown option --context")


@pytest.mark.parametrize("text, says", [
    ("contexts: [{name: shop}]", ":1:12: key `url` is missing"),
    ("contexts: [{name: shop, url: 'shop.example'}]", ":1:30: expected a URL like http://host:9090"),
    ("contexts: [{name: shop, url: 'http://h', tokenfile: t}]", ":1:42: unknown key `tokenfile`; did you mean `token_file`?"),
    ("contexts: [{name: a, url: 'http://h'}, {name: a, url: 'http://i'}]", ":1:40: there are two contexts `a`"),
    ("current_context: b\ncontexts: [{name: a, url: 'http://h'}]", ":1:18: there is no context `b` under `contexts`"),
    ("contexts: [{name: a, url: 'http://h', token_file: ~/t}]", ":1:51: `~` is not expanded"),
    ("contexts: [{name: a, url: 'http://h', token: s3cret}]", ":1:39: a token does not stand in this file: use `token_file`"),
    ("- a", ":1:1: expected a map"),
    ("contexts: [", ":2:"),
])
def test_a_wrong_file_is_named_with_the_place(home, played, text, says):
    (home / CONFIG).write_text(text + "\n")
    done = reload(home, "reload")
    assert done.returncode == 2 and f"{home / CONFIG}{says}" in done.stderr, done.stderr
    assert "s3cret" not in done.stderr and done.stderr.count("\n") == 1
    assert reload(home, "reload", f"--url={played.url}").returncode == 0        # where it is not used


def test_a_file_that_cannot_be_read(home):
    (home / CONFIG).mkdir()
    done = reload(home, "reload")
    assert done.returncode == 2 and str(home / CONFIG) in done.stderr, done.stderr


def test_files_of_a_context_are_relative_to_the_file(home):
    write(home, {"name": "a", "url": "http://127.0.0.1:1", "token_file": "no.token"}, {"name": "b", "url": "http://127.0.0.1:1", "ca_file": "no.pem"})
    for name, file in (("a", "no.token"), ("b", "no.pem")):
        assert f"{home}/alertscaler/{file}: No such file or directory" in reload(home, "reload", f"--context={name}").stderr


def test_how_to_end_an_alert_names_the_context(home, played):
    played.answer = 200, {}, {"status": "ok", "notification": "01JD", "alerts": [
        {"fingerprint": "7be9cc40aa9853c5", "status": "firing", "rules": ["slow"], "outcome": "queued"}]}
    write(home, {"name": "shop", "url": played.url})
    done = reload(home, "fire", "--context=shop", "alertname=Slow")
    assert "To end it: alertscaler fire --resolved --context=shop alertname=Slow\n" in done.stdout
