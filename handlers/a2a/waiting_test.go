package a2a_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/agenttest"
	"agentsite/internal/testing/apptest"
)

// TestSend_IsNotHeardWhereNobodyMayWait fills the places of one address, at
// both faces, and looks whether what was refused was asked all the same.
func TestSend_IsNotHeardWhereNobodyMayWait(t *testing.T) {
	t.Parallel()
	model := agenttest.NewOpenAIServer(t)
	p := apptest.Start(t)
	name := p.User(t, "ada").Agent("public", model.Base(agenttest.Wait))
	c, base := p.Guest(t), "/agents/"+name+"/a2a"
	now := strings.TrimSuffix(say("one", "hello", ""), "}") + `,"configuration":{"returnImmediately":true}}`
	k := rpc(c, base, "SendMessage", now).task(t)
	for range 20 {
		resp, err := c.HTTP.Do(c.Request(t.Context(), http.MethodGet, base+"/tasks/"+k.ID+":subscribe", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: ") {
			t.Fatalf("%s: %q %v", resp.Status, line, err)
		}
	}
	if a := rpc(c, base, "SendMessage", say("two", "hello", `,"contextId":"`+k.ContextID+`"`)); a.status != http.StatusTooManyRequests {
		t.Errorf("sent: %d %+v", a.status, a.Error)
	}
	if got := c.Do(http.MethodPost, "/v1/chat/completions", map[string]any{"model": name, "messages": []any{map[string]any{"role": "user", "content": "hello"}}}); got.Status != http.StatusTooManyRequests || !strings.Contains(got.Body, "wait for 20 answers") {
		t.Errorf("at the other face: %d %s", got.Status, got.Body)
	}
	var list struct{ TotalSize int }
	if err := json.Unmarshal(rpc(c, base, "ListTasks", `{"contextId":"`+k.ContextID+`"}`).Result, &list); err != nil || list.TotalSize != 1 {
		t.Errorf("%d tasks, %v", list.TotalSize, err)
	}
}
