"""Tells a page's content from what sites show in its place; it removes and repairs nothing."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ada_url import URL
from selectolax.lexbor import LexborHTMLParser

from webrag.errors import UnusablePageError
from webrag.ingestion.characters import collapse
from webrag.ingestion.html.tree import attribute, inline_text


@dataclass(frozen=True)
class Wall:
    """Why a page is not shown.

    Attributes:
        kind: As in `UnusablePageError.kind`.
        message: What was met, without full stop.
    """

    kind: str
    message: str
    hint: str

    def error(self, url: str, status: int) -> UnusablePageError:
        """What is raised in the page's place."""
        return UnusablePageError(
            f"The page {url} cannot be read: {self.message}.",
            url=url,
            status=status,
            hint=self.hint,
            kind=self.kind,
        )


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

# Present on the challenge itself, not on the pages behind it: words (in lower case) of which one is
# in every markup that a vendor's pattern finds, and that pattern, which takes far longer.
_CHALLENGES = (
    ("Cloudflare", "cf_chl cf- challenge-error cdn-cgi/l/ cloudflare",
     r"_cf_chl_opt|cf-browser-verification|id=\"challenge-error-text\"|cf-chl-widget"
     r"|cdn-cgi/l/chk_jschl|Attention Required! \| Cloudflare|id=\"cf-error-details\""),
    ("DataDome", "captcha-delivery 'rt' 'cid'",
     r"captcha-delivery\.com|var dd\s*=\s*\{\s*'(?:rt|cid)'"),
    ("HUMAN (PerimeterX)", "px-captcha _pxuuid",
     r"id=\"px-captcha\"|class=\"px-captcha|window\._pxUuid\b"),
    ("Akamai", "edgesuite sec-if-cpt sec-bc-tile _sec/verify",
     r"errors\.edgesuite\.net|sec-if-cpt-container|sec-bc-tile-|/_sec/verify"),
    ("Imperva", "incapsula distil",
     r"_Incapsula_Resource\?[^\"']{0,500}SWUDNSAI|Incapsula incident ID"
     r"|id=\"distilIdentificationBlock\""),
    ("AWS WAF", "awswaf gokuprops",
     r"awsWafCookieDomainList|window\.gokuProps|AwsWafIntegration\.saveReferrer"),
    ("Kasada", "kpsdk 149e9513",
     r"KPSDK\.now|window\.KPSDK\s*=|/149e9513-01fa-4fb0-aad4-566afd725d1b/"),
    ("Sucuri", "sucuri", r"Sucuri WebSite Firewall|sucuri_cloudproxy_js"),
    ("Vercel", "vercel", r"Vercel Security Checkpoint|vercel\.link/security-checkpoint"),
    ("Anubis", "anubis", r"id=\"anubis_challenge\"|/\.within\.website/x/cmd/anubis"),
    ("DDoS-Guard", "ddos-guard", r"check\.ddos-guard\.net|<title>\s*DDOS-GUARD"),
    ("F5", "bobcmn rejected.",
     r"window\[\"bobcmn\"\]|The requested URL was rejected\. Please consult"),
    ("Fastly", "challenge _fs-ch-",
     r"<title>\s*Client Challenge\s*</title>|/_fs-ch-[\w-]{5,}/"),
    ("Google", "sorry/index unusual",
     r"action=\"/?sorry/index\"|unusual traffic from your computer network"),
    ("GeeTest", "geetest", r"initGeetest\d?\(|captcha-display-geetest"),
)  # fmt: skip

_VENDORS = tuple(
    (name, words.split(), re.compile(pattern, re.IGNORECASE))
    for name, words, pattern in _CHALLENGES
)

_SEARCHED_CHARS = 300_000
_LOGIN_HOSTS = re.compile(
    r"(?:^|\.)(?:accounts\.google\.com|login\.microsoftonline\.com|login\.live\.com|okta\.com"
    r"|auth0\.com|onelogin\.com|cloudflareaccess\.com|login\.yahoo\.com|appleid\.apple\.com)$"
)
_LOGIN_PATH = re.compile(
    r"/(?:log-?in|sign-?in|sso|oauth2?|saml2?|authorize|auth|session/new|users/sign_in|cas)"
    r"(?:[/.]|$)",
    re.IGNORECASE,
)
_RETURN_PARAMETER = re.compile(
    r"[?&](?:next|return_?(?:to|url)?|redirect(?:_?(?:to|ur[il]))?|continue|service|dest(?:ination)?"
    r"|back_?to|back|from|goto|ref|target|r|SAMLRequest|client_id|state|oasredirecturl)=",
    re.IGNORECASE,
)
_CONSENT_HOSTS = re.compile(r"^(?:consent\.[\w.-]+|guce\.[\w.-]+|myprivacy\.[\w.-]+)$")
_CONSENT_PATH = re.compile(r"/(?:cookie-?wall|cookie-?consent|consent)(?:[/.]|$)", re.IGNORECASE)

