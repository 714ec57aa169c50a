//! A bulk transfer.

use bentpipe_tcp::{Connection, Events};
use bentpipe_types::Ctx;

/// Keeps the send buffer full until the file is written, then closes.
#[derive(Clone, Debug)]
pub struct Bulk {
    size: Option<u64>,
    written: u64,
}

impl Bulk {
    pub(crate) fn new(size: Option<u64>) -> Self {
        Self { size, written: 0 }
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.size
    }

    pub(crate) fn on_events(
        &mut self,
        events: Events,
        connection: &mut Connection,
        cx: &mut Ctx<'_>,
    ) {
        if !(events.has(Events::ESTABLISHED) || events.has(Events::WRITABLE)) {
            return;
        }
        let left = self.size.map_or(u64::MAX, |size| size - self.written);
        if left > 0 {
            // What the send buffer doesn't take makes the connection say when it has room again.
            self.written += connection.write(left, cx);
        }
        if self.size == Some(self.written) {
            connection.close(cx);
        }
    }
}
