# The check of where words stand, for the families that make pair features.
cdef int check_places(const double[:, ::1] real, const int[:, ::1] whole) except -1
