package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/testing/evil"
)

// table is what became of the lies, by their names.
type table struct {
	refused, won map[string]bool
	why          map[string]string // it did not succeed
	// needless are checks that are named besides what does stop a lie.
	needless []string
}

// lines returns the rest of the lines that begin so.
func lines(out, begin string) (list []string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			list = append(list, strings.TrimSpace(rest))
		}
	}
	return list
}

// tellAll tells all lies to the product.
func (t *table) tellAll(ctx context.Context, o options, dir string) error {
	bin, err := build(ctx, dir, nil, false)
	if err != nil {
		return err
	}
	var names []string
	for _, l := range evil.All() {
		if o.chosen(l) {
			names = append(names, l.Name)
		}
	}
	out, err := execute(ctx, bin, "TestLies$|TestLies_Heavy", names, "EVIL_SAY=yes")
	if err != nil {
		return err
	}
	for _, name := range lines(out, "REFUSED: ") {
		t.refused[name] = true
	}
	if strings.Contains(out, "--- FAIL") || strings.Contains(out, "panic:") {
		fmt.Println(out)
	}
	return nil
}

// tell tells the lies of a lot to a product without what stops them.
func (t *table) tell(ctx context.Context, bin string, l lot) error {
	out, err := execute(ctx, bin, "TestLies_Unchecked", l.names(), "EVIL_UNCHECKED=yes", "UNCHECKED="+strings.Join(l.checks, "|"))
	if err != nil {
		return err
	}
	for _, name := range lines(out, "SUCCEEDED: ") {
		t.won[name] = true
	}
	for _, name := range l.names() {
		if !t.won[name] {
			t.why[name] = said(out, name)
		}
	}
	return nil
}

// each tells the lies that several checks stop to products that have one of
// these, which must stop them.
func (t *table) each(ctx context.Context, bin string, lots []lot) error {
	for _, l := range lots {
		for i, has := range l.checks {
			if len(l.checks) == 1 {
				continue
			}
			without := slices.Delete(slices.Clone(l.checks), i, i+1)
			out, err := execute(ctx, bin, "TestLies_Unchecked", l.names(), "EVIL_UNCHECKED=yes", "EVIL_LATE=4s", "UNCHECKED="+strings.Join(without, "|"))
			if err != nil {
				return err
			}
			for _, name := range lines(out, "SUCCEEDED: ") {
				t.needless = append(t.needless, fmt.Sprintf("%s for %s", has, name))
				fmt.Printf("       DOES NOT STOP ALONE: %s: %s\n", has, name)
			}
		}
	}
	return nil
}

// said is what a test said of a lie, or how it ended.
func said(out, name string) string {
	for _, line := range lines(out, "NOT HERE: ") {
		if rest, ok := strings.CutPrefix(line, name+": "); ok {
			return rest
		}
	}
	_, rest, ok := strings.Cut(out, "--- FAIL: TestLies_Unchecked/all/"+strings.ReplaceAll(name, " ", "_")+" (")
	if !ok {
		return "…" + out[max(0, len(out)-600):]
	}
	_, rest, _ = strings.Cut(rest, "\n")
	rest, _, _ = strings.Cut(rest, "--- FAIL")
	return strings.Join(strings.Fields(rest), " ")
}

// row is a class of the table.
type row struct{ lies, refused, won, unshown int }

// print prints how many lies of each class were refused, and how many succeeded
// without what stops them.
func (t *table) print(o options) error {
	rows := make(map[string]*row)
	var classes []string
	sum := new(row)
	for _, l := range evil.All() {
		if !o.chosen(l) {
			continue
		}
		r := rows[l.Class]
		if r == nil {
			r = new(row)
			rows[l.Class] = r
			classes = append(classes, l.Class)
		}
		for _, r := range []*row{r, sum} {
			r.lies++
			r.refused += count(t.refused[l.Name])
			r.won += count(t.won[l.Name])
			r.unshown += count(l.Unshown != "")
		}
		if l.Unshown != "" {
			fmt.Printf("not shown: %s: %s\n", l.Name, l.Unshown)
		}
	}
	slices.Sort(classes)
	const line = "| %-14s | %4v | %22v | %30v | %9v |\n"
	fmt.Printf("\n"+line, "class", "lies", "refused by the product", "succeed without what stops them", "not shown")
	fmt.Printf("| --- | --- | --- | --- | --- |\n")
	for _, c := range classes {
		r := rows[c]
		fmt.Printf(line, c, r.lies, r.refused, r.won, r.unshown)
	}
	fmt.Printf(line, "all", sum.lies, sum.refused, sum.won, sum.unshown)
	switch {
	case len(t.needless) > 0:
		return fmt.Errorf("%d checks do not stop alone what they are said to stop", len(t.needless))
	case o.product && sum.refused < sum.lies:
		return fmt.Errorf("%d of %d lies are not refused as they should be", sum.lies-sum.refused, sum.lies)
	case sum.won+sum.unshown < sum.lies:
		return fmt.Errorf("%d lies fail although what stops them is missing", sum.lies-sum.won-sum.unshown)
	}
	return nil
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
