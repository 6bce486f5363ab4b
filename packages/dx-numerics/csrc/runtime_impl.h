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

void dx_parallel(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, int degree);

#endif
