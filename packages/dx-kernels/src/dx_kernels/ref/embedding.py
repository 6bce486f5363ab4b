"""Reference of dx_kernels.embedding."""
import numpy as np

f32 = np.float32


def embedding_forward(table, ids, padding=-1):
    """(n, d) rows of table by id, +0 for the padding id; float32 array."""
    rows = np.asarray(table, f32)[ids]
    rows[np.asarray(ids) == padding] = 0
    return rows


def embedding_sum_forward(tables, ids, x=None):
    """((x + tables[0][ids[0]]) + tables[1][ids[1]]) + …; float32 array (n, d)."""
    y = x
    with np.errstate(all="ignore"):
        for table, row_ids in zip(tables, ids, strict=True):
            y = table[row_ids] if y is None else y + table[row_ids]
    return y


def embedding_backward(dy, ids, rows, padding=-1):
    """(rows, d) sums of dy's rows by id in word order; float32 array."""
    dtable = np.zeros((rows, dy.shape[1]), f32)
    with np.errstate(all="ignore"):
        for row, i in zip(dy, ids, strict=True):
            if i != padding:
                dtable[i] = dtable[i] + row
    return dtable
