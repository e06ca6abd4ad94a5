package peer

import (
	"context"
	"net/http"

	"agentsite/internal/federation/guard"
)

// maxSummaries bounds the summaries that one portal reads at once: each is loaded and compared with
// its head first.
const maxSummaries = 4

// serveSummary answers with a portal's head and the summary that it names.
func (s *Records) serveSummary(ctx context.Context, _ guard.Asker, r *http.Request, _ []byte) (any, error) {
	out, err := s.archive.Summary(ctx, portalOf(r, "id"))
	if err != nil {
		return nil, err
	}
	return out, nil
}
