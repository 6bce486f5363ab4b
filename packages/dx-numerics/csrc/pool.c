/* The thread pool behind dx_runtime.parallel (rules: docs/numerics.md, "Threads").
 *
 * One job at a time. The caller that finds the pool free owns it for the length of one region; a caller that finds
 * it taken, and a call from inside a task, runs its pieces itself. Pieces are handed out by one counter, the caller
 * takes pieces like any worker, and never waits for a worker that has not joined: if the other processor is busy
 * elsewhere, the caller does everything alone.
 *
 * The door is one word: the seats left (high half) and the workers inside (low half). A worker joins by taking a
 * seat, whose number is its worker index for this region, so an index is used once; it reads the job only after
 * that. Whoever finds the counter at its end clears the seats; the owner returns when nobody is inside. All the
 * door's operations are sequentially consistent, so "open the door, then look for sleepers" against "announce the
 * sleep, then look at the door" cannot miss each other. */
#if defined(__linux__)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "runtime_impl.h"
#include "threads.h"

#include <stdatomic.h>

#define SEAT ((uint32_t)1 << 16)
#define INSIDE(door) ((door) & (SEAT - 1))
#define SEATS(door) ((door) >> 16)
/* Looks at the door before sleeping: some 0.1 ms, longer than the gap between two kernels of a model. An empty region
 * of degree 2 costs about 0.3 microseconds while the worker spins, and 7 when it has to be woken. */
#define SPIN 4000

static struct {
    /* the job */
    dx_task task;
    void *context;
    ptrdiff_t count, grain, pieces;
    _Alignas(64) _Atomic ptrdiff_t next;
    /* the protocol */
    _Alignas(64) _Atomic uint32_t door;
    _Atomic int owned, sleepers, owner_sleeps, stopping;
    dx_mutex mutex; /* guards sleeping, and the making and ending of workers */
    dx_condition work, done;
    int processors;
    _Atomic int workers;
    dx_thread threads[DX_MAX_DEGREE - 1];
} pool = {.mutex = DX_MUTEX_INIT, .work = DX_CONDITION_INIT, .done = DX_CONDITION_INIT};

static _Thread_local int in_task; /* this thread is running a piece */

static void serial(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain)
{
    for (ptrdiff_t begin = 0; begin < count;) {
        ptrdiff_t end = count - begin > grain ? begin + grain : count;
        task(context, begin, end, 0);
        begin = end;
    }
}

static void take_pieces(int worker)
{
    for (;;) {
        ptrdiff_t piece = atomic_fetch_add_explicit(&pool.next, 1, memory_order_relaxed);
        if (piece >= pool.pieces) return;
        ptrdiff_t begin = piece * pool.grain;
        ptrdiff_t end = pool.count - begin > pool.grain ? begin + pool.grain : pool.count;
        pool.task(pool.context, begin, end, worker);
    }
}

/* A seat of the open job (1 .. degree-1), or 0. */
static int join_job(void)
{
    uint32_t door = atomic_load(&pool.door);
    while (SEATS(door))
        if (atomic_compare_exchange_weak(&pool.door, &door, door - SEAT + 1)) return (int)SEATS(door);
    return 0;
}

static void leave_job(void)
{
    uint32_t door = atomic_load(&pool.door);
    while (!atomic_compare_exchange_weak(&pool.door, &door, INSIDE(door) - 1)) {}
    if (INSIDE(door) == 1 && atomic_load(&pool.owner_sleeps)) {
        dx_lock(&pool.mutex);
        dx_unlock(&pool.mutex);
        dx_wake_one(&pool.done);
    }
}

static void *work(void *thread)
{
    /* A worker without a processor of its own would keep the others from theirs by spinning. */
    int spin = (dx_thread *)thread - pool.threads < pool.processors - 1 ? SPIN : 1;
    in_task = 1;
    for (;;) {
        int seat = 0;
        for (int i = 0; i < spin && !(seat = join_job()) && !atomic_load(&pool.stopping); i++) dx_relax();
        if (!seat) {
            dx_lock(&pool.mutex);
            atomic_fetch_add(&pool.sleepers, 1);
            while (!(seat = join_job()) && !atomic_load(&pool.stopping)) dx_wait(&pool.work, &pool.mutex);
            atomic_fetch_sub(&pool.sleepers, 1);
            dx_unlock(&pool.mutex);
        }
        if (!seat) return NULL; /* stopping */
        dx_fp_enter(); /* a new thread inherits its creator's mode */
        take_pieces(seat);
        leave_job();
    }
}

