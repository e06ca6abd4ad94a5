// Package settings holds the operator's settings of a portal, checks them and parses them.
package settings

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"agentsite/internal/account"
	"agentsite/internal/adjust"
	"agentsite/internal/hub"
	"agentsite/internal/models"
	"agentsite/internal/record"
	"agentsite/internal/usage"
	"agentsite/internal/weborigin"
	"agentsite/peering/gossip"
)

// Config holds the operator's settings as written. Zero values are the defaults in the manual
// (docs/start.md).
type Config struct {
	Listen         string
	Data           string
	Database       string // the URL of a PostgreSQL database; "" for a file in Data
	KeyFile        string // the file of the root key; "" for portal.key in Data
	URL            string
	Name           string
	Contact        string // Markdown; set in the browser only, like Rules
	Rules          string
	Accounts       string
	Guests         string
	AllowCIDR      string
	TrustedProxies string
	LLMProvider    string
	LLMURL         string
	LLMKey         string
	LLMModel       string
	ModelBudget    string
	// Embeddings is the address of a server and its model, separated by a comma; "" for the model in the binary.
	Embeddings    string
	EmbeddingsKey string
	// EmbeddingsPrivate lets texts of conversations and goals go to that server.
	EmbeddingsPrivate bool
	Limits            string
	SMTP              string
	MailFrom          string
	Log               string
	LogLevel          string
	// Network is the name of the portal's network, or NoNetwork. Join has addresses of portals,
	// separated by commas, that are contacted first.
	Network string
	Join    string
	// Tier is how much is stored of other portals: TierAuto, record.TierReplica, record.TierSummary
	// or record.TierIndex.
	Tier string
	// Gossip is the transport for hints to other portals: GossipHTTPS, GossipOff, or a listen
	// address for UDP and TCP.
	Gossip string
	// RemoteAgents replaces the network of portals. Only tests set it.
	RemoteAgents hub.Network
	// Conformance adds the behaviour that the official test suites of the protocols require. It is
	// off in normal operation.
	Conformance bool
	// MetricsListen is a second listen address that serves metrics without a token; empty for none.
	MetricsListen string
	// CheapHashes is account.Config.CheapHashes, for tests. No setting sets it.
	CheapHashes bool
	// MostPeers bounds the known portals, 0 for the default. No setting sets it.
	MostPeers int
	// PeerIdle bounds the idle connections to other portals, 0 for the default. No setting sets it.
	PeerIdle int
	// Bare leaves out the agents of the programs that come with the portal. Only tests set it: they count agents.
	Bare bool
	// Given are the flags or environment variables that set values which an operator may change in the browser, by the
	// name of the setting. They win over stored values.
	Given adjust.Values
	// Goals replaces the examples of goals on the pages. Only the demo sets it.
	Goals []string
}

// Defaults returns the settings of a portal that was started without any.
func Defaults() Config {
	return Config{Listen: "127.0.0.1:8080", Data: "./data", Guests: "on", Log: "text", LogLevel: "info",
		Network: DefaultNetwork, Tier: TierAuto, Gossip: GossipHTTPS}
}

// DefaultNetwork is the network of a portal without the setting. NoNetwork is the value that turns
// federation off.
const (
	DefaultNetwork = "agentsite-main"
	NoNetwork      = "off"
)

// GossipHTTPS sends hints as signed requests, GossipOff sends none.
const (
	GossipHTTPS = "https"
	GossipOff   = "off"
)

// TierAuto chooses the tier by the number of known portals.
const TierAuto = "auto"

// maxJoin bounds the addresses of Config.Join.
const maxJoin = 64

// Settings is a Config with its parsed values. Config.Parse creates it.
type Settings struct {
	Config
	// Address is the portal's URL as it was set. nil means the URL of the last start, or without
	// one the listen address.
	Address       *url.URL
	AccountPolicy account.Policy // empty: the default depends on the portal's URL
	GuestsAllowed bool
	AllowedNets   []netip.Prefix
	Proxies       []netip.Prefix
	Level         slog.Level
	Model         *models.Model // nil: the portal has no model of its own
	Budget        usage.Budget
	Embedder      Embedder // zero: the model in the binary
	Bounds        Limits   // the defaults with what Config.Limits changes
	NetworkName   string   // name of the network, empty: no federation
	JoinOrigins   []string // origins of the portals in Config.Join
	FixedTier     string   // empty: the portal chooses
}

