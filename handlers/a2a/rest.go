package a2a

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/respond"
	"agentsite/internal/a2a"
	"agentsite/internal/ident"
)

// restType is the media type of the HTTP+JSON binding. Errors have the type application/json, because
// clients do not decode errors of another type.
const restType = "application/a2a+json"

// answerType returns the media type of an answer: the binding's own, unless a client asks for plain
// JSON only, or sends it and accepts anything.
func answerType(r *http.Request) string {
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, restType):
		return restType
	case strings.Contains(accept, "application/json"), mediaType(r) == "application/json":
		return "application/json"
	}
	return restType
}

// mediaType returns the media type of a request's body without parameters, "" if the header is missing or
// malformed.
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return t
}

// isJSON returns an error if the body has a media type other than JSON. curl's default type for a body is
// accepted, because requests by hand are common.
func isJSON(r *http.Request) error {
	if t := mediaType(r); t != "" && t != "application/json" && t != restType &&
		t != "application/x-www-form-urlencoded" {
		return &a2a.Failure{Code: a2a.CodeContentType, Status: http.StatusUnsupportedMediaType,
			Text: "Send " + restType + " or application/json."}
	}
	return nil
}

// serveREST serves the HTTP+JSON binding (§11).
func (d *Handler) serveREST(w http.ResponseWriter, r *http.Request) {
	// some clients post to the base with a slash appended; the slash is ignored
	if r.Method == http.MethodPost && chi.URLParam(r, "*") == "" {
		d.serveRPC(w, r)
		return
	}
	result, err := func() (any, error) {
		route, ok := a2a.RESTRoute(r.Method, chi.URLParam(r, "*"))
		if !ok {
			return nil, &a2a.Failure{Code: a2a.CodeMethodNotFound, Text: "There is nothing at this path of A2A."}
		}
		if route.Method == a2a.NoMethod {
			return nil, &a2a.Failure{Code: a2a.CodeMethodNotFound, Status: http.StatusMethodNotAllowed,
				Text: "This path is there, but not for " + a2a.Line(r.Method, 10) + "."}
		}
		if _, f := spokenVersion(r, ""); f != nil {
			return nil, f
		}
		actor, err := d.cfg.Callers.Authenticate(r)
		if err != nil {
			return nil, err
		}
		respond.SetReader(w, actor)
		params, err := restParams(w, r, actor, route)
		if err != nil {
			return nil, err
		}
		q := methodCall{w: w, r: r, handler: d, proven: actor, method: route.Method,
			write: a2a.Writer{Version: a2a.Version10}, params: params,
			binding: restBinding{}}
		return q.answerCall(route.Tenant)
	}()
	if errors.Is(err, errStreamed) {
		return
	}
	if err != nil {
		f := d.failureOf(r, err)
		setErrorHeaders(w.Header(), f)
		sendJSON(w, f.HTTP(), "application/json", f.REST())
		return
	}
	sendJSON(w, http.StatusOK, answerType(r), result)
}

// restBinding sends events as bare values; JSON-RPC wraps them.
type restBinding struct{}

func (restBinding) wrapEvent(v any) any            { return v }
func (restBinding) wrapFailure(f *a2a.Failure) any { return f.REST() }

// restParams returns the JSON parameters of a method from path, query and body, as JSON-RPC would contain
// them.
func restParams(w http.ResponseWriter, r *http.Request, actor ident.Actor, route a2a.Route) (json.RawMessage, error) {
	switch route.Method {
	case a2a.SendMessage, a2a.StreamMessage:
		if err := isJSON(r); err != nil {
			return nil, err
		}
		b, err := readBody(w, r, actor)
		if err == nil && len(strings.TrimSpace(string(b))) == 0 {
			err = a2a.Fail(a2a.CodeInvalidParams, "The body is empty; send a message.")
		}
		return b, err
	case a2a.GetTask, a2a.CancelTask, a2a.SubscribeTask:
		params := map[string]any{"id": route.Task}
		err := readNumber(params, r.URL.Query(), "historyLength")
		return encodeParams(params), err
	case a2a.ListTasks:
		return listParams(r.URL.Query())
	case a2a.GetPush, a2a.ListPush, a2a.DeletePush:
		return encodeParams(map[string]any{"taskId": route.Task, "id": route.Config}), nil
	case a2a.CreatePush:
		return pushParams(w, r, actor, route)
	}
	return json.RawMessage{}, nil // this method takes no parameters
}

// pushParams decodes a push configuration and adds the task id of the path.
func pushParams(w http.ResponseWriter, r *http.Request, actor ident.Actor, route a2a.Route) (json.RawMessage, error) {
	b, err := readBody(w, r, actor)
	if err != nil {
		return nil, err
	}
	var params map[string]json.RawMessage
	if err := json.Unmarshal(b, &params); err != nil || params == nil {
		return nil, a2a.Fail(a2a.CodeParse, "The body is not a JSON object; send a push notification config.")
	}
	id, _ := json.Marshal(route.Task)
	params["taskId"] = id
	return json.Marshal(params)
}

// listParams converts the query of GET /tasks to the JSON parameters of ListTasks.
func listParams(q url.Values) (json.RawMessage, error) {
	params := map[string]any{}
	for _, name := range []string{"contextId", "status", "pageToken", "statusTimestampAfter"} {
		if s := q.Get(name); s != "" {
			params[name] = s
		}
	}
	if s := q.Get("lastUpdatedAfter"); s != "" { // the parameter's name in the Go SDK
		params["statusTimestampAfter"] = s
	}
	for _, name := range []string{"pageSize", "historyLength"} {
		if err := readNumber(params, q, name); err != nil {
			return nil, err
		}
	}
	if s := q.Get("includeArtifacts"); s != "" {
		yes, err := strconv.ParseBool(s)
		if err != nil {
			return nil, a2a.Fail(a2a.CodeInvalidParams, "includeArtifacts: is neither true nor false.")
		}
		params["includeArtifacts"] = yes
	}
	return encodeParams(params), nil
}

// readNumber copies an integer from the query to params if it is set, and fails if it is not a number.
func readNumber(params map[string]any, q url.Values, name string) error {
	s := q.Get(name)
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return a2a.Fail(a2a.CodeInvalidParams, name+": is not an integer.")
	}
	params[name] = n
	return nil
}

func encodeParams(params map[string]any) json.RawMessage {
	b, err := json.Marshal(params)
	if err != nil { // strings and numbers always encode
		panic(err)
	}
	return b
}
