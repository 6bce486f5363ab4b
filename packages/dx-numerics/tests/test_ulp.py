"""How far the functions are from the exact result: everywhere (exhaustive), at a stride (always), at chosen places.

The figures stand beside the functions in math32.h and math64.h and are checked here exactly; tests/ulp.c measures."""
import re
import shutil
import subprocess
from pathlib import Path

import dx_numerics as dx
import function_oracle as oracle
import numpy as np
import pytest

STATED = oracle.worst_inputs()
# Below 1 ulp, but for rsqrt32 (two roundings by definition) and softplus64 (a composition).
LIMIT = {name: 1.0 for name in STATED} | {"rsqrt32": 1.5, "softplus64": 2.0}
SAMPLES = 100_000_000
BUILD = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra",
         "-Werror"]


@pytest.fixture(scope="module")
def measure(tmp_path_factory):
    """measure(name, stride or samples, limit) → (worst, at, wrong, count), failing with ulp.c's first failure."""
    compiler = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("ulp") / "ulp"
    source = Path(__file__).with_name("ulp.c")
    subprocess.run([compiler, *BUILD, f"-I{dx.get_include()}", str(source), "-o", str(program), "-lm", "-pthread"],
                   check=True)

    def run(name, step, limit):
        done = subprocess.run([str(program), name, str(step), str(limit)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        found = re.fullmatch(r"(\w+) worst ([\d.]+) at (\S+) wrong (\d+) of (\d+)\n", done.stdout)
        assert found and found[1] == name, done.stdout
        return float(found[2]), float.fromhex(found[3]), int(found[4]), int(found[5])
    return run


def test_every_function_states_its_error():
    assert sorted(STATED) == sorted(oracle.NAMES32 + oracle.NAMES64)
    for name, (worst, _, wrong) in STATED.items():
        assert 0.5 < worst < LIMIT[name]
        assert (wrong is None) == name.endswith("64")


@pytest.mark.parametrize("name", oracle.NAMES32)
def test_at_a_stride(measure, name):
    """Every 4099th encoding: none over the stated worst error, wrong results as frequent as stated."""
    worst, _, wrong, count = measure(name, 4099, LIMIT[name])
    assert count == -(-2**32 // 4099)
    assert worst <= STATED[name][0] + 1e-5
    assert abs(wrong - STATED[name][2] / 4099) < 100 + 0.1 * wrong


@pytest.mark.parametrize("name", oracle.NAMES64)
def test_at_a_few_samples(measure, name):
    worst, _, _, count = measure(name, 1_000_000, LIMIT[name])
    assert count == 1_000_000
    assert STATED[name][0] * 0.8 < worst <= STATED[name][0] + 0.003


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", oracle.NAMES32)
def test_all_inputs(measure, name):
    worst, at, wrong, count = measure(name, 1, LIMIT[name])
    assert count == 2**32
    assert (at, wrong) == STATED[name][1:]
    assert abs(worst - STATED[name][0]) < 2e-5


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", oracle.NAMES64)
def test_many_samples(measure, name):
    """The C library's long double results are good to 0.002 ulp of binary64."""
    worst, _, _, count = measure(name, SAMPLES, LIMIT[name])
    assert count == SAMPLES
    assert abs(worst - STATED[name][0]) < 0.003


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", oracle.NAMES32)
def test_all_inputs_on_every_path(name):
    """Every path gives the same bits (NaN for NaN) on all 2^32 encodings."""
    function, step = getattr(dx, name), 1 << 24
    for start in range(0, 2**32, step):
        x = np.arange(start, start + step, dtype=np.uint32).view(np.float32)
        want = None
        for path in dx.available_paths():
            with dx.kernel_path(path):
                got = function(x)
            nan = np.isnan(got)
            got = got.view(np.uint32)
            if nan.any():
                got[nan] = 0x7FC00000
            assert want is None or np.array_equal(got, want), (hex(start), path)
            want = got


ROWS = oracle.read()


@pytest.mark.parametrize("name", oracle.NAMES32 + oracle.NAMES64)
@pytest.mark.parametrize("path", dx.available_paths())
def test_golden_bits(name, path):
    rows = [row for row in ROWS if row[0] == name]
    assert len(rows) > 80
    width = int(name[-2:])
    x = np.array([oracle.decode(row[1]) for row in rows], f"f{width // 8}")
    with dx.kernel_path(path):
        got = getattr(dx, name)(x)
    assert [oracle.encode(float(y), width) for y in got] == [row[2] for row in rows]
    with np.errstate(all="ignore"):
        assert [oracle.encode(float(y), width) for y in getattr(dx.ref, name)(x)] == [row[2] for row in rows]


@pytest.mark.parametrize("name", oracle.NAMES32 + oracle.NAMES64)
def test_golden_rows_are_near_the_exact_result(name):
    """Decimal arithmetic gives the correctly rounded column, and results are at most one encoding away (two where two
    roundings are the definition); NaN, infinities and signs are exactly right."""
    near = 2 if name == "softplus64" else 1
    for _, x, result, want in (row for row in ROWS if row[0] == name):
        assert oracle.encode(oracle.correctly_rounded(name, oracle.decode(x)), int(name[-2:])) == want, x
        if result != want:
            assert result[0] == want[0] and abs(int(result, 16) - int(want, 16)) <= near, (x, result, want)


@pytest.mark.parametrize("name", list(STATED))
def test_stated_worst_input_is_golden(name):
    width = int(name[-2:])
    assert any(row[0] == name and row[1] == oracle.encode(STATED[name][1], width) for row in ROWS)
