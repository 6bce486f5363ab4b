/* The few threading primitives that dx uses, over POSIX threads. Everything else in dx is written against these
 * names, so a system without POSIX threads needs another body for this one file. */
#ifndef DX_THREADS_H
#define DX_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef pthread_mutex_t dx_mutex;
typedef pthread_cond_t dx_condition;
typedef pthread_t dx_thread;
#define DX_MUTEX_INIT PTHREAD_MUTEX_INITIALIZER
#define DX_CONDITION_INIT PTHREAD_COND_INITIALIZER

static inline void dx_lock(dx_mutex *m) { pthread_mutex_lock(m); }
static inline void dx_unlock(dx_mutex *m) { pthread_mutex_unlock(m); }
static inline void dx_wait(dx_condition *c, dx_mutex *m) { pthread_cond_wait(c, m); }
static inline void dx_wake_one(dx_condition *c) { pthread_cond_signal(c); }
static inline void dx_wake_all(dx_condition *c) { pthread_cond_broadcast(c); }

/* For a child process after fork, where no other thread exists any more. */
static inline void dx_mutex_renew(dx_mutex *m) { pthread_mutex_init(m, NULL); }
static inline void dx_condition_renew(dx_condition *c) { pthread_cond_init(c, NULL); }
static inline void dx_after_fork_in_child(void (*handler)(void)) { pthread_atfork(NULL, NULL, handler); }

/* Starts a thread; 0 on success. It takes no signals (they belong to the threads of the host program), and its
 * stack is large enough for every kernel also where the system's default is small. */
static inline int dx_thread_start(dx_thread *t, void *(*body)(void *), void *argument)
{
    sigset_t all, saved;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return -1;
    pthread_attr_setstacksize(&attributes, (size_t)4 << 20);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    int status = pthread_create(t, &attributes, body, argument);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    pthread_attr_destroy(&attributes);
    return status;
}
static inline void dx_thread_join(dx_thread t) { pthread_join(t, NULL); }

/* Processors that this process may use. */
static inline int dx_processors(void)
{
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* One step of a spin loop. */
static inline void dx_relax(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
