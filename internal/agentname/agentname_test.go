package agentname

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentsite/internal/ident"
)

func TestPropose_TakesAnyScript(t *testing.T) {
	for title, want := range map[string]string{
		"Naïve Résumé": "naive-resume", "Weather Bot": "weather-bot", "Über-Straße": "uber-strasse",
		"天气助手": "tian-qi-zhu-shou", "日程助手": "ri-cheng-zhu-shou", "天气 Bot": "tian-qi-bot",
		"Погода": "pogoda", "Агент №7": "agent-no7", "Ελληνικά": "ellenika", "مساعد": "msd",
		"날씨": "nalssi", "てんき": "tenki", "テンキ": "tenki", "ﾃﾝｷ": "tenki", "Łódź": "lodz", "Ångström Æther": "angstrom-aether",
		"ｆｕｌｌ　ｗｉｄｔｈ": "full-width", "Người Việt": "nguoi-viet", "हिन्दी": "hindii", "ไทย": "aithy", "שלום": "shlvm",
		"①②③ steps": "agent-123-steps", "Bob's bot": "bobs-bot", "O’Neil": "oneil", "a\u200bb": "ab", "İstanbul": "istanbul",
		"🤖": "example-org", "": "example-org", "  ": "example-org", "---": "example-org", "x": "x-agent",
		"admin": "admin-agent", "東京ガイド": "dong-jing-gaido", "Київ": "kiyiv", "कृत्रिम": "krtrim", "ผู้ช่วย": "phuuchwy",
		"Йод": "iod", "Ωμέγα Ἀθῆναι": "omega-athenai", "ｶﾞｲﾄﾞ": "gaido",
	} {
		if got := Propose(title, "https://example.org/agent"); got != want {
			t.Errorf("%q: %q, want %q", title, got, want)
		}
	}
}

func TestPropose_ReadsHostsInAnyScript(t *testing.T) {
	for address, want := range map[string]string{"https://xn--bcher-kva.example/a": "bucher-example",
		"https://bücher.example/a": "bucher-example", "https://xn--80agg6aza8c.xn--p1ai": "agenty-rf"} {
		if got := Propose("", address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestPropose_IsAlwaysAName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		title, address := rapid.String().Draw(t, "title"), rapid.String().Draw(t, "address")
		name := Propose(title, address)
		n := rapid.IntRange(2, 99999).Draw(t, "number")
		if err := ident.CheckName(name); err != nil {
			t.Fatalf("%q: %q: %v", title, name, err)
		}
		if err := ident.CheckName(ident.Numbered(name, n)); err != nil {
			t.Fatalf("%q: %v", ident.Numbered(name, n), err)
		}
	})
}

func TestPropose_IsAlwaysUsable(t *testing.T) {
	for title, want := range map[string]string{
		"Weather Bot": "weather-bot", "Search": "search-agent", "天気": "tian-qi", "42": "agent-42",
		"  --A--  ": "a-agent", "Admin": "admin-agent", strings.Repeat("long ", 20): "long-long-long-long-long-long-long-long",
	} {
		if got := Propose(title, "https://agents.example.com/x"); got != want {
			t.Errorf("%q: %q", title, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := Propose(rapid.String().Draw(t, "title"), rapid.String().Draw(t, "address"))
		if err := ident.CheckName(name); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	})
}
