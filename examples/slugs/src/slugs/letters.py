"""Conversion of letters to ASCII."""

import unicodedata

# Letters that Unicode does not decompose into an ASCII letter and a mark.
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
    """Replace letters by the nearest ones in ASCII, and drop all others."""
    text = "".join(SPECIAL.get(letter, letter) for letter in text)
    apart = unicodedata.normalize("NFKD", text)
    return apart.encode("ascii", "ignore").decode("ascii")
