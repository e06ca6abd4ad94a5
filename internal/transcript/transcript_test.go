package transcript_test

import (
	"bytes"
	"encoding/hex"
	"testing"

	"agentsite/internal/transcript"
)

func entry() transcript.Entry {
	return transcript.Entry{Seq: 3, ID: "m3", SenderKind: "person", SenderID: "p1", SenderHandle: "ada", Kind: "text",
		TaskID: "t", TaskState: "completed", Reason: "because", CreatedAt: 5, Body: []byte(`[{"text":"hello"}]`)}
}

// The hashes of entries that are older than salts never change, because databases hold them.
func TestChain_KeepsOlderHashes(t *testing.T) {
	t.Parallel()
	e := entry()
	if got := hex.EncodeToString(transcript.Chain([]byte("before"), e)); got != "6f94f64fb714e319ff7791a94642dc18574dfc9d34c61eb132b491f2932893c8" {
		t.Error(got)
	}
	e.Target = 2
	if got := hex.EncodeToString(transcript.Chain([]byte("before"), e)); got != "6bd4b406626f884742c1b2eb7d37015189703e7ff3fdf7c1627d0679682b5079" {
		t.Error(got)
	}
}

// Each field of an entry changes its hash, and so does the entry before it. A handle and a body cannot trade letters.
func TestChain_CoversEveryField(t *testing.T) {
	t.Parallel()
	salt := transcript.NewSalt()
	for _, older := range []bool{false, true} {
		base := entry()
		if !older {
			base.Salt = salt
		}
		want := transcript.Chain([]byte("before"), base)
		if bytes.Equal(want, transcript.Chain(nil, base)) {
			t.Error("the entry before is not covered")
		}
		for name, change := range map[string]func(*transcript.Entry){
			"seq": func(e *transcript.Entry) { e.Seq++ }, "id": func(e *transcript.Entry) { e.ID += "x" },
			"kind of sender": func(e *transcript.Entry) { e.SenderKind = "guest" },
			"sender":         func(e *transcript.Entry) { e.SenderID = "p2" },
			"handle":         func(e *transcript.Entry) { e.SenderHandle = "eve" },
			"kind":           func(e *transcript.Entry) { e.Kind = "event" },
			"task":           func(e *transcript.Entry) { e.TaskID, e.TaskState = "tcompleted", "" },
			"reason":         func(e *transcript.Entry) { e.Reason = "" },
			"target":         func(e *transcript.Entry) { e.Target = 1 },
			"time":           func(e *transcript.Entry) { e.CreatedAt++ },
			"body":           func(e *transcript.Entry) { e.Body = []byte("other") },
			"salt":           func(e *transcript.Entry) { e.Salt = transcript.NewSalt() },
			"letters":        func(e *transcript.Entry) { e.SenderHandle, e.Body = "ad", append([]byte("a"), e.Body...) },
		} {
			e := base
			change(&e)
			if bytes.Equal(want, transcript.Chain([]byte("before"), e)) {
				t.Errorf("older %v: the %s is not covered", older, name)
			}
		}
	}
}

// An entry without its salt keeps its place in the chain by its commitment, which cannot be made from the
// content again.
func TestChain_WithoutTheSalt(t *testing.T) {
	t.Parallel()
	e := entry()
	e.Salt = transcript.NewSalt()
	want := transcript.Chain([]byte("before"), e)
	gone := e
	gone.Salt, gone.Commitment, gone.Body = transcript.Destroyed(), e.Commit(), nil
	gone.SenderHandle = "deleted account"
	if !bytes.Equal(want, transcript.Chain([]byte("before"), gone)) {
		t.Error("the chain breaks when the content goes")
	}
	guess := entry()
	if bytes.Equal(guess.Commit(), gone.Commitment) {
		t.Error("the commitment is an unsalted hash")
	}
	for range 2 {
		guess.Salt = transcript.NewSalt()
		if bytes.Equal(guess.Commit(), gone.Commitment) {
			t.Error("two salts are the same")
		}
	}
}
