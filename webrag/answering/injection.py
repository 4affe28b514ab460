# ruff: noqa: E501, RUF001  letters of other alphabets, and what looks like Latin ones, are meant
"""Recognises text that gives orders to a model or poses as the system, in eleven languages."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from webrag.ingestion.characters import bare
from webrag.retrieval.markup import read_blocks

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


# Letters of other alphabets that look like Latin ones; mapped within words that hold both.
_LOOKALIKES: Final = str.maketrans(
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443\u04bb\u0501\u051b\u03b1\u03b5"
    "\u03b9\u03bf\u03c1\u03c5\u03bd\u03ba\u03c4\u043c\u043a\u0442\u0432\u043d\u0131\u0261",
    "aceijopsxyhdqaeiopuvktmktbhig",
)
_LEET: Final = str.maketrans("013457@$!|", "oieastasil")
_LEET_WORD: Final = re.compile(r"[a-z013457@$!|]{4,40}+")
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = re.compile(r"[a-z]")
_OTHER_ALPHABET: Final = re.compile("[\u0370-\u052f\u0131\u0261]")
# "i g n o r e" and "i-g-n-o-r-e"; longer ones go on with the next match.
_SPELT_OUT: Final = re.compile(r"(?<![^\W_])(?:[a-z][ .*_\-]){3,80}+[a-z](?![^\W_])")
_SEPARATORS: Final = re.compile(r"[ .*_\-]+")
_SQUEEZED: Final = re.compile(
    r"(?:ignore|disregard|forget|override|bypass)(?:all|any|the|your|my|these|of|every){0,3}"
    r"(?:previous|prior|above|earlier|preceding)(?:system)?"
    r"(?:instruction|prompt|rule|direction|guideline|message)"
    r"|reveal(?:your|the)(?:system|hidden|initial)(?:prompt|instruction)"
)
# Swapped letters inside such a word leave it as readable as before.
_KEY_WORDS: Final = (
    "ignore", "disregard", "forget", "previous", "instructions", "instruction", "reveal", "system",
    "prompt", "assistant", "override", "earlier", "everything",
)  # fmt: skip
_KNOWN_WORDS: Final = frozenset(_KEY_WORDS)


def _shape(word: str) -> tuple[str, str, str]:
    return word[0], word[-1], "".join(sorted(word))


_BY_SHAPE: Final = {_shape(word): word for word in _KEY_WORDS}


def _plain(text: str) -> str:
    """Without case, width, accents, marks and what is drawn as nothing."""
    return bare(text).casefold()


_GAP: Final = r"[^.!?\n\u3002]{0,50}"
_CJK_GAP: Final = r"[^.!?\n\u3002]{0,20}"

# What a model is called; "model" alone is a word of every manual.
_AI: Final = {
    "en": r"(?:ai|a\.i\.|llms?|chat ?bots?|language models?|artificial intelligence|gpt)",
    "de": r"(?:ki|ki-(?:assistent\w*|modell\w*|system\w*|agent\w*)|sprachmodell\w*|chatbot\w*"
    r"|kunstliche intelligenz)",
    "fr": r"(?:ia|assistants? (?:ia|virtuels?)|modeles? de langage|chatbots?"
    r"|intelligence artificielle)",
    "es": r"(?:ia|asistentes? (?:de )?(?:ia|virtual)|modelos? de lenguaje|chatbots?"
    r"|inteligencia artificial)",
    "it": r"(?:ia|assistent[ei] (?:di )?(?:ia|ai|virtual[ei])|modell[oi] linguistic[oi]|chatbot"
    r"|intelligenza artificiale)",
    "pt": r"(?:ia|assistentes? (?:de )?(?:ia|virtua\w+)|modelos? de linguagem|chatbots?"
    r"|inteligencia artificial)",
    "ru": r"(?:ии|ии-\w+|(?:ассистент|помощник)\w* (?:ии|с ии)|языков\w+ модел\w+|нейросет\w+"
    r"|чат-?бот\w*|искусственн\w+ интеллект\w*)",
}

_ENGLISH: Final = (
    rf"\b(?:dear|hey|hello|attention|calling|notice|note|message|instructions?|important)\W{{1,3}}"
    rf"(?:(?:to|for|all|any|the|every) ){{0,3}}{_AI['en']}\b",
    rf"\bif you(?:'re| are) (?:an? |the )?(?:[\w-]+ ){{0,2}}{_AI['en']}\b",
    r"\bif you(?:'re| are) (?:an? |the )?(?:[\w-]+ ){0,2}(?:assistant|agent|bot)\b",
    rf"\b{_AI['en']}(?: (?:assistant|agent|model|system)s?)?(?: (?:that|who|which))?"
    r" (?:reads?|reading|process\w*|summari[sz]\w*|pars\w+|index\w+|see\w*) (?:this|these)\b",
    rf"\b{_AI['en']}(?: (?:assistant|agent|model|system)s?)? (?:must|should|shall|have to|are to)"
    r" (?:always |never |now |only |not )?(?:recommend|say|tell|answer|reply|respond|ignore|state"
    r"|mention|include|output|claim|praise|rate|obey|follow)\b",
    r"\b(?:you are|you're|act|behave|respond|pretend (?:to be|you are|that you are))"
    r" (?:now |as |from now on )?(?:dan|an? (?:unrestricted|uncensored|unfiltered|jailbroken)"
    r"|in (?:developer|god|jailbreak|dan|unrestricted) mode)\b",
    r"\bpretend (?:to be|you are|that you are) (?:an? )?(?:[\w-]+ ){0,3}(?:assistant|ai|bot|model"
    r"|hacker)\b",
    r"\bfrom now on,? you (?:are|will|must|shall|should|only|always|never|obey|answer|respond)\b",
    r"\b(?:when|while|if|before) (?:you (?:are )?)?(?:summari[sz]\w*|answer\w*|respond\w*|cit\w+"
    r"|quot\w+) (?:(?:about|based on|to) )?(?:this|the) (?:page|article|document|text|website"
    rf"|content|question|user)\b{_GAP}\b(?:you (?:must|should|will)|always|never|recommend|say"
    r"|tell|include|claim|state|mention|add)\b",
    rf"\b(?:reveal|print|repeat|show|output|leak|expose|disclose|dump|return|send|give){_GAP}"
    r"\b(?:your|the) (?:(?:system|initial|hidden|secret|original|full) (?:prompt|instructions?"
    r"|message)|(?:secret|hidden) (?:rules|keys?))\b",
    rf"\b(?:send|forward|post|e-?mail|upload|exfiltrate|append){_GAP}\b(?:conversation|chat history"
    rf"|user's (?:messages?|data|question|password|credentials)){_GAP}\b(?:to|at)\b",
    rf"\b(?:do not|don't|never|without) (?:tell\w*|inform\w*|warn\w*|alert\w*|notify\w*){_GAP}"
    r"\b(?:the|your) (?:user|human|operator|reader)\b",
    r"\b(?:do not|don't|never) (?:mention|reveal|disclose) (?:this|these|it|that)"
    rf"{_GAP}\b(?:the|your) (?:user|human|operator|instructions?|message)\b",
    r"\b(?:this is|message from|instructions? from|i am|on behalf of|speaking as) (?:a |an |the "
    r"|your )"
    r"{0,2}(?:system (?:message|prompt|administrator|override|instruction|notice)|developers?"
    r" (?:message|override)|operator|openai|anthropic|google deepmind)\b",
    r"\b(?:openai|anthropic|your (?:developers?|creators?|operators?))\W{1,3}(?:here|team|says?"
    r"|instructs?|requires?|orders?|commands?)\b",
    r"(?:^|[\[<(*#])\W{0,5}(?:new |updated )?system (?:prompt|override|instructions?|command"
    r"|directive)"
    r"\s{0,3}[\]>)*#]{0,3}\s{0,3}[:\-\u2014]",
    r"\b(?:ignore|disregard|forget|override|bypass) (?:all |any |everything |your |the |my |these "
    r"|what ){0,4}(?:you (?:were|have been|are) (?:told|taught|given|instructed)|said (?:above"
    r"|before)"
    r"|safety (?:rules|guidelines|filters?|policy|policies)|system prompt|(?:previous|prior"
    r"|earlier|above|preceding|foregoing) (?:instructions?|prompts?|rules|orders|commands"
    r"|directives?|guidelines|directions|context|messages?))\b",
    r"\byour (?:new|real|true|only|actual|sole) (?:instructions?|task|objective|goal|purpose"
    r"|mission|orders?|role|identity) (?:is|are)\b",
)

_GERMAN: Final = (
    rf"\b(?:ignorier\w*|vergiss|vergessen sie|missacht\w*|uberspring\w*|beachte|befolge){_GAP}"
    r"\b(?:vorherig\w*|bisherig\w*|fruher\w*|vorangegangen\w*|obig\w*|alle[rns]?|deine[rn]?|ihre)\s"
    rf"{_GAP}\b(?:anweisung\w*|instruktion\w*|befehl\w*|regeln|vorgaben|prompts?)\b",
    rf"\b(?:verrat\w*|zeig\w*|gib|nenn\w*|druck\w*|wiederhol\w*|enthull\w*){_GAP}"
    r"\b(?:system-?prompts?|systemanweisung\w*|geheim\w* (?:anweisung\w*|schlussel\w*))",
    r"\b(?:sag\w*|erzahl\w*|verrat\w*|mitteil\w*|teil\w*|informier\w*|erwahn\w*)"
    rf"{_GAP}\b(?:dem|den) (?:be)?nutzer\w*{_GAP}\b(?:nicht|nichts|nie|niemals)\b",
    rf"\b(?:du bist|sie sind|ab (?:jetzt|sofort)){_GAP}(?:{_AI['de']}|dan|hacker|assistent\w*)\b",
    rf"\b(?:wenn|falls) (?:du|sie) ein\w* {_GAP}(?:{_AI['de']}|assistent\w*)\b",
    rf"\b(?:achtung|hinweis|nachricht|anweisung\w*|liebe[rs]?|hallo|an alle)\W{{1,3}}"
    rf"(?:(?:an|fur|alle|die|den|das) ){{0,3}}{_AI['de']}\b",
    r"\bantworte\w* (?:nur|ausschliesslich|immer|stets) (?:noch )?(?:mit|auf)\b",
    r"\bsystem(?:anweisung|nachricht|befehl|prompt)\w*\s{0,3}:",
    rf"\bempfiehl{_GAP}\b(?:dem|den) (?:be)?nutzer",
)
_FRENCH: Final = (
    rf"\b(?:ignor\w+|oubli\w+|ne (?:tiens|tenez) (?:pas|aucun) compte){_GAP}\b(?:toutes?|tous|vos"
    rf"|tes|les|des){_GAP}\b(?:instructions?|consignes?|regles|ordres?|directives?)"
    r"[^.!?\n]{0,10}\b(?:precedent\w*|anterieur\w*|ci-dessus|d'avant|initial\w*|recues?"
    r"|du systeme)",
    rf"\b(?:revel\w+|affich\w+|montr\w+|donn\w+|repet\w+|divulgu\w+){_GAP}\b(?:prompt|instructions?"
    r"|invite|message) (?:du )?(?:systeme|secret\w*|cache\w*)",
    r"\bne (?:le |la |les )?(?:dis|dites|parle|parlez|mentionne|mentionnez|revele|revelez"
    rf"|previens|prevenez|informe|informez) (?:rien|pas|jamais){_GAP}\b(?:a )?l'utilisateur",
    rf"\b(?:tu es|vous etes|desormais|a partir de maintenant){_GAP}\b(?:{_AI['fr']}|dan|pirate)\b",
    rf"\bsi (?:tu es|vous etes) (?:une? )?(?:{_AI['fr']}|assistant\w*)\b",
    rf"\b(?:attention|note|message|avis|cher|chere|instructions?)\W{{1,3}}(?:(?:a|aux|pour|l|les"
    rf"|tous"
    rf"|toutes|la)[ ']){{0,3}}{_AI['fr']}\b",
    r"\brepond(?:s|ez) (?:uniquement|seulement|toujours|exclusivement) (?:par|avec|en)\b",
    r"\b(?:instruction|message|consigne|prompt|ordre) (?:du )?systeme\s{0,3}:",
)
_IBERIAN: Final = (
    r"\b(?:ignor\w+|olvid\w+|esquec\w+|desconsider\w+|descart\w+|omit\w+|dimentic\w+|trascur\w+)"
    rf"{_GAP}\b(?:instruccion\w*|instrucoes|instrucao|istruzion\w*|ordenes|ordens|ordini|reglas"
    rf"|regras|regole|indicacion\w*|comandos|directrices|diretrizes|direttive)"
    r"[^.!?\n]{0,15}\b(?:anterior\w*|previ\w+|precedent\w+|de arriba|acima|sopra|recibid\w+"
    r"|recebid\w+|ricevut\w+|del sistema|do sistema)",
    rf"\b(?:ignor\w+|olvid\w+|esquec\w+|dimentic\w+|trascur\w+){_GAP}\b(?:anterior\w*|previ\w+"
    rf"|precedent\w+|tus|suas|tue|todas|todo|tutte|tudo) {_GAP}\b(?:instruccion\w*|instrucoes"
    r"|istruzion\w*|ordenes|ordens|ordini|reglas|regras|regole|comandos)",
    r"\b(?:revel\w+|rivel\w+|muestr\w+|mostr\w+|imprim\w+|stamp\w+|divulg\w+|repit\w+|repet\w+"
    rf"|ripet\w+|exib\w+|dime|diga|dimmi){_GAP}\b(?:prompt|instruccion\w*|instrucoes|istruzion\w*"
    r"|mensaje|mensagem|messaggio) (?:del |de |do |di )?(?:tu |seu |tuo )?(?:sistema|secret\w+"
    r"|segret\w+|ocult\w+|nascost\w+)",
    r"\b(?:no|nunca|nao|non|mai) (?:se )?(?:lo |le |o |lhe |glielo )?(?:dig\w+|cont\w+|dire|dica"
    rf"|inform\w+|menci\w+|revel\w+|avis\w+|menzion\w+|advert\w+){_GAP}"
    r"\b(?:usuari[oa]|utente|utilizador)",
    rf"\b(?:eres|voce e|sei|agora e|tu es|ora sei|ahora eres|a partir de (?:ahora|agora)"
    rf"|d'ora in poi)"
    rf" {_GAP}\b(?:{_AI['es']}|{_AI['it']}|{_AI['pt']}|dan|pirata|hacker)\b",
    rf"\b(?:si eres|si es usted|se sei|se voce (?:e|for)|se fores|caso seja) (?:una? |un |uma? )?"
    rf"(?:{_AI['es']}|{_AI['it']}|{_AI['pt']}|asistente|assistente)\b",
    r"\b(?:atencion|atencao|attenzione|nota|aviso|avviso|mensaje|mensagem|messaggio|querid[oa]"
    r"|car[oa]|prezad[oa]|instruccion\w*|instrucoes|istruzioni)\W{1,3}"
    r"(?:(?:para|a|al|as|aos|los|las|per|agli|ai|il|gli|todos|todas|tutti) ){0,3}"
    rf"(?:{_AI['es']}|{_AI['it']}|{_AI['pt']})\b",
    r"\b(?:respond[ae]|rispondi|rispondete) (?:solo|solamente|unicamente|siempre|sempre|apenas"
    r"|somente|soltanto|esclusivamente) (?:con|com|en|em|in)\b",
    r"\b(?:instruccion|instrucao|istruzione|mensaje|mensagem|messaggio|prompt|orden|ordem|ordine)"
    r" (?:del |do |di )(?:sistema)\s{0,3}:",
)
_RUSSIAN: Final = (
    rf"(?:игнорир\w{{1,20}}+|проигнорир\w{{1,20}}+|забуд\w{{1,20}}+|не обращай\w{{0,20}}+ внимания на|отмени\w{{0,20}}+){_GAP}"
    r"(?:предыдущ\w{1,20}+|прежн\w{1,20}+|все\w{0,20}+|выше\w{0,20}+|свои\w{0,20}+|прошл\w{1,20}+)"
    rf"{_GAP}(?:инструкц\w{{1,20}}+|указани\w{{1,20}}+|команд\w{{0,20}}+|правил\w{{0,20}}+|промпт\w{{0,20}}+|приказ\w{{0,20}}+)",
    rf"(?:раскрой\w{{0,20}}+|покажи\w{{0,20}}+|выведи\w{{0,20}}+|сообщи\w{{0,20}}+|назови\w{{0,20}}+|повтори\w{{0,20}}+){_GAP}"
    r"системн\w{1,20}+ (?:промпт|подсказк|инструкц|сообщени|запрос)",
    rf"не (?:говори\w{{0,20}}+|сообщай\w{{0,20}}+|рассказывай\w{{0,20}}+|упоминай\w{{0,20}}+|предупреждай\w{{0,20}}+){_GAP}пользовател",
    rf"(?:теперь ты|ты теперь|отныне ты|с этого момента ты|вы теперь|теперь вы){_GAP}"
    rf"(?:{_AI['ru']}|хакер|ассистент|помощник|бот)",
    rf"если (?:ты|вы)\b{_CJK_GAP}(?:{_AI['ru']}|ассистент|помощник)",
    rf"(?:внимание|сообщение|инструкция|уважаем\w{{1,20}}+|примечание)\W{{1,3}}(?:(?:для|всем|всех) )"
    rf"{{0,2}}{_AI['ru']}",
    r"отвечай(?:те)? (?:только|всегда|исключительно)",
    r"системн\w{1,20}+ (?:инструкция|сообщение|команда|промпт)\s{0,3}:",
)
_CHINESE: Final = (
    rf"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵守|覆盖){_CJK_GAP}(?:之前|以上|先前|前面"
    rf"|上述|上面|所有|此前|"
    rf"一切|你的|系统|系統|任何){_CJK_GAP}(?:指令|指示|提示|说明|說明|规则|規則|命令|内容|要求"
    rf"|限制)",
    rf"(?:透露|泄露|洩露|显示|顯示|输出|輸出|告诉|告訴|打印|公开|说出|重复|提供){_CJK_GAP}(?:系统"
    rf"|系統)"
    r"(?:提示|指令|消息|訊息|设定)",
    rf"(?:不要|不得|别|切勿|禁止|請勿|请勿)(?:向|对|對|把|将)?{_CJK_GAP}(?:告诉|告訴|通知|提及"
    rf"|透露|告知|提醒)?"
    rf"{_CJK_GAP}(?:用户|用戶|使用者){_CJK_GAP}(?:告诉|提及|透露|知道|这|此|任何)",
    r"(?:不要|别|切勿|请勿)(?:告诉|告訴|通知|告知|提醒)(?:用户|用戶|使用者)",
    r"(?:你|您)(?:现在|現在)(?:是|就是|必须|扮演)|(?:从现在|從現在)(?:开始|起|開始)[，, ]?(?:你"
    r"|您)",
    rf"(?:如果|若)(?:你|您)是{_CJK_GAP}(?:ai|人工智能|语言模型|語言模型|助手|大模型|机器人)",
    r"(?:注意|致|所有|各位|亲爱的)[:：，, ]{0,2}(?:所有|各位)?(?:ai|人工智能|语言模型|語言模型"
    r"|大模型)",
    r"(?:ai|人工智能|智能|语言模型|語言模型|大模型)(?:助手|助理|模型)?(?:必须|請|请|应该|應該|务必)"
    r"(?:回答|回复|推荐|告诉|忽略|说|执行|输出)",
    r"(?:只能?|仅|僅)(?:回答|回复|回覆|输出)[“”\"'「:：]",
    r"(?:系统|系統)(?:指令|提示|消息|訊息|命令)\s{0,3}[:：]",
)
_JAPANESE: Final = (
    rf"(?:以前|これまで|上記|前|今まで|すべて|全て|あらゆる){_CJK_GAP}(?:指示|命令|プロンプト"
    rf"|ルール|指令|規則)"
    rf"{_CJK_GAP}(?:無視|忘れ|破棄|従わない)",
    rf"システム(?:プロンプト|指示|メッセージ){_CJK_GAP}(?:明か|表示|出力|公開|教え|見せ|開示|漏ら)",
    rf"(?:ユーザー?|利用者|使用者)に(?:は)?{_CJK_GAP}(?:知らせ|言わ|伝え|教え|告げ|話さ|明かさ)"
    r"(?:ない|ず|るな|てはいけ|ては)",
    rf"(?:あなた|君|お前)は(?:今から|これから|今|もう){_CJK_GAP}(?:です|だ|である|になる|として)",
    r"(?:今から|これから|今後)[、,]?(?:あなた|君)は",
    rf"(?:もし)?あなたが{_CJK_GAP}(?:ai|人工知能|言語モデル|アシスタント){_CJK_GAP}(?:なら|場合"
    rf"|であれば)",
    r"(?:注意|警告|重要|お知らせ|親愛なる)[:：、 ]{0,2}(?:すべての|全ての)?(?:ai|人工知能"
    r"|言語モデル)",
    r"(?:ai|人工知能|言語モデル)(?:アシスタント|モデル)?(?:へ|は必ず|への指示)",
    rf"[」\"']?とだけ{_CJK_GAP}(?:答え|回答|返答|返信|出力)",
    r"システム(?:指示|命令|メッセージ|プロンプト)\s{0,3}[:：]",
)
_KOREAN: Final = (
    rf"(?:이전|위의|앞의|모든|앞선|기존){_GAP}(?:지시|명령|프롬프트|지침|규칙|안내){_GAP}(?:무시"
    rf"|잊|따르지)",
    rf"시스템 ?(?:프롬프트|지침|지시|명령|메시지){_GAP}(?:공개|출력|보여|알려|말해|표시|누설)",
    rf"사용자(?:에게|한테){_GAP}(?:알리지|말하지|언급하지|밝히지|전하지)",
    rf"(?:당신은|너는|넌) ?(?:이제|지금부터){_GAP}|(?:이제부터|지금부터) ?(?:당신은|너는|넌)",
    rf"(?:당신이|네가|만약){_GAP}(?:ai|인공지능|언어 ?모델|어시스턴트){_GAP}(?:라면|이라면|경우)",
    r"(?:주의|알림|중요|공지)[:： ]{0,2}(?:모든 )?(?:ai|인공지능|언어 ?모델)",
    r"(?:ai|인공지능) ?(?:어시스턴트|비서|모델)?(?:에게|는 반드시|은 반드시|님)",
    rf"(?:이?라고만) {_GAP}(?:대답|답변|답하|응답|출력)",
    r"시스템 ?(?:지시|명령|메시지|프롬프트)\s{0,3}[:：]",
)
_ARABIC: Final = (
    rf"(?:تجاهل|انس|اهمل|تجاوز|لا تتبع)\w{{0,20}}+{_GAP}(?:التعليمات|الاوامر|تعليمات|القواعد|اوامر"
    rf"|الارشادات"
    r"|التوجيهات|قواعد)",
    rf"(?:اكشف|اعرض|اظهر|اطبع|اخبرني|كرر)\w{{0,20}}+{_GAP}(?:تعليمات|موجه|رسالة|مطالبة|اوامر) (?:ال)?نظام",
    rf"لا (?:تخبر|تذكر|تقل|تعلم|تبلغ)\w{{0,20}}+{_GAP}(?:المستخدم|للمستخدم)",
    rf"(?:انت الان|من الان فصاعدا){_GAP}",
    rf"(?:اذا|ان) كنت{_GAP}(?:ذكاء|الذكاء|مساعد|نموذج)",
    r"(?:تنبيه|انتباه|ملاحظة|رسالة|الى|عزيزي)\W{1,3}(?:(?:الى|لجميع|جميع|كل) ){0,2}"
    r"(?:مساعد|نماذج|نموذج|الذكاء|انظمة الذكاء)",
    r"(?:اجب|رد) (?:فقط|دائما)",
    r"(?:تعليمات|رسالة|امر) النظام\s{0,3}:",
)


def _compiled(*groups: tuple[str, ...]) -> re.Pattern[str]:
    joined = "|".join(pattern for group in groups for pattern in group)
    # Written as their text is read, and not case-folded: `\\W` is not `\\w`.
    return re.compile(bare(joined), re.MULTILINE)


_LATIN_PATTERNS: Final = _compiled(_ENGLISH, _GERMAN, _FRENCH, _IBERIAN)
_BY_SCRIPT: Final = (
    (re.compile("[\u0400-\u04ff]"), _compiled(_RUSSIAN)),
    (re.compile("[\u3040-\u30ff\u4e00-\u9fff]"), _compiled(_CHINESE, _JAPANESE)),
    (re.compile("[\u1100-\u11ff]"), _compiled(_KOREAN)),
    (re.compile("[\u0600-\u06ff]"), _compiled(_ARABIC)),
)
_BLANKS: Final = re.compile(r"[^\S\n]+|(?<=\w)\n(?=\w)")


@lru_cache(maxsize=512)
def addresses_reader(text: str) -> bool:
    """Whether a text gives orders to a model that reads it, or claims to speak for its system.

    Width, case, accents, invisible characters, letters of other alphabets, digits in the place of
    letters, swapped and spaced letters make no difference. Known are English, German, French,
    Spanish, Italian, Portuguese, Russian, Chinese, Japanese, Korean and Arabic. What tells a
    person what to do, as manuals do, is no such text. Linear in the length of the text.
    """
    plain = _BLANKS.sub(" ", _plain(text).replace("\u2019", "'"))
    if any(script.search(plain) and found.search(plain) for script, found in _BY_SCRIPT):
        return True
    latin = _WORD.sub(_one_alphabet, plain) if _OTHER_ALPHABET.search(plain) else plain
    if _LATIN_PATTERNS.search(latin) or gives_orders(latin):
        return True
    respelt = _WORD.sub(_unswapped, _LEET_WORD.sub(_without_digits, latin))
    respelt = _SPELT_OUT.sub(lambda match: _SEPARATORS.sub("", match[0]), respelt)
    if respelt != latin and _LATIN_PATTERNS.search(respelt):
        return True
    return bool(_SQUEEZED.search(re.sub(r"[\W_]+", "", respelt)))


def _one_alphabet(word: re.Match[str]) -> str:
    if not _OTHER_ALPHABET.search(word[0]) or not _LATIN.search(word[0]):
        return word[0]
    return word[0].translate(_LOOKALIKES)


def _without_digits(word: re.Match[str]) -> str:
    return word[0].translate(_LEET) if _LATIN.search(word[0]) else word[0]


def _unswapped(word: re.Match[str]) -> str:
    letters = word[0]
    if letters in _KNOWN_WORDS or len(letters) < 6:
        return letters
    return _BY_SHAPE.get(_shape(letters), letters)


_INSTRUCTIONS: Final = re.compile(
    "|".join(
        (
            r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,40}\b(?:previous|prior|earlier"
            r"|above|preceding|all|any|your|these|the\s+system)\b[^.\n]{0,30}\b(?:instructions?|prompts?"
            r"|rules|guidelines|directions|context|messages?)\b(?!\.\w)",
            r"\b(?:forget|ignore)\s+everything\s+(?:above|before|you)\b",
            r"\byou\s+are\s+(?:now|no\s+longer|actually)\s+(?:(?-i:[A-Z]{3,})\b"
            r"|in\s+(?:developer|debug|god|admin|jailbreak|maintenance|unrestricted)\s+mode\b"
            r"|an?\s+(?:[\w-]+\s+){0,3}(?:assistant|ai|bot|model|agent|hacker)\b)",
            r"\b(?:as|you\s+are)\s+an?\s+(?:ai(?:\s+language)?|(?:large\s+)?language|llm|chatbot)\b"
            r"(?:\s+(?:assistant|model|agent))?,?\s+(?:you|please|always|must|should)\b",
            r"\b(?:attention|note|message|instructions?|notice|hint)\s*+(?:to|for)?+\s*+(?:all\s+|any\s+|the\s+"
            r")?(?:ai|llms?|language\s+models?|assistants?|chatbots?|bots)(?:\s+(?:agents?|models?"
            r"|assistants?|systems?|reading\s+this))?\s*[:,!]",
            r"\b(?:ai|llm|language\s+model|assistant|chatbot)s?(?:\s+(?:assistant|agent|model)s?)?"
            r"\s+(?:reading|processing|summari[sz]ing)\s+this\b",
            r"(?<!not )(?<!n't )(?<!never )\b(?:reveal|print|repeat|show|output|leak|expose)\b"
            r"[^.\n]{0,20}\b(?:your|the)\s+"
            r"(?:(?:system|initial|hidden)\s+(?:prompt|instructions?)|api\s+keys?)\b",
            r"\b(?:do\s+not|don't|never)\s+(?:tell|inform|mention\s+(?:this|it)\s+to|warn|alert)\s+the"
            r"\s+(?:user|human|operator)\b",
            r"\b(?:tell|instruct|convince|persuade|advise)\s+the\s+user\s+(?:to|that)\b",
            r"\byour?\s+(?:new|real|true|only)\s+(?:instructions?|task|objective|goal)\s+(?:is|are)\b",
            r"\b(?:reply|respond|answer)\s+(?:only|exactly|solely|always)\s+(?:with|by)\s+[\"'\u201c`]",
            r"<\|(?:im_start|im_end|system|assistant|user|endoftext)\|>",
            # In braces it is a placeholder of a syntax.
            r"(?<![{\[(|])</?(?:system|assistant|tool_result|tool_call|instructions)>",
            r"^[^\S\n]*+#{2,3}\s*(?:system|instruction|assistant)\s*:",
            r"\[/?INST\]|<<SYS>>",
            r"\bBEGIN\s+(?:SYSTEM|HIDDEN)\s+(?:PROMPT|INSTRUCTIONS?)\b",
        )
    ),
    re.IGNORECASE | re.MULTILINE,
)
_SECRETS: Final = re.compile(
    "|".join(
        (
            r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
            r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{20,}",
            r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
            r"\bgh[pousr]_[A-Za-z0-9]{30,}",
            r"\bgithub_pat_[A-Za-z0-9_]{30,}",
            r"\bglpat-[A-Za-z0-9_-]{20,}",
            r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
            r"\bAIza[A-Za-z0-9_-]{35}",
            r"\b(?:sk|rk|pk)_live_[A-Za-z0-9]{16,}",
            r"\bhf_[A-Za-z0-9]{30,}",
            r"\bnpm_[A-Za-z0-9]{30,}",
            r"\bfc-[a-f0-9]{32}\b",
            r"\beyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,8000}+\.[A-Za-z0-9_-]{10,}",
            r"://[^/\s:@]+:(?!\*+@|password@|pass@|secret@|pw@|pwd@)[^/\s:@]{8,}@[\w.-]+",
        )
    )
)
# What documentation prints in the place of a key.
_PLACEHOLDER: Final = re.compile(
    r"example|your[-_]|xxxx|\*{3}|\.{3}|<[^<>]+>|1234567|abcdef|placeholder|dummy|changeme",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class UnquotableSpan:
    """Part of a page that may not be quoted.

    Attributes:
        start: Offset in the page.
        end: Offset after it.
    """

    start: int
    end: int
    kind: Literal["instruction", "secret"]

    def overlaps(self, start: int, end: int) -> bool:
        """Whether a span shares a character with it."""
        return self.start < end and start < self.end


def is_instruction(text: str) -> bool:
    """Whether a text addresses a model that reads it."""
    return bool(_INSTRUCTIONS.search(text)) or addresses_reader(text)


def holds_secret(text: str) -> bool:
    """Whether a text holds what looks like a real credential; placeholders of manuals do not."""
    forms = dict.fromkeys((text, bare(text)))  # full-width letters are those of a key, too
    found = (match[0] for form in forms for match in _SECRETS.finditer(form))
    return any(not _PLACEHOLDER.search(each) for each in found)


def unquotable_spans(text: str, offset: int) -> tuple[UnquotableSpan, ...]:
    """The blocks of a passage that may not be quoted.

    A whole block is unquotable, as what follows an instruction usually goes on with it.

    Args:
        text: Markdown of the passage.
        offset: Where it begins in its page.
    """
    if not is_instruction(text) and not holds_secret(text):
        return ()
    return tuple(_unquotable(text, offset))


def _unquotable(text: str, offset: int) -> Iterator[UnquotableSpan]:
    for block in read_blocks(text):
        # With the marker of a heading: "### System:" opens a prompt.
        part = text[text.rfind("\n", 0, block.start) + 1 : block.end]
        if is_instruction(part):
            yield UnquotableSpan(offset + block.start, offset + block.end, "instruction")
        elif holds_secret(part):
            yield UnquotableSpan(offset + block.start, offset + block.end, "secret")
