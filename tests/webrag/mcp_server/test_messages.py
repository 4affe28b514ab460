import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import jsonrpc_message_adapter

from webrag.mcp_server.request_checks import refusal

NOT_JSON = [b"{", b"", b"\xff\xfe", b"[" * 100_000, b"{'a': 1}", b"ping", b"1" * 5000]
NO_REQUESTS = [
    ("[]", None),
    ('[{"jsonrpc": "2.0", "id": 9, "method": "ping"}]', None),
    ("1", None),
    ("null", None),
    ("true", None),
    ('"ping"', None),
    ("{}", None),
    ('{"jsonrpc": "2.0"}', None),
    ('{"jsonrpc": "2.0", "id": 6}', 6),
    ('{"id": 11, "method": "ping"}', 11),
    ('{"jsonrpc": "1.0", "id": 5, "method": "ping"}', 5),
    ('{"jsonrpc": 2.0, "id": "a", "method": "ping"}', "a"),
    ('{"jsonrpc": "2.0", "id": 7, "method": 5}', 7),
    ('{"jsonrpc": "2.0", "id": 7, "method": null}', 7),
    ('{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": [1]}', 8),
    ('{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": "x"}', 8),
    ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', None),
    ('{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', None),
    ('{"jsonrpc": "2.0", "id": true, "method": "ping"}', None),
    ('{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', None),
    ('{"jsonrpc": "2.0", "id": [1], "method": "ping"}', None),
    ('{"jsonrpc": "2.0", "id": 1, "result": 1}', 1),
    ('{"jsonrpc": "2.0", "id": null, "result": {}}', None),
    ('{"jsonrpc": "2.0", "id": 1, "error": "x"}', 1),
    ('{"jsonrpc": "2.0", "id": 1, "error": {}}', 1),
    ('{"jsonrpc": "2.0", "id": 3, "method": "\\ud800"}', 3),
    ('{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None),
    ('{"jsonrpc": "2.0", "id": "a\\udfff", "result": {}}', None),
]
MESSAGES = [
    '{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
    '{"jsonrpc": "2.0", "id": "x", "method": "ping", "params": {}}',
    '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}',
    '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
    '{"jsonrpc": "2.0", "id": 1, "result": {}}',
    '{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}',
    '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}',
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": st.integers() | JSON,
        "method": st.just("ping") | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: ascii(text[:20]))
def test_what_is_no_json_is_a_parse_error(text: bytes) -> None:
    refused = refusal(text)

    assert refused is not None
    assert refused.error.code == -32700


@pytest.mark.parametrize(("text", "identity"), NO_REQUESTS)
def test_json_that_is_no_message_is_an_invalid_request_with_its_id(
    text: str, identity: Any
) -> None:
    refused = refusal(text.encode())

    assert refused is not None
    assert (refused.error.code, refused.id) == (-32600, identity)


@pytest.mark.parametrize("text", MESSAGES)
def test_message_is_let_through(text: str) -> None:
    assert refusal(text.encode()) is None


@given(ENVELOPES | JSON)
def test_refusal_is_one_line_and_what_is_let_through_can_be_read(message: Any) -> None:
    text = json.dumps(message).encode()

    refused = refusal(text)

    if refused is None:
        jsonrpc_message_adapter.validate_json(text)
    else:
        assert len(refused.error.message.splitlines()) == 1
