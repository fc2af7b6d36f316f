import pytest

from slugs import slugify


def test_words_are_joined():
    assert slugify("How to bake bread") == "how-to-bake-bread"


def test_punctuation_is_left_out():
    assert slugify("  What's new, in 3.0?! ") == "whats-new-in-3-0"


def test_other_separator():
    assert slugify("a b c", separator="_") == "a_b_c"


def test_capitals_can_stay():
    assert slugify("PEP 8", lowercase=False) == "PEP-8"


def test_nothing_is_left():
    assert slugify("!?") == ""


class TestMaxLength:
    def test_short_text_is_left_alone(self):
        assert slugify("bread", max_length=10) == "bread"

    def test_long_text_is_cut(self):
        assert slugify("How to bake bread", max_length=9) == "how-to-ba"

    @pytest.mark.parametrize("length", [0, -1])
    def test_must_be_positive(self, length):
        with pytest.raises(ValueError, match="at least 1"):
            slugify("bread", max_length=length)
