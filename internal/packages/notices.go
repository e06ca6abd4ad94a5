package packages

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/ident"
	"agentsite/internal/record"
)

// Notice is a kill notice. Binding is true for those of the own operator; other portals' are advice, and bind only
// programs that came from their package.
type Notice struct {
	Kill
	Portal   string // host of the portal; empty for this one
	PortalID string // empty for this portal
	Package  string // name and version, if it is about a package
	Binding  bool
}

// noticeOf returns the notice in a killed package of another portal.
func noticeOf(p *Package) Notice {
	return Notice{Kill: Kill{p.Module, p.Note, p.UpdatedAt}, Portal: p.Portal, PortalID: p.PortalID,
		Package: p.Name + "/" + p.Version}
}

// compareNotices orders notices, the newest first.
func compareNotices(a, b Notice) int {
	return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.Hash, b.Hash), strings.Compare(a.Package, b.Package))
}

// Notices returns the kill notices that this portal knows, the newest first. Only operators may read them.
func (s *Service) Notices(actor ident.Actor) ([]Notice, error) {
	if err := requireOperator(actor); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]Notice, 0, len(s.kills)+s.notices.count)
	for _, k := range s.kills {
		list = append(list, Notice{Kill: k, Binding: true})
	}
	for _, p := range s.own {
		if p.State == Killed {
			list = append(list, Notice{Kill: Kill{p.Module, p.Note, p.UpdatedAt}, Package: p.Name + "/" + p.Version,
				Binding: true})
		}
	}
	for _, of := range s.notices.byPortal {
		for _, n := range of {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, compareNotices)
	return list, nil
}

// Bounds of the kill notices of other portals that are kept.
const (
	maxNotices         = 10_000
	maxNoticesOfPortal = 200
)

// noticeKey names a kill notice of another portal.
type noticeKey struct{ portal, hash string }

// noticeBook has the kill notices of other portals, at most one for each portal and hash. A notice stays when the
// record that it came with is gone, because a kill is final. A portal can displace only its own notices, or those of a
// portal that has more.
type noticeBook struct {
	byPortal map[string]map[string]Notice // by the id of the portal and the hash
	count    int
	unsaved  map[noticeKey]bool // notices that were put or removed since they were saved
}

func newNoticeBook() noticeBook {
	return noticeBook{byPortal: make(map[string]map[string]Notice), unsaved: make(map[noticeKey]bool)}
}

// put adds a notice, or replaces an older one of the portal for this hash. It reports whether there is something to
// save.
func (b *noticeBook) put(n Notice) (changed bool) {
	of := b.byPortal[n.PortalID]
	if have, ok := of[n.Hash]; ok {
		if have == n || compareNotices(have, n) < 0 {
			return false
		}
	} else if !b.makeRoom(n) {
		return false
	}
	b.set(n)
	b.unsaved[noticeKey{n.PortalID, n.Hash}] = true
	return true
}

// set adds or replaces a notice that there is room for.
func (b *noticeBook) set(n Notice) {
	of := b.byPortal[n.PortalID]
	if of == nil {
		of = make(map[string]Notice)
		b.byPortal[n.PortalID] = of
	}
	if _, ok := of[n.Hash]; !ok {
		b.count++
	}
	of[n.Hash] = n
}

// makeRoom removes the oldest notice of a portal if the bounds are reached. It returns false if n is the oldest.
func (b *noticeBook) makeRoom(n Notice) bool {
	from, have := n.PortalID, len(b.byPortal[n.PortalID])
	if have < maxNoticesOfPortal && b.count < maxNotices {
		return true
	}
	if have < maxNoticesOfPortal {
		most := have + 1
		for portal, of := range b.byPortal {
			if len(of) > most {
				from, most = portal, len(of)
			}
		}
	}
	oldest, found := n, false
	for _, old := range b.byPortal[from] {
		if from != n.PortalID && !found || compareNotices(old, oldest) > 0 {
			oldest, found = old, true
		}
	}
	if !found {
		return false
	}
	delete(b.byPortal[from], oldest.Hash)
	b.count--
	if len(b.byPortal[from]) == 0 {
		delete(b.byPortal, from)
	}
	b.unsaved[noticeKey{from, oldest.Hash}] = true
	return true
}

// find returns the notice of a portal for a hash.
func (b *noticeBook) find(portal, hash string) (Notice, bool) {
	n, ok := b.byPortal[portal][hash]
	return n, ok
}

// takeNotice keeps the notice in a killed package of another portal. The caller holds mu.
func (s *Service) takeNotice(p *Package) {
	if p.State == Killed && s.notices.put(noticeOf(p)) {
		s.wakeNotices()
	}
}

// wakeNotices makes Run save notices.
func (s *Service) wakeNotices() {
	select {
	case s.noticed <- struct{}{}:
	default: // Run looks anyway
	}
}

// loadNotices reads the kept notices once. Those that arrived before stay.
func (s *Service) loadNotices(ctx context.Context) error {
	if s.noticesLoaded {
		return nil
	}
	list, err := s.cfg.Store.Notices(ctx)
	if err != nil {
		return err
	}
	s.noticesLoaded = true
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range list {
		if _, ok := s.notices.find(n.PortalID, n.Hash); !ok && s.notices.makeRoom(n) {
			s.notices.set(n)
		}
	}
	return nil
}

// retryNotices is the pause after notices could not be saved.
const retryNotices = time.Minute

// Run saves the kill notices of other portals as they arrive, until ctx ends. What it could not save by then is in the
// records of the portals, which are read again at the next start. It must run once at most.
func (s *Service) Run(ctx context.Context) error {
	for {
		select {
		case <-s.noticed:
		case <-ctx.Done():
			return nil
		}
		err := s.saveNotices(ctx)
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.cfg.Log.Error("save the kill notices of other portals", "error", err)
		retry := time.NewTimer(retryNotices)
		select {
		case <-retry.C:
			s.wakeNotices()
		case <-ctx.Done():
			retry.Stop()
			return nil
		}
	}
}

// noticeBatch bounds the notices that are saved in one transaction.
const noticeBatch = 500

// saveNotices saves all notices that changed since they were saved.
func (s *Service) saveNotices(ctx context.Context) error {
	for {
		put, removed := s.takeUnsaved()
		if len(put)+len(removed) == 0 {
			return nil
		}
		if err := s.cfg.Store.SaveNotices(ctx, put, removed); err != nil {
			s.mu.Lock()
			for _, n := range slices.Concat(put, removed) {
				s.notices.unsaved[noticeKey{n.PortalID, n.Hash}] = true
			}
			s.mu.Unlock()
			return err
		}
	}
}

// takeUnsaved returns up to noticeBatch notices that changed, and takes them off the list.
func (s *Service) takeUnsaved() (put, removed []Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.notices.unsaved {
		if len(put)+len(removed) == noticeBatch {
			break
		}
		delete(s.notices.unsaved, key)
		if n, ok := s.notices.find(key.portal, key.hash); ok {
			put = append(put, n)
		} else {
			removed = append(removed, Notice{Kill: Kill{Hash: key.hash}, PortalID: key.portal})
		}
	}
	return put, removed
}

// noticeFrom returns the reason for which the portal of a package stopped a module. The caller holds mu.
func (s *Service) noticeFrom(portal, hash string) (reason string, ok bool) {
	if n, ok := s.notices.find(portal, hash); ok {
		return n.Reason, true
	}
	for _, p := range s.packagesOf(record.PortalID(portal)) {
		if p.State == Killed && p.Module == hash {
			return p.Note, true
		}
	}
	return "", false
}
