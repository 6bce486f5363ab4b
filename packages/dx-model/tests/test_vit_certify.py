"""The certificates: the quick form holds, and every column rejects what it should."""
import json

import numpy as np
import pytest
from dx_model.vit import ViTConfig, ops, tensor_table, wiring
from dx_model.vit.certify import (
    a_symbolic,
    b_basis,
    c_ring,
    certify,
    d_exact,
    e_step,
    f_unary,
    g_bits,
    h_mutants,
    prime,
)
from dx_model.vit.certify.duals import Dual, Duals
from dx_model.vit.certify.families import FAMILIES, THEOREMS, case
from dx_model.vit.certify.field import Field, Functions
from dx_model.vit.certify.polynomial import Algebra, Polynomial, number_of
from dx_model.vit.certify.report import Cell, cells
from dx_model.vit.certify.ring import Ring
from dx_model.vit.certify.run import ROWS, Report, table
from dx_model.vit.certify.sizes import SMALL, TINY, parameter_shapes, tensors_of
from dx_model.vit.certify.symbolic import Symbolic
from dx_model.vit.command import main
from dx_model.vit.float32 import Kernels
from dx_model.workspace import Workspace


@pytest.fixture(scope="module")
def report():
    return certify()


def test_every_certificate_holds(report):
    assert report.problems() == []
    found = json.loads(json.dumps(report.to_json()))
    assert found["ok"] and found["mutants"]["tried"] == found["mutants"]["killed"] >= 80
    assert list(found["families"]) == ROWS
    for theorem in THEOREMS:
        assert set(found["families"][theorem]) >= set("ABCDEGH")
    assert found["families"][e_step.WHOLE]["E"] == {"ok": True, "checked": 5526346, "failures": [], "steps": 1,
                                                    "tensors": 200, "parameters": 5526346}


def test_the_table_says_what_is_proved_and_what_is_not(report):
    lines = table(report)
    assert lines[0].split() == list("ABCDEFGH")
    text = "\n".join(lines)
    assert text.count("shows: ") == text.count("not:   ") == 8
    carried = "not the compiled binary, to which B, D and G carry it over bit for bit"
    assert "FAILED" not in text and " ".join(text.split()).count(carried) == 2


def test_a_cell_that_compared_nothing_or_failed_is_a_problem(report):
    broken = Report(False, {"A": dict(report.cells["A"])}, {"A": 1.0}, {"A": 1.0})
    theorem = "posEmbed_sgd_certified"
    broken.cells["A"][theorem] = Cell()
    assert broken.problems() == [f"A, {theorem}: nothing compared"]
    broken.cells["A"][theorem] = Cell(3, ["gradient of pos"])
    assert broken.problems() == [f"A, {theorem}: gradient of pos"]
    assert "FAILED" in "\n".join(table(broken)) and not broken.to_json()["ok"]
    broken.cells["A"][theorem] = report.cells["A"][theorem]
    broken.cells["A"]["another"] = Cell(1)
    assert broken.problems() == ["A: another is no row of the table"]




