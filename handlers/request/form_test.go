package request_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"agentsite/handlers/request"
	"agentsite/internal/fault"
)

func TestKnownForm_RefusesUnknownFields(t *testing.T) {
	t.Parallel()
	post := func(body string) error {
		r := httptest.NewRequest(http.MethodPost, "/account/tokens", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		in, err := request.KnownForm(httptest.NewRecorder(), r, "scopes", "uses")
		if err == nil && in.Get("uses") != "1" {
			t.Errorf("%s is read as %v", body, in)
		}
		return err
	}
	if err := post("uses=1&scopes=a&scopes=b"); err != nil {
		t.Error(err)
	}
	err := post("uses=1&scope=a&max=2")
	f := fault.As(err)
	if f.Kind != fault.Invalid || f.Fields["scope"] != "is not a field here; did you mean scopes?" || f.Fields["max"] == "" || len(f.Fields) != 2 {
		t.Error(err)
	}
}
