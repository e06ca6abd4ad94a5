package account

import (
	"context"
	"slices"
	"strings"
	"time"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
)

// Tokens returns the actor's API tokens without their secrets, newest first.
func (s *Service) Tokens(ctx context.Context, actor ident.Actor) ([]Credential, error) {
	if err := requirePerson(actor); err != nil {
		return nil, err
	}
	list, err := s.store.ListCredentials(ctx, actor.ID, TokenCredential)
	slices.SortStableFunc(list, func(a, b Credential) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return list, err
}

// NewToken describes a new API token. Empty Scopes give all rights of the account.
type NewToken struct {
	Label  string
	Scopes []ident.Scope
	// Program is the id of the agent whose program the token connects. The token may do nothing else, so Scopes must
	// be empty. Whether the account owns the agent is checked when the program connects.
	Program string
	// Life is the time until the token expires, at most a year; zero means 90 days.
	Life time.Duration
}

// CreateToken creates an API token and returns its secret, which is not stored. A token that a token
// makes has no right that its maker lacks, and ends with it at the latest.
func (s *Service) CreateToken(ctx context.Context, actor ident.Actor, in NewToken) (string, error) {
	if err := requirePerson(actor); err != nil {
		return "", err
	}
	for _, sc := range in.Scopes {
		if actor.Narrowed && !actor.May(sc) {
			return "", fault.New(fault.Forbidden, "A token cannot make one that may do more than itself: %.80q.", sc)
		}
	}
	if in.Program != "" && !actor.May(ident.AgentsWrite) {
		return "", fault.New(fault.Forbidden, "%s", ident.AgentsWrite.DescribeMissing())
	}
	if actor.Narrowed && len(in.Scopes) == 0 && in.Program == "" {
		in.Scopes = actor.Scopes
	}
	return s.createToken(ctx, actor.ID, actor.Credential, in)
}

// CreateTokenFor creates an API token for the account with that name, on the command line. The actor
// must be the operator or the system.
func (s *Service) CreateTokenFor(ctx context.Context, actor ident.Actor, name string, in NewToken) (string, error) {
	if err := requireOperator(actor); err != nil {
		return "", err
	}
	a, err := s.store.AccountByName(ctx, strings.ToLower(strings.TrimSpace(name)))
	if fault.Is(err, fault.NotFound) {
		return "", fault.New(fault.NotFound, "There is no account %.80q. `agentsite user list` names them.", name)
	}
	if err != nil {
		return "", err
	}
	return s.createToken(ctx, a.ID, "", in)
}

func (s *Service) createToken(ctx context.Context, accountID, maker string, in NewToken) (string, error) {
	var check fault.Check
	in.Label = strings.TrimSpace(in.Label)
	if in.Label == "" {
		in.Label = "token"
	}
	if in.Life == 0 {
		in.Life = defaultToken
	}
	check.Field(len(in.Label) <= 100, "label", "use at most 100 characters")
	check.Field(in.Life > 0 && in.Life <= maxToken, "expires", "choose a time of at most 366 days")
	for _, sc := range in.Scopes {
		check.Field(slices.Contains(ident.Scopes(), sc), "scopes", "%.80q is no scope; the scopes are %v", sc,
			ident.Scopes())
	}
	check.Field(in.Program == "" || ident.ValidID(in.Program) && len(in.Scopes) == 0, "program", "is no agent")
	if err := check.Err(); err != nil {
		return "", err
	}
	if in.Program != "" {
		in.Scopes = []ident.Scope{ident.ProgramScope(in.Program)}
	}
	in.Scopes = slices.Compact(slices.Sorted(slices.Values(in.Scopes)))
	secret, c := draftCredential(Credential{Kind: TokenCredential, AccountID: accountID, Label: in.Label,
		Scopes: in.Scopes}, ident.TokenPrefix, in.Life)
	if err := s.store.AddToken(ctx, c, maker, s.cfg.MaxTokens); err != nil {
		return "", err
	}
	if err := s.confirmAccount(ctx, c); err != nil {
		return "", err
	}
	return secret, nil
}

// RevokeToken deletes one of the actor's tokens and those that it made, and ends every stream opened with
// them.
func (s *Service) RevokeToken(ctx context.Context, actor ident.Actor, id string) error {
	if err := requirePerson(actor); err != nil {
		return err
	}
	var ids []string
	if id != "" { // for the store, an empty id means all tokens
		var err error
		if ids, err = s.store.DeleteCredentials(ctx, actor.ID, id, TokenCredential); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return fault.New(fault.NotFound, "There is no such token.")
	}
	s.watch.endStreams(ids...)
	return nil
}
