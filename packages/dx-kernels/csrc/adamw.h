/* One optimizer step of one tensor of n elements. adamw_prepare computes, in binary64, what all tensors of a step
 * share; step counts from 1; last is two powers of earlier calls, to go on from, at first zeros. scale is the tensor's factor on the rate; without decay_on there is no weight decay. */
#ifndef DX_KERNELS_ADAMW_H
#define DX_KERNELS_ADAMW_H
typedef struct {
    double rate, decay;
    float beta1, mix1, correction1, beta2, mix2, correction2, eps;
} dx_adamw;
typedef struct { double beta; ptrdiff_t step; double power; } dx_power; /* power = beta^step */
#endif

#define DX_ADAMW(F) \
    F(int, adamw_prepare, (ptrdiff_t step, double rate, double beta1, double beta2, double eps, double decay, \
                           dx_power *last, dx_adamw *settings)) \
    F(int, adamw_step, (int degree, ptrdiff_t n, const dx_adamw *settings, double scale, int decay_on, float *w, \
                        const float *g, float *m, float *v)) \
    F(int, sgd_step, (int degree, ptrdiff_t n, double rate, double scale, float *w, const float *g))
