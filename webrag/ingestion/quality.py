"""Tells a page's content from what sites show in its place; it removes and repairs nothing.

A page is refused only when little text and a clear sign come together: pages that are about
logins, captchas or the status 404 have such words too, but much to say about them.
"""

from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion import wall_phrases as phrases
from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import attribute, inline_text
from webrag.ingestion.walls import Wall, bot_wall, challenge_vendor, cookie_wall, login_wall

__all__ = ["PageSigns", "check_quality", "judge", "read_signs"]

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
    " often has one for printing), or set FIRECRAWL_API_KEY to read it through a browser service."
)
_MISSING_HINT = "Check the address; the site shows this page for addresses it does not know."


@dataclass(frozen=True)
class PageSigns:
    """What can be told of a page before anything is removed from it.

    Attributes:
        title: Title tag.
        heading: First top heading.
        has_captcha: A captcha's frame or field is on the page.
        has_password_field: There is one outside the page's header and menus.
        has_app_root: There is an element that scripts draw the page into.
        scripts: Number of script elements.
        notice: What the page says to readers without scripts.
        markup: The HTML.
    """

    title: str = ""
    heading: str = ""
    has_captcha: bool = False
    has_password_field: bool = False
    has_app_root: bool = False
    scripts: int = 0
    notice: str = ""
    markup: str = field(default="", repr=False)


def read_signs(tree: LexborHTMLParser, html: str) -> PageSigns:
    """Read a parsed page's signs; must run before anything is pruned."""
    title, heading = tree.css_first("title"), tree.css_first("h1")
    notices = (inline_text(node) for node in tree.css("noscript"))
    return PageSigns(
        title=_plain(title.text()) if title is not None else "",
        heading=_plain(inline_text(heading)) if heading is not None else "",
        has_captcha=tree.css_first(_CAPTCHA_WIDGET) is not None,
        has_password_field=any(
            attribute(node, "type").lower() == "password" for node in tree.css("input[type]")
        ),
        has_app_root=tree.css_first(_APP_ROOT) is not None,
        scripts=len(tree.css("script")),
        notice=collapse(" ".join(notices))[:1_000],
        markup=html,
    )


def check_quality(url: str, status: int, signs: PageSigns, markdown: str) -> None:
    """Do nothing for a page that shows its content.

    Args:
        url: Named in the message.
        status: HTTP status, passed on.
        signs: What the page was like before pruning.
        markdown: What was left of it.

    Raises:
        UnusablePageError: Something else is shown; `kind` says what.
    """
    wall = judge(signs, markdown)
    if wall is not None:
        raise wall.error(url, status)


def judge(signs: PageSigns, markdown: str) -> Wall | None:
    """Return what a page shows in place of its content, None when it shows its content.

    Args:
        signs: What the page was like before pruning; its defaults for pages that are not HTML.
        markdown: The main content.
    """
    text = _plain(markdown)
    rules = (_robot_check, _missing, _login, _cookies, _script_shell, _too_little)
    is_rich = "```" in markdown or "\n| --- " in markdown
    found = (rule(signs, text) for rule in rules if not (is_rich and rule is not _robot_check))
    return next((wall for wall in found if wall is not None), None)


def _robot_check(signs: PageSigns, text: str) -> Wall | None:
    # Looking for every vendor's marks takes longer than converting the page.
    vendor = challenge_vendor(signs.markup) if len(text) <= _CHALLENGE_CHARS else None
    if vendor and _is_thin_challenge(signs, text):
        return bot_wall(vendor)
    if len(text) > _WALL_CHARS:
        return None
    orders = phrases.ROBOT_ORDER.search(text[:_LEAD_CHARS] + " " + signs.notice)
    is_titled = phrases.ROBOT_TITLE.search(signs.title) or phrases.ROBOT_TITLE.search(signs.heading)
    is_short = len(text) <= _SHELL_CHARS
    if orders and (is_titled or signs.has_captcha or is_short):
        return bot_wall(None)
    is_bare = len(text) <= _BARE_CHARS
    return bot_wall(None) if is_titled and (signs.has_captcha or is_bare) else None


def _is_thin_challenge(signs: PageSigns, text: str) -> bool:
    """A page of little text is the challenge; a longer one must say so, too."""
    says_so = phrases.ROBOT_ORDER.search(text) or phrases.ROBOT_TITLE.search(signs.title)
    return len(text) <= _SHELL_CHARS or bool(says_so)


def _missing(signs: PageSigns, text: str) -> Wall | None:
    lead = text[:_LEAD_CHARS]
    if phrases.FOR_SALE.search(lead) and len(text) <= _SHELL_CHARS:
        return Wall("soft_404", "the address is for sale or parked", _MISSING_HINT)
    is_titled = phrases.MISSING_TITLE.search(signs.title) or phrases.MISSING_TITLE.search(
        signs.heading
    )
    says_so = phrases.MISSING_BODY.search(lead)
    is_certain = is_titled and says_so and len(text) <= _CERTAIN_404_CHARS
    begins_so = phrases.MISSING_TITLE.search(text[:80])
    is_bare = len(text) <= _SHELL_CHARS and (
        is_titled or (begins_so is not None and begins_so.start() <= _HEADING_MARK_CHARS)
    )
    is_headed = says_so and begins_so and len(text) <= _SHELL_CHARS
    if is_certain or is_bare or is_headed:
        return Wall("soft_404", "the site says that it does not exist", _MISSING_HINT)
    return None


def _login(signs: PageSigns, text: str) -> Wall | None:
    if len(text) > _LOGIN_CHARS:
        return None
    is_titled = phrases.LOGIN_TITLE.search(signs.title) or phrases.LOGIN_TITLE.search(signs.heading)
    orders = phrases.LOGIN_ORDER.search(text)
    is_short = len(text) <= _SHELL_CHARS
    if signs.has_password_field and (is_titled or orders or is_short):
        return login_wall()
    stops_here = phrases.LOGIN_STOP.search(text) and len(text) <= _STOP_CHARS
    return login_wall() if stops_here or (orders and is_titled) else None


def _cookies(signs: PageSigns, text: str) -> Wall | None:
    if len(text) > 4 * _WALL_CHARS or not phrases.COOKIE_ORDER.search(text):
        return None
    if phrases.COOKIE_POLICY.search(signs.title) or phrases.COOKIE_POLICY.search(signs.heading):
        return None
    is_titled = phrases.COOKIE_TITLE.search(signs.title) or phrases.COOKIE_TITLE.search(text[:80])
    rest = collapse(phrases.ABOUT_COOKIES.sub(" ", text))
    return cookie_wall() if len(rest) <= (_SHELL_CHARS if is_titled else _LEAST_CHARS) else None


def _script_shell(signs: PageSigns, text: str) -> Wall | None:
    wall = Wall("script_shell", "its text is only drawn by scripts", _SHELL_HINT)
    if len(text) > _SHELL_CHARS:
        return None
    if phrases.SCRIPT_ORDER.search(text) or phrases.WAITING.search(text):
        return wall
    has_excuse = bool(phrases.SCRIPT_ORDER.search(signs.notice))
    is_bare = _letters(text) < _LEAST_LETTERS
    if (has_excuse and signs.scripts and len(text) <= _SHELL_CHARS // 2) or (
        is_bare and signs.has_app_root and signs.scripts
    ):
        return wall
    return None


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
    return sum(char.isalnum() for char in text)


def _plain(text: str) -> str:
    return collapse(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
