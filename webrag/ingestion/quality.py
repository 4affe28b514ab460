"""Tells a page's content from what sites show in its place; it removes and repairs nothing."""

import itertools
import re
from collections.abc import Mapping
from configparser import ConfigParser
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from ada_url import URL
from selectolax.lexbor import LexborHTMLParser

from webrag.errors import UnusablePageError
from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import attribute, inline_text
from webrag.ingestion.models import PageSigns


@dataclass(frozen=True)
class Wall:
    """Stands for a page; the kind is as in `UnusablePageError`, the message has no full stop."""

    kind: str
    message: str
    hint: str

    def error(self, url: str, status: int) -> UnusablePageError:
        """Give the error to raise in the page's place."""
        said = f"The page {url} cannot be read: {self.message}."
        return UnusablePageError(said, url=url, status=status, hint=self.hint, kind=self.kind)


_BOT_HINT = (
    "Open the page in a browser and give its text in another way, ask the site for an interface"
    " meant for programs, or set FIRECRAWL_API_KEY to read it through a browser service."
)
_LOGIN_HINT = (
    "Look for a public version of it; if you have an account there, `webrag login HOST` lets your"
    " own commands read it."
)
_COOKIE_HINT = (
    "Look for another address of the same text, such as a print or documentation version."
)

_READ: Final = ConfigParser(delimiters="=", interpolation=None)
_READ.optionxform = str  # type: ignore[assignment,method-assign]
_READ.read_string(files(__package__).joinpath("quality.ini").read_text("utf-8"))
_CHALLENGES: Final = {
    name: (words.split(), re.compile("".join(pattern), re.IGNORECASE))
    for name, (words, *pattern) in (
        (key, text.split("\n")) for key, text in _READ["challenges"].items()
    )
}
_SIGNS: Final = {
    name: re.compile(pattern.replace("\n", ""), re.IGNORECASE)
    for name, pattern in _READ["signs"].items()
}
_SEARCHED_CHARS = 300_000
_LOGIN_WALL = Wall("login_wall", "the site wants a login first", _LOGIN_HINT)
_COOKIE_WALL = Wall("cookie_wall", "the site wants an answer about cookies first", _COOKIE_HINT)


def has_sign(sign: str, *texts: str) -> bool:
    """Tell whether one of some texts matches a pattern of `quality.ini`, such as `script order`."""
    return any(_SIGNS[sign].search(text) for text in texts)


def _bot_wall(vendor: str | None) -> Wall:
    by = f" ({vendor})" if vendor else ""
    return Wall("bot_wall", f"the site checks for robots first{by}", _BOT_HINT)


def _challenge_vendor(html: str) -> str | None:
    searched = html[:_SEARCHED_CHARS]
    folded = searched.lower()
    for name, (words, pattern) in _CHALLENGES.items():
        if any(word in folded for word in words) and pattern.search(searched):
            return name
    return None


def wall_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> Wall | None:
    """Recognise a challenge by an answer's headers, in lower case, or by the body of a refusal."""
    vendor = _vendor_of_headers(status, headers)
    if vendor is None and not 200 <= status < 300:
        vendor = _challenge_vendor(body[:65_536].decode("utf-8", errors="replace"))
    return _bot_wall(vendor) if vendor else None


def _vendor_of_headers(status: int, headers: Mapping[str, str]) -> str | None:
    if headers.get("cf-mitigated", "").lower() == "challenge":
        return "Cloudflare"
    if headers.get("x-amzn-waf-action", "").lower() in ("challenge", "captcha"):
        return "AWS WAF"
    if headers.get("x-vercel-mitigated", "").lower() in ("challenge", "deny"):
        return "Vercel"
    if 200 <= status < 300:
        return None
    if "x-datadome" in headers or headers.get("server", "").lower() == "datadome":
        return "DataDome"
    return "Kasada" if "x-kpsdk-ct" in headers or "x-kpsdk-r" in headers else None


