"""`dev.py sbom`: a bill of materials of the five wheels, CycloneDX 1.5 in JSON, made from the wheels themselves."""
import email
import hashlib
import json
import re
import zipfile

from . import build
from .workspace import PACKAGES


def metadata(wheel):
    """The METADATA of a wheel as an email message."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def needs(message):
    """(name, what the requirement says, extra or None) of every requirement."""
    for text in message.get_all("Requires-Dist") or ():
        rule, _, marker = text.partition(";")
        extra = re.search(r"extra == ['\"]([^'\"]+)", marker)
        name = re.match(r"[A-Za-z0-9._-]+", rule.strip())[0]
        yield name, rule.strip()[len(name):].strip(), extra[1] if extra else None


def bill(wheels):
    """The bill: dict package → wheel file in, CycloneDX value out. Third-party packages are named with the range that
    is asked for; which version is installed is the installer's choice."""
    components, edges = {}, []
    for package, wheel in wheels.items():
        message, reference = metadata(wheel), f"pkg:pypi/{package}"
        components[package] = {
            "type": "library", "bom-ref": reference, "name": package, "version": message["Version"],
            "purl": f"{reference}@{message['Version']}",
            "licenses": [{"license": {"id": message["License-Expression"]}}],
            "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]}
        required = [(n, rule) for n, rule, extra in needs(message) if extra is None]
        edges.append({"ref": reference, "dependsOn": sorted(f"pkg:pypi/{n}" for n, _ in required)})
        for name, rule in required:
            if name not in wheels:
                components[name] = {"type": "library", "bom-ref": f"pkg:pypi/{name}", "name": name,
                                    "purl": f"pkg:pypi/{name}",
                                    "properties": [{"name": "dx:requirement", "value": rule or "any version"}]}
    return {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
            "components": [components[name] for name in sorted(components)], "dependencies": edges}


def sbom():
    """Prints the bill of the wheels in dist/, which are built if need be; returns the exit code."""
    wheels = build.build_all()
    print(json.dumps(bill({package: wheels[package] for package in PACKAGES}), indent=1))
    return 0
