"""The quick form of `dev.py bench bits`: no bit differs between paths, degrees and environments."""
from bench import bits


def test_no_bit_differs():
    answer = bits.run(True)
    wrong = [row for row in answer["rows"] if row["differences"]]
    assert "failed" not in answer and answer["figures"]["differences"] == 0, (answer.get("failed"), wrong)
    assert answer["figures"]["compared"] > 10_000
    environments = " ".join(row["environment"] for row in answer["rows"])
    for part in ("path portable, degree 3", "packed operands", "DX_KERNEL_PATH=portable", "PYTHONHASHSEED", "LC_ALL",
                 "rounding up", "flushed to zero"):
        assert part in environments
    assert answer["figures"]["idle_step_slowdown"] < 2


def test_a_difference_is_seen(monkeypatch):
    """A function whose bits depend on the degree makes the bench fail and is named."""
    calls, registry = bits.registries()

    def maker(n, draw):
        return [calls.call(lambda: bits.dx_kernels.get_degree())]

    monkeypatch.setattr(bits, "registries", lambda: (calls, {"degree_of_the_moment": (maker, 5)}))
    rows = list(bits.paths_and_degrees(True))
    assert [bool(row["differences"]) for row in rows] == ["degree 3" in row["environment"] for row in rows]
    assert {row["where"] for row in rows if row["differences"]} == {"degree_of_the_moment"}


def test_a_failing_process_is_a_difference(monkeypatch):
    monkeypatch.setattr(bits, "CHILD", bits.CHILD.with_name("no such file"))
    assert [row["differences"] for row in bits.processes(True, [])] == [1]
