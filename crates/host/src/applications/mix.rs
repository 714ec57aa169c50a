//! A user: activities in sequence, each drawn from a mix of applications, with pauses.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use bentpipe_tcp::Events;
use bentpipe_types::{Endpoint, Span, Time};

use super::{Pair, Traffic};
use crate::report::Activity;
use crate::{
    Application, ApplicationProgress, Arrival, Distribution, Report, SocketApi, SocketBackend,
    SocketId,
};

/// Settings of a user.
#[derive(Clone, PartialEq, Debug)]
pub struct MixSettings {
    /// Seconds from the end of one activity to the next.
    pub pause: Distribution,
    /// Applications of the mix.
    pub shares: Arc<[Share]>,
}

/// One application of a mix.
#[derive(Clone, PartialEq, Debug)]
pub struct Share {
    /// Name.
    pub name: Arc<str>,
    /// Relative frequency.
    pub weight: f64,
    /// The activity, which must end by itself.
    pub traffic: Traffic,
}

/// Application index by the user's local port.
type Whose = Arc<Mutex<BTreeMap<u16, usize>>>;

/// Creates both ends.
pub(super) fn ends<P: SocketBackend, Q: SocketBackend>(
    server: Endpoint,
    settings: &MixSettings,
) -> (User<P>, Servers<Q>) {
    let whose = Whose::default();
    let mut makers = Vec::new();
    let mut servers = Vec::new();
    let mut ports = Vec::new();
    for share in settings.shares.iter() {
        let remote = Endpoint {
            port: share.traffic.port(),
            ..server
        };
        let Pair { make, server } = share.traffic.pair(remote);
        makers.push(make);
        servers.push(server);
        ports.push(share.traffic.port());
    }
    let activities = settings.shares.iter().map(|share| Activity {
        name: Arc::clone(&share.name),
        ..Activity::default()
    });
    let user = User {
        pause: settings.pause,
        weights: settings.shares.iter().map(|share| share.weight).collect(),
        makers,
        whose: Arc::clone(&whose),
        current: None,
        doing: Vec::new(),
        begun: 0,
        sockets: BTreeMap::new(),
        next: None,
        latest: None,
        activities: activities.collect(),
        bytes: 0,
        metrics: Report::default(),
    };
    let servers = Servers {
        servers,
        ports,
        whose,
        sockets: BTreeMap::new(),
    };
    (user, servers)
}

/// Creates the user's end of an activity.
pub(super) type Make<P> = Box<dyn Fn() -> Box<dyn Application<P>> + Send>;

/// An activity in progress, or with connections still closing.
struct Doing<P: SocketBackend> {
    number: u64,
    share: usize,
    application: Box<dyn Application<P>>,
    /// Number of its open connections.
    open: usize,
}

/// The user's end.
pub(super) struct User<P: SocketBackend> {
    pause: Distribution,
    weights: Vec<f64>,
    makers: Vec<Make<P>>,
    whose: Whose,
    /// Number of the current activity.
    current: Option<u64>,
    doing: Vec<Doing<P>>,
    begun: u64,
    /// Activity of each connection.
    sockets: BTreeMap<SocketId, u64>,
    next: Option<Time>,
    latest: Option<Span>,
    activities: Vec<Activity>,
    /// Bytes of datagrams in completed activities.
    bytes: u64,
    metrics: Report,
}

impl<P: SocketBackend> User<P> {
    fn begin(&mut self, api: &mut P::Api<'_, '_>) {
        let total: f64 = self.weights.iter().sum();
        let mut at = api.random().uniform() * total;
        let last = self.weights.len().saturating_sub(1);
        let share = self.weights.iter().position(|weight| {
            at -= weight;
            at < 0.0
        });
        let share = share.unwrap_or(last);
        let Some(make) = self.makers.get(share) else {
            return;
        };
        let number = self.begun;
        self.begun += 1;
        self.activities[share].begun += 1;
        self.doing.push(Doing {
            number,
            share,
            application: make(),
            open: 0,
        });
        self.current = Some(number);
        self.act(number, api, |application, api| application.start(api));
    }

    /// Calls an activity and updates its state.
    fn act<'a, 'c>(
        &mut self,
        number: u64,
        api: &mut P::Api<'a, 'c>,
        act: impl FnOnce(&mut dyn Application<P>, &mut P::Api<'a, 'c>),
    ) {
        let Some(place) = self.doing.iter().position(|doing| doing.number == number) else {
            return;
        };
        let before = api.connections();
        let doing = &mut self.doing[place];
        act(&mut *doing.application, api);
        for index in before..api.connections() {
            let Some(socket) = api.nth_connection(index) else {
                continue;
            };
            doing.open += 1;
            self.sockets.insert(socket, number);
            if let (Some(local), Ok(mut whose)) = (api.local(socket), self.whose.lock()) {
                whose.insert(local.port, doing.share);
            }
        }
        self.settle(place, api);
    }

    fn settle(&mut self, place: usize, api: &mut P::Api<'_, '_>) {
        let doing = &self.doing[place];
        let progress = doing.application.progress();
        self.latest = progress.latest.or(self.latest);
        let is_idle = progress.next.is_none() && doing.open == 0;
        let is_done = progress.finished.is_some();
        if self.current == Some(doing.number) && (is_done || is_idle) {
            let activity = &mut self.activities[doing.share];
            if is_done {
                activity.finished += 1;
            } else {
                activity.failed += 1;
            }
            self.current = None;
            // The clock has to advance.
            let pause = self.pause.span(api.random()).max(Span::from_nanos(1));
            self.next = Some(api.now() + pause);
        }
        if is_idle && self.current != Some(self.doing[place].number) {
            let doing = self.doing.swap_remove(place);
            self.bytes += doing.application.datagram_bytes();
            self.metrics.absorb(doing.application.metrics(api.now()));
        }
    }
}

