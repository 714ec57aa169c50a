//! bentpipe-sim.
