//! Packets that a device gives at once.

/// Longer than any packet that a device can have, and what the kernel puts before it.
const LONGEST: usize = (1 << 16) + 64;

/// What came out of a device at one go: a packet, or many that came as one. It is filled again and
/// again, so that reading allocates nothing.
#[derive(Debug)]
pub struct Batch {
    /// What was read.
    raw: Vec<u8>,
    /// The length of the packet in that, if it is a single one.
    whole: Option<usize>,
    /// Packets that what was read has been cut into, and how long each is.
    pieces: Vec<Vec<u8>>,
    lengths: Vec<usize>,
    /// How long each can be.
    longest: usize,
    cut: usize,
    /// What was read and could not be cut into packets.
    uncut: u64,
}

/// Where a device reads to that has to cut what it reads.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    /// For what is read, as it is.
    pub(crate) raw: &'a mut [u8],
    /// For the packets in it.
    pub(crate) pieces: &'a mut [Vec<u8>],
    /// For how long each is.
    pub(crate) lengths: &'a mut [usize],
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            raw: vec![0; LONGEST],
            whole: None,
            pieces: Vec::new(),
            lengths: Vec::new(),
            longest: 0,
            cut: 0,
            uncut: 0,
        }
    }
}

impl Batch {
    /// Makes this a batch of one packet. What is longer than any packet is cut off.
    pub fn put(&mut self, packet: &[u8]) {
        let length = packet.len().min(self.raw.len());
        self.raw[..length].copy_from_slice(&packet[..length]);
        self.whole = Some(length);
        self.cut = 0;
    }

    /// Room for so many packets, each of so many bytes, at most.
    pub(crate) fn room(&mut self, packets: usize, bytes: usize) -> Room<'_> {
        self.whole = None;
        self.cut = 0;
        if self.pieces.len() < packets || self.longest < bytes {
            self.make_room(packets, bytes);
        }
        Room {
            raw: &mut self.raw,
            pieces: &mut self.pieces[..packets],
            lengths: &mut self.lengths[..packets],
        }
    }

    #[cold]
    fn make_room(&mut self, packets: usize, bytes: usize) {
        let packets = packets.max(self.pieces.len());
        self.longest = self.longest.max(bytes);
        self.lengths.resize(packets, 0);
        self.pieces.resize_with(packets, Vec::new);
        for piece in &mut self.pieces {
            piece.resize(self.longest, 0);
        }
        // A packet that need not be cut may be longer than the device's were when it was opened.
        if let Some(first) = self.pieces.first_mut() {
            first.resize(LONGEST, 0);
        }
    }

    /// So many packets are in the room that was given.
    pub(crate) fn filled(&mut self, packets: usize) {
        self.cut = packets.min(self.pieces.len());
    }

    /// What was read could not be cut.
    pub(crate) fn spoilt(&mut self) {
        self.uncut += 1;
    }

    /// How often something could not be cut, since it was asked.
    pub(crate) fn take_uncut(&mut self) -> u64 {
        std::mem::take(&mut self.uncut)
    }

    /// Lets `keep` see, and change, each packet; those that it does not want are no longer there.
    pub fn retain(&mut self, mut keep: impl FnMut(&mut [u8]) -> bool) {
        if let Some(length) = self.whole
            && !keep(&mut self.raw[..length])
        {
            self.whole = None;
        }
        let pieces = self.pieces.iter_mut().zip(&mut self.lengths);
        for (piece, length) in pieces.take(self.cut) {
            let whole = (*length).min(piece.len());
            if !keep(&mut piece[..whole]) {
                *length = 0;
            }
        }
    }

    /// The packets, in order.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        let whole = self.whole.map(|length| &self.raw[..length]);
        let pieces = self.pieces.iter().zip(&self.lengths).take(self.cut);
        let pieces = pieces.filter(|(_, length)| **length > 0);
        whole.into_iter().chain(pieces.map(|(piece, length)| {
            let length = (*length).min(piece.len());
            &piece[..length]
        }))
    }
}
