import pytest

from webrag.presentation.html.converter import html_to_text

BASE = "https://docs.example.org/guide/"


@pytest.mark.parametrize(
    ("math", "latex"),
    [
        pytest.param('<math alttext="\\alpha"><mi>a</mi></math>', r"$\alpha$", id="alttext"),
        pytest.param(
            "<math><semantics><mi>x</mi><annotation encoding='application/x-tex'>x_1</annotation>"
            "</semantics></math>",
            "$x_1$",
            id="annotation",
        ),
        pytest.param(
            "<math display='block'><mfrac><mi>a</mi><mn>10</mn></mfrac></math>",
            r"$$\frac{a}{10}$$",
            id="display fraction",
        ),
        pytest.param(
            "<math><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><msqrt><mi>y</mi></msqrt></math>",
            r"$x^2+\sqrt{y}$",
            id="power and root",
        ),
        pytest.param(
            "<math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover></math>",
            r"$\sum _i^n$",
            id="sum",
        ),
        pytest.param("<math><mfrac><mi>a</mi></mfrac></math>", "$a$", id="malformed"),
    ],
)
def test_math_becomes_latex(math: str, latex: str) -> None:
    assert html_to_text(f"<p>{math}</p>", BASE).text == latex
