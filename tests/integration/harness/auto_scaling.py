"""EC2 Auto Scaling, played: groups held to their bounds, signatures checked, errors in AWS' words; and of EKS as much as tells a
managed node group's Auto Scaling group.

The signatures are computed here a second time, in Python. What is to go wrong is injected.
"""
import dataclasses
import datetime
import email.utils
import hashlib
import hmac
import itertools
import re
import threading
import time
import urllib.parse

from .http import HangUp, Server

REGION = "eu-central-1"
SHORTAGE = ("Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
            "capacity in the Availability Zone you requested.")
DESCRIBE_NODEGROUP = "DescribeNodegroup"
NAMESPACE = "http://autoscaling.amazonaws.com/doc/2011-01-01/"


@dataclasses.dataclass
class Fault:
    """What goes wrong with the next request of this action. With apply, it is carried out all the same; with cut, its answer
    ends in the middle; `skip` requests go well before it."""

    action: str
    status: int = 500
    code: str = ""
    message: str = "injected"
    body: str = ""
    delay: float = 0.0
    apply: bool = False
    hang_up: bool = False
    cut: bool = False
    skip: int = 0

    def __str__(self):
        words = [self.action, self.code or ("hangup" if self.hang_up else "cut" if self.cut else str(self.status))]
        return "-".join(words + ["applied"] * self.apply)


