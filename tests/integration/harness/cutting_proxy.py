"""A proxy before an API server that cuts connections after so many bytes of answers, or stalls watches. Of HTTP it knows only the
first line of a request."""
import select
import socket
import ssl
import threading
import time
import urllib.parse


class CuttingProxy:
    """Each new connection takes the next of `cuts`: after how many bytes of answers it ends. Without one it goes on. While
    `is_closed`, all connections end at once. While `stalls`, watches stay open, and no more of their answers arrives. `seen` are
    the first lines of requests."""

    def __init__(self, url, tls):
        server = urllib.parse.urlsplit(url)
        self.address, self.tls = (server.hostname, server.port), tls
        self.cuts, self.is_closed, self.stalls, self.seen = [], False, False, []
        self._lock = threading.Lock()
        self._open = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def start(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def stop(self):
        self._listener.close()
        self.close_all()

    def close_all(self):
        with self._lock:
            for one in self._open:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass    # it has ended by itself

    def close(self):
        self.is_closed = True
        self.close_all()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return      # stopped
            with self._lock:
                cut = self.cuts.pop(0) if self.cuts and not self.is_closed else None
            threading.Thread(target=self._serve, args=(client, cut), daemon=True).start()

    def _serve(self, client, cut):
        with client:
            if self.is_closed:
                return
            with self._lock:
                self._open.add(client)
            try:
                with self.tls.wrap_socket(socket.create_connection(self.address), server_hostname=self.address[0]) as server:
                    self._pass_on(client, server, cut)
            except OSError:
                pass        # one of the two has ended
            finally:
                with self._lock:
                    self._open.discard(client)

    def _pass_on(self, client, server, cut):
        """In one thread: two must not use one TLS connection at a time."""
        sent, is_watch = 0, False
        while cut is None or sent < cut:
            ready = [server] if server.pending() else select.select([client, server], [], [])[0]
            if client in ready:
                data = client.recv(65536)
                if not data:
                    return
                self.seen.append(data.split(b"\r\n")[0].decode())
                is_watch = "watch=true" in self.seen[-1]
                server.setblocking(True)
                server.sendall(data)
            if server in ready and is_watch and self.stalls:
                time.sleep(0.05)
            elif server in ready:
                server.setblocking(False)
                try:
                    data = server.recv(65536 if cut is None else min(65536, cut - sent))
                except ssl.SSLWantReadError:
                    continue    # a record of TLS itself
                if not data:
                    return
                client.sendall(data)
                sent += len(data)
        client.shutdown(socket.SHUT_RDWR)
