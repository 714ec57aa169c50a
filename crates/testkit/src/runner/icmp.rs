//! Incoming ICMP errors.

use bentpipe_types::IcmpError;

use super::ends::INITIAL_SEQUENCE;
use super::{Problem, Runner};
use crate::script::IcmpSpec;

impl Runner {
    pub(super) fn icmp(&mut self, spec: &IcmpSpec) -> Result<(), Problem> {
        let Some(conversation) = self.current() else {
            return Err(Problem::wrong(
                "a connection that ICMP is about",
                "there is none",
            ));
        };
        let sequence = INITIAL_SEQUENCE + spec.sequence;
        let version = self.flow.version;
        self.host
            .receive_icmp(conversation, version, spec.error, sequence);
        self.after_host()
    }

    /// Checks `nstat | grep COUNTER`, which succeeds if the counter is above zero. Only counters of
    /// scripts about ICMP are known.
    pub(super) fn counted(&self, command: &str) -> Result<(), Problem> {
        let Some((_, rest)) = command.split_once("grep ") else {
            return Ok(());
        };
        let name = rest.split_whitespace().next().unwrap_or_default();
        let count = match (name, self.current()) {
            ("TcpExtOutOfWindowIcmps", Some(conversation)) => {
                let connection = self.host.connection(conversation);
                connection.statistics().icmp_ignored
            }
            _ => return Err(Problem::missing(format!("the counter {name}"))),
        };
        if count == 0 {
            return Err(Problem::wrong(format!("{name} to be counted"), "0"));
        }
        Ok(())
    }
}

/// Returns the application's error (Linux's tcp_v4_err).
pub(super) const fn errno(error: IcmpError) -> &'static str {
    match error {
        IcmpError::NetworkUnreachable => "ENETUNREACH",
        IcmpError::HostUnreachable | IcmpError::TimeExceeded | IcmpError::Prohibited => {
            "EHOSTUNREACH"
        }
        IcmpError::ProtocolUnreachable => "ENOPROTOOPT",
        IcmpError::PortUnreachable => "ECONNREFUSED",
        IcmpError::TooBig { .. } => "EMSGSIZE",
        IcmpError::ParameterProblem => "EPROTO",
    }
}
