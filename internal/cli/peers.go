package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"agentsite/internal/control"
	"agentsite/internal/record"
	"agentsite/internal/weborigin"
)

// peer is a portal in the API's format, with the fields that are printed.
type peer struct {
	ID     string         `json:"id"`
	URL    string         `json:"url"`
	Name   string         `json:"name"`
	State  string         `json:"state"`
	Reason string         `json:"reason"`
	Agents int            `json:"agents"`
	RTT    float64        `json:"rtt_ms"`
	Policy string         `json:"policy"`
	Note   string         `json:"note"`
	Faults map[string]int `json:"faults"`
	Follow string         `json:"follow"`
	Bars   string         `json:"refuses"`
	Words  string         `json:"refuses_why"`
}

// refusalReason returns the reason why the two portals do not exchange records, or "" if they do.
func (p peer) refusalReason() string {
	out := record.CleanLine(p.Reason)
	if p.Bars != "" {
		out = strings.TrimSpace(out + " It refuses this portal (" + record.CleanLine(p.Bars) + "): " +
			record.CleanLine(p.Words))
	}
	return out
}

// withPeers calls f with an API client for the portal of --portal, or else for the data folder, whether
// its portal runs or not. --data on the command line has precedence over a portal in the environment.
func withPeers(ctx context.Context, e env, fs *flags, f func(*client) error) error {
	switch folder, portal := fs.isGiven("data"), fs.isGiven("portal"); {
	case folder && portal:
		return usagef("--data and --portal may name two portals: use one of them")
	case folder:
		fs.portal = ""
	}
	if fs.portal != "" {
		c, err := newClient(ctx, fs)
		if err != nil {
			return err
		}
		return f(c)
	}
	return withControl(ctx, e, fs, false, func(c control.Control) error {
		t, err := c.Peers(ctx)
		if err != nil {
			return err
		}
		return f(&client{base: "http://portal", http: &http.Client{Transport: t}})
	})
}

func peerPath(name string) string { return "/api/v1/peers/" + url.PathEscape(hostOf(name)) }

// hostOf returns the host of an address, or name if it is no address. People may name a portal in either
// way.
func hostOf(name string) string {
	name = weborigin.ASCIIHost(weborigin.ASCIIAddress(name))
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		return u.Host
	}
	return name
}

// printRaw prints an answer as received if --json is given, and reports whether it did.
func printRaw(e env, fs *flags, raw json.RawMessage) bool {
	if fs.json {
		fmt.Fprintln(e.stdout, strings.TrimSpace(escapeControls(string(raw))))
	}
	return fs.json
}

// escapeControls returns equivalent JSON in which characters that control a terminal are escaped. JSON
// allows some of them in strings, and strings may come from other portals.
func escapeControls(s string) string {
	steers := func(r rune) bool {
		return unicode.IsControl(r) && !unicode.IsSpace(r) || r == 0x85 || unicode.Is(unicode.Bidi_Control, r)
	}
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if steers(r) { // such runes are below U+10000, so four digits are enough
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func runPeersList(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers list", args, 0, 0); err != nil {
		return err
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		w := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
		if !fs.json {
			fmt.Fprintln(w, "PORTAL\tNAME\tSTATE\tAGENTS\tRTT\tRULE\tWHY")
		}
		for cursor := ""; ; {
			var page struct {
				Peers []json.RawMessage `json:"peers"`
				Next  string            `json:"next_cursor"`
			}
			if err := c.callJSON(ctx, http.MethodGet, "/api/v1/peers?limit=1000&cursor="+url.QueryEscape(cursor), nil,
				&page); err != nil {
				return err
			}
			for _, raw := range page.Peers {
				var p peer
				if err := json.Unmarshal(raw, &p); err != nil {
					return err
				}
				if !printRaw(e, fs, raw) {
					fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", hostOf(p.URL), orDash(record.CleanLine(p.Name)),
						p.State,
						p.Agents, formatRTT(p.RTT), orDash(p.Policy), p.refusalReason())
				}
			}
			if cursor = page.Next; cursor == "" {
				return w.Flush()
			}
		}
	})
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func formatRTT(ms float64) string {
	if ms == 0 {
		return "-"
	}
	return strconv.FormatFloat(ms, 'f', 1, 64) + "ms"
}

func runPeersAdd(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers add", args, 1, 1); err != nil {
		return err
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		var raw json.RawMessage
		if err := c.callJSON(ctx, http.MethodPost, "/api/v1/peers", map[string]string{"url": args[0]},
			&raw); err != nil {
			return err
		}
		var out struct {
			Peer  peer   `json:"peer"`
			Found string `json:"found"`
		}
		if printRaw(e, fs, raw) {
			return nil
		}
		if err := json.Unmarshal(raw, &out); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%s is %s. %s\n", hostOf(out.Peer.URL), out.Peer.State, record.CleanLine(out.Found))
		return nil
	})
}

// ruleCommand returns a command that sets a rule for a portal; an empty rule removes it.
func ruleCommand(name, rule string) func(context.Context, env, *flags, []string) error {
	return func(ctx context.Context, e env, fs *flags, args []string) error {
		if err := checkArgs(name, args, 1, 1); err != nil {
			return err
		}
		in := map[string]any{"policy": rule}
		if fs.note != "" || rule == "" { // a removal also clears the note
			in["note"] = fs.note
		}
		return withPeers(ctx, e, fs, func(c *client) error {
			return printPeer(ctx, e, fs, c, http.MethodPatch,
				peerPath(args[0]), in)
		})
	}
}

