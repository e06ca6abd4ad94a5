package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// maxAgentBytes is the largest content of one version of an agent.
const maxAgentBytes = 192 << 10

// The stored versions of an account are limited by a token bucket: a version costs one token and one for
// each 4 KiB; the bucket holds 2,000 and gains one a second. Versions are never deleted.
const (
	storeCost  = 4 << 10
	storeBurst = 2000
)

// Size returns about how many bytes the content of the agent takes.
func (a Agent) Size() int {
	size := len(a.Description) + len(a.Endpoint) + len(a.Config)
	for _, o := range a.EmbedOrigins {
		size += len(o)
	}
	for _, k := range a.Skills {
		size += len(k.ID) + len(k.Name) + len(k.Description)
		for _, t := range slices.Concat(k.Tags, k.Examples) {
			size += len(t)
		}
	}
	return size
}

// mayStore counts a version to be stored; an Invalid fault if it is too large, a RateLimited fault if
// the account's bucket is empty.
func (s *Service) mayStore(actor ident.Actor, a Agent) error {
	size := a.Size()
	if size > maxAgentBytes {
		return fault.New(fault.Invalid, "The agent says too much: its texts, skills and tools take %d KiB together, and %d are allowed.", size>>10, maxAgentBytes>>10)
	}
	if !actor.IsPerson() {
		return nil
	}
	if wait, ok := s.AllowStore(actor.ID, size); !ok {
		return fault.Limited(wait, "You stored very many versions in a short time. Wait a while.")
	}
	return nil
}

// AllowStore charges an account or a site (key) for bytes that are stored permanently. If ok is false,
// wait is the time until it may store again.
func (s *Service) AllowStore(key string, bytes int) (wait time.Duration, ok bool) {
	return s.stores.AllowN(key, 1+bytes/storeCost)
}

// AfterChange reacts to a change of an agent by the MCP registry: the index is updated, the agent is
// probed, and connections to a withdrawn agent are closed.
func (s *Service) AfterChange(ctx context.Context, a Agent) {
	s.Reindex(ctx, a.ID)
	if a.Status.State == Withdrawn {
		s.dropConnections(a.ID)
		return
	}
	s.checkNow(ctx, a)
}

// maxNote is the longest note of a version, in characters.
const maxNote = 300

// saveVersion stores a as the version after base and updates the index. sealed is as for
// Agents.UpdateAgent; note describes the change.
func (s *Service) saveVersion(ctx context.Context, actor ident.Actor, a Agent, base int, sealed []byte,
	note string) (Agent, error) {
	if err := s.mayStore(actor, a); err != nil {
		return Agent{}, err
	}
	before, err := s.store.AgentByID(ctx, a.ID)
	if err != nil {
		return Agent{}, err
	}
	a.Version, a.UpdatedAt, a.Note = base+1, clock.Now(), note
	if err := s.store.UpdateAgent(ctx, a, base, sealed, actor); err != nil {
		return Agent{}, err
	}
	// A signed card proves only its own content, so the proof ends if the listing no longer matches.
	if before.Proof.Method == ProofCard && !matchesCard(a,
		Described{Title: before.Title, Description: before.Description, Skills: before.Skills}) {
		if err := s.store.SetProof(ctx, a.ID, a.OwnerID, Proof{}); err != nil {
			s.cfg.Log.Warn("end a proof", "agent", a.ID, "error", err)
		}
	}
	// The store may have changed more than a, for example ended a proof, so the row is read again.
	if now, err := s.store.AgentByID(ctx, a.ID); err == nil {
		a = now
	}
	s.indexAgent(a)
	return a, nil
}

const versionsPage = 50

// PageBytes bounds the texts of the agents or versions on one page of a list: a page ends with the one
// that exceeds it.
const PageBytes = 512 << 10

