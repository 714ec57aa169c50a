//! Checks a capture with tshark.

use std::io;
use std::path::Path;
use std::process::Command;

/// The capture's interface with the packets that our end sent.
pub(super) const FROM_US: &str = "from-bentpipe";

/// Counts of our end's packets by tshark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dissection {
    /// Number of frames.
    pub frames: u64,
    /// TCP segments with a correct checksum.
    pub good_checksums: u64,
    /// Frames with a wrong IP or TCP checksum.
    pub bad_checksums: u64,
    /// Malformed frames.
    pub malformed: u64,
}

/// Lets tshark examine what our end sent, in a capture; `None` if it is not installed.
///
/// The kernel's packets are not examined: it writes 0xffff into a TCP header where the sum is
/// 0x0000 (CSUM_MANGLED_0, meant for UDP), which tshark reports as wrong by RFC 1624.
///
/// # Errors
/// If tshark fails.
pub fn dissect(capture: &Path) -> io::Result<Option<Dissection>> {
    let output = Command::new("tshark")
        .args(["-n", "-o", "tcp.check_checksum:TRUE"])
        .args(["-o", "ip.check_checksum:TRUE", "-T", "fields"])
        .args(["-e", "_ws.malformed", "-e", "tcp.checksum.status"])
        .args(["-e", "ip.checksum.status"])
        .args(["-Y", &format!("frame.interface_name == \"{FROM_US}\"")])
        .arg("-r")
        .arg(capture)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(io::Error::other(message));
    }
    let mut dissection = Dissection::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = line.split('\t');
        let malformed = fields.next().unwrap_or_default();
        let tcp = fields.next().unwrap_or_default();
        let ip = fields.next().unwrap_or_default();
        // 0: bad, 1: good, 2: not checked
        dissection.frames += 1;
        dissection.malformed += u64::from(!malformed.is_empty());
        dissection.good_checksums += u64::from(tcp == "1");
        dissection.bad_checksums += u64::from(tcp == "0" || ip == "0");
    }
    Ok(Some(dissection))
}
