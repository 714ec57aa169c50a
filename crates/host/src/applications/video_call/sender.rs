//! Sending half of one end of a video call: encoder and shaping buffer.

use std::collections::VecDeque;

use bentpipe_types::{Span, Time};

use super::VideoCallSettings;
use crate::Datagram;
use crate::nada::Sender;

/// Shortest packet: the RTP header (RFC 3550 section 5.1) and a datagram's own number.
const LEAST_PACKET: u16 = 12 + Datagram::LEAST;

/// A packet in the shaping buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapedPacket {
    pub(super) frame: u64,
    /// Index in the frame.
    pub(super) index: u8,
    /// Number of packets of the frame.
    pub(super) of: u8,
    pub(super) bytes: u16,
}

/// Encoder and shaping buffer of one end.
#[derive(Debug)]
pub(super) struct VideoSender {
    start: Time,
    interval: Span,
    frames: u64,
    /// Number of the next frame to be encoded.
    next_frame: u64,
    next_sequence: u64,
    pub(super) rate: Sender,
    frames_per_second: f64,
    /// Shaping buffer, and its length in bytes.
    buffer: VecDeque<ShapedPacket>,
    buffered: u64,
    /// Earliest time of the next packet.
    next_packet: Time,
    /// Fraction of a byte by which frames were shorter than the rate allows.
    remainder: f64,
}

impl VideoSender {
    pub(super) fn new(start: Time, frames: u64, settings: &VideoCallSettings) -> Self {
        Self {
            start,
            interval: settings.interval(),
            frames,
            next_frame: 0,
            next_sequence: 0,
            rate: Sender::new(settings.least_rate, settings.most_rate),
            frames_per_second: f64::from(settings.frame_rate),
            buffer: VecDeque::new(),
            buffered: 0,
            next_packet: start,
            remainder: 0.0,
        }
    }

    /// Returns the time at which the next frame is encoded.
    pub(super) fn next_capture(&self) -> Option<Time> {
        let is_left = self.next_frame < self.frames;
        is_left.then(|| self.start + self.interval * self.next_frame)
    }

    /// Returns the time of the next frame or packet.
    pub(super) fn next(&self) -> Option<Time> {
        let packet = (!self.buffer.is_empty()).then_some(self.next_packet);
        [self.next_capture(), packet].into_iter().flatten().min()
    }

    /// Encodes a frame into the shaping buffer.
    pub(super) fn encode(&mut self, datagram: u16) {
        let rate = self
            .rate
            .encoder_rate(self.buffered, self.frames_per_second);
        let bytes = rate / 8.0 / self.frames_per_second + self.remainder;
        self.remainder = bytes - bytes.floor();
        let bytes = (bytes as u64).max(u64::from(LEAST_PACKET));
        let most = VideoCallSettings::MOST_PACKETS;
        let of = bytes.div_ceil(u64::from(datagram)).clamp(1, most);
        for index in 0..of {
            // Packets of equal length, in whole bytes.
            let share = bytes * (index + 1) / of - bytes * index / of;
            let share = share.clamp(u64::from(LEAST_PACKET), u64::from(datagram)) as u16;
            self.buffered += u64::from(share);
            self.buffer.push_back(ShapedPacket {
                frame: self.next_frame,
                index: index as u8,
                of: of as u8,
                bytes: share,
            });
        }
        self.next_frame += 1;
    }

    /// Removes the next packet from the shaping buffer. Returns it and its sequence number.
    pub(super) fn send(&mut self, now: Time) -> Option<(ShapedPacket, u64)> {
        let rate = self
            .rate
            .sending_rate(self.buffered, self.frames_per_second);
        let packet = self.buffer.pop_front()?;
        self.buffered -= u64::from(packet.bytes);
        let lasts = Span::from_secs_f64(f64::from(packet.bytes) * 8.0 / rate);
        self.next_packet = now + lasts;
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Some((packet, sequence))
    }
}
