//! Connection tracking (NAT, stateful firewalls) on the gateway's machine.
//!
//! The kernel sees each diverted packet twice: on its way to the gateway, and on its way on. With
//! one entry for both, NAT would be decided on the first way, where no rule applies. So packets of
//! the two sides are tracked in two zones (nf_conntrack_zones): each pass has an entry of its own,
//! with the rules of its own interfaces.
//!
//! The side that the gateway faces keeps the default zone. In the other side's zone are:
//!
//! * packets from its interfaces to the side faced, or to this machine, whose addresses NAT may
//!   use;
//! * packets that the gateway sends to it;
//! * packets of this machine to it.
//!
//! The rules are in a table of their own, made by `nft` once anything is tracked.

use std::fs;
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Name prefix of the tables, before the zone.
const TABLE_PREFIX: &str = "bentpipe_gateway_";

/// Zones are numbered from this one up, by the index of a device, so that gateways differ.
const FIRST_ZONE: u32 = 0x4200;

/// A side's interfaces and device.
#[derive(Clone, Debug)]
pub(super) struct ZoneSide {
    pub(super) interfaces: Vec<String>,
    pub(super) device: String,
}

/// The table of a running gateway.
#[derive(Debug)]
pub(super) struct ConnectionZones {
    /// The side in a zone of its own, and the side in the default zone.
    sides: [ZoneSide; 2],
    zone: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Nothing is tracked yet.
    Waiting,
    Installed,
    Failed,
}

/// Whether the kernel tracks connections in this namespace.
fn is_tracking() -> bool {
    let count = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_count");
    count.is_ok_and(|count| count.trim() != "0")
}

/// Whether rules of this namespace need connection tracking, also those of iptables-nft. Packets
/// before the first check would get entries of the wrong zone.
pub(super) fn has_rules() -> bool {
    const WORDS: [&str; 5] = ["masquerade", "snat", "dnat", "ct state", "conntrack"];
    let rules = nft("list ruleset\n").unwrap_or_default().to_lowercase();
    WORDS.iter().any(|word| rules.contains(word))
}

/// Runs `nft` with these commands.
fn nft(commands: &str) -> io::Result<String> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(commands.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let line = message.lines().next().unwrap_or_default().to_owned();
    Err(io::Error::other(line))
}

/// Whether the program that sets zones is installed.
pub(super) fn is_available() -> bool {
    nft("").is_ok()
}

/// Removes the tables of killed processes: those whose device does not exist.
pub(super) fn remove_leftovers(is_alive: impl Fn(u32) -> bool) {
    if !is_tracking() {
        return;
    }
    let Ok(tables) = nft("list tables inet\n") else {
        return;
    };
    for line in tables.lines() {
        let name = line.split_whitespace().last().unwrap_or_default();
        let zone = name.strip_prefix(TABLE_PREFIX);
        if let Some(index) = zone.and_then(|index| index.parse().ok())
            && !is_alive(index)
        {
            let _ = nft(&format!("delete table inet {name}\n"));
        }
    }
}

/// Removes the tables of a killed process, by the indices of its devices.
pub(super) fn remove(indices: [u32; 2]) {
    for index in indices.into_iter().filter(|_| is_tracking()) {
        let _ = nft(&format!("delete table inet {TABLE_PREFIX}{index}\n"));
    }
}

impl ConnectionZones {
    /// Prepares the zones of two sides; `index` is the index of one of their devices.
    pub(super) fn new(separate: ZoneSide, default: ZoneSide, index: u32) -> Self {
        Self {
            sides: [separate, default],
            zone: index,
            state: State::Waiting,
        }
    }

    /// Makes the table once the kernel tracks connections. Returns a message for the user.
    pub(super) fn check(&mut self) -> Option<String> {
        (self.state == State::Waiting && is_tracking())
            .then(|| self.install())
            .flatten()
    }

    /// Makes the table. Returns a message for the user.
    pub(super) fn install(&mut self) -> Option<String> {
        match nft(&self.commands()) {
            Ok(_) => {
                self.state = State::Installed;
                let device = &self.sides[0].device;
                Some(format!(
                    "the kernel tracks connections (nf_conntrack): those through {device} are in a zone of their own"
                ))
            }
            Err(error) => {
                self.state = State::Failed;
                Some(format!(
                    "the kernel tracks connections (nf_conntrack), and a zone for diverted packets needs nft: {error}"
                ))
            }
        }
    }

    fn table(&self) -> String {
        format!("{TABLE_PREFIX}{}", self.zone)
    }

    fn commands(&self) -> String {
        let list = |names: &[String]| {
            let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
            quoted.join(", ")
        };
        let [separate, default] = &self.sides;
        let (table, zone) = (self.table(), (FIRST_ZONE + self.zone) & 0xffff);
        let (own, other) = (list(&separate.interfaces), list(&default.interfaces));
        let device = &separate.device;
        format!(
            "table inet {table} {{
                chain prerouting {{
                    type filter hook prerouting priority raw; policy accept;
                    iifname \"{device}\" ct zone set {zone}
                    iifname {{ {own} }} fib daddr oifname {{ {other} }} ct zone set {zone}
                    iifname {{ {own} }} fib daddr type local ct zone set {zone}
                }}
                chain output {{
                    type filter hook output priority raw; policy accept;
                    oifname {{ {own} }} ct zone set {zone}
                }}
            }}
            "
        )
    }
}

impl Drop for ConnectionZones {
    fn drop(&mut self) {
        if self.state == State::Installed {
            let _ = nft(&format!("delete table inet {}\n", self.table()));
        }
    }
}
