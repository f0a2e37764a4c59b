"""HdrHistogram's V2 codec, read by its published description and by no library.

So that a histogram of the lab that only its own library can read is found out.
"""

import base64
import struct
import zlib

COMPRESSED, PLAIN = 0x1C849314, 0x1C849313
HEADER = struct.Struct(">iiiiqqd")  # cookie, length, offset, figures, lowest, highest, ratio
SHAPE = (0, 3, 1, 600_000_000, 1.0)  # microseconds, 1 to ten minutes, three figures
HALF_BITS = 10  # of the 2048 sub-buckets that three figures take, one half


class Histogram:
    """The counts of a histogram by the lowest value and the width of each bucket."""

    def __init__(self, text):
        raw = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", raw)
        assert cookie == COMPRESSED and length == len(raw) - 8, (hex(cookie), length, len(raw))
        plain = zlib.decompress(raw[8:])
        cookie, length, *shape = HEADER.unpack_from(plain)
        assert cookie == PLAIN and length == len(plain) - HEADER.size and tuple(shape) == SHAPE, (hex(cookie), length, shape)
        self.buckets = [(*bucket(index), count) for index, count in counts(plain[HEADER.size :])]
        self.total = sum(count for _, _, count in self.buckets)

    def at_rank(self, rank):
        """The most that the value of that rank, from 1, can have been."""
        seen = 0
        for low, width, count in self.buckets:
            seen += count
            if seen >= rank:
                return low + width - 1
        raise AssertionError(f"rank {rank} of {self.total}")

    def mean(self):
        return sum((low + width // 2) * count for low, width, count in self.buckets) / self.total

    def least(self):
        return self.buckets[0][0]

    def most(self):
        low, width, _ = self.buckets[-1]
        return low + width - 1


def counts(payload):
    """Index and count of each bucket that is not empty; a negative number skips as many."""
    index, at = 0, 0
    while at < len(payload):
        number, at = zigzag(payload, at)
        if number < 0:
            index -= number
            continue
        if number:
            yield index, number
        index += 1


def zigzag(data, at):
    """A signed number of seven bits a byte, lowest first; a ninth byte has eight."""
    number, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        if shift == 56:
            number |= byte << shift
            break
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (number >> 1) ^ -(number & 1), at


def bucket(index):
    """The lowest value of a bucket and how many values it stands for."""
    half = 1 << HALF_BITS
    if index < 2 * half:
        return index, 1
    octave = (index >> HALF_BITS) - 1
    return (index % half + half) << octave, 1 << octave
