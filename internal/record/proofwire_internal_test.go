package record

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gowebpki/jcs"
)

func TestProof_ShortWayIsTheLongOne(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	key := func() (h Hash) {
		for i := range h {
			h[i] = byte(rng.Uint32())
		}
		return h
	}
	for size := range 40 {
		var tree Tree
		keys := []Hash{key(), key(), key()}
		for range size {
			k := key()
			tree.Set(k, key())
			keys = append(keys, k)
		}
		for _, k := range keys {
			p := tree.Prove(k)
			plain, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			want, err := jcs.Transform(plain)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Encode()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("wrote %s, want %s", got, want)
			}
			read, err := ParseProof(got)
			if err != nil || !reflect.DeepEqual(read, p) {
				t.Fatalf("read %+v, want %+v (%v)", read, p, err)
			}
			short, ok := readInclusion(got)
			if ok != (p.Leaf != nil) || ok && !reflect.DeepEqual(short, p) {
				t.Fatalf("the short way reads %+v, %v", short, ok)
			}
			// Whatever else it reads, the long way reads as well.
			for range 50 {
				bent := bytes.Clone(got)
				switch at := rng.IntN(len(bent)); rng.IntN(3) {
				case 0:
					bent[at] = "{}[]\",:lr_Az \\"[rng.IntN(14)]
				case 1:
					bent = append(bent[:at], bent[at+1:]...)
				case 2:
					bent = append(bent, bent[at:]...)
				}
				short, ok := readInclusion(bent)
				if !ok {
					continue
				}
				var long Proof
				if err := Canonical(bent); err != nil {
					t.Fatalf("%s: %v", bent, err)
				}
				if err := json.Unmarshal(bent, &long); err != nil || !reflect.DeepEqual(&long, short) {
					t.Fatalf("%s: %v", bent, err)
				}
			}
		}
	}
}
