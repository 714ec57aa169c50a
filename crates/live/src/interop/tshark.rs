//! What tshark thinks of a capture.

use std::io;
use std::path::Path;
use std::process::Command;

/// The interface of a capture that has what our end sent.
pub(super) const FROM_US: &str = "from-bentpipe";

/// What our end sent, as tshark sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dissection {
    /// Frames in all.
    pub frames: u64,
    /// TCP segments whose checksum it found right.
    pub good_checksums: u64,
    /// Frames with a wrong checksum, of IP or TCP.
    pub bad_checksums: u64,
    /// Frames that it found malformed.
    pub malformed: u64,
}

/// Lets tshark read what our end sent, in a capture; `None` where it is not installed.
///
/// Only ours: the kernel writes 0xffff into a TCP header where the sum is 0x0000 (its
/// CSUM_MANGLED_0, which is for UDP), and tshark calls that bad, by RFC 1624.
///
/// # Errors
/// When it fails.
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
