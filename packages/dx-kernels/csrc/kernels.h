/* What every kernel file includes: the runtime below, scratch memory, and the statuses that kernels return. */
#ifndef DX_KERNELS_H
#define DX_KERNELS_H

#include <dx_numerics/runtime.h>

#define DX_OK 0
#define DX_NO_MEMORY (-1)

/* Set once at import, from dx-numerics' exported functions. */
extern dx_runtime dx_rt;

/* Scratch memory of the calling thread, a stack: take a mark, allocate, release to the mark before returning.
 * Blocks are 64-byte aligned and stay with the thread, so a warmed-up kernel does not allocate. A kernel
 * allocates for all its workers before it goes parallel (worker w uses the w-th part), never inside a task. */
typedef struct { size_t chunk, used; } dx_mark;
dx_mark dx_scratch_mark(void);
void *dx_scratch(size_t bytes); /* NULL: out of memory */
void dx_scratch_release(dx_mark mark);

/* Splits count items into pieces for the pool: about four pieces a thread when the work (in elementary
 * operations) is worth it, one piece (serial) when it is small. */
static inline ptrdiff_t dx_grain(ptrdiff_t count, double work_per_item, int degree)
{
    if (degree <= 1 || count <= 1 || work_per_item * (double)count < 65536.0) return count > 0 ? count : 1;
    ptrdiff_t pieces = 4 * (ptrdiff_t)degree;
    ptrdiff_t grain = (count + pieces - 1) / pieces;
    double least = 16384.0 / work_per_item; /* a piece not worth a hand-over is too small */
    if (least >= (double)count) return count;
    return grain > (ptrdiff_t)least ? grain : (ptrdiff_t)least + 1;
}

#endif
