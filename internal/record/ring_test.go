package record

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"testing"
)

var prime = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))

func littleEndian(n *big.Int) (p Public) {
	n.FillBytes(p[:])
	for i, j := 0, len(p)-1; i < j; i, j = i+1, j-1 {
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// Keys that are not sound are those with which anybody signs anything: the
// test does so with each, by the library that checks our signatures.
func TestSound_RefusesKeysThatSignAnything(t *testing.T) {
	t.Parallel()
	var torsion []Public
	for _, y := range smallOrder {
		minus := y
		minus[31] |= 0x80
		torsion = append(torsion, y, minus)
	}
	for _, y := range []int64{0, 1} { // the same, spelt above the prime
		p := littleEndian(new(big.Int).Add(prime, big.NewInt(y)))
		torsion = append(torsion, p)
	}
	for _, pub := range torsion {
		forged := false
		for n := byte(0); n < 64 && !forged; n++ { // R = -k·A is one of eight
			for _, r := range torsion {
				sig := append(bytes.Clone(r[:]), make([]byte, 32)...) // S = 0
				forged = forged || ed25519.Verify(pub[:], []byte{'x', n}, sig)
			}
		}
		if !forged {
			t.Errorf("%x signs nothing: it is in the list by mistake", pub)
		}
		if isSound(pub) {
			t.Errorf("%x is sound", pub)
		}
	}
	for n := int64(0); n < 19; n++ {
		if isSound(littleEndian(new(big.Int).Add(prime, big.NewInt(n)))) {
			t.Errorf("the prime and %d is sound", n)
		}
	}
	for _, good := range []*big.Int{big.NewInt(2), new(big.Int).Sub(prime, big.NewInt(2)), new(big.Int).Lsh(big.NewInt(127), 248)} {
		if !isSound(littleEndian(good)) {
			t.Errorf("%x is not sound", good)
		}
	}
	for range 100 {
		pub, _, err := ed25519.GenerateKey(rand.Reader)
		if err != nil || !isSound(Public(pub)) {
			t.Fatalf("%x, %v", pub, err)
		}
	}
}

func TestDigests_HaveLabels(t *testing.T) {
	t.Parallel()
	pub := Public{1, 2, 3}
	d := sha256.Sum256(append([]byte("agentsite/portal/1"), pub[:]...))
	id := PortalOf(pub)
	if got, ok := id.Digest(); !ok || got != d || len(id) != 54 || id[:2] != "p1" {
		t.Errorf("%s, %x", id, got)
	}
	if k := AgentKey("x"); k != sha256.Sum256([]byte("agentsite/k/agentx")) {
		t.Errorf("%x", k)
	}
	keys := CapKeys("NLP/Translation/De")
	if len(keys) != 3 || keys[0] != sha256.Sum256([]byte("agentsite/k/capnlp/translation/de")) || keys[2] != sha256.Sum256([]byte("agentsite/k/capnlp")) {
		t.Errorf("%x", keys)
	}
	for _, bad := range []PortalID{"", "p1", id[:53], id + "a", "a1" + id[2:], "P1" + id[2:], id[:53] + "\n", id[:2] + "\n" + id[3:], id[:53] + "8"} {
		if _, ok := bad.Digest(); ok {
			t.Errorf("%q is an id", bad)
		}
	}
	if AgentID(id, "x") != string(id)+"/x" || AgentID(id, PortableID(pub)) != PortableID(pub) {
		t.Error("agents' ids")
	}
}

func TestHash_TextIsOneSpelling(t *testing.T) {
	t.Parallel()
	h := Hash(sha256.Sum256(nil))
	text, _ := h.MarshalText()
	var back Hash
	if err := back.UnmarshalText(text); err != nil || back != h || len(text) != 43 {
		t.Fatalf("%s, %v", text, err)
	}
	last := bytes.Clone(text)
	last[42]++ // sets bits that no byte has
	for _, bad := range [][]byte{nil, text[:42], append(bytes.Clone(text), '='), append(bytes.Clone(text[:42]), '\n'), last, bytes.ToUpper(text[:41])} {
		if back.UnmarshalText(bad) == nil {
			t.Errorf("%q is a hash", bad)
		}
	}
}
