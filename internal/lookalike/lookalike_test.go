package lookalike_test

import (
	"testing"

	"agentsite/internal/lookalike"
)

func TestNames_Resembles(t *testing.T) {
	t.Parallel()
	var n lookalike.Names
	n.Protect("calc", "Calculator")
	n.Protect("guide", "Guide")
	for text, want := range map[string]string{
		"Calculator":  "Calculator",
		"calculator":  "Calculator",
		"CALCULATOR":  "Calculator",
		"Cal culator": "Calculator",
		"C-a-l-c":     "calc",
		"Calcu1ator":  "Calculator",
		"Calculat0r":  "Calculator",
		"CaIculator":  "Calculator", // capital i
		"Саlсulаtоr":  "Calculator", // Cyrillic
		"Cαlculατορ":  "",           // a Greek rho looks like p
		"Ｃａｌｃｕｌａｔｏｒ":  "Calculator", // full width
		"𝐂𝐚𝐥𝐜𝐮𝐥𝐚𝐭𝐨𝐫": "Calculator", // mathematical
		"Cálculátor":            "Calculator",
		"Calculator\u200b":      "Calculator",
		"✓ Calculator":          "Calculator",
		"Calculator (official)": "Calculator",
		"The Real Calculator":   "Calculator",
		"Verified Guide":        "Guide",
		"Guide, built in":       "Guide",
		"Operator":              "operator",
		"0perat0r":              "operator",
		"Орerator":              "operator",
		"Portal admin":          "admin",
		"Admin":                 "admin",
		"S u p p o r t":         "support",
		"Support team":          "support",
		"Official":              "official",

		"Loan calculator":     "",
		"City guide":          "",
		"Calcium":             "",
		"Guidebook":           "",
		"Support for cats":    "",
		"Weather":             "",
		"Ada":                 "",
		"The team":            "",
		"In":                  "",
		"":                    "",
		"!!!":                 "",
		"数学":                  "",
		"Operator precedence": "",
	} {
		if got := n.Resembles(text); (got == "") != (want == "") || want == "Calculator" && got != want {
			t.Errorf("%q resembles %q, want %q", text, got, want)
		}
	}
}

func TestNames_ZeroProtectsRoles(t *testing.T) {
	t.Parallel()
	var n lookalike.Names
	if n.Resembles("Calculator") != "" || n.Resembles("Moderator") != "moderator" {
		t.Error("the zero value must protect the roles of the portal only")
	}
}
