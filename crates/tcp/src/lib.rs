//! bentpipe-tcp.
