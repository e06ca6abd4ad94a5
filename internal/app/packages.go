package app

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"agentsite/handlers/peer"
	"agentsite/internal/fault"
	"agentsite/internal/hub"
	"agentsite/internal/ident"
	"agentsite/internal/packages"
	"agentsite/internal/record"
)

// newPackages returns the service of packages. It runs before the network is built, which publishes them.
func newPackages(p *Portal, keys *ident.Keys) *packages.Service {
	limits := p.programs.Limits()
	return packages.New(packages.Config{Store: p.db.Packages, Modules: p.hosting, Programs: hostedModules{p},
		Fetcher: moduleFetcher{p}, Host: p.url.Host, Self: record.PortalOf(record.Public(keys.Public())),
		Bounds: packages.Limits{MemoryMiB: int64(limits.Pages) / 16, Seconds: int64(limits.Run / time.Second)},
		Changed: func() {
			if p.node != nil {
				p.node.Publisher.Recheck()
			}
		}, Log: p.log})
}

// moduleFetcher implements packages.Fetcher. It refers to the portal, because the network is built after it.
type moduleFetcher struct{ portal *Portal }

// FetchModule implements packages.Fetcher by a signed request to the portal.
func (f moduleFetcher) FetchModule(ctx context.Context, id record.PortalID, hash string, size int64) ([]byte, error) {
	if f.portal.node == nil {
		return nil, fault.New(fault.Unavailable, "This portal is in no network.")
	}
	other, ok := f.portal.peers.Portal(ctx, string(id))
	if !ok {
		return nil, fault.New(fault.Unavailable, "The portal %s is not known.", id)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, other.URL+peer.Base+"/modules/"+hash, nil)
	if err != nil {
		return nil, err
	}
	resp, err := f.portal.node.Client.Transport(id, other.URL).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Unavailable, "%s answered with status %d.", other.Host(), resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, size+1))
	if err == nil && int64(len(data)) != size {
		err = fault.New(fault.Unavailable, "%s sent another module.", other.Host())
	}
	return data, err
}

// ProgramOf implements packages.Programs.
func (h hostedModules) ProgramOf(ctx context.Context, agentID string) (packages.Program, error) {
	a, err := h.portal.db.Hub.AgentByID(ctx, agentID)
	if err != nil {
		return packages.Program{}, err
	}
	var conf hub.WasmConfig
	err = json.Unmarshal(a.Config, &conf)
	return packages.Program{Name: a.Name, OwnerID: a.OwnerID, Module: conf.Module}, err
}
