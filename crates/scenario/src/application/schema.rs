//! `app` of a flow.

use bentpipe_types::words;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::application::kinds::applications;
use crate::application::words::{
    CodecName, DirectionName, EchoName, FtpModeName, HttpName, PageName, TlsName, TransportName,
};
use crate::hints;
use crate::quantity::jitter_buffer::JitterBuffer;
use crate::quantity::random::{RandomLength, RandomSize};
use crate::quantity::rate::Rate;
use crate::quantity::size::Size;
use crate::quantity::time::Length;
use crate::suggest::suggest;

/// Defines the keys of all applications.
macro_rules! schema {
    (
        keys {
            $($(#[$key_doc:meta])* $key:ident: $type:ty,)*
        }
        kinds {
            $($(#[$doc:meta])* $kind:ident = $name:literal: $settings:ident, keys [$($own:ident)*];)+
        }
    ) => {
        /// The application of a flow. Its `kind` determines which keys apply.
        #[derive(Clone, Debug, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct AppFile {
            /// The application.
            pub kind: AppKind,
            $($(#[$key_doc])* pub $key: Option<$type>,)*
        }

        impl AppFile {
            /// Creates an application of this kind with defaults only.
            pub(crate) fn of(kind: AppKind) -> Self {
                Self { kind, $($key: None,)* }
            }

            /// Returns the keys that the file gives, except `kind`.
            pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
                [$((stringify!($key), self.$key.is_some()),)*]
                    .into_iter()
                    .filter_map(|(key, given)| given.then_some(key))
            }
        }

        words! {
            /// An application.
            AppKind {
                $($(#[$doc])* $kind = $name,)+
            }
        }

        impl AppKind {
            /// Returns the keys that apply to this kind.
            #[must_use]
            pub fn keys(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$(stringify!($own),)*],)+
                }
            }
        }
    };
}

applications!(schema);

impl AppKind {
    /// Returns the keys of this kind, for the message about a key of another kind.
    fn has(self) -> String {
        format!(
            "a {:?} application has {}",
            self.name(),
            self.keys().join(", ")
        )
    }

    /// Returns the message about a key of another kind.
    pub(crate) fn has_no(self) -> String {
        format!("has no effect: {}", self.has())
    }

    /// Returns the message for a key that this kind does not have, whatever its value.
    pub(crate) fn refuses(self, key: &str) -> Option<String> {
        if key == "kind" || self.keys().contains(&key) {
            return None;
        }
        let is_for_another = Self::ALL.iter().any(|kind| kind.keys().contains(&key));
        Some(match suggest(key, self.keys().iter().copied()) {
            _ if is_for_another => self.has_no(),
            Some(near) => hints::unknown_key_near(near),
            None => format!("unknown key; {}", self.has()),
        })
    }
}

/// Returns the message about a key that this kind of table does not have, whatever its value.
pub(crate) fn foreign_key(table: &str, kind: &str, key: &str) -> Option<String> {
    let mut kinds = AppKind::ALL.iter().filter(|_| table == "app");
    kinds.find(|each| each.name() == kind)?.refuses(key)
}
