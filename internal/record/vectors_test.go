package record_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"testing"
	"time"

	"agentsite/internal/record"
	"agentsite/internal/testing/recordtest"
)

var update = flag.Bool("update", false, "write testdata/vectors.json anew")

const vectorFile = "testdata/vectors.json"

// vectors is the file that other implementations test themselves with.
type vectors struct {
	Network string       `json:"network"`
	Now     int64        `json:"now"`
	Keys    []vectorKey  `json:"keys"`
	Good    []vector     `json:"good"`
	Bad     []vector     `json:"bad"`
	Trees   []treeVector `json:"trees"`
}

type vectorKey struct {
	Name   string          `json:"name"`
	Seed   string          `json:"seed"` // hex
	Pub    record.Public   `json:"pub"`
	ID     record.KeyID    `json:"id"`
	Portal record.PortalID `json:"portal,omitempty"` // of root keys
	Agent  string          `json:"agent,omitempty"`  // of agents' keys
}

type vector struct {
	Name string `json:"name"`
	// After names the good records that were admitted before.
	After  []string      `json:"after,omitempty"`
	At     int64         `json:"at,omitempty"`     // when, if not now
	Wire   string        `json:"wire,omitempty"`   // an envelope
	Binary string        `json:"binary,omitempty"` // a contact, or what is not UTF-8; base64url
	Reason record.Reason `json:"reason,omitempty"` // of the refusal
	// What a good one comes to.
	Type    record.Type `json:"type,omitempty"`
	Payload string      `json:"payload,omitempty"` // of an envelope
	Hash    string      `json:"hash,omitempty"`
	About   string      `json:"about,omitempty"` // of its slot
}

