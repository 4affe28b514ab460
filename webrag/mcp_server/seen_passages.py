"""What a session has been sent, so that later replies bring what is new."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from webrag.presentation.brief.models import Seen

# A model's context holds about so many briefs; what is older it may have lost.
_QUESTIONS: Final = 30


class SeenPassages:
    """The parts of passages that the latest questions of one session were answered with.

    A question that is asked again is answered in full: the client may have lost the reply.
    """

    def __init__(self) -> None:
        self._of: OrderedDict[str, tuple[Seen, ...]] = OrderedDict()

    def of_others(self, question: str) -> tuple[Seen, ...]:
        """What was sent for other questions."""
        return tuple(each for asked, sent in self._of.items() if asked != question for each in sent)

    def add(self, question: str, sent: Iterable[Seen]) -> None:
        """Keep what was sent for a question, and forget the oldest beyond those that are kept."""
        self._of[question] = tuple(sent)
        self._of.move_to_end(question)
        while len(self._of) > _QUESTIONS:
            self._of.popitem(last=False)
