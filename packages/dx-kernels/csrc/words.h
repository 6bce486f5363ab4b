/* Features of words in reading order: text, kinds and offset as in text.h, box (n, 4), row, line, key (n) as in
 * pairs.h, glue (n): 1 for a piece that is not the first of its word. out (n, 56) assigned. */
#define DX_WORD_FEATURE_COUNT 56

#define DX_WORD_FEATURES(F) \
    F(int, word_features, (ptrdiff_t n, const int64_t *offset, const uint32_t *code, const uint8_t *kind, \
                           const double *box, const int32_t *row, const int32_t *line, const int32_t *key, \
                           const uint8_t *glue, double line_height, float *out))
