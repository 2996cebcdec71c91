from __future__ import annotations

from lmms_eval.models.openai.arguments import is_loopback_url
from lmms_eval.utils.addresses import is_loopback
from tests.cases import for_each


@for_each("host", ["127.0.0.1", "127.9.9.9", "::1", "::1%lo", "localhost", "::ffff:127.0.0.1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)
    assert is_loopback_url(f"http://[{host}]:1/v1" if ":" in host else f"http://{host}:1/v1")


@for_each("host", ["0.0.0.0", "::", "192.0.2.1", "127.0.0.1.example", "127.example.org", "::ffff:192.0.2.1", ""])
def test_other_hosts(host: str) -> None:
    assert not is_loopback(host)
    assert not is_loopback_url(f"http://[{host}]/v1" if ":" in host else f"http://{host}/v1")
