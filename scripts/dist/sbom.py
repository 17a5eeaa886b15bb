#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints an SPDX 2.3 bill of materials (JSON) of the files in a directory.

usage: sbom.py [--depends LIST] [--date SECONDS] [--exclude NAME] NAME VERSION DIR

The licence of a file is that of its SPDX line; a file without one is under the licence of the project. DIR is a source tree
or what a package installs. The same input gives the same bytes: --date, or SOURCE_DATE_EPOCH, is the only time in it.
"""

import argparse
import datetime
import hashlib
import json
import os
import re
import sys
import uuid

LICENCE = "GPL-2.0-only"
DATA, DATA_LICENCE = "evaluation/", "CC0-1.0"  # as in REUSE.toml
LICENCES = {LICENCE, f"{LICENCE} WITH Linux-syscall-note"}
# In one of the first lines, after the marks of a comment only: other lines may be about such a line. In two pieces, so that
# this is none for reuse.
SPDX = re.compile(rb"^[\s#/*.\\\"!<-]*SPDX-License-" rb"Identifier: *(.*?)[\s*/>-]*$")
TYPES = {".c": "SOURCE", ".h": "SOURCE", ".py": "SOURCE", ".sh": "SOURCE", ".so": "BINARY", ".md": "DOCUMENTATION",
         ".8": "DOCUMENTATION", ".svg": "IMAGE", ".png": "IMAGE", ".gz": "ARCHIVE"}


def licence_of(path, content):
    """The licence in the SPDX line, or None."""
    for line in content.splitlines()[:5]:
        match = SPDX.match(line)
        if match:
            licence = match[1].decode()
            if licence not in LICENCES:
                sys.exit(f"sbom.py: {path}: unknown licence '{licence}'; the project has {', '.join(sorted(LICENCES))}")
            return licence
    return None


def files_of(root, exclude):
    """The paths of all regular files, sorted by their bytes."""
    paths = []
    for directory, directories, names in os.walk(root):
        if directory == root and exclude in directories:
            directories.remove(exclude)
        paths += (os.path.relpath(os.path.join(directory, name), root) for name in names)
    return sorted((path for path in paths if os.path.isfile(os.path.join(root, path))
                   and not os.path.islink(os.path.join(root, path))), key=os.fsencode)


def describe_file(root, path, number):
    with open(os.path.join(root, path), "rb") as file:
        content = file.read()
    licence = licence_of(path, content)
    return {
        "SPDXID": f"SPDXRef-File-{number}",
        "fileName": f"./{path}",
        "fileTypes": [TYPES.get(os.path.splitext(path)[1], "OTHER")],
        "checksums": [{"algorithm": name, "checksumValue": hashlib.new(name, content).hexdigest()}
                      for name in ("SHA1", "SHA256")],
        "licenseConcluded": licence or (DATA_LICENCE if path.startswith(DATA) else LICENCE),
        "licenseInfoInFiles": [licence or "NONE"],
        "copyrightText": "NOASSERTION",
    }


def describe_package(name, version, files):
    """The package with its verification code: the SHA1 of the sorted SHA1s of its files."""
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    return {
        "SPDXID": "SPDXRef-Package",
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: The dualpi2 authors",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()},
        "licenseConcluded": LICENCE,
        "licenseInfoFromFiles": sorted({file["licenseInfoInFiles"][0] for file in files}),
        "licenseDeclared": LICENCE,
        "copyrightText": "2026 The dualpi2 authors",
    }


def describe_dependency(entry, number):
    """A package that another one needs: "NAME" or "NAME (>= VERSION)"."""
    name, _, condition = entry.partition(" ")
    package = {"SPDXID": f"SPDXRef-Dependency-{number}", "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
               "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION"}
    if condition:
        package["comment"] = f"version {condition.strip('()')}"
    return package


def document(name, version, root, depends, date, exclude):
    files = [describe_file(root, path, number) for number, path in enumerate(files_of(root, exclude), 1)]
    if not files:
        sys.exit(f"sbom.py: '{root}' has no files; name a source tree or the tree of a package")
    package = describe_package(name, version, files)
    entries = [entry.strip() for entry in depends.split(",") if entry.strip()]
    dependencies = [describe_dependency(entry, number) for number, entry in enumerate(entries, 1)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", package["SPDXID"])]
    relations += [(package["SPDXID"], "CONTAINS", file["SPDXID"]) for file in files]
    relations += [(package["SPDXID"], "DEPENDS_ON", dependency["SPDXID"]) for dependency in dependencies]
    code = package["packageVerificationCode"]["packageVerificationCodeValue"]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "documentNamespace": uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {version} {code} {depends}").urn,
        "creationInfo": {
            "created": datetime.datetime.fromtimestamp(date, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Organization: The dualpi2 authors", "Tool: dualpi2-sbom.py"],
        },
        "packages": [package, *dependencies],
        "files": files,
        "relationships": [{"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": target}
                          for subject, kind, target in relations],
    }


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False, description="Print an SPDX 2.3 bill of materials of a directory.")
    parser.add_argument("--depends", default="", metavar="LIST", help="packages needed, as Debian's Depends (default: none)")
    parser.add_argument("--date", type=int, default=int(os.environ.get("SOURCE_DATE_EPOCH", "0")), metavar="SECONDS",
                        help="time of creation, seconds since 1970 (default: SOURCE_DATE_EPOCH, or 0)")
    parser.add_argument("--exclude", default="", metavar="NAME", help="directory in DIR that is left out (default: none)")
    parser.add_argument("name", help="name of the package")
    parser.add_argument("version", help="version of the package")
    parser.add_argument("directory", help="tree of the package")
    args = parser.parse_args()
    json.dump(document(args.name, args.version, args.directory, args.depends, args.date, args.exclude), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
