//! Interface of the built-in window rules to the table of rules.

use bentpipe_types::words;
use serde::Serialize;

use super::CongestionSettings;

/// The part of the congestion window that a loss leaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum AfterOneLoss {
    /// This share of it.
    Share(f64),
    /// The measured bandwidth-delay product.
    Product,
    /// No constant share.
    Other,
}

words! {
    /// Families of window rules, by the property that they share.
    RuleFamily {
        /// A loss reduces the window.
        Losses = "losses",
        /// The growth compensates for long round trips.
        Hybla = "hybla",
        /// The sender paces by the rate that it measures.
        Bbr = "bbr",
    }
}

/// Properties of a window rule for closed forms and advice.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct RuleFacts {
    /// Name of the kind, which two names of one rule share.
    pub kind: &'static str,
    /// Whether it changes the growth in slow start. Formulas of slow start do not apply to it.
    pub own_slow_start: bool,
    /// Whether it must be configured with the rate of the channel.
    pub needs_capacity: bool,
    /// Whether it paces by the rate that it measures.
    pub measures_rate: bool,
    /// Share of the window that a loss leaves, if it is constant.
    pub kept_after_loss: Option<f64>,
    /// Whether a loss sets the window to the measured bandwidth-delay product.
    pub keeps_product: bool,
    /// The rule whose law of the goodput with random losses applies.
    pub loss_law: Option<&'static str>,
    /// Family.
    pub family: RuleFamily,
    /// Whether `advise` tries it over a satellite link between gateways.
    pub for_satellites: bool,
}

/// Static properties and the constructor of a built-in window rule.
pub(super) trait BuiltIn {
    /// Whether the rule changes the growth in slow start. If so, limits of RFC 5681's slow start,
    /// such as at most doubling per round trip, do not apply to it.
    const HAS_OWN_SLOW_START: bool;

    /// Whether the rule must be configured with the rate of the channel.
    const NEEDS_CAPACITY: bool = false;

    /// The part of the congestion window that a loss leaves.
    const AFTER_LOSS: AfterOneLoss = AfterOneLoss::Other;

    /// The rule whose law of the goodput with random losses applies, if there is one.
    const LOSS_LAW: Option<&'static str> = None;

    /// Family of the rule.
    const FAMILY: RuleFamily = RuleFamily::Losses;

    /// Whether `advise` tries the rule over a satellite link between gateways.
    const FOR_SATELLITES: bool = false;

    /// Creates the rule of a connection with this configuration.
    fn from_settings(settings: &CongestionSettings) -> Self;
}

/// Large rules are boxed, so that connections with other rules need no memory for them.
impl<T: BuiltIn> BuiltIn for Box<T> {
    const HAS_OWN_SLOW_START: bool = T::HAS_OWN_SLOW_START;
    const NEEDS_CAPACITY: bool = T::NEEDS_CAPACITY;
    const AFTER_LOSS: AfterOneLoss = T::AFTER_LOSS;
    const LOSS_LAW: Option<&'static str> = T::LOSS_LAW;
    const FAMILY: RuleFamily = T::FAMILY;
    const FOR_SATELLITES: bool = T::FOR_SATELLITES;

    fn from_settings(settings: &CongestionSettings) -> Self {
        Self::new(T::from_settings(settings))
    }
}

/// Returns the properties of a rule of this kind for closed forms and advice.
pub(super) fn facts_of<T: BuiltIn>(kind: &'static str) -> RuleFacts {
    RuleFacts {
        kind,
        own_slow_start: T::HAS_OWN_SLOW_START,
        needs_capacity: T::NEEDS_CAPACITY,
        measures_rate: T::FAMILY == RuleFamily::Bbr,
        kept_after_loss: match T::AFTER_LOSS {
            AfterOneLoss::Share(share) => Some(share),
            AfterOneLoss::Product | AfterOneLoss::Other => None,
        },
        keeps_product: T::AFTER_LOSS == AfterOneLoss::Product,
        loss_law: T::LOSS_LAW,
        family: T::FAMILY,
        for_satellites: T::FOR_SATELLITES,
    }
}
