"""Notifications as Alertmanager of today sends them, for tests that play Alertmanager."""
import datetime

ZERO_TIME = "0001-01-01T00:00:00Z"


def timestamp(seconds_from_now=0.0):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds_from_now)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fingerprint(labels):
    """FNV-1a 64 over the sorted labels, name and value each followed by 0xFF."""
    value = 0xCBF29CE484222325
    for name in sorted(labels):
        for byte in name.encode() + b"\xff" + labels[name].encode() + b"\xff":
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def alert(labels, status="firing", starts_at=None, ends_at=None, annotations=None):
    return {
        "status": status, "labels": labels, "annotations": annotations or {},
        "startsAt": starts_at or timestamp(),
        "endsAt": ends_at or (ZERO_TIME if status == "firing" else timestamp()),
        "generatorURL": "http://prometheus.example/graph", "fingerprint": fingerprint(labels),
    }


def _common(maps):
    return {k: v for k, v in maps[0].items() if all(m.get(k) == v for m in maps)} if maps else {}


def notification(*alerts, receiver="alertscaler", group=None, truncated=0, reason=None):
    labels = group if group is not None else _common([a["labels"] for a in alerts])
    inner = ", ".join(f'{k}="{v}"' for k, v in sorted(labels.items()))
    firing = any(a["status"] == "firing" for a in alerts)
    return {
        "receiver": receiver, "status": "firing" if firing else "resolved", "alerts": list(alerts),
        "notification_reason": reason or ("first notification" if firing else "all alerts resolved"),
        "groupLabels": labels, "commonLabels": _common([a["labels"] for a in alerts]),
        "commonAnnotations": _common([a["annotations"] for a in alerts]),
        "routeLabels": {}, "externalURL": "http://alertmanager.example:9093", "version": "4",
        "groupKey": "{}:{" + inner + "}", "truncatedAlerts": truncated,
    }
