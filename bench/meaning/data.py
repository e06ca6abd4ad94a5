"""The words of a model while it is made, and the bytes of the finished one."""
import struct

import numpy as np
import scipy.sparse as sparse

import reference


class Lexicon(reference.Model):
    """Divides texts as the finished model does, into numbers of its keys."""

    def __init__(self, keys):
        self.rows = {key.encode(): i for i, key in enumerate(keys)}

    def bags(self, texts):
        row, column, share = [], [], []
        for i, text in enumerate(texts):
            for key, weight in self.pieces(text):
                row.append(i)
                column.append(self.rows[key])
                share.append(weight)
        return sparse.csr_matrix((np.array(share, np.float32), (row, column)), (len(texts), len(self.rows)))


def quantize(rows):
    """Four bits a value and one scale a row, the one of a few that loses least."""
    spread = np.maximum(np.sqrt((rows ** 2).mean(1)), 1e-8)
    loss, scales, values = np.full(len(rows), np.inf), None, None
    for part in (0.22, 0.26, 0.30, 0.34, 0.38, 0.42):
        scale = (((spread * part).astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)
        step = (scale.astype(np.uint32) << 16).view(np.float32)[:, None]
        value = np.clip(np.rint(rows / step + 7.5), 0, 15)
        lost = (((value - 7.5) * step - rows) ** 2).sum(1)
        value = value.astype(np.uint8)
        if scales is None:
            scales, values = scale.copy(), value.copy()
        better = lost < loss
        loss[better], scales[better], values[better] = lost[better], scale[better], value[better]
    return scales, values


def table(keys):
    keys = [key.encode() for key in keys]
    if keys != sorted(set(keys)):
        raise ValueError("keys are not sorted or not unique")
    return np.cumsum([len(key) for key in keys]).astype("<u4").tobytes() + b"".join(keys)


def pack(name, keys, rows, mixed, parts, shares):
    scales, values = quantize(rows.astype(np.float32))
    return b"".join([
        reference.MAGIC,
        struct.pack("<4I", rows.shape[1], len(keys), len(mixed), len(name)),
        name.encode(),
        table(keys),
        table(mixed),
        scales.astype("<u2").tobytes(),
        (values[:, 0::2] | values[:, 1::2] << 4).tobytes(),
        parts.astype("<u2").tobytes(),
        np.clip(np.rint(shares * 128), 0, 255).astype(np.uint8).tobytes(),
    ])
