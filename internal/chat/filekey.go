package chat

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"agentsite/internal/clock"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/task"
)

// FileKeyLife is the validity of a file address that was given to an agent.
const FileKeyLife = time.Hour

// FileKeyParam is the query parameter that holds the key in such a file address.
const FileKeyParam = "key"

// fileKey returns a signed key for one file. Its holder may read the file until the given time, as long
// as a message of the conversation with from < seq <= upTo refers to it.
func (s *Attachments) fileKey(hash, conversationID string, from, upTo int64, until time.Time) string {
	claim := fmt.Sprintf("%d.%s.%d.%d", until.Unix(), conversationID, from, upTo)
	return claim + "." + base64.RawURLEncoding.EncodeToString(s.signClaim(hash, claim))
}

func (s *Attachments) signClaim(hash, claim string) []byte {
	h := hmac.New(sha256.New, s.key)
	fmt.Fprintf(h, "agentsite/file/1 %s %s", hash, claim)
	return h.Sum(nil)
}

// OpenByKey returns a file for the holder of a key made by fileKey; no login is needed. A NotFound fault
// if the key is invalid or expired. The caller closes the content.
func (s *Attachments) OpenByKey(ctx context.Context, hash, key string) (File, io.ReadSeekCloser, error) {
	i := strings.LastIndexByte(key, '.')
	if !validHash(hash) || i < 0 || len(key) > 200 {
		return File{}, nil, errNoFile()
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(key[i+1:])
	if err != nil || !hmac.Equal(mac, s.signClaim(hash, key[:i])) {
		return File{}, nil, errNoFile()
	}
	claim := strings.Split(key[:i], ".")
	if len(claim) != 4 {
		return File{}, nil, errNoFile()
	}
	until, err1 := strconv.ParseInt(claim[0], 10, 64)
	from, err2 := strconv.ParseInt(claim[2], 10, 64)
	upTo, err3 := strconv.ParseInt(claim[3], 10, 64)
	if errors.Join(err1, err2, err3) != nil || clock.Now().Unix() >= until {
		return File{}, nil, errNoFile()
	}
	f, err := s.store.SharedFile(ctx, hash, claim[1], from, upTo)
	return s.openFound(ctx, f, err)
}

// ForTask returns the files that a task's agent may read: those of the messages that the task's caller
// sees, up to the message it is asked about.
func (s *Attachments) ForTask(t task.Task) task.Files { return taskFiles{s, t} }

type taskFiles struct {
	s *Attachments
	t task.Task
}

// Open implements task.Files.
func (f taskFiles) Open(ctx context.Context, url string) (task.File, io.ReadCloser, error) {
	hash, from, err := f.find(ctx, url)
	if err != nil {
		return task.File{}, nil, err
	}
	file, err := f.s.store.SharedFile(ctx, hash, f.t.ConversationID, from, f.t.MessageSeq)
	file, r, err := f.s.openFound(ctx, file, err)
	if err != nil {
		return task.File{}, nil, err
	}
	return task.File{MediaType: file.MediaType, Size: file.Size}, r, nil
}

// Address implements task.Files.
func (f taskFiles) Address(ctx context.Context, url string) (string, error) {
	hash, from, err := f.find(ctx, url)
	if err != nil {
		return "", err
	}
	if _, err := f.s.store.SharedFile(ctx, hash, f.t.ConversationID, from, f.t.MessageSeq); err != nil {
		return "", err
	}
	key := f.s.fileKey(hash, f.t.ConversationID, from, f.t.MessageSeq, clock.Now().Add(FileKeyLife))
	return f.s.url + FileURL(hash) + "?" + FileKeyParam + "=" + key, nil
}

// find returns the file hash in a part's URL, and the seq after which the task's caller sees messages.
func (f taskFiles) find(ctx context.Context, url string) (hash string, from int64, err error) {
	hash, ok := fileHash(url)
	if !ok {
		return "", 0, errNoFile()
	}
	asker, _, err := findAsker(ctx, f.s.store, f.t)
	if err != nil {
		return "", 0, err
	}
	return hash, asker.FromSeq, nil
}

// memberStore is the part of the store that findAsker needs.
type memberStore interface {
	Members(ctx context.Context, conversationID string) ([]Member, error)
}

// findAsker returns the member that a task works for, and all members of the conversation; a NotFound
// fault if the asker has left.
func findAsker(ctx context.Context, store memberStore, t task.Task) (Member, []Member, error) {
	list, err := store.Members(ctx, t.ConversationID)
	if err != nil {
		return Member{}, nil, err
	}
	m, ok := findMember(list, memberKind(ident.Actor{Kind: ident.ActorKind(t.CallerKind)}), t.CallerID)
	if !ok {
		return Member{}, nil, fault.New(fault.NotFound, "Whoever asked for this has left the conversation.")
	}
	return m, list, nil
}
