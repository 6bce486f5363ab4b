"""The wiring of the vision transformer, written once: embedding, pre-norm blocks, head, and their adjoint.

Every function takes an operation table `t` (`ops.Operations`). With `float32.Kernels` it is the model that ships; with
the exact tables of `certify` the same lines are what is proved. Values are whatever the table works on; the wiring
touches none of their elements.
"""


def block_forward(t, site, x):
    """(y, saved) of one block: h = x + proj(attention(qkv(ln1(x)))); y = h + fc2(gelu(fc1(ln2(h))))."""
    n1, norm1 = t.layer_norm(f"{site}.ln1", x)
    qkv = t.linear(f"{site}.qkv", n1)
    a, probs = t.attention(f"{site}.attention", qkv)
    h = t.linear(f"{site}.proj", a, residual=x)
    n2, norm2 = t.layer_norm(f"{site}.ln2", h)
    g, active = t.linear_gelu(f"{site}.fc1", n2)
    y = t.linear(f"{site}.fc2", g, residual=h)
    return y, (n1, norm1, qkv, a, probs, n2, norm2, g, active)


def block_backward(t, site, dy, saved):
    """Gradient of a block's input from that of its output; assigns the block's parameter gradients."""
    n1, norm1, qkv, a, probs, n2, norm2, g, active = saved
    dg = t.linear_backward(f"{site}.fc2", dy, g)
    dn2 = t.linear_gelu_backward(f"{site}.fc1", dg, n2, active)
    dh = t.layer_norm_backward(f"{site}.ln2", dn2, norm2, residual=dy)
    da = t.linear_backward(f"{site}.proj", dh, a)
    dqkv = t.attention_backward(f"{site}.attention", da, qkv, probs)
    dn1 = t.linear_backward(f"{site}.qkv", dqkv, n1)
    return t.layer_norm_backward(f"{site}.ln1", dn1, norm1, residual=dh)


def encode(t, image):
    """(x, saved): tokens (N + 1, d) after the last block, before the final layer norm."""
    x, embedded = t.patch_embed(image)
    blocks = []
    for i in range(t.config.num_hidden_layers):
        x, saved = block_forward(t, f"blocks.{i}", x)
        blocks.append(saved)
    return x, (embedded, blocks)


def encode_backward(t, dx, saved):
    """Gradient of the embedding's output from that of `encode`'s; assigns every parameter gradient of `encode`."""
    embedded, blocks = saved
    for i in reversed(range(t.config.num_hidden_layers)):
        dx = block_backward(t, f"blocks.{i}", dx, blocks[i])
    t.patch_embed_backward(dx, embedded)
    return dx


def classify(t, x):
    """(logits (1, classes), saved): final layer norm and classifier on the CLS row (a layer norm is row by row)."""
    n, norm = t.layer_norm("norm", t.cls_row(x))
    return t.linear("head", n), (n, norm)


def classify_backward(t, dlogits, saved, rows):
    """Gradient of `classify`'s input, `rows` tokens; assigns the head's and the final layer norm's gradients."""
    n, norm = saved
    dn = t.linear_backward("head", dlogits, n)
    return t.cls_row_backward(t.layer_norm_backward("norm", dn, norm), rows)


def forward(t, image):
    """(logits (1, classes), saved) of one image."""
    x, encoded = encode(t, image)
    logits, head = classify(t, x)
    return logits, (encoded, head, t.shape(x)[0])


def backward(t, dlogits, saved):
    """Assigns the gradient of every parameter; returns that of the embedding's output (N + 1, d)."""
    encoded, head, rows = saved
    return encode_backward(t, classify_backward(t, dlogits, head, rows), encoded)


def step(t, image, label, rate):
    """One step of gradient descent on -log softmax(logits)[label]; returns the logits before it."""
    logits, saved = forward(t, image)
    backward(t, t.cross_entropy_gradient(logits, label), saved)
    t.sgd(rate)
    return logits
