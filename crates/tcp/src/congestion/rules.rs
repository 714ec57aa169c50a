//! Table of the built-in window rules. Code that lists, creates or tests all rules uses this table:
//! scenario files and their schema, results, the fuzz target, hostile networks and the Python
//! package.

use serde::{Deserialize, Serialize};

use super::built_in::{RuleFacts, facts_of};
use super::{
    Bbr1, Bbr3, BuiltIn, CongestionControl, CongestionSettings, Cubic, CustomFactory,
    EnhancedHybla, Hybla, LinuxCubic, Reno, Westwood, Westwood2001,
};

/// Defines the table. Each line has a rule's names in scenario files with their descriptions (the
/// reference documentation), its kind, and its type. `with SETTING` selects another type if that
/// setting is on. The dollar sign is for the macro that this macro defines.
macro_rules! rules {
    (
        $d:tt
        $(
            $(
                $(#[$doc:meta])*
                $word:ident = $name:literal
            ),+
            => $kind:ident: $state:ident($type:ty)
            $(, with $setting:ident $other:ident($other_type:ty))?;
        )+
    ) => {
        bentpipe_types::words! {
            /// A window rule.
            #[schemars(rename = "CongestionControl")]
            WindowRule {
                $($($(#[$doc])* $word = $name,)+)+
            }
        }

        impl WindowRule {
            /// Returns the properties of the rule for closed forms and advice.
            #[must_use]
            pub fn facts(self) -> RuleFacts {
                match self {
                    $($(Self::$word)|+ => facts_of::<$type>(stringify!($kind)),)+
                }
            }

            /// Whether the rule changes the growth in slow start. Formulas of slow start do not
            /// apply to it.
            #[must_use]
            pub fn has_own_slow_start(self) -> bool {
                self.facts().own_slow_start
            }

            /// Whether the rule must be configured with the rate of the channel.
            #[must_use]
            pub fn needs_capacity(self) -> bool {
                self.facts().needs_capacity
            }
        }

        /// Kind of window rule. Settings of each are in the [`Config`](crate::Config).
        #[derive(Clone, Debug)]
        pub enum CongestionControlKind {
            $(
                #[doc = concat!("A scenario file's", $(" `", $name, "`",)+ ".")]
                $kind,
            )+
            /// A user-defined rule.
            Custom(CustomFactory),
        }

        impl From<WindowRule> for CongestionControlKind {
            fn from(rule: WindowRule) -> Self {
                match rule {
                    $($(WindowRule::$word)|+ => Self::$kind,)+
                }
            }
        }

        /// The window rule of one connection.
        #[derive(Debug, Serialize, Deserialize)]
        pub(super) enum Rule {
            $($state($type), $($other($other_type),)?)+
            // User-defined state cannot be serialized.
            #[serde(skip)]
            Custom(Box<dyn CongestionControl>),
        }

        impl Rule {
            /// Creates a rule of this kind.
            pub(super) fn new(kind: &CongestionControlKind, settings: &CongestionSettings) -> Self {
                match kind {
                    $(
                        $(
                            CongestionControlKind::$kind if settings.$setting => {
                                Self::$other(BuiltIn::from_settings(settings))
                            }
                        )?
                        CongestionControlKind::$kind => Self::$state(BuiltIn::from_settings(settings)),
                    )+
                    CongestionControlKind::Custom(factory) => Self::Custom(factory.make()),
                }
            }
        }

        /// Evaluates `call` with `inner` bound to the congestion control inside `rule`, whichever
        /// variant it is.
        macro_rules! dispatch {
            ($d rule:expr, $d inner:ident => $d call:expr) => {
                match $d rule {
                    $(
                        Rule::$state($d inner) => $d call,
                        $(Rule::$other($d inner) => $d call,)?
                    )+
                    Rule::Custom($d inner) => $d call,
                }
            };
        }
        pub(super) use dispatch;
    };
}

rules! { $
    /// Grows by one segment per round trip, and halves the window on a loss (RFC 5681).
    Reno = "reno" => Reno: Reno(Reno);

    /// Grows like Reno; a loss sets the window to the measured bandwidth-delay product
    /// (Westwood+).
    Westwood = "westwood" => Westwood: Westwood(Westwood);

    /// Westwood as published in 2001, with a bandwidth sample per acknowledgment (Casetti and
    /// others).
    Westwood2001 = "westwood-2001" => Westwood2001: Westwood2001(Box<Westwood2001>);

    /// Grows as fast as Reno does on a path of 25 ms, whatever its round-trip time (Caini and
    /// Firrincieli 2004).
    Hybla = "hybla" => Hybla: Hybla(Hybla);

    /// Hybla that does not treat a loss as congestion while it uses less than half of
    /// `channel_capacity` (vanzara2014).
    EnhancedHybla = "enhanced-hybla" => EnhancedHybla: EnhancedHybla(Box<EnhancedHybla>);

    /// A cubic function of the time since the last loss (RFC 9438).
    Cubic = "cubic" => Cubic: Cubic(Cubic), with integer_cubic LinuxCubic(LinuxCubic);

    /// BBR version 1: a model of the path's bandwidth and round-trip time instead of a window
    /// that grows until a loss. Linux's "bbr".
    Bbr = "bbr",
    /// BBR version 1, under a name that distinguishes it from version 3.
    Bbr1 = "bbr1" => Bbr1: Bbr1(Box<Bbr1>);

    /// BBR version 3: also reacts to losses, and leaves capacity for other flows
    /// (draft-ietf-ccwg-bbr).
    Bbr3 = "bbr3" => Bbr3: Bbr3(Box<Bbr3>);
}

impl Default for CongestionControlKind {
    /// The default of Linux.
    fn default() -> Self {
        Self::Cubic
    }
}

#[cfg(test)]
mod tests {
    use bentpipe_types::{Span, Time};

    use super::super::{AckSample, Window};
    use super::*;
    use crate::Config;

    #[test]
    fn has_own_slow_start_matches_the_growth_in_slow_start() {
        for word in WindowRule::ALL {
            let settings = Config::default().congestion_settings();
            let mut rule = Rule::new(&(*word).into(), &settings);
            let mut window = Window::new(1000, 10_000, u64::MAX);
            let rtt = Some(Span::from_millis(600));
            dispatch!(&mut rule, r => r.on_established(&mut window, rtt, Time::ZERO));
            let sample = AckSample {
                rtt,
                smoothed_rtt: rtt,
                minimum_rtt: rtt,
                ..AckSample::at(Time::ZERO + Span::from_secs(1), 1000)
            };
            let growth = dispatch!(&mut rule, r => r.slow_start_growth(&mut window, 1000, &sample));
            let own = growth != 1000 || dispatch!(&rule, r => r.owns_slow_start());
            assert_eq!(word.has_own_slow_start(), own, "{word}");
        }
    }
}
