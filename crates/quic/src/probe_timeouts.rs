//! Counts of probe timeouts (PTO, RFC 9002 section 6.2).
//!
//! quinn has no counter of them, but traces each one. [`count`] runs a closure with a subscriber
//! that counts these traces and ignores all others.

use std::cell::Cell;
use std::sync::LazyLock;

use tracing_core::field::FieldSet;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::subscriber::Interest;
use tracing_core::{Dispatch, Event, Metadata, Subscriber, dispatcher};

thread_local! {
    static COUNTED: Cell<u64> = const { Cell::new(0) };
}

static DISPATCH: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(Timeouts));

/// Runs a closure. Returns the number of probe timeouts of quinn's connections during it.
pub(crate) fn count(act: impl FnOnce()) -> u64 {
    COUNTED.set(0);
    dispatcher::with_default(&DISPATCH, act);
    COUNTED.get()
}

/// Subscriber to the traces of probe timeouts.
struct Timeouts;

/// Whether these are the fields of the trace of a probe timeout.
fn is_timeout(fields: &FieldSet) -> bool {
    ["in_flight", "count", "space"]
        .iter()
        .all(|name| fields.field(name).is_some())
}

impl Subscriber for Timeouts {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("quinn_proto")
            && metadata.is_event()
            && is_timeout(metadata.fields())
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, _event: &Event<'_>) {
        COUNTED.set(COUNTED.get() + 1);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}
