//! Queues in front of transmitters: which packets are dropped, and which is sent next.
//!
//! Each kind of queue has a file here, which sets up its queue discipline, and an entry in the
//! table of [`kinds`]. The keys, the schema, the defaults, the results and the network follow from
//! these.

pub(crate) mod by_class;
pub(crate) mod delay;
pub(crate) mod drop_tail;
pub(crate) mod early_random_drop;
pub(crate) mod fair;
pub(crate) mod kinds;
pub(crate) mod pie;
pub(crate) mod red;
pub(crate) mod resolved;
pub(crate) mod rule;
pub(crate) mod schema;
pub(crate) mod settings;

pub use by_class::{Priority, QueueClass, Weighted};
pub use delay::{Codel, FqCodel};
pub use drop_tail::DropTail;
pub use early_random_drop::EarlyRandomDrop;
pub use fair::Fair;
pub use pie::Pie;
pub use red::Red;
pub use resolved::Queue;
pub use rule::QueueRule;
pub use schema::{QueueFile, QueueKind};
pub use settings::QueueFacts;
