//! The part of a scenario that one real machine plays: a gateway with two of its links, or a link.
//!
//! Real links are not simulated: rates, delays and losses of a gateway's links are those of the
//! machine's interfaces. A link that is `shaped` has the sending side of the machine's own end in
//! addition: a transmitter at the file's rate, its queue, and its reduction of acknowledgments.

pub(crate) mod links;
pub(crate) mod names;
pub(crate) mod part;
pub(crate) mod side;
