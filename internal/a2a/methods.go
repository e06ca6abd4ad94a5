package a2a

import (
	"net/url"
	"strings"
)

// Method is one method of the protocol, independent of version and binding.
type Method int

// The methods of A2A 1.0 (§9.4).
const (
	NoMethod Method = iota
	SendMessage
	StreamMessage
	GetTask
	ListTasks
	CancelTask
	SubscribeTask
	CreatePush
	GetPush
	ListPush
	DeletePush
	ExtendedCard
)

var methods10 = map[string]Method{
	opSend.rpc10: SendMessage, opStream.rpc10: StreamMessage, opGet.rpc10: GetTask, "ListTasks": ListTasks,
	opCancel.rpc10: CancelTask, opSubscribe.rpc10: SubscribeTask,
	"CreateTaskPushNotificationConfig": CreatePush, "GetTaskPushNotificationConfig": GetPush,
	"ListTaskPushNotificationConfigs": ListPush, "DeleteTaskPushNotificationConfig": DeletePush,
	"GetExtendedAgentCard": ExtendedCard,
}

var methods03 = map[string]Method{
	opSend.rpc03: SendMessage, opStream.rpc03: StreamMessage, opGet.rpc03: GetTask,
	opCancel.rpc03: CancelTask, opSubscribe.rpc03: SubscribeTask,
	"tasks/pushNotificationConfig/set": CreatePush, "tasks/pushNotificationConfig/get": GetPush,
	"tasks/pushNotificationConfig/list": ListPush, "tasks/pushNotificationConfig/delete": DeletePush,
	"agent/getAuthenticatedExtendedCard": ExtendedCard,
}

// RPCMethod returns the method with that JSON-RPC name in a version, NoMethod if there is none.
func RPCMethod(name, version string) Method {
	if version == Version03 {
		return methods03[name]
	}
	return methods10[name]
}

// Route is the result of parsing a request path of the HTTP+JSON binding. Fields that the path does not
// have are "".
type Route struct {
	Method Method
	Tenant string
	Task   string
	Config string // id of a push notification config
}

// RESTRoute parses an HTTP method and a path below the base (§11.3). The path is escaped and begins
// without a slash; a tenant may come first. ok is true when the path exists, even with another HTTP
// method: Method is NoMethod if the path does not take the given one.
func RESTRoute(method, path string) (r Route, ok bool) {
	seg := strings.Split(path, "/")
	if len(seg) > 1 && seg[0] != "tasks" || len(seg) > 1 && seg[0] == "tasks" && seg[1] == "tasks" {
		if r.Tenant, ok = unescapeSegment(seg[0]); !ok {
			return r, false
		}
		seg = seg[1:]
	}
	is := func(want string, m Method) {
		if method == want {
			r.Method = m
		}
	}
	switch {
	case len(seg) == 1 && seg[0] == "message:send":
		is("POST", SendMessage)
	case len(seg) == 1 && seg[0] == "message:stream":
		is("POST", StreamMessage)
	case len(seg) == 1 && seg[0] == "extendedAgentCard":
		is("GET", ExtendedCard)
	case len(seg) == 1 && seg[0] == "tasks":
		is("GET", ListTasks)
	case len(seg) == 2 && seg[0] == "tasks":
		id, verb, colon := strings.Cut(seg[1], ":")
		if r.Task, ok = unescapeSegment(id); !ok || colon && verb == "" {
			return r, false
		}
		switch verb {
		case "":
			is("GET", GetTask)
		case "cancel":
			is("POST", CancelTask)
		case "subscribe": // the specification's text says POST, its protobuf GET; accept both
			is("POST", SubscribeTask)
			is("GET", SubscribeTask)
		default:
			return r, false
		}
	case len(seg) >= 3 && len(seg) <= 4 && seg[0] == "tasks" && seg[2] == "pushNotificationConfigs":
		if r.Task, ok = unescapeSegment(seg[1]); !ok {
			return r, false
		}
		if len(seg) == 3 {
			is("POST", CreatePush)
			is("GET", ListPush)
		} else {
			if r.Config, ok = unescapeSegment(seg[3]); !ok {
				return r, false
			}
			is("GET", GetPush)
			is("DELETE", DeletePush)
		}
	default:
		return r, false
	}
	return r, true
}

func unescapeSegment(s string) (string, bool) {
	t, err := url.PathUnescape(s)
	return t, err == nil && t != "" && len(t) <= maxID
}
