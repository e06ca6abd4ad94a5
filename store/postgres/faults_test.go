package postgres_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentsite/internal/fault"
	"agentsite/internal/testing/pgtest"
	"agentsite/store/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// secret is in the address of every test; no error may contain it.
const secret = "s3cret-päss/w"

// Each fault of a start is a sentence that says what to do.
func TestOpen_ExplainsFaults(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	admin := func(database string, statements ...string) {
		t.Helper()
		c, err := pgx.Connect(t.Context(), s.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		for _, q := range statements {
			if _, err := c.Exec(t.Context(), q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
	}
	admin("postgres", `CREATE ROLE ada LOGIN PASSWORD '`+secret+`'`, `CREATE ROLE guest LOGIN PASSWORD '`+secret+`'`,
		`CREATE ROLE crowd LOGIN PASSWORD '`+secret+`' CONNECTION LIMIT 0`,
		`CREATE DATABASE good OWNER ada TEMPLATE template0 ENCODING 'UTF8'`,
		`CREATE DATABASE newer OWNER ada TEMPLATE template0 ENCODING 'UTF8'`,
		`CREATE DATABASE fast OWNER ada TEMPLATE template0 ENCODING 'UTF8'`,
		`ALTER DATABASE fast SET synchronous_commit = off`,
		`CREATE DATABASE ascii OWNER ada TEMPLATE template0 ENCODING 'SQL_ASCII'`)
	address := func(role, password, database string) string {
		return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/%s?sslmode=disable", role,
			strings.NewReplacer("/", "%2F", "ä", "%C3%A4").Replace(password), s.Port, database)
	}
	close := openDatabase(t, address("ada", secret, "newer"))
	close()
	admin("newer", `UPDATE agentsite.process SET version = 9999`)
	close = openDatabase(t, address("ada", secret, "good"))
	t.Cleanup(close)

	tlsAddress := startTLSServer(t)
	down := "postgres://ada:s3cret-p%C3%A4ss%2Fw@127.0.0.1:1/good"
	for name, c := range map[string]struct {
		address string
		kind    fault.Kind
		want    string
	}{
		"wrong password":       {address("ada", secret+"x", "good"), fault.Forbidden, "refuses the role ada: check its name and password"},
		"unknown role":         {address("nobody", secret, "good"), fault.Forbidden, "refuses the role nobody"},
		"server down":          {down + "?sslmode=disable", fault.Unavailable, "does not answer: "},
		"server down, TLS":     {down, fault.Unavailable, "connection refused. Start it"},
		"no TLS":               {strings.Replace(address("ada", secret, "good"), "disable", "require", 1), fault.Unavailable, "offers no TLS. Set ssl = on"},
		"wrong certificate":    {tlsAddress, fault.Unavailable, "cannot be trusted: "},
		"database missing":     {address("ada", secret, "nowhere"), fault.NotFound, "CREATE DATABASE nowhere OWNER ada"},
		"no right to create":   {address("guest", secret, "postgres"), fault.Forbidden, "ALTER DATABASE postgres OWNER TO guest"},
		"no connection free":   {address("crowd", secret, "good"), fault.Unavailable, "needs 9"},
		"another process":      {address("ada", secret, "good"), fault.Conflict, "Stop it first"},
		"newer schema":         {address("ada", secret, "newer"), fault.Conflict, "newer agentsite"},
		"wrong encoding":       {address("ada", secret, "ascii"), fault.Conflict, "encoding SQL_ASCII"},
		"commits not durable":  {address("ada", secret, "fast"), fault.Conflict, "synchronous_commit=off"},
		"unknown sslmode":      {strings.Replace(address("ada", secret, "good"), "disable", "maybe", 1), fault.Invalid, "sslmode"},
		"certificate missing":  {address("ada", secret, "good") + "&sslrootcert=/nowhere&sslmode=verify-full", fault.Invalid, "address"},
		"password in an error": {"postgres://ada@127.0.0.1/good?sslmode=" + secret + "&password=" + secret, fault.Invalid, "sslmode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log strings.Builder
			d, err := postgres.Open(t.Context(), c.address, postgres.Portal(), slog.New(slog.NewTextHandler(&log, nil)))
			if err == nil {
				d.Close()
				t.Fatal("it opened")
			}
			f := fault.As(err)
			if f.Kind != c.kind || !strings.Contains(f.Safe, c.want) || strings.Contains(f.Safe, "\n") {
				t.Errorf("%v", err)
			}
			for _, password := range []string{secret, "s3cret"} {
				if text := err.Error() + log.String(); strings.Contains(text, password) {
					t.Errorf("the password is in: %s", text)
				}
			}
		})
	}
}

func openDatabase(t *testing.T, address string) (close func()) {
	t.Helper()
	d, err := postgres.Open(t.Context(), address, postgres.Portal(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// startTLSServer starts a server with a certificate for another name than that in the returned address.
func startTLSServer(t *testing.T) (address string) {
	t.Helper()
	s := pgtest.NewStopped(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	card := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"db.example.org"},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, card, card, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"server.crt":           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"server.key":           pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"postgresql.auto.conf": []byte("ssl = on\n"),
	} {
		if err := s.WriteFile(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=verify-full&sslrootcert=%s", s.Port,
		filepath.Join(s.Dir, "data", "server.crt"))
}

// startServer starts a server that asks all roles but postgres for a password.
func startServer(t *testing.T) *pgtest.Server {
	t.Helper()
	s := pgtest.NewStopped(t)
	rules := "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
	if err := s.WriteFile("pg_hba.conf", []byte(rules)); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}
