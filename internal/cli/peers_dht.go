package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"agentsite/internal/record"
)

// runPeersDHT prints the portal's state in the DHT, or the result of looking up the key in args.
func runPeersDHT(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers dht", args, 0, 1); err != nil {
		return err
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		if len(args) == 1 {
			return lookUp(ctx, e, fs, c, args[0])
		}
		var raw json.RawMessage
		if err := c.callJSON(ctx, http.MethodGet, "/api/v1/peers/dht", nil, &raw); err != nil || printRaw(e, fs, raw) {
			return err
		}
		var d struct {
			Nodes, Size, Keys, Held int
			Bytes                   int64   `json:"held_bytes"`
			Round                   float64 `json:"round_s"`
			Found, Missed           int64
			RPCs, Hops              float64
			Sent, Failed            int64
		}
		if err := json.Unmarshal(raw, &d); err != nil {
			return err
		}
		if d.Nodes == 0 {
			fmt.Fprintln(e.stdout, "This portal knows no other that takes part in the DHT.")
			return nil
		}
		fmt.Fprintf(e.stdout, "In the table are %d of about %d portals that take part.\n", d.Nodes, d.Size)
		fmt.Fprintf(e.stdout, "It stores %d entries, refreshed every %s, and %d records (%d KiB) for others.\n", d.Keys,
			time.Duration(d.Round*float64(time.Second)).Round(time.Minute), d.Held, (d.Bytes+1023)/1024)
		fmt.Fprintf(e.stdout, "Since the start: %d lookups found something, %d nothing, by %.1f requests each; "+
			"of %d requests %d got no answer.\n", d.Found, d.Missed, d.RPCs, d.Sent, d.Failed)
		return nil
	})
}

func lookUp(ctx context.Context, e env, fs *flags, c *client, what string) error {
	var raw json.RawMessage
	if err := c.callJSON(ctx, http.MethodGet, "/api/v1/peers/dht/lookup?q="+url.QueryEscape(what), nil,
		&raw); err != nil || printRaw(e, fs, raw) {
		return err
	}
	var a struct {
		What    string
		Portals []struct {
			ID, URL, Name string
			Agents        int64
			Said          string `json:"said_at"`
		}
		RPCs, Hops int
		Took       float64 `json:"took_ms"`
		Holders    int
		Own        bool
		Nearest    []string
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return err
	}
	for _, p := range a.Portals {
		fmt.Fprintf(e.stdout, "%s  %s  agents %d  signed %s\n", hostOf(p.URL), record.CleanLine(p.Name), p.Agents,
			p.Said)
	}
	if len(a.Portals) == 0 {
		fmt.Fprintf(e.stdout, "No portal has a signed entry for this %s.\n", a.What)
	}
	if a.Own {
		fmt.Fprintln(e.stdout, "This portal publishes it itself.")
	}
	fmt.Fprintf(e.stdout, "%d requests, %d hops, %.0f ms; %d portals near the key answered, %d have the entry.\n",
		a.RPCs, a.Hops, a.Took, len(a.Nearest), a.Holders)
	return nil
}
