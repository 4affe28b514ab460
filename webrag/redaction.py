"""Takes secrets out of text before it is shown, logged or passed on; it asks nobody for them.

What a service answers may repeat the key it was sent: in an error, in the text of a model, encoded
or cut. Every provider's text goes through here where it enters, every error and log line once more
where it leaves.
"""

import base64
import html
import json
import logging
import re
import threading
import traceback
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote

from typing_extensions import override

HIDDEN: Final = "***"

# Below it a word of the language would be hidden everywhere.
_LEAST_CHARS: Final = 8
# What servers without keys are given for one; hiding these would hide ordinary words.
_NO_SECRETS: Final = frozenset(
    {"lm-studio", "llama.cpp", "localhost", "not-needed", "no-key-required", "sk-no-key-required"}
)
_IN_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-=")
# What stands for the part of a key that is left out: sk-abc***xyz, sk-abc...xyz.
_MARKS_OF_A_GAP: Final = "*•●∙·…█#"
_LEFT_OUT: Final = re.compile(rf"[{_MARKS_OF_A_GAP}]{{2,}}|…|\.{{3,}}")
_LEAST_START: Final = 3
_LEAST_END: Final = 4
_MOST_CUT_CHARS: Final = 300

_AFTER_SCHEME: Final = re.compile(
    r"(?i)\b(bearer|basic|token)(\s{1,4})([A-Za-z0-9._~+/=*-]{4,400})"
)
_AFTER_NAME: Final = re.compile(
    r"(?i)((?:authorization|api[-_ ]?key|access[-_]token|secret)[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
    r"(?:(?:bearer|basic|token)\s{1,4})?)([^\s\"',;<>{}]{4,400})"
)
_PASSWORD_OF_URL: Final = re.compile(r"(://[^\s/:@]{0,200}+:)(?!\*\*)[^\s/@]{1,200}+(?=@)")
_LIKE_A_KEY: Final = re.compile(
    r"\b(?:sk|pk|rk|fc|jina|ze|co|hf|lsv2|gh[pousr]|xox[abp])[-_][\w*•….-]{6,400}"
)
_OF_A_KEY: Final = re.compile(r"[0-9*•…]")

_Span = tuple[int, int]


class Redactor:
    """Hides some secrets in text, in the forms in which a service may repeat them.

    Plain, in either case, percent-encoded, escaped for JSON, HTML and JavaScript, in hexadecimal,
    in base64 also as part of something longer, and pieces that are long enough to be of use.
    Secrets with fewer than eight characters are left out.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        kept = {each for each in secrets if len(each) >= _LEAST_CHARS and each not in _NO_SECRETS}
        self.secrets = frozenset(kept)
        self._whole = sorted({form for each in kept for form in _written_forms(each)})
        self._encoded = sorted({form for each in kept for form in _base64_forms(each)})
        self._pieces = sorted({piece for each in kept for piece in _pieces(each)})
        self.longest = max(map(len, [*self._whole, *self._encoded, ""]))

    def hide_whole(self, text: str) -> str:
        """The text without whole secrets; what only resembles a part of one stays."""
        return _without(text, self._whole_spans(text)) if self.secrets else text

    def hide(self, text: str) -> str:
        """The text without secrets and parts of them."""
        if not self.secrets:
            return text
        spans = [*self._whole_spans(text), *self._cut_spans(text)]
        spans += [span for piece in self._pieces for span in _found(text, piece)]
        return _without(text, spans)

    def _whole_spans(self, text: str) -> list[_Span]:
        spans = [span for form in self._whole for span in _found(text, form)]
        for form in self._encoded:
            spans += [_widened(text, span) for span in _found(text, form)]
        return spans

    def _cut_spans(self, text: str) -> Iterator[_Span]:
        for gap in _LEFT_OUT.finditer(text):
            before = text[max(gap.start() - _MOST_CUT_CHARS, 0) : gap.start()]
            after = text[gap.end() : gap.end() + _MOST_CUT_CHARS]
            for secret in self.secrets:
                start, end = _shared_start(secret, before), _shared_end(secret, after)
                if start or end:
                    yield gap.start() - start, gap.end() + end


class RedactingStream:
    """Hides secrets in text that arrives in pieces, however they are divided.

    Whatever may be the beginning of a secret is held back until more is known, so `rest` must be
    asked for at the end.
    """

    def __init__(self) -> None:
        self._held = ""

    def pass_on(self, piece: str) -> str:
        """Give all that may be shown by now."""
        redactor = _Known.redactor
        if not redactor.secrets:
            piece, self._held = self._held + piece, ""
            return piece
        self._held += piece
        start = _word_start(self._held)
        if len(self._held) - start > 2 * redactor.longest:
            # No secret is so long: what lies before its last characters is known by now.
            self._held = redactor.hide(self._held)
            start = max(len(self._held) - redactor.longest, 0)
        ready, self._held = self._held[:start], self._held[start:]
        return redactor.hide(ready)

    def rest(self) -> str:
        """Give all that was held back."""
        rest, self._held = self._held, ""
        return redacted(rest)


class RedactingFormatter(logging.Formatter):
    """Formats as its base does, tracebacks too, and hides secrets in the result."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return redacted_failure(super().format(record))


