package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/clock"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/recordtest"
	"agentsite/internal/testing/storetest"
	"agentsite/store"
)

// crowd is the main network's portals of a seed: each is at an address of its
// own, on one port, and says who it is and how it does.
type crowd struct {
	by    []*recordtest.Portal
	cards []*record.Record
	mute  func(i int) bool
}

// ServeHTTP implements http.Handler.
func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var hi, lo int
	fmt.Sscanf(r.Host, "127.1.%d.%d:", &hi, &lo)
	i := hi*250 + lo - 1
	if i < 0 || i >= len(c.by) || c.mute(i) {
		panic(http.ErrAbortHandler)
	}
	answer := map[string]any{"network": "agentsite-main", "portal": c.by[i].ID, "version": "0.9.1", "card": json.RawMessage(c.cards[i].Wire), "state": "active", "heads": []any{}, "behind": []any{}, "refused": []any{}}
	w.Header().Set("Content-Type", "application/json")
	if i == 1 && r.Header.Get("Signature") != "" { // it waits for its operator's word about this one
		w.WriteHeader(http.StatusForbidden)
		answer = map[string]any{"error": map[string]string{"kind": "forbidden", "reason": "pending", "message": "Two portals that are pinned here have to vouch for it."}}
	}
	json.NewEncoder(w).Encode(answer)
}

// seedPeers has a portal that was not started yet know n others, in all states.
func seedPeers(t testing.TB, dir string, n int) *crowd {
	t.Helper()
	l, err := net.Listen("tcp4", ":0")
	if err != nil {
		t.Fatal(err)
	}
	c := &crowd{mute: func(i int) bool { return i%12 == 4 || i%12 == 6 }}
	server := httptest.NewUnstartedServer(c)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if _, err := ident.CreateKeys(dir); err != nil {
		t.Fatal(err)
	}
	db, err := store.OpenWith(t.Context(), dir, store.Config{Database: storetest.DatabaseOf(t, dir)}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := clock.Now()
	names := strings.Split("Nordlicht,Café Babbage,Old Mill Makers,Riverside Library,Observatory Hill,Tinkers Guild,Quiet Office,Lighthouse Nine,Orchard Works,Copper Street,Tidewater,"+longTitle[:60], ",")
	var list []federation.Facts
	for i := range n {
		by := recordtest.NewPortal(strconv.Itoa(i))
		by.Now = now.UnixMilli()
		name := names[i%len(names)]
		if i >= len(names) {
			name += " " + strconv.Itoa(i/len(names)+1)
		}
		card := by.Card()
		card.Origin, card.Name, card.Operator = fmt.Sprintf("http://127.1.%d.%d:%s", i/250, i%250+1, port), name, "The keeper of "+names[i%len(names)]
		r, err := record.Sign("agentsite-main", card, by.Root)
		if err != nil {
			t.Fatal(err)
		}
		c.by, c.cards = append(c.by, by), append(c.cards, r)
		sum := by.ID[10:]
		f := federation.Facts{ID: by.ID, URL: card.Origin, Name: name, Operator: card.Operator, Contact: "keeper@portal.example", Version: "0.9.1", Tier: record.TierReplica, Keys: []record.KeyID{card.Keys[0].ID},
			Known: now.Add(-30 * 24 * time.Hour), Proved: now.Add(-3 * time.Hour), Seen: now.Add(-time.Duration(i%50) * time.Second), RTT: time.Duration(1+int(sum[3]-'1')*int(sum[4]-'1')/9) * time.Millisecond,
			Agents: int(sum[0]-'1') * int(sum[1]-'1') / 4, HeadIssued: now.Add(-20 * time.Minute), HeadExpires: now.Add(47 * time.Hour)}
		f.Listed = f.Agents
		switch i % 12 {
		case 4:
			f.Failures, f.Why, f.Seen = 5, "connection refused", now.Add(-2*time.Hour)
		case 6:
			f.HeadIssued, f.HeadExpires, f.Failures, f.Why, f.Seen = now.Add(-72*time.Hour), now.Add(-24*time.Hour), 40, "no answer", now.Add(-71*time.Hour)
		case 7:
			f.Truncated, f.Agents, f.Listed = true, 0, 80_000
		case 9:
			f.Rule = federation.Rule{Stand: federation.Deny, Note: "It sends advertising."}
		case 10:
			f.Waits = now.Add(-5 * time.Minute)
		}
		if i == 1 {
			f.Rule = federation.Rule{Stand: federation.Pin, Note: "Neighbours."}
		}
		list = append(list, f)
	}
	if err := db.Peers.SavePeers(t.Context(), list, nil, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestNetworkPages opens the pages about other portals, with portals in every
// state: what axe finds, and what does not fit, is a failure.
func TestNetworkPages(t *testing.T) {
	onlyDrawn(t)
	root := needBrowser(t)
	t.Parallel()
	n := 14
	if s := os.Getenv("E2E_PORTALS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	var seed *crowd
	p := apptest.Start(t, func(c *app.Config) {
		c.Name = "Agora"
		seed = seedPeers(t, c.Data, n)
	})
	op := p.Operator(t, "op")
	a := visit(t, root, p, desk).as(op)
	a.allow("404 (Not Found)")
	axe := func(string) {}
	if os.Getenv("AGENTSITE_TEST_AXE") != "" {
		a.axed(needAxe(t))
		axe = func(name string) { a.axe(name, nil) }
	}
	if n > 0 {
		evil := liar(t, "evil")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := evil.Publish("bait"); err != nil {
			t.Fatal(err)
		}
		for _, do := range []func(context.Context, string) error{evil.Hello, evil.Fork} {
			if err := do(ctx, p.Base); err != nil {
				t.Fatal(err)
			}
		}
		if n > 5 { // The sixth waits for a key that is not shut out.
			op.Must(http.MethodPatch, "/api/v1/peers/policy", map[string]any{"deny_keys": []record.KeyID{record.KeyIDOf(record.PublicOf(seed.by[5].Op))}}, http.StatusOK)
		}
		at := func(i int) string { return string(seed.by[min(i, n-1)].ID) }
		a.open("/network")
		a.until("the liar", again(`document.querySelector(".map-quarantined")`))
		for _, x := range []struct{ name, path string }{{"peer", "/admin/peers/" + at(1)}, {"policy", "/admin/peers/policy"}, {"portal", "/network/" + at(7)}} {
			a.open(x.path)
			if axe(x.name); x.name == "peer" && n > 1 {
				a.until("that it does not let the portal in", again(`document.body && document.body.innerText.includes("It has yet to let this portal in: “Two portals")`))
			}
			if x.name == "peer" && os.Getenv("E2E_SHOTS") != "" {
				a.look("net-peer")
			}
		}
		for _, x := range []struct{ name, path string }{{"portal-liar", "/network/" + string(evil.Portal())}, {"peer-liar", "/admin/peers/" + string(evil.Portal())}} {
			a.open(x.path)
			axe(x.name)
			if os.Getenv("E2E_SHOTS") != "" {
				a.look("net-" + x.name)
			}
		}
	}
	a.open("/network")
	axe("network")
	a.look("net-network-" + strconv.Itoa(n))
	a.open("/admin/peers")
	axe("peers")
	if os.Getenv("E2E_SHOTS") != "" {
		a.look("net-peers-" + strconv.Itoa(n))
	}
}
