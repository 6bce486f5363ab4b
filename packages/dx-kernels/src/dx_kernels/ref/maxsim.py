"""Reference of dx_kernels.maxsim. exp64 and log64 are those of dx-numerics, which has their reference."""
import numpy as np

from ..below import exp64, log64
from ..below import ref as numerics
from .matmul import matmul

f32 = np.float32


def parts(starts):
    """(number, slice of rows) of every query or document."""
    return list(enumerate(slice(a, b) for a, b in zip(starts, starts[1:])))


def largest(x):
    """(maximum, place): the first of equal ones; the first NaN when there is one."""
    best, place = x[0], 0
    for j, v in enumerate(x):
        if v > best or (np.isnan(v) and not np.isnan(best)):
            best, place = v, j
    return best, place


def maxsim_forward(queries, query_starts, documents, document_starts):
    """scores (Q, D) float32, winners (query_rows, D) int32."""
    scores = np.zeros((len(query_starts) - 1, len(document_starts) - 1), f32)
    winners = np.zeros((len(queries), len(document_starts) - 1), np.int32)
    with np.errstate(all="ignore"):
        for b, rows in parts(document_starts):
            similarity = matmul(queries, documents[rows], transpose_b=True)
            best = np.zeros(len(queries), f32)
            for i, row in enumerate(similarity):
                best[i], winners[i, b] = largest(row)
            for a, of_query in parts(query_starts):
                scores[a, b] = numerics.sum16(best[of_query])
    return scores, winners


def query_of_rows(query_starts):
    """The query of every query row."""
    return [a for a, rows in parts(query_starts) for _ in range(rows.start, rows.stop)]


def maxsim_backward(dscores, queries, query_starts, documents, document_starts, winners):
    """dqueries, ddocuments, float32."""
    dqueries, ddocuments = np.zeros(queries.shape, f32), np.zeros(documents.shape, f32)
    owner = query_of_rows(query_starts)
    with np.errstate(all="ignore"):
        for i, a in enumerate(owner):
            rows = documents[np.asarray(document_starts[:-1]) + winners[i]]
            dqueries[i] = numerics.dot16(rows.T, dscores[a][None, :])
        for b, rows in parts(document_starts):
            for j in range(rows.start, rows.stop):
                chosen = [i for i in range(len(queries)) if winners[i, b] == j - rows.start]
                upstream = np.array([dscores[owner[i], b] for i in chosen], f32)
                ddocuments[j] = numerics.dot16(queries[chosen].T, upstream[None, :])
    return dqueries, ddocuments


def maxsim_lse_forward(queries, query_starts, documents, document_starts, temperature):
    """scores (Q, D), shares (document_rows, query_rows), float32."""
    scores = np.zeros((len(query_starts) - 1, len(document_starts) - 1), f32)
    shares = np.zeros((len(documents), len(queries)), f32)
    with np.errstate(all="ignore"):
        for b, rows in parts(document_starts):
            z = matmul(queries, documents[rows], transpose_b=True).astype(np.float64) / temperature
            for a, of_query in parts(query_starts):
                score = 0.0
                for i in range(of_query.start, of_query.stop):
                    m, total = -np.inf, 0.0
                    for v in z[i]:
                        m = v if v > m else m
                    e = exp64(z[i] - m)
                    for v in e:
                        total = total + v
                    score = score + temperature * (m + log64(total))
                    share = (e / total).astype(f32)
                    shares[rows, i] = np.where(share < f32(2.0**-126), f32(0), share)
                scores[a, b] = score
    return scores, shares


def maxsim_lse_backward(dscores, queries, query_starts, documents, document_starts, shares):
    """dqueries, ddocuments, float32."""
    owner = query_of_rows(query_starts)
    document_of = query_of_rows(document_starts)
    with np.errstate(all="ignore"):
        g = shares * np.asarray(dscores, f32)[np.array(owner, int)[None, :], np.array(document_of, int)[:, None]]
        return matmul(g.T, documents.T, transpose_b=True), matmul(g, queries)
