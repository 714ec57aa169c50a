//! Replays the inputs in `fuzz/seeds`, which together cover most of what each target reaches.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bentpipe_fuzzing::TARGETS;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(name)
}

/// The names in a folder, without extensions.
fn names(path: &Path) -> BTreeSet<String> {
    (fs::read_dir(path).expect("a folder"))
        .map(|entry| entry.expect("an entry").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect()
}

/// Runs all inputs of the target with this name.
fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("a target");
    let seeds = folder("seeds").join(name);
    let files = names(&seeds);
    assert!(files.len() >= 10, "{} inputs", files.len());
    for file in files {
        // A failed test prints its output, of which the last line names the input.
        println!("fuzz/seeds/{name}/{file}");
        let bytes = fs::read(seeds.join(&file)).expect("a file");
        assert!((target.run)(&bytes), "libFuzzer would ignore it");
    }
}

#[test]
fn each_target_has_a_library_function_and_seeds() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|each| each.name.to_owned()).collect();
    assert_eq!(names(&folder("fuzz_targets")), targets);
    assert_eq!(names(&folder("seeds")), targets);
}

#[test]
fn seeds_of_compression() {
    replay("compression");
}

#[test]
fn seeds_of_connection() {
    replay("connection");
}

#[test]
fn seeds_of_engine() {
    replay("engine");
}

#[test]
fn seeds_of_host() {
    replay("host");
}

#[test]
fn seeds_of_orbits() {
    replay("orbits");
}

#[test]
fn seeds_of_packet_script() {
    replay("packet_script");
}

#[test]
fn seeds_of_quic_datagrams() {
    replay("quic_datagrams");
}

#[test]
fn seeds_of_quic_window_rule() {
    replay("quic_window_rule");
}

#[test]
fn seeds_of_scenario() {
    replay("scenario");
}

#[test]
fn seeds_of_traces() {
    replay("traces");
}

#[test]
fn seeds_of_wire() {
    replay("wire");
}