def test_the_command(monkeypatch, capsys):
    assert main(["certify", "--columns", "AX"]) == 2
    assert "--columns takes letters A to H, not X" in capsys.readouterr().err
    assert main(["certify", "--full", "--wrong"]) == 2
    assert main(["certify", "--columns", "A"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0].split() == ["A"] and "A symbolic proof" in err
    monkeypatch.setattr(Symbolic, "column_sum", lambda self, x: x[0])
    assert main(["certify", "--columns", "A", "--json"]) == 1
    out, err = capsys.readouterr()
    assert not json.loads(out)["ok"] and "A, rowDense_bias_sgd_certified: " in err


def test_the_sizes_certified_are_the_models():
    specs = {spec.name: spec.shape for spec in tensor_table(ViTConfig())}
    assert len(specs) == 200
    count = size = 0
    for name, shape in parameter_shapes(TINY).items():
        if ".qkv." in name:
            parts = [specs.pop(name.replace("qkv", part)) for part in "qkv"]
            assert shape == (3 * parts[0][0], *parts[0][1:]) and parts[0] == parts[1] == parts[2]
        else:
            assert specs.pop(name) == shape
        count += tensors_of(name)
        size += int(np.prod(shape))
    assert (specs, count, size) == ({}, 200, 5526346)


# --- broken wirings and kernels make each column fail ----------------------------------------------------------------


class WrongBias:
    """Forgets the first token in the bias's gradient, takes CLS into the patch bias's."""

    def linear_backward(self, site, dy, x):
        dx = ops.Operations.linear_backward(self, site, dy, x)
        self.assign(f"{site}.bias", self.column_sum(self.rows(dy, 1, None)))
        return dx


def failed(found):
    return {family for family, cell in found.items() if cell.failures}


def test_a_rejects_a_broken_operation():
    assert failed(a_symbolic.run(table=type("T", (WrongBias, Symbolic), {}))) == {
        "rowDense_bias_sgd_certified", "IR.bias_grad_bridge (classifier)"}


def test_c_rejects_a_broken_operation():
    found = c_ring.run(ring=type("T", (WrongBias, Ring), {}), operations=("row_dense", "classifier"))
    assert failed(found) == {"rowDense_bias_sgd_certified", "IR.bias_grad_bridge (classifier)"}


def test_e_rejects_a_broken_operation_and_one_wrong_entry():
    s = e_step.small_setting(SMALL, 5)
    assert e_step.identity(SMALL, s)
    assert not e_step.identity(SMALL, s, type("T", (WrongBias, Field), {}))

    class OneEntry(Field):
        def assign(self, name, value):
            if name == "blocks.1.fc1.weight":
                value = value.copy()
                value[3, 2] = prime.add(value[3, 2], prime.U(1))
            super().assign(name, value)

    assert not e_step.identity(SMALL, s, OneEntry)


class WrongKernel(Kernels):
    """One weight gradient off by an ulp."""

    def linear_backward(self, site, dy, x):
        dx = super().linear_backward(site, dy, x)
        g = self.gradients[f"{site}.weight"].reshape(-1)
        g[-1] = np.nextafter(g[-1], np.float32(np.inf))
        return dx


def test_b_d_and_g_reject_a_kernel_that_is_off_by_an_ulp():
    for column in (b_basis, g_bits):
        found = failed(column.run(table=WrongKernel))
        assert {"rowDense_weight_sgd_certified", "IR.weight_grad_bridge (classifier)"} <= found
        assert "rowDense_bias_sgd_certified" not in found
    found = cells(FAMILIES)
    d_exact.check(case("row_dense", 197, 192, 192), "here", WrongKernel, found)
    assert failed(found) == {"rowDense_weight_sgd_certified"}


def test_f_rejects_a_function_that_is_off(monkeypatch):
    worst, at, count = f_unary.sweep("exp", -87.33, 0.0, 40009)
    assert worst < 1.45 and count > 20000
    true = f_unary.exp32
    monkeypatch.setattr(f_unary, "exp32", lambda x: np.where(x < -80, true(x) * np.float32(1 + 2.0**-22), true(x)))
    worst, at, _ = f_unary.sweep("exp", -87.33, 0.0, 40009)
    assert worst > 1.45 and at < -80
    monkeypatch.setattr(f_unary, "exp32", lambda x: np.where(x < -80, np.float32(np.nan), true(x)))
    assert f_unary.sweep("exp", -87.33, 0.0, 40009)[0] == np.inf


def test_h_reports_a_mutant_that_survives(monkeypatch):
    monkeypatch.setattr(h_mutants, "OPERATIONS", [(
        "rowDense_bias_sgd_certified", "no mistake", "return y if residual is None else self.add(y, residual)",
        "return y if residual is None else self.add(residual, y)")])
    for name in ("EMBEDDINGS", "READS", "CHAINS", "KERNELS"):
        monkeypatch.setattr(h_mutants, name, [])
    monkeypatch.setattr(h_mutants, "SURVIVES_ON", {})
    assert h_mutants.run()["rowDense_bias_sgd_certified"].failures == ["mutant survived: no mistake"]


def test_a_mutant_of_a_text_that_is_gone_is_an_error():
    with pytest.raises(ValueError, match="has 0 times 'no such text': expected once"):
        h_mutants.mutated(wiring, "no such text", "")


def test_the_patch_bias_gradient_is_the_sum_of_position_gradients_in_every_bit():
    stream, c = prime.Stream(3), case("patch_embed", 2, 9, 13, 4, 7, 5)
    v = {name: g_bits.normal_values(stream, shape) for name, shape in c.inputs.items()}
    gradients = {name: np.zeros(c.inputs[name], np.float32) for name in c.parameters(v)}
    c.run(Kernels(c.config, c.parameters(v), Workspace(), gradients), v, g_bits.normal_values(stream, c.output))
    again = g_bits.Emulated(c.config, {}).column_sum(gradients["pos"][1:])
    assert gradients["patch.bias"].tobytes() == again.tobytes()
    assert gradients["cls"].tobytes() == gradients["pos"][0].tobytes()


# --- the arithmetic that the certificates stand on -------------------------------------------------------------------


def test_polynomials():
    a = Algebra()
    x, y = a.variable(), a.variable()
    assert (x + y) * (x - y) == x * x - y * y
    assert x - x == 0 and (x - x).terms == {} and 2 * x - x == x and 1 - x == -(x - 1)
    assert ((x + 1) * (x + 1)).partials() == {number_of(x): 2 * x + 2}
    e = a.apply("exp", x * y)
    assert a.apply("exp", y * x) is e and a.apply("exp", x) is not e
    assert a.gradient(x * e) == {number_of(x): e + x * y * e, number_of(y): x * x * e, number_of(e): x}
    s = a.apply("inverse_root", x * x + 1)
    assert a.gradient(s)[number_of(x)] == -(s * s * s * x)
    z = a.apply("inverse", e + y)
    assert a.gradient(z)[number_of(y)] == -(z * z * (e * x + 1))
    assert (x * x * y).degree_in([number_of(x)]) == 2 and Polynomial.of(3).degree_in([number_of(x)]) == 0


def test_prime_field_against_whole_numbers():
    stream = prime.Stream(1)
    a, b = stream.take((5, 2100)), stream.take((2100, 3))
    wide = [[int(u) for u in row] for row in a], [[int(u) for u in row] for row in b.T]
    expected = [[sum(u * v for u, v in zip(row, column)) % prime.PRIME for column in wide[1]] for row in wide[0]]
    assert prime.matmul(a, b).tolist() == expected
    edges = np.array([0, 1, 2, prime.PRIME - 1, prime.PRIME - 2, 2**60, 2**31, 2**30 - 1], np.uint64)
    for u in edges:
        for function, exact in ((prime.add, lambda p, q: p + q), (prime.sub, lambda p, q: p - q),
                                (prime.mul, lambda p, q: p * q)):
            assert function(u, edges).tolist() == [exact(int(u), int(v)) % prime.PRIME for v in edges]
    assert prime.reduced(np.array([2**64 - 1, prime.PRIME], np.uint64)).tolist() == [(2**64 - 1) % prime.PRIME, 0]
    assert prime.mul(edges[1:], prime.inverse(edges[1:])).tolist() == [1] * 7 and prime.inverse(edges[:1])[0] == 0
    assert prime.row_sum(a).tolist() == [sum(row) % prime.PRIME for row in wide[0]]
    assert prime.mul(prime.inverse_of(192), prime.U(192)) == 1


def test_duals_differentiate_products_quotients_and_functions():
    stream, functions = prime.Stream(2), Functions(7)
    t = Duals(SMALL, {}, functions)
    a, b = (Dual(stream.take((3, 4)), stream.take((3, 4))) for _ in range(2))
    product = t.mul(a, b)
    assert np.array_equal(t.div(product, b).tangent, a.tangent) and np.array_equal(t.div(product, b).value, a.value)
    e = t.exp(a)
    assert np.array_equal(e.tangent, prime.mul(e.value, a.tangent))
    s = t.inverse_root(a)  # s' = -s³ a' / 2
    cube = prime.mul(prime.mul(s.value, s.value), s.value)
    assert np.array_equal(prime.add(s.tangent, s.tangent), prime.sub(np.uint64(0), prime.mul(cube, a.tangent)))


def test_every_table_has_every_primitive():
    whole = ["minus_one_at", "normal_cdf", "normal_pdf"]  # within operations that emulated binary32 has whole
    for kind, lacking in ((Symbolic, []), (Field, []), (g_bits.Emulated, whole)):
        assert [name for name in ops.PRIMITIVES if not callable(getattr(kind, name, None))] == lacking
    known = set(ops.PRIMITIVES) | set(vars(ops.Operations)) | {"parameter"}
    for kind in (Symbolic, Field, g_bits.Emulated, Duals, Ring):
        assert {name for name in vars(kind) if not name.startswith("_")} <= known | {"each", "function"}, kind


@pytest.mark.exhaustive
def test_every_certificate_holds_in_full():
    assert certify(full=True).problems() == []
