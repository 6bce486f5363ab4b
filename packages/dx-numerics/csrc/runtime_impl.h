/* Internal: the functions behind dx_numerics._core. */
#ifndef DX_RUNTIME_IMPL_H
#define DX_RUNTIME_IMPL_H

#include <dx_numerics/runtime.h>

/* 1 when this binary holds the path and this CPU and operating system can run it. */
int dx_path_supported(int path);
/* The fastest supported path. */
int dx_path_best(void);

/* Puts the calling thread into IEEE mode (round to nearest, subnormals kept) and returns what was there. */
uint64_t dx_fp_enter(void);
void dx_fp_leave(uint64_t saved);

/* 1 when the calling thread is in that mode. */
int dx_fp_is_ieee(void);
/* Test hook: leaves the calling thread in another mode (0 IEEE, 1 up, 2 down, 3 towards zero, 4 flush to zero). */
void dx_fp_disturb(int mode);

/* The cheap self-check of a supported path (selfcheck.c): 0, or what is wrong. */
#define DX_BAD_MODE 1
#define DX_BAD_ROUNDING 2
#define DX_BAD_SUBNORMALS 4
#define DX_BAD_CONTRACTION 8
#define DX_BAD_DOT 16
int dx_selfcheck(int path);

/* dx_runtime.parallel; the pool is in pool.c. Workers come into being with the first region that needs them. */
#define DX_MAX_DEGREE 64
void dx_parallel(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, int degree);
/* Once the module is loaded, and before the process ends (joins the workers; later regions run serially). */
void dx_pool_start(void);
void dx_pool_stop(void);
/* Workers that exist now. */
int dx_pool_workers(void);

/* Test hook (probe.c). Writes, for each item, the worker that ran it and the number of times it ran; report:
 * pieces that met another piece with the same worker, pieces outside IEEE mode, items of nested regions. */
void dx_parallel_probe(int *worker, int *visits, ptrdiff_t count, ptrdiff_t grain, int degree, int spin, int nested,
                       int report[3]);

#endif
