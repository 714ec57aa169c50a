//! Window rules that are not part of this crate.

use std::fmt;
use std::sync::Arc;

use super::CongestionControl;

/// Makes one [`CongestionControl`] per connection.
#[derive(Clone)]
pub struct CustomFactory {
    name: String,
    make: Arc<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>,
}

impl CustomFactory {
    /// A factory with a name for messages.
    pub fn new(
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            make: Arc::new(make),
        }
    }

    /// A rule for one connection.
    pub(super) fn make(&self) -> Box<dyn CongestionControl> {
        (self.make)()
    }
}

impl fmt::Debug for CustomFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