def wall_of_redirect(url: str, target: str, *, had_login: bool = False) -> Wall | None:
    """Recognise a redirect that leads to a login or consent page instead of the page.

    Where a login was sent, a login page means that it has ended, also one that does not say where
    it leads back to.
    """
    here, there = URL(url), URL(target)
    if here.hostname == there.hostname and here.pathname == there.pathname:
        return None
    if has_sign("consent host", there.hostname) and not has_sign("consent host", here.hostname):
        return _COOKIE_WALL
    if has_sign("login host", there.hostname) and not has_sign("login host", here.hostname):
        return _LOGIN_WALL
    comes_back = has_sign("return parameter", there.search)
    signs_in = has_sign("login path", there.pathname) and not has_sign("login path", here.pathname)
    if signs_in and (comes_back or had_login):
        return _LOGIN_WALL
    if comes_back and has_sign("consent path", there.pathname):
        return _COOKIE_WALL
    return None


# Longest text, in characters, that a wall of each kind was seen with, about doubled.
_CHALLENGE_CHARS = 2_000
_WALL_CHARS = 900
_LOGIN_CHARS = 1_200
_STOP_CHARS = 600
_CERTAIN_404_CHARS = 2_500
_SHELL_CHARS = 250
_BARE_CHARS = 150
_HEAVY_MARKUP_CHARS = 3_000
_LEAST_CHARS = 40
_LEAST_LETTERS = 25
_LEAD_CHARS = 400
_HEADING_MARK_CHARS = 8
_CAPTCHA_WIDGET = (
    '.g-recaptcha, .h-captcha, .cf-turnstile, .frc-captcha, #captcha, [name="g-recaptcha-response"]'
    ', [name="cf-turnstile-response"], iframe[src*="captcha" i]'
)
_APP_ROOT = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, app-root, [data-reactroot], [ng-app], "
    "#main-app, #q-app, [id=application]"
)
_EMPTY_HINT = "Pages that are drawn by scripts in the browser cannot be read without one."
_SHELL_HINT = (
    "The text is drawn by scripts in the browser. Look for a version without them (documentation"
    " often has one for printing), install Chromium and webrag[browser] to have it drawn here, or"
    " set FIRECRAWL_API_KEY to read it through a browser service."
)
_MISSING_HINT = "Check the address; the site shows this page for addresses it does not know."


def read_signs(tree: LexborHTMLParser, html: str) -> PageSigns:
    """Read a parsed page's signs; must run before anything is pruned."""
    title, heading = tree.css("title")[:1], tree.css("h1")[:1]
    notices = map(inline_text, tree.css("noscript"))
    return PageSigns(
        title=_plain("".join(node.text() for node in title)),
        heading=_plain("".join(map(inline_text, heading))),
        has_captcha=tree.css_first(_CAPTCHA_WIDGET) is not None,
        has_password_field=any(
            attribute(node, "type").lower() == "password" for node in tree.css("input[type]")
        ),
        has_app_root=tree.css_first(_APP_ROOT) is not None,
        scripts=len(tree.css("script")),
        notice=collapse(" ".join(notices))[:1_000],
        markup=html,
    )


def judge(signs: PageSigns, markdown: str) -> Wall | None:
    """Return what a page shows in place of its content, None when it shows its content.

    The signs are of the page before pruning, the defaults for pages that are not HTML.
    """
    text = _plain(markdown)
    rules = (_robot_check, _missing, _login, _cookies, _script_shell, _too_little)
    is_rich = "```" in markdown or "\n| --- " in markdown
    found = (rule(signs, text) for rule in rules if not (is_rich and rule is not _robot_check))
    return next((wall for wall in found if wall is not None), None)