// Validate checks all settings. Its error names the first invalid one and how to write it.
func (c Config) Validate() error {
	_, err := c.Parse()
	return err
}

func (c Config) Parse() (Settings, error) {
	s := Settings{Config: c}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return s, fmt.Errorf("--listen %q: give an address and port, for example 127.0.0.1:8080", c.Listen)
	}
	if c.URL != "" {
		if s.Address, err = ParseURL(c.URL); err != nil {
			return s, fmt.Errorf("--url %q: %w", c.URL, err)
		}
	} else if !weborigin.IsLoopback(host) {
		return s, fmt.Errorf("--listen %s is reached from other machines, so the portal must know its own address: give --url, for example --url https://agents.example.org", c.Listen)
	}
	if err := cmp.Or(c.checkPlaces(), c.checkTexts()); err != nil {
		return s, err
	}
	switch c.Accounts {
	case "", "open", "invite", "closed":
		s.AccountPolicy = account.Policy(c.Accounts)
	default:
		return s, fmt.Errorf("--accounts %q: use open, invite or closed", c.Accounts)
	}
	switch c.Guests {
	case "on", "":
		s.GuestsAllowed = true
	case "off":
	default:
		return s, fmt.Errorf("--guests %q: use on or off", c.Guests)
	}
	switch c.Network {
	case NoNetwork:
	case "":
		s.NetworkName = DefaultNetwork
	default:
		if s.NetworkName = c.Network; !record.ValidNetwork(c.Network) {
			return s, fmt.Errorf("--network %q: use 1 to 32 of a–z, 0–9 and -, beginning with a letter, or off",
				c.Network)
		}
	}
	if s.JoinOrigins, err = parseJoin(c.Join, s.NetworkName != ""); err != nil {
		return s, err
	}
	switch c.Tier {
	case TierAuto, "":
	case record.TierReplica, record.TierSummary, record.TierIndex:
		s.FixedTier = c.Tier
	case record.TierLeaf:
		return s, fmt.Errorf("--tier %s: this version cannot be that yet; use auto, replica, summary or index", c.Tier)
	default:
		return s, fmt.Errorf("--tier %q: use auto, replica, summary or index", c.Tier)
	}
	switch c.Gossip {
	case GossipHTTPS, GossipOff, "":
	default:
		if _, _, err := gossip.ParseListen(c.Gossip); err != nil {
			return s, fmt.Errorf("--gossip %q: %w; or https, or off", c.Gossip, err)
		}
	}
	if s.AllowedNets, err = parsePrefixes("--allow-cidr", c.AllowCIDR); err != nil {
		return s, err
	}
	if s.Proxies, err = parsePrefixes("--trusted-proxies", c.TrustedProxies); err != nil {
		return s, err
	}
	model, given, err := parseLLM(c.LLMProvider, c.LLMURL, c.LLMKey, c.LLMModel)
	if err != nil {
		return s, err
	}
	if given {
		s.Model = &model
	}
	if s.Budget, err = parseBudget(c.ModelBudget); err != nil {
		return s, err
	}
	if s.Embedder, err = c.parseEmbeddings(); err != nil {
		return s, err
	}
	if s.Bounds, err = parseLimits(c.Limits); err != nil {
		return s, err
	}
	if c.SMTP != "" {
		if _, err := ParseMail(c.SMTP, c.MailFrom); err != nil {
			return s, err
		}
	}
	if _, _, err := net.SplitHostPort(c.MetricsListen); c.MetricsListen != "" && err != nil {
		return s, fmt.Errorf("--metrics-listen %q: give an address and port, for example 127.0.0.1:9090",
			c.MetricsListen)
	}
	if c.Log != "text" && c.Log != "json" && c.Log != "" {
		return s, fmt.Errorf("--log %q: use text or json", c.Log)
	}
	if c.LogLevel != "" {
		if err := s.Level.UnmarshalText([]byte(c.LogLevel)); err != nil {
			return s, fmt.Errorf("--log-level %q: use debug, info, warn or error", c.LogLevel)
		}
	}
	return s, nil
}

