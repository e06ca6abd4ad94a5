package erasure

import (
	"strings"
	"sync"

	"agentsite/internal/ident"
)

// reservedPrefix begins the reserved form of a name. No chosen name has it.
const reservedPrefix = "~"

// Reserve makes the reserved forms of names: keyed hashes, from which only the portal can find the name again by
// guessing. It is safe for concurrent use.
type Reserve struct{ keys func() (*ident.Keys, error) }

// NewReserve returns a Reserve with the key of the portal with a data folder. The key is read when it is first needed.
func NewReserve(dir string) *Reserve {
	return &Reserve{sync.OnceValues(func() (*ident.Keys, error) { return ident.LoadSealKey(dir) })}
}

// Form returns the reserved form of a name; the name itself if that is one.
func (r *Reserve) Form(name string) (string, error) {
	if strings.HasPrefix(name, reservedPrefix) {
		return name, nil
	}
	keys, err := r.keys()
	if err != nil {
		return "", err
	}
	return reservedPrefix + keys.Mark("name of an erased account", name), nil
}
