"""The operation table of the vision transformer: every operation's forward and gradients, written once.

`wiring` composes these operations into blocks and the model. Each is written here as a composition of primitives
(matrix products, elementwise operations, sums, exp, …), in the order in which the float32 kernels round. A backend
gives the primitives: exact polynomials, a prime field, integers mod 2^64, binary32 emulated bit by bit (`certify`).
The backend that ships (`float32`) replaces whole operations by kernels instead, and must agree with the composition
run on emulated binary32 in every bit; `certify` checks it.

A table holds `config` (hidden_size, num_attention_heads, patch_size, hidden_act: "gelu_tanh" or "gelu_erf"),
`parameters` (a mapping by name) and takes gradients by `assign(name, value)`. Sites name the parameters: linear "a.b"
uses a.b.weight (out, in) and a.b.bias (out,), y = x W^T + b. The page of formulas writes y = x W + b: our weight (j, i)
is its W (i, j); q, k and v are one layer "qkv" of 3 d outputs, its rows the three of the page. "patch" uses
patch.weight (d, channels, P, P) and patch.bias, with cls (d,) and pos (N + 1, d).

Rows are tokens; every array is one example's.
"""


class Operations:
    """Operations by composition; a backend adds the primitives listed at the end."""

    def __init__(self, config, parameters):
        self.config, self.parameters, self.gradients = config, parameters, {}

    def parameter(self, name):
        return self.parameters[name]

    def assign(self, name, value):
        """Takes the gradient of a parameter, in the parameter's shape."""
        self.gradients[name] = value

    # --- patch embedding, position, CLS -----------------------------------------------------------------------------

    def patch_embed(self, image):
        """(x, saved): row 0 is cls, row p + 1 is kernel * patch p + bias; pos is added to every row.

        image (channels, H, W) · x (N + 1, d), N + 1 the rows of pos · patch p has the pixels (c, h P + kh, w P + kw)
        with h = p // (W // P), w = p mod (W // P), and 0 where that lies outside the image.
        """
        patches = self.patches(image)
        kernel = self.reshape(self.parameter("patch.weight"), (self.config.hidden_size, -1))
        tokens = self.add(self.matmul(patches, kernel, transpose_b=True), self.parameter("patch.bias"))
        cls = self.reshape(self.parameter("cls"), (1, -1))
        return self.add(self.concatenate([cls, tokens]), self.parameter("pos")), patches

    def patch_embed_backward(self, dx, saved):
        """Assigns dpos = dx, dcls = row 0, and kernel and bias gradients from the rows below, row 0 excluded."""
        dtokens = self.rows(dx, 1, None)
        self.assign("pos", dx)
        self.assign("cls", self.reshape(self.rows(dx, 0, 1), (-1,)))
        weight = self.matmul(dtokens, saved, transpose_a=True)
        self.assign("patch.weight", self.reshape(weight, self.shape(self.parameter("patch.weight"))))
        self.assign("patch.bias", self.column_sum(dtokens))

    def patch_image_gradient(self, dx, image_shape):
        """Gradient of the image: every patch's gradient where its pixels were read, 0 elsewhere; none from CLS."""
        kernel = self.reshape(self.parameter("patch.weight"), (self.config.hidden_size, -1))
        return self.unpatch(self.matmul(self.rows(dx, 1, None), kernel), image_shape)

    # --- linear layers ----------------------------------------------------------------------------------------------

    def linear(self, site, x, residual=None):
        """x W^T + b, then + residual."""
        y = self.add(self.matmul(x, self.parameter(f"{site}.weight"), transpose_b=True), self.parameter(f"{site}.bias"))
        return y if residual is None else self.add(y, residual)

    def linear_backward(self, site, dy, x):
        """Assigns dW = dy^T x (one sum over tokens) and db = the column sums of dy; returns dx = dy W."""
        self.assign(f"{site}.weight", self.matmul(dy, x, transpose_a=True))
        self.assign(f"{site}.bias", self.column_sum(dy))
        return self.matmul(dy, self.parameter(f"{site}.weight"))

    def linear_gelu(self, site, x):
        """(gelu(x W^T + b), saved)."""
        return self.gelu(self.linear(site, x))

    def linear_gelu_backward(self, site, dy, x, saved):
        """The adjoint of linear_gelu; returns dx."""
        return self.linear_backward(site, self.gelu_backward(dy, saved), x)

    # --- activation -------------------------------------------------------------------------------------------------

    def gelu(self, x):
        """(y, saved). tanh: T = tanh(c0 (x + c1 x^3)), y = (x/2)(1 + T). erf: y = x P(x), P the normal distribution."""
        if self.config.hidden_act == "gelu_erf":
            p = self.normal_cdf(x)
            return self.mul(x, p), (x, p)
        c = self.constant
        t = self.tanh(self.mul(c("c0"), self.add(x, self.mul(c("c1"), self.mul(x, self.mul(x, x))))))
        return self.mul(self.mul(c("half"), x), self.add(c("one"), t)), (x, t)

    def gelu_backward(self, dy, saved):
        """dy times the derivative: (1 + T)/2 + (x/2)(1 - T^2) c0 (1 + 3 c1 x^2), or P(x) + x P'(x)."""
        x, t = saved
        if self.config.hidden_act == "gelu_erf":
            return self.mul(dy, self.add(t, self.mul(x, self.normal_pdf(x))))
        c = self.constant
        s = self.sub(c("one"), self.mul(t, t))
        inner = self.mul(c("c0"), self.add(c("one"), self.mul(self.mul(c("three"), c("c1")), self.mul(x, x))))
        term = self.where_not_zero(s, self.mul(self.mul(self.mul(c("half"), x), s), inner))
        return self.mul(dy, self.add(self.mul(c("half"), self.add(c("one"), t)), term))

    # --- layer norm over vectors ------------------------------------------------------------------------------------

    def layer_norm(self, site, x):
        """(y, saved): y = gamma xhat + beta, xhat = (x - mean) / sqrt(variance + eps), row by row."""
        d = self.shape(x)[1]
        c = self.sub(x, self.column(self.over(self.row_sum(x), d)))
        c = self.sub(c, self.column(self.over(self.row_sum(c), d)))  # 0 but for rounding: the mean of what is centred
        variance = self.over(self.row_dot(c, c), d)
        inv = self.inverse_root(self.add(variance, self.constant("eps")))
        xhat = self.mul(c, self.column(inv))
        y = self.add(self.mul(xhat, self.parameter(f"{site}.weight")), self.parameter(f"{site}.bias"))
        return y, (xhat, inv)

    def layer_norm_backward(self, site, dy, saved, residual=None):
        """Assigns dgamma = sum of dy xhat and dbeta = sum of dy over the rows; returns dx, + residual."""
        xhat, inv = saved
        d = self.shape(dy)[1]
        self.assign(f"{site}.weight", self.column_sum(self.mul(dy, xhat)))
        self.assign(f"{site}.bias", self.column_sum(dy))
        g = self.mul(dy, self.parameter(f"{site}.weight"))
        mean = self.over(self.row_sum(g), d)
        along = self.over(self.row_dot(g, xhat), d)
        dx = self.mul(self.column(inv), self.sub(self.sub(g, self.column(mean)), self.mul(xhat, self.column(along))))
        return dx if residual is None else self.add(dx, residual)

    # --- attention --------------------------------------------------------------------------------------------------

    def softmax(self, scores):
        """Softmax over the last axis; subtracting the largest score changes rounding alone."""
        e = self.exp(self.shifted(scores))
        return self.normal(self.div(e, self.column(self.row_sum(e))))

    def attention(self, site, qkv):
        """(out, saved): softmax(q k^T / sqrt(d)) v of every head; the columns of qkv are q, k, v, each head by head."""
        heads = self.config.num_attention_heads
        q, k, v = self.heads_of(qkv, 3 * heads)
        root = self.root(self.shape(qkv)[1] // (3 * heads))
        p = self.softmax(self.div(self.matmul(q, k, transpose_b=True), root))
        return self.merge_heads([self.matmul(p, v)]), p

    def attention_backward(self, site, dout, qkv, saved):
        """dqkv: dv = P^T dout; dP = dout v^T; dS = P (dP - rowsum(P dP)) / sqrt(d); dq = dS k; dk = dS^T q."""
        heads, p = self.config.num_attention_heads, saved
        q, k, v = self.heads_of(qkv, 3 * heads)
        (do,) = self.heads_of(dout, heads)
        dp = self.matmul(do, v, transpose_b=True)
        ds = self.mul(p, self.sub(dp, self.column(self.row_dot(p, dp))))
        e = self.div(ds, self.root(self.shape(qkv)[1] // (3 * heads)))
        dq, dk = self.matmul(e, k), self.matmul(e, q, transpose_a=True)
        return self.merge_heads([dq, dk, self.matmul(p, do, transpose_a=True)])

    # --- head, loss, step -------------------------------------------------------------------------------------------

    def cls_row(self, x):
        """Row 0, (1, d)."""
        return self.rows(x, 0, 1)

    def cls_row_backward(self, drow, rows):
        """The adjoint of cls_row: drow, then rows of zeros."""
        return self.below_zeros(drow, rows)

    def cross_entropy_gradient(self, logits, label):
        """Gradient of -log softmax(logits)[label]: softmax - onehot, (1, classes)."""
        return self.minus_one_at(self.softmax(logits), label)

    def sgd(self, rate):
        """Every parameter w := w - rate * gradient."""
        for name in self.gradients:
            step = self.mul(rate, self.gradients[name])
            self.parameters[name] = self.sub(self.parameters[name], step)

    # --- primitives that are rearrangements of elements -------------------------------------------------------------
    # rearrange(x, f) applies f, which only picks, joins and reshapes, to what the backend keeps of an array.

    def reshape(self, x, shape):
        return self.rearrange(x, lambda a: a.reshape(shape))

    def rows(self, x, begin, end):
        return self.rearrange(x, lambda a: a[begin:end])

    def column(self, x):
        """(..., n) as (..., n, 1)."""
        return self.rearrange(x, lambda a: a[..., None])

    def heads_of(self, x, parts):
        """The columns of x (n, parts * d) as (parts, n, d), cut into groups of num_attention_heads."""
        h = self.config.num_attention_heads
        y = self.rearrange(x, lambda a: a.reshape(len(a), parts, -1).transpose(1, 0, 2))
        return [self.rows(y, i, i + h) for i in range(0, parts, h)]

    def merge_heads(self, groups):
        """The inverse of heads_of: groups of (heads, n, d), side by side."""
        y = self.concatenate(groups)
        return self.rearrange(y, lambda a: a.transpose(1, 0, 2).reshape(a.shape[1], -1))


PRIMITIVES = {
    "shape": "shape of an array",
    "rearrange": "f applied to an array's elements, moving them only",
    "concatenate": "arrays joined along axis 0",
    "patches": "image → (N, channels P P): the guarded reads",
    "unpatch": "(N, channels P P) → image: each element back where it was read, 0 elsewhere",
    "below_zeros": "(1, d), rows → (rows, d): the row, then zeros",
    "minus_one_at": "(1, n), j → 1 subtracted at column j",
    "add": "a + b", "sub": "a - b", "mul": "a b", "div": "a / b",
    "over": "a / n for a whole number n",
    "constant": "one, half, three, eps, and GELU's c0 = sqrt(2/pi), c1 = 0.044715",
    "root": "sqrt(n)",
    "inverse_root": "1 / sqrt(a)",
    "exp": "exp(a)", "tanh": "tanh(a)", "normal_cdf": "P(a)", "normal_pdf": "P'(a)",
    "shifted": "a - its largest element, along the last axis (exact backends: a)",
    "normal": "binary32 below 2^-126 to +0 (exact backends: a)",
    "where_not_zero": "(s, a) → a where s is not 0, else 0 (exact backends: a, which has the factor s)",
    "matmul": "matrix product, also of stacks of matrices; each side may be transposed",
    "row_sum": "sum over the last axis", "row_dot": "sum of a b over the last axis", "column_sum": "sum over axis 0",
}