func ParseURL(s string) (*url.URL, error) {
	u, err := url.Parse(weborigin.ASCIIAddress(strings.TrimRight(s, "/")))
	switch {
	case err != nil:
		return nil, fmt.Errorf("is not an address")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, fmt.Errorf("write it like https://agents.example.org")
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("a portal has an address of its own, without path, query or user")
	}
	u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":") // url.Parse keeps the colon of an empty port
	if p := u.Port(); p == "80" && u.Scheme == "http" || p == "443" && u.Scheme == "https" {
		u.Host = strings.TrimSuffix(u.Host, ":"+p)
	}
	return u, nil
}

// parseJoin parses addresses of portals separated by commas and returns each origin once. There must be none without
// a network.
func parseJoin(list string, network bool) ([]string, error) {
	var out []string
	for _, s := range strings.Split(list, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		u, err := ParseURL(s)
		if err != nil {
			return nil, fmt.Errorf("--join %q: %w", s, err)
		}
		if !record.ValidOrigin(u.String()) {
			return nil, fmt.Errorf("--join %q: portals are called by https://, on this machine by http://", s)
		}
		if !slices.Contains(out, u.String()) {
			out = append(out, u.String())
		}
	}
	if len(out) > maxJoin {
		return nil, fmt.Errorf("--join: name at most %d portals; they tell of the others", maxJoin)
	}
	if len(out) > 0 && !network {
		return nil, fmt.Errorf("--join names portals and --network is off; leave one of them away")
	}
	return out, nil
}

func parsePrefixes(name, list string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range strings.Split(list, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			ip, aerr := netip.ParseAddr(s)
			if aerr != nil {
				return nil, fmt.Errorf("%s %q: write address ranges like 10.0.0.0/8, separated by commas", name, s)
			}
			p = netip.PrefixFrom(ip, ip.BitLen())
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// NewLogger returns a logger that writes to w in the format and from the level of the settings.
func (s Settings) NewLogger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: s.Level}
	if s.Log == "json" {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}

// Redacted returns the settings as key and value pairs for the log. Of secrets it says only that
// they are set.
func (s Settings) Redacted() []any {
	key := ""
	if s.LLMKey != "" {
		key = "set"
	}
	embeddingsKey := ""
	if s.EmbeddingsKey != "" {
		embeddingsKey = "set"
	}
	smtp := ""
	if s.SMTP != "" {
		smtp = "set"
	}
	return []any{"listen", s.Listen, "data", s.Data, "database", HidePassword(s.Database), "key_file", s.KeyFile, "url", s.URL, "accounts", s.Accounts, "guests", s.Guests,
		"allow_cidr", s.AllowCIDR, "trusted_proxies", s.TrustedProxies, "smtp", smtp,
		"llm_provider", s.LLMProvider, "llm_url", s.LLMURL, "llm_key", key, "llm_model", s.LLMModel, "model_budget", s.ModelBudget,
		"embeddings", s.Embeddings, "embeddings_key", embeddingsKey, "embeddings_private", s.EmbeddingsPrivate, "limits",
		s.Limits, "network",
		s.NetworkName, "join", s.Join, "tier", s.Tier, "gossip", s.Gossip, "metrics_listen", s.MetricsListen,
		"conformance", s.Conformance}
}

// LoopbackRanges are the addresses that a portal may connect to in addition when it is itself on
// loopback.
var LoopbackRanges = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// GossipListen returns the listen address for hints over UDP and TCP; empty if hints are signed
// requests.
func (s Settings) GossipListen() string {
	if s.Gossip == GossipHTTPS {
		return ""
	}
	return s.Gossip
}
