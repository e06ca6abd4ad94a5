package agents

import (
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/pages/linediff"
	"agentsite/internal/hub"
	"agentsite/templates"
)

func diffView(list []hub.Change) []templates.ChangeView {
	var out []templates.ChangeView
	for _, c := range list {
		if c.Field == "Icon" {
			c.Before, c.After = iconWords(c.Before, "a picture"), iconWords(c.After, "another picture")
			if c.Before == "none" {
				c.After = "a picture"
			}
		}
		out = append(out, templates.ChangeView{Field: c.Field,
			Lines: linediff.Fold(linediff.Compare(splitLines(readable(c.Before)), splitLines(readable(c.After))))})
	}
	return out
}

func iconWords(hash, words string) string {
	if hash == "" {
		return "none"
	}
	return words
}

// readable returns JSON with indentation, and other text unchanged.
func readable(s string) string {
	if !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "[") {
		return s
	}
	return pages.IndentJSON(s)
}

func splitLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
