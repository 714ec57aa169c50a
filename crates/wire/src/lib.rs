//! bentpipe-wire.
