//! The application of a flow, with every default filled in.

use std::sync::Arc;

use bentpipe_sim::Traffic;
use bentpipe_types::Bytes;

use crate::application::schema::AppKind;

/// Application of a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum App {
    /// One transfer from the host that opens the connection, as fast as TCP sends.
    Bulk {
        /// Bytes to transfer, above zero, or `None` until the end of the run.
        size: Option<Bytes>,
    },
    /// Any other application.
    Other(AppKind, Traffic),
    /// A user of the mix of this name.
    Mix(Arc<str>, Traffic),
}
