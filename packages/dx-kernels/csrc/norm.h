/* Gradient norm and clipping. squared_norm is not finite only if an element is not; joint_norm is the root of the sum of
 * count of them, in order. scale_in_place: g = round(g * factor). */
#define DX_NORM(F) \
    F(double, squared_norm, (ptrdiff_t n, const float *g)) \
    F(double, joint_norm, (ptrdiff_t count, const double *squares)) \
    F(double, clip_factor, (double norm, double max_norm)) \
    F(int, scale_in_place, (int degree, ptrdiff_t n, double factor, float *g))
