package settings

import (
	"fmt"
	"net/url"
	"strings"

	"agentsite/internal/weborigin"
)

// Embedder is a server with a model for embeddings. The zero Embedder is none.
type Embedder struct {
	URL     string // base of its API
	Model   string
	Key     string
	Private bool // texts of conversations and goals go there too
}

// parseEmbeddings parses the settings of the operator's server of embeddings. Loopback and private addresses are
// allowed, because the operator chose the address.
func (c Config) parseEmbeddings() (e Embedder, err error) {
	const example = "write it like http://127.0.0.1:11434/v1,nomic-embed-text"
	if c.Embeddings == "" {
		if c.EmbeddingsKey != "" || c.EmbeddingsPrivate {
			return e, fmt.Errorf("--embeddings-key and --embeddings-private: say for which server with --embeddings; " +
				example)
		}
		return e, nil
	}
	address, model, _ := strings.Cut(c.Embeddings, ",")
	address = weborigin.CompleteAddress(weborigin.ReadName(strings.TrimRight(strings.TrimSpace(address), "/")))
	model = strings.TrimSpace(model)
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return e, fmt.Errorf("--embeddings: is no address and model; " + example)
	case u.User != nil:
		return e, fmt.Errorf("--embeddings: leave user and password out and give the key with --embeddings-key")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(u.Path, "/embeddings"):
		return e, fmt.Errorf("--embeddings: give the base of the API, usually ending in /v1, without /embeddings, " +
			"query or fragment")
	case model == "" || len(model) > 200 || strings.ContainsFunc(model, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return e, fmt.Errorf("--embeddings: name the model after a comma; " + example)
	case strings.ContainsFunc(c.EmbeddingsKey, func(r rune) bool { return r <= ' ' || r > '~' }):
		return e, fmt.Errorf("--embeddings-key: a key has no spaces, line breaks or special letters")
	case c.EmbeddingsKey != "" && u.Scheme == "http" && !nearHost(u.Hostname()):
		return e, fmt.Errorf("--embeddings %q: the key would go over the network in plain text; use https", address)
	}
	return Embedder{URL: address, Model: model, Key: c.EmbeddingsKey, Private: c.EmbeddingsPrivate}, nil
}
