/* The thread pool. */
#include "runtime_impl.h"

void dx_parallel(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, int degree)
{
    (void)degree;
    for (ptrdiff_t begin = 0; begin < count; begin += grain) {
        ptrdiff_t end = begin + grain < count ? begin + grain : count;
        task(context, begin, end, 0);
    }
}
