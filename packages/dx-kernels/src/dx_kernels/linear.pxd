# The packed form of a weight when it is a PackedMatrix of shape (K, N), None when it is an array (linear, patch).
cdef object packed_weight(object weight, Py_ssize_t K, Py_ssize_t N, bint transpose_b)
