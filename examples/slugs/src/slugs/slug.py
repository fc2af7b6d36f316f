"""One title, one slug."""

import re

from .letters import to_ascii

NOT_WORD = re.compile(r"[^a-zA-Z0-9]+")
APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")


def slugify(text, separator="-", max_length=None, lowercase=True):
    """Make a slug of letters, digits and separators.

    A slug neither begins nor ends with the separator, and has no two of them in a row.

    :param text: any text; letters outside ASCII are replaced by the nearest ones
    :param separator: text between words
    :param max_length: maximum number of characters; ``None`` for no limit
    :param lowercase: convert to lower case
    :raises ValueError: if ``max_length`` is less than 1
    """
    if max_length is not None and max_length < 1:
        raise ValueError("max_length must be at least 1, not {}".format(max_length))
    text = APOSTROPHE.sub("", text)
    slug = NOT_WORD.sub(" ", to_ascii(text)).strip().replace(" ", separator)
    if lowercase:
        slug = slug.lower()
    return slug if max_length is None else truncate(slug, max_length)


def truncate(slug, max_length):
    """Cut a slug to its first ``max_length`` characters."""
    return slug[:max_length]