class _Known:
    """The secrets this process was given; they only ever become more."""

    lock = threading.Lock()
    redactor = Redactor(())


def remember_secrets(*secrets: str | None) -> None:
    """Let these be hidden from now on wherever WebRAG shows text."""
    new = {each for each in secrets if each} - _Known.redactor.secrets
    if new:
        with _Known.lock:
            _Known.redactor = Redactor(_Known.redactor.secrets | new)


def remember_key(service: object) -> None:
    """Let the key of a model or service be hidden that a program made itself: no setting has it."""
    key = getattr(service, "api_key", None)
    key = getattr(key, "get_secret_value", lambda: key)()  # pydantic takes a while to import
    remember_secrets(key if isinstance(key, str) else None)


def redacted(text: str) -> str:
    """The text without the secrets this process was given, and without parts of them."""
    return _Known.redactor.hide(text)


def redacted_message(text: str) -> str:
    """As `redacted`, also without passwords in URLs; those that are words are not remembered."""
    return _PASSWORD_OF_URL.sub(lambda found: found[1] + HIDDEN, redacted(text))


def redacted_failure(text: str) -> str:
    """A service's own words, also without what only looks like a key.

    For errors and logs, where a word too many may go; an answer may speak of keys.
    """
    text = _AFTER_NAME.sub(lambda found: found[1] + HIDDEN, redacted_message(text))
    text = _AFTER_SCHEME.sub(_hide_credentials, text)
    return _LIKE_A_KEY.sub(lambda found: HIDDEN if _OF_A_KEY.search(found[0]) else found[0], text)


def safe_cause(error: BaseException) -> BaseException | None:
    """The error, to raise another one from; None where showing it would show a secret."""
    shown = "".join(traceback.format_exception(error)) + repr(error)
    return error if redacted(shown) == shown else None


def _hide_credentials(found: re.Match[str]) -> str:
    if found[3].isalpha():  # "bearer authentication"
        return found[0]
    return found[1] + found[2] + HIDDEN


def _written_forms(secret: str) -> Iterator[str]:
    yield from (secret, secret.lower(), secret.upper())
    percent = quote(secret, safe="")
    every = "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in secret)
    for form in (percent, every, quote(secret)):
        yield from (form, form.lower(), form.upper(), quote(form, safe=""))
    yield from (html.escape(secret), json.dumps(secret)[1:-1], secret.replace("/", "\\/"))
    marks = "".join(c if c.isalnum() else f"\\u{ord(c):04x}" for c in secret)
    yield from (marks, marks.replace("\\u00", "\\x"), repr(secret)[1:-1])
    yield "".join(c if c.isalnum() else f"&#{ord(c)};" for c in secret)
    code = secret.encode("utf-8", "replace").hex()
    yield from (code, code.upper())


def _base64_forms(secret: str) -> Iterator[str]:
    """The characters of base64 that the secret decides alone, for each place it may begin at."""
    raw = secret.encode("utf-8", "replace")
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw + b"\0" * 2).decode()
        first = (before * 8 + 5) // 6
        last = (before + len(raw)) * 8 // 6
        core = coded[first:last]
        yield core
        yield core.replace("+", "-").replace("/", "_")


def _pieces(secret: str) -> Iterator[str]:
    size = max(_LEAST_CHARS, min(12, len(secret) // 2))
    for start in range(len(secret) - size + 1):
        yield secret[start : start + size]


def _found(text: str, part: str) -> Iterator[_Span]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _widened(text: str, span: _Span) -> _Span:
    start, end = span
    while start and text[start - 1] in _IN_BASE64:
        start -= 1
    while end < len(text) and text[end] in _IN_BASE64:
        end += 1
    return start, end


def _shared_start(secret: str, before: str) -> int:
    most = min(len(secret), len(before))
    return next((n for n in range(most, _LEAST_START - 1, -1) if before.endswith(secret[:n])), 0)


def _shared_end(secret: str, after: str) -> int:
    most = min(len(secret), len(after))
    return next((n for n in range(most, _LEAST_END - 1, -1) if after.startswith(secret[-n:])), 0)


def _without(text: str, spans: list[_Span]) -> str:
    if not spans:
        return text
    parts: list[str] = []
    done = hidden_to = 0
    for start, end in sorted(spans):
        if start > hidden_to or not parts:
            parts += (text[done:start], HIDDEN)
        hidden_to = done = max(hidden_to, end)
    return "".join([*parts, text[done:]])


def _word_start(text: str) -> int:
    """Find the beginning of the last word, which may go on.

    Secrets have only such characters, cut ones too.
    """
    start = len(text)
    while start and ("!" <= text[start - 1] <= "~" or text[start - 1] in _MARKS_OF_A_GAP):
        start -= 1
    return start
