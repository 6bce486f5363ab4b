"""Writes the committed table of character kinds (Unicode 14.0): the C file of dx-kernels and its readable reference.

    python3.11 tools/unicode_table.py [--check]

Python 3.11's unicodedata is Unicode 14.0; any other version is refused, so the table cannot drift."""
import argparse
import sys
import unicodedata
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent / "packages" / "dx-kernels"
C_FILE, PYTHON_FILE = TOP / "csrc" / "unicode14.c", TOP / "src" / "dx_kernels" / "ref" / "unicode14.py"
UNASSIGNED, OTHER, DIGIT, UPPER, LOWER, LETTER, SPACE, PUNCTUATION, CURRENCY, UPPER_LOWER, LOWER_UPPER = range(11)
WHITE = (9, 10, 11, 12, 13, 28, 29, 30, 31, 133)


def kind(code):
    """The kind of one code point, from its general category; int."""
    category = unicodedata.category(chr(code))
    if category in ("Cn", "Cs"):
        return UNASSIGNED
    if code in WHITE or category[0] == "Z":
        return SPACE
    exact = {"Nd": DIGIT, "Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Sc": CURRENCY}
    return exact.get(category) or {"L": LETTER, "P": PUNCTUATION, "S": PUNCTUATION}.get(category[0], OTHER)


def runs():
    """[(first code point, kind)]; letters that alternate between the cases are one run."""
    plain = []
    for code in range(0x110000):
        k = kind(code)
        if k == DIGIT and (not plain or plain[-1][1] != DIGIT):
            assert unicodedata.decimal(chr(code)) == 0
        if k == DIGIT:
            start = plain[-1][0] if plain[-1][1] == DIGIT else code
            assert unicodedata.decimal(chr(code)) == (code - start) % 10, "a run of digits counts 0 to 9"
        if not plain or plain[-1][1] != k:
            plain.append((code, k))
    ends = [start for start, _ in plain[1:]] + [0x110000]
    single = [end - start == 1 and k in (UPPER, LOWER) for (start, k), end in zip(plain, ends)]
    result, i = [], 0
    while i < len(plain):
        j = i
        while single[j] and j + 1 < len(plain) and single[j + 1]:
            j += 1
        if j - i >= 2:
            result.append((plain[i][0], UPPER_LOWER if plain[i][1] == UPPER else LOWER_UPPER))
        else:
            result += plain[i:j + 1]
        i = j + 1
    return result


def rows(numbers, per_row=10):
    texts = [f"0x{n:X}" for n in numbers]
    return "\n".join("    " + ", ".join(texts[i:i + per_row]) + "," for i in range(0, len(texts), per_row))


def files():
    """{path: text} of the two generated files."""
    table = [start << 4 | k for start, k in runs()]
    note = "Kinds of all code points in Unicode 14.0, written by tools/unicode_table.py. Each number is a run: first\n"
    note += "{0}code point << 4 | kind; a run ends where the next begins. Kinds are named in {1}."
    c = f"/* {note.format(' * ', 'text_scan.h')} */\n#include \"text_scan.h\"\n\n"
    c += f"const ptrdiff_t dx_kind_runs_count = {len(table)};\n"
    c += f"const uint32_t dx_kind_runs[] = {{\n{rows(table)}\n}};\n"
    ascii_kinds = [kind(code) | (code - 48 << 4 if 48 <= code < 58 else 0) for code in range(128)]
    c += "\n/* The kinds of ASCII with digit values, as dx_kind gives them. */\n"
    c += f"const uint8_t dx_kinds_ascii[128] = {{\n{rows(ascii_kinds, 20)}\n}};\n"
    python = f'"""{note.format("", "text.py")}"""\nRUNS = [\n{rows(table)}\n]\n'
    return {C_FILE: c, PYTHON_FILE: python}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the committed files instead of writing")
    check = parser.parse_args().check
    if unicodedata.unidata_version != "14.0.0":
        sys.exit(f"unicodedata is {unicodedata.unidata_version}: expected 14.0.0 (Python 3.11)")
    stale = []
    for path, text in files().items():
        if check and (not path.exists() or path.read_text("utf-8") != text):
            stale.append(str(path))
        if not check:
            path.write_text(text, "utf-8")
    if stale:
        sys.exit("differs from what the script writes: " + ", ".join(stale))


if __name__ == "__main__":
    main()