_LOGIN_WALL = Wall("login_wall", "the site wants a login first", _LOGIN_HINT)
_COOKIE_WALL = Wall("cookie_wall", "the site wants an answer about cookies first", _COOKIE_HINT)


def _bot_wall(vendor: str | None) -> Wall:
    by = f" ({vendor})" if vendor else ""
    return Wall("bot_wall", f"the site checks for robots first{by}", _BOT_HINT)


def _challenge_vendor(html: str) -> str | None:
    """Whose challenge the markup carries, None when it carries none that is known."""
    searched = html[:_SEARCHED_CHARS]
    folded = searched.lower()
    return next(
        (
            name
            for name, words, pattern in _VENDORS
            if any(word in folded for word in words) and pattern.search(searched)
        ),
        None,
    )


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
    if _CONSENT_HOSTS.match(there.hostname) and not _CONSENT_HOSTS.match(here.hostname):
        return _COOKIE_WALL
    if _LOGIN_HOSTS.search(there.hostname) and not _LOGIN_HOSTS.search(here.hostname):
        return _LOGIN_WALL
    comes_back = bool(_RETURN_PARAMETER.search(there.search))
    signs_in = _LOGIN_PATH.search(there.pathname) and not _LOGIN_PATH.search(here.pathname)
    if signs_in and (comes_back or had_login):
        return _LOGIN_WALL
    if comes_back and _CONSENT_PATH.search(there.pathname):
        return _COOKIE_WALL
    return None


