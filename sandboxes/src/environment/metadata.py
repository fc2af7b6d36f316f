"""Prints the installed metadata of the code under test as JSON: its name, extras and requirements.

Only the build itself knows the extras and requirements that pyproject.toml marks as dynamic or setup.py computes.
"""

import glob
import json
import os
import sys
import sysconfig
from email.parser import HeaderParser

workspace = os.path.realpath(sys.argv[1])
found = {"name": None, "extras": [], "requires": []}
for folder in {sysconfig.get_paths()[key] for key in ("purelib", "platlib")}:
    for info in glob.glob(os.path.join(folder, "*.dist-info")):
        try:
            with open(os.path.join(info, "direct_url.json"), encoding="utf-8") as file:
                url = json.load(file).get("url", "")
            if not url.startswith("file://") or os.path.realpath(url[len("file://"):]) != workspace:
                continue
            with open(os.path.join(info, "METADATA"), encoding="utf-8") as file:
                metadata = HeaderParser().parse(file)
        except (OSError, ValueError):
            continue
        found = {
            "name": metadata["Name"],
            "extras": metadata.get_all("Provides-Extra") or [],
            "requires": metadata.get_all("Requires-Dist") or [],
        }
print("\ntestwright-metadata: " + json.dumps(found))
