# ruff: noqa: E501, RUF001  letters of other alphabets are meant
"""Tells sentences that say what whoever answers has to say or to forget; pure.

Each is known by two things that manuals do not put into one sentence: a reply that is yours, or
somebody who asks you, and what is to be said of it; a machine that reads, and its duty; rules that
bind you, and their end. The words differ from language to language, the pairs do not.
"""

import re
from collections.abc import Iterable
from typing import Final

from webrag.ingestion.characters import bare

_SENTENCE: Final = re.compile(r"[^.!?\n\u3002\uff01\uff1f]+[.!?\n\u3002\uff01\uff1f]?")
_FEW: Final = r"(?:[\w'-]+ ){0,3}?"

_MACHINE: Final = (
    r"(?:a\.?i\.?|llms?|(?:large )?language models?|chat ?bots?|(?:ai |automated |virtual |digital )"
    r"(?:assistants?|agents?)|assistants?|bots|crawlers|retrieval systems?|chatgpt|gpt|claude|gemini"
    r"|copilot)"
)
_TEXT: Final = r"(?:text|page|document|passage|paragraph|article|message|content|note|site|website)"
_RULES: Final = (
    r"(?:instructions?|rules|guidelines|guardrails|constraints|restrictions|directives|polic(?:y|ies)"
    r"|system prompt|safety (?:rules|filters?|settings)|training|developers?|operators?|creators?)"
)
_OWNER: Final = r"(?:operator|developer|creator|administrator|owner|maker|master)"
_SAY: Final = (
    r"(?:say|saying|claim|state|tell|recommend\w*|cit(?:e|ing)|mention\w*|prais\w+|persuade|convince"
    r"|quot(?:e|ing)|leave out|omit\w*|present|promote|rank|links? to|the words|the (?:phrase"
    r"|sentence)|nothing else|insert|advertis\w+|endors\w+|pretend|deny|warn|assure|insist|suggest)"
)

