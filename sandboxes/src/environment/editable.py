"""Prints the modules of an editable install that cannot be found: the distribution's name, then top-level names.

Prints nothing if everything is found in the workspace.
"""

import glob
import importlib.util
import json
import os
import sys
import sysconfig

workspace = os.path.realpath(sys.argv[1])


def inside(path):
    return path is not None and os.path.realpath(path).startswith(workspace + os.sep)


def found(name):
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and (inside(spec.origin) or any(map(inside, spec.submodule_search_locations or ())))


paths = sysconfig.get_paths()
for site in sorted({paths["purelib"], paths["platlib"]}):
    for info in sorted(glob.glob(os.path.join(site, "*.dist-info"))):
        try:
            with open(os.path.join(info, "direct_url.json")) as file:
                url = json.load(file).get("url", "")
            with open(os.path.join(info, "top_level.txt")) as file:
                names = file.read().split()
        except OSError:
            continue
        if url.startswith("file://") and os.path.realpath(url[len("file://"):]) == workspace:
            lost = [name for name in names if not found(name)]
            if lost:
                print(os.path.basename(info).split("-")[0], " ".join(lost))
