//! Window rules that are not part of this crate.

use std::fmt;
use std::sync::Arc;

use super::CongestionControl;

/// Makes one [`CongestionControl`] per connection.
// Each connection has one among its settings: a pointer.
#[derive(Clone)]
pub struct CustomFactory(Arc<Named>);

struct Named {
    name: String,
    make: Make,
}

type Make = Box<dyn Fn() -> Box<dyn CongestionControl> + Send + Sync>;

impl CustomFactory {
    /// A factory with a name for messages.
    pub fn new(
        name: impl Into<String>,
        make: impl Fn() -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Named {
            name: name.into(),
            make: Box::new(make),
        }))
    }

    /// A rule for one connection.
    pub(super) fn make(&self) -> Box<dyn CongestionControl> {
        (self.0.make)()
    }
}

impl fmt::Debug for CustomFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}
