/* One table per path: compiled with every path's flags. */
#include "table.h"

#define DX_DECLARE(result, name, arguments) result DX_FN(name) arguments;
DX_NUMERICS_TABLE(DX_DECLARE)

extern const dx_numerics_table DX_FN(numerics_table);
const dx_numerics_table DX_FN(numerics_table) = {
#define DX_ENTRY(result, name, arguments) DX_FN(name),
    DX_NUMERICS_TABLE(DX_ENTRY)
};