// Versions lists the versions of an agent, newest first, with numbers below before (0: from the latest).
// next is the value of before for the next page, 0 at the end. Versions that were private or drafts are
// visible to owners and the operator only.
func (s *Service) Versions(ctx context.Context, actor ident.Actor, name string,
	before int) (list []Agent, next int, err error) {
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return nil, 0, err
	}
	if a.Elsewhere() {
		return nil, 0, errElsewhereOnly(a, s.Source(a))
	}
	if list, err = s.store.Versions(ctx, a.ID, before, versionsPage); err != nil {
		return nil, 0, err
	}
	if n := len(list); n > 0 && list[n-1].Version > 1 { // an agent has all versions from 1 on
		next = list[n-1].Version
	}
	return s.shownVersions(actor, a, list), next, nil
}

// shownVersions removes the versions that the actor may not see: private ones and drafts, unless the
// actor may change the agent.
func (s *Service) shownVersions(actor ident.Actor, a Agent, list []Agent) []Agent {
	if !a.MayEdit(actor) && !isOwner(actor, a) {
		list = slices.DeleteFunc(list, func(v Agent) bool {
			return v.Visibility == Private ||
				v.Status.State == StatusDraft
		})
	}
	for i := range list {
		list[i].Name, list[i].OwnerName, list[i].OwnerID = a.Name, a.OwnerName, a.OwnerID
	}
	return list
}

// VersionOf returns a version of an agent (0: the latest) and the version before it, if the actor may see that one.
func (s *Service) VersionOf(ctx context.Context, actor ident.Actor, name string,
	version int) (at Agent, before *Agent, err error) {
	a, err := s.Get(ctx, actor, name)
	if err != nil {
		return Agent{}, nil, err
	}
	if a.Elsewhere() {
		return Agent{}, nil, errElsewhereOnly(a, s.Source(a))
	}
	if version == 0 {
		version = a.Version
	}
	list, err := s.store.Versions(ctx, a.ID, version+1, 2)
	if err != nil {
		return Agent{}, nil, err
	}
	list = s.shownVersions(actor, a, list)
	if len(list) == 0 || list[0].Version != version {
		return Agent{}, nil, fault.New(fault.NotFound, "%s has no version %d that you may see.", name, version)
	}
	if len(list) > 1 {
		before = &list[1]
	}
	return list[0], before, nil
}

// Rollback stores the content of an earlier version as a new version. Name, status, owners and embedding
// sites stay as they are, because a removed site must not return unnoticed. The stored credential stays
// only if the address has the same origin.
func (s *Service) Rollback(ctx context.Context, actor ident.Actor, name string, version, base int) (Agent, error) {
	a, err := s.ownedAgent(ctx, actor, name)
	if err != nil {
		return Agent{}, err
	}
	if base != 0 && base != a.Version {
		return Agent{}, errStale(base, a.Version)
	}
	old, _, err := s.VersionOf(ctx, actor, name, version)
	if err != nil {
		return Agent{}, err
	}
	if version == 0 || version == a.Version {
		return Agent{}, fault.New(fault.Invalid, "That is the version it has now.")
	}
	next := a
	next.Title, next.Description, next.Kind, next.Endpoint, next.Skills, next.Config = old.Title, old.Description,
		old.Kind, old.Endpoint, old.Skills, old.Config
	next.Visibility, next.InputModes, next.OutputModes, next.Languages = old.Visibility, old.InputModes,
		old.OutputModes, old.Languages
	next.Icon, next.Limits, next.Publisher = old.Icon, old.Limits, old.Publisher
	if a.OwnerID == "" {
		next.Publisher = a.Publisher
	} else if next.Publisher != "" && !s.Proofs.controlsDomain(ctx, a.OwnerID, next.Publisher) {
		next.Publisher = ""
	}
	// Content of an old version may break newer rules.
	if err := (Draft{}).apply(&next, s.draftRules()); err != nil {
		return Agent{}, err
	}
	if err := s.tools.mayUse(ctx, actor, a, next); err != nil {
		return Agent{}, err
	}
	sealed := KeepSecret(a, &next)
	next, err = s.saveVersion(ctx, actor, next, a.Version, sealed, fmt.Sprintf("Back to version %d", version))
	if err != nil {
		return Agent{}, err
	}
	return s.checkNow(ctx, next), nil
}

