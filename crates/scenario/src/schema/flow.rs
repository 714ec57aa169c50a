//! `[flows.NAME]`.

use bentpipe_types::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::words;
use crate::quantity::{Length, Size};

/// A flow: one TCP connection, and the application that fills it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowFile {
    /// The host that sends (and opens the connection).
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// When it opens the connection. Default: "0 s".
    #[serde(default = "at_once")]
    pub start: Length,
    /// Where `count` makes several of this flow: how long after one the next starts. Default: "0 s",
    /// all at once.
    #[serde(default = "at_once")]
    pub spacing: Length,
    /// What it sends.
    pub app: AppFile,
}

fn at_once() -> Length {
    Length(Span::ZERO)
}

/// What a flow sends.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppFile {
    /// The application.
    pub kind: AppKind,
    /// Bytes to transfer, headers not counted. Default: until the scenario ends.
    pub size: Option<Size>,
}

words! {
    /// An application.
    AppKind {
        /// Sends as fast as TCP takes it, then closes.
        Bulk = "bulk",
    }
}
