/* Build-time conditions and portability macros. Every C file of dx includes this first.
 *
 * A translation unit that holds kernels is compiled once per kernel path with -DDX_PATH=<n>; DX_FN(name)
 * then gives every function of that unit the path's suffix, so that all paths live in one binary. */
#ifndef DX_NUMERICS_CONFIG_H
#define DX_NUMERICS_CONFIG_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "dx must not be compiled with -ffast-math: it changes results"
#endif
#if FLT_EVAL_METHOD != 0
#error "dx needs float and double arithmetic evaluated in their own precision (FLT_EVAL_METHOD == 0)"
#endif

#define DX_PATH_PORTABLE 0
#define DX_PATH_AVX2 1
#define DX_PATH_AVX512 2
#define DX_PATH_NEON 3
#define DX_PATH_COUNT 4

#ifdef DX_PATH
#if DX_PATH == DX_PATH_PORTABLE
#define DX_FN(name) dx_##name##_portable
#elif DX_PATH == DX_PATH_AVX2
#define DX_FN(name) dx_##name##_avx2
#elif DX_PATH == DX_PATH_AVX512
#define DX_FN(name) dx_##name##_avx512
#elif DX_PATH == DX_PATH_NEON
#define DX_FN(name) dx_##name##_neon
#else
#error "DX_PATH must be one of the DX_PATH_ constants"
#endif
#endif

#define DX_INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#define DX_UNROLL(n) _Pragma(DX_STRING(clang loop unroll(full)))
#else
#define DX_UNROLL(n) _Pragma(DX_STRING(GCC unroll n))
#endif
#define DX_STRING_(x) #x
#define DX_STRING(x) DX_STRING_(x)

DX_INLINE float dx_float_of_bits(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
DX_INLINE uint32_t dx_bits_of_float(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
DX_INLINE double dx_double_of_bits(uint64_t bits) { double x; memcpy(&x, &bits, 8); return x; }
DX_INLINE uint64_t dx_bits_of_double(double x) { uint64_t bits; memcpy(&bits, &x, 8); return bits; }

#endif
