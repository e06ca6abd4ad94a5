package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"agentsite/internal/clock"
	"agentsite/internal/hub"
	"agentsite/internal/testing/storetest"
)

type post struct{ to, subject, text string }

// box is a mailer that keeps what it gets.
type box struct {
	got  chan post
	fail error
}

func (b box) Send(_ context.Context, to, subject, text string) error {
	b.got <- post{to, subject, text}
	return b.fail
}

func TestTeller_MailsWhatIsUrgentToWhoHasAnAddress(t *testing.T) {
	db := storetest.New(t)
	ada, bob := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob")
	if err := db.SetEmail(t.Context(), ada.ID, "ada@example.org"); err != nil {
		t.Fatal(err)
	}
	p, err := db.Profiles.Profile(t.Context(), ada.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	p.Muted = []string{hub.NoticeOffer}
	if err := db.Profiles.SaveProfile(t.Context(), p, clock.Now()); err != nil {
		t.Fatal(err)
	}
	b := box{got: make(chan post, 10), fail: errors.New("first one is lost")}
	tell := newNotifier(b, db.DB, "https://portal.example", slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- tell.run(ctx) }()
	tell.QueueNotice(hub.Notice{Kind: hub.NoticeShared, Subject: "helper", Text: "Not urgent."}, []string{ada.ID})
	tell.QueueNotice(hub.Notice{Kind: hub.NoticeDown, Subject: "helper", Text: "It does not answer.", Href: "/agents/helper"}, []string{bob.ID, "", ada.ID})
	tell.QueueNotice(hub.Notice{Kind: hub.NoticeUp, Subject: "helper", Text: "It answers again.", Href: "/agents/helper"}, []string{ada.ID})
	tell.QueueNotice(hub.Notice{Kind: hub.NoticeOffer, Subject: "helper", Text: "Switched off."}, []string{ada.ID})
	tell.QueueNotice(hub.Notice{Kind: hub.NoticeReport, Subject: "helper", Text: "Looked at.", Href: "/agents/helper"}, []string{ada.ID})
	for _, want := range []string{"It does not answer.", "It answers again.", "Looked at."} {
		p := <-b.got
		if p.to != "ada@example.org" || p.subject != "AgentSite: helper" || !strings.HasPrefix(p.text, want) || !strings.Contains(p.text, "https://portal.example/agents/helper") {
			t.Errorf("%+v", p)
		}
	}
	stop()
	if err := <-done; err != nil || len(b.got) != 0 {
		t.Error(err, len(b.got))
	}
	newNotifier(nil, db.DB, "", slog.New(slog.DiscardHandler)).QueueNotice(hub.Notice{Kind: hub.NoticeDown}, []string{ada.ID})
}
