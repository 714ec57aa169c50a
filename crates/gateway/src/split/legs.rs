//! The TCP of a gateway's legs: most of them have the same as the one before, and share it.

use std::sync::Arc;

use bentpipe_tcp::Config;

use super::Settings;

/// Which legs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Those that go out at the link that the gateway faces,
    Facing,
    /// those to hosts,
    Host,
    /// and those to hosts whose connections are carried over a persistent one.
    Carried,
}

/// The latest of each kind, and what it offers at first, which is less when memory gets scarce.
#[derive(Debug, Default)]
pub(super) struct LegSettings {
    latest: [Option<(u64, Arc<Config>)>; 3],
}

impl LegSettings {
    /// The TCP of a new leg that offers `first` at first.
    pub(super) fn of(&mut self, kind: Kind, first: u64, settings: &Settings) -> Arc<Config> {
        let latest = &mut self.latest[kind as usize];
        match latest {
            Some((same, config)) if *same == first => Arc::clone(config),
            _ => {
                let config = Arc::new(settings.leg(kind, first));
                *latest = Some((first, Arc::clone(&config)));
                config
            }
        }
    }
}
