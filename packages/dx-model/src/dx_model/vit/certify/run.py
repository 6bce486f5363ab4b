"""Runs the columns and makes one report of them."""
import textwrap
import time
from dataclasses import dataclass, field

from ...below import NUMERICS_VERSION
from .columns import COLUMNS
from .e_step import WHOLE
from .families import BEYOND, THEOREMS
from .g_bits import BLOCK, DOT

ROWS = [*THEOREMS, *BEYOND, BLOCK, WHOLE, "SGD step", DOT]
REQUIRED = {theorem: "ABCDEGH" for theorem in THEOREMS} | {WHOLE: "EGH"}  # cells that may not be empty


@dataclass
class Report:
    """cells: letter → family → Cell · seconds, cpu: letter → wall and processor
    time."""

    full: bool
    cells: dict = field(default_factory=dict)
    seconds: dict = field(default_factory=dict)
    cpu: dict = field(default_factory=dict)

    def cell(self, letter, row):
        """The cell, or None where the column says nothing about the family."""
        found = self.cells.get(letter, {}).get(row)
        return found if found is not None and (found.checked or found.failures) else None

    def problems(self) -> list[str]:
        """Everything that failed, and required cells that are empty."""
        made = []
        for letter, families in self.cells.items():
            for row in ROWS:
                cell = self.cell(letter, row)
                if cell is not None and not cell.ok:
                    made += [f"{letter}, {row}: {what}" for what in cell.failures or ["nothing compared"]]
                elif cell is None and letter in REQUIRED.get(row, ""):
                    made.append(f"{letter}, {row}: nothing compared")
            made += [f"{letter}: {row} is no row of the table" for row in sorted(set(families) - set(ROWS))]
        return made

    def to_json(self) -> dict:
        families = {row: {letter: self.cell(letter, row).to_json() for letter in self.cells if self.cell(letter, row)}
                    for row in ROWS}
        mutants = [cell.to_json() for cell in self.cells.get("H", {}).values()]
        tried = [name for m in mutants for name in m.get("killed by", {})]
        killed = [name for m in mutants for name, by in m.get("killed by", {}).items() if by]
        total = 0.0
        for seconds in self.seconds.values():
            total += seconds
        return {"certify": "full" if self.full else "quick", "numerics_version": NUMERICS_VERSION,
                "ok": not self.problems(), "seconds": round(total, 1),
                "mutants": {"tried": len(tried), "killed": len(killed)},
                "columns": {letter: {"title": COLUMNS[letter][0], "proves": COLUMNS[letter][2],
                                     "does not prove": COLUMNS[letter][3], "seconds": round(self.seconds[letter], 2),
                                     "cpu seconds": round(self.cpu[letter], 2)}
                            for letter in self.cells},
                "families": families, "problems": self.problems()}


def certify(full: bool = False, columns: str = "ABCDEFGH", say=None) -> Report:
    """Runs the columns, quick or full; say(text), unless None, hears what it does."""
    report = Report(full)
    for letter in columns:
        title, module = COLUMNS[letter][:2]
        if say is not None:
            say(f"{letter} {title} ...")
        wall, cpu = time.perf_counter(), time.process_time()
        report.cells[letter] = module.run(full)
        report.seconds[letter], report.cpu[letter] = time.perf_counter() - wall, time.process_time() - cpu
    return report


def wrapped(head, text):
    return textwrap.wrap(text, 110, initial_indent=f"   {head}", subsequent_indent=" " * 10)


def short(count) -> str:
    """1234 as 1.2k."""
    for unit, size in (("M", 1000000), ("k", 1000)):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)


def table(report) -> list[str]:
    """The report as lines of text."""
    letters, width = list(report.cells), max(len(row) for row in ROWS)
    lines = ["".ljust(width) + "".join(f"{letter:>10}" for letter in letters)]
    for row in ROWS:
        shown = []
        for letter in letters:
            cell = report.cell(letter, row)
            shown.append("-" if cell is None else f"ok {short(cell.checked)}" if cell.ok else "FAILED")
        lines.append(row.ljust(width) + "".join(f"{text:>10}" for text in shown))
    for name, times in (("seconds", report.seconds), ("processor seconds", report.cpu)):
        lines.append(name.ljust(width) + "".join(f"{times[letter]:>10.1f}" for letter in letters))
    lines.append("")
    for letter in letters:
        title, _, proves, lacks = COLUMNS[letter]
        lines += [f"{letter}  {title}", *wrapped("shows: ", proves), *wrapped("not:   ", lacks)]
    found = report.to_json()
    lines += ["", f"ok N: N comparisons, all held. -: the column says nothing of this row. Mutants: "
              f"{found['mutants']['killed']} of {found['mutants']['tried']} killed."]
    lines += report.problems() or [f"all held, in {found['seconds']:.0f} s"]
    return lines
