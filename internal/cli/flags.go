package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/app"
	"agentsite/internal/app/demo"
	"agentsite/internal/control"
)

// flags is a command's flag set, whose defaults come from environment variables, with the variables of
// all flags.
type flags struct {
	*flag.FlagSet
	e   env
	cfg app.Config
	of  command

	portal, token  string
	note, proof    string
	apply          string
	user, label    string
	scopes         list
	expires        days
	admin, stdin   bool
	yes            bool
	deleteMessages bool
	passphrase     string
	to             string
	cancel         bool
	root           string // path of a file with a root key
	agentName      string
	lang           string // of a package
	members        list   // of the team of a goal
	envs           list   // environment variables that an agent's file may refer to
	run            agentRun
	limit          int
	here           bool             // search only this portal
	filters        map[string]*list // filters of a search, by their name in the API
	sort           string
	json           bool
	conversation   string
	files          paths
	demo           demo.Config
	bad            error // error of a malformed environment variable; nil if there is none
}

func newFlags(e env, c command) *flags {
	fs := &flags{FlagSet: flag.NewFlagSet(c.name, flag.ContinueOnError), e: e, cfg: app.Defaults(), of: c}
	fs.SetOutput(io.Discard)
	fs.Usage = func() {} // otherwise package flag prints the usage after every mistake
	return fs
}

// printHelp prints the usage of the command to stdout.
func (fs *flags) printHelp() {
	c, out := fs.of, fs.e.stdout
	fmt.Fprintf(out, "Usage: agentsite %s\n\n%s\n", strings.TrimSpace(c.name+" [FLAGS] "+c.args), c.about)
	fs.VisitAll(func(f *flag.Flag) {
		def := ""
		if f.DefValue != "" && f.DefValue != "false" {
			def = " (default " + f.DefValue + ")"
		}
		name, text := flag.UnquoteUsage(f)
		fmt.Fprintf(out, "  --%s %s\n      %s%s\n", f.Name, name, text, def)
	})
}

// addSetting declares a text flag. The environment variable, if set, replaces the default.
func (fs *flags) addSetting(p *string, name, variable, about string) {
	if v := fs.e.getenv(variable); v != "" {
		*p = v
	}
	fs.StringVar(p, name, *p, about+" ["+variable+"]")
}

// addSwitch declares a boolean flag. The environment variable (on or off), if set, replaces the default.
func (fs *flags) addSwitch(p *bool, name, variable, about string) {
	switch v := fs.e.getenv(variable); v {
	case "", "off", "0", "false":
	case "on", "1", "true":
		*p = true
	default:
		fs.bad = usagef("%s %q: use on or off", variable, v)
	}
	fs.BoolVar(p, name, *p, about+" ["+variable+"]")
}

// isGiven reports whether a flag was set on the command line, in contrast to the environment.
func (fs *flags) isGiven(name string) (found bool) {
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// givenSettings returns the flags and environment variables that set values which an operator may else change in the
// browser, by the name of the setting.
func (fs *flags) givenSettings() map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"name", "accounts", "guests", "limits"} {
		if variable := "AGENTSITE_" + strings.ToUpper(name); fs.e.getenv(variable) != "" {
			out[name] = variable
		}
		if fs.isGiven(name) {
			out[name] = "--" + name
		}
	}
	return out
}

// hideDefault replaces a flag's default by "set" in the usage, because it is secret.
func (fs *flags) hideDefault(name string) {
	if f := fs.Lookup(name); f.DefValue != "" {
		f.DefValue = "set"
	}
}

// parseArgs parses flags before, between and after arguments, and returns the arguments. Everything
// after -- is an argument.
func (fs *flags) parseArgs(args []string) ([]string, error) {
	var rest []string
	for {
		err := fs.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			fs.printHelp()
			return nil, err
		}
		if err != nil {
			return nil, usagef("%s; `agentsite %s --help` lists the flags", err, fs.Name())
		}
		left := fs.Args()
		consumed := len(args) - len(left)
		if consumed > 0 && args[consumed-1] == "--" {
			return append(rest, left...), fs.bad
		}
		if len(left) == 0 {
			return rest, fs.bad
		}
		rest = append(rest, left[0])
		args = left[1:]
	}
}

