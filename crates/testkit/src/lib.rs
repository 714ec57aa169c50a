//! bentpipe-testkit.
