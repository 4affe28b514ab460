import base64
import html
import json
import logging
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webrag.errors import FetchError, ProviderError, WebRAGError
from webrag.redaction import (
    RedactingFormatter,
    RedactingStream,
    Redactor,
    redacted,
    redacted_failure,
    remember_secrets,
    safe_cause,
)

KEY = "sk-canary/Zq7+Wx9_Lm2.Pd4=Rt6&Yh8"
FORMS = {
    "plain": KEY,
    "lower case": KEY.lower(),
    "upper case": KEY.upper(),
    "in quotes": f'"{KEY}"',
    "bearer": f"Bearer {KEY}",
    "percent-encoded": quote(KEY, safe=""),
    "percent-encoded in lower case": quote(KEY, safe="").lower(),
    "percent-encoded twice": quote(quote(KEY, safe=""), safe=""),
    "percent-encoded but for slashes": quote(KEY),
    "JSON": json.dumps({"key": KEY}),
    "JSON with escaped slashes": KEY.replace("/", "\\/"),
    "unicode escapes": "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in KEY),
    "HTML": html.escape(KEY),
    "HTML by number": "".join(c if c.isalnum() else f"&#{ord(c)};" for c in KEY),
    "hexadecimal": KEY.encode().hex(),
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 of basic": "Basic " + base64.b64encode(f"user:{KEY}".encode()).decode(),
    "base64 of bearer": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "base64 inside": base64.b64encode(f'{{"a":"{KEY}"}}'.encode()).decode(),
    "base64 for URLs": base64.urlsafe_b64encode(f"x{KEY}y".encode()).decode(),
    "start and end": f"{KEY[:7]}***{KEY[-4:]}",
    "start": f"{KEY[:6]}*****",
    "start and dots": f"{KEY[:8]}...",
    "start and ellipsis": f"{KEY[:5]}…{KEY[-5:]}",
    "end": f"*******{KEY[-4:]}",
    "bullets": f"••••••••{KEY[-6:]}",
    "first half": KEY[: len(KEY) // 2],
    "second half": KEY[len(KEY) // 2 :],
    "middle": KEY[6:-6],
}


def leaks(text: str) -> bool:
    """Whether four characters of the secret's own part are there, plain or encoded."""
    own = KEY[3:]
    pieces = [own[at : at + 6] for at in range(len(own) - 5)]
    coded = base64.b64encode(KEY.encode()).decode()
    pieces += [coded[at : at + 9] for at in range(len(coded) - 8)]
    return any(piece.lower() in text.lower() for piece in pieces) or KEY[-4:] in text


@pytest.mark.parametrize("form", FORMS)
def test_secret_is_hidden_in_every_form(form: str) -> None:
    shown = Redactor([KEY]).hide(f"before {FORMS[form]} after")

    assert shown.startswith("before ")
    assert shown.endswith(" after")
    assert "***" in shown
    assert not leaks(shown)


@pytest.mark.parametrize(
    "text",
    [
        "An answer about **bold** words, x**y, 1*2*3 ... and a list: *a*, *b*.",
        "Send the key as Authorization: Bearer YOUR_TOKEN; bearer authentication is simple.",
        "Ask sk-learn and the fc-match command; co-authored-by somebody.",
        "Canary islands…",
        "",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert Redactor([KEY]).hide(text) == text


@pytest.mark.parametrize("secret", ["", "none", "EMPTY", "ollama", "lm-studio", "not-needed"])
def test_what_is_no_secret_hides_nothing(secret: str) -> None:
    text = f"Use {secret} with the server."

    assert Redactor([secret]).hide(text) == text


@given(st.text(), st.text(), st.sampled_from(sorted(FORMS)))
def test_rest_of_the_text_survives(before: str, after: str, form: str) -> None:
    shown = Redactor([KEY]).hide_whole(f"{before} |{KEY}| {after}")

    assert shown == f"{before} |***| {after}"


@given(st.data())
def test_stream_hides_what_is_cut_anywhere(data: st.DataObject) -> None:
    remember_secrets(KEY)
    text = (
        f"The key is {data.draw(st.sampled_from(sorted(FORMS.values())))} and 漢字漢字 " + "x" * 99
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=12)))
    stream = RedactingStream()

    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    shown = "".join([*map(stream.pass_on, pieces), stream.rest()])

    assert shown == redacted(text)


@pytest.mark.parametrize("form", FORMS)
def test_stream_hides_a_form_cut_at_any_one_place(form: str) -> None:
    remember_secrets(KEY)
    text = f"The key is {FORMS[form]} and more"

    for cut in range(len(text)):
        stream = RedactingStream()
        shown = stream.pass_on(text[:cut]) + stream.pass_on(text[cut:]) + stream.rest()
        assert shown == redacted(text)


@given(st.text(), st.lists(st.integers(0, 50), max_size=5))
def test_stream_loses_nothing(text: str, cuts: list[int]) -> None:
    remember_secrets(KEY)
    stream, at, shown = RedactingStream(), 0, ""
    for cut in cuts:
        shown += stream.pass_on(text[at : at + cut])
        at += cut

    assert shown + stream.pass_on(text[at:]) + stream.rest() == redacted(text)


def test_stream_goes_on_before_its_end() -> None:
    remember_secrets(KEY)
    stream = RedactingStream()

    assert stream.pass_on("Some words that") == "Some words "
    assert "漢字" in stream.pass_on(" are 漢字漢字")
    assert len(stream.pass_on("x" * 5_000)) > 2_000


@pytest.mark.parametrize(
    "said",
    [
        "Authorization: Bearer abc.def-123",
        'headers: {"authorization": "Bearer qwertz12345"}',
        "Basic dXNlcjpwYXNz1",
        "x-api-key=0f9e8d7c6b",
        '{"api_key": "zzz-111-222"}',
        "Incorrect API key provided: sk-abcd1234.",
        "Incorrect API key provided: sk-proj-********wxyz.",
        "access_token: ya29.a0AfH6",
    ],
)
def test_what_looks_like_a_key_is_hidden_in_failures(said: str) -> None:
    shown = redacted_failure(said)

    assert "***" in shown
    for part in ("abc.def", "qwertz", "dXNlcj", "0f9e8d", "zzz-111", "abcd1234", "wxyz", "ya29"):
        assert part not in shown


@pytest.mark.parametrize(
    "said", ["The model m-2 is unknown.", "use bearer authentication", "token limit exceeded"]
)
def test_ordinary_failures_stay_as_they_are(said: str) -> None:
    assert redacted_failure(said) == said


def test_long_hostile_text_takes_no_time() -> None:
    for piece in ("*", "a", "Bearer ", "sk-", "api_key:", "=", "…x"):
        redacted_failure(piece * (40_000 // len(piece)))


@pytest.mark.parametrize("form", FORMS)
def test_no_error_of_webrag_shows_a_secret(form: str) -> None:
    remember_secrets(KEY)
    said = FORMS[form]
    errors: list[WebRAGError] = [
        WebRAGError(said, hint=said),
        ProviderError(said, provider="p", hint=said),
        FetchError(said, url="https://a.test", hint=said),
    ]

    assert not leaks("".join(f"{error} {error!r} {error.hint}" for error in errors))


def test_password_of_an_address_is_in_no_error_though_it_is_a_word() -> None:
    said = "No answer of http://user:passphrase@proxy.test:3128/, asked for https://a.test/b@c."

    error = WebRAGError(said, hint=said)

    shown = said.replace("passphrase", "***")
    assert (str(error), error.hint) == (shown, shown)


def test_log_lines_and_tracebacks_show_no_secret() -> None:
    remember_secrets(KEY)
    with pytest.raises(ValueError, match="Bearer") as raised:
        raise ValueError(f"Authorization: Bearer {KEY}")
    info = (raised.type, raised.value, raised.tb)
    record = logging.LogRecord("webrag", 40, __file__, 1, "said %s", (KEY,), info)

    shown = RedactingFormatter("%(message)s").format(record)

    assert "ValueError" in shown
    assert not leaks(shown.replace(__file__, ""))


def test_cause_that_shows_a_secret_is_left_out() -> None:
    remember_secrets(KEY)
    inner = ValueError("said")
    inner.__cause__ = KeyError(KEY)

    assert safe_cause(inner) is None
    assert safe_cause(ValueError(KEY)) is None


def test_cause_that_shows_none_is_kept() -> None:
    error = ValueError("said")

    assert safe_cause(error) is error
