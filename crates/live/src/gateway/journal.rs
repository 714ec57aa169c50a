//! A journal of the split connections, for the time after this process was killed.
//!
//! It is a file of one record per connection, at the connection's number. The page cache keeps it
//! when the process is killed; a restart of the machine may lose it, as it ends the connections'
//! hosts' patience as well. A record has the IP version (0: free), the two ports and addresses.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bentpipe_types::{ConnectionChange, FlowKey, HostAddress, Party};
use nix::fcntl::{Flock, FlockArg};
use nix::getsockopt_impl;
use nix::libc;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};

use super::host_secret::{RUNTIME_DIRECTORY, create_runtime_directory};

/// Length of a record in bytes.
const RECORD: usize = 40;

/// Number of a network namespace. No other one has it until the machine restarts, while inodes are
/// used again.
#[derive(Clone, Copy, Debug)]
struct NamespaceCookie;

getsockopt_impl!(
    NamespaceCookie,
    libc::SOL_SOCKET,
    libc::SO_NETNS_COOKIE,
    u64,
    nix::sys::socket::sockopt::GetStruct<u64>
);

/// A connection in the journal: the host that opened it, and the other one.
pub(super) type Ends = [SocketAddr; 2];

/// The journal of this process, locked while it lives.
#[derive(Debug)]
pub(super) struct Journal {
    file: Flock<File>,
    changes: Vec<ConnectionChange>,
}

/// Returns the path of the journal of a gateway in this network namespace.
pub(super) fn path(gateway: &str) -> PathBuf {
    let opened = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::empty(),
        None,
    );
    let namespace = opened
        .and_then(|socket| getsockopt(&socket, NamespaceCookie))
        .unwrap_or(0);
    let name: String = (gateway.chars())
        .map(|letter| {
            if letter.is_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    Path::new(RUNTIME_DIRECTORY).join(format!("{name}-{namespace}.connections"))
}

impl Journal {
    /// Opens a journal, and returns it with the connections of a killed process.
    ///
    /// # Errors
    /// If the file cannot be written, or another process uses it.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Ends>)> {
        create_runtime_directory()?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(path)?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, error)| io::Error::from(error))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let found = bytes.chunks_exact(RECORD).filter_map(read).collect();
        file.set_len(0)?;
        let changes = Vec::new();
        Ok((Self { file, changes }, found))
    }

    /// Returns the list to which changes are appended before [`write`](Self::write).
    pub(super) fn changes(&mut self) -> &mut Vec<ConnectionChange> {
        &mut self.changes
    }

    /// Writes the changes.
    ///
    /// # Errors
    /// If the disk is full, for example.
    pub(super) fn write(&mut self) -> io::Result<()> {
        for change in self.changes.drain(..) {
            let record = change.key.as_ref().and_then(record).unwrap_or([0; RECORD]);
            let at = u64::from(change.index) * RECORD as u64;
            self.file.write_all_at(&record, at)?;
        }
        Ok(())
    }

    /// Empties the journal: all connections have been reset.
    pub(super) fn clear(&mut self) {
        self.changes.clear();
        let _ = self.file.set_len(0);
    }
}

fn record(key: &FlowKey) -> Option<[u8; RECORD]> {
    let mut record = [0; RECORD];
    for (at, Party { host, port }) in [key.source, key.destination].into_iter().enumerate() {
        let HostAddress::Ip(ip) = host else {
            return None;
        };
        record[2 + 2 * at..4 + 2 * at].copy_from_slice(&port.to_be_bytes());
        let octets = 8 + 16 * at;
        match ip {
            IpAddr::V4(ip) => {
                record[0] = 4;
                record[octets..octets + 4].copy_from_slice(&ip.octets());
            }
            IpAddr::V6(ip) => {
                record[0] = 6;
                record[octets..octets + 16].copy_from_slice(&ip.octets());
            }
        }
    }
    Some(record)
}

fn read(record: &[u8]) -> Option<Ends> {
    let end = |at: usize| -> Option<SocketAddr> {
        let port = u16::from_be_bytes([record[2 + 2 * at], record[3 + 2 * at]]);
        let octets = &record[8 + 16 * at..24 + 16 * at];
        let ip: IpAddr = match record[0] {
            4 => Ipv4Addr::from(<[u8; 4]>::try_from(&octets[..4]).ok()?).into(),
            6 => Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into(),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    };
    Some([end(0)?, end(1)?])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(ends: Ends) -> FlowKey {
        let [source, destination] = ends.map(|end| Party {
            host: HostAddress::Ip(end.ip()),
            port: end.port(),
        });
        FlowKey {
            source,
            destination,
            protocol: 6,
        }
    }

    proptest! {
        #[test]
        fn records_are_read_as_written(
            v6 in any::<bool>(),
            ips in any::<[u128; 2]>(),
            ports in any::<[u16; 2]>(),
        ) {
            let ends: Ends = [0, 1].map(|at: usize| {
                let ip: IpAddr = if v6 {
                    Ipv6Addr::from(ips[at]).into()
                } else {
                    Ipv4Addr::from(ips[at] as u32).into()
                };
                SocketAddr::new(ip, ports[at])
            });
            prop_assert_eq!(record(&key(ends)).as_ref().and_then(|bytes| read(bytes)), Some(ends));
        }
    }

    #[test]
    fn a_killed_process_leaves_its_open_connections() {
        let path = std::env::temp_dir().join(format!("bentpipe-journal-{}", std::process::id()));
        let ends = |port| -> Ends {
            ["10.1.0.1", "10.2.0.2"].map(|ip| SocketAddr::new(ip.parse().expect("an IP"), port))
        };
        let (mut journal, found) = Journal::open(&path).expect("a file");
        assert!(found.is_empty());
        let opened = |index: u32| ConnectionChange {
            index,
            key: Some(key(ends(index as u16 + 1_000))),
        };
        journal.changes().extend([opened(0), opened(5), opened(7)]);
        journal.changes().push(ConnectionChange {
            index: 5,
            key: None,
        });
        journal.write().expect("room");
        assert!(Journal::open(&path).is_err(), "it is locked");
        drop(journal);
        let (mut journal, found) = Journal::open(&path).expect("a file");
        assert_eq!(found, [ends(1_000), ends(1_007)]);
        journal.changes().push(opened(1));
        journal.write().expect("room");
        journal.clear();
        drop(journal);
        assert!(Journal::open(&path).expect("a file").1.is_empty());
        std::fs::remove_file(path).expect("a file");
    }
}
