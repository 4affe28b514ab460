"""LlamaIndex metadata filters as SQL conditions; every key and value is bound, none formatted."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from psycopg.types.json import Jsonb

from webrag.argument_checks import shown_value
from webrag.corpus.rows import STORE_KEYS
from webrag.errors import InputError
from webrag.ingestion.characters import storable, storable_values
from webrag.llamaindex.stored_nodes import PAGE_DATES, PAGE_KEYS
from webrag.postgres.database import Connection
from webrag.retrieval.filters import ALWAYS, Condition, Scope, all_of, any_of, negated

_Scalar = str | int | float

# Keys that are columns: `c` is the searched table, `d` is documents. Other keys are looked up in
# the node's metadata.
_COLUMNS = {
    "source_url": "d.url",
    "node_id": "c.node_id",
    "parent_id": "c.parent_id::text",
    **dict.fromkeys(("ref_doc_id", "doc_id", "document_id"), "c.metadata_->>'ref_doc_id'"),
}
# Whoever needs more gives a list to IN; the deeper ones end Python's and Postgres's stacks, the
# wider ones pass the 65,535 values that a statement may bind (one condition binds up to five).
_MOST_NESTED = 20
_MOST_CONDITIONS = 2_000
_MOST_DIGITS = 1_000
# LlamaIndex's filters take no booleans: whoever means one writes its name, as Python does or JSON.
_BOOLEANS = ("True", "False")
_LONGEST_DAY = len("2024-05-31")
_UNKNOWN_KEYS = """
    select key from unnest(%s::text[]) key
    where not exists (select from {data_children} c where c.metadata_ ? key)
    and exists (select from {data_children})
"""
_KNOWN_KEYS = """
    select distinct key from (select metadata_ from {data_children} limit 1000) c,
    jsonb_object_keys(c.metadata_) key where key <> all(%s)
