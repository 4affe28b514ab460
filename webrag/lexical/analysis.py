"""Turns text into the terms BM25 counts, the same way for pages and for questions.

Knows nothing of scores or storage. No language has to be named: the script of each word decides
how it is stemmed, and its function words in which language a question is put.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import Stemmer

_COMMON = """
a an and are as at be been being but by for from had has have having he her hers him his i if
in into is it its me my of on or our ours she so such than that the their theirs them then
there these they this those to too us was we were will with you your yours
"""
_SMALL_TALK = """
about actually again all also am another any anyone anything around ask asked away because best
can cannot can't could couldn't did didn't different do does doesn't doing don't done each else
ever every everything exactly example explain find get gets getting give gives given go goes
going gonna got happen happens has hasn't haven't help hey hi how how's however i'd i'll i'm
i've instead isn't it's just kind know let let's like likes look looking lot made make makes
making many may maybe me mean means might mine more most much must need needed needs no not now
one only onto other others ought out over please possible question quite really right same say
says see seem seems shall should show someone something somehow sort still suppose supposed sure
tell thank thanks that's thing things think those though through trying try tries up use used
uses using very want wanted wants wasn't way ways well what what's whatever when where whether
which while who who's whom whose why won't work works would wouldn't yes yet you'd you'll you're
"""

INDEX_STOPWORDS = frozenset(_COMMON.split())
"""Left out of the index, so that a chunk's length counts words that carry meaning."""

QUESTION_STOPWORDS = INDEX_STOPWORDS | frozenset(_SMALL_TALK.split())
"""Left out of a question, whose small talk would otherwise outweigh its subject."""

