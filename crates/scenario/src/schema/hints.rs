//! What messages say about keys and values that are not there.

use crate::error::quoted;
use crate::suggest::suggest;

/// What a missing key should hold.
pub(crate) fn expected(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => r#"a name such as "geo-download""#,
        "duration" => r#"a length of time such as "120 s""#,
        "hosts" => "at least two hosts: [hosts.server] and [hosts.client]",
        "links" => "at least one link: [links.satellite]",
        "flows" => "at least one flow: [flows.download]",
        "between" => r#"two nodes such as ["server", "client"]"#,
        "from" => "the name of the host that sends",
        "to" => "the name of the host that receives",
        "app" => r#"an application such as { kind = "bulk" }"#,
        _ => return None,
    })
}

/// What a missing `kind` should be, in a table of this name.
pub(crate) fn kind_of(table: &str) -> Option<&'static str> {
    Some(match table {
        "app" => r#"an application such as "bulk""#,
        "acks" => r#"a method such as "suppression""#,
        "queue" => r#"a queue such as "red""#,
        _ => return None,
    })
}

/// What others call a gateway that ends connections.
const SPLITTING: [&str; 6] = [
    "pep",
    "proxy",
    "splitting",
    "split-tcp",
    "spoofing",
    "accelerator",
];

/// What is wrong with a word that is none of `known`.
pub(crate) fn unknown_word(word: &str, known: &[&str]) -> String {
    if known.first() == Some(&"router") && SPLITTING.contains(&word) {
        let expected = one_of(known);
        let hint = "a gateway that ends connections is \"split\"";
        format!("expected {expected}, got {}; {hint}", quoted(word))
    } else if let Some(near) = suggest(word, known.iter().copied()) {
        format!(
            "expected {}, got {}; did you mean {}?",
            one_of(known),
            quoted(word),
            quoted(near)
        )
    } else {
        format!("expected {}, got {}", one_of(known), quoted(word))
    }
}

/// `"a", "b"`
pub(crate) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    quoted.join(", ")
}

/// `"a"`, or `one of "a", "b"`.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [word] => format!("\"{word}\""),
        _ => format!("one of {}", list(words)),
    }
}
