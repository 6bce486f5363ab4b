/* The functions of dx-kernels that exist once per kernel path, by family. A family declares its functions in its
 * own header as a list macro (return type, name, arguments) and defines them in its own .c file, which is
 * compiled once per path; this header joins the lists. Every kernel returns DX_OK or DX_NO_MEMORY unless its
 * header says otherwise, takes the degree first, and trusts its arguments: the .pyx beside it has checked them. */
#ifndef DX_KERNELS_TABLE_H
#define DX_KERNELS_TABLE_H

#include "kernels.h"
#include "activations.h"
#include "adamw.h"
#include "attention.h"
#include "binary64.h"
#include "binary_cross_entropy.h"
#include "char_conv.h"
#include "contrastive.h"
#include "crf.h"
#include "cross_entropy.h"
#include "decode.h"
#include "embedding.h"
#include "encoder.h"
#include "gemm.h"
#include "layer_norm.h"
#include "linear.h"
#include "maxsim.h"
#include "norm.h"
#include "pairs.h"
#include "pair_bias.h"
#include "pair_mlp.h"
#include "patch.h"
#include "bfloat16.h"
#include "pooling.h"
#include "post_encoder.h"
#include "posteriors.h"
#include "reading.h"
#include "regression.h"
#include "run_loss.h"
#include "similarity.h"
#include "softmax.h"
#include "spans.h"
#include "text.h"
#include "words.h"

#define DX_KERNELS_TABLE(F) \
    DX_ACTIVATIONS(F) \
    DX_ADAMW(F) \
    DX_ATTENTION(F) \
    DX_BINARY64(F) \
    DX_BINARY_CROSS_ENTROPY(F) \
    DX_CHAR_CONV(F) \
    DX_CONTRASTIVE(F) \
    DX_CRF(F) \
    DX_CROSS_ENTROPY(F) \
    DX_DECODE(F) \
    DX_EMBEDDING(F) \
    DX_ENCODER(F) \
    DX_GEMM(F) \
    DX_LAYER_NORM(F) \
    DX_LINEAR(F) \
    DX_MAXSIM(F) \
    DX_NORM(F) \
    DX_PAIR_FEATURES(F) \
    DX_PAIR_BIAS(F) \
    DX_PAIR_MLP(F) \
    DX_PATCH_EMBED(F) \
    DX_BFLOAT16(F) \
    DX_POOLING(F) \
    DX_POST_ENCODER(F) \
    DX_POSTERIORS(F) \
    DX_READING_ORDER(F) \
    DX_REGRESSION(F) \
    DX_RUN_LOSS(F) \
    DX_SIMILARITY(F) \
    DX_SOFTMAX(F) \
    DX_SPANS(F) \
    DX_TEXT(F) \
    DX_WORD_FEATURES(F)

typedef struct {
#define DX_MEMBER(result, name, arguments) result (*name) arguments;
    DX_KERNELS_TABLE(DX_MEMBER)
#undef DX_MEMBER
} dx_kernels_table;

/* By path; a path that this binary does not hold is NULL. */
extern const dx_kernels_table *const dx_kernels_tables[DX_PATH_COUNT];

#ifdef DX_PATH
/* Declarations for this path's own functions, so that one family can call another: DX_FN(layer_norm_forward)(…). */
#define DX_DECLARE(result, name, arguments) result DX_FN(name) arguments;
DX_KERNELS_TABLE(DX_DECLARE)
#undef DX_DECLARE
#endif

#endif
