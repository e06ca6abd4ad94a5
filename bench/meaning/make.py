"""Makes internal/meaning/model.bin from published models and lists. See README.md for its sources and licences.

    make.py SOURCES CACHE OUT

SOURCES is the folder with the unpacked packages (bench/meaning/run fills it). CACHE keeps the vectors of the
teachers, which take most of the time. One thread, so that sums are in one order.
"""
import os
import re
import sys
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np  # noqa: E402
import scipy.sparse as sparse  # noqa: E402

import data  # noqa: E402
import sources  # noqa: E402

HERE = Path(__file__).parent
DIMS, RARITY, GLOSSES, PARTS = 256, 3e-5, 26000, 4
NAME = "agentsite-meaning-1"


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def rarity(scores):
    """The weight of a word by its logarithmic frequency: near zero for function words."""
    return (RARITY / (RARITY + np.exp(np.array(scores))))[:, None]


class Trainer:
    """Moves the vectors of words by gradients of unit sums of them (Adagrad with one rate a word)."""

    def __init__(self, rows, rate=0.003):
        self.rows, self.seen, self.rate = rows, np.full(len(rows), 1e-8, np.float32), rate

    def forward(self, bags):
        sums = bags @ self.rows
        size = np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-6)
        return sums / size, size

    def backward(self, bags, units, size, gradient):
        sums = (gradient - (gradient * units).sum(1, keepdims=True) * units) / size
        words = np.unique(bags.indices)
        change = bags[:, words].T @ sums
        self.seen[words] += (change * change).mean(1)
        self.rows[words] -= self.rate * change / np.sqrt(self.seen[words])[:, None]

    def imitate(self, bags, targets):
        """Towards the teacher's vectors of sentences."""
        units, size = self.forward(bags)
        self.backward(bags, units, size, -targets / len(targets))

    def contrast(self, left, right, heat=0.05):
        """Row i of left towards row i of right and away from its other rows."""
        (a, asize), (b, bsize) = self.forward(left), self.forward(right)
        known = (asize[:, 0] > 1e-4) & (bsize[:, 0] > 1e-4)
        left, right, a, b, asize, bsize = left[known], right[known], a[known], b[known], asize[known], bsize[known]
        scores = a @ b.T / heat
        rows = np.exp(scores - scores.max(1, keepdims=True))
        columns = np.exp(scores - scores.max(0, keepdims=True))
        slope = rows / rows.sum(1, keepdims=True) + columns / columns.sum(0, keepdims=True)
        slope = (slope - 2 * np.eye(len(scores))) / (2 * len(scores) * heat)
        slope = slope.astype(np.float32)
        self.backward(sparse.vstack([left, right]).tocsr(), np.concatenate([a, b]), np.concatenate([asize, bsize]),
                      np.concatenate([slope @ b, slope.T @ a]))


class Topics:
    """Texts of the subjects in topics.txt: a few phrases of one kind at a time."""

    def __init__(self, lexicon, random):
        self.random, phrases, self.at = random, [], []
        for topic in sources.topics():
            self.at.append([])
            for kind in topic:
                self.at[-1].append(np.arange(len(phrases), len(phrases) + len(kind)))
                phrases += kind
        self.bags = lexicon.bags(phrases)

    def draw(self, kind):
        chosen = []
        for kinds in self.at:
            count = min(len(kinds[kind]), self.random.integers(1, 4))
            chosen.append(self.random.choice(kinds[kind], size=count, replace=False))
        rows = np.repeat(np.arange(len(chosen)), [len(c) for c in chosen])
        phrases = np.concatenate(chosen)
        ones = np.ones(len(phrases), np.float32)
        return sparse.csr_matrix((ones, (rows, phrases)), (len(chosen), self.bags.shape[0])) @ self.bags

    def pair(self):
        """The profession in one language and its customers' words in either, or the profession in the other."""
        left = 0 if self.random.random() < 0.7 else 2
        right = 1 if self.random.random() < 0.6 else (3 if self.random.random() < 0.8 else 2 - left)
        return self.draw(left), self.draw(right)


