"""Writes texts in all scripts and the reference's vectors of them, one JSON object a line.

    record.py MODEL SEED DIMS >FILE

DIMS first dimensions of each vector, in 1/10000. The test of internal/meaning compares its own with them.
"""
import json
import random
import sys
import unicodedata
from pathlib import Path

import reference

HERE = Path(__file__).parent
# Letters with more than one form, marks, bad order of marks, widths, and scripts that no word of the model has.
ODD = ["", " ", "\u0000", "İstanbul ISTANBUL ıspanak", "ﬁnance ofﬁce", "①②③ ½ ㎏ №", "Ｖｅｔ ＣＬＩＮＩＣ", "ｶﾀｶﾅ", "e\u0301cole école",
       "ΣΊΣΥΦΟΣ σίσυφος", "Ёлка ёлка йод", "naïve façade Übergröße", "don't l'eau", "veterinary_medicine",
       "state-of-the-art", "C++ c# .net", "ไทยหมาป่วย", "ສະບາຍດີ", "မင်္ဂလာပါ", "ជំរាបសួរ", "नमस्ते कुत्ता", "שלום כלב",
       "مرحبا كلب مريض", "გამარჯობა", "բարեւ", "ሰላም", "ᏣᎳᎩ", "𝓿𝓮𝓽", "𠀀𠀁狗", "👩‍⚕️ doctor", "ǅ ǆ", "K Å", "가각 한국어 강아지",
       "各地々々", "データベース", "ﷺ", "a" * 5000, "狗" * 2000, "é" * 3000, "dog " * 2000, "x\u0301" * 20]


def texts(model, rng):
    yield from ODD
    for name in ("development.tsv", "topics.txt"):
        for line in (HERE / name).read_text(encoding="utf-8").splitlines():
            if not line.startswith("#"):
                parts = line.split("|") if "|" in line else [line.split("\t")[-1]]
                yield from (part.strip() for part in parts)
    keys = [key.decode() for key in model.rows]
    for _ in range(400):
        words = rng.sample(keys, rng.randint(1, 8))
        yield rng.choice([" ", ", ", "", "-"]).join(rng.choice([w, w.title(), w.upper(), w + "s"]) for w in words)
    # Letters that Unicode had long ago: the tables of both languages are of different years.
    old = [chr(c) for c in range(0x20, 0x3000) if unicodedata.ucd_3_2_0.category(chr(c))[0] in "LNP"]
    for _ in range(200):
        yield "".join(rng.choice(old) for _ in range(rng.randint(1, 20)))


def main(path, seed, dims):
    model = reference.Model(Path(path).read_bytes())
    for text in texts(model, random.Random(int(seed))):
        vector, weight = model.encode(text)
        first = [] if vector is None else [round(float(value) * 10000) for value in vector[:int(dims)]]
        print(json.dumps({"text": text, "weight": round(float(weight), 3), "vector": first}, separators=(",", ":"),
                         ensure_ascii=False))


main(*sys.argv[1:])
