/* Linear-chain conditional random field (docs/readout.md). emissions (rows, tags) of all sequences one after another;
 * sequence s has the rows begin[s]..begin[s + 1] - 1; transitions (tags, tags) from row to column; first, last (tags).
 * -inf forbids. targets (rows) or NULL: a tag, or -1: any. losses, log_partition, scores (sequences); marginals
 * (rows, tags); best (rows) tags, -1 in a sequence that has no admitted path (its score is -inf).
 * Gradients: all or none. */
#define DX_CRF(F) \
    F(int, crf_loss, (int degree, ptrdiff_t sequences, ptrdiff_t tags, const float *emissions, \
                      const float *transitions, const float *first, const float *last, const int32_t *targets, \
                      const int32_t *begin, double scale, double denominator, double *losses, float *demissions, \
                      float *dtransitions, float *dfirst, float *dlast)) \
    F(int, crf_marginals, (int degree, ptrdiff_t sequences, ptrdiff_t tags, const float *emissions, \
                           const float *transitions, const float *first, const float *last, const int32_t *begin, \
                           double *log_partition, double *marginals)) \
    F(int, crf_decode, (int degree, ptrdiff_t sequences, ptrdiff_t tags, const float *emissions, \
                        const float *transitions, const float *first, const float *last, const int32_t *begin, \
                        double *scores, int32_t *best))