// KeepSecret drops the stored credential from next if its address has another origin than before,
// because a credential is bound to its origin. The result is the sealed argument of saveVersion: nil
// keeps the stored credential.
func KeepSecret(before Agent, next *Agent) []byte {
	if !before.HasSecret || originOf(before.Endpoint) == originOf(next.Endpoint) {
		return nil
	}
	next.HasSecret = false
	return []byte{}
}

func errStale(had, now int) error {
	return fault.New(fault.Conflict, "The agent was changed since you opened it (version %d, now %d). Load it again.",
		had, now)
}

// EmbedField is Change.Field for a change of Agent.EmbedOrigins.
const EmbedField = "Sites that may show it"

// Change is one difference between two versions, as text for people.
type Change struct {
	Field         string // name of the field as shown to people
	Before, After string
}

// Diff lists the differences between two versions of an agent, in the order of the agent's page.
func Diff(before, after Agent) []Change {
	var out []Change
	add := func(field, b, a string) {
		if b != a {
			out = append(out, Change{field, b, a})
		}
	}
	add("Kind", string(before.Kind), string(after.Kind))
	add("Title", before.Title, after.Title)
	add("Description", before.Description, after.Description)
	add("Address", before.Endpoint, after.Endpoint)
	add("Who may find it", string(before.Visibility), string(after.Visibility))
	if before.Status.State != "" && after.Status.State != "" {
		add("Status", before.Status.State, after.Status.State)
	}
	add("Languages", strings.Join(before.Languages, ", "), strings.Join(after.Languages, ", "))
	add("Takes", strings.Join(before.InputModes, ", "), strings.Join(after.InputModes, ", "))
	add("Gives", strings.Join(before.OutputModes, ", "), strings.Join(after.OutputModes, ", "))
	add("Published by", before.Publisher, after.Publisher)
	add("Icon", before.Icon, after.Icon)
	add("Limits", before.Limits.String(), after.Limits.String())
	add(EmbedField, strings.Join(before.EmbedOrigins, "\n"), strings.Join(after.EmbedOrigins, "\n"))
	ids := make(map[string]bool)
	for _, s := range slices.Concat(before.Skills, after.Skills) {
		if !ids[s.ID] {
			ids[s.ID] = true
			add("Skill "+s.ID, skillText(before.Skills, s.ID), skillText(after.Skills, s.ID))
		}
	}
	keys := make(map[string]bool)
	b, a := settingsText(before), settingsText(after)
	for _, k := range append(slices.Sorted(maps.Keys(b)), slices.Sorted(maps.Keys(a))...) {
		if !keys[k] {
			keys[k] = true
			add("Setting "+k, b[k], a[k])
		}
	}
	return out
}

func skillText(list []Skill, id string) string {
	for _, s := range list {
		if s.ID == id {
			lines := []string{s.Name, s.Description}
			if len(s.Tags) > 0 {
				lines = append(lines, "Tags: "+strings.Join(s.Tags, ", "))
			}
			for _, e := range s.Examples {
				lines = append(lines, "Example: "+e)
			}
			return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
		}
	}
	return ""
}

// settingsText returns the settings of an agent as text, by name, for comparison and display.
func settingsText(a Agent) map[string]string {
	var raw map[string]json.RawMessage
	if len(a.Config) == 0 || json.Unmarshal(a.Config, &raw) != nil {
		return nil
	}
	out := make(map[string]string)
	for k, v := range raw {
		var s string
		if json.Unmarshal(v, &s) == nil {
			out[k] = s
			continue
		}
		out[k] = string(v)
	}
	return out
}
