package settings

import (
	"errors"
	"net/url"
	"path/filepath"
)

// errDatabase does not repeat the value, because it may hold a password.
var errDatabase = errors.New("--database: give the URL of a PostgreSQL database, for example " +
	"postgres://agentsite@db.example.org/agentsite?sslmode=verify-full; without it the portal uses a file in its data folder")

// checkPlaces checks the settings that say where the data is.
func (c Config) checkPlaces() error {
	if c.Data == "" {
		return errors.New("--data: name a folder")
	}
	if c.KeyFile != "" && isInside(c.KeyFile, c.Data) {
		return errors.New("--key-file: name a file outside the data folder, or leave it out")
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

// isInside reports whether a path is below a folder, as both are written.
func isInside(path, dir string) bool {
	path, perr := filepath.Abs(path)
	dir, derr := filepath.Abs(dir)
	rel, err := filepath.Rel(dir, path)
	return errors.Join(perr, derr, err) == nil && filepath.IsLocal(rel)
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
