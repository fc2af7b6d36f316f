"""Makes a project importable without its build tool: python without_build.py WORKSPACE REQUEST.json

It writes a .pth file with the folders to import from. If the request has metadata, it also writes the metadata of an
editable install, the scripts of console entry points, and the modules in which a build records the version.
"""

import json
import os
import re
import stat
import sys
import sysconfig

workspace = os.path.realpath(sys.argv[1])
with open(sys.argv[2], encoding="utf-8") as file:
    request = json.load(file)
folder = os.path.normpath(os.path.join(workspace, request["folder"]))
paths = sysconfig.get_paths()
site = paths["purelib"]
records = []


def write(path, content):
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)
    records.append(os.path.relpath(path, site) + ",,")


metadata = request["metadata"]
version = request["version"]
name = (metadata or {}).get("name") or request["folder"] or os.path.basename(workspace)
name = re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_.") or "project"
roots = [os.path.normpath(os.path.join(folder, root)) for root in request["roots"] or [""]]
write(os.path.join(site, "__editable__.%s.pth" % name), "".join(root + "\n" for root in roots))
if metadata:
    info = os.path.join(site, "%s-%s.dist-info" % (name, version))
    lines = ["Metadata-Version: 2.1", "Name: " + (metadata["name"] or name), "Version: " + version]
    lines += ["Provides-Extra: " + extra for extra in metadata["extras"]]
    lines += ["Requires-Dist: " + line for line in metadata["dependencies"]]
    write(os.path.join(info, "METADATA"), "\n".join(lines) + "\n")
    write(os.path.join(info, "INSTALLER"), "testwright\n")
    url = {"url": "file://" + folder, "dir_info": {"editable": True}}
    write(os.path.join(info, "direct_url.json"), json.dumps(url))
    groups = metadata["entry_points"]
    text = ""
    for group in sorted(groups):
        text += "[%s]\n" % group
        text += "".join("%s = %s\n" % item for item in sorted(groups[group].items())) + "\n"
    write(os.path.join(info, "entry_points.txt"), text)
    for script, target in groups.get("console_scripts", {}).items():
        match = re.match(r"([\w.]+)\s*:\s*([\w.]+)", target)
        if not match or not re.match(r"[\w.-]+$", script):
            continue
        module, function = match.groups()
        path = os.path.join(paths["scripts"], script)
        write(
            path,
            "#!%s\nimport sys\nfrom %s import %s\nsys.exit(%s())\n"
            % (sys.executable, module, function.split(".")[0], function),
        )
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    numbers = tuple(int(part) if part.isdigit() else part for part in re.split(r"[.+]", version))
    for place in metadata["version_files"]:
        path = os.path.normpath(os.path.join(folder, place))
        if path.startswith(workspace + os.sep) and os.path.isdir(os.path.dirname(path)) and not os.path.exists(path):
            with open(path, "w", encoding="utf-8") as file:
                file.write("version = __version__ = %r\n" % version)
                file.write("version_tuple = __version_tuple__ = %r\n" % (numbers,))
    write(os.path.join(info, "RECORD"), "\n".join(records) + "\n")
print("on the import path: " + ", ".join(roots))
