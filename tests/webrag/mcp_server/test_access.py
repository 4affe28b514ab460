import pytest

from webrag.mcp_server.access import (
    StaticTokenVerifier,
    auth_settings,
    is_loopback,
)
from webrag.settings import load_settings


@pytest.mark.parametrize("token", ["secret", "secret ", "", "Secret", "s\udcffcret"])
async def test_only_the_token_itself_is_accepted(token: str) -> None:
    found = await StaticTokenVerifier("secret").verify_token(token)

    assert (found is not None) == (token == "secret")


def test_without_a_token_nobody_has_to_show_one() -> None:
    assert auth_settings(load_settings()) is None


def test_no_authorization_server_is_announced() -> None:
    settings = auth_settings(load_settings(mcp_auth_token="secret"))

    assert settings is not None
    assert settings.resource_server_url is None


@pytest.mark.parametrize(
    ("host", "is_private"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_is_told_from_what_others_can_reach(host: str, is_private: bool) -> None:
    assert is_loopback(host) == is_private
