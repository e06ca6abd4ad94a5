package meaning

import (
	"bufio"
	"encoding/json"
	"flag"
	"math"
	"os"
	"testing"
)

// bench/nightly makes a file with all dimensions of other random texts.
var referenceFile = flag.String("reference", "testdata/reference.jsonl", "vectors of bench/meaning/record.py")

func TestEncodeEqualsReference(t *testing.T) {
	model := open(t)
	file, err := os.Open(*referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	compared := 0
	for lines.Scan() {
		var want struct {
			Text   string
			Weight float64
			Vector []float64 // its first dimensions, in 1/10000
		}
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		vector, weight := model.EncodeWeighted(want.Text)
		if (vector == nil) != (len(want.Vector) == 0) || math.Abs(float64(weight)-want.Weight) > 1e-3*(1+want.Weight) {
			t.Errorf("%.80q: weight %v instead of %v", want.Text, weight, want.Weight)
			continue
		}
		for i, value := range want.Vector {
			if got := float64(vector[i]) * 10000; math.Abs(got-value) > 2 {
				t.Errorf("%.80q: dimension %d is %.1f instead of %v", want.Text, i, got, value)
				break
			}
		}
		compared++
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if compared < 1000 {
		t.Errorf("compared %d texts, too few", compared)
	}
}
