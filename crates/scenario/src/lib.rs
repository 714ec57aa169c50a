//! bentpipe-scenario.
