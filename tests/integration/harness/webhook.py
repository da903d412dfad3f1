"""A webhook receiver that keeps what it is sent, and answers as the test says."""
import threading

from .http import Server


class Webhook:
    def __init__(self):
        self.status = 200
        self.received = []      # Asked, in order of arrival
        self._lock = threading.Lock()
        self._server = Server(self._handle)
        self.url = self._server.url + "/webhook"

    def _handle(self, asked):
        with self._lock:
            self.received.append(asked)
        return self.status, {}, b""

    @property
    def notifications(self):
        with self._lock:
            return [asked.json for asked in self.received]

    def alerts(self, name, status="firing"):
        """All alerts so named and in this state, over all notifications."""
        return [alert for notification in self.notifications for alert in notification["alerts"]
                if alert["labels"].get("alertname") == name and alert["status"] == status]

    def stop(self):
        self._server.stop()
