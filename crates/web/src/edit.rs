//! Changes of a scenario's text that keep its comments, its order and its units.

use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// Returns the text with `value` at the dotted path `key`; `None` removes the key.
///
/// An existing value is replaced where it is. A new key is appended to its table. Missing tables
/// are created at the end of the file.
///
/// # Errors
///
/// One line: the text or the value is not TOML, or the path leads through a value.
pub fn set(text: &str, key: &[String], value: Option<&str>) -> Result<String, String> {
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| format!("not TOML: {}", first_line(&error)))?;
    let Some((last, tables)) = key.split_last() else {
        return Err("no key is given".to_owned());
    };
    let value = value
        .map(|value| {
            value
                .parse::<Value>()
                .map_err(|error| format!("not a TOML value: {}", first_line(&error)))
        })
        .transpose()?;
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut is_inline = false;
    for (depth, name) in tables.iter().enumerate() {
        if table.get(name).is_none() {
            if value.is_none() {
                return Ok(text.to_owned());
            }
            let mut created = Table::new();
            // Only the innermost table needs a header.
            created.set_implicit(depth + 1 < tables.len());
            table.insert(name, Item::Table(created));
        }
        let item = table.get_mut(name);
        is_inline = item.as_ref().is_some_and(|item| item.is_inline_table());
        table = item
            .and_then(Item::as_table_like_mut)
            .ok_or_else(|| format!("{name} is a value, not a table"))?;
    }
    match (table.get_mut(last), value) {
        (Some(Item::Value(old)), Some(mut new)) => {
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (Some(_), Some(_)) => return Err(format!("{last} is a table, not a value")),
        (None, Some(new)) => {
            table.insert(last, Item::Value(new));
            if is_inline {
                table.fmt();
            }
        }
        (_, None) => {
            table.remove(last);
        }
    }
    Ok(document.to_string())
}

fn first_line(error: &toml_edit::TomlError) -> String {
    let text = error.message();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# A network.
name = \"t\"  # short

[links.satellite]
between = [\"a\", \"b\"]
rate = \"10 Mbit/s\"   # both directions
forward = { delay = \"250 ms\" }
";

    fn path(key: &str) -> Vec<String> {
        key.split('.').map(str::to_owned).collect()
    }

    fn edited(key: &str, value: Option<&str>) -> String {
        set(TEXT, &path(key), value).expect("valid")
    }

    #[test]
    fn a_value_is_replaced_and_its_comment_is_kept() {
        let text = edited("links.satellite.rate", Some("\"2 Mbit/s\""));
        assert_eq!(text, TEXT.replace("10 Mbit/s", "2 Mbit/s"));
        let text = edited("links.satellite.forward.delay", Some("\"5 ms\""));
        assert_eq!(text, TEXT.replace("250 ms", "5 ms"));
    }

    #[test]
    fn a_new_key_is_appended_to_its_table() {
        let text = edited("links.satellite.forward.rate", Some("\"1 Mbit/s\""));
        assert!(
            text.contains("forward = { delay = \"250 ms\", rate = \"1 Mbit/s\" }"),
            "{text}"
        );
        let text = edited("hosts.a.tcp.pacing", Some("true"));
        assert!(text.ends_with("\n[hosts.a.tcp]\npacing = true\n"), "{text}");
        assert!(text.starts_with(TEXT), "{text}");
    }

    #[test]
    fn a_key_is_removed() {
        let text = edited("links.satellite.forward", None);
        assert_eq!(text, TEXT.replace("forward = { delay = \"250 ms\" }\n", ""));
        assert_eq!(edited("hosts.a.tcp.pacing", None), TEXT);
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        let refused = |key: &str, value: &str| set(TEXT, &path(key), Some(value)).unwrap_err();
        assert_eq!(refused("name.x", "1"), "name is a value, not a table");
        assert_eq!(refused("links", "1"), "links is a table, not a value");
        assert!(refused("name", "10 Mbit/s").starts_with("not a TOML value"));
        assert!(
            set("a = ", &path("b"), Some("1"))
                .unwrap_err()
                .starts_with("not TOML")
        );
    }
}
