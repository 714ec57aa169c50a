//! The JSON Schema of a scenario file.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::run::summary::{RESULTS_VERSION, Summary};
use crate::scenario::schema::ScenarioFile;

/// Returns the JSON Schema (draft 7) of a scenario file, for editors and for the reference: every
/// key with its description, default, pattern and examples, in a suitable order for reading.
#[must_use]
pub fn json_schema() -> Value {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<ScenarioFile>().to_value();
    if let Value::Object(keywords) = &mut schema {
        keywords.insert("title".to_owned(), "bentpipe scenario".into());
    }
    tidy(&mut schema);
    join_lines(&mut schema);
    schema
}

/// Returns the JSON Schema (draft 7) of the output of `bentpipe run --json`: every field with its
/// description.
#[must_use]
pub fn results_schema() -> Value {
    let settings = SchemaSettings::draft07().for_serialize();
    let generator = settings.into_generator();
    let mut schema = generator.into_root_schema_for::<Summary>().to_value();
    if let Value::Object(keywords) = &mut schema {
        let title = format!("bentpipe results, version {RESULTS_VERSION}");
        keywords.insert("title".to_owned(), title.into());
    }
    join_lines(&mut schema);
    schema
}

/// Removes the line breaks of comments from descriptions.
fn join_lines(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(join_lines),
        Value::Object(keywords) => {
            if let Some(Value::String(text)) = keywords.get_mut("description") {
                let paragraphs: Vec<_> = text
                    .split("\n\n")
                    .map(|lines| lines.replace('\n', " "))
                    .collect();
                *text = paragraphs.join("\n\n");
            }
            keywords.values_mut().for_each(join_lines);
        }
        _ => {}
    }
}

/// Removes what applies to Rust and not to TOML: null for optional keys.
fn tidy(schema: &mut Value) {
    let null = Value::from("null");
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(keywords) => {
            // The default of a table is the default of each of its keys.
            let says = |value: &Value| !value.is_null() && !value.is_object();
            keywords.retain(|keyword, value| keyword != "default" || says(value));
            if let Some(Value::Array(types)) = keywords.get_mut("type") {
                types.retain(|kind| *kind != null);
                if let [kind] = &types[..] {
                    let kind = kind.clone();
                    keywords.insert("type".to_owned(), kind);
                }
            }
            if let Some(Value::Array(branches)) = keywords.get_mut("anyOf") {
                branches.retain(|branch| branch.get("type") != Some(&null));
                if let [Value::Object(only)] = &branches[..] {
                    let only = only.clone();
                    keywords.remove("anyOf");
                    // Beside a $ref, draft 7 ignores all other keywords.
                    if only.contains_key("$ref") {
                        let all = vec![Value::Object(only)];
                        keywords.insert("allOf".to_owned(), Value::Array(all));
                    } else {
                        keywords.extend(only);
                    }
                }
            }
            keywords.values_mut().for_each(tidy);
        }
        _ => {}
    }
}
