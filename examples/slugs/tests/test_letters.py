import pytest

from slugs import to_ascii


@pytest.mark.parametrize(
    "text, plain",
    [
        ("plain", "plain"),
        ("crème brûlée", "creme brulee"),
        ("Straße", "Strasse"),
        ("Łódź", "Lodz"),
        ("日本", ""),
    ],
)
def test_nearest_letters(text, plain):
    assert to_ascii(text) == plain
