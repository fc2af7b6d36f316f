"""Removes traces of the other side: gives all changed files one time, and compiles their bytecode again.

Reads a request as JSON from standard input: `changed` files, and the `shown` text of files whose bytecode shall be that
of the text that they have now.
"""

import importlib.util
import json
import marshal
import os
import sys
from collections import Counter

# Since Python 3.7, bytecode begins with flags. Bit 0: validated by a hash; bit 1: the hash is compared.
HAS_FLAGS = sys.version_info >= (3, 7)
CHECKED_HASH = 3


def usual_time(changed):
    """Return the time of most files, which is that of the commit, and set the times of folders and bytecode to it."""
    times = Counter()
    others = []
    for folder, below, names in os.walk("."):
        below[:] = [name for name in below if name != ".git"]
        others.append(folder)
        for name in names:
            path = os.path.join(folder, name)[2:]
            if name.endswith(".pyc"):
                others.append(path)
            elif path not in changed:
                times[int(os.lstat(path).st_mtime)] += 1
    time = times.most_common(1)[0][0] if times else 0
    for path in others:
        set_time(path, time)
    return time


def set_time(path, time):
    try:
        os.utime(path, (time, time), follow_symlinks=False)
    except OSError:
        pass


def is_hashed(target):
    """Return whether bytecode in the folder is validated by hash; None if there is no bytecode."""
    folder = os.path.dirname(target)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    suffix = "." + sys.implementation.cache_tag + ".pyc"
    for name in names:
        if name.endswith(suffix):
            with open(os.path.join(folder, name), "rb") as file:
                header = file.read(8)
            return HAS_FLAGS and len(header) == 8 and header[4] & CHECKED_HASH == CHECKED_HASH
    return None


def header(source, time, hashed):
    magic = importlib.util.MAGIC_NUMBER
    number = lambda n: (n & 0xFFFFFFFF).to_bytes(4, "little")
    if hashed:
        return magic + number(CHECKED_HASH) + importlib.util.source_hash(source)
    flags = number(0) if HAS_FLAGS else b""
    return magic + flags + number(time) + number(len(source))


def compile_again(path, shown, time):
    """Replace the bytecode of a file, and its text if another one is shown."""
    target = importlib.util.cache_from_source(path)
    hashed = is_hashed(target)
    folder, prefix = os.path.dirname(target), os.path.basename(path)[:-2]
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        # pytest writes bytecode of its own beside that of Python.
        if name.startswith(prefix) and name.endswith(".pyc"):
            os.unlink(os.path.join(folder, name))
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        source = file.read()
    set_time(path, time)
    if hashed is None and shown is None:
        return
    try:
        code = compile(source, os.path.abspath(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return
    # Without bytecode, Python would run the text that is shown.
    if shown is not None:
        with open(path, "wb") as file:
            file.write(shown)
        set_time(path, time)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(header(source if shown is None else shown, time, bool(hashed)) + marshal.dumps(code))
    set_time(target, time)


def main(request):
    changed = [os.fsdecode(path.encode("utf-8")) for path in request["changed"]]
    texts = {os.fsdecode(path.encode("utf-8")): text.encode("utf-8") for path, text in request["shown"].items()}
    time = usual_time(set(changed))
    for path in changed:
        if path.endswith(".py"):
            compile_again(path, texts.get(path), time)
        else:
            set_time(path, time)
        folder = os.path.dirname(path)
        while folder:
            set_time(folder, time)
            set_time(os.path.join(folder, "__pycache__"), time)
            folder = os.path.dirname(folder)
    set_time(".", time)


main(json.loads(sys.stdin.buffer.read().decode("utf-8")))
