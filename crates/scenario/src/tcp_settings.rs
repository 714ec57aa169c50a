//! How an end's TCP behaves, once read.

use bentpipe_tcp::Config;

use crate::schema::TcpFile;

/// How a host's TCP behaves.
#[derive(Clone, Debug)]
pub struct TcpSettings {
    /// Every setting, as the file says it or by default: what results say, too.
    pub file: TcpFile,
    /// The same as a connection takes it, but for the window rule, which the run makes.
    pub config: Config,
}

impl PartialEq for TcpSettings {
    /// What a connection takes follows from what the file says.
    fn eq(&self, other: &Self) -> bool {
        self.file == other.file
    }
}
