//! Captures that the workspace's own writer makes, whole, cut and damaged.

use std::fs;
use std::path::PathBuf;

use bentpipe_capture::{CaptureError, Listing, Reader, connections, segments};
use bentpipe_types::Time;
use bentpipe_wire::pcapng::Writer;
use proptest::prelude::*;

/// Returns an IPv4 packet with a TCP segment: from port 1000 to 2000, or back.
fn packet(forward: bool, sequence: u32, flags: u8, options: &[u8], payload: u16) -> Vec<u8> {
    let header = 20 + u16::try_from(options.len()).expect("short");
    let mut bytes = vec![0x45, 0];
    bytes.extend((20 + header + payload).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    let (from, to) = if forward { (1, 2) } else { (2, 1) };
    bytes.extend([10, 0, 0, from, 10, 0, 0, to]);
    bytes.extend((u16::from(from) * 1000).to_be_bytes());
    bytes.extend((u16::from(to) * 1000).to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(7_u32.to_be_bytes());
    bytes.extend([
        u8::try_from(header / 4).expect("short") << 4,
        flags,
        1,
        0,
        0,
        0,
        0,
        0,
    ]);
    bytes.extend(options);
    bytes.resize(bytes.len() + usize::from(payload), 0);
    bytes
}

const SYN: u8 = 0b10;
const ACK: u8 = 0b1_0000;
/// MSS 1460, SACK permitted, a timestamp, and window scale 7.
const OPTIONS: [u8; 20] = [
    2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7,
];
/// SACK from 100 to 200, after two bytes of padding.
const SACK: [u8; 12] = [1, 1, 5, 10, 0, 0, 0, 100, 0, 0, 0, 200];

fn capture(snap_length: Option<u32>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).expect("in memory");
    let place = writer
        .add_interface("link", snap_length)
        .expect("in memory");
    let packets = [
        packet(true, 1, SYN, &OPTIONS, 0),
        packet(false, 50, SYN | ACK, &OPTIONS, 0),
        packet(true, 2, ACK, &[], 1000),
        packet(false, 51, ACK, &SACK, 0),
    ];
    for (index, packet) in packets.iter().enumerate() {
        let at = Time::from_nanos(1_000 * index as u64);
        writer.write(place, at, packet).expect("in memory");
    }
    writer.flush().expect("in memory");
    file
}

/// Writes a file and removes it in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::write(&path, content).expect("a temporary file");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn listing(content: &[u8], name: &str) -> Result<Listing, CaptureError> {
    connections(&File::new(name, content).0, |_| Ok(()))
}

#[test]
fn headers_are_read_with_and_without_payload() {
    for (name, snap) in [("whole", None), ("snapped", Some(100))] {
        let file = File::new(name, &capture(snap));
        let listing = connections::<CaptureError>(&file.0, |_| Ok(())).expect("a capture");
        assert_eq!(listing.connections.len(), 1);
        let connection = listing.connections[0];
        assert_eq!(
            (connection.ends[0].port, connection.ends[1].port),
            (1000, 2000)
        );
        assert_eq!(connection.payload, [1000, 0]);
        assert_eq!(connection.segments, [2, 2]);
        let handshake = connection.handshakes[1].expect("a SYN");
        assert_eq!(
            (handshake.mss, handshake.window_scale),
            (Some(1460), Some(7))
        );
        assert!(handshake.sack_permitted);
        let columns = segments::<CaptureError>(&file.0, 0, 10, |_| Ok(())).expect("a capture");
        assert_eq!(columns.time_ns, [0, 1000, 2000, 3000]);
        assert_eq!(columns.sender, [0, 1, 0, 1]);
        assert_eq!(columns.length, [60, 60, 1040, 52]);
        assert_eq!(columns.timestamp, [9, 9, 0, 0]);
        assert_eq!(
            (&columns.sack_from[..], &columns.sack_to[..]),
            (&[100][..], &[200][..])
        );
        assert!(!columns.limited);
        let few = segments::<CaptureError>(&file.0, 0, 3, |_| Ok(())).expect("a capture");
        assert!(few.limited);
        assert_eq!(few.length.len(), 3);
    }
}

#[test]
fn every_cut_is_read_up_to_there_or_refused() {
    let whole = capture(None);
    for length in 0..whole.len() {
        match listing(&whole[..length], "cut") {
            Ok(found) => assert!(found.packets < 4 && found.connections.len() <= 1),
            Err(error) => assert!(matches!(error, CaptureError::NotACapture), "{error}"),
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(content: Vec<u8>) {
        prop_assert!(Reader::new(std::io::Cursor::new(content)).is_err());
    }

    #[test]
    fn damaged_captures_never_panic(at in 0_usize..600, value: u8) {
        let mut content = capture(None);
        let place = at % content.len();
        content[place] = value;
        if let Ok(mut reader) = Reader::new(std::io::Cursor::new(content)) {
            let mut left = 100;
            while let Ok(Some(_)) = reader.read() {
                left -= 1;
                prop_assert!(left > 0);
            }
        }
    }
}
