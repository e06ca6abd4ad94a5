package app

import (
	"context"
	"fmt"

	"agentsite/agentruntime/recollect"
	"agentsite/internal/chat"
	"agentsite/internal/hub"
	"agentsite/internal/memory"
)

// newMemories builds the service of memories and the keeper, which uses the services of the portal only while tasks
// run.
func newMemories(p *Portal) *memory.Service {
	s := memory.New(memory.Config{Store: p.db.Memories, Grants: p.grants, Notices: memoryNotices{p},
		Encoder: p.senses})
	p.keeper = recollect.New(recollect.Config{Memory: s, Directory: acted{p}, Rooms: memoryRooms{p}, Log: p.log})
	return s
}

// memoryRooms implements recollect.Rooms.
type memoryRooms struct{ portal *Portal }

func (r memoryRooms) Members(ctx context.Context, id string) ([]chat.Member, error) {
	return r.portal.db.Chat.Members(ctx, id)
}

// memoryNotices implements memory.Notices.
type memoryNotices struct{ portal *Portal }

// NotifyDropped implements memory.Notices.
func (n memoryNotices) NotifyDropped(ctx context.Context, personID, agent string, dropped int) {
	things := "1 old thing"
	if dropped > 1 {
		things = fmt.Sprintf("%d old things", dropped)
	}
	n.portal.hub.Notices.Notify(ctx, []string{personID}, hub.Notice{Kind: memory.NoticeKind, Subject: agent,
		Text: fmt.Sprintf("%s forgot %s about you that it had not used for long, because its memory was full.", agent,
			things),
		Href: "/account/memories?agent=" + agent})
}
