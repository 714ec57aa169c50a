//! A macro for tables of settings that defines each key once: its name, description, type and unit,
//! its default, and the field that it sets.

/// Defines a table of a scenario file with settings of a `Config`:
///
/// ```text
/// /// The description, which is the reference.
/// key: Type as "unit" => field,     // default and value are those of a field of the `Config`
/// key: Type as "unit" = default,    // `resolve` converts the value
/// key: Table as {} = default,       // a table in this one
/// ```
///
/// `Type` is the type in the file, and converts into the field's type and back. With a unit,
/// results have a number under `key_unit` ([`Measured`](crate::quantity::measured::Measured)); else
/// they have the value as in a file under `key`. Both are in the order of the table.
macro_rules! settings {
    (
        $(#[$of:meta])* $table:ident of $config:ty {
            $(
                $(#[$doc:meta])*
                $key:ident: $type:ty $(as $unit:tt)? $(=> $field:ident)? $(= $default:expr)?,
            )+
        }
    ) => {
        $(#[$of])*
        #[derive(Clone, PartialEq, Debug)]
        #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $table {
            $($(#[$doc])* pub $key: $type,)+
        }

        impl From<$config> for $table {
            fn from(config: $config) -> Self {
                Self {
                    $($key: settings!(@default config $(=> $field)? $(= $default)?),)+
                }
            }
        }

        impl Default for $table {
            fn default() -> Self {
                <$config>::default().into()
            }
        }

        impl From<$table> for $config {
            fn from(table: $table) -> Self {
                let mut config = Self::default();
                table.store(&mut config);
                config
            }
        }

        impl $table {
            /// Stores the settings that are fields of the `Config`.
            pub(crate) fn store(&self, config: &mut $config) {
                $($(config.$field = self.$key.clone().into();)?)+
            }
        }

        impl $crate::quantity::measured::Measured for $table {
            /// Returns the settings as results give them, by name.
            fn measured(&self) -> serde_json::Value {
                let mut report = serde_json::Map::new();
                $(settings!(@report report self $key $($unit)?);)+
                report.into()
            }
        }
    };
    (@default $config:ident => $field:ident) => { $config.$field.into() };
    (@default $config:ident = $default:expr) => { $default };
    (@report $report:ident $self:ident $key:ident) => {
        $report.insert(stringify!($key).to_owned(), serde_json::json!($self.$key))
    };
    (@report $report:ident $self:ident $key:ident {}) => {
        $report.insert(
            stringify!($key).to_owned(),
            $crate::quantity::measured::Measured::measured(&$self.$key),
        )
    };
    (@report $report:ident $self:ident $key:ident $unit:literal) => {
        $report.insert(
            concat!(stringify!($key), "_", $unit).to_owned(),
            $crate::quantity::measured::Measured::measured(&$self.$key),
        )
    };
}

pub(crate) use settings;
