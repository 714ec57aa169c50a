//! Limits of the datagrams in a network.

use std::fmt;

use bentpipe_sim::applications::PacketsSettings;
use bentpipe_types::Bytes;

use crate::error::quoted;
use crate::fault::KeyError;
use crate::ip::IpName;
use crate::link::settings::Link;
use crate::quantity::size::Size;

/// Limits of the datagrams in a network.
#[derive(Clone, Copy)]
pub(crate) struct Datagrams<'a> {
    /// Bytes of the largest datagram, without headers.
    pub(crate) largest: u16,
    /// The link whose tunnel sets this limit, if one does.
    tunnel: Option<&'a str>,
}

impl<'a> Datagrams<'a> {
    /// Returns the limits. In a tunnel, the 65,535 bytes of a packet include a second header (RFC
    /// 2003 section 3.1).
    pub(crate) fn of(links: &'a [Link], ip: IpName) -> Self {
        let tunnels = |link: &&Link| link.directions().any(|(_, direction)| direction.tunnel);
        match links.iter().find(tunnels) {
            None => Self {
                largest: PacketsSettings::LARGEST,
                tunnel: None,
            },
            Some(link) => Self {
                largest: match ip {
                    IpName::V4 => PacketsSettings::LARGEST - 20,
                    IpName::V6 => PacketsSettings::LARGEST - 40,
                },
                tunnel: Some(&link.name),
            },
        }
    }

    /// Checks that a datagram can have this size.
    pub(crate) fn size(self, key: &'static str, size: u64) -> Result<u16, KeyError> {
        let fits = |size: &u16| *size <= self.largest;
        (u16::try_from(size).ok().filter(fits)).ok_or_else(|| {
            let got = Size(Bytes::new(size));
            (key, self.expected(&got))
        })
    }

    pub(crate) fn expected(self, got: &dyn fmt::Display) -> String {
        let within = match self.tunnel {
            None => String::new(),
            Some(link) => format!(" in the tunnel of link {}", quoted(link)),
        };
        let largest = self.largest;
        format!(r#"expected at most "{largest} B", the size of a datagram{within}, got "{got}""#)
    }
}
