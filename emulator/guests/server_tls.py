"""TLS of proxies towards guests: the test certificate of this package, which protects nothing."""

import ssl
from functools import cache
from importlib.resources import as_file, files

_PROTOCOL = "h2"


@cache
def server_tls() -> ssl.SSLContext:
    """What a proxy needs to accept TLS; clients may speak HTTP/2 alone."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols([_PROTOCOL])
    folder = files("emulator.guests") / "tls"
    with as_file(folder / "certificate.pem") as certificate, as_file(folder / "key.pem") as key:
        context.load_cert_chain(certificate, key)
    return context