def _robot_check(signs: PageSigns, text: str) -> Wall | None:
    if len(text) > _CHALLENGE_CHARS:
        return None
    is_short = len(text) <= _SHELL_CHARS
    # A page of little text is the challenge; a longer one must say so, too.
    may_be = is_short or has_sign("robot order", text) or has_sign("robot title", signs.title)
    if may_be and (vendor := _challenge_vendor(signs.markup)):
        return _bot_wall(vendor)
    if len(text) > _WALL_CHARS:
        return None
    orders = has_sign("robot order", text[:_LEAD_CHARS] + " " + signs.notice)
    is_titled = has_sign("robot title", signs.title, signs.heading)
    if orders and (is_titled or signs.has_captcha or is_short):
        return _bot_wall(None)
    is_bare = len(text) <= _BARE_CHARS
    return _bot_wall(None) if is_titled and (signs.has_captcha or is_bare) else None


def _missing(signs: PageSigns, text: str) -> Wall | None:
    lead = text[:_LEAD_CHARS]
    if has_sign("for sale", lead) and len(text) <= _SHELL_CHARS:
        return Wall("soft_404", "the address is for sale or parked", _MISSING_HINT)
    is_titled = has_sign("missing title", signs.title, signs.heading)
    says_so = has_sign("missing body", lead)
    is_certain = is_titled and says_so and len(text) <= _CERTAIN_404_CHARS
    begins_so = _SIGNS["missing title"].search(text[:80])
    is_begun = begins_so and (says_so or begins_so.start() <= _HEADING_MARK_CHARS)
    if is_certain or (len(text) <= _SHELL_CHARS and (is_titled or is_begun)):
        return Wall("soft_404", "the site says that it does not exist", _MISSING_HINT)
    return None


def _login(signs: PageSigns, text: str) -> Wall | None:
    if len(text) > _LOGIN_CHARS:
        return None
    is_titled = has_sign("login title", signs.title, signs.heading)
    orders = has_sign("login order", text)
    is_short = len(text) <= _SHELL_CHARS
    if signs.has_password_field and (is_titled or orders or is_short):
        return _LOGIN_WALL
    stops_here = has_sign("login stop", text) and len(text) <= _STOP_CHARS
    return _LOGIN_WALL if stops_here or (orders and is_titled) else None


def _cookies(signs: PageSigns, text: str) -> Wall | None:
    if len(text) > 4 * _WALL_CHARS or not has_sign("cookie order", text):
        return None
    if has_sign("cookie policy", signs.title, signs.heading):
        return None
    is_titled = has_sign("cookie title", signs.title, text[:80])
    rest = collapse(_SIGNS["about cookies"].sub(" ", text))
    return _COOKIE_WALL if len(rest) <= (_SHELL_CHARS if is_titled else _LEAST_CHARS) else None


def _script_shell(signs: PageSigns, text: str) -> Wall | None:
    wall = Wall("script_shell", "its text is only drawn by scripts", _SHELL_HINT)
    if len(text) > _SHELL_CHARS:
        return None
    if has_sign("script order", text) or has_sign("waiting", text):
        return wall
    has_excuse = has_sign("script order", signs.notice) and len(text) <= _SHELL_CHARS // 2
    is_bare = _letters(text) < _LEAST_LETTERS and signs.has_app_root
    return wall if signs.scripts and (has_excuse or is_bare) else None


def _too_little(signs: PageSigns, text: str) -> Wall | None:
    letters = _letters(text)
    if letters == 0:
        kind = "script_shell" if signs.scripts else "empty"
        return Wall(kind, "it holds no readable text", _EMPTY_HINT)
    # A small file may be a small page; a large one with three words is a frame around nothing.
    if letters < _LEAST_LETTERS and len(signs.markup) > _HEAVY_MARKUP_CHARS:
        return Wall("too_little_text", f"it holds almost no text ('{text[:60]}')", _EMPTY_HINT)
    return None


def _letters(text: str) -> int:
    return sum(1 for _ in itertools.islice(filter(str.isalnum, text), _LEAST_LETTERS))


def _plain(text: str) -> str:
    return collapse(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