"""
_COMPARISONS = {
    FilterOperator.EQ: "=",
    FilterOperator.NE: "=",
    FilterOperator.GT: ">",
    FilterOperator.GTE: ">=",
    FilterOperator.LT: "<",
    FilterOperator.LTE: "<=",
}


def query_scope(query: VectorStoreQuery) -> Scope:
    """Give what a query restricts the search to."""
    parts = [filter_condition(query.filters)] if query.filters is not None else []
    # LlamaIndex's retriever passes empty lists when it means no restriction.
    if query.node_ids:
        parts.append(ids_condition(query.node_ids))
    if query.doc_ids:
        parts.append(_is_among("c.metadata_->>'ref_doc_id'", query.doc_ids))
    return Scope(chunks=all_of(parts))


async def refuse_unknown_keys(connection: Connection, filters: MetadataFilters | None) -> None:
    """Check that some stored node has each metadata key that the filters name.

    A key that is asked to be empty may be missing everywhere, and in an empty collection all are.
    """
    keys = sorted(_metadata_keys(filters)) if filters is not None else []
    if not keys:
        return
    unknown = await connection.fetch(_UNKNOWN_KEYS, (keys,))
    if unknown:
        known = await connection.fetch(_KNOWN_KEYS, (list(STORE_KEYS),))
        names = ", ".join(
            repr(key) for key in sorted({*_COLUMNS, *PAGE_KEYS, *(key for (key,) in known)})
        )
        raise InputError(
            f"No stored node has the metadata key {shown_value(unknown[0][0])}; there are {names}."
        )


def _metadata_keys(filters: MetadataFilters) -> set[str]:
    """The keys of metadata that nodes must hold; columns are none."""
    keys: set[str] = set()
    for each in filters.filters:
        if isinstance(each, MetadataFilters):
            keys |= _metadata_keys(each)
        elif each.operator != FilterOperator.IS_EMPTY and each.key not in (*_COLUMNS, *PAGE_KEYS):
            keys.add(each.key)
    return {key for key in keys if storable(key) == key}


def ids_condition(node_ids: Sequence[str]) -> Condition:
    """Give the condition for nodes with these ids."""
    return _is_among("c.node_id", node_ids)


def filter_condition(filters: MetadataFilters) -> Condition:
    """Translate filters, nested ones too; a value that does not fit its operator is refused.

    A node that lacks a key matches NE, NIN and IS_EMPTY and nothing else, as in LlamaIndex's own
    stores. Numbers are compared as numbers, strings as strings.
    """
    _check_size(filters)
    return _translated(filters)


def _check_size(filters: MetadataFilters) -> None:
    level: list[MetadataFilters] = [filters]
    conditions = depth = 0
    while level:
        depth += 1
        if depth > _MOST_NESTED:
            raise InputError(f"The filters are nested too deep; {_MOST_NESTED} levels are allowed.")
        held = [each for group in level for each in group.filters]
        level = [each for each in held if isinstance(each, MetadataFilters)]
        conditions += len(level) + sum(map(_size, held))
        if conditions > _MOST_CONDITIONS:
            raise InputError(
                f"There are more than {_MOST_CONDITIONS:,} filters; use one with `in` for a list."
            )


def _size(each: MetadataFilter | MetadataFilters) -> int:
    """Conditions that a filter becomes."""
    if isinstance(each, MetadataFilters):
        return 0
    is_several = each.operator in (FilterOperator.ANY, FilterOperator.ALL)
    return len(each.value) if is_several and isinstance(each.value, list) else 1


def _translated(filters: MetadataFilters) -> Condition:
    parts = [
        _translated(each) if isinstance(each, MetadataFilters) else _single(each)
        for each in filters.filters
    ]
    if not parts:
        return ALWAYS
    if filters.condition == FilterCondition.NOT:
        return negated(any_of(parts))
    return any_of(parts) if filters.condition == FilterCondition.OR else all_of(parts)


def _is_among(column: str, values: Sequence[str]) -> Condition:
    return Condition(f"{column} = any(%s::text[])", (list(storable_values(values)),))


def _single(given: MetadataFilter) -> Condition:
    # As the nodes were stored.
    kept = {"key": storable(given.key), "value": storable_values(given.value)}
    each, operator = given.model_copy(update=kept), given.operator
    if operator == FilterOperator.IS_EMPTY:
        return _is_empty(each)
    if each.value is None:
        raise InputError(f"The filter on {each.key!r} with {operator.value!r} needs a value.")
    condition = _BUILDERS[operator](each)
    is_negative = operator in (FilterOperator.NE, FilterOperator.NIN)
    return negated(condition) if is_negative else condition


def _order(each: MetadataFilter) -> Condition:
    return _compare(each, _COMPARISONS[each.operator], _checked(each, each.value))


def _within(each: MetadataFilter) -> Condition:
    values = [_checked(each, value) for value in _list(each)]
    texts = [value for value in values if isinstance(value, str)]
    texts += [text.lower() for text in texts if text in _BOOLEANS]
    numbers = [_number(value) for value in values if not isinstance(value, str)]
    parts = []
    if texts and each.key in PAGE_DATES:
        parts += [_compare_date(each.key, "=", text) for text in texts]
    elif texts or not numbers:
        text, bound = _text_of(each.key)
        parts.append(Condition(f"{text} = any(%s::text[])", (*bound, texts)))
    if numbers:
        text, bound = _number_of(each.key)
        parts.append(Condition(f"{text} = any(%s::numeric[])", (*bound, numbers)))
    return any_of(parts)


def _compare(each: MetadataFilter, comparison: str, value: _Scalar) -> Condition:
    if isinstance(value, str):
        if comparison == "=" and value in _BOOLEANS:
            return _within(MetadataFilter(key=each.key, value=[value], operator=FilterOperator.IN))
        if each.key in PAGE_DATES:
            return _compare_date(each.key, comparison, value)
        text, bound = _text_of(each.key)
        # "C" orders ISO dates and versions of equal width as their writers expect.
        return Condition(f'({text}) collate "C" {comparison} %s', (*bound, value))
    text, bound = _number_of(each.key)
    return Condition(f"{text} {comparison} %s::numeric", (*bound, _number(value)))


def _compare_date(key: str, comparison: str, value: str) -> Condition:
    """A date of the node itself is compared as it is written, its page's as a day or an instant."""
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        raise InputError(
            f"The filter on {key!r} has {shown_value(value)}; give a date such as 2024-05-31, or a "
            "date and time such as 2024-05-31T12:00:00Z."
        ) from None
    is_day = len(value.strip()) <= _LONGEST_DAY
    column, kind = PAGE_DATES[key], "date" if is_day else "timestamptz"
    bound: date | datetime = moment.date() if is_day else moment
    if isinstance(bound, datetime) and bound.tzinfo is None:
        bound = bound.replace(tzinfo=UTC)
    of_page = f"({column} at time zone 'utc')::date" if is_day else column
    return Condition(
        f'case when c.metadata_ ? %s then (c.metadata_->>%s::text) collate "C" {comparison} %s'
        f" else {of_page} {comparison} %s::{kind} end",
        (key, key, value, bound),
    )


