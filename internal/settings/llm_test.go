package settings

import (
	"strings"
	"testing"

	"agentsite/agentruntime/prompt"
)

func TestParseLLM(t *testing.T) {
	for _, tt := range []struct {
		url, key, model string
		want            prompt.Model
		says            string
	}{
		{"http://127.0.0.1:11434/v1", "", "llama3", prompt.Model{URL: "http://127.0.0.1:11434/v1", Name: "llama3"}, ""},
		{"http://localhost:1234/v1/", "sk-1", "m", prompt.Model{URL: "http://localhost:1234/v1", Key: "sk-1", Name: "m"}, ""},
		{"https://api.example.com/v1", "sk-1", "m", prompt.Model{URL: "https://api.example.com/v1", Key: "sk-1", Name: "m"}, ""},
		{"http://10.0.0.7/v1", "", "m", prompt.Model{URL: "http://10.0.0.7/v1", Name: "m"}, ""},
		{"", "", "m", prompt.Model{}, "--llm-url"},
		{"", "sk-secret", "", prompt.Model{}, "--llm-key"},
		{"http://127.0.0.1/v1", "", "", prompt.Model{}, "--llm-model"},
		{"ftp://x/v1", "", "m", prompt.Model{}, "--llm-url"},
		{"127.0.0.1:11434", "", "m", prompt.Model{}, "--llm-url"},
		{"https://u:sk-secret@x/v1", "", "m", prompt.Model{}, "--llm-key"},
		{"https://x/v1?key=sk-secret", "", "m", prompt.Model{}, "without query"},
		{"https://x/v1/chat/completions", "", "m", prompt.Model{}, "leave /chat/completions out"},
		{"http://litellm:4000/v1", "sk-1", "m", prompt.Model{URL: "http://litellm:4000/v1", Key: "sk-1", Name: "m"}, ""},
		{"http://[fd00::1]/v1", "sk-1", "m", prompt.Model{URL: "http://[fd00::1]/v1", Key: "sk-1", Name: "m"}, ""},
		{"http://8.8.8.8/v1", "sk-secret", "m", prompt.Model{}, "use https"},
		{"http://example.com/v1", "sk-secret", "m", prompt.Model{}, "use https"},
		{"https://x/v1", "sk-\nsecret", "m", prompt.Model{}, "--llm-key"},
		{"https://x/v1", "", "a\nb", prompt.Model{}, "--llm-model"},
		{"https://x/v1", "", strings.Repeat("m", 201), prompt.Model{}, "--llm-model"},
	} {
		got, given, err := parseLLM(tt.url, tt.key, tt.model)
		switch {
		case tt.says == "" && (err != nil || !given || got != tt.want):
			t.Errorf("%q: %+v %v", tt.url, got, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q %q %q: %+v %v", tt.url, tt.key, tt.model, got, err)
		}
	}
	if got, given, err := parseLLM("", "", ""); given || err != nil {
		t.Errorf("nothing set: %+v %v", got, err)
	}
}

func TestParseBudget(t *testing.T) {
	for in, want := range map[string]int64{"": 0, "0": 0, "500k": 500_000, "2M": 2_000_000, "1000000": 1_000_000, "1.5m": 1_500_000, "1G": 1e9, " 7K ": 7000} {
		if got, err := parseBudget(in); err != nil || got != want {
			t.Errorf("%q: %d %v", in, got, err)
		}
	}
	for _, in := range []string{"k", " ", "-1", "+1", "1e3", "2MM", "0.5", "1.2.3", "Inf", "NaN", "0x10", "1_000", "99999999G", "lots", "."} {
		if got, err := parseBudget(in); err == nil || !strings.Contains(err.Error(), "--model-budget") {
			t.Errorf("%q: %d %v", in, got, err)
		}
	}
}
