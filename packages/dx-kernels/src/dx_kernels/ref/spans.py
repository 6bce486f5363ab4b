"""Reference of dx_kernels.spans."""


def best_spans(start, end, pair, context, max_length, most):
    """The best tuples (score, first row, last row), best first."""
    found = []
    for s in range(len(context)):
        for e in range(s, min(len(context), s + max_length)):
            if context[s] and context[e]:
                score = 0.0
                if start is not None:
                    score = float(start[s]) + float(end[e])
                if pair is not None:
                    score = float(pair[s, e]) if start is None else score + float(pair[s, e])
                found.append((score, s, e))
    return sorted(found, reverse=True)[:most]
