//! Error models: which packets a link corrupts, and so loses.

mod bit_errors;
mod bursts;
mod listed;
mod packet_loss;

pub use bit_errors::BitErrors;
pub use bursts::{BurstLosses, BurstSettings};
pub use listed::Listed;
pub use packet_loss::PacketLoss;

use bentpipe_types::{Bytes, RandomStream};

/// One cause of loss on a link.
#[derive(Clone, Debug)]
pub enum ErrorModel {
    /// Independent bit errors.
    BitErrors(BitErrors),
    /// Independent packet losses.
    PacketLoss(PacketLoss),
    /// Packet losses in bursts.
    Bursts(BurstLosses),
    /// Just these packets.
    Listed(Listed),
}

impl ErrorModel {
    /// Each bit is wrong with probability `rate`; a packet with a wrong bit is lost.
    #[must_use]
    pub fn bit_errors(rate: f64, random: RandomStream) -> Self {
        Self::BitErrors(BitErrors::new(rate, random))
    }

    /// Each packet is lost with probability `rate`, whatever its length.
    #[must_use]
    pub fn packet_loss(rate: f64, random: RandomStream) -> Self {
        Self::PacketLoss(PacketLoss::new(rate, random))
    }

    /// Packets are lost in bursts.
    #[must_use]
    pub fn bursts(settings: BurstSettings, random: RandomStream) -> Self {
        Self::Bursts(BurstLosses::new(settings, random))
    }

    /// The packets with these numbers, counted from 1, are lost.
    #[must_use]
    pub fn listed(packets: impl IntoIterator<Item = u64>) -> Self {
        Self::Listed(Listed::new(packets))
    }

    /// Is the next packet, of this length on the air, lost to any of several? Every model sees every packet, so
    /// that one's losses don't shift another's draws.
    pub(crate) fn any_loses(models: &mut [Self], length: Bytes) -> bool {
        models
            .iter_mut()
            .fold(false, |lost, model| lost | model.loses(length))
    }

    /// So many of the next bits arrive, whatever packets they are in; 0 where that is not known.
    #[must_use]
    pub fn sure_bits(&self) -> u64 {
        match self {
            Self::BitErrors(model) => model.sure_bits(),
            Self::PacketLoss(_) | Self::Bursts(_) | Self::Listed(_) => 0,
        }
    }

    /// How many of the next bits arrive, whatever packets they are in: packets within them need not be shown to the
    /// models. Those that were not needed are [given back](Self::give_back) before another packet is.
    pub(crate) fn lend(models: &mut [Self]) -> u32 {
        match models {
            [Self::BitErrors(model)] => model.lend(),
            _ => 0,
        }
    }

    /// Gives back what is left of what was lent.
    pub(crate) fn give_back(models: &mut [Self], bits: u32) {
        if let [Self::BitErrors(model)] = models {
            model.give_back(bits);
        }
    }

    /// Does it ever lose anything? Another need not be asked.
    pub(crate) fn ever_loses(&self) -> bool {
        match self {
            Self::BitErrors(model) => model.ever_loses(),
            Self::PacketLoss(model) => model.ever_loses(),
            Self::Bursts(_) | Self::Listed(_) => true,
        }
    }

    /// Is the next packet, of this length on the air, lost? Called once per packet, in order.
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
    fn what_never_loses_anything_is_known_beforehand() {
        let random = || RandomStream::new(1, "test", "errors");
        assert!(!ErrorModel::bit_errors(0.0, random()).ever_loses());
        assert!(!ErrorModel::packet_loss(0.0, random()).ever_loses());
        assert!(ErrorModel::bit_errors(1e-12, random()).ever_loses());
        assert!(ErrorModel::packet_loss(1e-12, random()).ever_loses());
        assert!(ErrorModel::listed([1]).ever_loses());
    }
}
