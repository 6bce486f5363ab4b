/* All paths of this binary in one array. */
#include "table.h"

extern const dx_numerics_table dx_numerics_table_portable;
#if defined(__x86_64__)
extern const dx_numerics_table dx_numerics_table_avx2, dx_numerics_table_avx512;
#elif defined(__aarch64__)
extern const dx_numerics_table dx_numerics_table_neon;
#endif

const dx_numerics_table *const dx_numerics_tables[DX_PATH_COUNT] = {
    [DX_PATH_PORTABLE] = &dx_numerics_table_portable,
#if defined(__x86_64__)
    [DX_PATH_AVX2] = &dx_numerics_table_avx2,
    [DX_PATH_AVX512] = &dx_numerics_table_avx512,
#elif defined(__aarch64__)
    [DX_PATH_NEON] = &dx_numerics_table_neon,
#endif
};
