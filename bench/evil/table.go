package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentsite/internal/testing/evil"
)

// table holds the results of all lies by their names.
type table struct {
	refused, won map[string]bool
	why          map[string]string // reason why a lie failed although its checks were off
	// needless holds the checks that do not stop the lie for which they are listed.
	needless []string
}

// lines returns the lines of out that begin with begin, without that beginning.
func lines(out, begin string) (list []string) {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			list = append(list, strings.TrimSpace(rest))
		}
	}
	return list
}

// tellAll tells all selected lies to the unchanged product and records the refused ones.
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

// tell tells the lies of a lot to a product without the checks that stop them, and records the lies
// that succeed.
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

// each tests that every check stops its lies alone: it tells a lie that several checks stop to products
// that have just one of these. The lie must fail in each.
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

// said returns the message of a test about a lie, or the end of the output if there is none.
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

// row is the counts of one class of lies.
type row struct{ lies, refused, won, unshown int }

// print prints the table by classes, and returns an error if a lie was not refused or a check does not
// stop its lies.
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
