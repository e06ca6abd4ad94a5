package settings

// CredentialLimits bound the secrets of an account and the checks of passwords.
type CredentialLimits struct {
	// TokensPerAccount bounds the API tokens, SessionsPerAccount the browsers that are signed in.
	TokensPerAccount, SessionsPerAccount int64
	// SignInQueue bounds the passwords that wait to be checked.
	SignInQueue int64
}

// defaultCredentialLimits gives a queue that two processors check within about five seconds.
func defaultCredentialLimits() CredentialLimits {
	return CredentialLimits{TokensPerAccount: 100, SessionsPerAccount: 100, SignInQueue: 256}
}

func (c *CredentialLimits) list() []Limit {
	return []Limit{
		{"tokens-per-account", UnitCount, 1, 1000, &c.TokensPerAccount},
		{"sessions-per-account", UnitCount, 1, 1000, &c.SessionsPerAccount},
		{"sign-in-queue", UnitCount, 4, 10_000, &c.SignInQueue},
	}
}
