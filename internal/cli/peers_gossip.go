package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// runPeersGossip prints the portal's state in the gossip pool: members and messages.
func runPeersGossip(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers gossip", args, 0, 0); err != nil {
		return err
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		var raw json.RawMessage
		if err := c.callJSON(ctx, http.MethodGet, "/api/v1/peers/gossip", nil, &raw); err != nil ||
			printRaw(e, fs, raw) {
			return err
		}
		var g struct {
			Running                  bool
			By, Zone                 string
			Members, Gone            int
			Told, Heard, Lost        int64
			Sent, Failed, Asked      int64
			In                       int64 `json:"bytes_in"`
			Out                      int64 `json:"bytes_out"`
			Dropped, Refused, Queued int64
		}
		if err := json.Unmarshal(raw, &g); err != nil {
			return err
		}
		if !g.Running {
			fmt.Fprintln(e.stdout, "Gossip does not run now; the log has the reason.")
			return nil
		}
		fmt.Fprintf(e.stdout, "By %s. Other portals that gossip: %d; recently gone: %d. Zone: %s.\n", g.By, g.Members,
			g.Gone, cmp.Or(g.Zone, "the whole network"))
		fmt.Fprintf(e.stdout, "Since the start: %d hints of new heads sent, %d received, %d portals lost.\n", g.Told,
			g.Heard, g.Lost)
		fmt.Fprintf(e.stdout, "%d requests sent, %d failed, %d answered; %d KiB in, %d KiB out; %d messages "+
			"refused, %d dropped.\n", g.Sent, g.Failed, g.Asked, (g.In+1023)/1024, (g.Out+1023)/1024, g.Refused,
			g.Dropped)
		return nil
	})
}
