package app

import (
	"context"
	"net/url"
	"path/filepath"

	"agentsite/agentruntime/assistant"
	"agentsite/internal/clock"
	"agentsite/internal/control"
	"agentsite/internal/fault"
	"agentsite/internal/grant"
	"agentsite/internal/ident"
	"agentsite/internal/library"
	"agentsite/internal/models"
	"agentsite/internal/personal"
	"agentsite/internal/usage"
	"agentsite/internal/weborigin"
)

// openModels builds the services of named models, which it reads, of their usage, of grants, of memories, and of
// hosted programs.
func (p *Portal) openModels(ctx context.Context, keys *ident.Keys) error {
	p.prices = usage.NewPrices(filepath.Join(p.set.Data, usage.PricesFile), clock.Now, p.log)
	p.usage = usage.NewService(p.db.Usages, p.prices, p.log)
	p.ceilings = usage.NewCeilings(p.db.Usages, ownedAgents{p}, p.prices)
	p.grants = grant.NewService(p.db.Grants, grantAgents{p})
	p.memories = newMemories(p)
	var err error
	if p.documents, err = newDocuments(p.set, p.log); err != nil {
		return err
	}
	p.library = library.New(p.db.Library, libraryContents{p}, documents{p.documents, p.log})
	p.models = models.New(models.Config{Store: p.db.Models, Sealer: keys, Set: p.set.Model, SetKey: p.set.LLMKey,
		Addresses: addressPolicy{p.egress}, Watcher: assistantSwitch{p}})
	if unit := p.set.Budget.Currency; unit != "" && p.set.Model != nil {
		if _, currency, known := p.prices.Find(p.set.Model.Model, p.set.Model.Price); !known || currency != unit {
			p.log.Warn("the portal's model is not asked until its price is known in the currency of --model-budget",
				"model", p.set.Model.Model, "currency", unit, "file", usage.PricesFile)
		}
	}
	return p.models.Load(ctx)
}

// namedModels implements hub.Models.
type namedModels struct{ models *models.Service }

func (n namedModels) NamedModel(ownerID, name string) (model, host string, ok bool) {
	m, ok := n.models.Find(ownerID, name)
	if !ok {
		return "", "", false
	}
	u, err := url.Parse(m.URL)
	if err != nil || weborigin.IsLoopback(u.Hostname()) {
		return m.Model, "", true
	}
	return m.Model, u.Host, true
}

// hasDefault reports whether the portal has a model of its own.
func (n namedModels) hasDefault() bool {
	_, ok := n.models.Find("", models.Default)
	return ok
}

// assistantSwitch implements models.Watcher: the assistant is there while the portal has a model of its own. It refers
// to the portal, because the hub is built later.
type assistantSwitch struct{ portal *Portal }

// PortalModelsChanged implements models.Watcher. It waits until the directory is loaded, which would else overwrite
// the change. A failure is logged, because the model is stored and the next start tries again.
func (s assistantSwitch) PortalModelsChanged(ctx context.Context) {
	p := s.portal
	select {
	case <-p.loaded:
	case <-ctx.Done():
		return
	}
	ctx = context.WithoutCancel(ctx)
	change := func() error { return p.hub.RetireBuiltin(ctx, assistant.Name) }
	if (namedModels{p.models}).hasDefault() {
		change = func() error { return p.hub.EnsureBuiltin(ctx, assistant.NewDraft()) }
	}
	if err := change(); err != nil {
		p.log.Error("show or hide the assistant", "error", err)
		return
	}
	a, err := p.db.Hub.AgentByName(ctx, assistant.Name)
	if err == nil {
		p.hub.Reindex(ctx, a.ID)
	} else if !fault.Is(err, fault.NotFound) {
		p.log.Error("find the assistant", "error", err)
	}
}

// ownedAgents implements usage.OwnedAgents. It refers to the portal, because the hub is built later.
type ownedAgents struct{ portal *Portal }

func (o ownedAgents) OwnedAgent(ctx context.Context, actor ident.Actor, name string) (string, error) {
	a, err := o.portal.hub.Get(ctx, actor, name)
	if err == nil && a.OwnerID != actor.ID {
		err = fault.New(fault.Forbidden, "Only the owner of %s, who pays for its models, may do that.", a.Handle())
	}
	return a.ID, err
}

// newPersonal returns the service for the data of people, who may erase their own accounts.
func (p *Portal) newPersonal(host string) *personal.Service {
	remover := control.Remover{Accounts: p.accounts, DB: p.db, Rooms: p.chats, Agents: p.hub, Programs: keptPrograms{p}}
	return personal.New(p.db.Personal, p.db.Chat.Files, host, p.accounts,
		func(ctx context.Context, name string, m personal.Messages) error {
			removed, err := remover.Remove(ctx, name, m)
			if err == nil && len(removed.Copies) > 0 {
				p.log.Warn("an account was erased, which older copies of the database in the data folder still "+
					"hold; delete them when no upgrade has to be undone, and backups made before today with them",
					"copies", removed.Copies)
			}
			return err
		})
}

// keptPrograms implements control.Programs.
type keptPrograms struct{ portal *Portal }

// Reload implements control.Programs. It deletes the compiled programs of an erased account.
func (p keptPrograms) Reload(ctx context.Context) error {
	if err := p.portal.hosting.Load(ctx); err != nil {
		return err
	}
	return p.portal.packages.Load(ctx)
}