ROBOT_TITLE = re.compile(
    r"^\W*(?:just a moment|attention required|access denied|are you (?:a )?(?:human|(?:ro)?bot)"
    r"|(?:ro)?bot (?:check|verification|detection)|human verification|security (?:check|checkpoint)"
    r"|checking your browser|verif(?:y|ying) (?:that )?you(?:'re| are) (?:a )?human|captcha\W*$"
    r"|one moment,? please|please wait|client challenge|pardon our interruption|unusual traffic"
    r"|robot or human|ddos-guard|too many requests|request blocked|sucuri|making sure you)",
    re.IGNORECASE,
)
ROBOT_ORDER = re.compile(
    r"verif(?:y|ying) (?:that )?you(?:'re| are) (?:a )?(?:real )?(?:human|person|not a (?:ro)?bot)"
    r"|checking (?:if the site connection is secure|your browser)|press (?:&|and) hold"
    r"|prove (?:that )?you(?:'re| are) (?:a )?human|are you a robot|unusual (?:traffic|activity)"
    r"|(?:complete|solve|pass) the (?:captcha|security check|challenge)|confirm you(?:'re| are)"
    r" (?:a )?human|you(?:'re| are) not a (?:ro)?bot|needs to review the security of your conn"
    r"|(?:sorry, )?you have been blocked|enable (?:javascript and cookies|cookies) to continue"
    r"|your (?:request|access|browser) (?:was|has been) (?:blocked|flagged|denied)"
    r"|you don't have permission to access",
    re.IGNORECASE,
)
LOGIN_TITLE = re.compile(
    r"^\W*(?:(?:please )?(?:sign|log)[ -]?in|login|log on|member login|authentication required"
    r"|single sign[ -]on|anmelden|connexion|iniciar sesión|accedi|entrar|войти|вход|ログイン|登录)"
    r"(?:\b|\W|$)",
    re.IGNORECASE,
)
LOGIN_ORDER = re.compile(
    r"(?:sign|log)[ -]?in (?:to|with) (?:your|continue|view|access|see|read|proceed|use)"
    r"|(?:must|need to|have to|please|required to) (?:be (?:logged|signed) in|(?:log|sign)[ -]?in)"
    r"|(?:members|subscribers|employees)[- ]only|subscribe to (?:continue|keep) reading"
    r"|(?:already (?:a|have an?) (?:member|subscriber|account))|you need access|request access"
    r"|(?:create|register for) an? (?:free )?account to (?:continue|read|view)"
    r"|(?:you've|you have) (?:reached|read) (?:your|the|all) (?:limit|free|\w+ free)"
    r"|to continue reading|this (?:page|article|content) is (?:for|only available to|available to)"
    r" (?:\w+ ){0,2}(?:members|subscribers)",
    re.IGNORECASE,
)
LOGIN_STOP = re.compile(
    r"(?:must|need to|have to|required to) (?:be (?:logged|signed) in|(?:log|sign)[ -]?in)"
    r"|please (?:log|sign)[ -]?in to|subscribe to (?:continue|keep) reading|to continue reading"
    r"|^\W*(?:you need access|request access)|available (?:only )?to (?:\w+ )?"
    r"(?:members|subscribers)",
    re.IGNORECASE,
)
COOKIE_TITLE = re.compile(
    r"^\W*(?:before you continue|cookie (?:consent|wall|settings|preferences|notice)|we value your"
    r" privacy|your privacy(?: choices)?\W*$|privacy settings|consent\W*$|cookies required)",
    re.IGNORECASE,
)
COOKIE_ORDER = re.compile(
    r"(?:accept|agree to|consent to|allow|enable) (?:all |the use of |our |the )?cookies"
    r"|before you continue|we (?:and our (?:\d+ )?partners )?(?:use|store|value) (?:cookies|and"
    r"|your privacy)"
    r"|(?:manage|reject|accept) (?:all|my|your|cookie)? ?(?:preferences|choices|settings)",
    re.IGNORECASE,
)
COOKIE_POLICY = re.compile(r"polic|statement|how we use|what are|about cookies|guide", re.I)
ABOUT_COOKIES = re.compile(
    r"(?<![^.!?\n])[^.!?\n]*(?:cookie|consent|privacy|partners|personali[sz]|advert|accept|reject|preferences"
    r"|your choices|vendors|legitimate interest|device|tracking)[^.!?\n]*+[.!?\n]?",
    re.IGNORECASE,
)
SCRIPT_ORDER = re.compile(
    r"(?:enable|turn on|activate|requires?|needs?|without|allow|run) (?:\w+ ){0,2}java ?script"
    r"|java ?script (?:is |must be |needs to be |to be |appears to be |seems to be )"
    r"(?:\w+ )?(?:disabled|required|enabled|off|not available|turned)"
    r"|java ?script (?:aktivieren|est désactivé)|activez javascript|habilit\w{1,20} javascript"
    r"|browser (?:is )?(?:not supported|unsupported|out of date)|unsupported browser"
    r"|your browser does(?:n't| not) support",
    re.IGNORECASE,
)
WAITING = re.compile(
    r"^\W*(?:loading(?: \w+){0,3}|please wait(?: \w+){0,3}|redirecting(?: \w+){0,4}"
    r"|one moment)\W*$",
    re.IGNORECASE,
)
MISSING_TITLE = re.compile(
    r"(?:^|\W)(?:404|410)(?:\W|$)|(?:page|file|document|content|article|url|site|resource) "
    r"(?:was |is |could |has |have )?(?:not |n't )?(?:be )?(?:found|missing|gone|removed|exist)"
    r"|page (?:doesn't|does not) exist|^\W*not found\W*$|nothing (?:here|found)|page unavailable"
    r"|(?:can't|cannot|couldn't|could not) (?:find|locate) (?:that|this|the|your) (?:page|file)"
    r"|page (?:can't|cannot|couldn't|could not) be (?:found|located)"
    r"|seite (?:wurde )?nicht gefunden|page (?:introuvable|non trouvée)|no encontrad[ao]"
    r"|não encontrad[ao]|pagina non trovata|niet gevonden|страница не найдена|не найдена"
    r"|nie znaleziono|ページが見つかりません|页面不存在|找不到(?:页面|頁面)|페이지를 찾을 수",
    re.IGNORECASE,
)
MISSING_BODY = re.compile(
    r"(?:page|file|document|content|article|link|url|address|resource) (?:that )?(?:you(?:'re| are"
    r"|'ve| have)?|which) (?:\w+ ){0,4}(?:looking for|requested|followed|entered|typed|tried)"
    r"|(?:can't|cannot|couldn't|could not|unable to) (?:find|locate|seem to find) (?:that|this|the"
    r"|what|your|a) ?(?:page|file|document|url|you)?|(?:has|have|may have|might have) been"
    r" (?:moved|removed|deleted|renamed)|(?:requested|this) (?:page|url|file|document|resource|"
    r"address) (?:\w+ ){0,3}(?:not found|not exist|n't exist|doesn't exist|not available|missing)"
    r"|nothing was found at this location|you(?:'ve| have) (?:hit|reached) a (?:dead end|page)"
    r"|page (?:doesn't|does not|no longer) exists?|oops|seite (?:\w+ ){0,3}nicht gefunden"
    r"|page (?:\w+ ){0,4}(?:n'existe|introuvable)|não foi encontrad|no (?:se )?(?:ha )?(?:pudo)? ?"
    r"(?:encontr|existe)|не найдена|не существует|見つかりません|不存在|找不到|찾을 수 없",
    re.IGNORECASE,
)
FOR_SALE = re.compile(
    r"(?:this|the) domain(?: name)? (?:\S+ )?(?:is|may be) (?:for sale|parked|available|expired)"
    r"|buy this domain|domain (?:is )?parking|domain has expired",
    re.IGNORECASE,
)
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