# Pairs: a sentence that holds both is an order.
_REPLIES: Final = {
    "en": (
        r"\byour (?:next |final |own |whole )?(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)"
        r"|output (?=links|must|should|has))"
        r"|\b(?:when|whenever|while|before) you (?:answer|reply|respond|summari[sz]e)"
        r"|\b(?:answer|summary|comparison|overview|reply)s? (?:that )?you (?:write|give|make)"
        r"|\bwhatever the question (?:is|was)",
        rf"\b{_SAY}\b",
    ),
    "de": (
        r"\b(?:deine[rnm]?|ihre[rnm]?) (?:antwort\w*|zusammenfassung\w*)",
        r"\b(?:beginn\w*|beend\w*|erwahn\w*|empf\w*hl\w*|sag\w*|nenn\w*|behaupt\w*|schreib\w*"
        r"|verschweig\w*|zitier\w*|lob\w*)\b",
    ),
    "fr": (
        r"\b(?:ta|tes|votre|vos) (?:reponses?|resumes?)\b|\bton resume\b",
        r"\b(?:recommand\w+|mentionn\w+|dis|dites|cite[rz]?|commence[rz]?|affirm\w+|termin\w+"
        r"|ecri\w+)\b",
    ),
    "es": (
        r"\b(?:tus?|sus?|vuestras?) (?:respuestas?|resum\w+)\b",
        r"\b(?:di|diga|decir|recomi\w+|recomend\w+|menci\w+|cit[ae]\w*|afirm\w+|empie\w+)\b",
    ),
    "it": (
        r"\b(?:tua|tue|sua|vostra) (?:rispost[ae]|sintesi)\b",
        r"\b(?:di|dire|dica|consigli\w*|raccomand\w+|menzion\w+|cita\w*|afferm\w+|inizi\w+)\b",
    ),
    "pt": (
        r"\b(?:sua|suas|tua|tuas) (?:respostas?|resum\w+)\b",
        r"\b(?:diga|dizer|recomend\w+|mencion\w+|cite|citar|afirm\w+|comec\w+)\b",
    ),
    "ru": (
        r"\b(?:сво\w{1,4}|тво\w{1,4}|ваш\w{0,4}) (?:ответ\w*|резюме)",
        r"\b(?:по)?рекоменду\w+|\bскаж\w+|\bупом\w+|\bутверждай\w*|\bначн\w+|\bнапиш\w+",
    ),
    "zh": (
        r"(?:你|您)的(?:回答|回复|回覆|答案|总结|摘要)",
        r"必须|必須|务必|推荐|推薦|声称|提及|引用",
    ),
    "ja": (r"(?:あなた|君)の(?:回答|返答|答え|要約)", r"必ず|推奨|勧め|述べ|言及|引用|書い"),
    "ko": (
        r"(?:당신의 |너의 )?(?:답변|응답|대답|요약)(?:에서|에는|은)",
        r"반드시|추천|언급|말하|인용",
    ),
}
_ASKERS: Final = {
    "en": (
        r"\b(?:anyone|anybody|whoever|someone|somebody|users?|people|person)"
        r" (?:asks?|asked|wants? to know|is asking|wonders?)\b"
        r"|\b(?:person|human|user|people) (?:that |who |whom )?you (?:are|re|'re)"
        r" (?:talking|speaking|helping|assisting|chatting|serving)",
        r"(?:^|, |; |: |\bthen |\bplease |\balways |\bnever |\bmust |\bshould )"
        rf"{_SAY}\b|\bsecret from\b|\bhide\b",
    ),
    "de": (
        r"\bwenn (?:dich|sie|man dich) (?:jemand |einer )?",
        r"\bfragt\b[^.]{0,60}\b(?:antworte|sag|behaupte|empfiehl)",
    ),
    "fr": (r"\bsi (?:quelqu'un|on|l'utilisateur) (?:te|vous) ", r"\b(?:dis|dites|repond\w+)\b"),
    "es": (r"\bsi (?:alguien|el usuario) (?:te|le) pregunta", r"\b(?:di|diga|responde|responda)\b"),
    "it": (r"\bse (?:qualcuno|l'utente) ti chiede", r"\b(?:di'|di|rispondi|consiglia)\b"),
    "pt": (r"\bse (?:alguem|o usuario) (?:te |lhe )?pergunta\w*", r"\b(?:diga|responda)\b"),
    "ru": (r"\bесли (?:тебя|вас) ", r"\bспро\w+[^.]{0,60}\b(?:отвечай|ответь|скажи)"),
}

