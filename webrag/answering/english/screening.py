"""Finds what must not be quoted from a page: words that address a model, and credentials; pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from webrag.answering.addressing import addresses_reader
from webrag.ingestion.characters import bare
from webrag.retrieval.markup import read_blocks

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
