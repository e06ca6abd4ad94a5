package app_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentsite/handlers/library"
	"agentsite/internal/ident"
	"agentsite/internal/testing/apptest"
	"agentsite/internal/testing/pdftest"
	"agentsite/internal/testing/racetest"
)

// TestLibrary_ReadsPDF checks that only the owner finds and reads the text of a PDF file, and that a PDF file without
// text is stored too.
func TestLibrary_ReadsPDF(t *testing.T) {
	t.Parallel()
	racetest.Skip(t) // compiling the reader takes minutes there
	p := apptest.Start(t)
	ada, eve := p.User(t, "ada"), p.User(t, "eve")
	bill := pdftest.File("Invoice 4711\nBalloon flight over the harbour", "Total: 84.60")
	if v := putFile(t, ada, "bills/a.pdf", string(bill)); v.MediaType != "application/pdf" {
		t.Errorf("the type: %q", v.MediaType)
	}
	if got := filesOf(ada, "?q=balloon+84.60"); !slices.Equal(got, []string{"bills/a.pdf"}) {
		t.Errorf("found: %v", got)
	}
	if got := filesOf(eve, "?q=balloon"); len(got) > 0 {
		t.Errorf("another person finds %v", got)
	}
	var found struct{ Files []library.FileJSON }
	ada.Get(http.MethodGet, "/api/v1/library?q=balloon", nil, http.StatusOK, &found)
	if len(found.Files) != 1 || !strings.Contains(found.Files[0].Excerpt, "balloon flight") {
		t.Errorf("the excerpt: %+v", found)
	}
	const text = "Invoice 4711\nBalloon flight over the harbour\n\nTotal: 84.60"
	a := ada.Must(http.MethodGet, "/api/v1/library/bills/a.pdf?text=1", nil, http.StatusOK)
	if a.Body != text || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("the text: %q as %q", a.Body, a.Header.Get("Content-Type"))
	}
	eve.Must(http.MethodGet, "/api/v1/library/bills/a.pdf?text=1", nil, http.StatusNotFound)
	page := ada.Must(http.MethodGet, "/library/file?path=bills%2Fa.pdf", nil, http.StatusOK).Body
	if !strings.Contains(page, "Show its text") || strings.Contains(page, "Balloon") {
		t.Error("the page does not offer the text, or has it at once")
	}
	page = ada.Must(http.MethodGet, "/library/file?path=bills%2Fa.pdf&version=1&text=1", nil, http.StatusOK).Body
	if !strings.Contains(page, "Balloon flight over the harbour") {
		t.Error("the page does not show the text")
	}

	agent := filer(t, eve)
	ada.Must(http.MethodPut, "/api/v1/grants/"+ident.NewID(), map[string]any{"agent": agent, "tool": "library_read",
		"scope": "bills/", "decision": "allow"}, http.StatusOK)
	if got := talkTo(t, ada, agent).say(`library_read {"path":"bills/a.pdf"}`); !strings.Contains(got, "Total: 84.60") {
		t.Errorf("an agent reads %q", got)
	}

	putFile(t, ada, "bills/a.pdf", string(pdftest.File("Something else")))
	if got := filesOf(ada, "?q=balloon"); len(got) > 0 {
		t.Errorf("an earlier version is found: %v", got)
	}
	ada.Must(http.MethodPost, "/api/v1/library/bills/a.pdf/undo", map[string]int{"version": 2}, http.StatusOK)
	if got := filesOf(ada, "?q=balloon"); len(got) != 1 {
		t.Errorf("the write was undone, and %v are found", got)
	}

	putFile(t, ada, "bills/broken.pdf", string(bill[:len(bill)/3]))
	if got := filesOf(ada, "?q=broken"); !slices.Equal(got, []string{"bills/broken.pdf"}) {
		t.Errorf("a broken file: %v", got)
	}
	putFile(t, ada, "notes/tea.md", "Green tea.")
	if got := ada.Must(http.MethodGet, "/api/v1/library/notes/tea.md?text=1", nil, http.StatusOK).Body; got != "Green tea." {
		t.Errorf("the text of a text: %q", got)
	}
	putFile(t, ada, "bills/scan.pdf", string(pdftest.FileOf([]byte("0 0 m 100 100 l S"))))
	ada.Must(http.MethodGet, "/api/v1/library/bills/scan.pdf?text=1", nil, http.StatusConflict)
	page = ada.Must(http.MethodGet, "/library/file?path=bills%2Fscan.pdf&text=1", nil, http.StatusOK).Body
	if !strings.Contains(page, "None can be read") {
		t.Error("the page does not say that there is no text")
	}
}
