//! bentpipe-link.
