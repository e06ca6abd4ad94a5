package settings

import (
	"errors"
	"net/url"
)

// errDatabase does not repeat the value, because it may hold a password.
var errDatabase = errors.New("--database: give the URL of a PostgreSQL database, for example " +
	"postgres://agentsite@db.example.org/agentsite?sslmode=verify-full; without it the portal uses a file in its data folder")

// checkPlaces checks the settings that say where the data is.
func (c Config) checkPlaces() error {
	if c.Data == "" {
		return errors.New("--data: name a folder")
	}
	if c.Database == "" {
		return nil
	}
	u, err := url.Parse(c.Database)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" && u.Query().Get("host") == "" {
		return errDatabase
	}
	return nil
}

// HidePassword returns the URL of a database without its password, for logs and messages.
func HidePassword(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return "…"
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if q.Has("password") || q.Has("sslpassword") {
		q.Del("password")
		q.Del("sslpassword")
		u.RawQuery = q.Encode()
	}
	return u.String()
}
