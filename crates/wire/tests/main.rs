//! Headers as bytes: one binary, a module per subject.

mod corrupt;
mod round_trip;
mod tshark;
mod tshark_return_link;
mod witness;
