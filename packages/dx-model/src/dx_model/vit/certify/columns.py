"""The columns of the table: what each one proves and what it does not."""
from . import a_symbolic, b_basis, c_ring, d_exact, e_step, f_unary, g_bits, h_mutants

# letter → (title, module, what it proves, what it does not)
COLUMNS = {
    "A": ("symbolic proof", a_symbolic,
          "for all real values at the listed shapes: the wiring's gradient is Jacobian transposed times cotangent, and "
          "its output the definition's, as equal polynomials over the rationals; exp, 1/sqrt, tanh, P are formal",
          "other shapes; rounding; the values of the formal functions; the check of polynomials itself is trusted"),
    "B": ("basis vectors", b_basis,
          "the compiled float32 gradient on all pairs of basis vectors against differences of the compiled forward "
          "alone: the whole map over the reals at the listed shapes, as the kernels are of degree one in each argument",
          "that degree is read from the code, not proved by the run; rounding of other values is G's"),
    "C": ("ring identity", c_ring,
          "wiring and readable reference at the true shapes over the integers modulo 2^64 (layer norm: the prime "
          "field): sum G theta' = sum dy (f(theta + theta') - f(theta)) for random values, f summed without matrix "
          "products",
          "not the compiled binary, to which B, D and G carry it over bit for bit; a wrong entry passes with a chance "
          "below 2^-32 a run"),
    "D": ("exact integers", d_exact,
          "the compiled float32 binary at the true ViT-Tiny shapes equals whole-number arithmetic, in every element, "
          "where all sums stay within 2^24; attention's adjoint in eighths; the SGD step; every kernel path",
          "values that round, which are G's"),
    "E": ("whole step in a field", e_step,
          "wiring and readable reference of the whole ViT-Tiny step, 200 tensors and the image, modulo 2^61 - 1 "
          "against forward-mode duals; small steps where one family's tensors move alone; exp, 1/sqrt, tanh, P are "
          "random tables with formal derivatives",
          "not the compiled binary, to which B, D and G carry it over bit for bit; a false identity passes with a "
          "chance below 2^-46 a seed; tables are pseudo-random; subtracting the maximum is A's softmax"),
    "F": ("unary functions", f_unary,
          "errors of exp, both GELUs and their slopes, and 1/sqrt, on all binary32 inputs of their ranges (--full; "
          "quick: every 4,099th), below a stated allowance",
          "the binary64 libm and numpy that it compares with are trusted"),
    "G": ("bits and bounds", g_bits,
          "the very operations that A, C and E certify, on binary32 emulated one rounding at a time, give the bits of "
          "the compiled kernels, of a block, of the whole step, and the wiring on kernels those of the model that "
          "ships, on every path; dot16 stays within its a-priori bound, whose count of roundings is traced",
          "a finite sample of values; no bound for the whole network that is worth anything exists"),
    "H": ("mutants killed", h_mutants,
          "each of these wrong lines in operations, wiring, patch reads and kernel outputs is rejected by A, B, D, E "
          "or G; two wrong reads pass on easier shapes, as expected, and die on the listed ones",
          "mistakes that are not in the list"),
}
