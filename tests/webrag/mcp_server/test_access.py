import pytest

from webrag.mcp_server.host_check import is_loopback


@pytest.mark.parametrize(
    ("host", "is_private"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_is_told_from_what_others_can_reach(host: str, is_private: bool) -> None:
    assert is_loopback(host) == is_private
