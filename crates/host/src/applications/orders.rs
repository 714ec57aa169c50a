//! The content of requests, passed beside the network.
//!
//! A simulated request is a range of a stream without content. Its creator passes the content to
//! the server as an order, identified by the local port of the connection. The server takes a
//! connection's orders in the sequence in which their requests arrive, and only once all bytes of a
//! request have arrived. Nothing else is passed this way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use bentpipe_types::Span;

/// The content of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// Bytes of the request.
    pub(super) request: u64,
    /// Bytes of the response.
    pub(super) response: u64,
    /// Think time of the server.
    pub(super) think: Span,
}

/// Orders that were placed and not taken yet, shared by the two ends of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders(Arc<Mutex<BTreeMap<u16, VecDeque<Order>>>>);

impl Orders {
    /// Adds the order of a request that is about to be written on the connection from this port.
    pub(super) fn place(&self, port: u16, order: Order) {
        if let Ok(mut orders) = self.0.lock() {
            orders.entry(port).or_default().push_back(order);
        }
    }

    /// Takes the next order of the connection from this port.
    pub(super) fn take(&self, port: u16) -> Option<Order> {
        self.0.lock().ok()?.get_mut(&port)?.pop_front()
    }

    /// Takes the greeting that the connection from this port begins with, if any.
    pub(super) fn take_greeting(&self, port: u16) -> Option<Order> {
        let mut orders = self.0.lock().ok()?;
        let orders = orders.get_mut(&port)?;
        let is_greeting = orders.front().is_some_and(|order| order.request == 0);
        is_greeting.then(|| orders.pop_front()).flatten()
    }

    /// Whether the connection from this port has placed orders and was not removed.
    pub(super) fn is_expecting(&self, port: u16) -> bool {
        let orders = self.0.lock();
        orders.is_ok_and(|orders| orders.contains_key(&port))
    }

    /// Removes the connection from this port.
    pub(super) fn forget(&self, port: u16) {
        if let Ok(mut orders) = self.0.lock() {
            orders.remove(&port);
        }
    }
}
