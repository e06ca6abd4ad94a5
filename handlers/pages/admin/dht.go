package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agentsite/handlers/address"
	"agentsite/handlers/pages"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/templates"
)

// dhtView returns the state of this portal in the DHT, and the result of a lookup if the request has one.
// An error of the lookup becomes a field error with its HTTP status in code.
func (d *Pages) dhtView(w http.ResponseWriter, r *http.Request, actor ident.Actor) (v templates.AdminDHT, code int,
	err error) {
	code = http.StatusOK
	if q := r.URL.Query(); q.Has("lookup") {
		v.Typed = q.Get("lookup")
		a, err := d.peers.AskDHT(r.Context(), actor, v.Typed)
		if err == nil {
			v.Answer = d.dhtAnswer(r, a)
		} else {
			messages, as, ok := pages.FieldErrors(w, err)
			if !ok {
				return v, code, err
			}
			v.Error, code = cmp.Or(messages["q"], messages[""]), as
		}
	}
	s, err := d.peers.DHTStanding(r.Context(), actor)
	switch {
	case fault.Is(err, fault.Unavailable):
		return templates.AdminDHT{}, http.StatusOK, nil
	case err != nil:
		return v, code, err
	}
	v.Lines, v.Picture = dhtLines(s), dhtPicture(s.Buckets)
	return v, code, nil
}

// dhtLines describes the state of a portal in the DHT in sentences, for the operator.
func dhtLines(s federation.DHTStanding) []string {
	first := "This portal knows no other that takes part yet."
	if s.Nodes > 0 {
		first = pages.FormatCounted(s.Nodes, "portal is",
			"portals are") + " in its table, of about " + pages.FormatNumber(int64(max(s.Size, s.Nodes+1))) +
			" that take part, this one included."
	}
	first += " It stores " + pages.FormatCounted(s.Keys, "entry", "entries")
	if s.RoundS > 0 {
		first += ", refreshed every " + pages.FormatAge(time.Duration(s.RoundS*float64(time.Second)))
	}
	first += ", and keeps " + pages.FormatCounted(s.Held, "record", "records") + " for others"
	if s.Held > 0 {
		first += " (" + pages.FormatBytes(s.Bytes) + ")"
	}
	second := "Nothing was looked up since the start"
	if s.Found+s.Missed > 0 {
		second = "Since the start " + pages.FormatCounted(int(s.Found), "lookup",
			"lookups") + " found something and " + pages.FormatNumber(s.Missed) + " nothing, " +
			fmt.Sprintf("by %.1f requests and %.1f hops on average", s.RPCs, s.Hops)
	}
	second += "; " + pages.FormatCounted(int(s.Sent), "request", "requests") + " went to others, "
	if s.Failed == 0 {
		return []string{first + ".", second + "and none stayed without an answer."}
	}
	return []string{first + ".", second + "and " + pages.FormatNumber(s.Failed) + " of them stayed without an answer."}
}

// Sizes of the routing table's chart in pixels. The width is that of the buckets of a large network, so
// that bars look the same everywhere.
const dhtBar, dhtStep, dhtHeight, dhtPlaces = 8, 11, 40, 24

// dhtPicture draws the number of portals in each bucket of the routing table, that is by the length of
// the common prefix with this portal's id. A single bucket yields nil.
func dhtPicture(buckets []int) *templates.Picture {
	if len(buckets) < 2 {
		return nil
	}
	most, said := 1, make([]string, len(buckets))
	for i, n := range buckets {
		most, said[i] = max(most, n), strconv.Itoa(n)
	}
	p := &templates.Picture{Width: strconv.Itoa(max(dhtPlaces, len(buckets)) * dhtStep),
		Height: strconv.Itoa(dhtHeight), Desc: "From far to near: " + strings.Join(said, ", ") + "."}
	for i, n := range buckets {
		if n > 0 {
			h := max(2, n*dhtHeight/most)
			p.AddBar(i*dhtStep, dhtBar, h, dhtHeight, "calls", pages.FormatCounted(n, "portal", "portals")+", "+
				pages.FormatCounted(i, "bit", "bits")+" shared")
		}
	}
	return p
}

func (d *Pages) dhtAnswer(r *http.Request, a federation.DHTAnswer) *templates.DHTAnswer {
	v := &templates.DHTAnswer{What: a.What, Cost: pages.FormatCounted(a.RPCs, "request",
		"requests") + ", " + pages.FormatCounted(a.Hops, "hop", "hops")}
	if t := pages.FormatLatency(time.Duration(a.TookMS * float64(time.Millisecond))); t != "" {
		v.Cost += ", " + t
	}
	self := d.peers.Map(r.Context()).Self.ID
	for _, p := range a.Portals {
		row := templates.DHTRow{Host: federation.Peer{URL: p.URL}.Host()}
		row.Name = cmp.Or(p.Name, row.Host)
		if p.ID == self {
			row.Href = "/about"
		} else if known, ok := d.peers.Portal(r.Context(), string(p.ID)); ok {
			row.Href = "/admin/peers/" + url.PathEscape(address.PeerRef(known))
		}
		if a.What != "agent" {
			row.Agents = pages.FormatCounted(int(p.Agents), "agent", "agents")
			if a.What == "capability" {
				row.Agents += " with it"
			}
		}
		if t, err := time.Parse(time.RFC3339, p.Said); err == nil {
			row.Signed = pages.FormatMoment(t)
		}
		v.Portals = append(v.Portals, row)
	}
	return v
}
