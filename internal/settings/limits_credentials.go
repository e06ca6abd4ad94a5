package settings

// CredentialLimits bound the secrets of an account.
type CredentialLimits struct {
	// TokensPerAccount bounds the API tokens, SessionsPerAccount the browsers that are signed in.
	TokensPerAccount, SessionsPerAccount int64
}

func defaultCredentialLimits() CredentialLimits {
	return CredentialLimits{TokensPerAccount: 100, SessionsPerAccount: 100}
}

func (c *CredentialLimits) list() []Limit {
	return []Limit{
		{"tokens-per-account", UnitCount, 1, 1000, &c.TokensPerAccount},
		{"sessions-per-account", UnitCount, 1, 1000, &c.SessionsPerAccount},
	}
}
