/* Which kernel paths this machine can run, and the floating-point environment they need. */
#include "runtime_impl.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

int dx_path_supported(int path)
{
    switch (path) {
    case DX_PATH_PORTABLE: return 1;
#if defined(__x86_64__)
    case DX_PATH_AVX2:
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case DX_PATH_AVX512:
        __builtin_cpu_init();
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")
            && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
            && __builtin_cpu_supports("fma");
#elif defined(__aarch64__)
    case DX_PATH_NEON: return 1; /* part of the base architecture */
#endif
    default: return 0;
    }
}

int dx_path_best(void)
{
    static const int order[] = {DX_PATH_AVX512, DX_PATH_AVX2, DX_PATH_NEON};
    for (int i = 0; i < 3; i++)
        if (dx_path_supported(order[i])) return order[i];
    return DX_PATH_PORTABLE;
}

#if defined(__x86_64__)
/* MXCSR: exceptions masked, round to nearest, neither FTZ nor DAZ. The low six bits are sticky exception flags; they
 * do not change results, and writing the register costs more than reading it. */
#define DX_MXCSR 0x1F80u
#define DX_MXCSR_FLAGS 0x3Fu
int dx_fp_is_ieee(void) { return (_mm_getcsr() & ~DX_MXCSR_FLAGS) == DX_MXCSR; }
uint64_t dx_fp_enter(void)
{
    unsigned int saved = _mm_getcsr();
    if ((saved & ~DX_MXCSR_FLAGS) != DX_MXCSR) _mm_setcsr(DX_MXCSR);
    return saved;
}
void dx_fp_leave(uint64_t saved)
{
    if ((saved & ~(uint64_t)DX_MXCSR_FLAGS) != DX_MXCSR) _mm_setcsr((unsigned int)saved);
}
/* Test hook: round to nearest / up / down / towards zero with flushing off, or flushing on. */
void dx_fp_disturb(int mode)
{
    static const unsigned int modes[] = {DX_MXCSR, DX_MXCSR | 0x4000u, DX_MXCSR | 0x2000u, DX_MXCSR | 0x6000u,
                                         DX_MXCSR | 0x8040u};
    _mm_setcsr(modes[mode]);
}
#elif defined(__aarch64__)
/* FPCR zero: no traps, round to nearest, FZ off, default NaN off. */
uint64_t dx_fp_enter(void)
{
    uint64_t saved;
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
    if (saved) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
    return saved;
}
void dx_fp_leave(uint64_t saved)
{
    if (saved) __asm__ volatile("msr fpcr, %0" : : "r"(saved));
}
int dx_fp_is_ieee(void)
{
    uint64_t now;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    return now == 0;
}
void dx_fp_disturb(int mode)
{
    static const uint64_t modes[] = {0, 1u << 22, 2u << 22, 3u << 22, 1u << 24};
    __asm__ volatile("msr fpcr, %0" : : "r"(modes[mode]));
}
#else
uint64_t dx_fp_enter(void) { return 0; }
void dx_fp_leave(uint64_t saved) { (void)saved; }
int dx_fp_is_ieee(void) { return 1; }
void dx_fp_disturb(int mode) { (void)mode; }
#endif
