"""Runs the program: `python -m testwright` is `testwright`."""

import os
import sys

from .errors import TestwrightError
from .program import find_program

try:
    program = find_program()
except TestwrightError as error:
    sys.exit(f"error: {error}")
os.execv(program, [program, *sys.argv[1:]])
