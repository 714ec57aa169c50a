"""The asymmetric path of every model: one downlink, one uplink, sizes of packets.

Symbols are those of obata2000, section 2 and table 1. A server sends data over a (satellite)
downlink of rate Q_sat and delay tau_sat. The client's ACKs use a (terrestrial) uplink of rate Q_ter
and delay tau_ter.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import (
    BITS_PER_BYTE,
    FloatArray,
    at_least,
    common_shape,
    non_negative,
    positive,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True, eq=False)
class AsymmetricPath:
    """A path with different links in the two directions; every field broadcasts.

    Fields accept anything numpy turns into an array and are stored as float64 arrays
    (0-dimensional for plain numbers). Compare paths field by field: there is no `==`.

    Parameters
    ----------
    downlink_rate_bps : array_like
        Q_sat, bits per second on the wire from server to client. Above 0.
    uplink_rate_bps : array_like
        Q_ter, bits per second on the wire from client to server. Above 0.
    downlink_delay_s : array_like
        tau_sat, one-way propagation delay of the downlink in seconds.
    uplink_delay_s : array_like
        tau_ter, one-way propagation delay of the uplink in seconds.
    segment_payload_bytes : array_like, default 1448
        d_seg, application bytes in one full segment (table 1).
    header_bytes : array_like, default 52
        d_head, bytes of TCP and IP header in front of every segment (table 1).
    ack_bytes : array_like, default 52
        d_ack, bytes of one ACK on the uplink (table 1).
    redundancy : array_like, default 1
        alpha, wire bits sent per bit of packet on the downlink; the paper's VSAT adds one bit to
        every 15, so 16/15 (equation 5'). At least 1.

    Raises
    ------
    ValueError
        When a field is outside its range or the shapes do not broadcast together.
    """

    downlink_rate_bps: ArrayLike
    uplink_rate_bps: ArrayLike
    downlink_delay_s: ArrayLike
    uplink_delay_s: ArrayLike
    segment_payload_bytes: ArrayLike = 1448.0
    header_bytes: ArrayLike = 52.0
    ack_bytes: ArrayLike = 52.0
    redundancy: ArrayLike = 1.0

    def __post_init__(self) -> None:
        checked: dict[str, FloatArray] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_delay_s") or field.name == "header_bytes":
                checked[field.name] = non_negative(field.name, value)
            elif field.name == "redundancy":
                checked[field.name] = at_least(field.name, positive(field.name, value), 1.0)
            else:
                checked[field.name] = positive(field.name, value)
        common_shape(checked)
        for name, array in checked.items():
            object.__setattr__(self, name, array)

    def _array(self, name: str) -> FloatArray:
        return np.asarray(getattr(self, name), dtype=np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape to which all fields broadcast."""
        return common_shape({field.name: self._array(field.name) for field in fields(self)})

    @property
    def payload_bits(self) -> FloatArray:
        """d_seg in bits."""
        return self._array("segment_payload_bytes") * BITS_PER_BYTE

    @property
    def packet_bits(self) -> FloatArray:
        """P = d_seg + d_head in bits, without redundancy."""
        header_bits = self._array("header_bytes") * BITS_PER_BYTE
        return self.payload_bits + header_bits

    @property
    def packet_time_s(self) -> FloatArray:
        """Seconds that one full segment occupies the downlink: alpha P / Q_sat."""
        return self._array("redundancy") * self.packet_bits / self._array("downlink_rate_bps")

    @property
    def ack_time_s(self) -> FloatArray:
        """Seconds that one ACK occupies the uplink: d_ack / Q_ter."""
        return self._array("ack_bytes") * BITS_PER_BYTE / self._array("uplink_rate_bps")

    @property
    def propagation_s(self) -> FloatArray:
        """Both propagation delays together, tau = tau_sat + tau_ter, seconds."""
        return self._array("downlink_delay_s") + self._array("uplink_delay_s")

    @property
    def round_trip_s(self) -> FloatArray:
        """Unloaded round trip of one full segment and its immediate ACK, seconds."""
        return self.propagation_s + self.packet_time_s + self.ack_time_s

    @property
    def capacity_bps(self) -> FloatArray:
        """The highest rate of application bits on the downlink: Q_sat d_seg / (alpha P).

        Full segments only reach it; no prediction in this package exceeds it.
        """
        return self.payload_bits / self.packet_time_s

    def round_trip_or(self, given_s: ArrayLike | None) -> ArrayLike:
        """Return the given round trip, or else the unloaded one, in seconds."""
        return self.round_trip_s if given_s is None else given_s

    def goodput_bps(self, segment_rate: FloatArray) -> FloatArray:
        """Return the goodput of a rate of full segments, in application bits per second.

        At most the downlink's capacity.
        """
        return np.minimum(segment_rate * self.payload_bits, self.capacity_bps)

    @property
    def asymmetry(self) -> FloatArray:
        """k, ACK time over packet time: the normalised asymmetry of Lakshman, Madhow, Suter 1997.

        Above 1 (above 2 when every second segment is acknowledged) the uplink is the slower one.
        """
        return self.ack_time_s / self.packet_time_s
