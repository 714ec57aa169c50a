//! Settings that are one word of a list.

/// A setting that is one word of several, and the words.
macro_rules! words {
    ($(#[$of:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$of])*
        #[derive(
            Clone, Copy, PartialEq, Eq, Debug,
            serde::Deserialize, serde::Serialize, schemars::JsonSchema,
        )]
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

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(crate) use words;
