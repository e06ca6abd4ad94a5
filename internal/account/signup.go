package account

import (
	"context"
	"net/mail"
	"strings"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/weborigin"
)

// SignUp holds the fields of the form for a new account, as typed.
type SignUp struct {
	Name     string
	Password string
	Email    string
	// Invite is the secret of an invitation or of the operator's one-time link; "" for none.
	Invite string
}

// SignUp creates an account if the portal's policy allows it, and uses up the invitation. With the
// secret of the one-time link the account becomes an operator account.
func (s *Service) SignUp(ctx context.Context, actor ident.Actor, in SignUp) (Account, error) {
	if wait, ok := s.signups.Allow(actor.Addr); !ok {
		return Account{}, fault.Limited(wait, "Too many sign-ups from your address. Try again in a few minutes.")
	}
	in.Name = strings.ToLower(strings.TrimSpace(in.Name))
	in.Email = weborigin.ReadName(in.Email)
	in.Invite = strings.TrimSpace(in.Invite)
	var spend []CredentialKind
	a := Account{ID: ident.NewID(), Name: in.Name, Email: in.Email, CreatedAt: clock.Now()}
	if in.Invite != "" {
		c, _, err := s.store.CredentialByHash(ctx, ident.HashSecret(in.Invite))
		if fault.Is(err, fault.NotFound) || err == nil && c.Kind != InviteCredential && c.Kind != SetupCredential {
			return Account{}, &fault.Error{Kind: fault.Invalid,
				Safe:   "This invitation is unknown, used or expired. Ask for a new one.",
				Fields: map[string]string{"invite": "unknown, used or expired"}}
		}
		if err != nil {
			return Account{}, err
		}
		if c.Kind == InviteCredential && s.Policy() == Closed {
			return Account{}, fault.New(fault.Forbidden, "This portal takes no new accounts.")
		}
		a.Operator = c.Kind == SetupCredential
		if a.Operator {
			// The link is only for a portal without an operator. An operator account that was created on
			// the command line since makes it invalid.
			if n, err := s.store.CountOperators(ctx); err != nil {
				return Account{}, err
			} else if n > 0 {
				return Account{}, &fault.Error{Kind: fault.Invalid, Safe: "This portal has an operator already.",
					Fields: map[string]string{"invite": "unknown, used or expired"}}
			}
		}
		spend = []CredentialKind{c.Kind}
	} else {
		switch s.Policy() {
		case Closed:
			return Account{}, fault.New(fault.Forbidden, "This portal takes no new accounts.")
		case Invite:
			return Account{}, &fault.Error{Kind: fault.Forbidden,
				Safe:   "You need an invitation to sign up here. Ask the operator for one.",
				Fields: map[string]string{"invite": "needed on this portal"}}
		}
	}
	if err := s.checkDraft(in.Name, in.Password, in.Email); err != nil {
		return Account{}, err
	}
	var err error
	if a.PasswordHash, err = s.hasher.hashPassword(ctx, client{addr: actor.Addr}, in.Password); err != nil {
		return Account{}, err
	}
	hash := ""
	if in.Invite != "" {
		hash = ident.HashSecret(in.Invite)
	}
	if err := s.store.CreateAccount(ctx, a, hash, spend...); err != nil {
		return Account{}, nameTaken(err)
	}
	s.cfg.Log.Info("account created", "account", a.ID, "operator", a.Operator)
	return a, nil
}

func nameTaken(err error) error {
	if fault.Is(err, fault.Conflict) {
		return &fault.Error{Kind: fault.Conflict, Safe: "This name is taken. Choose another.",
			Fields: map[string]string{"name": "taken; choose another"}, Err: err}
	}
	return err
}

func (s *Service) checkDraft(name, password, email string) error {
	var c fault.Check
	if err := ident.CheckName(name); err != nil {
		c.Field(false, "name", "%s", err)
	}
	if err := CheckPassword(password, name); err != nil {
		c.Field(false, "password", "%s", err)
	}
	checkEmail(&c, email)
	return c.Err()
}

// checkEmail adds a problem to c unless email is empty or one plain address.
func checkEmail(c *fault.Check, email string) {
	if email == "" {
		return
	}
	addr, err := mail.ParseAddress(email)
	c.Field(err == nil && addr.Address == email && len(email) <= 254, "email",
		"this is not an address like you@example.org")
}

// Add creates an account for the operator, from the command line; runs makes it an operator account.
// The actor must be the operator or the system.
func (s *Service) Add(ctx context.Context, actor ident.Actor, in SignUp, runs bool) (Account, error) {
	if err := requireOperator(actor); err != nil {
		return Account{}, err
	}
	in.Name = strings.ToLower(strings.TrimSpace(in.Name))
	in.Email = weborigin.ReadName(in.Email)
	if err := s.checkDraft(in.Name, in.Password, in.Email); err != nil {
		return Account{}, err
	}
	hash, err := s.hasher.hashPassword(ctx, client{}, in.Password)
	if err != nil {
		return Account{}, err
	}
	a := Account{ID: ident.NewID(), Name: in.Name, Email: in.Email, PasswordHash: hash, Operator: runs,
		CreatedAt: clock.Now()}
	if err := s.store.CreateAccount(ctx, a, ""); err != nil {
		return Account{}, nameTaken(err)
	}
	return a, nil
}

func errNotOperator() error {
	return fault.New(fault.Forbidden, "Only the operator of this portal may do that.")
}
