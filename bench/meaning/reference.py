"""The Python reference of internal/meaning: one text in, one unit vector out.

The Go encoder has to give the same vectors within rounding. Change neither
alone.
"""
import struct
import unicodedata

import numpy as np

MAGIC = b"meaning1"
MAX_BYTES = 4096     # of a text; the rest is not read
MAX_PIECES = 256     # of a text; the rest is not read
MAX_SPAN = 8         # runes of one piece in a script without spaces
PARTS = 4            # vectors in a mixture
MIN_PIECE = 3        # bytes of a piece of an unknown word
PIECE_WEIGHT = 0.5   # a piece of an unknown word counts half

SPACELESS = ((0x3005, 0x3007), (0x3041, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
             (0xF900, 0xFAFF), (0x20000, 0x3FFFF), (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))


def normalize(text):
    """Compatibility forms, lower case, and no accents of Latin, Greek or Cyrillic."""
    text = "".join(c.lower()[0] for c in unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFC", "".join(c for c in text if not 0x300 <= ord(c) <= 0x36F))


def spaceless(c):
    return any(low <= ord(c) <= high for low, high in SPACELESS)


def runs(text):
    """Runs of letters, digits and marks, each of one kind: (spaceless, run)."""
    run, kind = "", False
    for c in text + " ":
        letter = unicodedata.category(c)[0] in "LNM"
        now = letter and spaceless(c)
        if run and (not letter or now != kind):
            yield kind, run
            run = ""
        if letter:
            run, kind = run + c, now


def cut(text):
    data = text.encode("utf-8", "replace")[:MAX_BYTES]
    return data.decode("utf-8", "ignore")


def table(data, at, count):
    """The keys of a table, sorted by their bytes, and the offset behind it."""
    ends = np.frombuffer(data, "<u4", count, at)
    at += 4 * count
    starts = np.concatenate(([0], ends[:-1]))
    keys = [data[at + start:at + end] for start, end in zip(starts, ends)]
    return keys, at + (int(ends[-1]) if count else 0)


class Model:
    def __init__(self, data):
        if data[:8] != MAGIC:
            raise ValueError("not a model")
        self.dims, own, mixed, size = struct.unpack("<4I", data[8:24])
        self.name, at = data[24:24 + size].decode(), 24 + size
        own_keys, at = table(data, at, own)
        mixed_keys, at = table(data, at, mixed)
        scales = np.frombuffer(data, "<u2", own, at)
        at += 2 * own
        nibbles = np.frombuffer(data, np.uint8, own * self.dims // 2, at).reshape(own, -1)
        at += own * self.dims // 2
        parts = np.frombuffer(data, "<u2", mixed * PARTS, at).reshape(mixed, PARTS)
        at += 2 * mixed * PARTS
        shares = np.frombuffer(data, np.uint8, mixed * PARTS, at).reshape(mixed, PARTS)
        if at + mixed * PARTS != len(data):
            raise ValueError("not the length of its parts")
        steps = (scales.astype(np.uint32) << 16).view(np.float32)
        values = np.empty((own, self.dims), np.float32)
        values[:, 0::2], values[:, 1::2] = nibbles & 15, nibbles >> 4
        values = (values - 7.5) * steps[:, None]
        self.rows = dict(zip(own_keys, values))
        for key, part, share in zip(mixed_keys, parts, shares):
            self.rows[key] = values[part].T @ (share.astype(np.float32) / 128)

    def pieces(self, text):
        """(piece, weight) of a text, in order."""
        found = []
        for kind, run in runs(normalize(cut(text))):
            whole = run.encode()
            if not kind and whole in self.rows:
                found.append((whole, 1.0))
                continue
            i = 0
            while i < len(run):
                longest = MAX_SPAN if kind else 24
                for end in range(min(len(run), i + longest), i, -1):
                    piece = run[i:end].encode()
                    if piece in self.rows and (kind or len(piece) >= MIN_PIECE):
                        found.append((piece, 1.0 if kind else PIECE_WEIGHT))
                        i = end
                        break
                else:
                    i += 1
        return found[:MAX_PIECES]

    def encode(self, text):
        total, weight = np.zeros(self.dims, np.float32), np.float32(0)
        for piece, share in self.pieces(text):
            row = self.rows[piece] * np.float32(share)
            total += row
            weight += np.float32(np.linalg.norm(row))
        size = np.linalg.norm(total)
        if size < 1e-6:
            return None, weight
        return total / size, weight