func dataFlags(fs *flags) {
	fs.addSetting(&fs.cfg.Data, "data", "AGENTSITE_DATA", "the portal's data `DIR`")
	fs.addSetting(&fs.cfg.Database, "database", "AGENTSITE_DATABASE",
		"`URL` of a PostgreSQL database, postgres://…; default a file in the data folder")
	fs.hideDefault("database")
	fs.addSetting(&fs.cfg.KeyFile, "key-file", "AGENTSITE_KEY_FILE",
		"`FILE` of the portal's root key outside the data folder; default portal.key in it")
}

func serveFlags(fs *flags) {
	dataFlags(fs)
	fs.addSetting(&fs.cfg.Listen, "listen", "AGENTSITE_LISTEN", "`ADDR` to listen on; port 0 picks a free one")
	fs.addSetting(&fs.cfg.URL, "url", "AGENTSITE_URL",
		"`URL` under which others reach this portal; remembered; default http:// and the listening address")
	fs.addSetting(&fs.cfg.Name, "name", "AGENTSITE_NAME", "`NAME` of the portal on its pages; default its host")
	fs.addSetting(&fs.cfg.Accounts, "accounts", "AGENTSITE_ACCOUNTS",
		"policy for sign-up: `open|invite|closed`; default open on a loopback URL, else invite")
	fs.addSetting(&fs.cfg.Guests, "guests", "AGENTSITE_GUESTS",
		"whether visitors may talk to public agents within limits: `on|off`")
	fs.addSetting(&fs.cfg.AllowCIDR, "allow-cidr", "AGENTSITE_ALLOW_CIDR",
		"private address `RANGES` that outgoing calls may reach, separated by commas")
	fs.addSetting(&fs.cfg.TrustedProxies, "trusted-proxies", "AGENTSITE_TRUSTED_PROXIES",
		"address `RANGES` of proxies whose forwarding headers are trusted")
	fs.addSetting(&fs.cfg.LLMURL, "llm-url", "AGENTSITE_LLM_URL",
		"`URL` of the portal's own model, the base of its API, usually ending in /v1")
	fs.addSetting(&fs.cfg.LLMProvider, "llm-provider", "AGENTSITE_LLM_PROVIDER",
		"the protocol of --llm-url: `openai|anthropic`")
	fs.addSetting(&fs.cfg.LLMKey, "llm-key", "AGENTSITE_LLM_KEY", "its `KEY`, if it needs one")
	fs.hideDefault("llm-key")
	fs.addSetting(&fs.cfg.LLMModel, "llm-model", "AGENTSITE_LLM_MODEL", "its `NAME`, for example llama3.2")
	fs.addSetting(&fs.cfg.ModelBudget, "model-budget", "AGENTSITE_MODEL_BUDGET",
		"`AMOUNT` a day, UTC, that the portal's own models may use: tokens, for example 2M, or money, for example "+
			"5.00USD; default no ceiling for accounts")
	fs.addSetting(&fs.cfg.Embeddings, "embeddings", "AGENTSITE_EMBEDDINGS",
		"`URL,MODEL` of an OpenAI-compatible server of embeddings for searches by meaning; default the model in this "+
			"program")
	fs.addSetting(&fs.cfg.EmbeddingsKey, "embeddings-key", "AGENTSITE_EMBEDDINGS_KEY", "its `KEY`, if it needs one")
	fs.hideDefault("embeddings-key")
	fs.addSwitch(&fs.cfg.EmbeddingsPrivate, "embeddings-private", "AGENTSITE_EMBEDDINGS_PRIVATE",
		"let it get texts of conversations and goals too, not only searches and listed agents")
	fs.addSetting(&fs.cfg.Limits, "limits", "AGENTSITE_LIMITS",
		"bounds that differ from the defaults, as `NAME=VALUE` pairs separated by commas; /docs/operate/limits lists them")
	fs.addSetting(&fs.cfg.SMTP, "smtp", "AGENTSITE_SMTP",
		"mail `SERVER` for password resets, as smtp://user:password@host:587")
	fs.hideDefault("smtp")
	fs.addSetting(&fs.cfg.MailFrom, "mail-from", "AGENTSITE_MAIL_FROM", "`ADDRESS` that mails come from")
	fs.addSetting(&fs.cfg.Network, "network", "AGENTSITE_NETWORK",
		"`NAME` of the network of portals this one is part of; off for none")
	fs.addSetting(&fs.cfg.Join, "join", "AGENTSITE_JOIN", "`URLS` of the first portals to contact, separated by commas")
	fs.addSetting(&fs.cfg.Gossip, "gossip", "AGENTSITE_GOSSIP",
		"gossip between portals: `https|ADDR|off`; https uses signed requests to the portal's own address, "+
			"IP:PORT uses UDP and TCP there")
	fs.addSetting(&fs.cfg.Tier, "tier", "AGENTSITE_TIER",
		"amount of data stored of other portals: `auto|replica|summary|index`; auto stores all agents while "+
			"there are fewer than 2,000,000, index always, and answers searches of others")
	fs.addSetting(&fs.cfg.MetricsListen, "metrics-listen", "AGENTSITE_METRICS_LISTEN",
		"`ADDR` where /metrics and /debug/pprof are read without a token; default none")
	fs.addSwitch(&fs.cfg.Conformance, "conformance", "AGENTSITE_CONFORMANCE",
		"add the agent conformance, which behaves as the official test suites ask, for tests only")
	fs.addSetting(&fs.cfg.Log, "log", "AGENTSITE_LOG", "form of the log on stderr: `text|json`")
	fs.addSetting(&fs.cfg.LogLevel, "log-level", "AGENTSITE_LOG_LEVEL",
		"least `LEVEL` that is logged: debug, info, warn, error")
}

