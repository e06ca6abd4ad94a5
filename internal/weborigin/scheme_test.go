package weborigin

import (
	"slices"
	"testing"
)

func TestWithScheme(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       {""},
		"https://a.example/x":    {"https://a.example/x"},
		"http://a.example":       {"http://a.example"},
		"ftp://a.example":        {"ftp://a.example"},
		"a.example":              {"https://a.example"},
		"a.example:8080/mcp":     {"https://a.example:8080/mcp"},
		"192.168.0.7/v1":         {"https://192.168.0.7/v1"},
		"localhost:11434":        {"https://localhost:11434", "http://localhost:11434"},
		"127.0.0.1/v1":           {"https://127.0.0.1/v1", "http://127.0.0.1/v1"},
		"[::1]:80":               {"https://[::1]:80", "http://[::1]:80"},
		"localhost@evil.example": {"https://localhost@evil.example"},
		"%zz":                    {"https://%zz"},
	} {
		if got := WithScheme(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestCompleteAddress(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"http://a.example/v1": "http://a.example/v1",
		"a.example/v1":        "https://a.example/v1",
		"127.0.0.1:8095":      "http://127.0.0.1:8095",
		"localhost:11434/v1":  "http://localhost:11434/v1",
		"[::1]:80":            "http://[::1]:80",
		"192.168.0.7:8095/v1": "https://192.168.0.7:8095/v1",
		"javascript:alert(1)": "javascript:alert(1)",
		"mailto:a@b.example":  "mailto:a@b.example",
		"/v1":                 "/v1",
		"%zz":                 "%zz",
		"ftp://a.example":     "ftp://a.example",
		"word":                "word",
		"word/v1":             "word/v1",
		"ollama:11434":        "https://ollama:11434",
		"localhost":           "http://localhost",
		"[::1]":               "http://[::1]",
	} {
		if got := CompleteAddress(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
