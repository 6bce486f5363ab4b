/* The thread pool without Python, for a run under ThreadSanitizer: several callers, changing degrees, nested
 * regions, forks, and a stop in the middle. Exit status 0: every item ran exactly once. */
#include "runtime_impl.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALLERS = 5, REGIONS = 400, ITEMS = 40 };

static int region(int count, int grain, int degree)
{
    int worker[ITEMS], visits[ITEMS] = {0}, report[3], bad = 0;
    dx_parallel_probe(worker, visits, count, grain, degree, 200, degree & 1, report);
    for (int i = 0; i < count; i++) bad += visits[i] != 1 || worker[i] < 0 || worker[i] >= degree;
    return bad + report[0] + report[1];
}

static void *caller(void *seed)
{
    ptrdiff_t s = (ptrdiff_t)seed, bad = 0;
    for (int k = 0; k < REGIONS; k++) bad += region((int)(s * 7 + k) % ITEMS, 1 + k % 3, (int)(1 + (s + k) % 7));
    return (void *)bad;
}

static ptrdiff_t callers(int stop)
{
    pthread_t threads[CALLERS];
    ptrdiff_t bad = 0;
    for (ptrdiff_t i = 0; i < CALLERS; i++)
        if (pthread_create(&threads[i], NULL, caller, (void *)i)) return 1;
    if (stop) { usleep(5000); dx_pool_stop(); }
    for (int i = 0; i < CALLERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bad += (ptrdiff_t)result;
    }
    return bad;
}

int main(void)
{
    dx_pool_start();
    ptrdiff_t bad = callers(0);
    pid_t child = fork();
    if (child == 0) _exit(region(ITEMS, 1, 3) != 0 || dx_pool_workers() != 2);
    int status = 1;
    if (waitpid(child, &status, 0) != child || status != 0) bad++;
    bad += callers(1);
    if (dx_pool_workers() != 0) bad++;
    dx_pool_start();
    bad += callers(0);
    dx_pool_stop();
    printf("%td\n", bad);
    return bad != 0;
}
