//! What requests ask for.
//!
//! A simulated request is a range of a stream, without content. What it would say, its maker tells the
//! server in an order, by the local port of the connection that it goes over: the server finds the orders of
//! a connection in the order in which their requests arrive, as TCP delivers them. Nothing but the content of
//! requests goes this way: the server learns of an order only when all of its request's bytes are there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use bentpipe_types::Span;

/// What one request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Order {
    /// Bytes of the request.
    pub(super) request: u64,
    /// Bytes of the answer.
    pub(super) response: u64,
    /// How long the server thinks about it.
    pub(super) think: Span,
}

/// Orders that were placed and not yet taken, shared by the two ends of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders(Arc<Mutex<BTreeMap<u16, VecDeque<Order>>>>);

impl Orders {
    /// A request is about to be written on the connection from this port.
    pub(super) fn place(&self, port: u16, order: Order) {
        if let Ok(mut orders) = self.0.lock() {
            orders.entry(port).or_default().push_back(order);
        }
    }

    /// The next request of the connection from this port.
    pub(super) fn take(&self, port: u16) -> Option<Order> {
        self.0.lock().ok()?.get_mut(&port)?.pop_front()
    }

    /// The greeting that the connection from this port begins with, if it does.
    pub(super) fn take_greeting(&self, port: u16) -> Option<Order> {
        let mut orders = self.0.lock().ok()?;
        let orders = orders.get_mut(&port)?;
        let is_greeting = orders.front().is_some_and(|order| order.request == 0);
        is_greeting.then(|| orders.pop_front()).flatten()
    }

    /// Is the connection from this port one that has placed orders, and is not forgotten?
    pub(super) fn is_expecting(&self, port: u16) -> bool {
        let orders = self.0.lock();
        orders.is_ok_and(|orders| orders.contains_key(&port))
    }

    /// The connection from this port is no more.
    pub(super) fn forget(&self, port: u16) {
        if let Ok(mut orders) = self.0.lock() {
            orders.remove(&port);
        }
    }
}
