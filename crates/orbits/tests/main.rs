//! Orbits against published figures, and with bad input: one binary, a module per subject.

mod bad_input;
mod witnesses;
