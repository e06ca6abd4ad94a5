package app_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/wasmtest"
)

// sendForm sends a form with files; the name of a file is that of its field.
func sendForm(t *testing.T, c *apptest.Client, path string, fields, files map[string]string, status int) apptest.Answer {
	t.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	for name, value := range fields {
		if err := m.WriteField(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		f, err := m.CreateFormFile(name, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return c.Must(http.MethodPost, path, &b, status, func(r *http.Request) {
		r.Header.Set("Content-Type", m.FormDataContentType())
	})
}

// An author publishes a package in the browser: tries it, reads the preview with its grants, publishes it, and an agent
// runs it. Errors stand at their fields, and people who may not host publish nothing.
func TestPackageForm_TriesPreviewsAndPublishes(t *testing.T) {
	t.Parallel()
	p := apptest.Start(t)
	rob, ada := p.Operator(t, "rob"), p.User(t, "ada")
	module := string(logsAnd("a line of the log"))
	manifest := `{"name":"logger","version":"0.2.0","summary":"Writes a log.","licence":"MIT","lang":"go",
		"grants":[{"name":"find","why":"To name agents."},{"name":"memory","why":"To know people."}],"limits":{"seconds":2}}`
	page := sendForm(t, rob, "/packages/new", map[string]string{"ask": "Hello", "try": "1"},
		map[string]string{"manifest_file": manifest, "module_file": module}, http.StatusOK).Body
	if !strings.Contains(page, "log: a line of the log") || !strings.Contains(page, `value="logger"`) {
		t.Errorf("a try shows no log, or lost the manifest")
	}
	_, rest, _ := strings.Cut(page, `name="module" value="`)
	hash, _, _ := strings.Cut(rest, `"`)
	fields := map[string]string{"name": "logger", "version": "0.2.0", "summary": "Writes a log.", "licence": "MIT",
		"grants": "find To name agents.\nmemory To know people.", "seconds": "2", "readme": "# Logger\n\nIt **logs**.", "module": hash}
	with := func(name, value string) map[string]string {
		out := map[string]string{name: value}
		for k, v := range fields {
			if k != name {
				out[k] = v
			}
		}
		return out
	}
	page = sendForm(t, rob, "/packages/new", with("preview", "1"), nil, http.StatusOK).Body
	for _, want := range []string{"nothing is published yet", "Find agents", "To name agents.", "Remember people", "2 s of computing",
		"<strong>logs</strong>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the preview lacks %q", want)
		}
	}
	rob.Must(http.MethodGet, "/packages/logger", nil, http.StatusNotFound)
	for name, value := range map[string]string{"name": "new", "version": "one", "licence": "", "grants": "fly", "module": "00",
		"readme": strings.Repeat("x", 4001), "seconds": "many"} {
		page := sendForm(t, rob, "/packages/new", with(name, value), nil, http.StatusBadRequest).Body
		if field := strings.Replace(name, "seconds", "limits", 1); !strings.Contains(page, `id="`+field+`-error"`) {
			t.Errorf("a wrong %s has no error at its field", name)
		}
	}
	sendForm(t, rob, "/packages/new", nil, map[string]string{"manifest_file": `{"nome":"x"}`}, http.StatusBadRequest)
	to := sendForm(t, rob, "/packages/new", fields, nil, http.StatusSeeOther).Header.Get("Location")
	if page := rob.Must(http.MethodGet, to, nil, http.StatusOK).Body; !strings.Contains(page, "To know people.") {
		t.Errorf("the page of the package at %s lacks its grants", to)
	}
	page = ada.Must(http.MethodGet, "/packages/new", nil, http.StatusOK).Body
	if strings.Contains(page, "module_file") || !strings.Contains(page, "hosts no programs of ada") {
		t.Error("a person who may not host sees the form")
	}
	sendForm(t, ada, "/packages/new", with("module", ""), map[string]string{"module_file": string(wasmtest.Says("x").Bytes())},
		http.StatusForbidden)
	sendForm(t, ada, "/packages/new", with("ask", "Hello"), nil, http.StatusForbidden)
}
