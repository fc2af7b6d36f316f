"""Turns titles into names for files and URLs."""

from .letters import to_ascii
from .slug import slugify
from .unique import Slugger

__all__ = ["Slugger", "slugify", "to_ascii"]
__version__ = "0.3.0"
