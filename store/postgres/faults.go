package postgres

import (
	"crypto/tls"
	"errors"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"agentsite/internal/fault"
)

// Codes with which the server refuses a connection or a right.
const (
	invalidAuthorization  = "28000"
	invalidPassword       = "28P01"
	insufficientPrivilege = "42501"
	unknownDatabase       = "3D000"
)

// explain returns an error of the start as a fault with a sentence for the operator. Other errors are
// returned unchanged. No text contains a password.
func (d *DB) explain(err error) error {
	host, name, role := d.cfg.Host, d.cfg.Database, d.cfg.User
	switch code := codeOf(err); {
	case code == invalidAuthorization, code == invalidPassword:
		return fault.Wrap(fault.Forbidden, err, "The database server %s refuses the role %s: check its name and password "+
			"in --database, and the file pg_hba.conf of the server.", host, role)
	case code == unknownDatabase:
		return fault.Wrap(fault.NotFound, err, "The database server %s has no database %s. Create it there: "+
			"CREATE DATABASE %s OWNER %s ENCODING 'UTF8' TEMPLATE template0;", host, name, name, role)
	case code == insufficientPrivilege:
		return fault.Wrap(fault.Forbidden, err, "The role %s may not do this in the database %s: %s. Make it the owner: "+
			"ALTER DATABASE %s OWNER TO %s;", role, d.place, messageOf(err), name, role)
	case code == tooManyConnections:
		return fault.Wrap(fault.Unavailable, err, "The database server %s has no free connection. A portal needs %d: raise "+
			"max_connections of the server, or the connection limit of the role %s.", host, 1+readConns, role)
	case hasCertificateError(err):
		return fault.Wrap(fault.Unavailable, err, "The database server %s has a certificate that cannot be trusted: %s. "+
			"Correct ssl_cert_file of the server, or sslrootcert and the host in --database.", host, lastReason(err))
	case strings.Contains(err.Error(), "server refused TLS connection"): // the driver has no value for it
		return fault.Wrap(fault.Unavailable, err, "The database server %s offers no TLS. Set ssl = on there, or, on the "+
			"same machine, sslmode=disable in --database.", host)
	case code == cannotConnectNow, isLost(err):
		return fault.Wrap(fault.Unavailable, err, "The database server %s does not answer: %s. Start it, or correct "+
			"--database.", host, lastReason(err))
	}
	return err
}

func hasCertificateError(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// messageOf returns the message of the server in err.
func messageOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Message
	}
	return err.Error()
}

// lastReason returns the reason of the last attempt to connect. The driver reports one line an address.
func lastReason(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if _, after, ok := strings.Cut(line, "`: "); ok {
		line = after
	}
	return line
}

// explainAddress returns the error of the driver about the address of a database, without the address,
// which may hold passwords.
func explainAddress(address string, err error) error {
	text := err.Error()
	if i := strings.LastIndex(text, "`: "); i >= 0 {
		text = text[i+len("`: "):]
	}
	return fault.New(fault.Invalid, "The address of the database cannot be used: %s. Correct --database.",
		hideSecrets(text, address))
}

// hideSecrets replaces the passwords of an address in text. An address that is no URL leaves no text.
func hideSecrets(text, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "it is not a URL"
	}
	secrets := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password)
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "…")
			text = strings.ReplaceAll(text, url.QueryEscape(s), "…")
			text = strings.ReplaceAll(text, url.PathEscape(s), "…")
		}
	}
	return text
}
