/* binary16 ("float16") and bfloat16 as bits, to and from binary32. Widening is exact; narrowing rounds to nearest,
 * ties to even, once. A NaN stays a NaN (quiet), an overflow is infinite, subnormals are exact. */
#ifndef DX_NUMERICS_HALF_H
#define DX_NUMERICS_HALF_H

#include "config.h"

DX_INLINE float dx_widen_float16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, size = h & 0x7FFFu;
    uint32_t normal = (size << 13) + (112u << 23);
    uint32_t special = (size << 13) | 0x7F800000u | (size > 0x7C00u ? 0x400000u : 0u);
    uint32_t subnormal = dx_bits_of_float((float)(int32_t)size * 0x1p-24f);
    uint32_t r = size < 0x0400u ? subnormal : size < 0x7C00u ? normal : special;
    return dx_float_of_bits(r | sign);
}

DX_INLINE uint16_t dx_narrow_float16(float x)
{
    uint32_t bits = dx_bits_of_float(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7FFFFFFFu;
    uint32_t normal = (size + 0xFFFu + (size >> 13 & 1u) - (112u << 23)) >> 13;
    /* below 2^-14: the unit of the last place of 0.5 is 2^-24, so the addition rounds to binary16's subnormals */
    uint32_t small = size < 0x38800000u ? size : 0u;
    uint32_t subnormal = dx_bits_of_float(dx_float_of_bits(small) + 0.5f) - 0x3F000000u;
    uint32_t nan = 0x7E00u | (size >> 13 & 0x3FFu);
    uint32_t r = size < 0x38800000u ? subnormal : size < 0x477FF000u ? normal : size <= 0x7F800000u ? 0x7C00u : nan;
    return (uint16_t)(r | sign);
}

DX_INLINE float dx_widen_bfloat16(uint16_t h)
{
    return dx_float_of_bits((uint32_t)h << 16 | ((h & 0x7FFFu) > 0x7F80u ? 0x400000u : 0u));
}

DX_INLINE uint16_t dx_narrow_bfloat16(float x)
{
    uint32_t bits = dx_bits_of_float(x);
    uint32_t rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
    return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits >> 16 | 0x40u : rounded);
}

#endif
