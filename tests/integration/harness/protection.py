"""A server behind TLS and a password: the web.config.file that Prometheus and Alertmanager share."""
import base64
import pathlib

import yaml

from .certificates import Authority

USER = "reader"
PASSWORD = "sesame"
BCRYPT = "$2b$04$ABpxdbZS3aRuCeVrPHD29.h35Bh9KqToLEkb0Fty3MlWusHsMbV.G"  # of it


class Protection:
    """USER and PASSWORD are what it asks for; options go to harness.http.request."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.authority = Authority(self.directory / "authority")
        certificate, key = self.authority.issue("server")
        self.file = self.directory / "web.yml"
        self.file.write_text(yaml.safe_dump({
            "tls_server_config": {"cert_file": str(certificate), "key_file": str(key)},
            "basic_auth_users": {USER: BCRYPT},
        }))
        token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self.options = {"tls": self.authority.context(), "headers": {"Authorization": f"Basic {token}"}}
