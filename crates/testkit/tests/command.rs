//! Output and exit status of the command.

use std::path::Path;
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bentpipe-testkit"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts"))
        .arg("run")
        .args(arguments)
        .output()
        .expect("it starts")
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn exit_status_is_zero_if_all_scripts_that_ran_passed() {
    let output = run(&["reset.pkt", "handshake-server.pkt"]);
    assert_eq!(output.status.code(), Some(0));
    let text = printed(&output);
    assert!(text.contains("passed      reset.pkt\n"), "{text}");
    assert!(
        text.ends_with("2 passed, 0 failed, 0 unsupported\n"),
        "{text}"
    );
    // A folder includes everything below it.
    let output = run(&[".", "--exclude", "wrong/nothing.pkt", "-q"]);
    assert_eq!(output.status.code(), Some(1), "some are wrong on purpose");
}

#[test]
fn exit_status_is_one_after_a_failure_with_its_place_printed() {
    let output = run(&["reset.pkt", "wrong/window.pkt"]);
    assert_eq!(output.status.code(), Some(1));
    let text = printed(&output);
    for part in [
        "failed      wrong/window.pkt:",
        "expected ",
        "got      ",
        "win 65535",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn an_unsupported_script_is_a_failure_only_if_strict() {
    let folder = std::env::temp_dir().join(format!("bentpipe-testkit-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let script = folder.join("udp.pkt");
    std::fs::write(&script, "+0 < udp (100)\n").expect("a file");
    let script = script.to_string_lossy().into_owned();
    let alone = run(&[&script]);
    assert_eq!(alone.status.code(), Some(1), "nothing ran");
    let output = run(&["reset.pkt", &script]);
    assert_eq!(output.status.code(), Some(0));
    assert!(printed(&output).contains(": UDP\n"), "{}", printed(&output));
    assert_eq!(
        run(&["reset.pkt", &script, "--strict"]).status.code(),
        Some(1)
    );
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
fn exit_status_is_two_for_an_invalid_request() {
    for arguments in [&["nothing.pkt"][..], &[], &["reset.pkt", "-D", "x"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty());
    }
}

#[test]
fn json_output_is_exactly_one_object() {
    let output = run(&["reset.pkt", "wrong/window.pkt", "--json"]);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("it is JSON, all of it");
    assert_eq!(report["passed"], 1);
    assert_eq!(report["failed"], 1);
    assert_eq!(report["scripts"][1]["verdict"], "failed");
    assert!(report["scripts"][1]["line"].is_u64());
}

#[test]
fn a_table_can_be_checked() {
    let table = run(&["reset.pkt", "wrong/window.pkt", "--table"]);
    let text = printed(&table);
    assert!(text.contains("`wrong/window.pkt` | failed |"), "{text}");
    let file = std::env::temp_dir().join(format!("bentpipe-table-{}.md", std::process::id()));
    let path = file.to_string_lossy().into_owned();
    for (content, status) in [
        (format!("# A page\n\n{text}\nmore\n"), 0),
        ("# A page\n".to_owned(), 1),
    ] {
        std::fs::write(&file, content).expect("a file");
        let output = run(&["reset.pkt", "wrong/window.pkt", "--table", "--check", &path]);
        assert_eq!(output.status.code(), Some(status));
    }
    std::fs::remove_file(&file).expect("the file is ours");
}
