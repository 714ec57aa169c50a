//! Interactive traffic: request, response, pause, repeated over one connection.

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::orders::{Order, Orders};
use crate::report::Responses;
use crate::{Application, Distribution, Report, SocketId, Standing, Workplace, World};

/// Settings of requests and responses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RequestResponseSettings {
    /// Bytes of a request.
    pub request: Distribution,
    /// Bytes of a response.
    pub response: Distribution,
    /// Think time of the server.
    pub think: Span,
    /// Seconds from a response to the next request.
    pub pause: Distribution,
    /// Number of requests, or `None` until the end of the run.
    pub count: Option<u64>,
}

/// The requesting end.
#[derive(Debug)]
pub(super) struct RequestResponse {
    server: Endpoint,
    settings: RequestResponseSettings,
    orders: Orders,
    socket: Option<(SocketId, u16)>,
    /// Time of the outstanding request, and missing bytes of its response.
    waiting: Option<(Time, u64)>,
    standing: Standing,
    responses: Responses,
}

impl RequestResponse {
    pub(super) fn new(server: Endpoint, settings: RequestResponseSettings, orders: Orders) -> Self {
        Self {
            server,
            settings,
            orders,
            socket: None,
            waiting: None,
            standing: Standing::default(),
            responses: Responses::default(),
        }
    }

    fn ask<D: Workplace>(&mut self, desk: &mut D) {
        let Some((socket, port)) = self.socket else {
            return;
        };
        let order = Order {
            request: self.settings.request.bytes(desk.random()),
            response: self.settings.response.bytes(desk.random()),
            think: self.settings.think,
        };
        self.orders.place(port, order);
        self.waiting = Some((desk.now(), order.response));
        self.responses.asked += 1;
        desk.feed(socket, order.request, false);
    }

    fn answered<D: Workplace>(&mut self, asked: Time, desk: &mut D) {
        self.waiting = None;
        let time = desk.now().since(asked);
        self.standing.latest = Some(time);
        self.responses.times.push(time);
        if self.settings.count == Some(self.responses.times.len() as u64) {
            self.standing.finished = Some(desk.now());
            if let Some((socket, _)) = self.socket {
                desk.close(socket);
            }
            return;
        }
        let pause = self.settings.pause.span(desk.random());
        if pause == Span::ZERO {
            self.ask(desk);
        } else {
            self.standing.next = Some(desk.now() + pause);
        }
    }
}

impl<P: World> Application<P> for RequestResponse {
    fn start(&mut self, desk: &mut P::Desk<'_, '_>) {
        if let Ok(socket) = desk.connect(self.server) {
            desk.no_delay(socket);
            let port = desk.local(socket).map(|end| end.port);
            self.socket = port.map(|port| (socket, port));
        }
    }

    fn on_events(&mut self, socket: SocketId, events: Events, desk: &mut P::Desk<'_, '_>) {
        if events.has(Events::ESTABLISHED) {
            self.ask(desk);
        }
        let read = desk.read(socket, u64::MAX);
        if let Some((asked, missing)) = self.waiting
            && read > 0
        {
            debug_assert!(read <= missing, "more than was asked for");
            self.waiting = Some((asked, missing - read.min(missing)));
            if read >= missing {
                self.answered(asked, desk);
            }
        }
        if events.has(Events::CLOSED) {
            // If the peer closed the connection, the flow's outcome states it.
            self.standing.next = None;
            self.socket = None;
        }
    }

    fn on_deadline(&mut self, desk: &mut P::Desk<'_, '_>) {
        if self.standing.takes_turn(desk.now()) {
            self.ask(desk);
        }
    }

    fn speaks_first(&self) -> bool {
        true
    }

    fn standing(&self) -> Standing {
        self.standing
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.standing.finished;
        report.responses = Some(self.responses.clone());
    }
}
