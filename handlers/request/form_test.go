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

// The fields of a body in another form than that of plain forms would be lost: a setting would be reported as
// saved, and a right stay as it is.
func TestForm_RefusesOtherBodies(t *testing.T) {
	t.Parallel()
	for kind, body := range map[string]string{
		"multipart/form-data; boundary=b": "--b\r\nContent-Disposition: form-data; name=\"past\"\r\n\r\nnothing\r\n--b--\r\n",
		"application/json":                `{"past":"nothing"}`,
		"text/plain":                      "past=nothing",
		"":                                "past=nothing",
	} {
		r := httptest.NewRequest(http.MethodPost, "/chat/1/settings", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		if in, err := request.Form(httptest.NewRecorder(), r); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q is read as %v, %v", kind, in, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/chat/1/settings", nil)
	if _, err := request.Form(httptest.NewRecorder(), r); err != nil {
		t.Errorf("no body: %v", err)
	}
}
