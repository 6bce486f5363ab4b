"""`dev.py test`: every suite in its own pytest process, counted against tests/counts.json."""
import json
import os
import shutil
import tempfile
import time
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from . import build
from .workspace import (COMPILED, DIST, ROOT, TEST_TOOLS, VENV, Failed, clean_environment, existing, folder, output,
                        python_of, run, say)

COUNTS = ROOT / "tests" / "counts.json"


def suites():
    """Suite name → folder of its tests, bottom-up, the spanning tests last."""
    found = {package: folder(package) / "tests" for package in existing()}
    found["tests"] = ROOT / "tests"
    return {name: path for name, path in found.items() if any(path.rglob("test_*.py"))}


def passed_functions(report):
    """How many test functions of a junit report passed at least once, however many parameters this CPU gives them."""
    good = set()
    for case in ElementTree.parse(report).iter("testcase"):
        if not {child.tag for child in case} & {"failure", "error", "skipped"}:
            good.add((case.get("classname"), case.get("name").split("[")[0]))
    return len(good)


def pytest(python, path, *options, cwd=ROOT, env=None):
    """Runs one suite; (exit code, number of test functions that passed)."""
    with tempfile.TemporaryDirectory() as temp:
        report = Path(temp) / "report.xml"
        code = run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *options, path],
                   cwd=cwd, env=env or clean_environment(), check=False)
        return code, passed_functions(report) if report.exists() else 0


def judge(results, counts, record, chosen=False):
    """Raises when a suite failed, ran nothing, or ran fewer test functions than recorded; prints the table.

    chosen: the caller's own pytest options select tests, so that a suite may have none.
    """
    wrong = []
    for name, (code, count, seconds) in results.items():
        least = 0 if chosen else counts.get(name, 1)
        code = 0 if chosen and code == 5 else code  # 5: no test was selected
        say(f"{name:12} {count:5} test functions passed (at least {least})  {seconds:6.1f} s  exit code {code}")
        if code:
            wrong.append(f"{name}: exit code {code}")
        elif count < least and not record:
            wrong.append(f"{name}: {count} test functions passed, tests/counts.json wants at least {least}")
        elif count < min(least, 1):
            wrong.append(f"{name}: no test ran")
    gone = [name for name in counts if name not in results and not chosen]
    wrong += [f"{name}: tests/counts.json has this suite, the tree has not" for name in gone]
    if wrong:
        raise Failed("tests failed\n  " + "\n  ".join(wrong))


def run_suites(python, chosen, section, options=(), env=None, record=False, extra=()):
    """Runs the suites in order, all of them also after a failure, and judges them against a section of counts.json."""
    counts = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else {}
    results = {}
    for name, path in chosen.items():
        say(f"--- {name}")
        start = time.monotonic()
        code, count = pytest(python, path, *options, *extra, env=env)
        results[name] = code, count, time.monotonic() - start
    judge(results, counts.get(section, {}), record, bool(extra))
    if record:
        counts[section] = {name: count for name, (_, count, _) in results.items()}
        COUNTS.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")


def fast(extra, record=False, no_build=False):
    """The fast tier."""
    if not no_build:
        build.ensure_installed(VENV, TEST_TOOLS)
    env = clean_environment(DX_WHEELS=str(DIST))
    run_suites(python_of(VENV), suites(), "fast", (), env, record, extra)
    return 0


def exhaustive(extra, record=False, no_build=False):
    """The long checks alone."""
    if not no_build:
        build.ensure_installed(VENV, TEST_TOOLS)
    env = clean_environment(DX_WHEELS=str(DIST))
    marked = {n: p for n, p in suites().items()
              if any("exhaustive" in f.read_text(encoding="utf-8") for f in p.rglob("*.py"))}
    run_suites(python_of(VENV), marked, "exhaustive", ("-m", "exhaustive"), env, record, extra)
    return 0


def variant(name, packages, extra, settings, run_settings):
    """Builds with these settings into dist-NAME and .venv-NAME and runs the packages' suites there."""
    os.environ.update(settings)
    try:
        out, where = ROOT / f"dist-{name}", ROOT / f".venv-{name}"
        build.ensure_installed(where, TEST_TOOLS, out, packages)
    finally:
        for key in settings:
            del os.environ[key]
    chosen = {n: p for n, p in suites().items() if n in packages}
    env = clean_environment(DX_WHEELS=str(out), DX_BUILD=name, **run_settings)
    run_suites(python_of(where), chosen, name, (), env, extra=extra)
    return 0


