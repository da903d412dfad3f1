"""Who may ask the fake of Google: service accounts' keys, federated tokens, people's, and the metadata service of a machine."""
import base64
import json
import pathlib
import subprocess
import time
import urllib.parse

ACCOUNT = "alertscaler@shop.iam.gserviceaccount.com"
SUBJECT = "eyJ.projected.token"
AUDIENCE = "//iam.googleapis.com/projects/7/locations/global/workloadIdentityPools/p/providers/k8s"
REFRESH = "1//refresh"
SCOPE = "https://www.googleapis.com/auth/cloud-platform"


def refusal(status, error, description):
    return status, {}, {"error": error, "error_description": description}


def _decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Identity:
    """lifetime: of tokens, in seconds. scope: the only one that tokens may have; exchange: that of a token which is exchanged."""

    def __init__(self, url, directory, lifetime=3600, scope=SCOPE, exchange=SCOPE):
        self.url, self.lifetime, self.scope, self.exchange = url, lifetime, scope, exchange
        self.directory = pathlib.Path(directory)
        self.tokens = {}            # token -> when it ends
        self.exchanged = set()      # tokens that are good for an exchange only
        self.has_account = True     # the machine
        self.subject = SUBJECT
        self._count = 0
        self._key = None

    # ---- files that say who one is ----

    def _write(self, name, **content):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
        return path

    def _make_key(self):
        if not self._key:
            self._key = self.directory / "account.key"
            subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self._key],
                           check=True, capture_output=True)
            subprocess.run(["openssl", "pkey", "-in", self._key, "-pubout", "-out", self._key.with_suffix(".pub")], check=True)
        return self._key

    def write_key(self, name="key.json", email=ACCOUNT):
        """The key of a service account."""
        return self._write(name, type="service_account", project_id="shop", private_key_id="k1", client_email=email,
                           private_key=self._make_key().read_text(), token_uri=self.url + "/token")

    def write_external(self, source, name="external.json", **more):
        """An external account, whose own token is at `source`."""
        return self._write(name, type="external_account", audience=AUDIENCE, credential_source=source,
                           subject_token_type="urn:ietf:params:oauth:token-type:jwt", token_url=self.url + "/v1/token", **more)

    def write_user(self, name="user.json"):
        return self._write(name, type="authorized_user", client_id="c", client_secret="s", refresh_token=REFRESH,
                           token_uri=self.url + "/token", quota_project_id="shop")

    @property
    def impersonation_url(self):
        return f"{self.url}/v1/projects/-/serviceAccounts/{ACCOUNT}:generateAccessToken"

    # ---- answers ----

    def is_known(self, asked):
        """Whose token is good; None: one that has ended."""
        kind, _, token = (asked.headers["Authorization"] or "").partition(" ")
        return kind == "Bearer" and self.tokens.get(token, 0) > time.monotonic()

    def may_query(self, asked):
        """Whether the token has the scope of queries."""
        token = (asked.headers["Authorization"] or "").removeprefix("Bearer ")
        return self.is_known(asked) and (token not in self.exchanged or self.exchange == self.scope)

    def _make_token(self, scope=None):
        self._count += 1
        token = f"ya29.token-{self._count}"
        self.tokens[token] = time.monotonic() + self.lifetime
        if scope == self.exchange:
            self.exchanged.add(token)
        return token

    def _tell(self, asks=None, **more):
        return 200, {}, {"access_token": self._make_token(asks), "expires_in": int(self.lifetime), "token_type": "Bearer", **more}

    def answer(self, asked, path):
        """None: this is no matter of identity."""
        form = dict(urllib.parse.parse_qsl(asked.body.decode())) if asked.method == "POST" else {}
        if path.startswith("/computeMetadata/"):
            return self._metadata(asked, path)
        if path == "/token":
            return self._assertion(form) if form.get("grant_type", "").endswith(":jwt-bearer") else self._refresh(form)
        if path == "/v1/token":
            return self._exchange(form)
        if path == "/subject":
            is_allowed = asked.headers["X-Machine"] == "m-1"
            return (200, {}, {"value": self.subject}) if is_allowed else refusal(403, "access_denied", "who are you?")
        if path.endswith(":generateAccessToken"):
            return self._impersonate(asked, path)
        return None

    def _metadata(self, asked, path):
        flavor = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
        if asked.headers["Metadata-Flavor"] != "Google" or "X-Forwarded-For" in asked.headers:
            return 403, flavor, b"Missing Metadata-Flavor:Google header.\n"
        if path == "/computeMetadata/v1/project/project-id":
            return 200, {**flavor, "Content-Type": "application/text"}, b"shop"
        if path == "/computeMetadata/v1/instance/service-accounts/default/token" and self.has_account:
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(asked.path).query)
            if query.get("scopes", [self.scope]) != [self.scope]:
                return 404, flavor, b"no such scope"
            status, _, body = self._tell()
            return status, {**flavor, "Content-Type": "application/json"}, body
        if path in ("/computeMetadata/v1/instance", "/computeMetadata/v1/instance/"):     # is it there?
            return 200, flavor, b"attributes/\n"
        return 404, flavor, b"<!DOCTYPE html>not found"

    def _verify(self, assertion):
        signed, _, signature = assertion.rpartition(".")
        (self.directory / "signature").write_bytes(_decode(signature))
        done = subprocess.run(["openssl", "dgst", "-sha256", "-verify", self._make_key().with_suffix(".pub"), "-signature",
                               self.directory / "signature"], input=signed.encode(), capture_output=True, check=False)
        return done.returncode == 0

    def _assertion(self, form):
        try:
            header, claims = (json.loads(_decode(part)) for part in form["assertion"].split(".")[:2])
        except (KeyError, ValueError):
            return refusal(400, "invalid_request", "Required parameter is missing: assertion")
        if header["alg"] != "RS256" or not self._verify(form["assertion"]):
            return refusal(400, "invalid_grant", "Invalid JWT Signature.")
        if claims["iss"] != ACCOUNT:
            return refusal(400, "invalid_grant", "Invalid grant: account not found")
        if claims["exp"] - claims["iat"] > 3600 or abs(claims["iat"] - time.time()) > 300:
            return refusal(400, "invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes) and in a "
                           "reasonable timeframe.")
        if claims["aud"] not in (self.url + "/token", "https://oauth2.googleapis.com/token"):
            return refusal(400, "invalid_grant", "Invalid JWT: Failed audience check.")
        if not set(claims["scope"].split()) <= {self.scope, self.exchange}:
            return refusal(400, "invalid_scope", "Invalid OAuth scope or ID token audience provided.")
        return self._tell(asks=claims["scope"])

    def _refresh(self, form):
        if form.get("grant_type") != "refresh_token":
            return refusal(400, "unsupported_grant_type", "Invalid grant_type: " + form.get("grant_type", ""))
        if (form.get("client_id"), form.get("client_secret")) != ("c", "s"):
            return refusal(401, "invalid_client", "The OAuth client was not found.")
        if form.get("refresh_token") != REFRESH:
            return refusal(400, "invalid_grant", "Token has been expired or revoked.")
        return self._tell(scope=self.scope)

    def _exchange(self, form):
        for key, value in {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "audience": AUDIENCE,
                           "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                           "subject_token_type": "urn:ietf:params:oauth:token-type:jwt"}.items():
            if form.get(key) != value:
                return refusal(400, "invalid_request", f"Invalid value for \"{key}\".")
        if form.get("scope") not in (self.scope, self.exchange):
            return refusal(400, "invalid_scope", "Invalid OAuth scope.")
        if form.get("subject_token") != self.subject:
            return refusal(400, "invalid_grant", "The ID Token issued at 1 is stale to sign-in.")
        return self._tell(asks=form["scope"], issued_token_type="urn:ietf:params:oauth:token-type:access_token")

    def _impersonate(self, asked, path):
        if not self.is_known(asked):
            return 401, {}, {"error": {"code": 401, "message": "Request had invalid authentication credentials.",
                                       "status": "UNAUTHENTICATED"}}
        wanted = asked.json
        if ACCOUNT not in path or wanted["scope"] != [self.scope] or not wanted["lifetime"].endswith("s"):
            return 403, {}, {"error": {"code": 403, "message": "Permission 'iam.serviceAccounts.getAccessToken' denied on "
                                       "resource (or it may not exist).", "status": "PERMISSION_DENIED"}}
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lifetime))
        return 200, {}, {"accessToken": self._make_token(), "expireTime": end}
