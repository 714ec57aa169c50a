//! Settings that are one word of a list: declared once, where they act.

#[doc(hidden)]
pub use {schemars, serde};

/// A setting that is one word of several, and the words: an enum with its table of names, which scenario
/// files and results read and write, and whose comments are the reference.
///
/// ```
/// bentpipe_types::words! {
///     /// What a queue does.
///     Verdict {
///         /// It waits.
///         Wait = "wait",
///         /// It is gone.
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
            /// Everything that is built.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in a scenario file.
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
