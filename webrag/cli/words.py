"""Gives what was typed at a terminal as addresses, sites and stored pages."""

import os
from collections.abc import Sequence
from typing import Any

import click

from webrag.ingestion.addresses import as_address, host_of, sites_and_addresses, split_words


def split_named(words: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Split what was typed where an address has to be among it."""
    addresses, question = split_words(words)
    if addresses:
        return tuple(map(as_address, addresses)), question
    for word, rest in ((words[0], words[1:]), (words[-1], words[:-1])):
        is_named = len(words) == 2 or host_of(word) or "/" in word or os.path.lexists(word)
        if rest and is_named and len(word.split()) == 1:
            return (as_address(word),), " ".join(rest)
    if len(words) == 1 and (host_of(words[0]) or split_words([*words, "?"])[0]):
        raise click.UsageError(f"Behind {words[0]} there is no question.")
    raise click.UsageError(
        "There is no address among these words. What is stored is asked with `webrag ask` and"
        " `webrag search`, without one."
    )


def sites_and_pages(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split what is named among stored pages: a host alone, as `status` prints it, is a site."""
    from webrag.ingestion.files.folder import named_address

    hosts, addresses = sites_and_addresses(words)
    return hosts, tuple(map(named_address, addresses))


def stored_address(word: str) -> str:
    """Give the address under which a page or file is stored; InputError for anything else."""
    from webrag.ingestion.files.folder import named_address

    return named_address(as_address(word))


def addresses(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
    """Give the addresses that an argument or option names; hosts without a scheme get one."""
    if isinstance(value, tuple):
        return tuple(map(as_address, value))
    return value and as_address(value)
