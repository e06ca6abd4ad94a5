package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"agentsite/peering/kademlia/wire"
)

var update = flag.Bool("update", false, "write the vectors anew")

func id(b byte) (id wire.ID) {
	for i := range id {
		id[i] = b
	}
	return id
}

func marks(s wire.Salt, nodes ...string) (out []uint32) {
	for _, n := range nodes {
		out = append(out, s.Mark([]byte(n)))
	}
	return out
}

// vector is a message in testdata, for those who write another codec.
type vector struct {
	Name     string         `json:"name"`
	Hex      string         `json:"hex"`
	Request  *wire.Request  `json:"request,omitempty"`
	Response *wire.Response `json:"response,omitempty"`
}

func messages() []vector {
	return []vector{
		{Name: "ping", Request: &wire.Request{Kind: wire.Ping}},
		{Name: "find_node", Request: &wire.Request{Kind: wire.FindNode, From: []byte("signed"), Targets: []wire.ID{id(1)}}},
		{Name: "find_node of one who has three", Request: &wire.Request{Kind: wire.FindNode, From: []byte("signed"), Targets: []wire.ID{id(1)}, Salt: wire.Salt{1, 2, 3, 4, 5, 6, 7, 8}, Have: marks(wire.Salt{1, 2, 3, 4, 5, 6, 7, 8}, "signed", "too", "")}},
		{Name: "get of two keys", Request: &wire.Request{Kind: wire.Get, Targets: []wire.ID{id(1), id(2)}}},
		{Name: "store", Request: &wire.Request{Kind: wire.Store, Records: []wire.Record{{Key: id(3), Value: []byte("one")}, {Key: id(4), Value: []byte{}}}}},
		{Name: "store that asks for nodes", Request: &wire.Request{Kind: wire.Store, Targets: []wire.ID{id(3)}, Records: []wire.Record{{Key: id(3), Value: []byte("one")}}}},
		{Name: "pong", Response: &wire.Response{}},
		{Name: "nodes", Response: &wire.Response{Self: []byte("me"), Nodes: []wire.Node{{ID: id(5), Node: []byte("signed")}, {ID: id(6), Node: []byte("too")}}}},
		{Name: "nodes of which one is known", Response: &wire.Response{Nodes: []wire.Node{{ID: id(5)}, {ID: id(6), Node: []byte("signed")}}}},
		{Name: "values", Response: &wire.Response{Nodes: []wire.Node{{ID: id(5), Node: []byte("signed")}}, Found: [][][]byte{{[]byte("a"), []byte("b")}, nil}}},
		{Name: "codes", Response: &wire.Response{Codes: []wire.Code{wire.Stored, wire.Invalid, wire.Old, wire.Full, wire.TooFar}}},
	}
}

func (v *vector) encode() []byte {
	if v.Request != nil {
		return wire.AppendRequest(nil, v.Request)
	}
	return wire.AppendResponse(nil, v.Response)
}

func (v *vector) decode(b []byte) (any, any, error) {
	if v.Request != nil {
		r, err := wire.DecodeRequest(b)
		return r, v.Request, err
	}
	r, err := wire.DecodeResponse(b)
	return r, v.Response, err
}

func TestVectors(t *testing.T) {
	const file = "testdata/vectors.json"
	if *update {
		all := messages()
		for i := range all {
			all[i].Hex = hex.EncodeToString(all[i].encode())
		}
		b, _ := json.MarshalIndent(all, "", "  ")
		if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	if want := messages(); len(all) != len(want) {
		t.Fatalf("%d vectors, want %d", len(all), len(want))
	}
	for i, v := range messages() {
		if got := hex.EncodeToString(v.encode()); got != all[i].Hex {
			t.Errorf("%s: %s, want %s", v.Name, got, all[i].Hex)
		}
		b, _ := hex.DecodeString(all[i].Hex)
		if got, want, err := v.decode(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v (%v)", v.Name, got, want, err)
		}
	}
}

func TestDecode_RefusesWhatIsCutOrTooLong(t *testing.T) {
	for _, v := range messages() {
		b := v.encode()
		for n := range b {
			if _, _, err := v.decode(b[:n]); !errors.Is(err, wire.ErrMalformed) {
				t.Errorf("%s, its first %d bytes: %v", v.Name, n, err)
			}
		}
		if _, _, err := v.decode(append(b, 0)); !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s, and a byte: %v", v.Name, err)
		}
	}
}

