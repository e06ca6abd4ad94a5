// Package personal gives a person all data that the portal holds about them as one archive, and erases it. It decides
// on the right to do so; the stores know where the data is.
package personal

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
)

// Names of sets of records that have more than their rows.
const (
	Uploads     = "uploads"        // each record has the hash of a file
	Transcripts = "conversations/" // followed by the id of a conversation
)

// Store reads the personal data of accounts.
type Store interface {
	// EachRecord calls yield for each record about an account, one set after the other.
	EachRecord(ctx context.Context, accountID string, yield func(set string, record map[string]any) error) error
}

// Files opens uploaded files by their hash. It checks no permission.
type Files interface {
	OpenBlob(ctx context.Context, hash string) (io.ReadSeekCloser, error)
}

// Service exports and erases the data of a person. It is safe for concurrent use.
type Service struct {
	store   Store
	files   Files
	portal  string
	exports *limit.Keyed // by account
	logins  Logins
	erase   Eraser
}

// New returns a service. portal is the host of the portal, which archives name. A service that only exports needs no
// logins and no eraser.
func New(store Store, files Files, portal string, logins Logins, erase Eraser) *Service {
	return &Service{store: store, files: files, portal: portal, exports: limit.New(time.Minute, 5, 10_000),
		logins: logins, erase: erase}
}

// Subject is the account whose data is exported.
type Subject struct{ ID, Name string }

// MayExport returns the account whose data the actor may export, which is the actor's own.
func (s *Service) MayExport(actor ident.Actor) (Subject, error) {
	if !actor.IsPerson() {
		return Subject{}, fault.New(fault.Unauthenticated, "Sign in first.")
	}
	// The archive holds the data that these scopes read.
	for _, scope := range []ident.Scope{ident.AccountAll, ident.ChatRead, ident.AgentsRead} {
		if !actor.May(scope) {
			return Subject{}, fault.New(fault.Forbidden, "%s", scope.DescribeMissing())
		}
	}
	if wait, ok := s.exports.Allow(actor.ID); !ok {
		return Subject{}, fault.Limited(wait, "Your data was exported several times just now. Wait a moment and try again.")
	}
	return Subject{actor.ID, actor.Name}, nil
}

// readme describes an archive.
const readme = `Everything that %[1]s holds about the account %[2]s, made on %[3]s.

manifest.json        the files of this archive, with the number of records in each
data/NAME.jsonl      records of one kind, one JSON object a line, with the columns of the portal's database
conversations/ID.jsonl
                     the messages of a conversation that you are a member of, as you may read it
files/HASH           files that you uploaded; their hash is the SHA-256 of their content

Times are milliseconds since 1970 in UTC, days are days since 1970 or dates. Money is in millionths of the portal's
currency. Passwords, tokens, keys of models and secrets of webhooks are not in the archive, because the portal keeps
only hashes of them or keeps them sealed.
`

type manifest struct {
	Format    string         `json:"format"`
	Portal    string         `json:"portal"`
	Account   string         `json:"account"`
	CreatedAt string         `json:"created_at"`
	Records   map[string]int `json:"records"`
	Files     int            `json:"files"`
}

// Export writes the archive of a subject to w as a zip file.
func (s *Service) Export(ctx context.Context, of Subject, w io.Writer) error {
	now := clock.Now().UTC()
	z := zip.NewWriter(w)
	m := manifest{Format: "agentsite/personal/1", Portal: s.portal, Account: of.Name, CreatedAt: now.Format(time.RFC3339),
		Records: make(map[string]int)}
	create := func(name string) (io.Writer, error) {
		return z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: now})
	}
	f, err := create("README.txt")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f, readme, s.portal, of.Name, m.CreatedAt); err != nil {
		return err
	}
	var hashes []string
	var open string
	var out *json.Encoder
	err = s.store.EachRecord(ctx, of.ID, func(set string, record map[string]any) error {
		name := "data/" + set + ".jsonl"
		if strings.HasPrefix(set, Transcripts) {
			name = set + ".jsonl"
		}
		if name != open {
			f, err := create(name)
			if err != nil {
				return err
			}
			out, open = json.NewEncoder(f), name
			out.SetEscapeHTML(false)
		}
		if hash, ok := record["hash"].(string); ok && set == Uploads {
			hashes = append(hashes, hash)
		}
		m.Records[name]++
		return out.Encode(record)
	})
	if err != nil {
		return fmt.Errorf("export records: %w", err)
	}
	for _, hash := range hashes {
		if err := s.copyFile(ctx, hash, create); err != nil {
			return err
		}
		m.Files++
	}
	if f, err = create("manifest.json"); err != nil {
		return err
	}
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	return errors.Join(e.Encode(m), z.Close())
}

func (s *Service) copyFile(ctx context.Context, hash string, create func(string) (io.Writer, error)) error {
	blob, err := s.files.OpenBlob(ctx, hash)
	if err != nil {
		return fmt.Errorf("export file %s: %w", hash, err)
	}
	defer blob.Close()
	f, err := create("files/" + hash)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, blob)
	return err
}
