package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PushConfig is a TaskPushNotificationConfig (§4.3.1): where the caller of a
// task is to be told of it.
type PushConfig struct {
	TaskID string
	ID     string // "" where we are to choose
	URL    string
	Token  string
	// Scheme and Credentials make the Authorization of what is sent.
	Scheme, Credentials string
}

// PushRequest names a config, or with an empty ID all of a task.
type PushRequest struct {
	TaskID string
	ID     string
}

// wirePush has the fields of both versions; in 0.3 they are inside of
// pushNotificationConfig.
type wirePush struct {
	ID             string `json:"id"`
	URL            string `json:"url"`
	Token          string `json:"token"`
	Authentication *struct {
		Scheme      string   `json:"scheme"`
		Schemes     []string `json:"schemes"` // 0.3
		Credentials string   `json:"credentials"`
	} `json:"authentication"`
}

// taskName is how a request of either version names its task. Protobuf's own
// reader of JSON also takes the name with an underscore, which some clients
// send.
type taskName struct {
	TaskID  string `json:"taskId"`
	TaskID2 string `json:"task_id"`
}

func (n taskName) id() string {
	if n.TaskID == "" {
		return n.TaskID2
	}
	return n.TaskID
}

// ReadPush reads the parameters of CreateTaskPushNotificationConfig.
func ReadPush(b []byte, version string) (PushConfig, *Failure) {
	var n struct {
		taskName
		Config json.RawMessage `json:"pushNotificationConfig"` // 0.3
	}
	if f := strict(b, &n); f != nil {
		return PushConfig{}, f
	}
	inside := ""
	if version == Version03 {
		if inside = "pushNotificationConfig."; !isObject(n.Config) {
			return PushConfig{}, wrong("pushNotificationConfig", "is missing")
		}
		b = n.Config
	}
	c, f := readPush(b, inside)
	if f != nil {
		return c, f
	}
	if c.TaskID = n.id(); c.TaskID == "" || len(c.TaskID) > maxID {
		return c, wrong("taskId", fmt.Sprintf("is missing or has more than %d bytes", maxID))
	}
	return c, nil
}

// readPush reads all but the task; field names begin with inside.
func readPush(b []byte, inside string) (c PushConfig, _ *Failure) {
	var w wirePush
	if f := strict(b, &w); f != nil {
		return c, f
	}
	c = PushConfig{ID: w.ID, URL: strings.TrimSpace(w.URL), Token: w.Token}
	if a := w.Authentication; a != nil {
		c.Scheme, c.Credentials = a.Scheme, a.Credentials
		if c.Scheme == "" && len(a.Schemes) > 0 {
			c.Scheme = a.Schemes[0]
		}
	}
	switch {
	case c.URL == "":
		return c, wrong(inside+"url", "is missing; it is the address that is to be told")
	case len(c.ID) > maxID:
		return c, wrong(inside+"id", fmt.Sprintf("has more than %d bytes", maxID))
	}
	return c, nil
}

// ReadPushRequest reads the parameters of GetTaskPushNotificationConfig,
// DeleteTaskPushNotificationConfig and ListTaskPushNotificationConfigs. In 0.3
// a get without an id means the first one.
func ReadPushRequest(b []byte, m Method, version string) (PushRequest, *Failure) {
	var w struct {
		taskName
		ID     string `json:"id"`
		Config string `json:"pushNotificationConfigId"` // 0.3
	}
	if f := strict(b, &w); f != nil {
		return PushRequest{}, f
	}
	out, task := PushRequest{w.id(), w.ID}, "taskId"
	if version == Version03 {
		out, task = PushRequest{w.ID, w.Config}, "id"
	}
	switch {
	case out.TaskID == "" || len(out.TaskID) > maxID:
		return out, wrong(task, fmt.Sprintf("is missing or has more than %d bytes; it is the task's", maxID))
	case m != ListPush && out.ID == "" && !(version == Version03 && m == GetPush):
		return out, wrong("id", "is missing; it is the config's")
	case len(out.ID) > maxID:
		return out, wrong("id", fmt.Sprintf("has more than %d bytes", maxID))
	}
	return out, nil
}

// Push writes a config. Its token and credentials stay here.
func (w Writer) Push(c PushConfig) any {
	o := object{"id": c.ID, "url": c.URL}
	if w.Version == Version03 {
		if c.Scheme != "" {
			o["authentication"] = object{"schemes": []string{c.Scheme}}
		}
		return object{"taskId": c.TaskID, "pushNotificationConfig": o}
	}
	if c.Scheme != "" {
		o["authentication"] = object{"scheme": c.Scheme}
	}
	o["taskId"] = c.TaskID
	return o
}

// Pushes writes all of a task: 1.0 has them on a page, of which there is one.
func (w Writer) Pushes(list []PushConfig) any {
	out := make([]any, len(list))
	for i, c := range list {
		out[i] = w.Push(c)
	}
	if w.Version == Version03 {
		return out
	}
	return object{"configs": out, "nextPageToken": ""}
}
