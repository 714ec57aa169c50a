//! The parts of the gateway that its connections use.

use std::sync::Arc;

use bentpipe_types::Ctx;

use super::settings::Settings;
use super::totals::Totals;

/// The parts of the gateway that a connection uses.
pub(super) struct HybridContext<'a, 'c> {
    pub(super) settings: &'a Settings,
    pub(super) sender: &'a Arc<bentpipe_tcp::Config>,
    pub(super) totals: &'a mut Totals,
    pub(super) cx: &'a mut Ctx<'c>,
}
