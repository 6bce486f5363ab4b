/* Character convolution with maximum over the word. ids (words, length), 0 = padding; table (vocabulary, channels);
 * weight (out, taps, channels); bias (out) or NULL; y, dy (words, out); argmax (words, out): the position of the maximum,
 * -1 for a word without characters; NULL in forward when not wanted. dtable, dweight, dbias may be NULL. */
#define DX_CHAR_CONV(F) \
    F(int, char_conv_forward, (int degree, ptrdiff_t words, ptrdiff_t length, ptrdiff_t channels, ptrdiff_t taps, \
                               ptrdiff_t out, const float *table, const int32_t *ids, const float *weight, \
                               const float *bias, float *y, int32_t *argmax)) \
    F(int, char_conv_backward, (int degree, ptrdiff_t words, ptrdiff_t length, ptrdiff_t channels, ptrdiff_t taps, \
                                ptrdiff_t out, ptrdiff_t vocabulary, const float *dy, const float *y, \
                                const int32_t *argmax, const float *table, const int32_t *ids, const float *weight, \
                                float *dtable, float *dweight, float *dbias))
