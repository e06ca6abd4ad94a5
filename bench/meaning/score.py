"""How well a model finds the capability for each need of development.tsv: first, among ten, mean reciprocal rank.

    score.py MODEL [-v]
"""
import re
import sys
from pathlib import Path

import numpy as np

import reference


def main(path, *options):
    model = reference.Model(Path(path).read_bytes())

    def encode(text):
        vector, _ = model.encode(text)
        return np.zeros(model.dims, np.float32) if vector is None else vector
    lines = [line.split("\t") for line in
             (Path(__file__).parent / "development.tsv").read_text(encoding="utf-8").splitlines() if "\t" in line]
    names = [name for kind, name, _ in lines if kind == "C"]
    capabilities = [text for kind, _, text in lines if kind == "C"]
    vectors = np.array([encode(text) for text in capabilities])
    ranks = {"English": [], "Chinese": []}
    for kind, name, text in lines:
        if kind != "N":
            continue
        scores = vectors @ encode(text)
        rank = int((scores >= scores[names.index(name)]).sum())
        ranks["Chinese" if re.search("[\u4e00-\u9fff]", text) else "English"].append(rank)
        if options and rank > 1:
            print(f"{rank:4} {text} | {capabilities[int(scores.argmax())]}")
    for language, found in ranks.items():
        found = np.array(found)
        print(f"{language}: {len(found)} needs, {len(names)} capabilities, first {(found == 1).mean():.1%}, "
              f"among ten {(found <= 10).mean():.1%}, MRR {(1 / found).mean():.3f}")


main(*sys.argv[1:])
