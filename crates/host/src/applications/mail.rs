//! Mail: messages sent by SMTP (RFC 5321), one connection each.

use std::collections::VecDeque;

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::orders::{Order, Orders};
use crate::report::Transfers;
use crate::{
    Application, ApplicationProgress, Distribution, Report, SocketApi, SocketBackend, SocketId,
};

/// Settings of mail.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MailSettings {
    /// Bytes of a message, headers included.
    pub size: Distribution,
    /// Seconds from the end of one message to the next.
    pub pause: Distribution,
    /// Number of messages, or `None` until the end of the run.
    pub count: Option<u64>,
    /// Whether MAIL, RCPT and DATA are sent together (RFC 2920).
    pub pipelining: bool,
}

/// Usual lengths in bytes of a command and its reply, line ends included (RFC 5321 appendix D has
/// such an exchange).
type Step = (u64, u64);

const GREETING: Step = (0, 60);
const EHLO: Step = (25, 150);
const MAIL: Step = (50, 14);
const RCPT: Step = (40, 14);
const DATA: Step = (6, 37);
/// Reply to a message, and its end: a line with a dot.
const MESSAGE_REPLY: u64 = 40;
const DOT: u64 = 5;
const QUIT: Step = (6, 15);

/// Time after which opening a connection is retried.
const AGAIN: Span = Span::from_secs(1);

/// The replies that are awaited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Those before the message.
    Envelope,
    /// That to the message.
    Message,
    /// That to QUIT.
    Quit,
}

/// A message being sent.
#[derive(Debug)]
struct Sending {
    socket: SocketId,
    port: u16,
    start: Time,
    size: u64,
    stage: Stage,
    /// Missing bytes of replies.
    missing: u64,
    /// Commands still to be sent before the message, grouped by flight.
    flights: VecDeque<Vec<Step>>,
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Mail {
    server: Endpoint,
    settings: MailSettings,
    orders: Orders,
    sending: Option<Sending>,
    progress: ApplicationProgress,
    mails: Transfers,
}

impl Mail {
    pub(super) fn new(server: Endpoint, settings: MailSettings, orders: Orders) -> Self {
        Self {
            server,
            settings,
            orders,
            sending: None,
            progress: ApplicationProgress::default(),
            mails: Transfers::default(),
        }
    }

    fn begin<D: SocketApi>(&mut self, api: &mut D) {
        let Ok(socket) = api.connect(self.server) else {
            // For example, all ports are in TIME-WAIT.
            self.progress.next = Some(api.now() + AGAIN);
            return;
        };
        let size = self.settings.size.bytes(api.random());
        self.mails.begun += 1;
        api.no_delay(socket);
        let port = api.local(socket).map_or(0, |end| end.port);
        let envelope = if self.settings.pipelining {
            vec![vec![EHLO], vec![MAIL, RCPT, DATA]]
        } else {
            vec![vec![EHLO], vec![MAIL], vec![RCPT], vec![DATA]]
        };
        self.place(port, GREETING);
        self.sending = Some(Sending {
            socket,
            port,
            start: api.now(),
            size,
            stage: Stage::Envelope,
            missing: GREETING.1,
            flights: envelope.into(),
        });
    }

    fn place(&self, port: u16, (request, response): Step) {
        let order = Order {
            request,
            response,
            think: Span::ZERO,
        };
        self.orders.place(port, order);
    }

    /// Handles the complete replies of a flight.
    fn step<D: SocketApi>(&mut self, api: &mut D) {
        let Some(mut sending) = self.sending.take() else {
            return;
        };
        let flight = match sending.stage {
            Stage::Envelope => sending.flights.pop_front().unwrap_or_else(|| {
                sending.stage = Stage::Message;
                vec![(sending.size + DOT, MESSAGE_REPLY)]
            }),
            Stage::Message => {
                let time = api.now().since(sending.start);
                self.progress.latest = Some(time);
                self.mails.times.push(time);
                self.mails.bytes += sending.size;
                sending.stage = Stage::Quit;
                vec![QUIT]
            }
            Stage::Quit => {
                api.close(sending.socket);
                self.orders.forget(sending.port);
                let pause = self.settings.pause.span(api.random());
                self.over(pause, api);
                return;
            }
        };
        for step in &flight {
            self.place(sending.port, *step);
        }
        sending.missing = flight.iter().map(|step| step.1).sum();
        let bytes = flight.iter().map(|step| step.0).sum();
        let socket = sending.socket;
        self.sending = Some(sending);
        api.feed(socket, bytes, false);
    }

    /// Ends a message, sent or failed.
    fn over<D: SocketApi>(&mut self, pause: Span, api: &mut D) {
        self.sending = None;
        if self.settings.count == Some(self.mails.begun) {
            if self.mails.times.len() as u64 == self.mails.begun {
                self.progress.finished = Some(api.now());
            }
            return;
        }
        // The clock has to advance.
        self.progress.next = Some(api.now() + pause.max(Span::from_nanos(1)));
    }
}

impl<P: SocketBackend> Application<P> for Mail {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.begin(api);
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        let read = api.read(socket, u64::MAX);
        let is_current = |sending: &Option<Sending>| {
            (sending.as_ref()).is_some_and(|sending| sending.socket == socket)
        };
        if is_current(&self.sending)
            && let Some(sending) = &mut self.sending
            && read > 0
        {
            debug_assert!(read <= sending.missing, "a reply to no command");
            sending.missing = sending.missing.saturating_sub(read);
            if sending.missing == 0 {
                self.step(api);
            }
        }
        if events.has(Events::PEER_CLOSED) {
            api.close(socket);
        }
        if events.has(Events::CLOSED) && is_current(&self.sending) {
            if let Some(sending) = &self.sending {
                self.orders.forget(sending.port);
            }
            let pause = self.settings.pause.span(api.random());
            self.over(pause.max(AGAIN), api);
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        if self.progress.takes_turn(api.now()) {
            self.begin(api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        self.progress
    }

    fn report(&self, _: Time, report: &mut Report) {
        report.finished = self.progress.finished;
        report.mails = Some(self.mails.clone());
    }
}