impl<P: SocketBackend> Application<P> for User<P> {
    fn start(&mut self, api: &mut P::Api<'_, '_>) {
        self.begin(api);
    }

    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        // A connection of an active FTP server belongs to the current activity.
        let Some(number) = self.current else {
            api.abort(socket);
            return;
        };
        self.sockets.insert(socket, number);
        if let Some(doing) = self.doing.iter_mut().find(|doing| doing.number == number) {
            doing.open += 1;
        }
        self.act(number, api, |application, api| {
            application.on_accept(socket, api);
        });
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        let Some(&number) = self.sockets.get(&socket) else {
            return;
        };
        if events.has(Events::CLOSED) {
            self.sockets.remove(&socket);
            if let Some(doing) = self.doing.iter_mut().find(|doing| doing.number == number) {
                doing.open -= 1;
            }
        }
        self.act(number, api, |application, api| {
            application.on_events(socket, events, api);
        });
    }

    fn on_datagram(&mut self, arrival: Arrival, api: &mut P::Api<'_, '_>) {
        // Activities with datagrams end when these have arrived.
        if let Some(number) = self.current {
            self.act(number, api, |application, api| {
                application.on_datagram(arrival, api);
            });
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        // Each activity once, in the order in which they began.
        let mut last = None;
        let after = |doing: &&Doing<P>, last| last < Some(doing.number);
        while let Some(number) = (self.doing.iter())
            .filter(|doing| is_due(doing.application.progress().next) && after(doing, last))
            .map(|doing| doing.number)
            .min()
        {
            last = Some(number);
            self.act(number, api, |application, api| {
                application.on_deadline(api);
            });
        }
        if is_due(self.next) {
            self.next = None;
            self.begin(api);
        }
    }

    fn progress(&self) -> ApplicationProgress {
        let theirs = self.doing.iter();
        let theirs = theirs.filter_map(|doing| doing.application.progress().next);
        ApplicationProgress {
            next: theirs.chain(self.next).min(),
            finished: None,
            latest: self.latest,
        }
    }

    fn datagram_bytes(&self) -> u64 {
        let now = self.doing.iter();
        let now = now.map(|doing| doing.application.datagram_bytes());
        self.bytes + now.sum::<u64>()
    }

    fn report(&self, now: Time, report: &mut Report) {
        report.clone_from(&self.metrics);
        for doing in &self.doing {
            report.absorb(doing.application.metrics(now));
        }
        report.activities.clone_from(&self.activities);
        report.finished = None;
    }
}

/// The other end: a server for each application.
pub(super) struct Servers<P: SocketBackend> {
    servers: Vec<Box<dyn Application<P>>>,
    ports: Vec<u16>,
    whose: Whose,
    sockets: BTreeMap<SocketId, usize>,
}

impl<P: SocketBackend> Servers<P> {
    fn act<'a, 'c>(
        &mut self,
        share: usize,
        api: &mut P::Api<'a, 'c>,
        act: impl FnOnce(&mut dyn Application<P>, &mut P::Api<'a, 'c>),
    ) {
        let before = api.connections();
        if let Some(server) = self.servers.get_mut(share) {
            act(&mut **server, api);
        }
        for index in before..api.connections() {
            if let Some(socket) = api.nth_connection(index) {
                self.sockets.insert(socket, share);
            }
        }
    }
}

impl<P: SocketBackend> Application<P> for Servers<P> {
    fn on_accept(&mut self, socket: SocketId, api: &mut P::Api<'_, '_>) {
        let port = api.remote(socket).map(|end| end.port);
        let whose = self.whose.lock().ok();
        let share = whose.and_then(|whose| whose.get(&port?).copied());
        let Some(share) = share else {
            api.abort(socket);
            return;
        };
        self.sockets.insert(socket, share);
        self.act(share, api, |server, api| server.on_accept(socket, api));
    }

    fn on_events(&mut self, socket: SocketId, events: Events, api: &mut P::Api<'_, '_>) {
        let Some(&share) = self.sockets.get(&socket) else {
            return;
        };
        if events.has(Events::CLOSED) {
            self.sockets.remove(&socket);
        }
        self.act(share, api, |server, api| {
            server.on_events(socket, events, api);
        });
    }

    fn on_datagram(&mut self, arrival: Arrival, api: &mut P::Api<'_, '_>) {
        if let Some(share) = self.ports.iter().position(|port| *port == arrival.to) {
            self.act(share, api, |server, api| {
                server.on_datagram(arrival, api);
            });
        }
    }

    fn on_deadline(&mut self, api: &mut P::Api<'_, '_>) {
        let now = api.now();
        for share in 0..self.servers.len() {
            if (self.servers[share].progress().next).is_some_and(|at| at <= now) {
                self.act(share, api, |server, api| server.on_deadline(api));
            }
        }
    }

    fn progress(&self) -> ApplicationProgress {
        let servers = self.servers.iter();
        ApplicationProgress {
            next: servers.filter_map(|server| server.progress().next).min(),
            ..ApplicationProgress::default()
        }
    }

    fn datagram_bytes(&self) -> u64 {
        let servers = self.servers.iter();
        servers.map(|server| server.datagram_bytes()).sum()
    }

    fn report(&self, now: Time, report: &mut Report) {
        for server in &self.servers {
            report.absorb(server.metrics(now));
        }
    }
}

impl<P: SocketBackend> fmt::Debug for User<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("activities", &self.activities)
            .finish_non_exhaustive()
    }
}

impl<P: SocketBackend> fmt::Debug for Servers<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Servers")
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}
