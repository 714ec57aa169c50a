//! Our own scripts pass, and intentionally wrong ones fail at the line they name.

use std::path::{Path, PathBuf};

use bentpipe_testkit::{Defines, Verdict, check};

fn scripts(folder: &str, least: usize) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    let mut scripts: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "pkt"))
        .collect();
    scripts.sort();
    assert!(scripts.len() >= least, "{} in {folder:?}", scripts.len());
    scripts
}

fn run(path: &Path) -> (String, Verdict) {
    let source = std::fs::read_to_string(path).expect("it can be read");
    let verdict = check(&source, &Defines::new());
    (source, verdict)
}

#[test]
fn our_scripts_pass() {
    for path in scripts("scripts", 30) {
        let (_, verdict) = run(&path);
        assert_eq!(verdict, Verdict::Passed, "{}", path.display());
    }
}

/// Dialogues recorded from a kernel by benches/witness/dialogue.py pass.
#[test]
fn recorded_dialogues_pass() {
    for path in scripts("scripts/linux", 15) {
        let (_, verdict) = run(&path);
        assert_eq!(verdict, Verdict::Passed, "{}", path.display());
    }
}

#[test]
fn a_wrong_expectation_fails_at_its_own_line() {
    for path in scripts("scripts/wrong", 30) {
        let (source, verdict) = run(&path);
        let first = source.lines().next().unwrap_or_default();
        let named = first
            .strip_prefix("// Fails at line ")
            .and_then(|rest| rest.strip_suffix('.'));
        let named: Option<u32> = named.and_then(|n| n.parse().ok());
        let Verdict::Failed { line, .. } = verdict else {
            panic!("{}: {verdict:?}", path.display());
        };
        assert_eq!(Some(line), named, "{}", path.display());
    }
}

/// Every expected acknowledgment number matters: if it is changed, the script fails.
#[test]
fn a_changed_number_in_an_expected_packet_fails() {
    let mut changed = 0;
    for path in scripts("scripts", 30) {
        let (source, _) = run(&path);
        let lines: Vec<&str> = source.lines().collect();
        for (index, line) in lines.iter().enumerate() {
            let Some((before, after)) = line.split_once(" ack ").filter(|_| line.contains(" > "))
            else {
                continue;
            };
            let digits = after
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(after.len());
            let number: u32 = after[..digits].parse().expect("a number");
            let other = format!("{before} ack {}{}", number + 1, &after[digits..]);
            let mut wrong = lines.clone();
            wrong[index] = &other;
            let verdict = check(&wrong.join("\n"), &Defines::new());
            let at = index as u32 + 1;
            assert!(
                matches!(verdict, Verdict::Failed { line, .. } if line == at),
                "{}:{at}: {other}: {verdict:?}",
                path.display()
            );
            changed += 1;
        }
    }
    assert!(changed > 100, "{changed}");
}