# Articles, pronouns, prepositions, auxiliaries and the words that ask, without accents. What
# English has as well ("die", "man", "come") comes after the bar: it names no language.
_WORDS: Final = {
    "german": """
        aber alle allem aller alles als auch auf aus bei beim bis da dabei dafur daher damit dann
        daran darauf daraus darf darin das dass davon dazu dem denn der dich dir doch du durch
        durfen durfte ein eine einem einen einer eines er erst es etwa etwas euch fur geben genau
        gibt habe haben hatte heisst ich ihm ihn ihr ihre ihrem ihren ihrer im ins ist jede jedem
        jeden jeder jedes jetzt kann kannst kein keine keinem keinen keiner konnen konnte mein
        meine meinem meinen meiner mich mir mit muss mussen musste nach nein nicht noch nur ob ohne
        sehr sein seinem seinen seiner seit sich sie sind soll sollen sollte um und uns unter viel
        viele vielen vom vor wann warum welche welchem welchen welcher welches wem wen wenn wer
        werde werden wie wieso wieviel wieviele wird wo wofur woher wohin womit woran worauf woraus
        worin wozu wurde wurden zu zum zur zwischen | allen also am an bin den des die hat hier in
        man oder seine so uber von war waren was will""",
    "french": """
        alors au aux avait avec avoir ce cela celle celles celui ces cet cette ceux chaque
        combien dans de doit doivent donc du elles en est et etaient etait ete etre eu eux faire
        fait faut ici il ils je la laquelle le lequel les lesquels leur leurs lorsque lui ma mes
        moi mon ne nos notre nous ont ou parce pas peut peuvent peux pour pourquoi pouvoir puis
        puisque qu quand que quel quelle quelles quels qui quoi sa se ses sont sous suis sur ta
        te tes toi toujours tous toute toutes tres trop tu un une va vers veux vos votre vous y
        | a as comme comment des dont elle fut on par pendant plus sans sera si son tout""",
    "spanish": """
        al algun alguna antes aquel asi aun cada cual cuales cuando cuanta cuantas cuanto
        cuantos de del desde donde dos el ellas ellos en entre eran eres es esa ese eso estaba
        estaban estan estar estas esto estos estoy fue fueron ha haber habia habian hace hacer
        hacia hago han hasta hay la las le les lo los mi mis mucho muchos muy ni nos nosotros o
        otra otras otro otros pero poco por porque puede pueden puedo pues que quien quienes se
        segun si sido siempre sobre son su sus tambien tanto te tengo ti tiene tienen tienes
        toda todas todos tu tus un una unas uno unos usted y ya yo | algo ante como con contra
        ella era esta este mas me no para ser sin todo""",
    "italian": """
        agli ai al alla alle allo anche avere aveva c che ci co cosa cui da dagli dai dal dalla
        dalle dei del della delle dello di e ed erano essere fa fatto fra gli ha hanno ho il io
        la le li lo loro ma mi mia mio ne negli nei nel nella nelle nello nessun noi non o ogni
        perche piu poi posso possono puo qual quale quali quando quanta quante quanti quanto
        quel quella quelle quelli quello questa queste questi questo qui se senza si sia sono
        sta stata stati stato su sua sugli sui sul sulla sulle suo suoi te ti tra tu tutti tutto
        un una uno vi | all chi come con dall dell dove era fare i in lei nell per quant quest
        solo state sull""",
    "portuguese": """
        ao aos aquela aquele aquilo ate cada com da das de dela dele dos e ela elas ele eles em
        entre eram essa esse estao estar estava eu faz fazer foi foram ha isso isto ja la lhe
        mais mesmo meu minha muito na nao nas nem nos nossa nosso num o onde os ou pela pelas
        pelo pelos pode podem por porque posso pra quais qual quando quanta quantas quanto
        quantos que quem se seja sem seu seus sobre sua suas tambem te tem tenho ter tinha
        tinham tudo um uma umas uns voce voces | a as como do era esta este mas me no numa para
        ser sera so""",
    "dutch": """
        aan aantal al alle alles als bij dat de deze dit doen dus een en er geen heb hebben hebt
        heeft het hij hoe hoeveel hun ik ja je jij kan kun kunnen maar meer mij mijn moet moeten
        na naar niet nog nu om omdat onder ons ook op te tegen toch toen tot uit uw veel voor
        waar waarin waarmee waarom wanneer waren wat welk welke werd werden wie wij worden wordt
        zal ze zich zij zijn zo zonder zou | dan die door haar had hem in is me men met of over
        van was""",
    "polish": """
        a albo ale bardzo bez bo byc byl byla bylo byly co czy czyli czym dla dlaczego gdy gdzie
        ich ile im ja jak jaka jaki jakich jakie jakim jako jego jej kiedy kim kto ktora ktore
        ktorego ktorej ktory ktorych ktorym ktorzy ma maja mam mi mial moge moj moze mozna na
        nad nie niz o od ona oni oraz po podczas poniewaz przed przez przy sa sie skad swoj ta
        tak takze tam te tego tej trzeba tu tych tylko tym u w wiec wszystkie z za ze zeby | by
        do go i jest my on pod ten to we""",
    "romanian": """
        a acea aceasta aceea acest aceste acestor acestui ai al ale ar asupra atunci au avea
        avut ca cand carei caror carora caruia cat cata cati catre ce cea cei cel cele celor cu
        cui cum cumva da daca de deci despre din dintre doar dupa e ea ei el ele erau eu fi fie
        fiind fost ii intre isi la le lor lui mai mult multe ne ni nu o ori pana pe pentru peste
        poate pot prin putea sa sau se si spre sub sunt un una unde unei unele unor unui | am
        are as care cate cine era este fat i in multi or sale""",
    "russian": """
        а без бы был была были было быть в вам вас во вот все всего всеи всем всех вы где да для до
        его ее если есть еще же за зачем и из или им их к каждая каждое каждыи как какая какие
        каким какими каких какого какое какои каком какому какую когда кого кому которая которого
        которое которои котором которую которые которыи которыми которых кто куда ли либо между
        меня мне может могу могут можно мы на над надо нам нас не него нее нет ни них но нужно о об
        он она они оно от откуда очень перед по под после потому почему при про с себя сколько со
        так также там тем то того тоже только том тот у уже чего чеи чем через что чтобы эта эти
        этим этих это этого этои этом этому этот эту я является являются""",  # noqa: RUF001
    "turkish": """
        acaba ama bir biri bu buna bunu cok da daha de diye en gibi hangi hangileri hangisi hic
        icin ile ise kac kadar ki kim kime kimin mi mu nasil ne neden nedir neler nelerdir
        nerede nereye nicin niye o olan olarak oldu olur sonra su ve veya ya | hem her""",
}  # fmt: skip
_OWN: Final = {name: frozenset(words.replace("|", " ").split()) for name, words in _WORDS.items()}
_TELLING: Final = {
    name: frozenset(word for word in words.split("|")[0].split() if len(word) > 1)
    for name, words in _WORDS.items()
}
# A question in few words may have one of these alone.
_ASKS: Final = """
combien cuales cuando cuanta cuantas cuanto cuantos dlaczego donde gdzie hangi hoeveel kac kiedy
ktora ktore ktory nasil neden nerede perche porque pourquoi quais quando quanta quantas quante
quanti quanto quantos quels quelle quelles waarom wanneer warum welche welchem welchen welcher
welches wieso wieviel wieviele где зачем какая какие каким какими каких какого какое какои каком
какому какую как когда кто куда откуда почему сколько что
"""
_ASKING: Final = frozenset(_ASKS.split())
_ELIDED: Final = re.compile(
    r"(?i)(?<!\w)(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|[dn]ell|sull|d?all|un|quest|quell|dov"
    r"|com|cos)['\u2019](?=\w)"
)
_INVERTED: Final = re.compile(
    r"(?i)(?<!rendez)(?:(?:-t)?-(?:ce|elles?|ils?|je|là|nous|tu|vous)|-t-on)(?!\w)"
)
_WORD: Final = re.compile(r"[¿¡]*([^\W\d_]+)[,;:.!?…]*")  # no flag, code, quotation or address
_SCARCE: Final = 6  # fewer than one word in so many are quoted, or names
_CHINESE: Final = re.compile(
    "为什么|什么|为何|如何|怎么样?|怎样|多少|何时|是否|谁|哪[一些个位年里种]|几(?=[个年天次秒分种])"
    "|(?<!目)的(?![士确])|(?<![但还于总可])是|[吗呢](?=[?\uff1f。]?$)"
)
_JAPANESE: Final = re.compile(
    "どのよう[なに]?|どの(?:くらい)?|どう(?:して|やって|すれば)|いくつ|なぜ|なんで|何故|誰"
    "|(?<![一-龥])何(?![一-龥])|教えて|ください"
    "|(?:とは|ですか|でしょうか|ますか|ましたか|ませんか|のですか|んですか)(?=[。\uff1f?]?$)"
)
_KANA: Final = re.compile("[\u3040-\u30ff]")

