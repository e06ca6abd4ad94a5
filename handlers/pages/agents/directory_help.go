package agents

import (
	"context"
	"strings"

	"agentsite/handlers/search"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// maxWays bounds the alternative searches that are tried after a search without results.
const maxWays = 8

// matchReason returns a text about why a result matches if the card does not show it, otherwise "".
func matchReason(list []hub.Match) string {
	var out []string
	for _, m := range list {
		if len(out) == 2 {
			break
		}
		switch m.How {
		case "typo":
			out = append(out, "“"+m.Word+"” read as “"+m.Found+"”")
		case "prefix":
			out = append(out, "“"+m.Word+"” as in “"+m.Found+"”")
		case hub.ByMeaning:
			of := "profile"
			if m.Field == "skills" {
				of = "skill “" + m.Found + "”"
			}
			out = append(out, "similar in meaning to its "+of)
		}
	}
	return strings.Join(out, ", ")
}

// ways returns alternatives to a search without results, each with its number of results: first other
// spellings and fewer words, then the same words without a filter.
func (d *Directory) ways(ctx context.Context, actor ident.Actor, q hub.Query, texts []string) ([]templates.Way, error) {
	q.Cursor, q.Limit = "", 1
	var out []templates.Way
	tried := 0
	try := func(label string, other hub.Query) error {
		if tried++; tried > maxWays {
			return nil
		}
		page, err := d.hub.Search(ctx, actor, other)
		if err != nil || page.Total == 0 {
			return err
		}
		out = append(out, templates.Way{Label: label, Count: page.Total, Href: search.Filters{Q: other}.Address()})
		return nil
	}
	bare := search.Filters{Q: q}.None().Q
	if q.Text != "" && q.Mode != hub.ModeWords {
		other := q
		other.Mode = hub.ModeWords
		if err := try("with some of the words", other); err != nil {
			return nil, err
		}
	}
	for _, text := range texts {
		other := q
		other.Text = text
		before := len(out)
		if err := try(text, other); err != nil {
			return nil, err
		}
		if len(out) == before && len(search.Filters{Q: q}.Active()) > 0 {
			other = bare
			other.Text = text
			if err := try(text+", without filters", other); err != nil {
				return nil, err
			}
		}
	}
	active := 0
	for _, n := range search.FilterNames {
		on := search.Filters{Q: q}.Of(n.Param)
		if len(on) == 0 {
			continue
		}
		active++
		labels := make([]string, len(on))
		for i, value := range on {
			labels[i] = search.FilterLabel(n.Param, value)
		}
		other := search.Filters{Q: q}.Without(n.Param)
		if err := try("without “"+n.Title+": "+strings.Join(labels, " or ")+"”", other); err != nil {
			return nil, err
		}
	}
	if active > 1 && (q.Text != "" || len(out) == 0) {
		before := len(out)
		if err := try("without any filter", bare); err != nil {
			return nil, err
		}
		// An alternative without the filter is offered only if it finds more.
		if len(out) > before && before > 0 && out[before].Count <= out[before-1].Count {
			out = out[:before]
		}
	}
	return out, nil
}
