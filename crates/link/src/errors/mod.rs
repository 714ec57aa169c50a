//! Error models: the packets that a link corrupts and therefore loses.

mod bit_errors;
mod bursts;
mod listed;
mod packet_loss;

pub use bit_errors::BitErrors;
pub use bursts::{BurstLosses, BurstSettings};
pub use listed::Listed;
pub use packet_loss::PacketLoss;

use bentpipe_types::{Bytes, RandomStream};

/// A cause of loss on a link.
#[derive(Clone, Debug)]
pub enum ErrorModel {
    /// Independent bit errors.
    BitErrors(BitErrors),
    /// Independent packet losses.
    PacketLoss(PacketLoss),
    /// Packet losses in bursts.
    Bursts(BurstLosses),
    /// The packets with these numbers.
    Listed(Listed),
}

impl ErrorModel {
    /// Creates independent bit errors; a packet with a wrong bit is lost.
    #[must_use]
    pub fn bit_errors(rate: f64, random: RandomStream) -> Self {
        Self::BitErrors(BitErrors::new(rate, random))
    }

    /// Creates independent packet losses, for packets of any length.
    #[must_use]
    pub fn packet_loss(rate: f64, random: RandomStream) -> Self {
        Self::PacketLoss(PacketLoss::new(rate, random))
    }

    /// Creates packet losses in bursts.
    #[must_use]
    pub fn bursts(settings: BurstSettings, random: RandomStream) -> Self {
        Self::Bursts(BurstLosses::new(settings, random))
    }

    /// Creates losses of the packets with these numbers, counted from 1.
    #[must_use]
    pub fn listed_losses(packets: impl IntoIterator<Item = u64>) -> Self {
        Self::Listed(Listed::new(packets))
    }

    /// Whether the next packet, of this length on the air, is lost by any of several models. Every
    /// model processes every packet, so that one's losses do not shift another's draws.
    pub(crate) fn any_loses(models: &mut [Self], length: Bytes) -> bool {
        models
            .iter_mut()
            .fold(false, |lost, model| lost | model.loses(length))
    }

    /// Returns how many of the next bits are certain to arrive, or 0 if unknown.
    #[must_use]
    pub fn sure_bits(&self) -> u64 {
        match self {
            Self::BitErrors(model) => model.sure_bits(),
            Self::PacketLoss(_) | Self::Bursts(_) | Self::Listed(_) => 0,
        }
    }

    /// Returns how many of the next bits are certain to arrive: packets within them need not be
    /// passed to the models. Unused bits are [given back](Self::give_back) before the next packet
    /// is.
    pub(crate) fn lend(models: &mut [Self]) -> u32 {
        match models {
            [Self::BitErrors(model)] => model.lend(),
            _ => 0,
        }
    }

    /// Gives back unused bits.
    pub(crate) fn give_back(models: &mut [Self], bits: u32) {
        if let [Self::BitErrors(model)] = models {
            model.give_back(bits);
        }
    }

    /// Whether it can lose anything; otherwise it need not be called.
    pub(crate) fn ever_loses(&self) -> bool {
        match self {
            Self::BitErrors(model) => model.ever_loses(),
            Self::PacketLoss(model) => model.ever_loses(),
            Self::Bursts(_) | Self::Listed(_) => true,
        }
    }

    /// Whether the next packet, of this length on the air, is lost. Called once per packet, in
    /// order.
    pub fn loses(&mut self, length: Bytes) -> bool {
        match self {
            Self::BitErrors(model) => model.loses(length),
            Self::PacketLoss(model) => model.loses(),
            Self::Bursts(model) => model.loses(),
            Self::Listed(model) => model.loses(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ever_loses_is_false_for_loss_rates_of_zero() {
        let random = || RandomStream::new(1, "test", "errors");
        assert!(!ErrorModel::bit_errors(0.0, random()).ever_loses());
        assert!(!ErrorModel::packet_loss(0.0, random()).ever_loses());
        assert!(ErrorModel::bit_errors(1e-12, random()).ever_loses());
        assert!(ErrorModel::packet_loss(1e-12, random()).ever_loses());
        assert!(ErrorModel::listed_losses([1]).ever_loses());
    }
}