_WHOLE = "="  # no word contains it, so a whole identifier never equals a stem
# A term repeated at will weighs up to 2.2 times one that occurs once. At 2, a passage that repeats
# the parts of `std::vector` three times still came before the one that holds it; at 3 it does not.
_IDENTIFIER_WEIGHT = 3.0
_HIRAGANA = re.compile("[\u3041-\u3096]{1,2}")
_HIRAGANA_SHARE = 1 / _IDENTIFIER_WEIGHT
_LONGEST_REMEMBERED = 40  # characters; longer are URLs, data and scripts without spaces
_MAX_TERM_CHARS = 64  # an index tuple must hold the longest term beside its postings

# `\w` leaves out the vowel signs that Indic, Thai and Burmese words are written with.
_MARKS = "".join(
    chr(code)
    for start, end in ((0x300, 0x1C00), (0x20D0, 0x2100), (0xA600, 0xAC00), (0xFE20, 0xFE30))
    for code in range(start, end)
    if unicodedata.category(chr(code)) in {"Mn", "Mc"}
)
_CHAR = rf"[\w{_MARKS}]"
_TOKEN = re.compile(
    rf"(?:(?<![\w-])-{{1,2}}(?=[^\W\d_])|(?<!\w)[@$](?=[^\W\d]))?"
    rf"\w{_CHAR}*(?:(?:::|[-.'+])\w{_CHAR}*)*(?:\+\+|\#(?!\w))?"
)
_PIECE = re.compile(rf"[^\W_](?:[^\W_]|[{_MARKS}])*(?:'(?:s|t|re|ve|ll|d|m)(?!\w))?", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ACRONYM_PLURAL = re.compile(r"[A-Z]+s")
# What most words are, and what the rules above make one stem of.
_PLAIN = re.compile(r"[(\[\"]*([A-Z]?[a-z]+)[.,;:!?)\]\"]*")
# Wholes other than hyphenated words, numbers, abbreviations (U.S.) and stop words in capitals.
_IDENTIFIER = re.compile(rf"{_WHOLE}(?=.*[^\W\d])(?:.*[_:+#]|[-@$]|(?=.*\.).*[^\W\d]{{3}})")
# Written without spaces between words: Thai, Lao, Burmese, Khmer, Han, kana, and Hangul, whose
# particles are glued to the word.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u30ff\u3100-\u318f"
    r"\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_LANGUAGES = (
    (0x0250, "english"),
    (0x0370, None),
    (0x0400, "greek"),
    (0x0530, "russian"),
    (0x0590, "armenian"),
    (0x0600, None),
    (0x0780, "arabic"),
    (0x0900, None),
    (0x0980, "hindi"),
    (0x0B80, None),
    (0x0C00, "tamil"),
    (0x1E00, None),
    (0x1F00, "english"),
    (0x2000, "greek"),
)
# Spellings of one word: marks for the apostrophe, and joiners, which nobody types.
_APOSTROPHE = re.compile("[\u2018\u2019\u02bc]")
_JOINER = re.compile("[\u200c\u200d\ufe0e\ufe0f]")