def debug_cython(extra):
    """The packages' suites with Cython's bounds, None and initialisation checks compiled in."""
    return variant("debug", existing(), extra, {"DX_CYTHON_DEBUG": "1"}, {})


def sanitize(extra):
    """The compiled packages' suites under AddressSanitizer and UndefinedBehaviorSanitizer (gcc)."""
    compiler = os.environ.get("CC", "gcc").split()[-1]
    libraries = [output([compiler, f"-print-file-name=lib{name}.so"]).strip() for name in ("asan", "ubsan", "stdc++")]
    if not all(os.path.isabs(name) for name in libraries):
        raise Failed(f"{compiler} has no sanitizer runtime ({', '.join(libraries)}); --sanitize needs gcc with libasan")
    settings = {"LD_PRELOAD": " ".join(libraries), "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
                "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1"}
    return variant("sanitize", COMPILED, extra, {"DX_SANITIZE": "1"}, settings)


def changed_packages(reference):
    """The lowest package that differs from the git reference and all above it; all when the change is outside them."""
    names = output(["git", "diff", "--name-only", reference]).split()
    touched = {name.split("/")[1] for name in names if name.startswith("packages/")}
    if any(not name.startswith(("packages/", "docs/")) for name in names):
        return existing()
    order = existing()
    first = min((order.index(p) for p in touched if p in order), default=len(order))
    return order[first:]


def unpack(sdist, into):
    """Unpacks an sdist; its folder."""
    shutil.unpack_archive(sdist, into)
    return next(p for p in Path(into).iterdir() if p.is_dir())


def compare(first, second):
    """Names of the files in which two wheels differ."""
    with zipfile.ZipFile(first) as a, zipfile.ZipFile(second) as b:
        names = sorted({*a.namelist(), *b.namelist()})
        return [n for n in names if n not in a.namelist() or n not in b.namelist() or a.read(n) != b.read(n)]


def clean_one(package, wheels, temp):
    """One package as a stranger gets it: sdist → wheel → empty environment → its own tests, the tree out of reach."""
    lower = [w for p, w in wheels.items() if p != package and existing().index(p) < existing().index(package)]
    links = Path(temp) / "below"
    links.mkdir()
    for wheel in lower:
        shutil.copy(wheel, links)
    say(f"{package}: sdist, and a wheel from it")
    sdist = build.build_one(package, Path(temp) / "sdist", [links], VENV, "sdist")
    made = Path(temp) / "wheel"
    build.pip(VENV, "wheel", "-q", "--no-deps", "-w", made, sdist, env=build.find_links(links))
    wheel = next(made.glob("*.whl"))
    different = compare(wheel, wheels[package])
    if different:
        raise Failed(f"{package}: wheels from the sdist and from the tree differ in {', '.join(different)}")
    where = Path(temp) / "venv"
    build.make_venv(where)
    build.pip(where, "install", "-q", f"{wheel}[test]", env=build.find_links(links))
    python = python_of(where)
    run([python, "-m", "pip", "check"], quiet=True)
    name = package.replace("-", "_")
    run([python, "-I", "-W", "error", "-c", f"import {name}; print({name}.__version__)"], cwd=temp)
    place = Path(temp) / "run" / "packages" / package
    shutil.copytree(unpack(sdist, Path(temp) / "unpacked") / "tests", place / "tests")
    shutil.copy(ROOT / "pyproject.toml", Path(temp) / "run")
    if (ROOT / "fixtures").is_dir():
        shutil.copytree(ROOT / "fixtures", Path(temp) / "run" / "fixtures")
    return pytest(python, place / "tests", cwd=Path(temp) / "run", env=clean_environment(DX_BUILD="clean"))


def clean(packages):
    """Per-package check of these packages, each in environments of its own."""
    wheels = build.ensure_installed(VENV, ["build>=1"])
    counts = json.loads(COUNTS.read_text(encoding="utf-8"))["fast"] if COUNTS.exists() else {}
    results = {}
    for package in packages:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dx-clean-") as temp:
            code, count = clean_one(package, wheels, temp)
        results[package] = code, count, time.monotonic() - start
    judge(results, {n: c for n, c in counts.items() if n in packages}, False)
    return 0
