//! Queries about a host's state.

use bentpipe_tcp::{Connection, Socket, State, Statistics};
use bentpipe_types::{Span, Time};

use super::{Counters, Host};
use crate::account::Account;
use crate::{
    Application, ApplicationId, ConnectionKeys, Listener, Report, SocketId, Taker, TransportState,
};

impl<P: ConnectionKeys> Host<P> {
    /// Returns a connection, or `None` if it is closed.
    #[must_use]
    pub fn socket(&self, id: SocketId) -> Option<&Socket<P>> {
        Some(&self.sockets.named(id)?.socket)
    }

    /// Returns the connection that represents an application: its latest open one, or the last
    /// closed one.
    #[must_use]
    pub fn connection(&self, application: ApplicationId) -> Option<&Connection> {
        self.sockets.of(application)
    }

    /// Returns the totals of all connections of an application, or `None` before the first.
    #[must_use]
    pub fn statistics(&self, application: ApplicationId) -> Option<Statistics> {
        let account = self.account(application)?;
        if account.opened == 0 {
            return None;
        }
        let mut statistics = account.totals.as_deref().cloned().unwrap_or_default();
        let open = account.sockets.iter().filter_map(|at| self.sockets.at(*at));
        let connections = open.map(|slot| slot.socket.connection());
        for connection in account.retired.as_deref().into_iter().chain(connections) {
            statistics.add(connection.statistics());
        }
        Some(statistics)
    }

    /// Returns the bytes delivered to an application: in order on all connections, and in
    /// datagrams.
    #[must_use]
    pub fn delivered(&self, application: ApplicationId) -> u64 {
        let Some(account) = self.account(application) else {
            return 0;
        };
        let datagrams = self.datagram_bytes(application);
        let open = account.sockets.iter().filter_map(|at| self.sockets.at(*at));
        let connections = open.map(|slot| slot.socket.connection());
        let delivered = |connection: &Connection| connection.statistics().bytes_delivered;
        let retired = account.retired.as_deref().into_iter().chain(connections);
        let before = (account.totals.as_deref()).map_or(0, |totals| totals.bytes_delivered);
        datagrams + before + retired.map(delivered).sum::<u64>()
    }

    /// Returns the bytes delivered to an application in datagrams.
    #[must_use]
    pub fn datagram_bytes(&self, application: ApplicationId) -> u64 {
        let application = self.applications.get(application.0 as usize);
        let application = application.and_then(|application| application.as_deref());
        application.map_or(0, Application::datagram_bytes)
    }

    /// Returns the state of an application's own transport protocol over datagrams, if it has one.
    #[must_use]
    pub fn transport(&self, application: ApplicationId) -> Option<TransportState> {
        let application = self.applications.get(application.0 as usize)?;
        application.as_deref()?.transport()
    }

    /// Returns the time that an application measured last.
    #[must_use]
    pub fn latest(&self, application: ApplicationId) -> Option<Span> {
        let application = self.applications.get(application.0 as usize)?;
        application.as_deref()?.progress().latest
    }

    /// Iterates over the open connections of an application.
    pub fn connections_of(&self, application: ApplicationId) -> impl Iterator<Item = &Connection> {
        let account = self.account(application);
        let places = account.into_iter().flat_map(|account| &account.sockets);
        places
            .filter_map(|at| self.sockets.at(*at))
            .map(|slot| slot.socket.connection())
    }

    /// Returns the metrics of an application at this time.
    #[must_use]
    pub fn report(&self, application: ApplicationId, now: Time) -> Option<Report> {
        let application = self.applications.get(application.0 as usize)?.as_deref()?;
        Some(application.metrics(now))
    }

    /// Whether the application will do nothing more by itself: it has begun, has no deadline, and
    /// its connections wait only for the end of TIME-WAIT.
    #[must_use]
    pub fn is_over(&self, id: ApplicationId) -> bool {
        let Some(account) = self.account(id) else {
            return true;
        };
        let application = self.applications[id.0 as usize].as_deref();
        account.member.starts.is_none()
            && application.is_none_or(|application| application.progress().next.is_none())
            && account.sockets.iter().all(|place| {
                self.sockets.at(*place).is_none_or(|slot| {
                    slot.socket.next_deadline().is_none() || slot.socket.state() == State::TimeWait
                })
            })
    }

    /// Whether its applications communicate by packets alone.
    #[must_use]
    pub fn keeps_to_packets(&self) -> bool {
        let known = |listener: &Listener<P>| !matches!(listener.taker, Taker::Each(..));
        (self.applications.iter().flatten()).all(|each| each.keeps_to_packets())
            && self.listeners.values().all(known)
    }

    /// Returns the number of connections in any state.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sockets.open
    }

    /// Returns the number of connections ever opened or accepted.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.sockets.opened
    }

    /// Returns the memory of all connections' payload in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.sockets.all().map(|slot| slot.socket.memory()).sum()
    }

    /// Returns the counters.
    #[must_use]
    pub fn counted(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn account(&self, application: ApplicationId) -> Option<&Account> {
        self.sockets.accounts.get(application.0 as usize)
    }
}
