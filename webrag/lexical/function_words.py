"""Tells function words of a question in other languages than English from what it is about."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

# Articles, pronouns, prepositions, auxiliaries and the words that ask, without accents. What
# English has as well ("die", "man", "come") comes after the bar: it names no language.
_WORDS: Final = {
    "german": """
        aber alle allem aller alles als auch auf aus bei beim bis da dabei dafur daher damit
        dann daran darauf daraus darin das dass davon dazu dem denn der dich dir doch du durch
        ein eine einem einen einer eines er erst es etwa etwas euch fur geben genau gibt habe
        haben hatte heisst ich ihm ihn ihr ihre ihrem ihren ihrer im ins ist jede jedem jeden
        jeder jedes jetzt kann kannst kein keine keinem keinen keiner konnen konnte mein meine
        meinem meinen meiner mich mir mit muss mussen musste nach nein nicht noch nur ob ohne
        sehr sein seinem seinen seiner seit sich sie sind soll sollen sollte um und uns unter
        viel viele vielen vom vor wann warum welche welchem welchen welcher welches wem wen wenn
        wer werde werden wie wieso wieviel wird wo wofur woher wohin womit woran worauf woraus
        worin wozu wurde wurden zu zum zur zwischen | allen also am an bin den des die hat hier
        in man oder seine so uber von war waren was will""",
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
welches wieso wieviel
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


def language_of(text: str, english: frozenset[str]) -> str | None:
    """Name the language of a question in Latin letters, as Snowball does; None: English.

    Two function words tell it, or one that asks; words that `english` has as well count against it.
    """
    words = _bare(_ELIDED.sub(" ", text).split())
    told = {name: telling.intersection(words) for name, telling in _TELLING.items()}
    own = {name: sum(word in owned for word in words) for name, owned in _OWN.items()}
    language = max(told, key=lambda name: (len(told[name]), own[name]))
    others = sum(word in english - _OWN[language] for word in words)
    is_told = len(told[language]) > others and own[language] * _SCARCE >= len(words)
    is_sure = own[language] > 1 or not _ASKING.isdisjoint(told[language])
    return language if is_told and is_sure else None


def without_function_words(text: str, english: frozenset[str]) -> str:
    """Leave out the words a question is put in, where its language is not English.

    The languages are Chinese, Japanese and those of `language_of`. Elided articles ("l'entrée") and
    pronouns after their verb ("faut-il") are such words. A question that says nothing else stays.
    """
    language = language_of(text, english)
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