class Refused(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def _sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(secret, asked, scope, names):
    """Of a request of the query protocol, by Signature Version 4."""
    headers = "".join(f"{n}:{' '.join(asked.headers[n].split())}\n" for n in names.split(";"))
    canonical = "\n".join([asked.method, asked.path, "", headers, names, hashlib.sha256(asked.body).hexdigest()])
    text = "\n".join(["AWS4-HMAC-SHA256", asked.headers["x-amz-date"], scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _sign(key, part)
    return _sign(key, text).hex()


class AutoScaling:
    """One group; `keys` are {access key: (secret, actions that are allowed)}, `expired` those of them that were good before,
    `room` is how many instances can be had, `stays` why an instance does not go after its removal was accepted, `sizes` those
    that were asked for, `on_removal` is called with an instance before it goes, `on_ask` with each action before it is carried
    out. `policies` are (name, type, enabled), `suspended` the names of processes, `offset` what the service's clock is ahead, in
    seconds, and `skewed` how many requests were refused for it. With `is_endless` every list says that there is more.

    It is the node group `name` of the EKS cluster `prod` too, with `status` and `issues`."""

    def __init__(self, name, size, least=0, most=10, room=1000):
        self.name, self.size, self.least, self.most, self.room = name, size, least, most, room
        self.keys = {"AKIDTEST": ("s3cret", {"*"})}
        self.expired = set()
        self.asked, self.faults, self.removed, self.sizes = [], [], [], []
        self.policies, self.suspended, self.offset, self.skewed, self.is_endless = [], [], 0, 0, False
        self.shortage, self.stays, self.failed = SHORTAGE, "", {}
        self.status, self.issues = "ACTIVE", []
        self.on_removal = lambda instance: None
        self.on_ask = lambda action: None
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self.instances = [self._name() for _ in range(size)]
        self._server = Server(self._handle)
        self.url = self._server.url

    def _name(self):
        return f"i-{next(self._numbers):017x}"

    def grow(self, size):
        self.size = size
        self.instances += [self._name() for _ in range(min(size, self.room) - len(self.instances))]

    def inject(self, *faults, times=1):
        self.faults += list(faults) * times

    def stop(self):
        self._server.stop()

    # Who asks

    def _now(self):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=self.offset)

    def _check(self, asked, action):
        service = "eks" if action == DESCRIBE_NODEGROUP else "autoscaling"
        try:
            words = asked.headers["Authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(", ")
            fields = dict(word.split("=", 1) for word in words)
            key, scope = fields["Credential"].split("/", 1)
        except (AttributeError, KeyError, ValueError):
            raise Refused(403, "MissingAuthenticationToken", "Request is missing Authentication Token") from None
        if key not in self.keys:
            raise Refused(403, "InvalidClientTokenId", "The security token included in the request is invalid.")
        secret, allowed = self.keys[key]
        then = datetime.datetime.strptime(asked.headers["x-amz-date"] + "+0000", "%Y%m%dT%H%M%SZ%z")
        names = fields["SignedHeaders"]
        if (scope != f"{then:%Y%m%d}/{REGION}/{service}/aws4_request" or "host" not in names.split(";") or
                fields["Signature"] != signature(secret, asked, scope, names)):
            raise Refused(403, "SignatureDoesNotMatch", "The request signature we calculated does not match.")
        if abs((self._now() - then).total_seconds()) > 300:
            self.skewed += 1
            raise Refused(403, "RequestTimeTooSkewed", f"Signature expired: {then} is now earlier than {self._now()}")
        if key in self.expired:
            raise Refused(403, "ExpiredToken", "The security token included in the request is expired")
        if "*" not in allowed and action not in allowed:
            raise Refused(403, "AccessDenied", f"User: u is not authorized to perform: {service}:{action}")

    # What is asked

    def _describe_nodegroup(self, name):
        if name != self.name:
            raise Refused(404, "ResourceNotFoundException", f"No node group found for name: {name}.")
        return {"nodegroup": {"nodegroupName": name, "status": self.status, "health": {"issues": self.issues},
                              "resources": {"autoScalingGroups": [{"name": self.name}]}}}

    def _describe_policies(self, form):
        members = "".join(
            f"<member><PolicyName>{name}</PolicyName><PolicyType>{kind}</PolicyType><Enabled>{str(is_on).lower()}</Enabled>"
            f"<AutoScalingGroupName>{form['AutoScalingGroupName']}</AutoScalingGroupName></member>"
            for name, kind, is_on in self.policies)
        return f"<ScalingPolicies>{members}</ScalingPolicies>"

    def _describe_auto_scaling_groups(self, form):
        if form["AutoScalingGroupNames.member.1"] != self.name:
            return "<AutoScalingGroups/>"
        members = "".join(
            f"<member><InstanceId>{i}</InstanceId><LifecycleState>InService</LifecycleState><HealthStatus>Healthy"
            f"</HealthStatus><AvailabilityZone>{REGION}a</AvailabilityZone><ProtectedFromScaleIn>false"
            "</ProtectedFromScaleIn></member>" for i in self.instances)
        suspended = "".join(f"<member><ProcessName>{name}</ProcessName></member>" for name in self.suspended)
        return (f"<AutoScalingGroups><member><AutoScalingGroupName>{self.name}</AutoScalingGroupName>"
                f"<AutoScalingGroupARN>arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:{self.name}</AutoScalingGroupARN><MinSize>{self.least}"
                f"</MinSize><MaxSize>{self.most}</MaxSize><DesiredCapacity>{self.size}</DesiredCapacity><Instances>{members}"
                f"</Instances><SuspendedProcesses>{suspended}</SuspendedProcesses></member></AutoScalingGroups>")

    def _describe_scaling_activities(self, form):
        ids = [v for k, v in form.items() if k.startswith("ActivityIds.")]
        if not ids and self.shortage and self.size > len(self.instances):
            return (f"<Activities><member><ActivityId>f-1</ActivityId><StatusCode>Failed</StatusCode><StatusMessage>{self.shortage}"
                    f"</StatusMessage><StartTime>{self._now():%Y-%m-%dT%H:%M:%SZ}</StartTime></member></Activities>")
        members = "".join(f"<member><ActivityId>{i}</ActivityId><StatusCode>{'Failed' if i in self.failed else 'Successful'}"
                          f"</StatusCode><StatusMessage>{self.failed.get(i, '')}</StatusMessage></member>" for i in ids)
        return f"<Activities>{members}</Activities>"

    def _set_desired_capacity(self, form):
        size = int(form["DesiredCapacity"])
        if form["AutoScalingGroupName"] != self.name:
            raise Refused(400, "ValidationError", "AutoScalingGroup name not found - null")
        if size > self.most:
            raise Refused(400, "ValidationError", f"New SetDesiredCapacity value {size} is above max value {self.most}"
                                                  " for the AutoScalingGroup.")
        assert size >= len(self.instances), "the cloud would choose who leaves"
        self.sizes.append(size)
        self.grow(size)
        return ""

    def _terminate_instance_in_auto_scaling_group(self, form):
        if form["InstanceId"] not in self.instances:
            raise Refused(400, "ValidationError", "Instance Id not found - No managed instance found for instance ID: "
                                                  + form["InstanceId"])
        assert form["ShouldDecrementDesiredCapacity"] == "true"
        if self.size - 1 < self.least:
            raise Refused(400, "ValidationError", f"Currently, desiredSize equals minSize ({self.least}). Terminating "
                          "instance without replacement will violate group's min size constraint.")
        if self.stays:
            name = f"f-{len(self.failed) + 1}"
            self.failed[name] = self.stays
            return f"<Activity><ActivityId>{name}</ActivityId><StatusCode>InProgress</StatusCode></Activity>"
        self.on_removal(form["InstanceId"])
        self.instances.remove(form["InstanceId"])
        self.removed.append(form["InstanceId"])
        self.size -= 1
        return (f"<Activity><ActivityId>a-{len(self.removed)}</ActivityId><StatusCode>InProgress</StatusCode>"
                "</Activity>")

    # Answers

    def _carry_out(self, asked, action, form):
        method = "".join("_" + c.lower() if c.isupper() else c for c in action)
        with self._lock:
            self._check(asked, action)
            self.on_ask(action)
            result = getattr(self, method)(form)
        if action == DESCRIBE_NODEGROUP:
            return 200, result
        more = "<NextToken>more</NextToken>" if self.is_endless and action.startswith("Describe") else ""
        return 200, (f'<{action}Response xmlns="{NAMESPACE}"><{action}Result>{result}{more}</{action}Result><ResponseMetadata>'
                     f"<RequestId>r-{len(self.asked)}</RequestId></ResponseMetadata></{action}Response>").encode()

    def _refusal(self, action, status, code, message):
        if action == DESCRIBE_NODEGROUP:
            return status, {"__type": code, "message": message}
        return status, (f'<ErrorResponse xmlns="{NAMESPACE}"><Error><Type>Sender</Type><Code>{code}</Code><Message>'
                        f"{message}</Message></Error><RequestId>r-{len(self.asked)}</RequestId></ErrorResponse>").encode()

    def _answer(self, asked, action, form, fault):
        try:
            answer = self._carry_out(asked, action, form) if not fault or fault.apply else None
        except Refused as refused:
            return self._refusal(action, refused.status, refused.code, refused.message)
        if not fault:
            return answer
        time.sleep(fault.delay)
        if fault.hang_up:
            raise HangUp
        if fault.cut:
            return answer[0], answer[1][:len(answer[1]) // 2]
        return self._refusal(action, fault.status, fault.code, fault.message) if fault.code else (fault.status, fault.body.encode())

    def _take_fault(self, action):
        fault = next((f for f in self.faults if f.action == action), None)
        if fault and fault.skip > 0:
            fault.skip -= 1
            return None
        if fault:
            self.faults.remove(fault)
        return fault

    def _handle(self, asked):
        node_group = re.fullmatch("/clusters/prod/node-groups/([^/]+)", asked.path) if asked.method == "GET" else None
        form = node_group[1] if node_group else dict(urllib.parse.parse_qsl(asked.body.decode()))
        action = DESCRIBE_NODEGROUP if node_group else form.get("Action", "")
        self.asked.append(action)
        fault = self._take_fault(action)
        status, body = self._answer(asked, action, form, fault)
        headers = {"Date": email.utils.format_datetime(self._now(), usegmt=True)}
        if node_group:
            headers["x-amzn-RequestId"] = f"e-{len(self.asked)}"
        else:
            headers["Content-Type"] = "text/xml"
        return status, headers, body
