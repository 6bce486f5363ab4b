/* One table per path: compiled with every path's flags. */
#include "table.h"

extern const dx_kernels_table DX_FN(kernels_table);
const dx_kernels_table DX_FN(kernels_table) = {
#define DX_ENTRY(result, name, arguments) DX_FN(name),
    DX_KERNELS_TABLE(DX_ENTRY)
};
