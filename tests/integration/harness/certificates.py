"""A certificate authority for a test session, made with the openssl command."""
import pathlib
import ssl
import subprocess


def _openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


class Authority:
    def __init__(self, directory, name="test-ca"):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.certificate = self.directory / "ca.crt"
        self.key = self.directory / "ca.key"
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature",
                 "-keyout", self.key, "-out", self.certificate)

    def issue(self, name, subject=None, alternative_names="DNS:localhost,IP:127.0.0.1", usage="serverAuth", days=2):
        """Files of a new certificate and its key. usage is serverAuth or clientAuth. days 0: it has expired."""
        certificate, key = self.directory / f"{name}.crt", self.directory / f"{name}.key"
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        lines = [f"extendedKeyUsage={usage}", "keyUsage=critical,digitalSignature"]
        if alternative_names:
            lines.append(f"subjectAltName={alternative_names}")
        extensions.write_text("\n".join(lines) + "\n")
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-subj", subject or f"/CN={name}", "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
                 "-days", days, "-extfile", extensions, "-out", certificate)
        return certificate, key

    def context(self):
        """What a client needs to trust the certificates issued here."""
        return ssl.create_default_context(cafile=str(self.certificate))


def write_key_pair(directory, name):
    """A bare EC key pair, as service-account tokens are signed with."""
    private, public = pathlib.Path(directory) / f"{name}.key", pathlib.Path(directory) / f"{name}.pub"
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private)
    _openssl("ec", "-in", private, "-pubout", "-out", public)
    return private, public
