//! A `[links.NAME]` table while it is resolved: its keys, and the paths of errors.

use bentpipe_types::Span;

use crate::access::settings::Carrier;
use crate::class::settings::PacketClass;
use crate::fault::{Fault, Segment, path};
use crate::link::schema::{DirectionFile, LinkFile};
use crate::link::settings::Way;
use crate::orbit::settings::LinkPath;
use crate::traces::files::Files;

/// Settings of a direction that exclude some changes.
pub(crate) struct PacketConstraints {
    /// Whether packets must keep their order, for a compressor or a tunnel.
    pub(crate) keeps_order: bool,
    /// Whether acknowledgments are compacted.
    pub(crate) compacts: bool,
}

pub(crate) struct LinkTable<'a> {
    pub(crate) name: &'a str,
    pub(crate) link: &'a LinkFile,
    pub(crate) classes: &'a [PacketClass],
    pub(crate) carriers: &'a [Carrier],
    pub(crate) files: &'a Files<'a>,
    /// The path over satellites, resolved.
    pub(crate) route: Option<&'a LinkPath>,
    pub(crate) duration: Span,
}

impl<'a> LinkTable<'a> {
    pub(crate) fn own(&self, way: Way) -> Option<&'a DirectionFile> {
        match way {
            Way::Forward => self.link.forward.as_ref(),
            Way::Return => self.link.backward.as_ref(),
        }
    }

    /// Returns the path of a direction's key: in the direction's table if it is there, else in the
    /// link's.
    pub(crate) fn path(&self, way: Way, in_direction: bool, keys: &[&str]) -> Vec<Segment> {
        let mut full = vec!["links", self.name];
        if in_direction {
            full.push(way.name());
        }
        full.extend(keys);
        path(&full)
    }

    /// Returns the fault for a missing key. Its path is in the direction if the other direction has
    /// the key, or if this one has a table; else in the link.
    pub(crate) fn missing(
        &self,
        way: Way,
        key: &str,
        others: impl Fn(&DirectionFile) -> bool,
        expected: &str,
    ) -> Fault {
        let other = match way {
            Way::Forward => Way::Return,
            Way::Return => Way::Forward,
        };
        let here = self.own(way).is_some() || self.own(other).is_some_and(others);
        let message = format!("missing; expected {expected}");
        Fault::new(self.path(way, here, &[key]), message)
    }
}

/// A key of a direction: its value, and whether it is in the direction's table or in the link's.
pub(crate) struct Key<T> {
    pub(crate) value: Option<T>,
    pub(crate) own: bool,
}

macro_rules! key {
    ($table:expr, $way:expr, $key:ident) => {{
        let own = $table.own($way).and_then(|own| own.$key.as_ref());
        $crate::link::table::Key {
            own: own.is_some(),
            value: own.or($table.link.$key.as_ref()),
        }
    }};
}

pub(crate) use key;
