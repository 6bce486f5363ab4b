/* Words as code points. code and kind are (offset[words]); word w is code[offset[w] .. offset[w+1]-1]. kind is what
 * text_kinds writes: kind | digit value << 4 (text_scan.h). All run on the calling thread. */
#include "text_scan.h"

#define DX_TEXT(F) \
    F(int, text_clean, (ptrdiff_t n, const uint32_t *code, uint32_t *out)) \
    F(int, text_kinds, (ptrdiff_t n, const uint32_t *code, uint8_t *kind)) \
    F(int, text_cuts, (ptrdiff_t words, const int64_t *offset, const uint32_t *code, const uint8_t *kind, \
                       uint8_t *cut)) \
    F(int, text_keys, (ptrdiff_t words, const int64_t *offset, const uint32_t *code, const uint8_t *kind, \
                       int32_t *key)) \
    F(int, character_ids, (ptrdiff_t words, const int64_t *offset, const uint32_t *code, const uint8_t *kind, \
                           ptrdiff_t max_chars, int32_t *ids)) \
    /* Distinct rows of ids in order of first occurrence; the number of them goes to *count. */ \
    F(int, distinct_rows, (ptrdiff_t rows, ptrdiff_t width, const int32_t *ids, int32_t *distinct, int32_t *inverse, \
                           int64_t *count))