_local = threading.local()


def analyze(text: str) -> list[str]:
    """Give the index terms of a text, in order, with repetitions.

    Words are NFKC-normalised, case-folded and stemmed by script; scripts written without spaces
    become bigrams. Identifiers (`--no-ff`, `Vec::new`, `max_connections`, `C++`) give their parts
    and, marked by a leading "=", the whole. Ordinary English stop words are left out, unless they
    are written as code or in capitals. The same text always gives the same terms.
    """
    words = _words(text)
    is_long = max(map(len, words), default=0) > _LONGEST_REMEMBERED
    return list(chain.from_iterable(map(_any_terms if is_long else _indexed_terms, words)))


def query_terms(text: str) -> list[str]:
    """Give the `distinct_terms` of a question, without its function words in another language."""
    return distinct_terms(without_function_words(text))


def distinct_terms(text: str) -> list[str]:
    """Give the distinct terms of a text, in order of first appearance.

    Made like `analyze`, without the words questions are put in ("how do I ..."). When nothing
    else is left, those words count after all; empty only when the text holds no word.
    """
    words = _words(text)
    for stopwords in (QUESTION_STOPWORDS, INDEX_STOPWORDS, frozenset[str]()):
        found = dict.fromkeys(term for word in words for term in _word_terms(word, stopwords))
        if found:
            return list(found)
    return []


def content_words(text: str) -> dict[str, list[str]]:
    """Give the words of a question that are none of those it is put in, each with its terms."""
    shortened = {word.replace("'", "") for word in QUESTION_STOPWORDS}  # "dont", as many type it
    words = _words(without_function_words(text))
    found = {word: [*_word_terms(word, QUESTION_STOPWORDS)] for word in words}
    bare = {word.strip("?!.,;:()\"'"): terms for word, terms in found.items() if terms}
    return {word: terms for word, terms in bare.items() if word.lower() not in shortened}


def term_weight(term: str) -> float:
    """Give a term's weight in BM25: 1.0, and more for a whole identifier than for its parts.

    Hyphenated words, numbers, abbreviations and stop words in capitals count 1.0.
    """
    return _IDENTIFIER_WEIGHT if _IDENTIFIER.match(term) else 1.0


def meaning_share(term: str) -> float:
    """Give the share of a term's rarity that tells of its meaning: 1.0, and less for hiragana.

    Two signs of hiragana alone are mostly particles and endings, or stand across two words.
    """
    return _HIRAGANA_SHARE if _HIRAGANA.fullmatch(term) else 1.0


@lru_cache(maxsize=1024)
def language_of(text: str) -> str | None:
    """Name the language of a question in words, as Snowball does; None: English, or unknown.

    Two function words tell it, or one that asks; those of English questions count against it.
    """
    words = _bare(_ELIDED.sub(" ", text).split())
    told = {name: telling.intersection(words) for name, telling in _TELLING.items()}
    own = {name: sum(word in owned for word in words) for name, owned in _OWN.items()}
    language = max(told, key=lambda name: (len(told[name]), own[name]))
    others = sum(word in QUESTION_STOPWORDS - _OWN[language] for word in words)
    is_told = len(told[language]) > others and own[language] * _SCARCE >= len(words)
    is_sure = own[language] > 1 or not _ASKING.isdisjoint(told[language])
    return language if is_told and is_sure else None


def without_function_words(text: str) -> str:
    """Leave out the words a question is put in, where its language is not English.

    The languages are Chinese, Japanese and those of `language_of`. Elided articles ("l'entrée") and
    pronouns after their verb ("faut-il") are such words. A question that says nothing else stays.
    """
    language = language_of(text)
    if language is None:
        asking = _JAPANESE if _KANA.search(text) else _CHINESE
        return asking.sub(" ", text).strip() or text
    if language in ("french", "italian"):
        text = _ELIDED.sub(" ", text)
    if language == "french":
        text = _INVERTED.sub(" ", text)
    parts = text.split()
    named = zip(parts, _bare(parts), strict=True)
    kept = (part for part, word in named if word not in _OWN[language])
    return " ".join(kept) or text


