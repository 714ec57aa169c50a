//! The `words!` macro: enums with names for scenario files.

#[doc(hidden)]
pub use {schemars, serde};

/// Declares a setting that is one of several words: an enum with names that scenario files and
/// results read and write. The comments are the reference documentation.
///
/// ```
/// bentpipe_types::words! {
///     /// Decision of a queue.
///     Verdict {
///         /// The packet is queued.
///         Wait = "wait",
///         /// The packet is dropped.
///         Drop = "drop",
///     }
/// }
/// assert_eq!(Verdict::ALL.len(), 2);
/// assert_eq!(Verdict::Drop.to_string(), "drop");
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$of:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        #[derive(
            Clone, Copy, PartialEq, Eq, Debug,
            $crate::words::serde::Deserialize, $crate::words::serde::Serialize,
            $crate::words::schemars::JsonSchema,
        )]
        #[serde(crate = "bentpipe_types::words::serde")]
        #[schemars(crate = "bentpipe_types::words::schemars")]
        $(#[$of])*
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $type {
            /// All variants.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the name in scenario files.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
