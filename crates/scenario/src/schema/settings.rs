//! Tables of settings in which each key stands once: its name, description, type and unit, where its
//! default comes from, and where its value goes.

/// A table of a scenario file, of settings of a `Config`:
///
/// ```text
/// /// The description, which is the reference.
/// key: Type as "unit" => field,     // default and value are those of a field of the `Config`
/// key: Type as "unit" = default,    // what becomes of it, `resolve` says
/// key: Table as {} = default,       // a table in this one
/// ```
///
/// `Type` is what the file has, and converts into the field's and back. With a unit, results have a number
/// under `key_unit` ([`Measured`](crate::quantity::Measured)), else what a file would have under `key`. Both
/// are in the order of the table.
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
        #[derive(Clone, PartialEq, Debug, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
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
            /// Puts what goes into a field of its own there.
            pub(crate) fn store(&self, config: &mut $config) {
                $($(config.$field = self.$key.clone().into();)?)+
            }
        }

        impl $crate::quantity::Measured for $table {
            /// What results say of each setting, by name.
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
            $crate::quantity::Measured::measured(&$self.$key),
        )
    };
    (@report $report:ident $self:ident $key:ident $unit:literal) => {
        $report.insert(
            concat!(stringify!($key), "_", $unit).to_owned(),
            $crate::quantity::Measured::measured(&$self.$key),
        )
    };
}
pub(crate) use settings;
