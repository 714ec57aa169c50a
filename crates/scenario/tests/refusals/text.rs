//! Texts that are not scenario files.

use bentpipe_scenario::Scenario;

use super::{check, refusal};

#[test]
fn syntax() {
    check(&[
        (
            "[gateways.hub]",
            "[gateways.hub",
            "geo.toml:12: not TOML: unclosed table, expected `]`",
        ),
        (
            r#""100 Mbit/s""#,
            "100 Mbit/s",
            "geo.toml:21: expected a value: a string in quotes, a number, true or false, an array or a table",
        ),
        (
            "[links.access]",
            "[links.satellite]",
            r#"geo.toml:19: "satellite" stands twice: a key or a table is given once"#,
        ),
        (
            "rate = \"100 Mbit/s\"",
            "rate = \"100 Mbit/s\"\nrate = \"1 Mbit/s\"",
            r#"geo.toml:22: "rate" stands twice: a key or a table is given once"#,
        ),
    ]);
    assert_eq!(
        refusal("", &[]),
        r#"geo.toml:1: name: missing; expected a name such as "geo-download""#
    );
    let keys = vec!["a"; 200_000].join(".");
    let deep = format!("{keys} = 1");
    let header = format!("[{keys}]");
    let nested = format!("a = {}", "[".repeat(200_000));
    for text in [deep, header, nested] {
        for (before, line) in [("", 1), ("name = \"a.b\"\n", 2)] {
            let said = format!(
                "geo.toml:{line}: nested deeper than any scenario: tables or arrays in one another"
            );
            assert_eq!(refusal(&format!("{before}{text}\nb = 1\n"), &[]), said);
        }
    }
    let long = "#".repeat((1 << 20) + 1);
    assert_eq!(
        refusal(&long, &[]),
        "geo.toml: longer than 1 MiB: not a scenario file"
    );
}

#[test]
fn files_that_cannot_be_read() {
    let error = Scenario::load("nowhere/geo.toml", &[]).unwrap_err();
    assert_eq!(error.to_string(), "nowhere/geo.toml: no such file");
    let directory = env!("CARGO_MANIFEST_DIR");
    let error = Scenario::load(directory, &[]).unwrap_err();
    assert_eq!(error.message(), "a directory, not a scenario file");
    let file = std::env::temp_dir().join(format!("bentpipe-{}.toml", std::process::id()));
    // The limit of the read falls within a character.
    std::fs::write(&file, format!("name = \"{}\"\n", "ä".repeat(1 << 20))).unwrap();
    let error = Scenario::load(&file, &[]).unwrap_err();
    assert_eq!(error.message(), "longer than 1 MiB: not a scenario file");
    std::fs::write(&file, b"name = \"geo\"\nduration = \"\xff\"\n").unwrap();
    let error = Scenario::load(&file, &[]).unwrap_err();
    std::fs::remove_file(&file).unwrap();
    assert_eq!((error.line(), error.message()), (Some(2), "not UTF-8 text"));
}
