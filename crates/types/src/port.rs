//! [`Port`].

use serde::{Deserialize, Serialize};

/// Index of a node's attachment to a link, in the order in which links were attached.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Port(pub u16);