func TestDecode_SaysWhatIsWrong(t *testing.T) {
	long := make([]byte, wire.MaxBytes+1)
	copy(long, []byte{1, 1})
	value := func(n int) []byte {
		return append(append([]byte{1, byte(wire.Store), 0, 0, 0, 1}, make([]byte, 32)...), byte(n>>8), byte(n))
	}
	for _, c := range []struct {
		name string
		b    []byte
		want string
	}{
		{"nothing", nil, "version"},
		{"a long contact", []byte{1, byte(wire.Ping), 2, 0}, "at most 350"},
		{"another version", []byte{3, 1, 0, 0}, "version 3"},
		{"version zero", []byte{0, 1, 0, 0}, "version 0"},
		{"the version with marks, and none", append([]byte{2, byte(wire.Ping), 0, 0, 0, 0}, make([]byte, 9)...), "no marks"},
		{"half a salt", []byte{2, byte(wire.Ping), 0, 0, 0, 0, 1, 2, 3}, "ends within its salt"},
		{"too many marks", append([]byte{2, byte(wire.Ping), 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 33}, make([]byte, 33*4)...), "at most 32"},
		{"marks that are not there", []byte{2, byte(wire.Ping), 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 1, 2, 3, 4}, "ends within its marks"},
		{"an unknown kind", []byte{1, 9, 0, 0}, "kind 9"},
		{"a ping for a key", append([]byte{1, 1, 0, 0, 1}, make([]byte, 33)...), "ping"},
		{"find_node without a target", []byte{1, byte(wire.FindNode), 0, 0, 0, 0}, "one target"},
		{"get of nothing", []byte{1, byte(wire.Get), 0, 0, 0, 0}, "one target or more"},
		{"store of nothing", []byte{1, byte(wire.Store), 0, 0, 0, 0}, "one record or more"},
		{"too many targets", append([]byte{1, byte(wire.Get), 0, 0, 65}, make([]byte, 66*32)...), "at most 64"},
		{"a count that lies", []byte{1, byte(wire.Get), 0, 0, 64, 0}, "ends within its targets"},
		{"a value that is too long", append(value(wire.MaxValueBytes+1), make([]byte, wire.MaxValueBytes+1)...), "at most 16384"},
		{"a value that is not there", value(9), "ends within a value"},
		{"a long message", long, "at most 262144"},
	} {
		if _, err := wire.DecodeRequest(c.b); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
	if _, err := wire.DecodeResponse([]byte{1, 0, 0, 0, 0, 1, 99}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("an unknown code: %v", err)
	}
	if _, err := wire.DecodeResponse([]byte{2, 0, 0, 0, 0, 0}); !errors.Is(err, wire.ErrMalformed) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("a response of the version of requests: %v", err)
	}
}

// FuzzDecode reads anything: what is read is written as the same bytes again.
func FuzzDecode(f *testing.F) {
	for _, v := range messages() {
		f.Add(v.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := wire.DecodeRequest(b); err == nil && !bytes.Equal(wire.AppendRequest(nil, r), b) {
			t.Errorf("request %x is written otherwise", b)
		}
		if r, err := wire.DecodeResponse(b); err == nil && !bytes.Equal(wire.AppendResponse(nil, r), b) {
			t.Errorf("response %x is written otherwise", b)
		}
	})
}

func BenchmarkDecodeResponse(b *testing.B) {
	r := &wire.Response{}
	for i := range 20 {
		r.Nodes = append(r.Nodes, wire.Node{ID: id(byte(i)), Node: make([]byte, 200)})
	}
	msg := wire.AppendResponse(nil, r)
	b.ReportAllocs()
	b.SetBytes(int64(len(msg)))
	for b.Loop() {
		if _, err := wire.DecodeResponse(msg); err != nil {
			b.Fatal(err)
		}
	}
}
