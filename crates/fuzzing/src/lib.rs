//! Bodies of the fuzz targets: each takes an input and panics if a rule is broken.
//!
//! The targets in `fuzz/fuzz_targets` call them under libFuzzer. The tests of this crate replay the
//! inputs in `fuzz/seeds`, on a stable toolchain and without libFuzzer.

pub mod compression;
pub mod connection;
pub mod engine;
pub mod host;
pub mod orbits;
pub mod packet_script;
pub mod quic_datagrams;
pub mod quic_window_rule;
pub mod scenario;
pub mod traces;
pub mod wire;

use arbitrary::{Arbitrary, Unstructured};

/// A fuzz target that runs the bytes of an input file.
pub struct Target {
    /// Its name in `fuzz/fuzz_targets` and `fuzz/seeds`.
    pub name: &'static str,
    /// Runs the bytes as libFuzzer does. Returns false if they are no input, which libFuzzer
    /// ignores.
    pub run: fn(&[u8]) -> bool,
}

/// All targets, by name.
pub const TARGETS: [Target; 11] = [
    Target {
        name: "compression",
        run: |bytes| with(bytes, |input| compression::run(&input)),
    },
    Target {
        name: "connection",
        run: |bytes| with(bytes, |input| connection::run(&input)),
    },
    Target {
        name: "engine",
        run: |bytes| with(bytes, engine::run),
    },
    Target {
        name: "host",
        run: |bytes| with(bytes, |input| host::run(&input)),
    },
    Target {
        name: "orbits",
        run: |bytes| with(bytes, orbits::run),
    },
    Target {
        name: "packet_script",
        run: |bytes| with(bytes, packet_script::run),
    },
    Target {
        name: "quic_datagrams",
        run: |bytes| with(bytes, |input| quic_datagrams::run(&input)),
    },
    Target {
        name: "quic_window_rule",
        run: |bytes| with(bytes, |input| quic_window_rule::run(&input)),
    },
    Target {
        name: "scenario",
        run: |bytes| with(bytes, scenario::run),
    },
    Target {
        name: "traces",
        run: |bytes| with(bytes, |(format, text)| traces::run(format, text)),
    },
    Target {
        name: "wire",
        run: |bytes| with(bytes, wire::run),
    },
];

/// Decodes an input like `libfuzzer_sys::fuzz_target`, and runs it. Returns false if there is none
/// in the bytes.
fn with<'a, T: Arbitrary<'a>>(bytes: &'a [u8], run: impl FnOnce(T)) -> bool {
    if bytes.len() < T::size_hint(0).0 {
        return false;
    }
    T::arbitrary_take_rest(Unstructured::new(bytes))
        .map(run)
        .is_ok()
}
