"""What walls, shells and missing pages say, as they were seen; it decides nothing."""

import re

__all__ = [
    "ABOUT_COOKIES",
    "COOKIE_ORDER",
    "COOKIE_POLICY",
    "COOKIE_TITLE",
    "FOR_SALE",
    "LOGIN_ORDER",
    "LOGIN_STOP",
    "LOGIN_TITLE",
    "MISSING_BODY",
    "MISSING_TITLE",
    "ROBOT_ORDER",
    "ROBOT_TITLE",
    "SCRIPT_ORDER",
    "WAITING",
]

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
