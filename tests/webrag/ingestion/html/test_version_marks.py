"""Documentation generators write the version into their pages, each in a way of its own."""

import pytest
from selectolax.lexbor import LexborHTMLParser

from webrag.ingestion.html.metadata import read_metadata


@pytest.mark.parametrize(
    ("html", "version"),
    [
        pytest.param(
            "<head><title>Firing &#8212; Kiln 3.2 documentation</title></head>",
            "3.2",
            id="sphinx-title",
        ),
        pytest.param(
            "<script>var DOCUMENTATION_OPTIONS = {URL_ROOT: '../', VERSION: '3.2.1',"
            " LANGUAGE: 'en'};</script>",
            "3.2.1",
            id="sphinx-options",
        ),
        pytest.param(
            '<meta name="docusaurus_version" content="2.x"><meta name="docsearch:version"'
            ' content="2.x">',
            "2.x",
            id="docusaurus",
        ),
        pytest.param(
            '<meta name="docsearch:version" content="latest,4.1.0">', "4.1.0", id="docsearch"
        ),
        pytest.param(
            '<div id="projectname">Kiln<span id="projectnumber">&#160;1.9.4</span></div>',
            "1.9.4",
            id="doxygen",
        ),
        pytest.param("<title>Cone (Kiln 2.1 API)</title>", "2.1", id="javadoc"),
        pytest.param("<title>String (Java SE 21 &amp; JDK 21)</title>", "21", id="java"),
        pytest.param(
            '<nav class="sidebar"><div class="sidebar-crate"><h2><a href="#">kiln</a>'
            '<span class="version">0.7.3</span></h2></div></nav>',
            "0.7.3",
            id="rustdoc",
        ),
        pytest.param(
            '<nav class="sidebar"><div class="block version"><p>Version 0.7.3</p></div></nav>',
            "0.7.3",
            id="rustdoc-before-1.70",
        ),
        pytest.param('<meta name="docusaurus_version" content="current">', "", id="label"),
        pytest.param("<title>What is new in 3.2</title>", "", id="other-title"),
        pytest.param("<title>Ten tips for API documentation</title>", "", id="no-number"),
        pytest.param('<meta name="generator" content="Kiln 3.2">', "", id="of-the-generator"),
    ],
)
def test_generators_name_the_version(html: str, version: str) -> None:
    assert read_metadata(LexborHTMLParser(html), "https://docs.test/a").version == version
