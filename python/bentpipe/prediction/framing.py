"""Lengths of packets with a link's framing."""

from __future__ import annotations

from typing import Final

# IEEE 802.3: header and check sequence, preamble and gap; the shortest payload of a frame.
_ETHERNET_BYTES: Final = 18 + 20
_SHORTEST_PAYLOAD: Final = 46
# RFC 1662, and RFC 1661 sections 6.5 and 6.6.
_FIXED_BYTES: Final = {"none": 0, "ppp": 7, "ppp-compressed": 4}
# Cells of a transport stream: bytes in all, and without their header; the pointer of a cell in
# which a packet begins; bytes around a packet (EN 301 192 section 7.1, RFC 4326 section 4).
_CELL: Final = 188
_CELL_PAYLOAD: Final = 184
_POINTER: Final = 1
_CELL_BYTES: Final = {"mpe": 16, "ule": 14}
# TS 102 606-1 section 4.2: around a packet, and longest packet in one GSE packet.
_GSE_BYTES: Final = 10
_GSE_LONGEST: Final = 4087


def framed_bytes(framing: str | int, packet_bytes: float) -> float:
    """Return the bytes that a packet takes with a framing of `[links.NAME]`.

    With packing, it is the share of the cells in a long row of such packets, without the padding
    at the end of cells: no packet takes less.
    """
    if isinstance(framing, int):
        return packet_bytes + framing
    if framing in _FIXED_BYTES:
        return packet_bytes + _FIXED_BYTES[framing]
    if framing == "ethernet":
        return max(packet_bytes, _SHORTEST_PAYLOAD) + _ETHERNET_BYTES
    if framing == "gse":
        if packet_bytes <= _GSE_LONGEST:
            return packet_bytes + _GSE_BYTES
        # 4084 bytes in the first fragment, 4094 in each other with the CRC-32 of 4 bytes.
        others = -(-(packet_bytes + 4 - 4084) // 4094)
        return packet_bytes + 13 + 3 * others + 4
    encapsulation, _, padding = framing.partition("-")
    unit = packet_bytes + _CELL_BYTES[encapsulation]
    if padding:
        return _CELL * -(-(unit + _POINTER) // _CELL_PAYLOAD)
    # A pointer for each packet, or for each cell if packets are shorter than that.
    return min((unit + _POINTER) / _CELL_PAYLOAD, unit / (_CELL_PAYLOAD - _POINTER)) * _CELL