/* Makes at least wanted workers exist, or as many as the system allows; 0 when there are none. */
static int have_workers(int wanted)
{
    int workers = atomic_load(&pool.workers);
    if (workers < wanted) {
        dx_lock(&pool.mutex);
        workers = pool.workers;
        while (workers < wanted && !atomic_load(&pool.stopping)
               && dx_thread_start(&pool.threads[workers], work, &pool.threads[workers]) == 0)
            pool.workers = ++workers;
        dx_unlock(&pool.mutex);
    }
    return workers;
}

static void run_as_owner(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, ptrdiff_t pieces, int others)
{
    pool.task = task;
    pool.context = context;
    pool.count = count;
    pool.grain = grain;
    pool.pieces = pieces;
    atomic_store_explicit(&pool.next, 0, memory_order_relaxed);
    atomic_store(&pool.door, (uint32_t)others * SEAT);
    int sleepers = atomic_load(&pool.sleepers);
    if (sleepers) {
        /* Whoever announced its sleep without having seen the door holds the mutex until it sleeps. Waking comes
         * after the unlock, so that nobody wakes only to wait for the mutex. */
        dx_lock(&pool.mutex);
        dx_unlock(&pool.mutex);
        if (sleepers <= others) dx_wake_all(&pool.work);
        else for (int i = 0; i < others; i++) dx_wake_one(&pool.work);
    }
    in_task = 1;
    take_pieces(0);
    in_task = 0;
    uint32_t door = atomic_fetch_and(&pool.door, SEAT - 1) & (SEAT - 1);
    for (int i = 0; door && i < (pool.processors > 1 ? SPIN : 1); i++) {
        dx_relax();
        door = atomic_load(&pool.door);
    }
    if (door) {
        dx_lock(&pool.mutex);
        atomic_store(&pool.owner_sleeps, 1);
        while (atomic_load(&pool.door)) dx_wait(&pool.done, &pool.mutex);
        atomic_store(&pool.owner_sleeps, 0);
        dx_unlock(&pool.mutex);
    }
}

void dx_parallel(dx_task task, void *context, ptrdiff_t count, ptrdiff_t grain, int degree)
{
    if (grain < 1) grain = 1;
    ptrdiff_t pieces = count > 0 ? count / grain + (count % grain != 0) : 0;
    ptrdiff_t others = (degree < DX_MAX_DEGREE ? degree : DX_MAX_DEGREE) - 1;
    if (others > pieces - 1) others = pieces - 1;
    int free_pool = 0;
    if (others < 1 || in_task || !atomic_compare_exchange_strong(&pool.owned, &free_pool, 1)) {
        serial(task, context, count, grain);
        return;
    }
    if (have_workers((int)others)) run_as_owner(task, context, count, grain, pieces, (int)others);
    else serial(task, context, count, grain);
    atomic_store(&pool.owned, 0);
}

/* In the child of a fork: the workers are gone, and whatever another thread was doing here is over. */
static void forget_workers(void)
{
    dx_mutex_renew(&pool.mutex);
    dx_condition_renew(&pool.work);
    dx_condition_renew(&pool.done);
    pool.workers = 0;
    atomic_store(&pool.door, 0);
    atomic_store(&pool.owned, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.owner_sleeps, 0);
}

void dx_pool_start(void)
{
    static atomic_int registered;
    if (!atomic_exchange(&registered, 1)) {
        dx_after_fork_in_child(forget_workers);
        pool.processors = dx_processors();
    }
    atomic_store(&pool.stopping, 0);
}

void dx_pool_stop(void)
{
    dx_thread threads[DX_MAX_DEGREE - 1];
    dx_lock(&pool.mutex);
    atomic_store(&pool.stopping, 1);
    int workers = pool.workers;
    for (int i = 0; i < workers; i++) threads[i] = pool.threads[i];
    pool.workers = 0;
    dx_wake_all(&pool.work);
    dx_unlock(&pool.mutex);
    for (int i = 0; i < workers; i++) dx_thread_join(threads[i]);
}

int dx_pool_workers(void) { return atomic_load(&pool.workers); }
