import codecs

import pytest
import webencodings

from webrag.ingestion.http.decode import encoding_of

# One label of each encoding of the WHATWG standard that Python does not know or reads otherwise.
LABELS = [
    ("866", "cp866"),
    ("iso88592", "iso8859-2"),
    ("L3", "iso8859-3"),
    ("iso_8859-4:1988", "iso8859-4"),
    ("csISOLatinCyrillic", "iso8859-5"),
    ("iso-8859-6-i", "iso8859-6"),
    ("sun_eu_greek", "iso8859-7"),
    ("csiso88598i", "iso8859-8"),
    ("iso885910", "iso8859-10"),
    ("iso885913", "iso8859-13"),
    ("iso885914", "iso8859-14"),
    ("csisolatin9", "iso8859-15"),
    ("koi", "koi8-r"),
    ("koi8-ru", "koi8-u"),
    ("x-mac-roman", "mac-roman"),
    ("iso885911", "cp874"),
    ("x-cp1250", "cp1250"),
    ("x-cp1251", "cp1251"),
    ("iso_8859-1:1987", "cp1252"),
    (" US-ASCII ", "cp1252"),
    ("x-cp1253", "cp1253"),
    ("iso-ir-148", "cp1254"),
    ("x-cp1255", "cp1255"),
    ("x-cp1256", "cp1256"),
    ("x-cp1257", "cp1257"),
    ("x-cp1258", "cp1258"),
    ("x-mac-ukrainian", "mac-cyrillic"),
    ("csiso58gb231280", "gb18030"),
    ("x-x-big5", "big5hkscs"),
    ("x-euc-jp", "euc-jp"),
    ("csiso2022jp", "iso2022-jp"),
    ("x-sjis", "cp932"),
    ("iso-ir-149", "cp949"),
    ("unicodefffe", "utf-16-be"),
    ("iso-10646-ucs-2", "utf-16-le"),
    ("x-unicode20utf8", "utf-8"),
]


@pytest.mark.parametrize(("label", "codec"), LABELS)
def test_label_is_read_as_browsers_read_it(label: str, codec: str) -> None:
    found = encoding_of(label)

    assert found is not None
    assert webencodings.lookup(found).codec_info.name == codecs.lookup(codec).name


@pytest.mark.parametrize("label", ["utf-7", "hex", "zip", "unicode_escape", "idna", "", None])
def test_codecs_that_are_no_charsets_are_refused(label: str | None) -> None:
    assert encoding_of(label) is None


@pytest.mark.parametrize(
    "label", ["cp037", "ibm500", "hz-gb-2312", "iso-2022-kr", "csiso2022kr", "utf-32"]
)
def test_charsets_that_hide_markup_are_refused(label: str) -> None:
    assert encoding_of(label) is None
