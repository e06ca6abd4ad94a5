package hub_test

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
)

func TestImport_SkipsWhatCannotBe(t *testing.T) {
	t.Parallel()
	w := open(t)
	ctx := t.Context()
	w.publish(w.ada, draft("taken"))
	var list []hub.Draft
	for i := range 2500 {
		list = append(list, draft(fmt.Sprintf("bulk-%d", i)))
	}
	list[3] = draft("taken")
	list[5] = draft("Not A Name")
	list[7] = draft("bulk-0") // twice in one batch
	next := func() func() (hub.Draft, error) {
		i := -1
		return func() (hub.Draft, error) {
			if i++; i == len(list) {
				return hub.Draft{}, io.EOF
			}
			return list[i], nil
		}
	}
	_, err := w.Import(ctx, w.ada, next())
	kind(t, "no operator", err, fault.Forbidden)
	done, err := w.Import(ctx, w.boss, next())
	must(t, err)
	if done.Agents != 2497 || done.Skipped != 3 || len(done.Errors) != 3 {
		t.Errorf("%+v", done)
	}
	if n := w.Count(); n != 2498 {
		t.Errorf("%d agents are listed", n)
	}
	page, err := w.Search(ctx, ident.Actor{}, hub.Query{Text: "bulk-2499"})
	if err != nil || len(page.Results) == 0 || !slices.ContainsFunc(page.Results, func(r hub.Result) bool { return r.Agent.Name == "bulk-2499" && r.Agent.OwnerName == "boss" }) {
		t.Errorf("%d found, %v", len(page.Results), err)
	}
}
