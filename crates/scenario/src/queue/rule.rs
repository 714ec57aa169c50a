//! Queue disciplines with their settings.

use bentpipe_link::QueueDiscipline;
use serde_json::Value;

use crate::class::settings::PacketClass;
use crate::fault::KeyError;
use crate::quantity::count::QueueLimit;
use crate::queue::by_class::{Priority, Weighted};
use crate::queue::delay::{Codel, FqCodel};
use crate::queue::drop_tail::DropTail;
use crate::queue::early_random_drop::EarlyRandomDrop;
use crate::queue::fair::Fair;
use crate::queue::kinds::queue_kinds;
use crate::queue::pie::Pie;
use crate::queue::red::Red;
use crate::queue::schema::{QueueFile, QueueKind};
use crate::queue::settings::{QueueContext, QueueFacts, Settings};

/// Defines the queue disciplines.
macro_rules! rule {
    (
        shared { $($ignored:tt)* }
        $(
            $(#[$doc:meta])*
            $kind:ident = $name:literal, shares $shares:tt $keys:tt
        )+
    ) => {
        /// A queue discipline and its settings.
        #[derive(Clone, PartialEq, Debug)]
        pub enum QueueRule {
            $(
                #[doc = concat!("A scenario file's `", $name, "`.")]
                $kind($kind),
            )+
        }

        impl QueueKind {
            /// Returns the properties of a kind for closed forms and advice.
            #[must_use]
            pub fn facts(self) -> QueueFacts {
                match self {
                    $(Self::$kind => <$kind as Settings>::FACTS,)+
                }
            }
        }

        impl QueueRule {
            /// Returns the kind.
            pub(crate) fn kind(&self) -> QueueKind {
                match self {
                    $(Self::$kind(_) => QueueKind::$kind,)+
                }
            }

            /// Resolves the keys of a file, given the capacity.
            pub(crate) fn resolve(
                file: &QueueFile,
                limit: QueueLimit,
                classes: &[PacketClass],
            ) -> Result<Self, KeyError> {
                Ok(match file.kind {
                    $(QueueKind::$kind => Self::$kind(Settings::resolve(file, limit, classes)?),)+
                })
            }

            /// Returns the settings as results give them: an object.
            pub(crate) fn measured(&self) -> Value {
                match self {
                    $(Self::$kind(settings) => settings.measured(),)+
                }
            }

            /// Creates an empty queue, or returns `None` for drop-tail, for which the engine has a
            /// faster path.
            pub(crate) fn discipline(&self, at: &QueueContext<'_>) -> Option<Box<dyn QueueDiscipline>> {
                match self {
                    $(Self::$kind(settings) => settings.discipline(at),)+
                }
            }
        }
    };
}

queue_kinds!(rule);
