/* dx_tanh32 of several vectors at once, and the tanh form of GELU with it: the operations of math32.h and
 * activations_inline.h, in their order, for every element. What is gained is that the steps of independent vectors
 * stand side by side: one after the other, each waits for its own chain of some hundred cycles, and not enough of the
 * next fits into the processor's queues. */
#ifndef DX_TANH_VECTORS_H
#define DX_TANH_VECTORS_H

#include <dx_numerics/vec.h>
#include "activations_inline.h"

#if DX_VL >= 8
#define DX_TANH_VECTORS 4

typedef float dx_half __attribute__((vector_size(2 * DX_VL)));
typedef double dx_vd __attribute__((vector_size(4 * DX_VL)));
typedef int64_t dx_vl __attribute__((vector_size(4 * DX_VL)));

#if DX_VL == 16
#define DX_LOW(v) __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define DX_HIGH(v) __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15)
#define DX_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#else
#define DX_LOW(v) __builtin_shufflevector(v, v, 0, 1, 2, 3)
#define DX_HIGH(v) __builtin_shufflevector(v, v, 4, 5, 6, 7)
#define DX_JOIN(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#endif

/* out = tanh(in), n vectors. */
DX_INLINE void dx_tanh_vectors(const int n, const dx_vf *in, dx_vf *out)
{
    enum { MOST = 2 * DX_TANH_VECTORS };
    const int halves = 2 * n;
    const dx_vf ten = dx_vset(10.0f);
    dx_vd f[MOST], g[MOST], a[MOST], b[MOST], s[MOST];
    DX_UNROLL(8)
    for (int i = 0; i < n; i++) {
        dx_vf c = dx_vselect(in[i] > ten, ten, in[i]);
        c = dx_vselect(c < -ten, -ten, c);
        f[2 * i] = __builtin_convertvector(DX_LOW(c), dx_vd) * 0x1.71547652b82fep+1;
        f[2 * i + 1] = __builtin_convertvector(DX_HIGH(c), dx_vd) * 0x1.71547652b82fep+1;
    }
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) {
        dx_vd k = f[i] + 6755399441055744.0;
        f[i] = f[i] - (k - 6755399441055744.0);
        s[i] = (dx_vd)(((dx_vl)k << 52) + 0x3ff0000000000000LL);
    }
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) {
        g[i] = f[i] * f[i];
        a[i] = 0x1.5d88bdb26496dp-10 + 0x1.443f6252ee25ap-13 * f[i];
        b[i] = 0x1.c6b08cb1670e1p-5 + 0x1.3b2a1c3613eb0p-7 * f[i];
    }
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) a[i] = a[i] + g[i] * 0x1.ffcbdc7b47117p-17;
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) b[i] = b[i] + g[i] * a[i];
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) a[i] = (0x1.62e42fefd32c3p-1 + 0x1.ebfbe045304bdp-3 * f[i]) + g[i] * b[i];
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) a[i] = s[i] * (f[i] * a[i]);
    DX_UNROLL(8)
    for (int i = 0; i < halves; i++) a[i] = (a[i] + (s[i] - 1.0)) / (a[i] + (s[i] + 1.0));
    DX_UNROLL(8)
    for (int i = 0; i < n; i++) {
        const dx_half low = __builtin_convertvector(a[2 * i], dx_half), high = __builtin_convertvector(a[2 * i + 1], dx_half);
        const dx_vf y = DX_JOIN(low, high);
        out[i] = (dx_vf)((dx_vi)y | ((dx_vi)in[i] & INT32_MIN));
    }
}

/* n vectors: y = gelu(x), terms = its tanh terms; y may be x. */
DX_INLINE void dx_gelu_tanh_of(const int n, const dx_vf *x, dx_vf *y, dx_vf *terms)
{
    dx_vf u[DX_TANH_VECTORS];
    DX_UNROLL(8)
    for (int i = 0; i < n; i++) u[i] = DX_GELU_C0 * (x[i] + DX_GELU_C1 * (x[i] * (x[i] * x[i])));
    dx_tanh_vectors(n, u, terms);
    DX_UNROLL(8)
    for (int i = 0; i < n; i++) y[i] = (0.5f * x[i]) * (1.0f + terms[i]);
}

/* The same in memory; t may be NULL. */
DX_INLINE void dx_gelu_tanh_vectors(const int n, const float *x, float *y, float *t)
{
    dx_vf v[DX_TANH_VECTORS], terms[DX_TANH_VECTORS];
    DX_UNROLL(8)
    for (int i = 0; i < n; i++) v[i] = dx_vload(x + i * DX_VL);
    dx_gelu_tanh_of(n, v, v, terms);
    DX_UNROLL(8)
    for (int i = 0; i < n; i++) {
        if (t) dx_vstore(t + i * DX_VL, terms[i]);
        dx_vstore(y + i * DX_VL, v[i]);
    }
}
#endif

/* y = gelu(x) of n numbers, t = its tanh terms unless NULL; y may be x. */
DX_INLINE void dx_gelu_tanh_all(ptrdiff_t n, const float *x, float *y, float *t)
{
    ptrdiff_t i = 0;
#if DX_VL >= 8
    const ptrdiff_t step = DX_TANH_VECTORS * DX_VL;
    for (; i + step <= n; i += step) dx_gelu_tanh_vectors(DX_TANH_VECTORS, x + i, y + i, t ? t + i : NULL);
    for (; i + 2 * DX_VL <= n; i += 2 * DX_VL) dx_gelu_tanh_vectors(2, x + i, y + i, t ? t + i : NULL);
    for (; i + DX_VL <= n; i += DX_VL) dx_gelu_tanh_vectors(1, x + i, y + i, t ? t + i : NULL);
#endif
    for (; i < n; i++) {
        const float term = dx_gelu_tanh_term(x[i]);
        if (t) t[i] = term;
        y[i] = dx_gelu_tanh(x[i], term);
    }
}

/* y = tanh(x) of n numbers; y may be x. */
DX_INLINE void dx_tanh_all(ptrdiff_t n, const float *x, float *y)
{
    ptrdiff_t i = 0;
#if DX_VL >= 8
    const ptrdiff_t step = DX_TANH_VECTORS * DX_VL;
    for (; i + step <= n; i += step) {
        dx_vf v[DX_TANH_VECTORS];
        DX_UNROLL(8)
        for (int q = 0; q < DX_TANH_VECTORS; q++) v[q] = dx_vload(x + i + q * DX_VL);
        dx_tanh_vectors(DX_TANH_VECTORS, v, v);
        DX_UNROLL(8)
        for (int q = 0; q < DX_TANH_VECTORS; q++) dx_vstore(y + i + q * DX_VL, v[q]);
    }
    for (; i + DX_VL <= n; i += DX_VL) {
        dx_vf v = dx_vload(x + i);
        dx_tanh_vectors(1, &v, &v);
        dx_vstore(y + i, v);
    }
#endif
    for (; i < n; i++) y[i] = dx_tanh32(x[i]);
}

#endif
