"""Servers of logins: a token server of the client credentials grant, and a gate before Prometheus or Alertmanager that admits a
request only if its token or its signature is good. Signatures are checked by Amazon's own signer."""
import base64
import datetime
import itertools
import re
import sys
import threading
import time
import urllib.parse

from . import moto
from .http import Server, request

CLIENT = "alertscaler"
SECRET = "cl1ent-s3cret/+ &="
READ = "metrics.read"
WRITE = "metrics.write"


def refusal(status, error, description=""):
    return status, {}, {"error": error, **({"error_description": description} if description else {})}


class TokenServer:
    """accepts: how the secret may come. lifetime: of tokens, in seconds; None: they have no end. audience: the parameter that has
    to be there."""

    def __init__(self, accepts=("basic", "form"), lifetime=3600, audience=None, tls=None):
        self.accepts, self.lifetime, self.audience, self.secret = accepts, lifetime, audience, SECRET
        self.answer = None          # what it gives in place of a token
        self.delay = 0.0
        self.asked = []             # (how the secret came, the form)
        self.tokens = {}            # token -> when it ends
        self.revoked, self.replayed = set(), []
        self._count, self._lock = itertools.count(1), threading.Lock()
        self._server = Server(self._handle, tls=tls)
        self.url = self._server.url + "/oauth/token"

    def config(self, directory, **more):
        """The block `oauth2`."""
        path = directory / "client.secret"
        if not path.exists():
            path.write_text(SECRET + "\n")
        return {"client_id": CLIENT, "client_secret_file": str(path), "token_url": self.url, "scopes": [READ], **more}

    def revoke(self):
        """No token given so far is good any more."""
        with self._lock:
            self.revoked |= set(self.tokens)
            self.tokens.clear()

    def _read_client(self, asked, form):
        """(how, client, secret)"""
        kind, _, text = (asked.headers["Authorization"] or "").partition(" ")
        if kind != "Basic":
            return "form", form.get("client_id"), form.get("client_secret")
        client, _, secret = base64.b64decode(text).decode().partition(":")
        return "basic", urllib.parse.unquote(client), urllib.parse.unquote(secret)

    def _handle(self, asked):
        form = dict(urllib.parse.parse_qsl(asked.body.decode()))
        how, client, secret = self._read_client(asked, form)
        with self._lock:
            self.asked.append((how, form))
        time.sleep(self.delay)
        if self.answer:
            return self.answer
        if asked.method != "POST" or asked.path != "/oauth/token" or form.get("grant_type") != "client_credentials":
            return refusal(400, "unsupported_grant_type")
        if how == "basic" and "client_secret" in form:
            return refusal(400, "invalid_request", "two ways at once")
        if how not in self.accepts or client != CLIENT or secret != self.secret:
            return refusal(401, "invalid_client", "Invalid client or secret")
        if any(scope != READ for scope in form.get("scope", "").split()):
            return refusal(400, "invalid_scope", "this client may only read")
        if form.get("audience") != self.audience:
            return refusal(400, "invalid_request", "another audience")
        with self._lock:
            token = f"tok3n-{next(self._count)}"
            self.tokens[token] = time.monotonic() + (self.lifetime or 1e9)
        return 200, {"Cache-Control": "no-store"}, {"access_token": token, "token_type": "Bearer",
                                                    **({"expires_in": self.lifetime} if self.lifetime else {})}

    def admit(self, asked):
        """None; or what a request without a good token gets."""
        token = (asked.headers["Authorization"] or "").removeprefix("Bearer ")
        with self._lock:
            if token in self.revoked:
                self.replayed.append(token)
            end = self.tokens.get(token, 0)
        return None if end > time.monotonic() else (401, {"WWW-Authenticate": 'Bearer error="invalid_token"'}, b"invalid_token")

    def stop(self):
        self._server.stop()


