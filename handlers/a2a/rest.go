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

	"agentsite/internal/a2a"
	"agentsite/internal/ident"
)

// restType is the media type of the HTTP+JSON binding. Errors are plain JSON:
// clients take them for something else otherwise.
const restType = "application/a2a+json"

// accepted is the media type of an answer: the binding's own, unless a client
// asks for plain JSON only, or sends that and takes anything.
func accepted(r *http.Request) string {
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, restType):
		return restType
	case strings.Contains(accept, "application/json"), mediaType(r) == "application/json":
		return "application/json"
	}
	return restType
}

// mediaType is that of a request's body, "" where it is not named.
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return t
}

// isJSON refuses a body that says it is something else. What curl says of a
// body it is given does not count.
func isJSON(r *http.Request) error {
	if t := mediaType(r); t != "" && t != "application/json" && t != restType && t != "application/x-www-form-urlencoded" {
		return &a2a.Failure{Code: a2a.CodeContentType, Status: http.StatusUnsupportedMediaType, Text: "Send " + restType + " or application/json."}
	}
	return nil
}

// rest serves the HTTP+JSON binding (§11).
func (d *Door) rest(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && chi.URLParam(r, "*") == "" { // some clients end a base with a slash
		d.rpc(w, r)
		return
	}
	result, err := func() (any, error) {
		route, ok := a2a.RESTRoute(r.Method, chi.URLParam(r, "*"))
		if !ok {
			return nil, &a2a.Failure{Code: a2a.CodeMethodNotFound, Text: "There is nothing at this path of A2A."}
		}
		if route.Method == a2a.NoMethod {
			return nil, &a2a.Failure{Code: a2a.CodeMethodNotFound, Status: http.StatusMethodNotAllowed, Text: "This path is there, but not for " + a2a.Line(r.Method, 10) + "."}
		}
		if _, f := spoken(r, ""); f != nil {
			return nil, f
		}
		actor, err := d.cfg.Callers.Authenticate(r)
		if err != nil {
			return nil, err
		}
		params, err := restParams(w, r, actor, route)
		if err != nil {
			return nil, err
		}
		q := methodCall{w: w, r: r, door: d, proven: actor, method: route.Method, write: a2a.Writer{Version: a2a.Version10}, params: params,
			events: func(v any) any { return v },
			broken: func(f *a2a.Failure) any { return f.REST() }}
		return q.answer(route.Tenant)
	}()
	if errors.Is(err, errStreamed) {
		return
	}
	if err != nil {
		f := d.failure(r, err)
		refuse(w.Header(), f)
		send(w, f.HTTP(), "application/json", f.REST())
		return
	}
	send(w, http.StatusOK, accepted(r), result)
}

// restParams makes the parameters of a method out of path, query and body.
func restParams(w http.ResponseWriter, r *http.Request, actor ident.Actor, route a2a.Route) (json.RawMessage, error) {
	switch route.Method {
	case a2a.SendMessage, a2a.StreamMessage:
		if err := isJSON(r); err != nil {
			return nil, err
		}
		b, err := body(w, r, actor)
		if err == nil && len(strings.TrimSpace(string(b))) == 0 {
			err = a2a.Fail(a2a.CodeInvalidParams, "The body is empty; send a message.")
		}
		return b, err
	case a2a.GetTask, a2a.CancelTask, a2a.SubscribeTask:
		params := map[string]any{"id": route.Task}
		err := number(params, r.URL.Query(), "historyLength")
		return encode(params), err
	case a2a.ListTasks:
		return listParams(r.URL.Query())
	case a2a.GetPush, a2a.ListPush, a2a.DeletePush:
		return encode(map[string]any{"taskId": route.Task, "id": route.Config}), nil
	case a2a.CreatePush:
		return pushParams(w, r, actor, route)
	}
	return nil, nil
}

// pushParams puts the task of the path into a config.
func pushParams(w http.ResponseWriter, r *http.Request, actor ident.Actor, route a2a.Route) (json.RawMessage, error) {
	b, err := body(w, r, actor)
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

// listParams reads the query of ListTasks.
func listParams(q url.Values) (json.RawMessage, error) {
	params := map[string]any{}
	for _, name := range []string{"contextId", "status", "pageToken", "statusTimestampAfter"} {
		if s := q.Get(name); s != "" {
			params[name] = s
		}
	}
	if s := q.Get("lastUpdatedAfter"); s != "" { // the Go SDK's name for it
		params["statusTimestampAfter"] = s
	}
	for _, name := range []string{"pageSize", "historyLength"} {
		if err := number(params, q, name); err != nil {
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
	return encode(params), nil
}

// number takes a whole number from the query, if it is there.
func number(params map[string]any, q url.Values, name string) error {
	s := q.Get(name)
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return a2a.Fail(a2a.CodeInvalidParams, name+": is no whole number.")
	}
	params[name] = n
	return nil
}

func encode(params map[string]any) json.RawMessage {
	b, err := json.Marshal(params)
	if err != nil { // strings and numbers
		panic(err)
	}
	return b
}
