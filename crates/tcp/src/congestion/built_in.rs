//! Interface of the built-in window rules to the table of rules.

use crate::config::Config;

/// Static properties and the constructor of a built-in window rule.
pub(super) trait BuiltIn {
    /// Whether the rule changes the growth in slow start. If so, limits of RFC 5681's slow start,
    /// such as at most doubling per round trip, do not apply to it.
    const HAS_OWN_SLOW_START: bool;

    /// Whether the rule must be configured with the rate of the channel.
    const NEEDS_CAPACITY: bool = false;

    /// Creates the rule of a connection with this configuration.
    fn from_config(config: &Config) -> Self;
}

/// Large rules are boxed, so that connections with other rules need no memory for them.
impl<T: BuiltIn> BuiltIn for Box<T> {
    const HAS_OWN_SLOW_START: bool = T::HAS_OWN_SLOW_START;
    const NEEDS_CAPACITY: bool = T::NEEDS_CAPACITY;

    fn from_config(config: &Config) -> Self {
        Self::new(T::from_config(config))
    }
}
