"""The words BM25 leaves out, on the index side and in questions; it does no tokenising."""

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
