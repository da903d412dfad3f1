"""Any number of HTTP node groups behind one server: /groups/NAME, each made with the same size when it is first asked for."""
import threading
import time

from .http import Server


class ManyGroups:
    def __init__(self, size, delay=0.0):
        self.start_size = size
        self.delay = delay          # before a PUT is answered: room for a kill between taking effect and the answer
        self.sizes = {}
        self.versions = {}
        self.applied = {}           # name -> sizes that PUTs have set, in order
        self._lock = threading.Lock()
        self._server = Server(self._handle)
        self.url = self._server.url + "/groups"

    def _handle(self, asked):
        name = asked.path.removeprefix("/groups/")
        with self._lock:
            size = self.sizes.setdefault(name, self.start_size)
            version = self.versions.setdefault(name, 1)
            if asked.method == "PUT":
                if asked.headers["If-Match"] != f'"v{version}"':
                    return 412, {}, {"error": f"size is {size}"}
                self.sizes[name] = size = asked.json["size"]
                self.versions[name] = version = version + 1
                self.applied.setdefault(name, []).append(size)
        if asked.method == "PUT":
            time.sleep(self.delay)
        return 200, {"ETag": f'"v{version}"'}, {"size": size}

    def stop(self):
        self._server.stop()