// keysFlags declares the settings that determine the card of a portal that does not run.
func keysFlags(fs *flags) {
	dataFlags(fs)
	fs.addSetting(&fs.cfg.Network, "network", "AGENTSITE_NETWORK",
		"`NAME` of the portal's network, when it does not run")
	fs.addSetting(&fs.cfg.Name, "name", "AGENTSITE_NAME", "`NAME` of the portal, when it does not run")
}

func keysSignFlags(fs *flags) {
	keysFlags(fs)
	fs.StringVar(&fs.root, "root", "", "`FILE` that holds the root key")
}

func userAddFlags(fs *flags) {
	dataFlags(fs)
	fs.BoolVar(&fs.admin, "admin", false, "make it an operator's account")
	fs.BoolVar(&fs.stdin, "password-stdin", false, "read the password from stdin, one line")
}

func removeFlags(fs *flags) {
	dataFlags(fs)
	fs.BoolVar(&fs.yes, "yes", false, "do not ask for the name once more")
	fs.BoolVar(&fs.deleteMessages, "delete-messages", false,
		"also delete the account's messages in conversations with others, which else stay without its name")
}

func resetFlags(fs *flags) {
	dataFlags(fs)
	fs.addSetting(&fs.cfg.URL, "url", "AGENTSITE_URL", "the portal's `URL`, for the link, when it does not run")
}

func tokenFlags(fs *flags) {
	dataFlags(fs)
	fs.StringVar(&fs.user, "user", "", "`NAME` of the account the token acts for; without it the operator's, if "+
		"there is one only")
	fs.StringVar(&fs.label, "label", "made on the command line", "a `NOTE` to know the token by")
	fs.Var(&fs.scopes, "scope", "narrow the token to a `SCOPE`; may be repeated; without it the token may do "+
		"all its user may")
	fs.expires = 90
	fs.Var(&fs.expires, "expires", "how long the token is good, for example 90d; at most 366d; `TIME`")
}

// portalDefault describes which portal commands call without --portal.
const portalDefault = "default the one that runs on ./data, else " + usualPortal

func portalFlags(fs *flags) {
	fs.addSetting(&fs.portal, "portal", "AGENTSITE_PORTAL", "`URL` of the portal to talk to; "+portalDefault)
	fs.addSetting(&fs.token, "token", "AGENTSITE_TOKEN", "API `TOKEN`; without one you are a guest")
	fs.hideDefault("token")
}

func peersFlags(fs *flags) {
	dataFlags(fs)
	fs.addSetting(&fs.portal, "portal", "AGENTSITE_PORTAL", "`URL` of a running portal, instead of a data folder")
	fs.addSetting(&fs.token, "token", "AGENTSITE_TOKEN", "API `TOKEN` of an operator, for --portal")
	fs.hideDefault("token")
	fs.StringVar(&fs.note, "note", "", "`WHY`, for the log of decisions")
	fs.BoolVar(&fs.json, "json", false, "print the API's answer as it is, one JSON object a line")
}

