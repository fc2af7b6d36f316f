"""Unique slugs."""

from .slug import slugify


class Slugger:
    """Makes slugs that differ from all earlier ones.

    >>> slugger = Slugger()
    >>> slugger("News"), slugger("News")
    ('news', 'news-2')
    """

    def __init__(self, separator="-"):
        self.separator = separator
        self.taken = set()

    def __call__(self, text):
        slug = base = slugify(text, separator=self.separator)
        number = 1
        while slug in self.taken:
            number += 1
            slug = "{}{}{}".format(base, self.separator, number)
        self.taken.add(slug)
        return slug