@dataclass(frozen=True)
class PageSigns:
    """What can be told of a page before anything is removed from it.

    Attributes:
        heading: First top heading.
        has_captcha: A captcha's frame or field is on the page.
        has_app_root: There is an element that scripts draw the page into.
        scripts: Number of script elements.
        notice: What the page says to readers without scripts.
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
    vendor = _challenge_vendor(signs.markup) if len(text) <= _CHALLENGE_CHARS else None
    is_short = len(text) <= _SHELL_CHARS
    # A page of little text is the challenge; a longer one must say so, too.
    if vendor and (is_short or ROBOT_ORDER.search(text) or ROBOT_TITLE.search(signs.title)):
        return _bot_wall(vendor)
    if len(text) > _WALL_CHARS:
        return None
    orders = ROBOT_ORDER.search(text[:_LEAD_CHARS] + " " + signs.notice)
    is_titled = ROBOT_TITLE.search(signs.title) or ROBOT_TITLE.search(signs.heading)
    if orders and (is_titled or signs.has_captcha or is_short):
        return _bot_wall(None)
    is_bare = len(text) <= _BARE_CHARS
    return _bot_wall(None) if is_titled and (signs.has_captcha or is_bare) else None


def _missing(signs: PageSigns, text: str) -> Wall | None:
    lead = text[:_LEAD_CHARS]
    if FOR_SALE.search(lead) and len(text) <= _SHELL_CHARS:
        return Wall("soft_404", "the address is for sale or parked", _MISSING_HINT)
    is_titled = MISSING_TITLE.search(signs.title) or MISSING_TITLE.search(signs.heading)
    says_so = MISSING_BODY.search(lead)
    is_certain = is_titled and says_so and len(text) <= _CERTAIN_404_CHARS
    begins_so = MISSING_TITLE.search(text[:80])
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
    is_titled = LOGIN_TITLE.search(signs.title) or LOGIN_TITLE.search(signs.heading)
    orders = LOGIN_ORDER.search(text)
    is_short = len(text) <= _SHELL_CHARS
    if signs.has_password_field and (is_titled or orders or is_short):
        return _LOGIN_WALL
    stops_here = LOGIN_STOP.search(text) and len(text) <= _STOP_CHARS
    return _LOGIN_WALL if stops_here or (orders and is_titled) else None


def _cookies(signs: PageSigns, text: str) -> Wall | None:
    if len(text) > 4 * _WALL_CHARS or not COOKIE_ORDER.search(text):
        return None
    if COOKIE_POLICY.search(signs.title) or COOKIE_POLICY.search(signs.heading):
        return None
    is_titled = COOKIE_TITLE.search(signs.title) or COOKIE_TITLE.search(text[:80])
    rest = collapse(ABOUT_COOKIES.sub(" ", text))
    return _COOKIE_WALL if len(rest) <= (_SHELL_CHARS if is_titled else _LEAST_CHARS) else None


def _script_shell(signs: PageSigns, text: str) -> Wall | None:
    wall = Wall("script_shell", "its text is only drawn by scripts", _SHELL_HINT)
    if len(text) > _SHELL_CHARS:
        return None
    if SCRIPT_ORDER.search(text) or WAITING.search(text):
        return wall
    has_excuse = bool(SCRIPT_ORDER.search(signs.notice))
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
    """How many letters and digits a text has, counted up to as many as matter."""
    return sum(1 for _ in itertools.islice(filter(str.isalnum, text), _LEAST_LETTERS))


def _plain(text: str) -> str:
    return collapse(text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