def main(folder, cache, out):
    src = sources.Sources(Path(folder), Path(cache))
    english, further, foreign, glosses = src.words(), src.further_words(), src.foreign(), src.glosses()[:GLOSSES]
    chinese = [k for k in foreign if re.fullmatch("[\u4e00-\u9fff]+", k)]
    others = [k for k in foreign if k not in set(chinese) | set(further)]

    # 1. Each English word through the teacher, its 256 strongest directions, weighted by rarity.
    minilm = np.concatenate([src.minilm("words", english, len(english)), src.minilm("further", further)])
    english += further
    scores = [src.score(k) for k in english]
    centre = minilm[:len(english) - len(further)].mean(0)
    spread = minilm[:len(english) - len(further)] - centre
    turn = np.linalg.eigh(spread.T @ spread)[1][:, ::-1][:, :DIMS]
    trainer = Trainer(((minilm - centre) @ turn * rarity(scores)).astype(np.float32))

    # 2. Sums of words learn to imitate the teacher's vectors of glosses.
    random = np.random.default_rng(1)
    teacher = src.minilm("glosses", glosses)
    targets = unit((teacher - teacher.mean(0)) @ turn).astype(np.float32)
    bags = data.Lexicon(english).bags(glosses)
    for _ in range(2):
        for chosen in np.array_split(random.permutation(len(glosses)), len(glosses) // 256):
            trainer.imitate(bags[chosen], targets[chosen])
    rows = trainer.rows

    # 3. Chinese words enter the space through a model that has both languages: by a linear map, and by their
    #    nearest English words.
    use = np.concatenate([src.use("words", english[:-len(further)]), src.use("further", further)])
    use_foreign = src.use("foreign", foreign, 128)
    place = {k: i for i, k in enumerate(foreign)}
    use_chinese = use_foreign[[place[k] for k in chinese]]
    middle = use[:len(english) - len(further)].mean(0)
    frequent = np.array(scores) > -13
    known = use[frequent] - middle
    linear = np.linalg.solve(known.T @ known + 5 * np.eye(known.shape[1]), known.T @ unit(rows)[frequent])
    length = np.median(np.linalg.norm(rows[frequent], axis=1) / rarity(scores)[frequent, 0])
    nouns = np.where((np.array(scores) > -13.5) & (np.array([len(k) for k in english]) > 2))[0]

    def nearest(vectors):
        near, share = [], []
        for i in range(0, len(vectors), 2000):
            like = unit(vectors[i:i + 2000] - middle) @ unit(use[nouns] - middle).T
            best = np.argpartition(-like, PARTS, axis=1)[:, :PARTS]
            best = np.take_along_axis(best, np.argsort(-np.take_along_axis(like, best, 1), axis=1, kind="stable"), 1)
            near.append(nouns[best])
            share.append(np.exp(np.take_along_axis(like, best, 1) / 0.05))
        share = np.concatenate(share)
        return np.concatenate(near), share / share.sum(1, keepdims=True)

    near, share = nearest(use_chinese)
    mapped = unit(unit(np.einsum("nk,nkd->nd", share, unit(rows)[near])) + unit((use_chinese - middle) @ linear))
    mapped *= length * rarity([src.score(k) for k in chinese])

    # 4. The words of trades and of their customers move together; glosses hold the rest in place.
    keys = sorted(english + chinese, key=str.encode)
    at = {k: i for i, k in enumerate(keys)}
    rows_of_english = np.array([at[k] for k in english])
    start = np.zeros((len(keys), DIMS), np.float32)
    start[rows_of_english] = rows
    start[[at[k] for k in chinese]] = mapped
    lexicon, trainer = data.Lexicon(keys), Trainer(start)
    topics, bags = Topics(lexicon, random), lexicon.bags(glosses)
    for _ in range(120):
        trainer.contrast(*topics.pair())
        chosen = random.choice(len(glosses), 256)
        trainer.imitate(bags[chosen], targets[chosen])
    rows = trainer.rows / length

    # 5. Words of other languages are mixtures of their nearest English words, with the weight of their own rarity.
    others.sort(key=str.encode)
    near, share = nearest(use_foreign[[place[k] for k in others]])
    near = rows_of_english[near]
    size = np.linalg.norm(np.einsum("nk,nkd->nd", share, rows[near]), axis=1)
    share *= np.minimum(rarity([src.score(k) for k in others])[:, 0] / np.maximum(size, 1e-6), 1.9)[:, None]

    Path(out).write_bytes(data.pack(NAME, keys, rows, others, near, share))


if __name__ == "__main__":
    main(*sys.argv[1:])
