//! Packets that one read of a device returns.

/// Upper bound for one read: the longest packet, and the kernel's header before it.
const LONGEST: usize = (1 << 16) + 64;

/// The result of one read of a device: one packet, or many that were read together. The buffer is
/// reused, so that reading does not allocate.
#[derive(Debug)]
pub struct Batch {
    /// The bytes that were read.
    raw: Vec<u8>,
    /// Length of the packet in `raw`, if it is a single one.
    whole: Option<usize>,
    /// Packets that the bytes read were split into, and the length of each.
    pieces: Vec<Vec<u8>>,
    lengths: Vec<usize>,
    /// Longest packet that fits.
    longest: usize,
    cut: usize,
    /// Number of reads that could not be split into packets.
    uncut: u64,
}

/// Buffers for a device that splits its reads into packets.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    /// Buffer for the bytes read.
    pub(crate) raw: &'a mut [u8],
    /// Buffers for the packets.
    pub(crate) pieces: &'a mut [Vec<u8>],
    /// Lengths of the packets.
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
    /// Makes this a batch of one packet, truncated to the longest possible packet.
    pub fn put(&mut self, packet: &[u8]) {
        let length = packet.len().min(self.raw.len());
        self.raw[..length].copy_from_slice(&packet[..length]);
        self.whole = Some(length);
        self.cut = 0;
    }

    /// Provides buffers for `packets` packets of at most `bytes` bytes each.
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
        // An unsplit packet may be longer than the device's MTU was when it was opened.
        if let Some(first) = self.pieces.first_mut() {
            first.resize(LONGEST, 0);
        }
    }

    /// Sets the number of packets that were written into the buffers.
    pub(crate) fn filled(&mut self, packets: usize) {
        self.cut = packets.min(self.pieces.len());
    }

    /// Records that the bytes read could not be split.
    pub(crate) fn spoilt(&mut self) {
        self.uncut += 1;
    }

    /// Returns and resets the number of reads that could not be split.
    pub(crate) fn take_uncut(&mut self) -> u64 {
        std::mem::take(&mut self.uncut)
    }

    /// Calls `keep` with each packet, which may modify it; removes packets for which it returns
    /// false.
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

    /// Returns the packets in order.
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
