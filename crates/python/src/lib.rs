//! bentpipe-python.
