"""Turns an installed copy of the code into a link to it, as an editable install would.

It serves build tools without editable installs. Build products (extension modules, generated files) go into the
source tree, the rest of the copy is removed, and a .pth file lists the folders that contain the packages.
"""

import csv
import glob
import json
import os
import shutil
import sys
import sysconfig

workspace = os.path.realpath(sys.argv[1])
roots = [os.path.join(workspace, name) for name in ("src", "lib", "")]


def installed():
    paths = sysconfig.get_paths()
    for site in sorted({paths["purelib"], paths["platlib"]}):
        for info in sorted(glob.glob(os.path.join(site, "*.dist-info"))):
            try:
                with open(os.path.join(info, "direct_url.json")) as file:
                    url = json.load(file).get("url", "")
            except OSError:
                continue
            if url.startswith("file://") and os.path.realpath(url[len("file://"):]) == workspace:
                return site, info
    sys.exit("no package was installed from " + workspace)


site, info = installed()
with open(os.path.join(info, "RECORD"), newline="") as file:
    rows = [row for row in csv.reader(file) if row]
kept, linked, folders = [], set(), set()
for row in rows:
    path = row[0]
    top = path.split("/")[0]
    root = next((r for r in roots if os.path.lexists(os.path.join(r, top))), None)
    if os.path.isabs(path) or top == ".." or top.endswith(".dist-info") or root is None:
        kept.append(row)
        continue
    copy, source = os.path.join(site, path), os.path.join(root, path)
    if not os.path.lexists(source) and "__pycache__" not in path and os.path.isdir(os.path.dirname(source)):
        shutil.copy2(copy, source)
    if os.path.lexists(copy):
        os.remove(copy)
    linked.add(root.rstrip("/"))
    folders.add(os.path.dirname(copy))
for folder in sorted(folders, key=len, reverse=True):
    shutil.rmtree(os.path.join(folder, "__pycache__"), ignore_errors=True)
    while folder != site and folder.startswith(site) and os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)
        folder = os.path.dirname(folder)
name = "__editable__." + os.path.basename(info)[: -len(".dist-info")] + ".pth"
with open(os.path.join(site, name), "w") as file:
    file.write("".join(root + "\n" for root in sorted(linked)))
kept.append([name, "", ""])
with open(os.path.join(info, "RECORD"), "w", newline="") as file:
    csv.writer(file, lineterminator="\n").writerows(kept)
print("linked", ", ".join(sorted(linked)))
