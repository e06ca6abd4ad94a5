package embedding

import (
	"errors"
	"unicode/utf8"
)

// Models differ in the cosines that they give to related and to unrelated texts: one has 0.1 for unrelated ones,
// another 0.8. The bounds of a search are those of the model in the binary, so the cosines of another are brought to
// its scale, by pairs of a need and a profile that fits it.

// pairs are needs and profiles that fit them. None fits another's.
var pairs = [][2]string{
	{"my puppy has a fever", "Veterinarian. Treats illnesses of dogs and cats."},
	{"water is dripping under my sink", "Plumber. Repairs leaking pipes and taps."},
	{"what do I owe the state this year", "Tax adviser. Prepares income tax returns."},
	{"turn this letter into Spanish", "Translator between English and Spanish."},
	{"find the bug in my program", "Software engineer. Reviews and debugs code."},
	{"I cannot fall asleep at night", "Sleep coach. Helps with insomnia."},
	{"plan a week in Lisbon for two", "Travel agent. Trips, hotels and flights."},
	{"my landlord wants to throw me out", "Lawyer for tenants and rental law."},
	{"something quick with rice and beans", "Cook. Suggests recipes for what is in the kitchen."},
	{"will it be wet tomorrow", "Weather forecasts for every place."},
	{"teach my daughter fractions", "Tutor for mathematics at school."},
	{"the car makes a strange noise", "Garage mechanic. Inspects and repairs engines."},
	{"a picture for the cover of my novel", "Illustrator. Draws book covers."},
	{"how can I run faster", "Athletics trainer. Training plans for runners."},
	{"我的牙很疼", "Dentist. Treats toothache and caries."},
	{"帮我写一首歌", "Composer. Writes songs and melodies."},
}

// minGap is the least difference between the mean cosines of related and unrelated texts, minFirst the share of
// needs to which their own profile must be nearest, for a model to be of use.
const (
	minGap   = 0.03
	minFirst = 0.6
)

var errUseless = errors.New("its vectors do not tell related texts from unrelated ones: is this a model for " +
	"embeddings of sentences?")

// probeTexts returns the texts of all pairs: needs, then profiles. The first is that of header.Mark.
func probeTexts() []string {
	var needs, profiles []string
	for _, p := range pairs {
		needs, profiles = append(needs, p[0]), append(profiles, p[1])
	}
	return append(needs, profiles...)
}

// measureCosines returns the mean cosines of related and of unrelated texts, given the vectors of probeTexts, and the
// share of needs to which their own profile is nearest. Texts without a vector are left out.
func measureCosines(vectors [][]float32) (related, unrelated, first float64) {
	n := len(pairs)
	var same, other, firsts int
	for i, need := range vectors[:n] {
		if need == nil || vectors[n+i] == nil {
			continue
		}
		own, isFirst := float64(dotProduct(need, vectors[n+i])), true
		for k, profile := range vectors[n:] {
			if k == i || profile == nil {
				continue
			}
			c := float64(dotProduct(need, profile))
			isFirst = isFirst && own > c
			unrelated += c
			other++
		}
		related += own
		same++
		if isFirst {
			firsts++
		}
	}
	if same == 0 || other == 0 {
		return 0, 0, 0
	}
	return related / float64(same), unrelated / float64(other), float64(firsts) / float64(same)
}

// calibrateCosines returns by which line the cosines of a model are brought to the scale of encode. An error means that
// the model is of no use.
func calibrateCosines(vectors [][]float32, encode func(string) []float32) (gain, shift float32, err error) {
	related, unrelated, first := measureCosines(vectors)
	if related-unrelated < minGap || first < minFirst {
		return 0, 0, errUseless
	}
	var built [][]float32
	for _, text := range probeTexts() {
		built = append(built, encode(text))
	}
	wanted, base, _ := measureCosines(built)
	g := (wanted - base) / (related - unrelated)
	return float32(g), float32(base - g*unrelated), nil
}

func dotProduct(a, b []float32) (sum float32) {
	for i, f := range a {
		sum += f * b[i]
	}
	return sum
}

// cutHalf returns the first half of a text, without part of a rune at the end.
func cutHalf(text string) string {
	end := len(text) / 2
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