func runPeersSubscribe(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers subscribe", args, 1, 1); err != nil {
		return err
	}
	if fs.apply != "block" && fs.apply != "warn" {
		return usagef("peers subscribe: --apply %q: use block or warn", fs.apply)
	}
	return setFollow(ctx, e, fs, args[0], fs.apply)
}

func runPeersUnsubscribe(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers unsubscribe", args, 1, 1); err != nil {
		return err
	}
	return setFollow(ctx, e, fs, args[0], "")
}

// setFollow subscribes to the block list of a portal; an empty apply ends the subscription.
func setFollow(ctx context.Context, e env, fs *flags, name, apply string) error {
	in := map[string]any{"follow": apply}
	if fs.note != "" {
		in["note"] = fs.note
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		return printPeer(ctx, e, fs, c, http.MethodPatch,
			peerPath(name), in)
	})
}

// printPeer calls a route that answers with a portal, and prints that portal's state and rule.
func printPeer(ctx context.Context, e env, fs *flags, c *client, method, path string, in any) error {
	var raw json.RawMessage
	if err := c.callJSON(ctx, method, path, in, &raw); err != nil || printRaw(e, fs, raw) {
		return err
	}
	var p peer
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	rule := ""
	if p.Policy != "" {
		rule = ", rule " + p.Policy
	}
	if p.Follow != "" {
		rule += ", its list is followed (" + p.Follow + ")"
	}
	fmt.Fprintf(e.stdout, "%s is %s%s\n", hostOf(p.URL), p.State, rule)
	return nil
}

func runPeersForget(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers forget", args, 1, 1); err != nil {
		return err
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		if err := c.callJSON(ctx, http.MethodDelete, peerPath(args[0])+"?note="+url.QueryEscape(fs.note), nil,
			nil); err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "deleted %s\n", hostOf(args[0]))
		return nil
	})
}

// runPeersRelease prints the proof that a portal signed contradictory statements. With --proof, which
// repeats its name, the portal is released.
func runPeersRelease(ctx context.Context, e env, fs *flags, args []string) error {
	if err := checkArgs("peers release", args, 1, 1); err != nil {
		return err
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		if fs.proof == "" {
			var proof struct {
				Type    string `json:"type"`
				Seq     int64  `json:"seq"`
				Mark    string `json:"proof"`
				Records []struct {
					Says string `json:"says"`
				} `json:"records"`
			}
			err := c.callJSON(ctx, http.MethodGet, peerPath(args[0])+"/proof", nil, &proof)
			if err == nil {
				for i, r := range proof.Records {
					fmt.Fprintf(e.stdout, "%s number %d, statement %d of %d:\n%s\n", proof.Type, proof.Seq, i+1,
						len(proof.Records), cleanText(r.Says))
				}
				return fmt.Errorf("it signed both; if you know the reason, release it with --proof %s", proof.Mark)
			}
			if a, ok := err.(apiError); !ok || a.Kind != "not_found" {
				return err
			}
		}
		return printPeer(ctx, e, fs, c, http.MethodPost, peerPath(args[0])+"/release",
			map[string]string{"proof": fs.proof, "note": fs.note})
	})
}

// runPeersPolicy changes the fields given as FIELD=VALUE and prints the policy for all portals.
func runPeersPolicy(ctx context.Context, e env, fs *flags, args []string) error {
	in := map[string]any{}
	for _, a := range args {
		field, value, ok := strings.Cut(a, "=")
		if !ok {
			return usagef("peers policy: write FIELD=VALUE, as in mode=allowlist or " +
				"deny_domains=spam.example,more.example")
		}
		switch field {
		case "allow_domains", "deny_domains", "deny_keys", "allow_networks", "deny_networks":
			in[field] = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
		case "vouchers", "max_agents", "max_bytes", "requests_per_second":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return usagef("peers policy: %s is a whole number", field)
			}
			in[field] = n
		case "calls_in", "calls_out":
			b, err := strconv.ParseBool(value)
			if err != nil {
				return usagef("peers policy: %s is true or false", field)
			}
			in[field] = b
		case "export", "import":
			in[field] = json.RawMessage(value)
		default:
			in[field] = value
		}
	}
	return withPeers(ctx, e, fs, func(c *client) error {
		method, body := http.MethodGet, any(nil)
		if len(in) > 0 {
			if fs.note != "" {
				in["note"] = fs.note
			}
			method, body = http.MethodPatch, in
		}
		var raw json.RawMessage
		if err := c.callJSON(ctx, method, "/api/v1/peers/policy", body, &raw); err != nil || printRaw(e, fs, raw) {
			return err
		}
		return writePolicy(e.stdout, raw)
	})
}

func writePolicy(w io.Writer, raw json.RawMessage) error {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	if _, err := dec.Token(); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return err
		}
		fmt.Fprintf(t, "%v\t%s\n", name, strings.Trim(escapeControls(string(v)), `"`))
	}
	return t.Flush()
}
