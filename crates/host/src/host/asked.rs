//! What can be asked of a host.

use bentpipe_tcp::{Connection, Socket, State, Statistics};
use bentpipe_types::{Span, Time};

use super::{Counters, Host};
use crate::account::Account;
use crate::{Application, ApplicationId, Listener, Realm, Report, SocketId, Taker};

impl<P: Realm> Host<P> {
    /// A connection; `None` when it is gone.
    #[must_use]
    pub fn socket(&self, id: SocketId) -> Option<&Socket<P>> {
        Some(&self.sockets.named(id)?.socket)
    }

    /// The connection that stands for an application: its latest, if any is open, or the last that
    /// was.
    #[must_use]
    pub fn connection(&self, application: ApplicationId) -> Option<&Connection> {
        self.sockets.of(application)
    }

    /// What all connections of an application have counted; `None` before the first.
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

    /// Bytes delivered to an application: in order over all of its connections, and in datagrams.
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

    /// Bytes delivered to an application in datagrams.
    #[must_use]
    pub fn datagram_bytes(&self, application: ApplicationId) -> u64 {
        let application = self.applications.get(application.0 as usize);
        let application = application.and_then(|application| application.as_deref());
        application.map_or(0, Application::datagram_bytes)
    }

    /// The time that an application measured last.
    #[must_use]
    pub fn latest(&self, application: ApplicationId) -> Option<Span> {
        let application = self.applications.get(application.0 as usize)?;
        application.as_deref()?.standing().latest
    }

    /// Connections of an application that are open.
    pub fn connections_of(&self, application: ApplicationId) -> impl Iterator<Item = &Connection> {
        let account = self.account(application);
        let places = account.into_iter().flat_map(|account| &account.sockets);
        places
            .filter_map(|at| self.sockets.at(*at))
            .map(|slot| slot.socket.connection())
    }

    /// What an application tells of itself by now.
    #[must_use]
    pub fn report(&self, application: ApplicationId, now: Time) -> Option<Report> {
        let application = self.applications.get(application.0 as usize)?.as_deref()?;
        Some(application.told(now))
    }

    /// Has this application nothing more to do of its own accord: it has begun, has no deadline, and
    /// no connection of its waits for anything but the end of TIME-WAIT?
    #[must_use]
    pub fn is_over(&self, id: ApplicationId) -> bool {
        let Some(account) = self.account(id) else {
            return true;
        };
        let application = self.applications[id.0 as usize].as_deref();
        account.member.starts.is_none()
            && application.is_none_or(|application| application.standing().next.is_none())
            && account.sockets.iter().all(|place| {
                self.sockets.at(*place).is_none_or(|slot| {
                    slot.socket.next_deadline().is_none() || slot.socket.state() == State::TimeWait
                })
            })
    }

    /// Does all that its applications learn of others come in packets?
    #[must_use]
    pub fn keeps_to_packets(&self) -> bool {
        let known = |listener: &Listener<P>| !matches!(listener.taker, Taker::Each(..));
        (self.applications.iter().flatten()).all(|each| each.keeps_to_packets())
            && self.listeners.values().all(known)
    }

    /// Connections in any state.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sockets.open
    }

    /// Connections ever, opened or taken.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.sockets.opened
    }

    /// Bytes of memory that connections' payload takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.sockets.all().map(|slot| slot.socket.memory()).sum()
    }

    /// What it has counted.
    #[must_use]
    pub fn counted(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn account(&self, application: ApplicationId) -> Option<&Account> {
        self.sockets.accounts.get(application.0 as usize)
    }
}
