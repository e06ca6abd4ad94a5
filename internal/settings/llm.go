package settings

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"agentsite/internal/models"
	"agentsite/internal/usage"
	"agentsite/internal/weborigin"
)

// parseLLM parses the settings of the portal's own model. given is false if none of them is set.
// Loopback and private addresses are allowed, because the operator chose the address.
func parseLLM(provider, address, key, model string) (m models.Model, given bool, err error) {
	if address == "" {
		switch {
		case model != "":
			return m, false, fmt.Errorf("--llm-model %q: say where the model is with --llm-url, for example --llm-url http://127.0.0.1:11434/v1", model)
		case key != "":
			return m, false, fmt.Errorf("--llm-key: say what the key is for with --llm-url, for example --llm-url https://api.openai.com/v1")
		case provider != "" && provider != string(models.OpenAI):
			return m, false, fmt.Errorf("--llm-provider %q: say where the model is with --llm-url, for example --llm-url https://api.anthropic.com/v1", provider)
		}
		return m, false, nil
	}
	u, err := url.Parse(weborigin.ASCIIAddress(weborigin.CompleteAddress(strings.TrimRight(address, "/"))))
	switch {
	case provider != "" && provider != string(models.OpenAI) && provider != string(models.Anthropic):
		return m, false, fmt.Errorf("--llm-provider %q: use %s or %s", provider, models.OpenAI, models.Anthropic)
	case err != nil:
		return m, false, fmt.Errorf("--llm-url: is not an address; write it like http://127.0.0.1:11434/v1")
	case u.User != nil:
		return m, false, fmt.Errorf("--llm-url: leave user and password out and give the key with --llm-key")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return m, false, fmt.Errorf("--llm-url %q: write it like http://127.0.0.1:11434/v1", address)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return m, false, fmt.Errorf("--llm-url: give the base of the API, usually ending in /v1, without query or fragment")
	case strings.HasSuffix(u.Path, "/chat/completions"):
		return m, false, fmt.Errorf("--llm-url %q: give the base of the API: leave /chat/completions out", address)
	case strings.HasSuffix(u.Path, "/messages"):
		return m, false, fmt.Errorf("--llm-url %q: give the base of the API: leave /messages out", address)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return m, false, fmt.Errorf("--llm-key: a key has no spaces, line breaks or special letters")
	}
	if key != "" && u.Scheme == "http" && !nearHost(u.Hostname()) {
		return m, false, fmt.Errorf("--llm-url %q: the key would go over the network in plain text; use https", address)
	}
	if model == "" {
		return m, false, fmt.Errorf("--llm-model: name the model that agents use when they name none")
	}
	if len(model) > 200 || strings.ContainsFunc(model, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return m, false, fmt.Errorf("--llm-model: use at most 200 characters on one line")
	}
	m = models.Model{Name: models.Default, Provider: models.Provider(cmp.Or(provider, string(models.OpenAI))),
		URL: u.String(), Model: model, HasKey: key != "", Fixed: true}
	return m, true, nil
}

// nearHost reports whether a host name or address looks like this machine, a container or a private
// network, where a key may be sent without TLS.
func nearHost(host string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.Unmap().IsLoopback() || ip.Unmap().IsPrivate()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, end := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return !strings.Contains(host, ".")
}

// parseBudget parses the budget of a day for the portal's models: tokens, optionally with k, M or G, or an amount of
// money with the code of its currency. "" is no bound.
func parseBudget(s string) (b usage.Budget, err error) {
	if s == "" {
		return b, nil
	}
	bad := fmt.Errorf("--model-budget %q: give the tokens of a day, for example 500k or 2M, or money, for example "+
		"5.00USD", s)
	number := strings.TrimSpace(s)
	factor := 1.0
	digits := strings.TrimRight(number, "ABCDEFGHIJKLMNOPQRSTUVWXYZkm")
	switch unit := number[len(digits):]; {
	case unit == "":
	case strings.EqualFold(unit, "k"):
		factor = 1e3
	case strings.EqualFold(unit, "m"):
		factor = 1e6
	case unit == "G":
		factor = 1e9
	case len(unit) == 3 && unit == strings.ToUpper(unit):
		b.Currency, factor = unit, usage.Unit
		digits = strings.TrimRight(digits, " ")
	default:
		return b, bad
	}
	if digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return usage.Budget{}, bad
	}
	n, err := strconv.ParseFloat(digits, 64)
	n = math.Round(n*factor*1e3) / 1e3 // 0.07 * 1e6 is 70000.00000000001.
	if err != nil || n > 1e15 || n != math.Trunc(n) || b.Currency != "" && n == 0 {
		return usage.Budget{}, bad
	}
	b.Most = int64(n)
	return b, nil
}