def _bare(parts: Sequence[str]) -> list[str]:
    """Words as the lists have them; empty for codes, names and what is no word."""
    found = (_WORD.fullmatch(part) for part in parts)
    return [
        _unaccented(word[1])
        if word and (word[1].islower() or (place == 0 and not word[1].isupper()))
        else ""
        for place, word in enumerate(found)
    ]


def _unaccented(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.casefold().replace("ł", "l"))
    return "".join(char for char in letters if not unicodedata.combining(char))


def _words(text: str) -> list[str]:
    """Split at white space, which no term reaches across."""
    if not text.isascii():
        text = _APOSTROPHE.sub("'", _JOINER.sub("", unicodedata.normalize("NFKC", text)))
    return text.split()


def _word_terms(word: str, stopwords: frozenset[str] = INDEX_STOPWORDS) -> tuple[str, ...]:
    if plain := _PLAIN.fullmatch(word):
        folded = plain[1].lower()
        return () if folded in stopwords else (_stem(folded),)
    terms: list[str] = []
    # What is written without spaces has none beside an identifier either.
    for part in (word,) if word.isascii() else _UNSPACED.sub(r" \g<0> ", word).split():
        for match in _TOKEN.finditer(part):
            is_code = match.start() > 0 and part[match.start() - 1] == "`"
            terms += _token_terms(match[0], is_code, stopwords)
    return tuple(terms)


@lru_cache(maxsize=65_536)
def _indexed_terms(word: str) -> tuple[str, ...]:
    """Texts repeat their words: remembering them makes `analyze` several times as fast."""
    return _word_terms(word)


def _any_terms(word: str) -> tuple[str, ...]:
    return (_indexed_terms if len(word) <= _LONGEST_REMEMBERED else _word_terms)(word)


def _token_terms(token: str, is_code: bool, stopwords: frozenset[str]) -> list[str]:
    terms = _whole_terms(token, is_code)
    for piece in _PIECE.findall(token):
        terms += _piece_terms(piece, stopwords)
        subwords = () if _ACRONYM_PLURAL.fullmatch(piece) else _CAMEL.split(piece)
        if len(subwords) > 1:
            for subword in subwords:
                if len(subword) > 1:
                    terms += _piece_terms(subword, stopwords)
    return terms


def _whole_terms(token: str, is_code: bool) -> list[str]:
    """Mark what must be found exactly: compounds, flags, sigils, keywords that are stop words."""
    folded = token.casefold()
    name = folded.lstrip("-@$")
    dunder = name.startswith("__") and name.endswith("__")
    bare = name if dunder else name.strip("_")
    if _PIECE.fullmatch(bare):
        emphasised = is_code or (token.isupper() and len(token) > 1)
        wholes = [bare] if emphasised and bare in QUESTION_STOPWORDS else []
    else:
        wholes = [bare] if bare else []
    if name != folded:
        wholes.append(folded.rstrip("_"))
    return [_WHOLE + whole[:_MAX_TERM_CHARS] for whole in wholes]


def _piece_terms(piece: str, stopwords: frozenset[str]) -> list[str]:
    word = piece.casefold()
    if word in stopwords:
        return []
    if not _UNSPACED.search(word):
        return [_stem(word)]
    terms: list[str] = []
    end = 0
    for match in _UNSPACED.finditer(word):
        terms.extend(_stem(part) for part in [word[end : match.start()]] if part)
        run = match[0]
        terms.extend([run[at : at + 2] for at in range(len(run) - 1)] or [run])
        end = match.end()
    terms.extend(_stem(part) for part in [word[end:]] if part)
    return terms


def _stem(word: str) -> str:
    word = word[:_MAX_TERM_CHARS]
    if word.isascii():
        return stemmer("english").stemWord(word) or word
    language = next((name for end, name in _LANGUAGES if ord(word[0]) < end), None)
    if language is None:
        return word
    if language == "english":  # people type Latin words without accents
        letters = unicodedata.normalize("NFD", word)
        word = "".join(char for char in letters if not unicodedata.combining(char)) or word
    return stemmer(language).stemWord(word) or word


@lru_cache(maxsize=65_536)
def stem_in(language: str, term: str) -> str:
    """Stem an index term, which is stemmed by its script alone, as its language has it."""
    return stemmer(language).stemWord(term) or term


def stemmer(language: str) -> Stemmer.Stemmer:
    """Give this thread's: they are not thread-safe. Their own cache costs more than it saves."""
    stemmers: dict[str, Stemmer.Stemmer] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if language not in stemmers:
        stemmers[language] = Stemmer.Stemmer(language, 0)
    return stemmers[language]