func subscribeFlags(fs *flags) {
	peersFlags(fs)
	fs.StringVar(&fs.apply, "apply", "block",
		"`ACTION` for portals on its list: block blocks them, warn only marks them")
}

func releaseFlags(fs *flags) {
	peersFlags(fs)
	fs.StringVar(&fs.proof, "proof", "", "the `MARK` of the proof that you have checked")
}

func chatFlags(fs *flags) {
	portalFlags(fs)
	fs.StringVar(&fs.conversation, "conversation", "", "go on in the conversation with this `ID`")
	fs.Var(&fs.files, "file", "send the file at `PATH` along; may be repeated")
	fs.BoolVar(&fs.json, "json", false, "print events as they come, one JSON object a line")
}

func searchFlags(fs *flags) {
	portalFlags(fs)
	fs.IntVar(&fs.limit, "limit", 10, "most `N` results")
	fs.BoolVar(&fs.json, "json", false, "print the API's answer as it is")
	fs.StringVar(&fs.sort, "sort", "", "order: `relevance|used|name|newest|updated`")
	fs.BoolVar(&fs.here, "here", false, "only agents of the portal itself, none of others")
	fs.filters = make(map[string]*list)
	for name, what := range map[string]string{"kind": "`KIND` of agent: a2a, mcp, openai, prompt, link, builtin",
		"tag": "`TAG`", "skill": "`SKILL`",
		"language": "`LANGUAGE`, for example de", "modality": "`MODALITY`: text, image, audio, video, data, file",
		"live":      "`STATE`: alive, needs_auth, wrong_protocol, unreachable, unknown",
		"proof":     "`PROOF` of its address: hosted, proved (verified), unproven",
		"publisher": "`DOMAIN` it is published under",
		"signed":    "`true` for agents of verified portals, false for others"} {
		fs.filters[name] = new(list)
		fs.Var(fs.filters[name], name, "only agents of this "+what)
	}
	fs.filters["portal"] = new(list) // --on, because --portal selects the portal that answers
	fs.Var(fs.filters["portal"], "on", "only agents of the portal with this `HOST`")
}

func backupFlags(fs *flags) {
	dataFlags(fs)
	fs.addSetting(&fs.passphrase, "passphrase-file", "AGENTSITE_PASSPHRASE_FILE",
		"`FILE` whose first line encrypts and opens the backup")
}

func moveFlags(fs *flags) {
	dataFlags(fs)
	fs.StringVar(&fs.to, "to", "", "`DATABASE` to move to: postgres://… or "+control.FileTarget)
	fs.BoolVar(&fs.cancel, "cancel", false, "take a move back that has not ended")
}

// list is the value of a flag that may be given several times or with several values separated by
// commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(s string) error {
	for _, v := range strings.Split(s, ",") {
		if v = strings.TrimSpace(v); v != "" {
			*l = append(*l, v)
		}
	}
	return nil
}

// paths is the value of a flag that may be given several times. Commas do not separate, because file
// names may contain them.
type paths []string

func (p *paths) String() string { return strings.Join(*p, " ") }

func (p *paths) Set(s string) error {
	*p = append(*p, s)
	return nil
}

// days is a duration in days, written as 90d or in the units of time.ParseDuration.
type days float64

// leastExpiry is the minimum duration. Shorter ones would be rounded to zero, which means the default.
const leastExpiry = time.Second

func (d *days) String() string { return strconv.FormatFloat(float64(*d), 'f', -1, 64) + "d" }

func (d *days) Set(s string) error {
	if n, ok := strings.CutSuffix(s, "d"); ok {
		v, err := strconv.ParseFloat(n, 64)
		if err != nil || !(v <= 366) || days(v).toDuration() < leastExpiry { // written so that NaN is refused too
			return fmt.Errorf("write a time like 90d, at most 366d")
		}
		*d = days(v)
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < leastExpiry || v > 366*24*time.Hour {
		return fmt.Errorf("write a time like 90d or 12h, at most 366d")
	}
	*d = days(v.Hours() / 24)
	return nil
}

func (d days) toDuration() time.Duration { return time.Duration(float64(d) * 24 * float64(time.Hour)) }
