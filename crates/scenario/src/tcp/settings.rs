//! TCP settings of a host or gateway, resolved.

use bentpipe_tcp::{Config, LinuxQuirks};
use serde_json::Value;

use crate::quantity::measured::Measured;
use crate::tcp::schema::TcpFile;

/// TCP settings of a host or gateway.
#[derive(Clone, Debug)]
pub struct TcpSettings {
    /// Every setting, from the file or by default, as results give them.
    pub file: TcpFile,
    /// The settings in the form that a connection takes, without the congestion control, which the
    /// run creates.
    pub config: Config,
}

impl TcpSettings {
    /// Whether the host behaves as Linux in all that has no keys: with Linux's profile.
    pub(crate) fn has_linux_quirks(&self) -> bool {
        self.config.linux_quirks == LinuxQuirks::ALL
    }
}

impl PartialEq for TcpSettings {
    /// Compares the settings of the file, from which the others follow.
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}

pub(crate) fn tcp_data(tcp: &TcpSettings) -> Value {
    tcp.file.measured()
}
