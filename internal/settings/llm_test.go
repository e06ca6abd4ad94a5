package settings

import (
	"strings"
	"testing"

	"agentsite/internal/models"
	"agentsite/internal/usage"
)

func TestParseLLM(t *testing.T) {
	for _, tt := range []struct {
		url, key, model string
		want            models.Model
		says            string
	}{
		{"http://127.0.0.1:11434/v1", "", "llama3", openaiModel("http://127.0.0.1:11434/v1", "llama3", false), ""},
		{"http://localhost:1234/v1/", "sk-1", "m", openaiModel("http://localhost:1234/v1", "m", true), ""},
		{"https://api.example.com/v1", "sk-1", "m", openaiModel("https://api.example.com/v1", "m", true), ""},
		{"http://10.0.0.7/v1", "", "m", openaiModel("http://10.0.0.7/v1", "m", false), ""},
		{"", "", "m", models.Model{}, "--llm-url"},
		{"", "sk-secret", "", models.Model{}, "--llm-key"},
		{"http://127.0.0.1/v1", "", "", models.Model{}, "--llm-model"},
		{"ftp://x/v1", "", "m", models.Model{}, "--llm-url"},
		{"127.0.0.1:11434/v1", "", "m", openaiModel("http://127.0.0.1:11434/v1", "m", false), ""},
		{"api.example.com/v1", "sk-1", "m", openaiModel("https://api.example.com/v1", "m", true), ""},
		{"javascript:alert(1)", "", "m", models.Model{}, "--llm-url"},
		{"https://u:sk-secret@x/v1", "", "m", models.Model{}, "--llm-key"},
		{"https://x/v1?key=sk-secret", "", "m", models.Model{}, "without query"},
		{"https://x/v1/chat/completions", "", "m", models.Model{}, "leave /chat/completions out"},
		{"http://litellm:4000/v1", "sk-1", "m", openaiModel("http://litellm:4000/v1", "m", true), ""},
		{"http://[fd00::1]/v1", "sk-1", "m", openaiModel("http://[fd00::1]/v1", "m", true), ""},
		{"http://8.8.8.8/v1", "sk-secret", "m", models.Model{}, "use https"},
		{"http://example.com/v1", "sk-secret", "m", models.Model{}, "use https"},
		{"https://x/v1", "sk-\nsecret", "m", models.Model{}, "--llm-key"},
		{"https://x/v1", "", "a\nb", models.Model{}, "--llm-model"},
		{"https://x/v1", "", strings.Repeat("m", 201), models.Model{}, "--llm-model"},
	} {
		got, given, err := parseLLM("", tt.url, tt.key, tt.model)
		switch {
		case tt.says == "" && (err != nil || !given || got != tt.want):
			t.Errorf("%q: %+v %v", tt.url, got, err)
		case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "secret")):
			t.Errorf("%q %q %q: %+v %v", tt.url, tt.key, tt.model, got, err)
		}
	}
	if got, given, err := parseLLM("", "", "", ""); given || err != nil {
		t.Errorf("nothing set: %+v %v", got, err)
	}
}

func openaiModel(url, name string, hasKey bool) models.Model {
	return models.Model{Name: models.Default, Provider: models.OpenAI, URL: url, Model: name, HasKey: hasKey, Fixed: true}
}

func TestParseLLM_TakesTheProvider(t *testing.T) {
	got, given, err := parseLLM("anthropic", "https://api.anthropic.com/v1", "sk-1", "m")
	if err != nil || !given || got.Provider != models.Anthropic {
		t.Errorf("%+v %v", got, err)
	}
	for _, tt := range [][2]string{{"claude", "https://x/v1"}, {"anthropic", ""}} {
		if got, _, err := parseLLM(tt[0], tt[1], "", ""); err == nil || !strings.Contains(err.Error(), "--llm-provider") {
			t.Errorf("%q: %+v %v", tt, got, err)
		}
	}
}

func TestParseBudget(t *testing.T) {
	for in, want := range map[string]usage.Budget{"": {}, "0": {}, "500k": {Most: 500_000}, "2M": {Most: 2_000_000}, "1000000": {Most: 1_000_000},
		"1.5m": {Most: 1_500_000}, "1G": {Most: 1e9}, " 7K ": {Most: 7000}, "5.00USD": {Most: 5_000_000, Currency: "USD"}, "0.07 EUR": {Most: 70_000, Currency: "EUR"},
		"1000000CHF": {Most: 1e12, Currency: "CHF"}, "0.000001USD": {Most: 1, Currency: "USD"}} {
		if got, err := parseBudget(in); err != nil || got != want {
			t.Errorf("%q: %+v %v", in, got, err)
		}
	}
	for _, in := range []string{"k", " ", "-1", "+1", "1e3", "2MM", "0.5", "1.2.3", "Inf", "NaN", "0x10", "1_000", "99999999G", "lots", ".",
		"USD", "0USD", "0.0000001USD", "5usd", "5US", "5$", "-5USD", "5kUSD", "5USDK", "9999999999USD"} {
		if got, err := parseBudget(in); err == nil || !strings.Contains(err.Error(), "--model-budget") {
			t.Errorf("%q: %+v %v", in, got, err)
		}
	}
}
