//! `queue` of a link or a direction.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::named::Named;
use crate::quantity::count::{LinkQueueLimit, QueueLimit};
use crate::quantity::probability::Probability;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::queue::kinds::queue_kinds;

/// Defines the keys of all kinds of queue.
macro_rules! schema {
    (
        shared {
            $($(#[$shared_doc:meta])* $shared_key:ident: $shared_type:ty,)*
        }
        $(
            $(#[$doc:meta])*
            $kind:ident = $name:literal, shares [$($shared:ident)*] {
                $($(#[$key_doc:meta])* $key:ident: $type:ty,)*
            }
        )+
    ) => {
        words! {
            /// Queue discipline: which packets are dropped, and which is sent next.
            QueueKind {
                $($(#[$doc])* $kind = $name,)+
            }
        }

        impl QueueKind {
            /// Returns the keys that apply to this kind, except `kind` and `limit`.
            #[must_use]
            pub fn keys(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$(stringify!($key),)* $(stringify!($shared),)*],)+
                }
            }
        }

        /// The queue in front of a transmitter.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct QueueFile {
            /// Queue discipline: which packets are dropped, and which is sent next. Default:
            /// "drop-tail".
            #[serde(default = "drop_tail")]
            pub kind: QueueKind,
            /// Capacity, without the packet in transmission: packets, bytes with headers, or the
            /// time that it takes to transmit a full queue at the link's `rate`. Default: one
            /// bandwidth-delay product of the link (rate times the sum of the delays of both
            /// directions), but at least 100 packets. With capacity on demand, the delays of
            /// request and grant are added.
            pub limit: Option<LinkQueueLimit>,
            $($($(#[$key_doc])* pub $key: Option<$type>,)*)+
            $($(#[$shared_doc])* pub $shared_key: Option<$shared_type>,)*
        }

        impl QueueFile {
            /// Returns the keys that the file gives, except `kind` and `limit`.
            pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
                [
                    $($((stringify!($key), self.$key.is_some()),)*)+
                    $((stringify!($shared_key), self.$shared_key.is_some()),)*
                ]
                    .into_iter()
                    .filter_map(|(key, given)| given.then_some(key))
            }
        }
    };
}

queue_kinds!(schema);

fn drop_tail() -> QueueKind {
    QueueKind::DropTail
}
