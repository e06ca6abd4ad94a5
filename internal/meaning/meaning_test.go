package meaning

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func open(t testing.TB) *Model {
	t.Helper()
	model, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return model
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func TestEncodeFindsSubjects(t *testing.T) {
	model := open(t)
	subjects := []string{
		"Small animal veterinarian", "Plumbing repairs", "Income tax preparation", "Machine translation of documents",
		"Weather forecasts", "Criminal defence attorney",
	}
	for need, want := range map[string]int{
		"my puppy has a fever":                          0,
		"我的小狗发烧了":                                       0,
		"mi perro tiene fiebre":                         0,
		"water is dripping under my sink":               1,
		"厨房漏水":                                          1,
		"how much do I owe the government on my salary": 2,
		"what does this letter in German say":           3,
		"do I need an umbrella tomorrow":                4,
		"明天会下雨吗":                                        4,
		"the police arrested my brother":                5,
	} {
		query, best := model.Encode(need), 0
		for i := range subjects {
			if dot(query, model.Encode(subjects[i])) > dot(query, model.Encode(subjects[best])) {
				best = i
			}
		}
		if best != want {
			t.Errorf("%q is nearest to %q", need, subjects[best])
		}
	}
}

func TestEncodeReturnsNothingForNoWords(t *testing.T) {
	model := open(t)
	for _, text := range []string{"", " \n", "?!…", "qzxv jkwp", "\xff\xfe", "🂡"} {
		if vector, weight := model.EncodeWeighted(text); vector != nil || weight != 0 {
			t.Errorf("%q has a vector, and weight %v", text, weight)
		}
	}
}

func TestWeightIsThatOfWordsWithMeaning(t *testing.T) {
	model := open(t)
	_, few := model.EncodeWeighted("the of and")
	_, many := model.EncodeWeighted("veterinarian plumber lawyer")
	if few > 1 || many < 2 {
		t.Errorf("weights: %v without meaning, %v with", few, many)
	}
}

// FuzzEncode feeds texts of peers.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{"", "my puppy", "我的小狗发烧了", "\xe6\x88", "İﬁ½", "e\u0301", strings.Repeat("가", 40)} {
		f.Add(text)
	}
	model := open(f)
	f.Fuzz(func(t *testing.T, text string) {
		if part := cutText(text); len(part) > maxTextBytes || utf8.ValidString(text) && !utf8.ValidString(part) {
			t.Errorf("cut to %q", part)
		}
		vector, weight := model.EncodeWeighted(text)
		if weight < 0 || math.IsNaN(float64(weight)) {
			t.Errorf("weight %v", weight)
		}
		if vector == nil {
			return
		}
		if size := dot(vector, vector); math.Abs(size-1) > 1e-4 {
			t.Errorf("squared length %v", size)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	model := open(b)
	for name, text := range map[string]string{
		"query":   "water is dripping under my sink and I need a plumber today",
		"chinese": "厨房水槽下面漏水，今天能来修吗",
		"hostile": strings.Repeat("aab", maxTextBytes/3),
		"marks":   strings.Repeat("é\u0323", maxTextBytes/4),
		"long":    strings.Repeat("veterinary plumbing ", maxTextBytes/20),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				model.Encode(text)
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		open(b)
	}
}

func TestChecksumOfData(t *testing.T) {
	page, err := os.ReadFile("MODEL.md")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(embedded))); !strings.Contains(string(page), sum) {
		t.Errorf("MODEL.md has another checksum than %s", sum)
	}
}

func TestReadRefusesDamagedData(t *testing.T) {
	for _, data := range []string{
		"", "meaning2" + embedded[8:], embedded[:len(embedded)-1], embedded + "x", embedded[:20], embedded[:40],
		embedded[:12] + "\xff\xff\xff\xff" + embedded[16:],
	} {
		if _, err := read(data); err == nil {
			t.Errorf("read %d damaged bytes", len(data))
		}
	}
}
