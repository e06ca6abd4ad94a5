package respond

import (
	"log/slog"
	"net/http"

	"github.com/go-chi/chi/v5/middleware"

	"agentsite/internal/fault"
)

type ErrorBody struct {
	Error struct {
		Kind      fault.Kind        `json:"kind"`
		Message   string            `json:"message"`
		Fields    map[string]string `json:"fields,omitempty"`
		RequestID string            `json:"request_id"`
	} `json:"error"`
}

func Error(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	f, code := PrepareError(w, r, log, err)
	var b ErrorBody
	b.Error.Kind, b.Error.Message, b.Error.Fields = f.Kind, f.Safe, f.Fields
	b.Error.RequestID = middleware.GetReqID(r.Context())
	SetChallenge(w, f)
	JSON(w, code, b)
}
