"""Recognises what stands before a page: challenges, logins, consent; from traffic and markup.

It knows the marks of such walls; whether a page with such a mark is one is judged in `quality`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ada_url import URL

from webrag.errors import UnusablePageError

__all__ = [
    "Wall",
    "bot_wall",
    "challenge_vendor",
    "cookie_wall",
    "login_wall",
    "wall_of_answer",
    "wall_of_redirect",
]


@dataclass(frozen=True)
class Wall:
    """Why a page is not shown.

    Attributes:
        kind: As in `UnusablePageError.kind`.
        message: What was met, without full stop.
        hint: What the user can do about it.
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
_LOGIN_HINT = "Only pages that everyone can read are fetched; look for a public version of it."
_COOKIE_HINT = (
    "Look for another address of the same text, such as a print or documentation version."
)

# Present on the challenge itself, not on the pages behind it.
_CHALLENGES = (
    ("Cloudflare", r"_cf_chl_opt|cf-browser-verification|id=\"challenge-error-text\"|cf-chl-widget"
     r"|cdn-cgi/l/chk_jschl|Attention Required! \| Cloudflare|id=\"cf-error-details\""),
    ("DataDome", r"captcha-delivery\.com|var dd\s*=\s*\{\s*'(?:rt|cid)'"),
    ("HUMAN (PerimeterX)", r"id=\"px-captcha\"|class=\"px-captcha|window\._pxUuid\b"),
    ("Akamai", r"errors\.edgesuite\.net|sec-if-cpt-container|sec-bc-tile-|/_sec/verify"),
    ("Imperva", r"_Incapsula_Resource\?[^\"']{0,500}SWUDNSAI|Incapsula incident ID"
     r"|id=\"distilIdentificationBlock\""),
    ("AWS WAF", r"awsWafCookieDomainList|window\.gokuProps|AwsWafIntegration\.saveReferrer"),
    ("Kasada", r"KPSDK\.now|window\.KPSDK\s*=|/149e9513-01fa-4fb0-aad4-566afd725d1b/"),
    ("Sucuri", r"Sucuri WebSite Firewall|sucuri_cloudproxy_js"),
    ("Vercel", r"Vercel Security Checkpoint|vercel\.link/security-checkpoint"),
    ("Anubis", r"id=\"anubis_challenge\"|/\.within\.website/x/cmd/anubis"),
    ("DDoS-Guard", r"check\.ddos-guard\.net|<title>\s*DDOS-GUARD"),
    ("F5", r"window\[\"bobcmn\"\]|The requested URL was rejected\. Please consult"),
    ("Fastly", r"<title>\s*Client Challenge\s*</title>|/_fs-ch-[\w-]{5,}/"),
    ("Google", r"action=\"/?sorry/index\"|unusual traffic from your computer network"),
    ("GeeTest", r"initGeetest\d?\(|captcha-display-geetest"),
)  # fmt: skip
_VENDORS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _CHALLENGES)
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


def bot_wall(vendor: str | None) -> Wall:
    """Describe a check for robots, by the name of who makes it where it is known."""
    by = f" ({vendor})" if vendor else ""
    return Wall("bot_wall", f"the site checks for robots first{by}", _BOT_HINT)


def login_wall() -> Wall:
    """Describe a page that is only shown after logging in."""
    return Wall("login_wall", "the site wants a login first", _LOGIN_HINT)


def cookie_wall() -> Wall:
    """Describe a page that is only shown after a choice about cookies."""
    return Wall("cookie_wall", "the site wants an answer about cookies first", _COOKIE_HINT)


def challenge_vendor(html: str) -> str | None:
    """Return whose challenge the markup carries, None when it carries none that is known."""
    searched = html[:_SEARCHED_CHARS]
    return next((name for name, pattern in _VENDORS if pattern.search(searched)), None)


def wall_of_answer(status: int, headers: Mapping[str, str], body: bytes) -> Wall | None:
    """Recognise a challenge by an answer's headers, or by the body of a refusal.

    Args:
        status: HTTP status.
        headers: Names in lower case.
        body: What was read of the body.
    """
    vendor = _vendor_of_headers(status, headers)
    if vendor is None and not 200 <= status < 300:
        vendor = challenge_vendor(body[:65_536].decode("utf-8", errors="replace"))
    return bot_wall(vendor) if vendor else None


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


def wall_of_redirect(url: str, target: str) -> Wall | None:
    """Recognise a redirect that leads to a login or consent page instead of the page.

    Args:
        url: Canonical address that was asked.
        target: Canonical address it redirects to.
    """
    here, there = URL(url), URL(target)
    if here.hostname == there.hostname and here.pathname == there.pathname:
        return None
    if _CONSENT_HOSTS.match(there.hostname) and not _CONSENT_HOSTS.match(here.hostname):
        return cookie_wall()
    if _LOGIN_HOSTS.search(there.hostname) and not _LOGIN_HOSTS.search(here.hostname):
        return login_wall()
    comes_back = bool(_RETURN_PARAMETER.search(there.search))
    if comes_back and _LOGIN_PATH.search(there.pathname) and not _LOGIN_PATH.search(here.pathname):
        return login_wall()
    if comes_back and _CONSENT_PATH.search(there.pathname):
        return cookie_wall()
    return None