func (v vector) bytes(t *testing.T) []byte {
	t.Helper()
	if v.Binary == "" {
		return []byte(v.Wire)
	}
	b, err := base64.RawURLEncoding.DecodeString(v.Binary)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

type treeVector struct {
	Leaves []vectorLeaf  `json:"leaves"`
	Root   record.Hash   `json:"root"`
	Proofs []vectorProof `json:"proofs,omitempty"`
}

type vectorLeaf struct {
	Key  record.Hash `json:"key"`
	Hash record.Hash `json:"hash"`
}

type vectorProof struct {
	// Says is "included", "absent", or "nothing" of a proof that proves
	// neither.
	Says  string          `json:"says"`
	Proof json.RawMessage `json:"proof"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectors_AreWhatIsMadeHere(t *testing.T) { // before the others, which read what it may write
	b, err := json.MarshalIndent(makeVectors(t), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(vectorFile, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(vectorFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, b) {
		t.Error("the format changed: that breaks every other portal. If it must, run go test ./internal/record -run Vectors -update")
	}
}

func TestVectors_GoodAreAdmitted(t *testing.T) {
	t.Parallel()
	file := readVectors(t)
	byName := map[string]vector{}
	for _, v := range file.Good {
		byName[v.Name] = v
		mem := new(recordtest.Memory)
		g, err := record.NewGate(file.Network, mem)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range v.After {
			if _, _, err := g.Admit(t.Context(), byName[name].bytes(t), time.UnixMilli(file.Now)); err != nil {
				t.Fatal(err)
			}
		}
		r, fresh, err := g.Admit(t.Context(), v.bytes(t), time.UnixMilli(file.Now))
		if err != nil || !fresh {
			t.Errorf("%s: fresh %v, %v", v.Name, fresh, err)
			continue
		}
		if r.Type != v.Type || r.Hash.String() != v.Hash || r.Slot().About != v.About {
			t.Errorf("%s is %s of %q, %s", v.Name, r.Type, r.Slot().About, r.Hash)
		}
		payload := []byte(v.Payload)
		if v.Type == record.TypeContact {
			payload = v.bytes(t)[:len(v.bytes(t))-ed25519.SignatureSize]
		}
		if sum := record.Hash(sha256.Sum256(pae(file.Network, string(v.Type), payload))); sum.String() != v.Hash {
			t.Errorf("%s: the payload has the hash %s", v.Name, sum)
		}
	}
}

func TestVectors_BadAreRefusedForTheirReason(t *testing.T) {
	t.Parallel()
	file := readVectors(t)
	good := map[string]vector{}
	for _, v := range file.Good {
		good[v.Name] = v
	}
	seen := map[record.Reason]bool{record.NotConsistent: true} // of logs, not of records
	for _, v := range file.Bad {
		g, err := record.NewGate(file.Network, new(recordtest.Memory))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range v.After {
			if _, ok := good[name]; !ok {
				t.Fatalf("%s: there is no %q", v.Name, name)
			}
			_, _, err := g.Admit(t.Context(), good[name].bytes(t), time.UnixMilli(file.Now))
			if err != nil {
				t.Fatalf("%s, before: %s: %v", v.Name, name, err)
			}
		}
		at := file.Now
		if v.At != 0 {
			at = v.At
		}
		_, fresh, err := g.Admit(t.Context(), v.bytes(t), time.UnixMilli(at))
		if fresh || record.ReasonOf(err) != v.Reason || v.Reason == "" {
			t.Errorf("%s: fresh %v, %v; want %s", v.Name, fresh, err, v.Reason)
		}
		seen[v.Reason] = true
	}
	for _, why := range reasons(t) {
		if !seen[why] {
			t.Errorf("no bad record is refused as %q", why)
		}
	}
	if len(file.Bad) < 40 {
		t.Errorf("only %d bad records", len(file.Bad))
	}
}

func TestVectors_Trees(t *testing.T) {
	t.Parallel()
	said := map[string]int{}
	for i, v := range readVectors(t).Trees {
		var tree record.Tree
		for _, l := range v.Leaves {
			tree.Set(l.Key, l.Hash)
		}
		if tree.Root() != v.Root {
			t.Errorf("tree %d has the root %s", i, tree.Root())
		}
		for j, pv := range v.Proofs {
			says := "nothing"
			var form bytes.Buffer
			if err := json.Compact(&form, pv.Proof); err != nil {
				t.Fatal(err)
			}
			if p, err := record.ParseProof(form.Bytes()); err == nil {
				switch {
				case p.Leaf != nil && p.Included(v.Root, p.Leaf.Hash):
					says = "included"
				case p.Absent(v.Root):
					says = "absent"
				}
			}
			if said[says]++; says != pv.Says {
				t.Errorf("tree %d, proof %d says %s, want %s", i, j, says, pv.Says)
			}
		}
	}
	if said["included"] == 0 || said["absent"] == 0 || said["nothing"] < 5 {
		t.Errorf("too few proofs: %v", said)
	}
}

// reasons reads the reasons from where they are declared.
func reasons(t *testing.T) []record.Reason {
	t.Helper()
	src, err := os.ReadFile("refused.go")
	if err != nil {
		t.Fatal(err)
	}
	var list []record.Reason
	for _, m := range regexp.MustCompile(`Reason += "(\w+)"`).FindAllSubmatch(src, -1) {
		list = append(list, record.Reason(m[1]))
	}
	if len(list) < 20 {
		t.Fatalf("only %d reasons found", len(list))
	}
	return list
}

func makeKeys() []vectorKey {
	var list []vectorKey
	for _, name := range []string{"one root", "one op", "two root", "two op", "agent"} {
		key := recordtest.Key(name)
		pub := record.PublicOf(key)
		k := vectorKey{Name: name, Seed: hex.EncodeToString(key.Seed()), Pub: pub, ID: record.KeyIDOf(pub)}
		switch {
		case name == "agent":
			k.Agent = record.PortableID(pub)
		case name[4:] == "root":
			k.Portal = record.PortalOf(pub)
		}
		list = append(list, k)
	}
	return list
}
