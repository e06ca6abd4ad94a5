package plaintext

import (
	"strings"

	"golang.org/x/text/language"
)

// IsMediaType reports whether s has the form of a media type, of at most 100 bytes.
func IsMediaType(s string) bool {
	kind, sub, ok := strings.Cut(s, "/")
	return ok && kind != "" && sub != "" && len(s) <= 100 && !strings.ContainsAny(s, " ,<>\"'")
}

// IsLanguageTag reports whether s is a well-formed BCP 47 tag of at most 35 bytes.
func IsLanguageTag(s string) bool {
	_, err := language.Parse(s)
	return err == nil && len(s) <= 35
}
