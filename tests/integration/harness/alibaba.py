"""Alibaba Cloud, as far as scaling groups need it: Auto Scaling (ESS, version 2022-02-22), with signatures checked; STS for the
roles of service accounts; the machine's metadata service.

A group does one activity at a time, which takes a while; sizes are cut to the group's bounds; lists come in pages. The
vendor's own client works with it (test_alibaba_client.py).
"""
import dataclasses
import datetime
import hashlib
import hmac
import itertools
import re
import threading
import time
import urllib.parse

from .http import HangUp, Server

REGION = "eu-central-1"
KEY, SECRET = "LTAI5tExample", "example/secret+key"
ROLE, PROVIDER = "acs:ram::1:role/alertscaler", "acs:ram::1:oidc-provider/ack-rrsa"
IDENTITY = "eyJ.service.account"


def refusal(status, code, message, headers=None):
    return status, headers or {}, {"HostId": "ess.aliyuncs.com", "Code": code, "Message": message, "Recommend": ""}


def minute():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def escape(text):
    return urllib.parse.quote(text, safe="~")


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next call of this action. With apply, it takes effect before."""

    action: str
    status: int = 0
    code: str = "Injected"
    message: str = "injected"
    headers: dict = dataclasses.field(default_factory=dict)
    body: object = None
    apply: bool = False
    hang_up: bool = False


@dataclasses.dataclass
class Instance:
    id: str
    zone: str
    state: str = "Pending"
    creation: str = "AutoCreated"
    entrusted: bool = False

    def print(self, group):
        return {"InstanceId": self.id, "ScalingGroupId": group.id, "LifecycleState": self.state, "HealthStatus": "Healthy",
                "ZoneId": self.zone, "CreationType": self.creation, "Entrusted": self.entrusted, "WeightedCapacity": 1,
                "CreationTime": "2026-01-01T00:00Z", "CreatedTime": "2026-01-01T00:00:00Z"}


@dataclasses.dataclass
class Activity:
    id: str
    ends: float
    coming: list
    leaving: list
    error: tuple = ()
    status: str = "InProgress"
    start: str = dataclasses.field(default_factory=minute)

    def print(self, group):
        return {"ScalingActivityId": self.id, "ScalingGroupId": group.id, "StatusCode": self.status, "StartTime": self.start,
                "Progress": 50 if self.status == "InProgress" else 100, "Cause": "A user requests it.",
                **({"ErrorCode": self.error[0], "ErrorMessage": self.error[1]} if self.status in ("Failed", "Warning") else {})}


class Group:
    """room: how many instances can be had. desired: whether the group has a desired capacity. stays: (code, words), why
    instances do not go after their removal was accepted."""

    def __init__(self, cloud, name, size, low=0, high=20, room=1000, desired=True, **fields):
        self.cloud, self.name, self.low, self.high, self.room, self.has_desired, self.fields = \
            cloud, name, low, high, room, desired, fields
        self.id = f"asg-bp{next(cloud.ids):018}"
        self.desired, self.instances, self.activities, self.tokens, self.stays = 0, [], [], {}, ()
        self.set_total(size, 0.0)
        self.settle()

    def present(self):
        return [i for i in self.instances if i.state != "Removing"]

    def settle(self):
        for activity in self.activities:
            if activity.status == "InProgress" and time.monotonic() >= activity.ends:
                activity.status = ("Warning" if activity.coming else "Failed") if activity.error else "Successful"
                for instance in activity.coming:
                    instance.state = "InService"
                self.instances = [i for i in self.instances if i not in activity.leaving]

    @property
    def is_busy(self):
        self.settle()
        return any(a.status == "InProgress" for a in self.activities)

    def begin(self, coming, leaving, delay, error=()):
        self.instances += coming
        for instance in leaving:
            instance.state = "Removing"
        activity = Activity(f"asa-bp{next(self.cloud.ids):018}", time.monotonic() + delay, coming, leaving, error)
        self.activities.insert(0, activity)
        return activity

    def set_total(self, size, delay):
        """None where the desired capacity alone changes."""
        self.desired = size = min(max(size, self.low), self.high)
        there = self.present()
        missing = size - len(there)
        if missing == 0:
            return None
        can = max(0, min(missing, self.room - len(there)))
        coming = []
        for _ in range(can):
            number = next(self.cloud.ids)
            coming.append(Instance(f"i-bp{number:018}", f"{REGION}{'ab'[number % 2]}"))
        error = ("OperationDenied.NoStock", "The requested resource is sold out in the specified zone.") if can < missing else ()
        return self.begin(coming, there[size:], delay, error if missing > 0 else ())    # who leaves is its choice

    def print(self):
        def count(*states):
            return sum(i.state in states for i in self.instances)

        return {"ScalingGroupId": self.id, "ScalingGroupName": self.name, "RegionId": REGION, "MinSize": self.low,
                "MaxSize": self.high, "EnableDesiredCapacity": self.has_desired, "LifecycleState": "Active",
                "SystemSuspended": False, "SuspendedProcesses": [], "TotalCapacity": len(self.instances),
                "ActiveCapacity": count("InService"), "PendingCapacity": count("Pending"), "PendingWaitCapacity": 0,
                "RemovingCapacity": count("Removing"), "RemovingWaitCapacity": 0, "ProtectedCapacity": count("Protected"),
                "StandbyCapacity": count("Standby"), "StoppedCapacity": 0, "InitCapacity": 0,
                **({"DesiredCapacity": self.desired} if self.has_desired else {}), **self.fields}


class FakeAlibaba:
    """delay: seconds that an activity takes. page: most entries of a list."""

    def __init__(self, delay=0.3, page=2, tls=None):
        self.delay, self.page = delay, page
        self.keys = {KEY: (SECRET, "")}             # id: secret, token of its session
        self.groups, self.asked, self.nonces = [], [], set()
        self.role, self.metadata_tokens = None, set()
        self.ids = itertools.count(1)
        self._faults, self._lock = [], threading.RLock()
        self._server = Server(self._handle, tls=tls)
        self.url = self._server.url

    # ---- what tests do ----

    def add_group(self, name, size, **options):
        self.groups.append(Group(self, name, size, **options))
        return self.groups[-1]

    def inject(self, *faults, times=1):
        with self._lock:
            self._faults += list(faults) * times

    def expire_sessions(self):
        with self._lock:
            self.keys = {key: value for key, value in self.keys.items() if not value[1]}

    def requests(self, pattern=""):
        """Of Auto Scaling so far, as (action, parameters)."""
        with self._lock:
            return [(action, query) for action, query in self.asked if re.search(pattern, action)]

    def stop(self):
        self._server.stop()

    # ---- answers ----

    def _handle(self, asked):
        path, _, text = asked.path.partition("?")
        query = dict(urllib.parse.parse_qsl(text, keep_blank_values=True))
        action = asked.headers["x-acs-action"] or query.get("Action", "")
        with self._lock:
            if path.startswith("/latest/"):
                return self._metadata(asked, path)
            fault = next((f for f in self._faults if f.action == action), None)
            request_id = f"REQ-{next(self.ids):08}"
            if fault:
                self._faults.remove(fault)
            if fault is None or fault.apply:
                answer = self._answer(asked, action, text, query)
        if fault is not None and fault.hang_up:
            raise HangUp
        if fault is not None and fault.body is not None:
            answer = fault.status or 200, fault.headers, fault.body
        elif fault is not None:
            answer = refusal(fault.status, fault.code, fault.message, fault.headers)
        status, headers, body = answer
        return status, {"x-acs-request-id": request_id, **headers}, \
            {"RequestId": request_id, **body} if isinstance(body, dict) else body

    def _answer(self, asked, action, text, query):
        if action == "AssumeRoleWithOIDC":
            return self._assume_role(asked, query)
        problem = self._check(asked, text)
        if problem:
            return problem
        self.asked.append((action, query))
        if asked.headers["x-acs-version"] != "2022-02-22" or action not in self._actions:
            return refusal(404, "InvalidAction.NotFound", f"{action} of {asked.headers['x-acs-version']}")
        return self._actions[action](self, query)

    def _check(self, asked, text):
        """The signature, computed anew of what arrived."""
        found = re.fullmatch(r"ACS3-HMAC-SHA256 Credential=([^,]+),SignedHeaders=([^,]+),Signature=([0-9a-f]{64})",
                             asked.headers["Authorization"] or "")
        if not found:
            return refusal(400, "IncompleteSignature", "The request signature does not conform to Alibaba Cloud standards.")
        key, names, signature = found.groups()
        if key not in self.keys:
            return refusal(404, "InvalidAccessKeyId.NotFound", "Specified access key is not found.")
        secret, token = self.keys[key]
        if (asked.headers["x-acs-security-token"] or "") != token:
            return refusal(400, "InvalidSecurityToken.Mismatch", "Specified SecurityToken does not match the AccessKey.")
        wanted = {n.lower() for n in asked.headers if n.lower().startswith("x-acs-") or n.lower() in ("host", "content-type")}
        payload = hashlib.sha256(asked.body).hexdigest()
        pairs = sorted((escape(k), escape(v)) for k, v in urllib.parse.parse_qsl(text, keep_blank_values=True))
        canonical = "\n".join([asked.method, "/", "&".join(f"{k}={v}" for k, v in pairs),
                               *(f"{n}:{asked.headers[n].strip()}" for n in names.split(";")), "", names, payload])
        signed = "ACS3-HMAC-SHA256\n" + hashlib.sha256(canonical.encode()).hexdigest()
        if not wanted <= set(names.split(";")) or asked.headers["x-acs-content-sha256"] != payload or \
                hmac.new(secret.encode(), signed.encode(), "sha256").hexdigest() != signature:
            return refusal(400, "SignatureDoesNotMatch", "Specified signature does not match our calculation.")
        now = datetime.datetime.now(datetime.timezone.utc)
        sent = datetime.datetime.strptime(asked.headers["x-acs-date"], "%Y-%m-%dT%H:%M:%S%z")
        if abs((now - sent).total_seconds()) > 900:
            return refusal(400, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired.")
        if asked.headers["x-acs-signature-nonce"] in self.nonces:
            return refusal(400, "SignatureNonceUsed", "Specified signature nonce was used already.")
        self.nonces.add(asked.headers["x-acs-signature-nonce"])
        return None

    # ---- credentials ----

    def _make_session(self):
        number = next(self.ids)
        key, secret, token = f"STS.N{number}", f"secret-{number}", f"CAIS+/={number}=="
        self.keys[key] = secret, token
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        return {"AccessKeyId": key, "AccessKeySecret": secret, "SecurityToken": token,
                "Expiration": until.strftime("%Y-%m-%dT%H:%M:%SZ")}

    def _assume_role(self, asked, query):
        form = dict(urllib.parse.parse_qsl(asked.body.decode()))
        if query.get("Version") != "2015-04-01" or not query.get("SignatureNonce") or not query.get("Timestamp"):
            return refusal(400, "MissingParameter", "Version, Timestamp and SignatureNonce are wanted.")
        if form.get("RoleArn") != ROLE or form.get("OIDCProviderArn") != PROVIDER or not form.get("RoleSessionName"):
            return refusal(404, "EntityNotExist.Role", "The role does not exist.")
        if form.get("OIDCToken") != IDENTITY:
            return refusal(400, "AuthenticationFail.OIDCToken.Invalid", "This OIDC token is invalid.")
        return 200, {}, {"Credentials": self._make_session()}

    def _metadata(self, asked, path):
        if path == "/latest/api/token" and asked.method == "PUT":
            self.metadata_tokens.add(f"mt-{next(self.ids)}")
            return 200, {}, max(self.metadata_tokens).encode()
        if asked.headers["X-aliyun-ecs-metadata-token"] not in self.metadata_tokens:
            return 403, {}, b""
        if path == "/latest/meta-data/region-id":
            return 200, {}, REGION.encode()
        if self.role and path == "/latest/meta-data/ram/security-credentials/":
            return 200, {}, self.role.encode()
        if self.role and path == f"/latest/meta-data/ram/security-credentials/{self.role}":
            return 200, {}, {"Code": "Success", **self._make_session()}
        return 404, {}, b""

    # ---- Auto Scaling ----

    def _page(self, query, name, entries):
        number, size = int(query.get("PageNumber", 1)), min(int(query.get("PageSize", 10)), self.page)
        return 200, {}, {"TotalCount": len(entries), "PageNumber": number, "PageSize": size,
                         name: entries[(number - 1) * size:number * size]}

    def _find(self, query):
        return next((g for g in self.groups if g.id == query.get("ScalingGroupId")), None)

    def _describe_groups(self, query):
        ids = {value for key, value in query.items() if key.startswith("ScalingGroupIds.")}
        names = {value for key, value in query.items() if key.startswith("ScalingGroupNames.")}
        found = [g for g in self.groups if (not ids or g.id in ids) and (not names or g.name in names)]
        for group in found:
            group.settle()
        return self._page(query, "ScalingGroups", [g.print() for g in found])

    def _describe_instances(self, query):
        group = self._find(query)
        if group is None:
            return 200, {}, {"TotalCount": 0, "ScalingInstances": []}
        group.settle()
        return self._page(query, "ScalingInstances", [i.print(group) for i in group.instances])

    def _describe_activities(self, query):
        ids = {value for key, value in query.items() if key.startswith("ScalingActivityIds.")}
        group = self._find(query)
        if bool(ids) == ("ScalingGroupId" in query):
            return refusal(400, "InvalidParameter", "Either ScalingGroupId or ScalingActivityIds is wanted.")
        if not group and not ids:
            return refusal(404, "InvalidScalingGroupId.NotFound", "The specified scaling group does not exist.")
        found = []
        for group in [group] if group else self.groups:
            group.settle()
            found += [a.print(group) for a in group.activities if not ids or a.id in ids]
        return self._page(query, "ScalingActivities", found)

    def _begin(self, query, work):
        """Of a change: once by its token, and not while there is another."""
        group = self._find(query)
        if group is None:
            return refusal(404, "InvalidScalingGroupId.NotFound", "The specified scaling group does not exist.")
        token = query.get("ClientToken")
        if token is not None and len(token) > 64:
            return refusal(400, "InvalidParameter", "ClientToken")
        if token in group.tokens:
            return group.tokens[token]
        if group.is_busy:
            return refusal(400, "ScalingActivityInProgress", "You cannot perform this operation while a scaling activity is in "
                           "progress in the specified scaling group.")
        answer = work(group)
        if token is not None and answer[0] == 200:
            group.tokens[token] = answer
        return answer

    def _scale(self, query):
        def work(group):
            if query.get("AdjustmentType") != "TotalCapacity" or not query.get("AdjustmentValue", "").isdigit():
                return refusal(400, "InvalidParameter", "AdjustmentType, AdjustmentValue")
            activity = group.set_total(int(query["AdjustmentValue"]), self.delay)
            return 200, {}, {"ScalingActivityId": activity.id} if activity else {"ActivityType": "CapacityChange"}

        return self._begin(query, work)

    def _remove(self, query):
        ids = [value for key, value in query.items() if key.startswith("InstanceIds.")]

        def work(group):
            found = [i for i in group.present() if i.id in ids]
            if len(ids) > 20 or (len(found) < len(ids) and query.get("IgnoreInvalidInstance", "").lower() != "true"):
                return refusal(404, "InvalidInstanceId.NotFound", "The specified instance does not exist.")
            if len(group.present()) - len(found) < group.low:
                return refusal(400, "IncorrectCapacity.MinSize", "To remove the instances, the total capacity will be less than "
                               "the MinSize.")
            if group.stays:
                return 200, {}, {"ScalingActivityId": group.begin([], [], self.delay, group.stays).id}
            if query.get("DecreaseDesiredCapacity", "true").lower() == "true":
                group.desired -= len(found)
            return 200, {}, {"ScalingActivityId": group.begin([], found, self.delay).id}

        return self._begin(query, work)

    _actions = {"DescribeScalingGroups": _describe_groups, "DescribeScalingInstances": _describe_instances,
                "DescribeScalingActivities": _describe_activities, "ScaleWithAdjustment": _scale, "RemoveInstances": _remove}
