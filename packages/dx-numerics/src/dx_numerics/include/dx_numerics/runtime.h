/* What dx-numerics does for the packages above it at run time: which kernel path and how many threads
 * ("degree") the calling thread has asked for, the floating-point environment, and the thread pool.
 *
 * The functions live in dx-numerics' extension module; a package above receives their addresses at import
 * (through Cython's checked C-function exports) and keeps them in one dx_runtime. */
#ifndef DX_NUMERICS_RUNTIME_H
#define DX_NUMERICS_RUNTIME_H

#include "config.h"

/* One piece of parallel work: items begin..end-1. worker is in 0..degree-1 and no two pieces run at the same
 * time with the same worker, so it can index scratch memory that the caller allocated. */
typedef void (*dx_task)(void *context, ptrdiff_t begin, ptrdiff_t end, int worker);

typedef struct {
    /* Runs task over items 0..count-1 in pieces of grain items (the last may be shorter), on at most degree
     * threads, the caller among them; returns when all are done. Degree never shows in a bit: a task must write
     * only outputs that belong to its items. Nested calls run serially in the caller. */
    void (*parallel)(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, int degree);
} dx_runtime;

#endif