def _number(value: float) -> Decimal:
    """The number as Postgres compares numbers; true and false are 1 and 0 there."""
    return Decimal(repr(float(value)) if isinstance(value, float) else int(value))


def _contains(each: MetadataFilter) -> Condition:
    """An array holds the value, or a string holds it as a part."""
    value = _checked(each, each.value)
    if each.key in _COLUMNS:
        return Condition(f"strpos({_COLUMNS[each.key]}, %s) > 0", (str(value),))
    return Condition(
        "case jsonb_typeof(c.metadata_->%s::text)"
        " when 'array' then c.metadata_->%s::text @> %s::jsonb"
        " when 'string' then strpos(c.metadata_->>%s::text, %s) > 0 end",
        (each.key, each.key, Jsonb(value), each.key, str(value)),
    )


def _text_match(each: MetadataFilter) -> Condition:
    text, bound = _text_of(each.key)
    is_exact = each.operator == FilterOperator.TEXT_MATCH
    found = f"strpos({text}, %s)" if is_exact else f"strpos(lower({text}), lower(%s))"
    return Condition(f"{found} > 0", (*bound, str(_checked(each, each.value))))


def _several(each: MetadataFilter) -> Condition:
    contains = FilterOperator.CONTAINS
    parts = [
        _contains(MetadataFilter(key=each.key, value=_checked(each, value), operator=contains))
        for value in _list(each)
    ]
    return any_of(parts) if each.operator == FilterOperator.ANY else all_of(parts)


def _is_empty(each: MetadataFilter) -> Condition:
    if each.key in _COLUMNS:
        return Condition(f"coalesce({_COLUMNS[each.key]}, '') = ''")
    empty = Condition(
        "coalesce(c.metadata_->%s::text, 'null') in ('null', '\"\"', '[]')", (each.key,)
    )
    page = PAGE_KEYS.get(each.key)
    return empty if page is None else all_of([empty, Condition(f"{page} is null")])


_BUILDERS: dict[FilterOperator, Callable[[MetadataFilter], Condition]] = {
    **dict.fromkeys(_COMPARISONS, _order),
    FilterOperator.IN: _within,
    FilterOperator.NIN: _within,
    FilterOperator.ANY: _several,
    FilterOperator.ALL: _several,
    FilterOperator.CONTAINS: _contains,
    FilterOperator.TEXT_MATCH: _text_match,
    FilterOperator.TEXT_MATCH_INSENSITIVE: _text_match,
}


def _text_of(key: str) -> tuple[str, tuple[str, ...]]:
    if key in _COLUMNS:
        return _COLUMNS[key], ()
    if key in PAGE_KEYS:
        return f"coalesce(c.metadata_->>%s::text, {PAGE_KEYS[key]}::text)", (key,)
    return "c.metadata_->>%s::text", (key,)


def _number_of(key: str) -> tuple[str, tuple[str, ...]]:
    """The value as a number; null, not an error, where a row holds something else."""
    if key in _COLUMNS:
        return "null::numeric", ()
    if key == "depth":
        return f"coalesce({_NUMBER}, d.depth)", (key,) * 5
    return _NUMBER, (key,) * 5


_NUMBER = (
    "case jsonb_typeof(c.metadata_->%s::text)"
    " when 'number' then (c.metadata_->>%s::text)::numeric"
    " when 'boolean' then (c.metadata_->>%s::text)::boolean::int::numeric"
    " when 'string' then case when c.metadata_->>%s::text ~ '^-?[0-9]+([.][0-9]+)?$'"
    " then (c.metadata_->>%s::text)::numeric end end"
)


def _checked(each: MetadataFilter, value: object) -> _Scalar:
    if isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS:
        raise InputError(
            f"The filter on {shown_value(each.key)} has a number of more than {_MOST_DIGITS:,} "
            "digits, which none that is stored has."
        )
    if isinstance(value, str | int | float):
        return value
    raise InputError(
        f"The filter on {each.key!r} with {each.operator.value!r} needs one string or number."
    )


def _list(each: MetadataFilter) -> list[Any]:
    if isinstance(each.value, list):
        return each.value
    raise InputError(f"The filter on {each.key!r} with {each.operator.value!r} needs a list.")