class Gate:
    """Before the server at `url`: admit(asked) -> None, or what is answered in its place."""

    def __init__(self, url, admit, tls=None):
        self.target, self.admit, self.asked, self.admitted = url, admit, [], 0
        self._server = Server(self._handle, tls=tls)
        self.url = self._server.url

    def _handle(self, asked):
        self.asked.append(asked)
        refused = self.admit(asked)
        if refused:
            return refused
        self.admitted += 1
        if not self.target:
            return 200, {}, b"{}"
        sent = {name: asked.headers[name] for name in ("Content-Type", "If-Match") if asked.headers[name]}
        answer = request(asked.method, self.target + asked.path, asked.body or None, sent)
        return answer.status, {name: answer.headers[name] for name in ("Content-Type", "ETag") if answer.headers[name]}, answer.body

    def stop(self):
        self._server.stop()


class Signed:
    """Admits what Amazon's own signer would have signed so, with one of the keys: {id: (secret, session token)}. ahead: seconds that
    this server's clock is ahead."""

    def __init__(self, keys, region=moto.REGION, service="aps", ahead=0):
        self.keys, self.region, self.service, self.ahead = keys, region, service, ahead
        self.refused = []
        if moto.find_packages() not in sys.path:
            sys.path.append(moto.find_packages())

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.ahead)

    def _refuse(self, why):
        self.refused.append(why)
        return 403, {"Date": self.now().strftime("%a, %d %b %Y %H:%M:%S GMT")}, {"message": why}

    def admit(self, asked):
        pattern = r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=(\w{64})"
        found = re.fullmatch(pattern, asked.headers["Authorization"] or "")
        if not found:
            return self._refuse("Missing Authentication Token")
        key, day, region, service, names, signature = found.groups()
        if key not in self.keys:
            return self._refuse("The security token included in the request is invalid.")
        secret, token = self.keys[key]
        stamp = asked.headers["X-Amz-Date"]
        signed_at = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs((self.now() - signed_at).total_seconds()) > 300 or stamp[:8] != day:
            return self._refuse("Signature expired")
        if (region, service) != (self.region, self.service):
            return self._refuse(f"Credential should be scoped to {self.region}/{self.service}")
        if asked.headers["X-Amz-Security-Token"] != token:
            return self._refuse("The security token included in the request is invalid.")
        if not {"host", "x-amz-date", *(["x-amz-security-token"] if token else [])} <= set(names.split(";")):
            return self._refuse("a header is not signed")
        if signature != self._sign(asked, names.split(";"), secret, token, stamp):
            return self._refuse("The request signature we calculated does not match the signature you provided.")
        return None

    def _sign(self, asked, names, secret, token, stamp):
        import botocore.auth        # pylint: disable=import-outside-toplevel
        import botocore.awsrequest  # pylint: disable=import-outside-toplevel
        import botocore.credentials     # pylint: disable=import-outside-toplevel

        key = botocore.credentials.Credentials("unused", secret, token)
        signer = botocore.auth.SigV4Auth(key, self.service, self.region)
        made = botocore.awsrequest.AWSRequest(asked.method, f"http://{asked.headers['Host']}{asked.path}", data=asked.body,
                                              headers={name: asked.headers[name] for name in names})
        made.context["timestamp"] = stamp
        made.context["signing"] = {}
        return signer.signature(signer.string_to_sign(made, signer.canonical_request(made)), made)


class StsProxy:
    """Before moto's STS: keeps the keys that roles get, for `Signed`. AWS' own clock and permissions are moto's."""

    def __init__(self, url, keys):
        self.target, self.keys, self.forms = url, keys, []
        self.answer = None
        self._server = Server(self._handle)
        self.url = self._server.url

    def _handle(self, asked):
        form = dict(urllib.parse.parse_qsl(asked.body.decode()))
        self.forms.append(form)
        if self.answer:
            return self.answer
        names = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "Content-Type", "Host")
        answer = request(asked.method, self.target + asked.path, asked.body,
                         {name: asked.headers[name] for name in names if asked.headers[name]})
        made = {name: re.search(f"<{name}>([^<]+)<", answer.text) for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")}
        if all(made.values()):
            self.keys[made["AccessKeyId"][1]] = (made["SecretAccessKey"][1], made["SessionToken"][1])
        return answer.status, {"Content-Type": "text/xml"}, answer.body

    def stop(self):
        self._server.stop()
