//! Congestion control algorithms that are not built in.

use std::collections::BTreeMap;

use bentpipe_tcp::congestion::CustomFactory;

/// The caller's own congestion control algorithms, by the names that a scenario file may use.
#[derive(Clone, Default, Debug)]
pub struct CustomControls(BTreeMap<String, CustomFactory>);

impl CustomControls {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an algorithm, in place of an earlier one of that name.
    pub fn add(&mut self, name: impl Into<String>, factory: CustomFactory) {
        self.0.insert(name.into(), factory);
    }

    /// Whether there is an algorithm of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the algorithm of this name.
    pub(crate) fn factory(&self, name: &str) -> Option<&CustomFactory> {
        self.0.get(name)
    }
}
