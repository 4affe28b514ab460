import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pattern_attacks import stopped_after
from webrag.ingestion.site_maps.listing import MapRefusedError, read_data, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=20,
)


@given(VALUES)
def test_data_given_to_a_call_is_read_as_it_was_written(value: object) -> None:
    assert read_data(f"Search.setIndex({json.dumps([value])});", "Search.setIndex(") == [value]


@given(VALUES)
def test_data_inside_a_text_for_json_parse_is_read(value: object) -> None:
    quoted = json.dumps(json.dumps([value]))

    assert read_data(f"var index = JSON.parse({quoted});") == [value]


NAMES = st.from_regex(r"[a-zé_$][0-9A-Z_a-z]{0,8}", fullmatch=True)


@given(st.dictionaries(NAMES, st.text(max_size=20), min_size=1))
def test_literals_with_bare_keys_and_single_quotes_are_read(table: dict[str, str]) -> None:
    rows = ",".join(
        "{}:'{}'".format(
            key,
            value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", ""),
        )
        for key, value in table.items()
    )

    found = read_data(f"x={{{rows},}};")

    assert found == {key: value.replace("\r", "") for key, value in table.items()}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("x={0:'a',1:'{2:3}'}", {"0": "a", "1": "{2:3}"}),
        ('x = {\n  0: "a",\n  1: "b"\n};', {"0": "a", "1": "b"}),
        (r"x=[`a b`, `it's \` \\c`]", ["a b", "it's ` \\c"]),
        ("x = JSON.parse(`[1,\r\n2]`)", [1, 2]),
        ("x = {/* it's */ a: 'b'}", {"a": "b"}),
    ],
)
def test_what_javascript_has_beyond_json_is_read(text: str, data: object) -> None:
    assert read_data(text) == data


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alert(1)", "holds no data"),
        ("x = {a: run()}", "not written as data"),
        ("x = " + "[" * 200_000, "nested too deeply"),
        ("x = JSON.parse('[1,2", "Unclosed"),
        ("x = {'a': 1" + "0" * 5_000 + "}", "not written as data"),
    ],
)
def test_what_is_no_data_is_refused_in_a_sentence(text: str, said: str) -> None:
    with pytest.raises(MapRefusedError, match=said):
        read_data(text)


def test_json_nested_too_deeply_is_refused() -> None:
    with pytest.raises(MapRefusedError, match="nested too deeply"):
        read_json("[" * 200_000)


@pytest.mark.parametrize(
    "unit", ["'", '"', "\\", "{a:", ",", "/*", "*", "'\\", "\x00", "{a:'b',", "`", "`\\"]
)
def test_hostile_files_take_linear_time(unit: str) -> None:
    with stopped_after(20), pytest.raises(MapRefusedError):
        read_data("x = {" + unit * 100_000)
