package chat

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMentions_OnlyInProse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"hey @guide, help":                             "guide",
		"@calc@home.example: 1+1":                      "calc",
		"@calc@other.example hi":                       "calc@other.example",
		"ask @calc.":                                   "calc",
		"@calc @guide @CALC":                           "calc guide",
		"write to me@calc":                             "",
		`\@calc`:                                       "",
		"https://social.example/@calc":                 "",
		"> @calc said so":                              "",
		"> quoted\n\n@guide what is it?":               "guide",
		"  > @calc":                                    "",
		"`@calc` is its name":                          "",
		"``a ` @calc`` @guide":                         "guide",
		"a ` alone @calc":                              "calc",
		"a `b\n\n@calc c` d":                           "calc",
		"```\n@calc\n```\n@guide":                      "guide",
		"~~~py\n@calc\n```\n~~~\n@guide":               "guide",
		"```\n@calc never closed":                      "",
		"````\n```\n@calc\n````":                       "",
		"``` @calc ``` inline":                         "",
		"text\n\n    @calc as code\n    @guide\n":      "",
		"- item\n\n    @calc in the item":              "calc",
		"1. item\n\n    @calc in the item":             "calc",
		"para\n    @calc goes on":                      "calc",
		"\t@calc code":                                 "",
		"@guide\r\n> @calc\r\n":                        "guide",
		"@calc@bücher.example":                         "calc@xn--bcher-kva.example",
		"@calc@BÜCHER.example, hi":                     "calc@xn--bcher-kva.example",
		"(@calc@例え.jp)":                                "calc@xn--r8jz45g.jp",
		"@calc@bücher.example:8443.":                   "calc@xn--bcher-kva.example:8443",
		"@calc@агенты.рф и ещё":                        "calc@xn--80agg6aza8c.xn--p1ai",
		"@calc@agents.example请看":                       "calc@agents.example",
		"@calc请看":                                      "calc",
		"@calc@localhost:8080请看":                       "calc@localhost:8080",
		"@":                                            "",
		"@@calc":                                       "calc",
		"ü@calc":                                       "",
		"(@calc)":                                      "calc",
		"**@calc**":                                    "calc",
		strings.Repeat("`@calc ", 50_000):              "calc", // every second one
		"x" + strings.Repeat("`", 60_000) + "@guide":   "guide",
		strings.Repeat("> ", 1000) + "@calc\n @guide ": "guide",
	} {
		if got := strings.Join(findMentions(text, "home.example"), " "); got != want {
			t.Errorf("%.60q: %q, want %q", text, got, want)
		}
	}
}

func TestMentioned_ByNameAlone(t *testing.T) {
	t.Parallel()
	members := []Member{{Kind: "agent", ID: "1", Handle: "calc"}, {Kind: "agent", ID: "2", Handle: "calc@far.example"}, {Kind: "agent", ID: "3", Handle: "tortoise@far.example"},
		{Kind: "agent", ID: "4", Handle: "hare@far.example"}, {Kind: "agent", ID: "5", Handle: "hare@near.example"}, {Kind: "person", ID: "6", Handle: "ann"}}
	for text, want := range map[string]string{
		"@calc 1+1":                         "1",
		"@calc@far.example 1+1":             "2",
		"@tortoise how far?":                "3",
		"@Tortoise, and @tortoise again":    "3",
		"@hare":                             "", // of two nobody knows which
		"@hare@near.example":                "5",
		"@tortoise@home.example":            "", // that one is not in it
		"@ann and @tortoise@far.example":    "6 3",
		"@nobody":                           "",
		"@tortoise@other.example or nobody": "",
	} {
		var got []string
		for _, m := range mentionedMembers(members, text, "home.example") {
			got = append(got, m.ID)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Whatever stands in a fence, a quotation or a span mentions nobody, and what
// stands beside it still does.
func TestMentions_HiddenTextMentionsNobody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		piece := rapid.StringMatching(`[a-z @.:#*_-]{0,20}`)
		hidden := piece.Draw(rt, "hidden") + " @calc " + piece.Draw(rt, "more")
		var text string
		switch rapid.IntRange(0, 3).Draw(rt, "how") {
		case 0:
			text = "```\n" + hidden + "\n```\n"
		case 1:
			text = "> " + hidden + "\n\n"
		case 2:
			text = "x `" + hidden + "` "
		default:
			text = "~~~~ go\n" + hidden + "\n~~~\n" + hidden + "\n~~~~\n"
		}
		got := findMentions(text+"@guide", "home.example")
		if slices.Contains(got, "calc") || !slices.Contains(got, "guide") {
			rt.Fatalf("%q mentions %v", text, got)
		}
	})
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a.txt": "a.txt", "/etc/passwd": "passwd", `C:\x\y.doc`: "y.doc", "../..": "file", "..": "file", "": "file", ".hidden": "hidden", "a\x00b\n.txt": "ab.txt",
		"in\u202efdp.exe": "infdp.exe", "a\u200bb": "ab", "\xff\xfe.png": "png", "x ": "x", "Übung 1.pdf": "Übung 1.pdf", "/": "file",
	} {
		if got := FileName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		got := FileName(rapid.String().Draw(rt, "name") + strings.Repeat("x", rapid.IntRange(0, 400).Draw(rt, "more")) + ".pdf")
		if len(got) > maxNameBytes || got == "" || strings.ContainsAny(got, "/\\\n\x00") || !strings.HasSuffix(got, "pdf") || FileName(got) != got {
			rt.Fatalf("%q", got)
		}
	})
}
