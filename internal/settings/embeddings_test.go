package settings

import (
	"strings"
	"testing"
)

func TestParseEmbeddings(t *testing.T) {
	for _, tt := range []struct {
		set, key string
		private  bool
		want     Embedder
		says     string
	}{
		{"", "", false, Embedder{}, ""},
		{"http://127.0.0.1:11434/v1/, nomic", "", false, Embedder{URL: "http://127.0.0.1:11434/v1", Model: "nomic"}, ""},
		{"https://api.example.com/v1,a,b", "sk-1", true,
			Embedder{URL: "https://api.example.com/v1", Model: "a,b", Key: "sk-1", Private: true}, ""},
		{"", "sk-secret", false, Embedder{}, "--embeddings"},
		{"", "", true, Embedder{}, "--embeddings"},
		{"http://127.0.0.1/v1", "", false, Embedder{}, "name the model"},
		{"nomic", "", false, Embedder{}, "no address"},
		{"127.0.0.1:11434/v1,nomic", "", false, Embedder{URL: "http://127.0.0.1:11434/v1", Model: "nomic"}, ""},
		{"ftp://x/v1,m", "", false, Embedder{}, "no address"},
		{"https://u:sk-secret@x/v1,m", "", false, Embedder{}, "--embeddings-key"},
		{"https://x/v1?a=1,m", "", false, Embedder{}, "query"},
		{"https://x/v1/embeddings,m", "", false, Embedder{}, "without /embeddings"},
		{"https://x/v1,m", "sk-\nsecret", false, Embedder{}, "--embeddings-key"},
		{"http://8.8.8.8/v1,m", "sk-secret", false, Embedder{}, "use https"},
	} {
		got, err := Config{Embeddings: tt.set, EmbeddingsKey: tt.key, EmbeddingsPrivate: tt.private}.parseEmbeddings()
		switch {
		case tt.says == "" && (err != nil || got != tt.want):
			t.Errorf("%q: %+v %v", tt.set, got, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q %q: %+v %v", tt.set, tt.key, got, err)
		}
	}
}
