"""A browser as far as pages with forms need one: cookies, forms, and the headers that a browser sends with them."""
import html
import html.parser
import http.cookies
import re
import urllib.parse

from .http import request

PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class _Forms(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.forms = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "form":
            self.forms.append((attrs.get("method", "get"), attrs["action"], {}))
        elif tag == "input" and self.forms and attrs.get("type") == "hidden":
            self.forms[-1][2][attrs["name"]] = attrs["value"]


class Visitor:
    """origin: of the pages it is on; host: another name than the daemon's address in `Host`."""

    def __init__(self, daemon, origin=None, host=None):
        self.daemon, self.host = daemon, host
        self.origin = origin or (f"http://{host}" if host else daemon.url)
        self.cookies, self.set_cookies = {}, []

    def ask(self, method, path, body=None, headers=None):
        headers = PAGE | (headers or {})
        if self.host:
            headers.setdefault("Host", self.host)
        if self.cookies:
            headers.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        answer = request(method, self.daemon.url + path, body, {k: v for k, v in headers.items() if v is not None}, tls=self.daemon.tls)
        self.set_cookies = answer.headers.get_all("Set-Cookie") or []
        for line in self.set_cookies:
            for name, morsel in http.cookies.SimpleCookie(line).items():
                self.cookies[name] = morsel.value
                if morsel["max-age"] == "0":
                    del self.cookies[name]
        return answer

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def submit(self, path, fields, headers=None):
        """fields: a dictionary, or the body as it is. A header that is None is not sent."""
        body = fields if isinstance(fields, bytes) else urllib.parse.urlencode(fields).encode()
        return self.ask("POST", path, body, {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded", **(headers or {})})

    def log_in(self, user=None, password=None, token=None, to=None):
        fields = {"user": user, "password": password, "token": token, "to": to}
        return self.submit("/login", {name: value for name, value in fields.items() if value is not None})

    def forms(self, path):
        """Of the page: {what an order's path ends with: (path, hidden fields)}."""
        page = self.get(path)
        assert page.status == 200, page.text
        parser = _Forms()
        parser.feed(page.text)
        return {action.rpartition("/")[2]: (action, fields) for method, action, fields in parser.forms if method == "post"}

    def order(self, page, order, **fields):
        """Fills in the form of the page, and follows the redirect: what is said then."""
        path, hidden = self.forms(page)[order]
        answer = self.submit(path, hidden | fields)
        assert answer.status == 303, f"{answer.status}: {answer.text}"
        return self.said(answer.headers["Location"])

    def said(self, path):
        notes = re.findall(r'<p class="note (\w+)" role="status">(.*?)</p>', self.get(path).text)
        return [(kind, html.unescape(text)) for kind, text in notes]
