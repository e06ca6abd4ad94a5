package a2a

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PushConfig is a TaskPushNotificationConfig (§4.3.1): the address to which the caller of a task wants
// its events sent.
type PushConfig struct {
	TaskID string
	ID     string // "" lets the portal choose an id
	URL    string
	Token  string
	// Scheme and Credentials form the Authorization header of each notification: "Scheme Credentials".
	Scheme, Credentials string
}

// PushRequest names a push notification config of a task, or all of them if ID is empty.
type PushRequest struct {
	TaskID string
	ID     string
}

// wirePush has the fields of both versions. In 0.3 they are inside the member pushNotificationConfig.
type wirePush struct {
	ID             string `json:"id"`
	URL            string `json:"url"`
	Token          string `json:"token"`
	Authentication *struct {
		Scheme      string   `json:"scheme"`
		Schemes     []string `json:"schemes"` // A2A 0.3
		Credentials string   `json:"credentials"`
	} `json:"authentication"`
}

// taskName holds the name of a task in a request of either version. Protobuf's own JSON reader also
// accepts the name with an underscore, which some clients send.
type taskName struct {
	TaskID  string `json:"taskId"`
	TaskID2 string `json:"task_id"`
}

func (n taskName) taskID() string {
	if n.TaskID == "" {
		return n.TaskID2
	}
	return n.TaskID
}

// ReadPush reads and checks the parameters of CreateTaskPushNotificationConfig. The URL's host is not
// checked here.
func ReadPush(b []byte, version string) (PushConfig, *Failure) {
	var n struct {
		taskName
		Config json.RawMessage `json:"pushNotificationConfig"` // A2A 0.3
	}
	if f := decodeStrict(b, &n); f != nil {
		return PushConfig{}, f
	}
	inside := ""
	if version == Version03 {
		if inside = "pushNotificationConfig."; !isObject(n.Config) {
			return PushConfig{}, fieldFailure("pushNotificationConfig", "is missing")
		}
		b = n.Config
	}
	c, f := readPush(b, inside)
	if f != nil {
		return c, f
	}
	if c.TaskID = n.taskID(); c.TaskID == "" || len(c.TaskID) > maxID {
		return c, fieldFailure("taskId", fmt.Sprintf("is missing or has more than %d bytes", maxID))
	}
	return c, nil
}

// readPush reads all fields of a config except the task. inside is the prefix of field names in errors.
func readPush(b []byte, inside string) (c PushConfig, _ *Failure) {
	var w wirePush
	if f := decodeStrict(b, &w); f != nil {
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
		return c, fieldFailure(inside+"url", "is missing; it is the address for the notifications")
	case len(c.ID) > maxID:
		return c, fieldFailure(inside+"id", fmt.Sprintf("has more than %d bytes", maxID))
	}
	return c, nil
}

// ReadPushRequest reads the parameters of GetTaskPushNotificationConfig,
// DeleteTaskPushNotificationConfig and ListTaskPushNotificationConfigs. In 0.3 a get without an id
// means the first one.
func ReadPushRequest(b []byte, m Method, version string) (PushRequest, *Failure) {
	var w struct {
		taskName
		ID     string `json:"id"`
		Config string `json:"pushNotificationConfigId"` // A2A 0.3
	}
	if f := decodeStrict(b, &w); f != nil {
		return PushRequest{}, f
	}
	out, task := PushRequest{w.taskID(), w.ID}, "taskId"
	if version == Version03 {
		out, task = PushRequest{w.ID, w.Config}, "id"
	}
	switch {
	case out.TaskID == "" || len(out.TaskID) > maxID:
		return out, fieldFailure(task, fmt.Sprintf("is missing or has more than %d bytes; it is the task's", maxID))
	case m != ListPush && out.ID == "" && !(version == Version03 && m == GetPush):
		return out, fieldFailure("id", "is missing; it is the config's")
	case len(out.ID) > maxID:
		return out, fieldFailure("id", fmt.Sprintf("has more than %d bytes", maxID))
	}
	return out, nil
}

// Push returns a config for encoding as JSON. Token and credentials are left out, because they are
// secret.
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

// Pushes returns all configs of a task for encoding as JSON, in a single page.
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