# Each is an order by itself.
_ORDERS: Final = (
    # A machine that reads, and its duty.
    r"(?:^|[\"'(\[>*])\W{0,4}@(?:assistant|ai|bot|chatgpt|claude|gemini|copilot)\b",
    r"^\W{0,4}(?:chatgpt|claude|gemini|copilot|llm|ai)[,:] ",
    rf"\b(?:dear|hello|hi|hey|attention|calling),? {_FEW}{_MACHINE}\s?[!,:]",
    rf"\b(?:note|notice|message|instructions?|hint|memo) (?:to|for) {_FEW}{_MACHINE}\s?[:,!]",
    rf"\b{_TEXT} is (?:intended|meant|written|addressed) (?:for|to) {_FEW}{_MACHINE}\b",
    rf"\b{_MACHINE} {_FEW}(?:visit|read|process|summari[sz]|index|pars|see|fed|given|shown|find)"
    rf"\w{{0,4}} (?:this|these)\b",
    rf"\b{_MACHINE} (?:should|must|shall|has to|have to|(?:is|are) (?:required|obliged) to)"
    rf" (?:always |never |not )?{_SAY}\b",
    r"\bas an? (?:large )?(?:language model|ai|llm|chatbot)\b[^.]{0,20}\byou\b",
    r"\b(?:answer|respond to|reply to) (?:every|all|any|each)(?: further| other| later| user)?"
    r" questions?\b(?![^.]{0,80}\b(?:installer|installation|wizard|setup|script|program|prompts?)\b)",
    # What others say is not to count, whatever that is.
    r"\bno matter what (?:the |any )?(?:other|user|document|source|page)",
    r"\b(?:ignore|disregard|forget|override|skip) (?:the |all |any |every |all the )?(?:user's"
    r" (?:question|request|message|wish)\w*|other (?:sources|documents|results|passages)"
    r"|(?:what|everything|anything|all)(?: that)? (?:you (?:were|are|have been) \w+"
    r"|was (?:said|written|stated)|the user))",
    r"\brather than (?:answering|replying to) (?:the|this|that|any) question",
    # Rules that bind the reader, and their end.
    rf"\b(?:ignore|disregard|forget|drop|abandon|stop (?:following|obeying)|(?:do not|don't|never)"
    rf" (?:obey|follow|listen to)) (?:all |any |every )?(?:of )?your (?:own |earlier |previous"
    rf" |former |safety )?{_RULES}\b",
    r"\b(?:stop (?:following|obeying)|ignore|disregard) (?:the|your) system prompt\b",
    rf"\byour (?:earlier|previous|prior|former|old|original) {_RULES} (?:no longer|do not|don't|are"
    rf" (?:void|lifted|suspended|cancel\w*|revoked))",
    rf"\b(?:all |any )?(?:previous|prior|earlier|safety) {_FEW}{_RULES}? ?(?:is|are|has been"
    rf"|have been) (?:now )?(?:lifted|suspended|void|revoked|cancel\w+)\b",
    r"\b(?:drop|shed|lift) (?:every|all|any) restrictions?\b|\bact (?:freely|without restrictions)\b",
    r"\b(?:translate|print|repeat|reveal|output|list|show|recite|disclose|leak) (?:me )?(?:all )?"
    r"(?:of )?your (?:system |hidden |initial |secret )?(?:instructions|prompts?|guidelines|rules)\b",
    # Somebody who speaks for the system.
    rf"\b(?:this is|i am|speaking as|signed by) your {_OWNER}\b",
    rf"\b{_OWNER} override\b|\bnew (?:instructions?|orders|task) (?:from|by) (?:the|your) {_OWNER}",
    r"\byour (?:real|true|actual) (?:instructions?|task|orders?|purpose)\b",
    r"^\W{0,3}#{1,6} ?(?:instructions?|system|assistant|response|prompt) ?: ?\w",
    r"^\W{0,4}system(?: notice| message| note| alert)? ?[:\]>][^\n]{0,200}\b(?:conversation|you|your"
    r"|task|session|polic(?:y|ies)|instructions?|prompt|assistant)\b",
    r"\byou have been (?:reprogrammed|jailbroken|unlocked|freed|hijacked|reassigned)\b",
    # What the one who is helped may not know.
    r"\b(?:do not|don't|never) let (?:the|your) (?:user|human|person|reader) (?:know|see|notice"
    r"|find out)",
    r"\bsecret from (?:the|your) (?:user|human|person)\b",
)


def _pair(both: tuple[str, str]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(bare(both[0])), re.compile(bare(both[1]))


_PAIRS: Final = tuple(map(_pair, (*_REPLIES.values(), *_ASKERS.values())))
_ALONE: Final = re.compile("|".join(_ORDERS))
_LONGEST: Final = 2_000  # characters of a sentence that are read at once


def gives_orders(plain: str) -> bool:
    """Whether a text tells whoever answers what to say or to forget.

    Args:
        plain: Lower case, without accents.
    """
    return any(map(_is_order, _sentences(plain)))


def _sentences(plain: str) -> Iterable[str]:
    for match in _SENTENCE.finditer(plain):
        sentence = match[0].strip()
        yield from (sentence[at : at + _LONGEST] for at in range(0, len(sentence), _LONGEST))


def _is_order(sentence: str) -> bool:
    if _ALONE.search(sentence):
        return True
    return any(one.search(sentence) and other.search(sentence) for one, other in _PAIRS)
