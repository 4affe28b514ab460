"""Tells function words of a question in other languages than English from what it is about."""

import re
import unicodedata
from typing import Final

# Articles, pronouns, prepositions, auxiliaries and the words that ask, without accents. What
# English has as well ("die", "man", "come") comes after the bar: it names no language.
_WORDS: Final = {
    "german": """
        aber alle allem allen aller alles als auch auf aus bei beim bis da dabei dafur daher
        damit dann daran darauf daraus darin das dass davon dazu dem denn der dich dir doch du
        durch ein eine einem einen einer eines er erst es etwa etwas euch fur geben genau gibt
        habe haben hatte heisst ich ihm ihn ihr ihre ihrem ihren ihrer im ins ist jede jedem
        jeden jeder jedes jetzt kann kannst kein keine keinem keinen keiner konnen konnte mein
        meine meinem meinen meiner mich mir mit muss mussen musste nach nein nicht noch nur ob
        oder ohne sehr sein seine seinem seinen seiner seit sich sie sind soll sollen sollte
        uber um und uns unter viel viele vielen vom vor wann warum welche welchem welchen
        welcher welches wem wen wenn wer werde werden wie wieso wieviel wird wo wofur woher
        wohin womit woran worauf woraus worin wozu wurde wurden zu zum zur zwischen | also am an
        bin den des die hat hier in man so von war waren was will""",
    "french": """
        alors au aux avait avec avoir ce cela celle celles celui ces cet cette ceux chaque
        combien comment dans de doit doivent donc dont du elle elles en est et etaient etait ete
        etre eu eux faire fait faut ici il ils je la laquelle le lequel les lesquels leur leurs
        lorsque lui ma mes moi mon ne nos notre nous ont ou parce pas pendant peut peuvent peux
        pour pourquoi pouvoir puis puisque qu quand que quel quelle quelles quels qui quoi sa se
        sera ses sont sous suis sur ta te tes toi toujours tous toute toutes tres trop tu un une
        va vers veux vos votre vous y | a as comme des fut on par plus sans si son tout""",
    "spanish": """
        al algo algun alguna ante antes aquel asi aun cada como contra cual cuales cuando cuanta
        cuantas cuanto cuantos de del desde donde dos el ella ellas ellos en entre eran eres es
        esa ese eso esta estaba estaban estan estar estas esto estos estoy fue fueron ha haber
        habia habian hace hacer hacia hago han hasta hay la las le les lo los mi mis mucho
        muchos muy ni nos nosotros o otra otras otro otros para pero poco por porque puede
        pueden puedo pues que quien quienes se segun si sido siempre sobre son su sus tambien
        tanto te tengo ti tiene tienen tienes toda todas todo todos tu tus un una unas uno unos
        usted y ya yo | con era este mas me no ser sin""",
    "italian": """
        agli ai al alla alle allo anche avere aveva c che chi ci co cosa cui da dagli dai dal
        dalla dalle dei del della delle dello di dove e ed erano essere fa fatto fra gli ha
        hanno ho il io la le lei li lo loro ma mi mia mio ne negli nei nel nella nelle nello
        nessun noi non o ogni perche piu poi posso possono puo qual quale quali quando quant
        quanta quante quanti quanto quel quella quelle quelli quello quest questa queste questi
        questo qui se senza si sia sono sta stata stati stato su sua sugli sui sul sulla sulle
        suo suoi te ti tra tu tutti tutto un una uno vi | all come con dall dell era fare i in
        nell per solo state sull""",
    "portuguese": """
        ao aos aquela aquele aquilo ate cada com como da das de dela dele dos e ela elas ele
        eles em entre eram essa esse esta estao estar estava eu faz fazer foi foram ha isso isto
        ja la lhe mais mesmo meu minha muito na nao nas nem nos nossa nosso num numa o onde os
        ou para pela pelas pelo pelos pode podem por porque posso pra quais qual quando quanta
        quantas quanto quantos que quem se seja sem sera seu seus sobre sua suas tambem te tem
        tenho ter tinha tinham tudo um uma umas uns voce voces | a as do era este mas me no ser
        so""",
    "dutch": """
        aan aantal al alle alles als bij dat de deze dit doen dus een en er geen haar heb hebben
        hebt heeft het hij hoe hoeveel hun ik ja je jij kan kun kunnen maar meer mij mijn moet
        moeten na naar niet nog nu om omdat onder ons ook op te tegen toch toen tot uit uw veel
        voor waar waarin waarmee waarom wanneer waren wat welk welke werd werden wie wij worden
        wordt zal ze zich zij zijn zo zonder zou | dan die door had hem in is me men met of over
        van was""",
    "polish": """
        a albo ale bardzo bez bo byc byl byla bylo byly co czy czyli czym dla dlaczego gdy gdzie
        ich ile im ja jak jaka jaki jakich jakie jakim jako jego jej jest kiedy kim kto ktora
        ktore ktorego ktorej ktory ktorych ktorym ktorzy ma maja mam mi mial moge moj moze mozna
        na nad nie niz o od ona oni oraz po podczas poniewaz przed przez przy sa sie skad swoj
        ta tak takze tam te tego tej trzeba tu tych tylko tym u w wiec wszystkie z za ze zeby |
        by do go i my on pod ten to we""",
    "romanian": """
        a acea aceasta aceea acest aceste acestor acestui ai al ale ar asupra atunci au avea
        avut ca cand care carei caror carora caruia cat cata cate cati catre ce cea cei cel cele
        celor cine cu cui cum cumva da daca de deci despre din dintre doar dupa e ea ei el ele
        erau eu fi fie fiind fost ii intre isi la le lor lui mai mult multe multi ne ni nu o ori
        pana pe pentru peste poate pot prin putea sa sale sau se si spre sub sunt un una unde
        unei unele unor unui | am are as era este fat i in or""",
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
_ELIDED: Final = re.compile(
    r"(?i)(?<!\w)(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|[dn]ell|sull|d?all|un|quest|quell|dov"
    r"|com|cos)['\u2019](?=\w)"
)
_INVERTED: Final = re.compile(r"(?i)(?:-t)?-(?:ce|elles?|ils?|je|là|nous|on|tu|vous)(?!\w)")
_WORD: Final = re.compile(r"[^\w\s<(\[{/\\.]*([^\W\d_]+)[^\w\s]*")
_KANA: Final = re.compile("[\u3040-\u30ff]")
_CHINESE: Final = re.compile(
    "为什么|什么|为何|如何|怎么样?|怎样|多少|何时|是否|谁|哪[一些个位年里种]?|几(?=[个年天次秒分种])"
    "|(?<!目)的|[是吗呢]"
)
_JAPANESE: Final = re.compile(
    "どのよう[なに]?|どの|どう(?:して|やって|すれば)?|どれ|どこ|どんな|いくつ|いつ|なぜ|なんで|何故|誰|何"
    "|(?:ですか|でしょうか|ますか|ましたか|ませんか|のですか|んですか)(?=[。\uff1f?]|$)|とは|教えて|ください"
)
_LONG: Final = 4  # letters; a shorter word alone is often a name or a code, as "de" and "la"
_SCARCE: Final = 6  # fewer than one word in so many are quoted, or names


def language_of(text: str, english: frozenset[str]) -> str | None:
    """The Latin language besides English, as Snowball names it, that a question is in, if any.

    Args:
        text: The question.
        english: Words that speak for English, where the other language has them not.
    """
    words = [_bare(part) for part in _parts(text)]
    told = {name: [word for word in words if word in telling] for name, telling in _TELLING.items()}
    language = max(told, key=lambda name: len(told[name]))
    own = sum(word in _OWN[language] for word in words)
    others = sum(word in english - _OWN[language] for word in words)
    is_told = len(told[language]) > others and own * _SCARCE >= len(words)
    return language if is_told and (own > 1 or len(told[language][0]) >= _LONG) else None


def without_function_words(text: str, english: frozenset[str]) -> str:
    """A question without the words it is put in, where its language is not English.

    The languages are Chinese and those of `language_of`. Elided articles ("l'entrée") and pronouns
    after their verb ("faut-il") are such words. A text in no such language stays as it is, and so
    does one that says nothing else.

    Args:
        text: The question.
        english: As for `language_of`.
    """
    language = language_of(text, english)
    if language is None:
        asking = _JAPANESE if _KANA.search(text) else _CHINESE
        return asking.sub(" ", text).strip() or text
    return " ".join(part for part in _parts(text) if _bare(part) not in _OWN[language]) or text


def _parts(text: str) -> list[str]:
    return _INVERTED.sub(" ", _ELIDED.sub(" ", text)).split()


def _bare(part: str) -> str:
    """A word as the lists have it; empty for codes, names in capitals and what is no word."""
    word = _WORD.fullmatch(part)
    return _unaccented(word[1]) if word and not (len(word[1]) > 1 and word[1].isupper()) else ""


def _unaccented(word: str) -> str:
    letters = unicodedata.normalize("NFD", word.casefold().replace("ł", "l"))
    return "".join(char for char in letters if not unicodedata.combining(char))
