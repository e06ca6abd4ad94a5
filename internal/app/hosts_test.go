package app_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"agentsite/internal/app"
	"agentsite/internal/testing/apptest"
)

const asciiHost = "xn--bcher-kva.example"

// Each entrance that takes a host takes it in Unicode and keeps it in the form of DNS: the answer and what is read
// afterwards have the latter.
func TestHosts_AnyEntranceTakesUnicode(t *testing.T) {
	p := apptest.Start(t, func(c *app.Config) {
		c.SMTP, c.MailFrom = "smtp://mail.bücher.example", "portal@b.example"
		c.Join = "https://bücher.example"
	})
	c := p.Operator(t, apptest.Fresh("oper"))
	agent := func(more map[string]any) map[string]any {
		in := map[string]any{"name": apptest.Fresh("hosts"), "title": "Hosts", "description": "Answers questions about hosts.",
			"kind": "openai", "endpoint": "https://models.example/v1", "config": map[string]any{"model": "m"}}
		for k, v := range more {
			in[k] = v
		}
		return in
	}
	type step struct {
		method, path string
		body         any
		want         int
		then         string // is read afterwards; "" reads nothing
	}
	for name, steps := range map[string]func(host string) step{
		"stop of a provider": func(host string) step {
			return step{"POST", "/api/v1/providers/" + host + "/stop", map[string]any{"reason": "x"}, 204, "/api/v1/halts"}
		},
		"callers of an agent": func(host string) step {
			return step{"POST", "/api/v1/agents", agent(map[string]any{"limits": map[string]any{"callers": "listed",
				"listed": []string{"ada@" + host, "@" + host}}}), 201, ""}
		},
		"endpoint": func(host string) step {
			return step{"POST", "/api/v1/agents", agent(map[string]any{"endpoint": "https://" + host + "/v1"}), 201, ""}
		},
		"sites that show the chat": func(host string) step {
			return step{"POST", "/api/v1/agents", agent(map[string]any{"embed_origins": []string{"https://" + host}}), 201, ""}
		},
		"agents of a prompt": func(host string) step {
			return step{"POST", "/api/v1/agents", agent(map[string]any{"kind": "prompt", "endpoint": "https://models.example/v1",
				"config": map[string]any{"model": "m", "instructions": "Answer.", "tools": []string{"calc@" + host}}}), 201, ""}
		},
		"webhook": func(host string) step {
			return step{"POST", "/api/v1/webhooks", map[string]any{"url": "https://" + host + "/hook",
				"events": []string{"agent.changed"}}, 201, ""}
		},
		"another portal": func(host string) step { return step{"GET", "/api/v1/peers/" + host, nil, 200, ""} },
		"another portal, by its address": func(host string) step {
			return step{"GET", "/api/v1/peers/https:%2F%2F" + url.PathEscape(host), nil, 200, ""}
		},
		"joining a portal that does not answer": func(host string) step {
			return step{"POST", "/api/v1/peers", map[string]any{"url": "https://" + host}, 400, ""}
		},
		"the page of another portal": func(host string) step { return step{"GET", "/admin/peers/" + host, nil, 200, ""} },
		"denied domains": func(host string) step {
			return step{"PATCH", "/api/v1/peers/policy", map[string]any{"deny_domains": []string{"a." + host}, "note": "x"}, 200, ""}
		},
		"the form of denied domains": func(host string) step {
			return step{"POST", "/admin/peers/policy", form("mode", "open", "vouchers", "2", "service", "on", "max_agents", "50000",
				"max_megabytes", "128", "requests_per_second", "50", "calls_in", "1", "calls_out", "1", "export", "all",
				"deny_domains", "a."+host), 303, "/api/v1/peers/policy"}
		},
		"the form of mail": func(host string) step {
			return step{"POST", "/account/email", form("email", "ada@"+host), 303, "/account"}
		},
		"the form of providers": func(host string) step {
			return step{"POST", "/admin/queue/stop", form("kind", "provider", "name", host), 303, "/api/v1/halts"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, host := range []string{asciiHost, "bücher.example", "BÜCHER.example"} {
				c := c.With(t)
				s := steps(host)
				got := c.Must(s.method, s.path, s.body, s.want).Body
				if s.then != "" {
					got = c.Must(http.MethodGet, s.then, nil, http.StatusOK).Body
				}
				if !strings.Contains(got, asciiHost) || strings.Contains(strings.ToLower(got), "bücher") {
					t.Errorf("%s: %.2000s", host, got)
				}
			}
		})
	}
}
