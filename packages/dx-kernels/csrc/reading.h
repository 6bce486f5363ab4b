/* Reading order by position. box is (n, 4): x0, y0, x1, y1; line (n): the source's line number, below 0 for none;
 * offset (n + 1) and code: the words' texts, for words whose boxes are equal. order (n): order[r] is the word at place
 * r; row (n): the visual row of the word at place r, from 0, never falling. Runs on the calling thread. */
#define DX_READING_ORDER(F) \
    F(int, reading_order, (ptrdiff_t n, const double *box, const int32_t *line, const int64_t *offset, \
                           const uint32_t *code, int32_t *order, int32_t *row))
