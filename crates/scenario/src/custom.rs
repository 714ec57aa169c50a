//! Window rules that are not built in.

use std::collections::BTreeMap;

use bentpipe_tcp::congestion::CustomFactory;

/// Window rules of the caller's own, by the names that a scenario file may use.
#[derive(Clone, Default, Debug)]
pub struct CustomControls(BTreeMap<String, CustomFactory>);

impl CustomControls {
    /// Adds one, in place of an earlier one of that name.
    pub fn add(&mut self, name: impl Into<String>, factory: CustomFactory) {
        self.0.insert(name.into(), factory);
    }

    /// Is there one of this name?
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The one of this name.
    pub(crate) fn factory(&self, name: &str) -> Option<&CustomFactory> {
        self.0.get(name)
    }
}
