// Package embedtest has a server of embeddings for tests. Its model is the one in the binary with another number of
// dimensions, other cosines, and words of its own.
package embedtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentsite/internal/meaning"
)

// Server answers POST /v1/embeddings. Its methods may be called at any time.
type Server struct {
	model *meaning.Model

	mu      sync.Mutex // guards the following fields
	dims    int
	turned  bool
	down    bool
	words   map[string]string
	longest int
	asked   []string
	calls   int
}

// Dims is the number of dimensions of the vectors at first.
const Dims = 300

// New returns a server whose model takes each word of the given map for the text that belongs to it.
func New(t testing.TB, words map[string]string) *Server {
	t.Helper()
	m, err := meaning.Open()
	if err != nil {
		t.Fatal(err)
	}
	return &Server{model: m, dims: Dims, words: words, longest: 1 << 20}
}

// SetDown decides whether requests are refused with 503.
func (s *Server) SetDown(down bool) { s.change(func() { s.down = down }) }

// SetDims changes the number of dimensions, which is at least that of the model in the binary and one more.
func (s *Server) SetDims(dims int) { s.change(func() { s.dims = dims }) }

// SetTurned decides whether the vectors are those of another model: the same in other axes.
func (s *Server) SetTurned(turned bool) { s.change(func() { s.turned = turned }) }

// SetLongest sets the size in bytes from which a text is refused.
func (s *Server) SetLongest(bytes int) { s.change(func() { s.longest = bytes }) }

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Asked returns all texts of which vectors were asked for, and the number of requests.
func (s *Server) Asked() (texts []string, calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), s.calls
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" ||
		json.NewDecoder(r.Body).Decode(&body) != nil || body.Model == "" {
		http.Error(w, `{"error":{"message":"no such thing"}}`, http.StatusNotFound)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.down {
		http.Error(w, `{"error":{"message":"no room"}}`, http.StatusServiceUnavailable)
		return
	}
	s.asked = append(s.asked, body.Input...)
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i, text := range body.Input {
		if text == "" || len(text) > s.longest {
			http.Error(w, `{"error":{"message":"the text has a wrong size"}}`, http.StatusBadRequest)
			return
		}
		data = append(data, item{i, s.encode(text)})
	}
	slices.Reverse(data) // the index says to which text a vector belongs
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

// encode returns a vector of length 3. All have one component in common, so that cosines of unrelated texts are high.
func (s *Server) encode(text string) []float32 {
	var words []string
	for _, word := range strings.Fields(text) {
		if other, ok := s.words[word]; ok {
			word = other
		}
		words = append(words, word)
	}
	v := s.model.Encode(strings.Join(words, " "))
	out := make([]float32, s.dims)
	out[0] = 2
	for i, f := range v {
		at := 1 + i
		if s.turned {
			at = meaning.Dims - i
		}
		out[at] = 2.236 * f
	}
	return out
}
