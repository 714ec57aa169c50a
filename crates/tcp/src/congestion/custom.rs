//! User-defined window rules.

use std::fmt;
use std::sync::Arc;

use super::CongestionControl;

/// Factory of user-defined [`CongestionControl`] rules, one per connection.
// Reference-counted, because each connection's configuration has a copy.
#[derive(Clone)]
pub struct CustomFactory(Arc<NamedFactory>);

struct NamedFactory {
    name: String,
    make: Make,
}

type Make = Box<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>;

impl CustomFactory {
    /// Creates a factory; messages contain `name`.
    pub fn new(
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(NamedFactory {
            name: name.into(),
            make: Box::new(make),
        }))
    }

    /// Creates the rule of one connection.
    pub(super) fn make(&self) -> Box<dyn CongestionControl> {
        (self.0.make)()
    }
}

impl fmt::Debug for CustomFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}
