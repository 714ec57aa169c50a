//! What stands in a built-in rule's own file, and nowhere else.

use crate::config::Config;

/// What the table asks of a rule that is built in, in the rule's own file.
pub(super) trait BuiltIn {
    /// Does the rule have a say in how slow start grows the window? Then what holds for RFC 5681's, such
    /// as that a window doubles in a round trip at the most, need not hold for it.
    const HAS_OWN_SLOW_START: bool;

    /// Must it be told the rate of the channel?
    const NEEDS_CAPACITY: bool = false;

    /// The rule of a connection that is set up so.
    fn of(config: &Config) -> Self;
}

/// One that is larger than most lies apart, so that connections with others are no larger for it.
impl<T: BuiltIn> BuiltIn for Box<T> {
    const HAS_OWN_SLOW_START: bool = T::HAS_OWN_SLOW_START;
    const NEEDS_CAPACITY: bool = T::NEEDS_CAPACITY;

    fn of(config: &Config) -> Self {
        Self::new(T::of(config))
    }
}
