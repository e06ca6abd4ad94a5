package peer

import (
	"context"
	"net/http"

	"agentsite/internal/federation/guard"
)

// maxSummaries is how many summaries one portal is given at once: each is read
// and compared with its head first.
const maxSummaries = 4

// summary answers with a portal's head and the summary that it names.
func (s *Records) summary(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any, error) {
	out, err := s.archive.Summary(ctx, portalOf(r, "id"))
	if err != nil {
		return nil, err
	}
	return out, nil
}
