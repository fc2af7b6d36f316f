"""Letters that are not in ASCII."""

import unicodedata

# Letters that do not come apart into a plain letter and a mark.
SPECIAL = {
    "ß": "ss",
    "æ": "ae",
    "Æ": "AE",
    "ø": "o",
    "Ø": "O",
    "ł": "l",
    "Ł": "L",
    "đ": "d",
    "Đ": "D",
    "þ": "th",
    "Þ": "Th",
}


def to_ascii(text):
    """Replace letters by the nearest ones in ASCII; what has none is left out."""
    text = "".join(SPECIAL.get(letter, letter) for letter in text)
    apart = unicodedata.normalize("NFKD", text)
    return apart.encode("ascii", "ignore").decode("ascii")
