package admin

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"agentsite/handlers/pages"
	"agentsite/internal/diskuse"
	"agentsite/internal/ident"
	"agentsite/internal/quota"
	"agentsite/templates"
)

// greatestShown is the number of owners of each kind on the page.
const greatestShown = 20

// storageTitles are the titles of the kinds of owners.
var storageTitles = map[quota.Kind]string{quota.Account: "People", quota.Agent: "Agents",
	quota.Address: "Networks of guests", quota.Portal: "Other portals"}

// storage shows the owners of the most stored bytes.
func (d *Pages) storage(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	v := &templates.AdminStorage{}
	if free, ok := d.stats.FreeDisk(); ok {
		v.Free = quota.Text(free)
	}
	uses, err := d.stats.DiskUse(r.Context())
	if err != nil {
		return err
	}
	slices.SortStableFunc(uses, func(a, b diskuse.Kind) int { return cmp.Compare(b.Bytes, a.Bytes) })
	all := int64(0)
	for _, u := range uses {
		all += u.Bytes
	}
	for _, u := range uses {
		if u.Bytes > 0 {
			v.Uses = append(v.Uses, templates.DiskUse{Name: u.Name, Hint: u.Hint, Size: quota.Text(u.Bytes),
				Percent: int(u.Bytes * 100 / all)})
		}
	}
	v.Total = quota.Text(all)
	for _, kind := range quota.Kinds() {
		list, err := d.stats.GreatestStorage(r.Context(), kind, greatestShown)
		if err != nil {
			return err
		}
		k := templates.StorageKind{ID: string(kind), Title: storageTitles[kind]}
		for _, o := range list {
			view := pages.StorageView(o.Usage)
			row := templates.StorageRow{Name: o.Name, Used: view.Used, Today: view.Today, Percent: view.UsedPercent}
			switch {
			case o.Name == "":
				row.Name = o.ID
			case kind == quota.Account:
				row.Href = "/admin/people?q=" + url.QueryEscape(o.Name)
			case kind == quota.Agent:
				row.Href = "/admin/agents?q=" + url.QueryEscape(o.Name)
			}
			if view.Limit != "" && view.DailyLimit != "" {
				k.Limits = view.Limit + " each, " + view.DailyLimit + " a day"
			}
			k.Rows = append(k.Rows, row)
		}
		v.Kinds = append(v.Kinds, k)
	}
	return d.showAdmin(w, r, actor, http.StatusOK, templates.AdminView{Tab: "storage", Storage: v})
}
