//! Combinations of a host's TCP settings.

use super::check;

#[test]
fn recoveries() {
    check(&[
        (
            "recovery = \"newreno\"",
            "recovery = \"fack\"\nsack = false",
            "geo.toml:7: hosts.server.tcp.recovery: needs selective acknowledgments, and sack is false",
        ),
        (
            "recovery = \"newreno\"",
            "recovery = \"newreno\"\nrack = true",
            r#"geo.toml:8: hosts.server.tcp.rack: has no effect: recovery is not "sack""#,
        ),
        (
            "recovery = \"newreno\"",
            "recovery = \"fack\"\nproportional_rate_reduction = true",
            r#"geo.toml:8: hosts.server.tcp.proportional_rate_reduction: has no effect: recovery is not "sack""#,
        ),
        (
            "recovery = \"newreno\"",
            "rack = false\ntail_loss_probe = true",
            "geo.toml:8: hosts.server.tcp.tail_loss_probe: has no effect: rack is false",
        ),
        (
            "recovery = \"newreno\"",
            "sack = false\nundo = true",
            r#"geo.toml:8: hosts.server.tcp.undo: has no effect: recovery is neither "sack" nor "fack""#,
        ),
    ]);
}
