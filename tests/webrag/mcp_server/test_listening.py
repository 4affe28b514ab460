import socket
from contextlib import closing

import pytest

from webrag.errors import ConfigurationError
from webrag.mcp_server.http_server import listen


def test_address_is_taken_at_once() -> None:
    (taken,) = listen("127.0.0.1", 0)

    with (
        closing(taken),
        closing(socket.create_connection(taken.getsockname(), timeout=5)) as client,
    ):
        assert client.getpeername() == taken.getsockname()


def test_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError) as caught:
            listen("127.0.0.1", port)

    assert str(caught.value) == f"Port {port} of 127.0.0.1 is in use by another program."
    assert "--port" in (caught.value.hint or "")


def test_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"192\.0\.2\.1: it is not an address of this"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize("name", ["a b", "\u00fc" * 80])
def test_name_without_an_address_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{name}': the name has no address"):
        listen(name, 0)
