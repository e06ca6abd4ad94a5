package admin

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"agentsite/handlers/pages"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/fault"
	"agentsite/internal/federation"
	"agentsite/internal/ident"
	"agentsite/internal/record"
	"agentsite/templates"
)

func (d *Pages) peerPolicy(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	pol, err := d.peers.Policy(r.Context(), actor)
	if err != nil {
		return err
	}
	v := policyForm(pol)
	return d.showAdmin(w, r, actor, http.StatusOK, templates.AdminView{Tab: "peers", Policy: &v})
}

// megabyte is the unit in which the operator's forms show and read sizes.
const megabyte = 1 << 20

func policyForm(p federation.Policy) templates.AdminPolicy {
	lines := func(list []string) string { return strings.Join(list, "\n") }
	commas := func(list []string) string { return strings.Join(list, ", ") }
	keys := make([]string, len(p.DenyKeys))
	for i, k := range p.DenyKeys {
		keys[i] = string(k)
	}
	nets := func(list []netip.Prefix) string {
		out := make([]string, len(list))
		for i, n := range list {
			out[i] = n.String()
		}
		return lines(out)
	}
	return templates.AdminPolicy{Mode: p.Mode, Service: p.Service, Export: p.Export.What,
		Vouchers: strconv.Itoa(p.Vouchers), MaxAgents: strconv.Itoa(p.MaxAgents),
		MaxMegabytes: strconv.FormatInt(p.MaxBytes/megabyte, 10), PerSecond: strconv.Itoa(p.PerSecond),
		CallsIn: p.CallsIn, CallsOut: p.CallsOut,
		AllowDomains: lines(p.AllowDomains), DenyDomains: lines(p.DenyDomains), DenyKeys: lines(keys),
		AllowNets: nets(p.AllowNets), DenyNets: nets(p.DenyNets),
		ExportTags: commas(p.Export.Tags), ExportExcept: commas(p.Export.Except),
		ExportLanguages: commas(p.Export.Languages),
		ImportProtocols: commas(p.Import.Protocols), ImportTags: commas(p.Import.Tags),
		ImportExcept: commas(p.Import.Except), ImportLanguages: commas(p.Import.Languages)}
}

// policyFields are the fields of the form of the policy.
var policyFields = []string{"mode", "service", "export", "vouchers", "max_agents", "max_megabytes",
	"requests_per_second", "calls_in", "calls_out", "allow_domains", "deny_domains", "deny_keys", "allow_networks",
	"deny_networks", "export_tags", "export_except", "export_languages", "import_protocols", "import_tags",
	"import_except", "import_languages", "note"}

func (d *Pages) setPeerPolicy(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.KnownForm(w, r, policyFields...)
	if err != nil {
		return err
	}
	pol, err := readPolicy(in)
	if err == nil {
		_, err = d.peers.SetPolicy(r.Context(), actor, pol, in.Get("note"))
	}
	if err == nil {
		return respond.SeeOther(w, r, "/admin/peers")
	}
	messages, code, ok := pages.FieldErrors(w, err)
	if !ok {
		return err
	}
	v := templates.AdminPolicy{Mode: in.Get("mode"), Service: in.Get("service"), Export: in.Get("export"),
		Vouchers: in.Get("vouchers"), MaxAgents: in.Get("max_agents"), MaxMegabytes: in.Get("max_megabytes"),
		PerSecond: in.Get("requests_per_second"), CallsIn: in.Get("calls_in") != "",
		CallsOut: in.Get("calls_out") != "", AllowDomains: in.Get("allow_domains"), DenyDomains: in.Get("deny_domains"),
		DenyKeys:  in.Get("deny_keys"),
		AllowNets: in.Get("allow_networks"), DenyNets: in.Get("deny_networks"), ExportTags: in.Get("export_tags"),
		ExportExcept: in.Get("export_except"), ExportLanguages: in.Get("export_languages"),
		ImportProtocols: in.Get("import_protocols"), ImportTags: in.Get("import_tags"),
		ImportExcept: in.Get("import_except"), ImportLanguages: in.Get("import_languages"), Note: in.Get("note"),
		Errors: messages}
	return d.showAdmin(w, r, actor, code, templates.AdminView{Tab: "peers", Policy: &v})
}

// readPolicy parses the form of the policy for all portals. Errors name the form's field.
func readPolicy(in url.Values) (p federation.Policy, err error) {
	words := func(name string) []string {
		return strings.FieldsFunc(in.Get(name),
			func(r rune) bool { return r == ',' || r == '\n' || r == '\r' || r == ' ' || r == ';' })
	}
	var check fault.Check
	number := func(name string) int {
		n, err := typedNumber(in.Get(name), name)
		check.Field(err == nil, name, "must be a whole number")
		return n
	}
	nets := func(name string) []netip.Prefix {
		list, err := federation.ParseNets(words(name))
		if err != nil {
			check.Field(false, name, "%s", fault.As(err).Safe)
		}
		return list
	}
	p = federation.Policy{Mode: in.Get("mode"), Service: in.Get("service"), Vouchers: number("vouchers"),
		AllowDomains: words("allow_domains"), DenyDomains: words("deny_domains"),
		AllowNets: nets("allow_networks"), DenyNets: nets("deny_networks"), MaxAgents: number("max_agents"),
		MaxBytes: int64(number("max_megabytes")) * megabyte, PerSecond: number("requests_per_second"),
		CallsIn: in.Get("calls_in") != "", CallsOut: in.Get("calls_out") != "",
		Export: federation.Export{What: in.Get("export"), Tags: words("export_tags"), Except: words("export_except"),
			Languages: words("export_languages")},
		Import: federation.Import{Protocols: words("import_protocols"), Tags: words("import_tags"),
			Except: words("import_except"), Languages: words("import_languages")}}
	for _, k := range words("deny_keys") {
		p.DenyKeys = append(p.DenyKeys, record.KeyID(k))
	}
	return p, check.Err()
}
